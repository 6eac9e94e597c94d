//! `minute_percentiles(times, amounts, [0.5, 0.99])`, `concurrency(starts, ends)`, `concurrency_percentiles(starts, ends, [0.5])`:
//! how much there usually is, and how many requests run at once.
//!
//! The first gives percentiles of the sums of all minutes of the clock from the first time to the last, empty ones too. The
//! second gives the most requests at one instant, and since when, as `[requests, nanoseconds]`. The third weights every number of
//! running requests by how long it lasted. A request without an end, or with one before its start, is left out; one
//! that ends where another starts does not overlap it.

use std::sync::Arc;

use datafusion::arrow::array::builder::{Float64Builder, Int64Builder, ListBuilder};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::argument::list_of;
use super::fullest::MINUTE;
use crate::record::Kind;

/// Minutes that are looked at, at most: nineteen years.
const MOST_MINUTES: i64 = 10_000_000;

/// One of the three functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Load {
    signature: Signature,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Minutes,
    Concurrency,
    ConcurrencyPercentiles,
}

impl Load {
    pub fn all() -> [Self; 3] {
        [What::Minutes, What::Concurrency, What::ConcurrencyPercentiles]
            .map(|what| Self { signature: Signature::user_defined(Volatility::Immutable), what })
    }
}

