//! Columns that say nothing in this answer: left out where people read, so that the others can be seen.
//!
//! Only columns that a report calls details, and only where each of their values is 0 or not known. Formats for machines have
//! all columns always.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};

use crate::report::{Note, Report, Rows};

/// Takes the details that say nothing out of a report.
pub fn drop_blanks(report: &mut Report) -> anyhow::Result<()> {
    let schema = report.rows.schema().clone();
    let details: Vec<usize> = report.details.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    if details.is_empty() || report.rows.is_empty() {
        return Ok(());
    }
    let batches = report.rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?;
    let is_blank = |column: &usize| batches.iter().all(|batch| says_nothing(batch.column(*column)));
    let blank: Vec<usize> = details.into_iter().filter(is_blank).collect();
    if blank.is_empty() {
        return Ok(());
    }
    let kept: Vec<usize> = (0..schema.fields().len()).filter(|column| !blank.contains(column)).collect();
    let mut rows = Rows::new(schema.project(&kept)?.into());
    for batch in &batches {
        rows.push(batch.project(&kept)?)?;
    }
    let names: Vec<&str> = blank.iter().map(|column| schema.field(*column).name().as_str()).collect();
    let text = format!("not shown, as they are 0 or unknown everywhere: {}", names.join(", "));
    if let Some(totals) = &report.totals {
        let of_kept = |(index, field): (usize, &std::sync::Arc<datafusion::arrow::datatypes::Field>)| {
            (!names.contains(&field.name().as_str())).then_some(index)
        };
        let kept: Vec<usize> = totals.schema().fields().iter().enumerate().filter_map(of_kept).collect();
        let totals: RecordBatch = totals.project(&kept)?;
        report.totals = Some(totals);
    }
    report.columns = kept.iter().map(|column| report.columns[*column].clone()).collect();
    report.rows = rows;
    report.notes.push(Note { code: "blank_columns".to_owned(), text, count: None });
    Ok(())
}

fn says_nothing(values: &ArrayRef) -> bool {
    match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().iter().flatten().all(|value| value == 0),
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().flatten().all(|value| value == 0.0),
        DataType::Decimal128(_, _) => values.as_primitive::<Decimal128Type>().iter().flatten().all(|value| value == 0),
        _ => values.null_count() == values.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Int64Array;

    use super::*;

    #[test]
    fn a_detail_of_which_nothing_is_known_is_left_out_and_named() {
        let counts = |values: [Option<i64>; 2]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("requests", counts([Some(0), Some(0)]), true),
            ("unpriced", counts([Some(0), None]), true),
            ("free", counts([Some(0), Some(1)]), true),
        ])
        .unwrap();
        let meanings = [("requests", "", ""), ("unpriced", "", ""), ("free", "", "")];
        let mut report = Report::of_rows("r", "R", rows, &meanings).unwrap();
        report.details = vec!["unpriced".to_owned(), "free".to_owned()];
        drop_blanks(&mut report).unwrap();
        let names: Vec<&str> = report.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["requests", "free"]);
        assert_eq!(report.rows.schema().fields().len(), 2);
        assert!(report.notes[0].text.ends_with(": unpriced"));
    }
}
