//! Values of a file's own types as values of canonical kinds, a column at a time; what does not fit is null and counted.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, PrimitiveArray,
    StringViewArray, TimestampNanosecondBuilder, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType,
};
use datafusion::arrow::error::ArrowError;
use jiff::tz::TimeZone;

use crate::record::Kind;
use crate::record::number::{self, Unfit};
use crate::record::timestamp;
use crate::record::unit::Unit;
use crate::source::counts::Counts;
use crate::source::row::{flag_word, is_missing_word};

/// A file's column as a column of `kind`; what does not fit is null and counted under `column`.
pub(super) fn convert(
    array: &ArrayRef,
    kind: Kind,
    unit: Option<Unit>,
    zone: &TimeZone,
    column: &str,
    counts: &mut Counts,
) -> Result<ArrayRef, ArrowError> {
    let mut refused = Refused { column, counts };
    let plain = plain(array)?;
    refused.count(Unfit::WrongType, plain.null_count() - array.logical_null_count());
    let array = &plain;
    match kind {
        Kind::Text | Kind::Id => to_text(array, kind, &mut refused),
        Kind::Count => not_negative::<Int64Type>(to_count(array, &mut refused)?, &mut refused),
        Kind::Number => to_float(array, None, &mut refused),
        Kind::Duration => not_negative::<Float64Type>(to_float(array, unit, &mut refused)?, &mut refused),
        Kind::Time => to_time(array, unit, zone, &mut refused),
        Kind::Flag => to_flag(array, &mut refused),
        Kind::Money => to_money(array, &mut refused),
    }
}

/// Values below zero stand for what is not known.
fn not_negative<T: ArrowPrimitiveType>(array: ArrayRef, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError>
where
    T::Native: PartialOrd + Default,
{
    let values = array.as_primitive::<T>();
    let is_negative = |value: T::Native| value < T::Native::default();
    if !values.values().iter().any(|value| is_negative(*value)) {
        return Ok(array);
    }
    let kept: PrimitiveArray<T> = values.iter().map(|value| value.filter(|value| !is_negative(*value))).collect();
    refused.count(Unfit::OutOfRange, kept.null_count() - array.null_count());
    Ok(Arc::new(kept))
}

/// Where values that do not fit are counted.
struct Refused<'a> {
    column: &'a str,
    counts: &'a mut Counts,
}

impl Refused<'_> {
    fn count(&mut self, why: Unfit, count: usize) {
        if count > 0 {
            self.counts.unfit(self.column, why, count as u64);
        }
    }

    fn value<T>(&mut self, read: Result<T, Unfit>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(why) => {
                self.count(why, 1);
                None
            }
        }
    }

    /// A column of a type that no value of `kind` can come from.
    fn all(&mut self, array: &ArrayRef, kind: Kind) -> ArrayRef {
        self.count(Unfit::WrongType, array.len() - array.null_count());
        new_null_array(&kind.data_type(), array.len())
    }
}

/// An array without a dictionary, and as text where the file says only that there are bytes; other bytes are null.
pub(super) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => plain(&cast(array, values)?),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => cast(array, &DataType::Utf8),
        _ => Ok(array.clone()),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(super) fn texts(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Utf8View => Ok(array.clone()),
        data_type if is_text(data_type) => cast(array, &DataType::Utf8View),
        _ => cast(&cast(array, &DataType::Utf8)?, &DataType::Utf8View),
    }
}

/// A text column with the words for nothing as nulls.
fn words(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let texts = texts(array)?;
    let view = texts.as_string_view();
    if !view.iter().flatten().any(|text| is_missing_word(text.as_bytes())) {
        return Ok(texts);
    }
    let kept: StringViewArray = view.iter().map(|text| text.filter(|text| !is_missing_word(text.as_bytes()))).collect();
    Ok(Arc::new(kept))
}

fn is_list(data_type: &DataType) -> bool {
    let items = match data_type {
        DataType::List(items) | DataType::LargeList(items) | DataType::ListView(items) => items,
        _ => return false,
    };
    items.data_type().is_numeric() || is_text(items.data_type()) || matches!(items.data_type(), DataType::Timestamp(..))
}

/// Lists as JSON would write them.
fn lists(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let lists = cast(array, &DataType::LargeList(Arc::new(Field::new_list_field(DataType::Utf8, true))))?;
    let json = lists.as_list::<i64>().iter().map(|list| {
        let items = list?;
        let item = |text: Option<&str>| match text {
            Some(text) if text.parse::<f64>().is_ok() => text.to_owned(),
            text => serde_json::json!(text).to_string(),
        };
        Some(format!("[{}]", items.as_string::<i32>().iter().map(item).collect::<Vec<_>>().join(",")))
    });
    Ok(Arc::new(json.collect::<StringViewArray>()))
}

