//! The rows as Parquet, for the next program: types kept, null kept, nothing rounded.
//!
//! What JSON says around the rows stands in the file's key-value metadata, one `infer_stats.*` key for each member
//! with its JSON as the value, so that the numbers keep their units and definitions.

use std::io::Write;

use anyhow::Context;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::report::Report;

use super::json;

pub fn write<W: Write + Send>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let members = json::preamble(report).into_iter().chain([("notes".to_owned(), Value::from(json::notes(report)))]);
    let metadata = members.map(|(key, value)| KeyValue::new(format!("infer_stats.{key}"), value.to_string()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(metadata.collect()))
        .build();
    let mut parquet = ArrowWriter::try_new(out, report.rows.schema().clone(), Some(properties))
        .context("the answer has a column of a type that Parquet cannot hold; choose another format")?;
    for batch in report.rows.batches()? {
        parquet.write(&batch?)?;
    }
    parquet.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs::File;

    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::json;

    use super::*;
    use crate::output::{Format, Style, sample};

    fn read(report: &mut Report) -> ParquetRecordBatchReaderBuilder<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&sample::written(report, Format::Parquet, Style::default())).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap()
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let mut report = sample::every_type();
        let back: Vec<_> = read(&mut report).build().unwrap().map(Result::unwrap).collect();
        let rows: Vec<_> = report.rows.batches().unwrap().map(Result::unwrap).collect();
        assert_eq!(back, rows);
    }

    #[test]
    fn the_metadata_says_what_the_numbers_mean() {
        let file = read(&mut sample::every_type());
        let metadata = file.metadata().file_metadata().key_value_metadata().unwrap();
        let said: HashMap<_, Value> = metadata
            .iter()
            .filter_map(|pair| Some((pair.key.strip_prefix("infer_stats.")?, pair.value.as_ref()?.parse().unwrap())))
            .collect();
        assert_eq!(said["parameters"], json!({ "by": ["tenant"], "since": null }));
        assert_eq!(said["columns"][4], json!({ "name": "p95_ms", "unit": "ms", "definition": "what p95_ms is" }));
        assert_eq!(said["notes"][0]["count"], 1200);
        assert_eq!(said["source"]["records"], 3);
    }

    #[test]
    fn an_empty_answer_keeps_its_columns_and_a_long_one_its_rows() {
        let empty = read(&mut sample::empty());
        assert_eq!(empty.metadata().file_metadata().num_rows(), 0);
        assert_eq!(empty.schema().field(0).name(), "input_bucket");
        assert_eq!(read(&mut sample::long(12_345)).metadata().file_metadata().num_rows(), 12_345);
    }
}
