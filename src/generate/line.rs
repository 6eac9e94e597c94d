//! One line of a log, and its columns said once for every format.

mod app;
mod engine;
mod gateway;

use anyhow::Result;

pub use app::AppLine;
pub use engine::EngineLine;
pub use gateway::GatewayLine;

/// A line of one of the three logs.
pub trait Line: Default {
    /// The file's name, without the ending of its format.
    const LOG: &'static str;

    /// When the line's server first saw the request, in microseconds since 1970, UTC: the file's
    /// order.
    fn at_us(&self) -> i64;

    /// Gives every column to `fields`, always in the same order and kind, so that the default line
    /// shows the layout.
    fn write<F: Fields>(&self, fields: &mut F) -> Result<()>;
}

/// Something that takes the columns of a line, one after the other. `None` is null.
pub trait Fields {
    fn text<'a>(&mut self, name: &'static str, value: impl Into<Option<&'a str>>) -> Result<()>;

    fn whole(&mut self, name: &'static str, value: impl Into<Option<u64>>) -> Result<()>;

    /// A number with three decimals, given in thousandths: microseconds become milliseconds.
    fn thousandths(&mut self, name: &'static str, value: impl Into<Option<u64>>) -> Result<()>;

    fn flag(&mut self, name: &'static str, value: impl Into<Option<bool>>) -> Result<()>;

    /// A moment in microseconds since 1970, UTC; written to the millisecond below.
    fn time(&mut self, name: &'static str, at_us: i64) -> Result<()>;
}
