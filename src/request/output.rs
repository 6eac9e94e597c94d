//! How the answer is written: format, place, order of rows.

use std::path::PathBuf;

use super::{Mistake, Word};

/// Format and place of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChoice {
    pub format: Format,
    /// None: standard output.
    pub file: Option<PathBuf>,
    /// A folder for one file a value of the first column.
    pub explode: Option<PathBuf>,
    pub color: Color,
    /// No progress, warnings or accounting line on standard error.
    pub quiet: bool,
    /// Print the statement as run.
    pub show_sql: bool,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Table,
    Markdown,
    Csv,
    Json,
    Jsonl,
    Parquet,
    /// Findings as test cases.
    Junit,
    /// Findings as annotations of a GitHub workflow.
    Github,
    /// A trace as one page.
    Html,
    /// A trace for ui.perfetto.dev.
    Perfetto,
    /// A trace as OpenTelemetry spans.
    Otlp,
}

impl Word for Format {
    const KIND: &'static str = "output format";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("table", Format::Table),
        ("markdown", Format::Markdown),
        ("csv", Format::Csv),
        ("json", Format::Json),
        ("jsonl", Format::Jsonl),
        ("parquet", Format::Parquet),
        ("junit", Format::Junit),
        ("github", Format::Github),
        ("html", Format::Html),
        ("perfetto", Format::Perfetto),
        ("otlp", Format::Otlp),
    ];
}

impl Format {
    /// Whether only a trace can be written in it.
    pub fn is_of_traces(self) -> bool {
        matches!(self, Format::Html | Format::Perfetto | Format::Otlp)
    }

    /// How names of files in this format end.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Table | Format::Github => "txt",
            Format::Markdown => "md",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Jsonl | Format::Otlp => "jsonl",
            Format::Perfetto => "json",
            Format::Html => "html",
            Format::Parquet => "parquet",
            Format::Junit => "xml",
        }
    }
}

/// Whether a table is coloured; `Auto` is where standard output is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Word for Color {
    const KIND: &'static str = "choice of colour";
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Color::Auto), ("always", Color::Always), ("never", Color::Never)];
}

/// `--sort COLUMN[:asc|desc]`: the order of the rows by one column of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    pub column: String,
    pub order: Order,
}

/// The direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Ascending,
    Descending,
}

impl Word for Order {
    const KIND: &'static str = "sort order";
    const WORDS: &'static [(&'static str, Self)] = &[("asc", Order::Ascending), ("desc", Order::Descending)];
}

impl Sort {
    /// Whether the report has the column is known only when it is planned.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let (column, order) = match text.split_once(':') {
            Some((column, order)) => (column, Order::from_word(order)?),
            None => (text, Order::default()),
        };
        if column.trim().is_empty() {
            return Err(Mistake::NotASort { text: text.to_owned() });
        }
        Ok(Sort { column: column.trim().to_owned(), order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_ascending_unless_asked_otherwise() {
        for (text, order) in
            [("p99_ms", Order::Ascending), ("p99_ms:asc", Order::Ascending), ("p99_ms:desc", Order::Descending)]
        {
            let sort = Sort::parse(text).unwrap();
            assert_eq!((sort.column.as_str(), sort.order), ("p99_ms", order));
        }
    }

    #[test]
    fn a_sort_without_column_or_with_an_unknown_order_is_a_mistake() {
        assert!(matches!(Sort::parse(":desc"), Err(Mistake::NotASort { .. })));
        assert_eq!(
            Sort::parse("p99_ms:dsc").unwrap_err().to_string(),
            "unknown sort order `dsc`; did you mean `desc`? (it is one of: asc, desc)"
        );
    }
}
