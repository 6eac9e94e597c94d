//! The canonical record: one fixed schema, so that every report works on every log.
//!
//! A log's own keys become columns through [`alias`] and [`unit`]; what a record lacks may follow from what it
//! has ([`derive`]); whether it failed is read from whatever the log says about its outcome ([`outcome`]).
//! Missing is not zero: a column that a record does not have is null.

pub mod alias;
pub mod asof;
pub mod column;
pub mod derive;
pub mod excerpt;
pub mod merge;
pub mod number;
pub mod outcome;
pub mod stored;
pub mod timestamp;
pub mod unit;

pub use column::{Column, Kind};