impl ScalarUDFImpl for Load {
    fn name(&self) -> &str {
        match self.what {
            What::Minutes => "minute_percentiles",
            What::Concurrency => "concurrency",
            What::ConcurrencyPercentiles => "concurrency_percentiles",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let (times, percentiles) = (list_of(Kind::Time.data_type()), list_of(DataType::Float64));
        match (self.what, arg_types) {
            (What::Minutes, [_, _, _]) => Ok(vec![times, list_of(DataType::Int64), percentiles]),
            (What::Concurrency, [_, _]) => Ok(vec![times.clone(), times]),
            (What::ConcurrencyPercentiles, [_, _, _]) => Ok(vec![times.clone(), times, percentiles]),
            _ => plan_err!("{} takes two lists, and for percentiles which", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(list_of(if self.what == What::Concurrency { DataType::Int64 } else { DataType::Float64 }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args.iter().map(|list| list.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let values = |list: usize, row: usize| lists[list].as_list::<i32>().value(row);
        let is_known = |row: usize| lists.iter().all(|list| list.is_valid(row));
        let rows = (0..args.number_rows).map(|row| is_known(row).then_some(row));
        let wanted = |row: usize| values(2, row).as_primitive::<Float64Type>().iter().flatten().collect::<Vec<f64>>();
        let array: ArrayRef = match self.what {
            What::Concurrency => {
                let mut found = ListBuilder::new(Int64Builder::new());
                for row in rows {
                    let peak = row.and_then(|row| peak(&running(&values(0, row), &values(1, row))));
                    if let Some((requests, since)) = peak {
                        found.values().append_slice(&[requests, since]);
                    }
                    found.append(peak.is_some());
                }
                Arc::new(found.finish())
            }
            What::Minutes | What::ConcurrencyPercentiles => {
                let mut found = ListBuilder::new(Float64Builder::new());
                for row in rows {
                    let weighted = row.and_then(|row| match self.what {
                        What::Minutes => minutes(&values(0, row), &values(1, row)),
                        _ => Some(
                            running(&values(0, row), &values(1, row)).iter().map(|step| (step.1, step.2)).collect(),
                        ),
                    });
                    let percentiles = row.zip(weighted).and_then(|(row, weighted)| percentiles(weighted, &wanted(row)));
                    if let Some(percentiles) = &percentiles {
                        found.values().append_slice(percentiles);
                    }
                    found.append(percentiles.is_some());
                }
                Arc::new(found.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

/// The sum of each minute from the first to the last that has a time, each of weight 1.
fn minutes(times: &ArrayRef, amounts: &ArrayRef) -> Option<Vec<(i64, i64)>> {
    let minutes = times.as_primitive::<TimestampNanosecondType>().values().iter().map(|time| time.div_euclid(MINUTE));
    let (first, last) = (minutes.clone().min()?, minutes.clone().max()?);
    let count = usize::try_from(last - first + 1).ok().filter(|_| last - first < MOST_MINUTES)?;
    let mut sums = vec![(0i64, 1); count];
    let amounts = amounts.as_primitive::<Int64Type>();
    for (at, minute) in minutes.enumerate().filter(|(at, _)| amounts.is_valid(*at)) {
        let sum = &mut sums[(minute - first) as usize].0;
        *sum = sum.saturating_add(amounts.value(at));
    }
    Some(sums)
}

/// Since when how many requests ran, and for how long, in nanoseconds.
fn running(starts: &ArrayRef, ends: &ArrayRef) -> Vec<(i64, i64, i64)> {
    let (starts, ends) =
        (starts.as_primitive::<TimestampNanosecondType>(), ends.as_primitive::<TimestampNanosecondType>());
    let spans =
        starts.iter().zip(ends.iter()).filter_map(|(start, end)| start.zip(end)).filter(|(start, end)| end > start);
    let mut changes: Vec<(i64, i64)> = spans.flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    changes.sort_unstable();
    let mut running = 0;
    let mut steps = Vec::with_capacity(changes.len());
    for (number, &(time, change)) in changes.iter().enumerate() {
        running += change;
        match changes.get(number + 1) {
            Some((next, _)) if *next > time => steps.push((time, running, next - time)),
            _ => {}
        }
    }
    steps
}

fn peak(steps: &[(i64, i64, i64)]) -> Option<(i64, i64)> {
    steps
        .iter()
        .map(|&(since, running, _)| (running, since))
        .reduce(|most, next| if next.0 > most.0 { next } else { most })
}

/// The smallest values that so much of the weight does not exceed.
fn percentiles(mut weighted: Vec<(i64, i64)>, wanted: &[f64]) -> Option<Vec<f64>> {
    weighted.sort_unstable();
    let total: i128 = weighted.iter().map(|(_, weight)| i128::from(*weight)).sum();
    let of = |p: f64| {
        let mut reached = 0i128;
        weighted.iter().find(|(_, weight)| {
            reached += i128::from(*weight);
            reached as f64 >= p * total as f64
        })
    };
    wanted.iter().map(|&p| of(p).or(weighted.last()).map(|(value, _)| *value as f64)).collect()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, TimestampNanosecondArray};

    use super::*;

    fn times(times: &[Option<i64>]) -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(times.to_vec()))
    }

    #[test]
    fn empty_minutes_count() {
        let at = times(&[Some(0), Some(1), Some(3 * MINUTE)]);
        let amounts: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(7)]));
        let sums = minutes(&at, &amounts).unwrap();
        assert_eq!(sums, [(5, 1), (0, 1), (0, 1), (7, 1)]);
        assert_eq!(percentiles(sums, &[0.5, 0.75, 0.99]), Some(vec![0.0, 5.0, 7.0]));
        assert_eq!(minutes(&times(&[]), &(Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef)), None);
    }

    #[test]
    fn requests_that_touch_do_not_overlap_and_what_never_ended_is_left_out() {
        let starts = times(&[Some(0), Some(10), Some(5), Some(7), Some(9)]);
        let ends = times(&[Some(10), Some(20), Some(12), None, Some(9)]);
        let steps = running(&starts, &ends);
        assert_eq!(steps, [(0, 1, 5), (5, 2, 5), (10, 2, 2), (12, 1, 8)]);
        assert_eq!(peak(&steps), Some((2, 5)));
        let weighted = steps.iter().map(|step| (step.1, step.2)).collect();
        // one for 13 of 20
        assert_eq!(percentiles(weighted, &[0.5, 0.65, 0.66]), Some(vec![1.0, 1.0, 2.0]));
    }
}
