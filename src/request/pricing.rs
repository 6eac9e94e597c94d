//! What is to be done with a price book itself.

use std::path::PathBuf;

use super::{Format, Mistake, Place};
use crate::cli::{BookArgs, PricesAction};
use crate::config::Config;

/// A question about prices rather than logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pricing {
    List(BookQuestion),
    Check(BookQuestion),
    Lock(PathBuf),
    Example,
}

/// A book, and how what is found in it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookQuestion {
    pub book: PathBuf,
    pub format: Format,
    pub file: Option<PathBuf>,
}

impl Pricing {
    /// What was typed, with the book of the config where none was.
    ///
    /// # Errors
    /// Neither the command line nor the config names a book.
    pub fn resolve(action: PricesAction, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let question = |typed: BookArgs| {
            let config = Config::find(typed.config.as_deref(), place, canonical_columns)?;
            let book = typed.book.or(config.money.book).ok_or(Mistake::NoPrices)?;
            Ok(BookQuestion { book, format: typed.format, file: typed.output })
        };
        Ok(match action {
            PricesAction::List(typed) => Pricing::List(question(typed)?),
            PricesAction::Check(typed) => Pricing::Check(question(typed)?),
            PricesAction::Lock(typed) => Pricing::Lock(question(typed)?.book),
            PricesAction::Example => Pricing::Example,
        })
    }
}
