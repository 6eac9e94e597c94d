//! From the paths a user named to the table `logs`.
//!
//! ```text
//! locate -> input (compression, format) -> blocks of lines | documents | csv records | parquet footers
//!        -> json decoder, csv cells, parquet columns -> reader | columnar (the canonical record) -> table
//! ```

pub mod blocks;
mod builder;
mod carried;
pub mod columnar;
pub mod compression;
pub mod counts;
pub mod csv;
pub(crate) mod cuts;
pub(crate) mod dialect;
pub mod document;
pub mod format;
pub mod input;
pub mod json;
mod layout;
pub mod locate;
pub mod logs;
mod mapped;
pub mod mapping;
pub mod needles;
pub(crate) mod nest;
pub mod parquet;
pub mod plan;
pub mod reader;
mod reading;
pub(crate) mod records;
pub mod rejects;
pub mod requests;
mod restructure;
pub(crate) mod row;
mod rows;
pub mod scan;
pub mod schema;
pub mod search;
mod sieve;
pub mod sink;
mod slots;
pub mod table;
pub mod tally;
pub mod tokens;
pub mod value;
pub mod window;

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::record::{Column, Kind};
use crate::source::compression::Compression;
use crate::source::cuts::Lines;
use crate::source::format::Format;
use crate::source::input::Input;
use crate::source::reader::Provenance;
use crate::source::schema::LogSchema;

/// One input of a run and how it is read.
#[derive(Debug)]
pub struct LogFile {
    /// Position among all inputs, in the order that they were named.
    pub index: usize,
    pub input: Input,
    /// Which of the run's mappings reads it.
    pub mapping: usize,
    /// Parquet that is read row by row, since a profile describes it: where its bytes are.
    pub rows: Option<PathBuf>,
    /// What its lines are, as soon as a search had to know.
    pub lines: OnceLock<Lines>,
}

/// Where a record starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of its [`LogFile`].
    pub file: usize,
    /// Byte in the decoded file.
    pub offset: u64,
}

impl LogFile {
    /// Whether several threads may read it at once, by byte ranges.
    pub fn is_splittable(&self) -> bool {
        let lines = matches!(self.input.format, Format::Ndjson | Format::Text);
        lines && self.input.compression == Compression::None && self.input.plain_file().is_some()
    }

    /// What every row of the file shares.
    fn provenance(&self, schema: &LogSchema) -> Provenance {
        let value =
            |name: &str| self.input.partitions.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let text = |column: &Column| matches!(column.kind(), Kind::Text | Kind::Id);
        Provenance {
            file: self.input.name.clone(),
            fallbacks: Column::ALL
                .iter()
                .filter(|column| text(column))
                .filter_map(|column| Some((*column, value(column.name())?)))
                .collect(),
            partitions: schema.partitions.iter().map(|name| value(name)).collect(),
        }
    }
}
