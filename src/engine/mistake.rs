//! Mistakes in SQL that a user typed, as sentences: the engine's own words name its internals.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use thiserror::Error;

use crate::nearest::suggestion;

/// What is wrong with a statement, a `--where`, or a `--sort`.
#[derive(Debug, Error)]
pub enum SqlMistake {
    #[error("there is no column `{column}`{hint}")]
    NoColumn { column: String, hint: String },
    #[error(
        "there is no table `{table}`: the logs are the table `logs`, and `inference_logs` has their time as `ts` too"
    )]
    NoTable { table: String },
    #[error("only one statement that reads is run: a SELECT, or EXPLAIN SELECT")]
    NotReadOnly,
    #[error("the SQL is not valid: {0}")]
    Invalid(String),
}

/// An error of planning as the user's mistake; None where the fault is not in the SQL.
pub fn sql_mistake(error: &DataFusionError) -> Option<SqlMistake> {
    match error.find_root() {
        DataFusionError::SchemaError(schema, _) => Some(match schema.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let names = valid_fields.iter().map(|field| field.name());
                SqlMistake::NoColumn { column: field.name().to_owned(), hint: suggestion(field.name(), names) }
            }
            other => SqlMistake::Invalid(other.to_string()),
        }),
        DataFusionError::Plan(message)
            if message.ends_with("not supported") || message.contains(" not supported: ") =>
        {
            Some(SqlMistake::NotReadOnly)
        }
        DataFusionError::Plan(message) | DataFusionError::NotImplemented(message) => {
            Some(SqlMistake::Invalid(first_sentence(message)))
        }
        DataFusionError::SQL(error, _) => Some(SqlMistake::Invalid(error.to_string())),
        _ => None,
    }
}

/// Lists of candidates and back traces follow on further lines.
fn first_sentence(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
