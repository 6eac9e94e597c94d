//! The rows of an answer that was written to a file, as a table that a report compares with.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::catalog::MemTable;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::mistake::ReportMistake;

type Row = Map<String, Value>;

/// Reads what `--format json`, `jsonl` or `parquet` wrote.
///
/// # Errors
/// [`ReportMistake::NotAnAnswer`] where the file is none of them.
pub fn table(path: &Path) -> anyhow::Result<MemTable> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| ReportMistake::NoAnswerFile { path: path.display().to_string(), reason: error.to_string() })?;
    let not_an_answer = || ReportMistake::NotAnAnswer { path: path.display().to_string() };
    let batches = if bytes.starts_with(b"PAR1") {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).ok().with_context(not_an_answer)?;
        let none = RecordBatch::new_empty(reader.schema().clone());
        std::iter::once(Ok(none)).chain(reader.build()?).collect::<Result<Vec<_>, _>>()?
    } else {
        let (names, rows) = rows(&bytes).with_context(not_an_answer)?;
        vec![batch(&names, &rows)?]
    };
    let schema = batches.first().with_context(not_an_answer)?.schema();
    Ok(MemTable::try_new(schema, vec![batches])?)
}

/// The columns and rows of a report, or of lines that are rows; None where it is neither.
fn rows(bytes: &[u8]) -> Option<(Vec<String>, Vec<Row>)> {
    let values =
        serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().collect::<Result<Vec<_>, _>>().ok()?;
    let named = |column: &Value| column["name"].as_str().map(str::to_owned);
    let (names, rows) = match values.as_slice() {
        [Value::Object(report)] if report.contains_key("rows") => {
            (report.get("columns")?.as_array()?.iter().map(named).collect(), report["rows"].as_array()?.clone())
        }
        [Value::Object(first), ..] => (Some(first.keys().cloned().collect()), values),
        _ => return None,
    };
    let rows: Option<Vec<Row>> =
        rows.into_iter().map(|row| if let Value::Object(row) = row { Some(row) } else { None }).collect();
    Some((names?, rows?))
}

/// Rows as columns: whole numbers, numbers, flags, or else texts.
fn batch(names: &[String], rows: &[Row]) -> anyhow::Result<RecordBatch> {
    let column = |name: &str| -> ArrayRef {
        let values: Vec<&Value> = rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null)).collect();
        let all = |fits: fn(&Value) -> bool| {
            values.iter().all(|value| value.is_null() || fits(value)) && !values.iter().all(|value| value.is_null())
        };
        if all(Value::is_i64) {
            Arc::new(values.iter().map(|value| value.as_i64()).collect::<Int64Array>())
        } else if all(Value::is_number) {
            Arc::new(values.iter().map(|value| value.as_f64()).collect::<Float64Array>())
        } else if all(Value::is_boolean) {
            Arc::new(values.iter().map(|value| value.as_bool()).collect::<BooleanArray>())
        } else {
            let text = |value: &&Value| match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
    };
    Ok(RecordBatch::try_from_iter_with_nullable(names.iter().map(|name| (name, column(name), true)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_and_lines_are_rows_with_types_and_gaps() {
        let lines = b"{\"a\":1,\"b\":null,\"c\":\"x\"}\n{\"a\":2,\"b\":0.5,\"c\":null}\n";
        let report = b"{\"report\":\"r\",\"columns\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}],\"rows\":[{\"a\":1,\"b\":null,\"c\":\"x\"},{\"a\":2,\"b\":0.5,\"c\":null}]}";
        for bytes in [&lines[..], report] {
            let (names, rows) = rows(bytes).unwrap();
            let batch = batch(&names, &rows).unwrap();
            let types: Vec<String> =
                batch.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
            assert_eq!(types, ["Int64", "Float64", "Utf8"]);
            assert_eq!((batch.num_rows(), batch.column(1).null_count()), (2, 1));
        }
        let (names, none) = rows(b"{\"columns\":[{\"name\":\"a\"}],\"rows\":[]}").unwrap();
        assert_eq!((batch(&names, &none).unwrap().num_columns(), none.len()), (1, 0));
        assert!(rows(b"not json").is_none() && rows(b"").is_none() && rows(b"[1]").is_none());
    }
}