fn to_text(array: &ArrayRef, kind: Kind, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError> {
    if is_list(array.data_type()) && kind == Kind::Text {
        return lists(array);
    }
    if array.data_type().is_nested() {
        return Ok(refused.all(array, kind));
    }
    if kind == Kind::Id { words(array) } else { texts(array) }
}

fn to_count(array: &ArrayRef, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError> {
    let data_type = array.data_type();
    if *data_type == DataType::Int64 {
        return Ok(array.clone());
    }
    if data_type.is_integer() {
        let whole = cast(array, &DataType::Int64)?;
        refused.count(Unfit::OutOfRange, whole.null_count() - array.null_count());
        return Ok(whole);
    }
    let mut builder = Int64Builder::with_capacity(array.len());
    if data_type.is_floating() {
        for value in cast(array, &DataType::Float64)?.as_primitive::<Float64Type>() {
            builder.append_option(value.and_then(|value| refused.value(whole_float(value))));
        }
    } else if is_text(data_type) || data_type.is_decimal() {
        for text in words(array)?.as_string_view() {
            builder.append_option(text.and_then(|text| refused.value(number::count(text.as_bytes()))));
        }
    } else {
        return Ok(refused.all(array, Kind::Count));
    }
    Ok(Arc::new(builder.finish()))
}

fn whole_float(value: f64) -> Result<i64, Unfit> {
    if !value.is_finite() {
        Err(Unfit::NotFinite)
    } else if value.fract() != 0.0 {
        Err(Unfit::NotWhole)
    } else if value.abs() >= i64::MAX as f64 {
        Err(Unfit::OutOfRange)
    } else {
        Ok(value as i64)
    }
}

fn to_float(array: &ArrayRef, unit: Option<Unit>, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError> {
    let data_type = array.data_type();
    let floats = if is_text(data_type) {
        let mut builder = Float64Builder::with_capacity(array.len());
        for text in words(array)?.as_string_view() {
            builder.append_option(text.and_then(|text| refused.value(number::float(text.as_bytes()))));
        }
        Arc::new(builder.finish())
    } else if data_type.is_numeric() {
        cast(array, &DataType::Float64)?
    } else {
        return Ok(refused.all(array, Kind::Number));
    };
    let values = floats.as_primitive::<Float64Type>();
    let finite = values.values().iter().all(|value| value.is_finite());
    let scale = unit.unwrap_or(Unit::Milliseconds);
    if finite && scale == Unit::Milliseconds {
        return Ok(floats);
    }
    let mut builder = Float64Builder::with_capacity(array.len());
    for value in values {
        let value =
            value.and_then(|value| refused.value(if value.is_finite() { Ok(value) } else { Err(Unfit::NotFinite) }));
        builder.append_option(value.map(|value| scale.to_ms(value)));
    }
    Ok(Arc::new(builder.finish()))
}

fn to_time(
    array: &ArrayRef,
    unit: Option<Unit>,
    zone: &TimeZone,
    refused: &mut Refused<'_>,
) -> Result<ArrayRef, ArrowError> {
    let target = Kind::Time.data_type();
    let assumed = |refused: &mut Refused<'_>, count: usize| refused.counts.zone_assumed += count as u64;
    let mut builder = TimestampNanosecondBuilder::with_capacity(array.len()).with_data_type(target.clone());
    match array.data_type() {
        DataType::Timestamp(_, Some(_)) => {
            let times = cast(array, &target)?;
            refused.count(Unfit::OutOfRange, times.null_count() - array.null_count());
            return Ok(times);
        }
        DataType::Timestamp(_, None) => {
            assumed(refused, array.len() - array.null_count());
            let wall = cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
            refused.count(Unfit::OutOfRange, wall.null_count() - array.null_count());
            if *zone == TimeZone::UTC {
                return cast(&wall, &target);
            }
            for nanoseconds in wall.as_primitive::<TimestampNanosecondType>() {
                builder
                    .append_option(nanoseconds.and_then(|wall| refused.value(timestamp::from_wall_clock(wall, zone))));
            }
        }
        data_type if is_text(data_type) => {
            for text in words(array)?.as_string_view() {
                let instant = text.and_then(|text| refused.value(timestamp::from_text(text.as_bytes(), zone, unit)));
                assumed(refused, usize::from(instant.is_some_and(|instant| instant.zone_assumed)));
                builder.append_option(instant.map(|instant| instant.nanoseconds));
            }
        }
        data_type if data_type.is_numeric() => {
            for text in texts(array)?.as_string_view() {
                let instant = text.and_then(|text| refused.value(timestamp::from_epoch(text.as_bytes(), unit)));
                builder.append_option(instant.map(|instant| instant.nanoseconds));
            }
        }
        _ => return Ok(refused.all(array, Kind::Time)),
    }
    Ok(Arc::new(builder.finish()))
}

fn to_flag(array: &ArrayRef, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError> {
    let data_type = array.data_type();
    if *data_type == DataType::Boolean {
        return Ok(array.clone());
    }
    if !is_text(data_type) && !data_type.is_numeric() {
        return Ok(refused.all(array, Kind::Flag));
    }
    let mut builder = BooleanBuilder::with_capacity(array.len());
    for text in words(array)?.as_string_view() {
        let flag = text.and_then(|text| refused.value(flag_word(text.as_bytes()).ok_or(Unfit::WrongType)));
        builder.append_option(flag);
    }
    Ok(Arc::new(builder.finish()))
}

fn to_money(array: &ArrayRef, refused: &mut Refused<'_>) -> Result<ArrayRef, ArrowError> {
    let data_type = array.data_type();
    if !is_text(data_type) && !data_type.is_numeric() {
        return Ok(refused.all(array, Kind::Money));
    }
    let mut builder = Decimal128Builder::with_capacity(array.len()).with_data_type(Kind::Money.data_type());
    if data_type.is_floating() {
        // A float carries 15 digits; what stands behind the twelfth decimal of a price is its noise.
        for value in cast(array, &DataType::Float64)?.as_primitive::<Float64Type>() {
            builder.append_option(
                value.and_then(|value| refused.value(number::scaled(format!("{value:.12}").as_bytes(), 12))),
            );
        }
    } else {
        for text in words(array)?.as_string_view() {
            builder.append_option(text.and_then(|text| refused.value(number::scaled(text.as_bytes(), 12))));
        }
    }
    Ok(Arc::new(builder.finish()))
}
