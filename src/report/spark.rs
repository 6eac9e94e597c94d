//! A column over time as a line of eight heights, for people: one line for each group of rows.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};

use super::{ReportColumn, Rows};

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Longer lines are drawn with the largest of several neighbours.
const MOST_SIGNS: usize = 80;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Spark {
    /// The place of the column in the report.
    pub column: usize,
    /// What the rows have in common, as the values of their dimensions; empty for all rows.
    pub group: String,
    pub values: Vec<Option<f64>>,
}

impl Spark {
    /// The lines of the columns whose names fit `patterns`, for the groups of rows with the same `labels`.
    ///
    /// # Errors
    /// The rows cannot be read back.
    pub fn all(
        is_drawn: impl Fn(&str) -> bool,
        labels: &[usize],
        columns: &[ReportColumn],
        rows: &mut Rows,
    ) -> anyhow::Result<Vec<Self>> {
        let drawn: Vec<usize> = (0..columns.len()).filter(|&column| is_drawn(&columns[column].name)).collect();
        if drawn.is_empty() || rows.len() < 2 {
            return Ok(Vec::new());
        }
        let mut groups: BTreeMap<String, Vec<Vec<Option<f64>>>> = BTreeMap::new();
        for batch in rows.batches()? {
            let batch = batch?;
            let texts = labels.iter().map(|&label| cast(batch.column(label), &DataType::Utf8));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            let numbers = drawn.iter().map(|&column| cast(batch.column(column), &DataType::Float64));
            let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let words = texts.iter().map(|text| {
                    let text = text.as_string::<i32>();
                    if text.is_valid(row) { text.value(row) } else { "unknown" }
                });
                let lines =
                    groups.entry(words.collect::<Vec<_>>().join(", ")).or_insert_with(|| vec![Vec::new(); drawn.len()]);
                for (line, numbers) in lines.iter_mut().zip(&numbers) {
                    let number = numbers.as_primitive::<Float64Type>();
                    line.push(number.is_valid(row).then(|| number.value(row)));
                }
            }
        }
        let lines = groups.into_iter().flat_map(|(group, lines)| {
            let of_group = drawn.iter().copied().zip(lines);
            of_group.map(move |(column, values)| Spark { column, group: group.clone(), values })
        });
        Ok(lines.filter(|spark| spark.values.len() > 1 && spark.values.iter().any(Option::is_some)).collect())
    }

    /// The line; a blank where nothing is known.
    pub fn drawn(&self) -> String {
        let several = self.values.len().div_ceil(MOST_SIGNS);
        let largest = |chunk: &[Option<f64>]| chunk.iter().flatten().copied().reduce(f64::max);
        let values: Vec<Option<f64>> = self.values.chunks(several).map(largest).collect();
        let (least, most) = self.range().unwrap_or_default();
        let height = |value: f64| {
            let part = if most > least { (value - least) / (most - least) } else { 0.0 };
            HEIGHTS[((part * HEIGHTS.len() as f64) as usize).min(HEIGHTS.len() - 1)]
        };
        values.into_iter().map(|value| value.map_or(' ', height)).collect()
    }

    /// The least and the largest value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let known = || self.values.iter().flatten().copied();
        Some((known().reduce(f64::min)?, known().reduce(f64::max)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spark(values: Vec<Option<f64>>) -> String {
        Spark { column: 0, group: String::new(), values }.drawn()
    }

    #[test]
    fn a_line_rises_from_the_least_to_the_largest_and_breaks_where_nothing_is_known() {
        assert_eq!(spark((0..8).map(|n| Some(f64::from(n))).collect()), "▁▂▃▄▅▆▇█");
        assert_eq!(spark(vec![Some(1.0), None, Some(3.0)]), "▁ █");
        assert_eq!(spark(vec![Some(2.0), Some(2.0)]), "▁▁");
    }

    #[test]
    fn a_long_line_keeps_its_peaks() {
        let mut values = vec![Some(0.0); 1000];
        values[517] = Some(9.0);
        let drawn = spark(values);
        assert!(drawn.chars().count() <= MOST_SIGNS);
        assert_eq!(drawn.chars().filter(|sign| *sign == '█').count(), 1);
    }
}
