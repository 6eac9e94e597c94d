//! `local_window(time, every_ms, offset_ms, zone)`, `local_window_end(..)`: start and end of the window that holds an
//! instant.
//!
//! Windows shorter than a day are counted from local midnight, so that a day that is an hour longer or shorter ends with a
//! window of another length and the next begins at midnight again. Windows of whole days are counted from a Monday.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use jiff::ToSpan;
use jiff::civil::date;
use jiff::tz::TimeZone;

use super::local_time::{edges, zone, zoned};
use crate::record::Kind;

const DAY_MS: i64 = 86_400_000;
const MS: i64 = 1_000_000;

/// Either function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LocalWindow {
    signature: Signature,
    edge: Edge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Edge {
    Start,
    End,
}

impl LocalWindow {
    pub fn start() -> Self {
        Self::new(Edge::Start)
    }

    pub fn end() -> Self {
        Self::new(Edge::End)
    }

    fn new(edge: Edge) -> Self {
        let arguments = vec![Kind::Time.data_type(), DataType::Int64, DataType::Int64, DataType::Utf8];
        Self { signature: Signature::new(TypeSignature::Exact(arguments), Volatility::Immutable), edge }
    }
}

impl ScalarUDFImpl for LocalWindow {
    fn name(&self) -> &str {
        match self.edge {
            Edge::Start => "local_window",
            Edge::End => "local_window_end",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(Kind::Time.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        let (every, offset, zone) = (whole(&args.args[1])?, whole(&args.args[2])?, zone(&args.args[3])?);
        if every < 1 || (every >= DAY_MS && every % DAY_MS != 0) || (every < DAY_MS && DAY_MS % every != 0) {
            return plan_err!("windows must divide a day, or be whole days: 5m, 1h, 6h, 1d, 7d");
        }
        let edge = |(start, end)| if self.edge == Edge::Start { start } else { end };
        edges(&times, |time| window(time, every, offset, &zone), edge)
    }
}

/// Start and end (nanoseconds) of the window that holds `time`.
fn window(time: i64, every: i64, offset: i64, zone: &TimeZone) -> Result<(i64, i64)> {
    let shifted = zoned(time.saturating_sub(offset.saturating_mul(MS)), zone)?;
    let midnight = |days: i64| -> Result<i64, jiff::Error> {
        let day = shifted.date().checked_add(days.days())?.to_zoned_datetime(zone.clone())?;
        Ok(day.timestamp().as_nanosecond() as i64 + offset * MS)
    };
    let cut = || -> Result<(i64, i64), jiff::Error> {
        if every >= DAY_MS {
            let monday = date(1970, 1, 5);
            let days = i64::from(monday.until(shifted.date())?.get_days());
            let into = days.rem_euclid(every / DAY_MS);
            return Ok((midnight(-into)?, midnight(every / DAY_MS - into)?));
        }
        let (today, tomorrow) = (midnight(0)?, midnight(1)?);
        let start = today + (time - today) / (every * MS) * (every * MS);
        Ok((start, (start + every * MS).min(tomorrow)))
    };
    cut().or_else(|error| exec_err!("a time is outside the calendar: {error}"))
}

fn whole(argument: &ColumnarValue) -> Result<i64> {
    match argument {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(number))) => Ok(*number),
        _ => plan_err!("the length and the offset of windows must be constants"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn start(time: &str, every: i64, offset: i64, zone: &str) -> String {
        let time: Timestamp = time.parse().unwrap();
        let zone = TimeZone::get(zone).unwrap();
        let (start, end) = window(time.as_nanosecond() as i64, every, offset, &zone).unwrap();
        let shown = |time: i64| Timestamp::from_nanosecond(time.into()).unwrap().to_string();
        format!("{} {}", shown(start), (end - start) / (60_000 * MS))
    }

    #[test]
    fn windows_are_counted_from_local_midnight() {
        assert_eq!(start("2025-06-01T10:07:00Z", 300_000, 0, "UTC"), "2025-06-01T10:05:00Z 5");
        assert_eq!(start("2025-06-01T10:07:00Z", 300_000, 180_000, "UTC"), "2025-06-01T10:03:00Z 5");
        assert_eq!(start("2025-06-01T00:01:00Z", 300_000, 180_000, "UTC"), "2025-05-31T23:58:00Z 5");
        assert_eq!(start("2025-06-01T10:07:00Z", 3_600_000, 0, "Asia/Kolkata"), "2025-06-01T09:30:00Z 60");
    }

    #[test]
    fn a_longer_day_ends_with_a_window_of_its_own_and_the_next_begins_at_midnight() {
        // 2026-10-25 has 25 hours in Berlin
        assert_eq!(start("2026-10-25T22:30:00Z", 21_600_000, 0, "Europe/Berlin"), "2026-10-25T22:00:00Z 60");
        assert_eq!(start("2026-10-25T23:30:00Z", 21_600_000, 0, "Europe/Berlin"), "2026-10-25T23:00:00Z 360");
    }

    #[test]
    fn windows_of_days_are_local_days_and_weeks_begin_on_monday() {
        assert_eq!(start("2026-03-29T12:00:00Z", DAY_MS, 0, "Europe/Berlin"), "2026-03-28T23:00:00Z 1380");
        assert_eq!(start("2025-06-05T12:00:00Z", 7 * DAY_MS, 0, "UTC"), "2025-06-02T00:00:00Z 10080");
    }
}
