//! `fullest(times, amounts, span_ms)` and `fullest_minute(times, amounts)`: the stretch of time with the largest amount, as a
//! list `[amount, nanoseconds]`. Both lists are in the same order, whichever. The stretches of `fullest` are those of that length that end with one of
//! the times, which is given; those of `fullest_minute` are the minutes of the clock, whose start is given. Of equal ones the
//! first counts; null without times. An amount that is null counts as nothing.

use std::sync::Arc;

use datafusion::arrow::array::builder::{Int64Builder, ListBuilder};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Int64Type, TimestampNanosecondType};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::argument::list_of;
use crate::record::Kind;

pub(super) const MINUTE: i64 = 60_000_000_000;

/// Either function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Fullest {
    signature: Signature,
    by_the_clock: bool,
}

impl Fullest {
    pub fn span() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable), by_the_clock: false }
    }

    pub fn minute() -> Self {
        Self { by_the_clock: true, ..Self::span() }
    }
}

impl ScalarUDFImpl for Fullest {
    fn name(&self) -> &str {
        if self.by_the_clock { "fullest_minute" } else { "fullest" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let (times, amounts) = (list_of(Kind::Time.data_type()), list_of(DataType::Int64));
        match (arg_types, self.by_the_clock) {
            ([_, _], true) => Ok(vec![times, amounts]),
            ([_, _, _], false) => Ok(vec![times, amounts, DataType::Int64]),
            _ => plan_err!("{} takes times and amounts, and fullest a length in milliseconds", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(list_of(DataType::Int64))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (times, amounts) = (args.args[0].to_array(args.number_rows)?, args.args[1].to_array(args.number_rows)?);
        let span = match args.args.get(2) {
            None => None,
            Some(ColumnarValue::Scalar(ScalarValue::Int64(Some(ms)))) if *ms > 0 => Some(ms.saturating_mul(1_000_000)),
            Some(_) => return plan_err!("the length of a stretch must be a constant above zero"),
        };
        let mut found = ListBuilder::new(Int64Builder::new());
        for (times, amounts) in times.as_list::<i32>().iter().zip(amounts.as_list::<i32>().iter()) {
            let fullest = times.zip(amounts).and_then(|(times, amounts)| {
                let times = times.as_primitive::<TimestampNanosecondType>();
                let amounts = amounts.as_primitive::<Int64Type>();
                let amounts = (0..times.len()).map(|at| if amounts.is_valid(at) { amounts.value(at) } else { 0 });
                let mut series: Vec<(i64, i64)> = times.values().iter().copied().zip(amounts).collect();
                series.sort_unstable_by_key(|(time, _)| *time);
                match span {
                    Some(span) => fullest(&series, span),
                    None => fullest_minute(&series),
                }
            });
            if let Some((amount, at)) = fullest {
                found.values().append_value(amount);
                found.values().append_value(at);
            }
            found.append(fullest.is_some());
        }
        Ok(ColumnarValue::Array(Arc::new(found.finish())))
    }
}

/// Amount and end of the fullest (t - span, t] of sorted times.
fn fullest(series: &[(i64, i64)], span: i64) -> Option<(i64, i64)> {
    let (mut first, mut sum, mut best) = (0, 0i64, None);
    for (number, &(time, amount)) in series.iter().enumerate() {
        sum = sum.saturating_add(amount);
        while series[first].0 <= time.saturating_sub(span) {
            sum = sum.saturating_sub(series[first].1);
            first += 1;
        }
        // what comes at the same instant belongs to the same stretch
        let is_last = series.get(number + 1).is_none_or(|next| next.0 > time);
        if is_last && best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, time));
        }
    }
    best
}

/// Amount and start of the fullest minute of sorted times.
fn fullest_minute(series: &[(i64, i64)]) -> Option<(i64, i64)> {
    let mut best: Option<(i64, i64)> = None;
    for minute in series.chunk_by(|one, next| one.0.div_euclid(MINUTE) == next.0.div_euclid(MINUTE)) {
        let sum = minute.iter().fold(0i64, |sum, (_, amount)| sum.saturating_add(*amount));
        if best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, minute[0].0.div_euclid(MINUTE) * MINUTE));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fullest_stretch_is_the_one_that_a_slow_search_finds(
            mut series in prop::collection::vec((0_i64..60, 0_i64..9), 1..40), span in 1_i64..30,
        ) {
            series.sort();
            let sum = |end: i64| series.iter().filter(|(time, _)| *time > end - span && *time <= end).map(|(_, n)| n).sum::<i64>();
            let slowly = series.iter().map(|(time, _)| (sum(*time), -time)).max().map(|(sum, end)| (sum, -end));
            prop_assert_eq!(fullest(&series, span), slowly);
        }
    }

    #[test]
    fn minutes_are_those_of_the_clock_also_before_the_epoch() {
        let series = [(-MINUTE - 1, 1), (-1, 2), (MINUTE - 1, 1), (MINUTE, 3), (MINUTE + 5, 1)];
        assert_eq!(fullest_minute(&series), Some((4, MINUTE)));
        assert_eq!(fullest_minute(&series[..3]), Some((2, -MINUTE)));
        assert_eq!((fullest_minute(&[]), fullest(&[], 5)), (None, None));
    }
}
