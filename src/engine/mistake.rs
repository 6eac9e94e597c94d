//! Mistakes in SQL that a user typed, as sentences: the engine's own words name its internals.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use thiserror::Error;

use crate::nearest::suggestion;

/// What is wrong with a statement, a `--where`, or a `--sort`.
#[derive(Clone, Debug, Error)]
pub enum SqlMistake {
    #[error("there is no column `{column}`{hint}")]
    NoColumn { column: String, hint: String },
    #[error(
        "there is no table `{table}`: the records are the table `logs` (with their time as `ts` too, `inference_logs`), put together by id `requests`, and what else is said about them `events`"
    )]
    NoTable { table: String },
    #[error("only one statement that reads is run: a SELECT, or EXPLAIN SELECT")]
    NotReadOnly,
    #[error("these logs are a sample (sample_weight), which does not tell {what} of all requests: ask the whole logs")]
    NotOfASample { what: String },
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
        DataFusionError::External(cause) => cause.downcast_ref::<SqlMistake>().cloned(),
        DataFusionError::Plan(message) if message.contains(" not supported: ") => Some(SqlMistake::NotReadOnly),
        DataFusionError::NotImplemented(message) if message.contains("single SQL statement") => {
            Some(SqlMistake::NotReadOnly)
        }
        DataFusionError::Plan(message) => Some(match missing_table(message) {
            Some(table) => SqlMistake::NoTable { table },
            None => SqlMistake::Invalid(one_line(message)),
        }),
        DataFusionError::NotImplemented(message) | DataFusionError::Execution(message) => {
            Some(SqlMistake::Invalid(one_line(message)))
        }
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::DivideByZero => Some(SqlMistake::Invalid("it divides by zero".to_owned())),
            ArrowError::CastError(message) | ArrowError::ParseError(message) | ArrowError::ComputeError(message) => {
                Some(SqlMistake::Invalid(one_line(message)))
            }
            _ => None,
        },
        DataFusionError::SQL(error, _) => Some(SqlMistake::Invalid(one_line(&error.to_string()))),
        _ => None,
    }
}

/// The bare name of a table that the engine did not find: `log` for `table 'datafusion.public.log' not found`.
fn missing_table(message: &str) -> Option<String> {
    let (name, _) = message.strip_prefix("table '")?.split_once("' not found")?;
    let bare = name.trim_start_matches("datafusion.").trim_start_matches("public.");
    Some(bare.to_owned())
}

/// A message on one line, without the dump of the engine's own structures that some end in.
fn one_line(message: &str) -> String {
    let message = message.trim_start_matches("sql parser error: ");
    let message = message.split(" { ").next().unwrap_or(message);
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}
