//! What one upstream call costs: its tokens in classes that never overlap, each at its price.

use super::Money;
use super::price::{Classes, Rates};

/// A call with more tokens than this did not happen: the count is wrong.
const MOST_TOKENS: i64 = 1_000_000_000;

/// The tokens of a call as its log counts them; None is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Cached ones included.
    pub input: Option<i64>,
    /// Reasoning included.
    pub output: Option<i64>,
    pub cached: Option<i64>,
    /// Written to a cache, for an hour too.
    pub cache_write: Option<i64>,
    /// Of these, written for an hour.
    pub cache_write_1h: Option<i64>,
    pub reasoning: Option<i64>,
    pub total: Option<i64>,
    /// The limit that was asked for.
    pub max_tokens: Option<i64>,
}

/// The tokens of a call in classes that never overlap; None is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub uncached: Option<i64>,
    pub cached: Option<i64>,
    pub write_5m: Option<i64>,
    pub write_1h: Option<i64>,
    /// Reasoning included.
    pub output: Option<i64>,
    /// The part of the output that has a price of its own.
    pub reasoning: Option<i64>,
}

/// What a call costs, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// Of the input tokens that were neither cached nor written to a cache.
    pub input: Option<Money>,
    pub cached: Option<Money>,
    pub write: Option<Money>,
    /// Reasoning included.
    pub output: Option<Money>,
    pub request: Option<Money>,
    /// Their sum; None where one of them is not known.
    pub cost: Option<Money>,
    /// At least so much.
    pub low: Option<Money>,
    /// At most so much; None where nothing bounds it.
    pub high: Option<Money>,
}

/// Why tokens cannot be priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// No count at all.
    NoUsage,
    NoInput,
    NoOutput,
    NoTotal,
    /// There is an answer, but only a price of prompts.
    NoOutputPrice,
    /// A count below 0, or above what any call can have.
    Implausible,
}

impl Unknown {
    /// In words.
    pub fn reason(self) -> &'static str {
        match self {
            Unknown::NoUsage => "no usage",
            Unknown::NoInput => "input tokens are missing",
            Unknown::NoOutput => "output tokens are missing",
            Unknown::NoTotal => "total tokens are missing",
            Unknown::NoOutputPrice => "no price of output tokens",
            Unknown::Implausible => "a token count that cannot be",
        }
    }
}

impl Costs {
    /// Of a call that nobody bills.
    pub fn free() -> Self {
        let none = Some(0);
        Self { input: none, cached: none, write: none, output: none, request: none, cost: none, low: none, high: none }
    }

    /// All amounts in another currency; their sum stays their sum.
    ///
    /// # Errors
    /// That of `exchange`.
    pub fn each(self, exchange: impl Fn(Money) -> Result<Money, String>) -> Result<Self, String> {
        let of = |amount: Option<Money>| amount.map(&exchange).transpose();
        let (input, cached, write) = (of(self.input)?, of(self.cached)?, of(self.write)?);
        let (output, request) = (of(self.output)?, of(self.request)?);
        let parts = [input, cached, write, output, request];
        let cost = self.cost.map(|_| parts.iter().flatten().sum());
        let (low, high) = match cost {
            Some(_) => (cost, cost),
            None => (of(self.low)?, of(self.high)?),
        };
        Ok(Self { input, cached, write, output, request, cost, low, high })
    }
}

impl Usage {
    /// Why nothing can be said of the cost, whatever the price.
    pub fn hopeless(&self) -> Option<Unknown> {
        let counts = [self.input, self.output, self.cached, self.cache_write, self.cache_write_1h, self.reasoning];
        let is_plausible = |count: &i64| (0..=MOST_TOKENS).contains(count);
        if !counts.iter().chain([&self.total]).flatten().all(is_plausible) {
            return Some(Unknown::Implausible);
        }
        (self.input.is_none() && self.output.is_none() && self.total.is_none()).then_some(Unknown::NoUsage)
    }

    /// The tokens in classes. What was read from and written to a cache is part of the input; a log whose parts are more
    /// than the whole counts the writes beside it. To be asked only of usage that is plausible.
    pub fn tokens(&self) -> Tokens {
        let Some(input) = self.input else {
            return Tokens { output: self.output, reasoning: self.output.map(|_| 0), ..Tokens::default() };
        };
        let cached = self.cached.unwrap_or(0).min(input);
        let write = self.cache_write.or(self.cache_write_1h).unwrap_or(0);
        let write_1h = self.cache_write_1h.unwrap_or(0).min(write);
        let rest = input - cached;
        Tokens {
            uncached: Some(if write > rest { rest } else { rest - write }),
            cached: Some(cached),
            write_5m: Some(write - write_1h),
            write_1h: Some(write_1h),
            output: self.output,
            reasoning: self.output.map(|_| 0),
        }
    }
}

