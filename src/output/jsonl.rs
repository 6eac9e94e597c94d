//! The rows alone, one JSON object a line: for programs that read a long answer as it comes.

use std::io::Write;

use crate::report::Report;

use super::object::Objects;

pub fn write<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let objects = Objects::new(report.columns.iter().map(|column| column.name.as_str()), &report.zone);
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            objects.write(&batch, row, out)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::output::{Format, sample};

    #[test]
    fn each_line_is_the_row_that_json_has() {
        let json = sample::text(&mut sample::every_type(), Format::Json);
        let jsonl = sample::text(&mut sample::every_type(), Format::Jsonl);
        assert_eq!(jsonl.lines().count(), 2);
        for line in jsonl.lines() {
            assert!(json.contains(&format!("\n    {line}")), "{line}");
        }
    }

    #[test]
    fn an_empty_answer_is_no_line_and_a_long_one_a_line_a_row() {
        assert_eq!(sample::text(&mut sample::empty(), Format::Jsonl), "");
        assert_eq!(sample::text(&mut sample::long(12_345), Format::Jsonl).lines().count(), 12_345);
    }
}
