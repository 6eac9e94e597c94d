//! How one canonical column is filled from the values of a record.

use super::path::ValuePath;
use crate::record::unit::Unit;

/// One way to fill a column; the first rule of a column that yields a value counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub origin: Origin,
    pub unit: UnitOf,
    /// Values, as written, that stand for a missing one.
    pub nulls: Vec<String>,
    /// Values, as written, and the text that each stands for.
    pub values: Vec<(String, String)>,
    /// What every other value stands for; None: for itself.
    pub other: Option<String>,
    /// The value counts so many to one.
    pub divide: Option<u32>,
    /// The value is missing where this one is written alike.
    pub unless_equal: Option<ValuePath>,
    /// The value is missing where this one is there.
    pub unless: Option<ValuePath>,
    /// A value below zero is missing.
    pub not_negative: bool,
    /// A time by a clock that tells no date.
    pub clock: Option<Clock>,
}

/// Where the value of a rule comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The first of these that holds a value.
    Paths(Vec<ValuePath>),
    Sum(Vec<Part>),
    /// `to` - `from`, both numbers.
    Difference {
        from: ValuePath,
        to: ValuePath,
    },
    /// The same for every record.
    Constant(String),
}

/// A summand.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub path: ValuePath,
    /// Counts as 0 where it is missing; else nothing can be summed.
    pub optional: bool,
}

/// The unit of a rule's value.
#[derive(Clone, Debug, PartialEq)]
pub enum UnitOf {
    /// None, or for an epoch what its size tells.
    Unstated,
    Fixed(Unit),
    /// It stands in the text, as in `45.1ms`.
    Text,
    /// Another value names it.
    At(ValuePath),
}

/// Clocks that run but tell no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Since the start of the log.
    Relative,
    /// Since some start of the machine.
    Monotonic,
}

impl Rule {
    /// A value taken as it stands.
    pub fn plain(path: ValuePath) -> Self {
        Self::of(Origin::Paths(vec![path]))
    }

    pub fn of(origin: Origin) -> Self {
        Self {
            origin,
            unit: UnitOf::Unstated,
            nulls: Vec::new(),
            values: Vec::new(),
            other: None,
            divide: None,
            unless_equal: None,
            unless: None,
            not_negative: false,
            clock: None,
        }
    }

    /// Every path that it reads.
    pub fn paths(&self) -> Vec<&ValuePath> {
        let mut paths: Vec<&ValuePath> = match &self.origin {
            Origin::Paths(paths) => paths.iter().collect(),
            Origin::Sum(parts) => parts.iter().map(|part| &part.path).collect(),
            Origin::Difference { from, to } => vec![from, to],
            Origin::Constant(_) => Vec::new(),
        };
        paths.extend(&self.unless_equal);
        if let UnitOf::At(path) = &self.unit {
            paths.push(path);
        }
        paths
    }
}