impl Tokens {
    /// How long the prompt is, with what the log may count beside it.
    pub fn prompt_length(&self) -> Option<i64> {
        Some(self.uncached? + self.cached? + self.write_5m? + self.write_1h?)
    }
}

/// What a call costs at these rates, and why its cost is not known where it is not. `tokens` are those of the usage; its
/// reasoning is set where it is paid apart.
pub fn charge(usage: &Usage, tokens: &mut Tokens, rates: &Rates) -> (Costs, Option<Unknown>) {
    let classes = &rates.classes;
    if classes.reasoning.is_some() {
        tokens.reasoning = usage.output.map(|output| usage.reasoning.unwrap_or(0).min(output));
    }
    let request = Some(classes.request.unwrap_or(0));
    if let Some(price) = classes.total {
        let all = usage.total.or_else(|| Some(usage.input? + usage.output?));
        let input = all.map(|all| cost_of(all, price));
        let cost = input.map(|input| input + classes.request.unwrap_or(0));
        let none = Some(0);
        let costs =
            Costs { input, cached: none, write: none, output: none, request, cost, low: cost.or(request), high: cost };
        return (costs, cost.is_none().then_some(Unknown::NoTotal));
    }
    let prompt = tokens.uncached.zip(tokens.cached).map(|_| prompt_cost(tokens, rates));
    let output = match (tokens.output, classes.output) {
        (Some(output), Some(price)) => Some(output_cost(output, tokens.reasoning.unwrap_or(0), price, classes)),
        // a model without answers, as one of embeddings
        (None | Some(0), None) => Some(0),
        (Some(_), None) | (None, Some(_)) => None,
    };
    let prompt_sum = prompt.map(|(input, cached, write)| input + cached + write);
    let cost = prompt_sum.zip(output).map(|(prompt, output)| prompt + output + classes.request.unwrap_or(0));
    let low = prompt_sum.unwrap_or(0) + output.unwrap_or(0) + classes.request.unwrap_or(0);
    let longest = usage.max_tokens.filter(|count| (0..=MOST_TOKENS).contains(count));
    let high = cost.or_else(|| {
        let dearest = classes.output?.max(classes.reasoning.unwrap_or(0));
        Some(prompt_sum? + cost_of(longest?, dearest) + classes.request.unwrap_or(0))
    });
    let unknown = match (cost, prompt) {
        (Some(_), _) => None,
        (None, None) => Some(Unknown::NoInput),
        (None, Some(_)) if tokens.output.is_some() => Some(Unknown::NoOutputPrice),
        (None, Some(_)) => Some(Unknown::NoOutput),
    };
    let costs = Costs {
        input: prompt.map(|(input, _, _)| input),
        cached: prompt.map(|(_, cached, _)| cached),
        write: prompt.map(|(_, _, write)| write),
        output,
        request,
        cost,
        low: Some(low),
        high,
    };
    (costs, unknown)
}

/// Counts are below 2^30 and prices below 2^90, so that nothing is ever too large.
fn cost_of(tokens: i64, price: Money) -> Money {
    i128::from(tokens) * price
}

fn output_cost(output: i64, reasoning: i64, price: Money, classes: &Classes) -> Money {
    cost_of(output - reasoning, price) + cost_of(reasoning, classes.reasoning.unwrap_or(price))
}

