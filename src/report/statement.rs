//! One report for each value of the column that says whom its rows concern: statements to be handed to those whom they concern.

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::DataType;

use super::answer::totals_like;
use super::{Report, Rows};

/// The rows of one value, under the name of that value.
#[derive(Debug)]
pub struct Statement {
    /// None where the value is not known.
    pub of: Option<String>,
    pub report: Report,
}

impl Report {
    /// The report taken apart by whom its rows concern, in their order. Notes are about all of them and stay with the whole.
    ///
    /// # Errors
    /// The rows cannot be read back.
    pub fn statements(&mut self) -> anyhow::Result<Vec<Statement>> {
        let mut statements: Vec<Statement> = Vec::new();
        let schema = self.rows.schema().clone();
        let batches = self.rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?;
        for batch in batches.iter().filter(|batch| batch.num_columns() > self.concerns) {
            let values: ArrayRef = cast(batch.column(self.concerns), &DataType::Utf8)?;
            let values = values.as_string::<i32>();
            let mut done: Vec<Option<&str>> = Vec::new();
            for value in values {
                if done.contains(&value) {
                    continue;
                }
                done.push(value);
                let kept: BooleanArray = values.iter().map(|other| Some(other == value)).collect();
                let rows = filter_record_batch(batch, &kept)?;
                let position = statements.iter().position(|statement| statement.of.as_deref() == value);
                let position = position.unwrap_or_else(|| {
                    let title = format!("{}: {}", self.title, value.unwrap_or("unknown"));
                    let report = Report {
                        name: self.name.clone(),
                        title,
                        parameters: self.parameters.clone(),
                        source: self.source.clone(),
                        columns: self.columns.clone(),
                        rows: Rows::new(schema.clone()),
                        totals: None,
                        sparks: Vec::new(),
                        lives: Vec::new(),
                        nothing_found: false,
                        heat: None,
                        notes: Vec::new(),
                        reads_logs: self.reads_logs,
                        details: self.details.clone(),
                        concerns: self.concerns,
                        zone: self.zone.clone(),
                    };
                    statements.push(Statement { of: value.map(str::to_owned), report });
                    statements.len() - 1
                });
                statements[position].report.rows.push(rows)?;
            }
        }
        if let Some(totals) = &self.totals {
            for statement in &mut statements {
                statement.report.totals = totals_like(totals, &mut statement.report.rows)?;
            }
        }
        Ok(statements)
    }
}
