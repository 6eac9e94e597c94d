//! `infer-stats prices`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::choice;
use crate::request::Format;

/// List, check or lock the prices of a price book, or print an example of one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct PricesArgs {
    #[command(subcommand)]
    pub action: PricesAction,
}

#[derive(Debug, Subcommand)]
pub enum PricesAction {
    /// All prices, as they are understood
    List(BookArgs),
    /// Look for prices that cannot be meant; exit with 3 where one is an error
    Check(BookArgs),
    /// Write down which text the book has, beside it: a book that changes after that is refused
    Lock(BookArgs),
    /// Print a price book to begin with
    Example,
}

#[derive(Debug, Args)]
pub struct BookArgs {
    /// The price book; without one that of the config
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub book: Option<PathBuf>,

    /// How the answer is written
    #[arg(long, value_name = "FORMAT", value_parser = choice::<Format>(), default_value = "table")]
    pub format: Format,

    /// Write the answer to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// The config to use, also from INFER_STATS_CONFIG, instead of the nearest infer-stats.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats prices example > prices.toml
  infer-stats prices check prices.toml
  infer-stats prices lock prices.toml
  infer-stats prices list --format csv prices.toml";
