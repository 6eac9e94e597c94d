//! Mistakes in asking for a report by name.

use thiserror::Error;

/// What is wrong with a query's name, its parameters or their values.
#[derive(Debug, Error)]
pub enum ReportMistake {
    #[error("there is no query `{name}` (`infer-stats queries` lists them){hint}")]
    NoQuery { name: String, hint: String },
    #[error("the query `{query}` has no parameter `{name}`{hint}")]
    NoParameter { query: String, name: String, hint: String },
    #[error("--{flag} must be given: see --help")]
    Missing { flag: String },
    #[error("--param {name}={text}: not {expected}")]
    WrongValue { name: String, text: String, expected: String },
    #[error("{path} is one of the logs: name another file for the {what}")]
    OutputIsALog { path: String, what: &'static str },
    #[error("-o and --rejects name the same file: the one would replace the other")]
    OneFileForTwo,
    #[error(
        "--where '{sql}' is no condition: it must be true or false for a record, as in --where \"input_tokens > 8192\""
    )]
    NoCondition { sql: String },
    #[error(
        "--where '{sql}' asks about many records, but a condition is about one; `infer-stats sql` can group and count"
    )]
    NotOfOneRecord { sql: String },
}
