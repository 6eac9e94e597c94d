//! Comma-separated values (RFC 4180, LF line ends) for spreadsheets and scripts.
//!
//! A spreadsheet runs a text that begins like a formula, and such texts come from the outside: a tenant may call
//! itself `=HYPERLINK(...)`. A leading apostrophe makes it a text again. Numbers stay as they are.

use std::io::Write;

use crate::report::Report;

use super::cell::Cell;

pub fn write<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let mut field = Vec::new();
    for column in &report.columns {
        field.clear();
        guard(&column.name, &mut field);
        field.extend_from_slice(column.name.as_bytes());
        csv.write_field(&field)?;
    }
    csv.write_record(None::<&[u8]>)?;
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            for values in batch.columns() {
                let cell = Cell::at(values, row);
                field.clear();
                if let Cell::Text(text) = &cell {
                    guard(text, &mut field);
                }
                cell.write_plain(&mut field, &report.zone)?;
                csv.write_field(&field)?;
            }
            csv.write_record(None::<&[u8]>)?;
        }
    }
    Ok(csv.flush()?)
}

fn guard(text: &str, field: &mut Vec<u8>) {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        field.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Format, sample};

    #[test]
    fn texts_are_quoted_and_guarded_and_unknown_is_empty() {
        let expected = "tenant,pool,requests,http_status,p95_ms,share,cost,hour,stream,tags\n\
            \"'=日本|\x1b[31m\n_x_\",\"a,\"\"b\"\"\",1234567,1200,-9436.927823,0.9997,1234.50,2025-06-01T08:00:00+08:00,true,\"[\"\"a\"\",null]\"\n\
            ,,,,,,,,,\n";
        assert_eq!(sample::text(&mut sample::every_type(), Format::Csv), expected);
    }

    #[test]
    fn only_texts_that_a_spreadsheet_would_run_are_guarded() {
        for (text, guarded) in [("=1+1", true), ("+86", true), ("-1", true), ("@x", true), ("\tx", true), ("\rx", true)]
            .into_iter()
            .chain([("a=1", false), ("", false), ("日本", false)])
        {
            let mut field = Vec::new();
            guard(text, &mut field);
            assert_eq!(!field.is_empty(), guarded, "{text:?}");
        }
    }

    #[test]
    fn an_empty_answer_is_its_header_and_a_long_one_is_whole() {
        assert_eq!(sample::text(&mut sample::empty(), Format::Csv), "input_bucket\n");
        assert_eq!(sample::text(&mut sample::long(12_345), Format::Csv).lines().count(), 12_346);
    }
}
