//! A price of a model from some day on: what a token of each class costs, in tiers and beyond thresholds of length.

use super::{Money, times};

/// What a token of each class costs; None is not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes {
    pub input: Option<Money>,
    pub cached: Option<Money>,
    pub cache_write: Option<Money>,
    pub cache_write_1h: Option<Money>,
    pub output: Option<Money>,
    pub reasoning: Option<Money>,
    /// Of every token, whatever its class: the provider bills the total.
    pub total: Option<Money>,
    /// For each request.
    pub request: Option<Money>,
}

/// How a price changes with the length of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongMode {
    /// A prompt above the threshold is dearer as a whole, its answer too.
    Whole,
    /// Only the tokens of the prompt above the threshold are dearer.
    Marginal,
}

/// The price of long prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Long {
    /// Prompts of more input tokens than this, cached ones included.
    pub above: i64,
    pub mode: LongMode,
    pub classes: Classes,
}

/// The price of a service tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tier {
    /// The base price times this.
    Factor(i128),
    /// Prices of its own.
    Own { classes: Box<Classes>, long: Vec<Long> },
}

/// The prices of a model from some day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Nanoseconds since 1970; None: always.
    pub since: Option<i64>,
    /// That day as it was written.
    pub since_text: Option<String>,
    pub currency: String,
    pub base: Classes,
    /// In ascending order of their thresholds.
    pub long: Vec<Long>,
    pub tiers: Vec<(String, Tier)>,
}

/// The tiers that are no tier: the base price.
const BASE_TIERS: [&str; 5] = ["default", "standard", "auto", "on_demand", "on-demand"];

/// What a call pays for each token: of the prompt up to a threshold, and of what lies above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    pub classes: Classes,
    /// The prices of the tokens above so many of the prompt.
    pub above: Option<(i64, Classes)>,
}

impl Price {
    /// What a call of a tier pays whose prompt has so many tokens, and how to call that price.
    ///
    /// # Errors
    /// A reason, where the price says nothing about this tier or this length.
    pub fn rates(&self, tier: Option<&str>, length: Option<i64>) -> Result<(Rates, String), String> {
        let named = tier.filter(|tier| !BASE_TIERS.iter().any(|base| base.eq_ignore_ascii_case(tier)));
        let mut label = String::new();
        let (base, long, factor) = match named {
            None => (self.base, &self.long, None),
            Some(name) => {
                label = format!(", tier {}", name.to_lowercase());
                match self.tiers.iter().find(|(tier, _)| tier.eq_ignore_ascii_case(name)) {
                    None => return Err(format!("no price for tier {name}")),
                    Some((_, Tier::Factor(factor))) => (self.base, &self.long, Some(*factor)),
                    Some((_, Tier::Own { classes, long })) => {
                        let is_above = |long: &Long| length.is_some_and(|length| length > long.above);
                        if long.is_empty() && self.long.iter().any(is_above) {
                            return Err(format!("no long-context price for tier {name}"));
                        }
                        if self.base.output.is_some() && classes.output.is_none() && classes.total.is_none() {
                            return Err(format!("no output price for tier {name}"));
                        }
                        (classes.or(&self.base.fees()), long, None)
                    }
                }
            }
        };
        let scaled = |classes: Classes| match factor {
            Some(factor) => classes.times(factor),
            None => classes,
        };
        let beyond = long.iter().rev().find(|long| length.is_some_and(|length| length > long.above));
        let rates = match beyond {
            None => Rates { classes: scaled(base), above: None },
            Some(long) => {
                label += &format!(", above {} tokens", long.above);
                let dearer = scaled(long.classes.or(&base));
                match long.mode {
                    LongMode::Whole => Rates { classes: dearer, above: None },
                    LongMode::Marginal => Rates { classes: scaled(base), above: Some((long.above, dearer)) },
                }
            }
        };
        Ok((rates, label))
    }

    /// The lengths of prompts at which some tier changes its price.
    pub fn thresholds(&self) -> impl Iterator<Item = i64> {
        let of_tiers = self.tiers.iter().flat_map(|(_, tier)| match tier {
            Tier::Factor(_) => &[],
            Tier::Own { long, .. } => long.as_slice(),
        });
        self.long.iter().chain(of_tiers).map(|long| long.above)
    }

    /// All classes of prices that it knows, tiers and long prompts included.
    pub fn all_classes(&self) -> impl Iterator<Item = Classes> {
        let of_tiers = self.tiers.iter().flat_map(|(_, tier)| match tier {
            Tier::Factor(factor) => {
                let long = self.long.iter().map(|long| long.classes.or(&self.base).times(*factor));
                std::iter::once(self.base.times(*factor)).chain(long).collect::<Vec<_>>()
            }
            Tier::Own { classes, long } => {
                std::iter::once(**classes).chain(long.iter().map(|long| long.classes.or(classes))).collect()
            }
        });
        let long = self.long.iter().map(|long| long.classes.or(&self.base));
        std::iter::once(self.base).chain(long).chain(of_tiers)
    }
}

impl Classes {
    /// These prices, and the others where these say nothing.
    fn or(&self, others: &Classes) -> Classes {
        Classes {
            input: self.input.or(others.input),
            cached: self.cached.or(others.cached),
            cache_write: self.cache_write.or(others.cache_write),
            cache_write_1h: self.cache_write_1h.or(others.cache_write_1h),
            output: self.output.or(others.output),
            reasoning: self.reasoning.or(others.reasoning),
            total: self.total.or(others.total),
            request: self.request.or(others.request),
        }
    }

    /// What does not depend on tokens.
    fn fees(&self) -> Classes {
        Classes { request: self.request, ..Classes::default() }
    }

    pub(super) fn times(&self, factor: i128) -> Classes {
        let scaled = |price: Option<Money>| price.and_then(|price| times(price, factor));
        Classes {
            input: scaled(self.input),
            cached: scaled(self.cached),
            cache_write: scaled(self.cache_write),
            cache_write_1h: scaled(self.cache_write_1h),
            output: scaled(self.output),
            reasoning: scaled(self.reasoning),
            total: scaled(self.total),
            request: scaled(self.request),
        }
    }

    /// A cached token; one that has no price of its own is an input token like others.
    pub fn cached(&self) -> Money {
        self.cached.or(self.input).unwrap_or_default()
    }

    pub fn cache_write(&self) -> Money {
        self.cache_write.or(self.input).unwrap_or_default()
    }

    pub fn cache_write_1h(&self) -> Money {
        self.cache_write_1h.unwrap_or_else(|| self.cache_write())
    }

    /// Each price that is said, with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Money)> {
        let all = [
            ("input", self.input),
            ("cached", self.cached),
            ("cache_write", self.cache_write),
            ("cache_write_1h", self.cache_write_1h),
            ("output", self.output),
            ("reasoning", self.reasoning),
            ("total", self.total),
        ];
        all.into_iter().filter_map(|(name, price)| Some((name, price?)))
    }
}