/// What the uncached, the cached and the written tokens of a prompt cost. The tokens above a threshold are the last ones:
/// first those that no cache held.
fn prompt_cost(tokens: &Tokens, rates: &Rates) -> (Money, Money, Money) {
    let counts = [tokens.uncached, tokens.write_5m, tokens.write_1h, tokens.cached].map(|count| count.unwrap_or(0));
    let prices = |classes: &Classes| {
        [classes.input.unwrap_or(0), classes.cache_write(), classes.cache_write_1h(), classes.cached()]
    };
    let base = prices(&rates.classes);
    let mut costs = [0; 4];
    let mut beyond = rates.above.map_or(0, |(above, _)| (counts.iter().sum::<i64>() - above).max(0));
    let dearer = rates.above.map_or(base, |(_, classes)| prices(&classes));
    for class in 0..4 {
        let last = counts[class].min(beyond);
        beyond -= last;
        costs[class] = cost_of(counts[class] - last, base[class]) + cost_of(last, dearer[class]);
    }
    let [uncached, write_5m, write_1h, cached] = costs;
    (uncached, cached, write_5m + write_1h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::book::Book;

    /// One US dollar.
    const DOLLAR: Money = 1_000_000_000_000_000_000;

    fn rates(price: &str, input: i64) -> Rates {
        let text = format!("[[model]]\nname = \"m\"\n[[model.price]]\n{price}");
        let book = Book::parse("prices.toml", &text).unwrap();
        book.models[0].prices[0].rates(None, Some(input)).unwrap().0
    }

    fn charge(usage: &Usage, rates: &Rates) -> (Tokens, Costs, Option<Unknown>) {
        let mut tokens = usage.tokens();
        let (costs, unknown) = super::charge(usage, &mut tokens, rates);
        (tokens, costs, unknown)
    }

    fn usage(input: i64, cached: i64, output: i64) -> Usage {
        Usage { input: Some(input), cached: Some(cached), output: Some(output), ..Usage::default() }
    }

    #[test]
    fn cached_tokens_are_part_of_the_input_and_are_paid_once() {
        let (tokens, costs, unknown) =
            charge(&usage(17_903, 17_817, 0), &rates("input = 1\ncached = 0.1\noutput = 2", 17_903));
        assert_eq!((tokens.uncached, tokens.cached, unknown), (Some(86), Some(17_817), None));
        // 86 at 1.00 and 17,817 at 0.10 a million
        assert_eq!(costs.cost, Some(DOLLAR / 1_000_000 * 86 + DOLLAR / 10_000_000 * 17_817));
    }

    #[test]
    fn cache_writes_are_paid_at_their_own_price_and_not_as_input_too() {
        let written = Usage { cache_write: Some(300), cache_write_1h: Some(100), ..usage(1_000, 500, 0) };
        let price = "input = 3\ncached = 0.3\ncache_write = 3.75\ncache_write_1h = 6\noutput = 15";
        let (tokens, costs, _) = charge(&written, &rates(price, 1_000));
        assert_eq!((tokens.uncached, tokens.write_5m, tokens.write_1h), (Some(200), Some(200), Some(100)));
        assert_eq!(costs.write, Some(DOLLAR / 1_000_000 * (200 * 375 + 100 * 600) / 100));
    }

    #[test]
    fn writes_that_a_log_counts_beside_the_input_take_nothing_from_it() {
        let written = Usage { cache_write: Some(25_000), ..usage(25_003, 25_000, 0) };
        assert_eq!(written.tokens().uncached, Some(3));
    }

    #[test]
    fn a_long_prompt_is_dearer_as_a_whole_or_above_the_threshold() {
        let price = |mode: &str| {
            format!(
                "input = 1\ncached = 0.5\noutput = 2\nlong = [{{ above = 1000, mode = \"{mode}\", input = 10, cached = 5 }}]"
            )
        };
        let cost = |mode: &str, input: i64, cached: i64| {
            charge(&usage(input, cached, 0), &rates(&price(mode), input)).1.cost.unwrap() * 1_000_000 * 10 / DOLLAR
        };
        assert_eq!((cost("whole", 1000, 0), cost("marginal", 1000, 0)), (10_000, 10_000));
        assert_eq!(cost("whole", 1500, 0), 150_000);
        assert_eq!(cost("marginal", 1500, 0), 10_000 + 50_000);
        // the 500 above are the 300 that no cache held, and 200 of the cached
        assert_eq!(cost("marginal", 1500, 1200), 1_000 * 5 + 300 * 100 + 200 * 50);
    }

    #[test]
    fn a_count_that_is_missing_is_unknown_and_bounded_by_the_limit_that_was_asked_for() {
        let cut = Usage { input: Some(1_000_000), max_tokens: Some(500_000), ..Usage::default() };
        let (_, costs, unknown) = charge(&cut, &rates("input = 1\noutput = 4", 1_000_000));
        assert_eq!((costs.cost, unknown), (None, Some(Unknown::NoOutput)));
        assert_eq!((costs.low, costs.high), (Some(DOLLAR), Some(3 * DOLLAR)));
        assert_eq!(Usage::default().hopeless(), Some(Unknown::NoUsage));
        assert_eq!(usage(2_000_000_000, 0, 0).hopeless(), Some(Unknown::Implausible));
        assert_eq!(usage(0, 0, 0).hopeless(), None);
    }

    #[test]
    fn an_answer_of_a_model_without_price_of_answers_is_not_free() {
        let (_, costs, unknown) = charge(&usage(10, 0, 5), &rates("input = 1", 10));
        assert_eq!((costs.cost, unknown), (None, Some(Unknown::NoOutputPrice)));
        assert_eq!(charge(&usage(10, 0, 0), &rates("input = 1", 10)).2, None);
    }
}
