//! `local_period(time, period, zone, week_start)` and `local_part(time, part, zone)`: calendar arithmetic in the report's zone.
//!
//! Local hours, days, weeks and months are cut here, by jiff, into UTC instants: SQL's own date functions drift across
//! daylight-saving changes and disagree for offsets that are no whole hours.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Builder, TimestampNanosecondBuilder};
use datafusion::arrow::datatypes::{DataType, TimestampNanosecondType};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, ZonedDateTime};

use crate::record::Kind;

/// The local start of the minute, hour, day, week or month that holds an instant.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LocalPeriod {
    signature: Signature,
}

/// The hour (0 to 23), the weekday (0 is the start of the week) or the date (days since 1970) of an instant.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LocalPart {
    signature: Signature,
}

fn signature(texts: usize) -> Signature {
    let mut arguments = vec![Kind::Time.data_type()];
    arguments.extend(std::iter::repeat_n(DataType::Utf8, texts));
    Signature::new(TypeSignature::Exact(arguments), Volatility::Immutable)
}

impl Default for LocalPeriod {
    fn default() -> Self {
        Self { signature: signature(3) }
    }
}

impl Default for LocalPart {
    fn default() -> Self {
        Self { signature: signature(3) }
    }
}

impl ScalarUDFImpl for LocalPeriod {
    fn name(&self) -> &str {
        "local_period"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(Kind::Time.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        let (period, zone, week_start) = (text(&args.args[1])?, zone(&args.args[2])?, weekday(&args.args[3])?);
        edges(&times, |time| bounds(time, &period, &zone, week_start), |(start, _)| start)
    }
}

impl ScalarUDFImpl for LocalPart {
    fn name(&self) -> &str {
        "local_part"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        let (part, zone, week_start) = (text(&args.args[1])?, zone(&args.args[2])?, weekday(&args.args[3])?);
        let mut builder = Int64Builder::with_capacity(times.len());
        for time in times.as_primitive::<TimestampNanosecondType>() {
            let local = time.map(|time| zoned(time, &zone)).transpose()?;
            builder.append_option(local.map(|local| match part.as_str() {
                "hour" => i64::from(local.hour()),
                // days since 1970-01-01
                "date" => local.date().since(jiff::civil::date(1970, 1, 1)).map_or(0, |span| span.get_days().into()),
                _ => i64::from(local.weekday().since(week_start)),
            }));
        }
        Ok(ColumnarValue::Array(Arc::new(builder.finish())))
    }
}

/// For each time an edge of the stretch that holds it; `bounds` gives its start and end in nanoseconds.
pub(super) fn edges(
    times: &ArrayRef,
    bounds: impl Fn(i64) -> Result<(i64, i64)>,
    edge: impl Fn((i64, i64)) -> i64,
) -> Result<ColumnarValue> {
    let mut builder = TimestampNanosecondBuilder::with_capacity(times.len()).with_data_type(Kind::Time.data_type());
    let mut last: Option<(i64, i64)> = None;
    for time in times.as_primitive::<TimestampNanosecondType>() {
        let Some(time) = time else {
            builder.append_null();
            continue;
        };
        // logs are nearly in order: most times fall into the stretch of the one before
        let stretch = match last {
            Some((start, end)) if (start..end).contains(&time) => (start, end),
            _ => *last.insert(bounds(time)?),
        };
        builder.append_value(edge(stretch));
    }
    Ok(ColumnarValue::Array(Arc::new(builder.finish())))
}

/// Start and end (nanoseconds) of the local period that holds `time`.
fn bounds(time: i64, period: &str, zone: &TimeZone, week_start: Weekday) -> Result<(i64, i64)> {
    let local = zoned(time, zone)?;
    let of = |zoned: ZonedDateTime| zoned.timestamp().as_nanosecond() as i64;
    // A period of the clock is cut in elapsed time: in a fold an hour comes twice and stays two hours.
    let clock = |unit: Unit, length: i64| {
        let start = local.round(jiff::ZonedDateTimeRound::new().smallest(unit).mode(jiff::RoundMode::Floor));
        start.map(|start| (of(start.clone()), of(start).saturating_add(length)))
    };
    let day = |days_back: i64| {
        local.date().checked_sub(days_back.days()).and_then(|date| date.to_zoned_datetime(zone.clone()))
    };
    let read = match period {
        "minute" => clock(Unit::Minute, 60_000_000_000),
        "hour" => clock(Unit::Hour, 3_600_000_000_000),
        "day" => day(0)
            .and_then(|start| Ok((of(start.clone()), of(start.date().tomorrow()?.to_zoned_datetime(zone.clone())?)))),
        "week" => day(i64::from(local.weekday().since(week_start))).and_then(|start| {
            Ok((of(start.clone()), of(start.date().checked_add(7.days())?.to_zoned_datetime(zone.clone())?)))
        }),
        "month" => local.date().first_of_month().to_zoned_datetime(zone.clone()).and_then(|start| {
            Ok((of(start.clone()), of(start.date().checked_add(1.month())?.to_zoned_datetime(zone.clone())?)))
        }),
        _ => return plan_err!("`{period}` is no period: use minute, hour, day, week or month"),
    };
    read.or_else(|error| exec_err!("a time is outside the calendar: {error}"))
}

pub(super) fn zoned(time: i64, zone: &TimeZone) -> Result<ZonedDateTime> {
    match Timestamp::from_nanosecond(i128::from(time)) {
        Ok(time) => Ok(time.to_zoned_datetime(zone.clone())),
        Err(error) => exec_err!("a time is outside the calendar: {error}"),
    }
}

fn text(argument: &ColumnarValue) -> Result<String> {
    match argument {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) => Ok(text.clone()),
        _ => plan_err!("the period, the zone and the start of the week must be constants"),
    }
}

pub(super) fn zone(argument: &ColumnarValue) -> Result<TimeZone> {
    let name = text(argument)?;
    match crate::request::Zone::parse(&name) {
        Ok(zone) => Ok(zone.rules),
        Err(error) => plan_err!("{error}"),
    }
}

fn weekday(argument: &ColumnarValue) -> Result<Weekday> {
    match text(argument)?.as_str() {
        "sunday" => Ok(Weekday::Sunday),
        _ => Ok(Weekday::Monday),
    }
}
