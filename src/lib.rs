//! `infer-stats` answers questions from the logs that LLM serving leaves behind.
//!
//! ```text
//! what was typed (cli) -> what is meant (request)
//!                          | source: locate, decompress, decode, map to the canonical record
//!                          v
//!                         table `logs`
//!                          | report: a file of queries/, rendered with dimensions, values bound
//!                          v
//!                         engine: DataFusion with exact percentiles
//!                          | report: columns with units, accounting of every record, notes
//!                          v
//!                         output: table | markdown | csv | json | jsonl | parquet, and an exit code
//! ```

pub mod cli;
pub mod config;
pub mod cost;
pub mod engine;
pub mod frame;
pub mod generate;
pub mod ident;
pub mod inspect;
pub mod interrupt;
pub mod nearest;
pub mod output;
pub mod policy;
pub mod profile;
pub mod record;
pub mod report;
pub mod request;
pub mod run;
pub mod source;
pub mod trace;
