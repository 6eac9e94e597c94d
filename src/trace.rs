//! One request, end to end: every record of it from all logs, on one time axis.
//!
//! ```text
//! ids -> lookup (search of the bytes, Parquet by its statistics) -> entries: records, events, steps of tokens
//!     -> links (retries, the trace), looked up the same way
//!     -> surroundings (one scan: others of its kind, its batch, what else ran on its GPU)
//!     -> life: stages, clocks, tokens, neighbours -> findings
//! ```

mod calls;
mod case;
mod chronicle;
mod clocks;
mod discretion;
mod entry;
mod findings;
pub mod life;
mod lookup;
mod matching;
mod neighbours;
mod rows;
mod stages;
mod steps;
mod surroundings;

pub use chronicle::{Chronicle, chronicle};
pub use life::Life;
pub use lookup::Lookup;
pub use rows::{MEANINGS, rows};
