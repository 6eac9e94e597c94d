//! One value of an answer, taken out of its Arrow array.
//!
//! Every format takes its values from here, so that all agree on what a value is: not-a-number is unknown,
//! money has no exponent, a time carries the offset of the report's zone.

use std::borrow::Cow;
use std::io::{self, Write};

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, StructArray};
use datafusion::arrow::datatypes::*;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;

/// A value as the formats know it.
#[derive(Debug)]
pub enum Cell<'a> {
    /// Unknown: null, not a number, infinite, or a time that no calendar reaches.
    Null,
    Bool(bool),
    Int(i128),
    /// Finite.
    Float(f64),
    /// The exact digits, with a decimal point and never with an exponent.
    Decimal(String),
    Time(Timestamp),
    Text(Cow<'a, str>),
    List(ArrayRef),
    Struct(&'a StructArray, usize),
}

impl<'a> Cell<'a> {
    /// The value at `row`, which must be within the array.
    pub fn at(array: &'a dyn Array, row: usize) -> Self {
        if array.is_null(row) {
            return Cell::Null;
        }
        match array.data_type() {
            DataType::Null => Cell::Null,
            DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
            DataType::Int8 => Cell::Int(native::<Int8Type>(array, row).into()),
            DataType::Int16 => Cell::Int(native::<Int16Type>(array, row).into()),
            DataType::Int32 => Cell::Int(native::<Int32Type>(array, row).into()),
            DataType::Int64 => Cell::Int(native::<Int64Type>(array, row).into()),
            DataType::UInt8 => Cell::Int(native::<UInt8Type>(array, row).into()),
            DataType::UInt16 => Cell::Int(native::<UInt16Type>(array, row).into()),
            DataType::UInt32 => Cell::Int(native::<UInt32Type>(array, row).into()),
            DataType::UInt64 => Cell::Int(native::<UInt64Type>(array, row).into()),
            DataType::Float16 => Cell::float(native::<Float16Type>(array, row).into()),
            DataType::Float32 => Cell::float(widened(native::<Float32Type>(array, row))),
            DataType::Float64 => Cell::float(native::<Float64Type>(array, row)),
            DataType::Decimal32(..) => Cell::decimal(array.as_primitive::<Decimal32Type>().value_as_string(row)),
            DataType::Decimal64(..) => Cell::decimal(array.as_primitive::<Decimal64Type>().value_as_string(row)),
            DataType::Decimal128(..) => Cell::decimal(array.as_primitive::<Decimal128Type>().value_as_string(row)),
            DataType::Decimal256(..) => Cell::decimal(array.as_primitive::<Decimal256Type>().value_as_string(row)),
            DataType::Timestamp(unit, _) => {
                let time = match unit {
                    TimeUnit::Second => Timestamp::from_second(native::<TimestampSecondType>(array, row)),
                    TimeUnit::Millisecond => {
                        Timestamp::from_millisecond(native::<TimestampMillisecondType>(array, row))
                    }
                    TimeUnit::Microsecond => {
                        Timestamp::from_microsecond(native::<TimestampMicrosecondType>(array, row))
                    }
                    TimeUnit::Nanosecond => {
                        Timestamp::from_nanosecond(native::<TimestampNanosecondType>(array, row).into())
                    }
                };
                time.map_or(Cell::Null, Cell::Time)
            }
            DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).into()),
            DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).into()),
            DataType::Utf8View => Cell::Text(array.as_string_view().value(row).into()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                match Cell::at(dictionary.keys(), row) {
                    Cell::Int(key) => Cell::at(dictionary.values(), key as usize),
                    _ => Cell::Null,
                }
            }
            DataType::List(_) => Cell::List(array.as_list::<i32>().value(row)),
            DataType::LargeList(_) => Cell::List(array.as_list::<i64>().value(row)),
            DataType::FixedSizeList(..) => Cell::List(array.as_fixed_size_list().value(row)),
            DataType::Struct(_) => Cell::Struct(array.as_struct(), row),
            // Dates, intervals, bytes and whatever else a user's own SQL may yield have one written form; what has
            // none, such as a day that no calendar reaches, is unknown.
            _ => ArrayFormatter::try_new(array, &FormatOptions::default())
                .and_then(|values| values.value(row).try_to_string())
                .map_or(Cell::Null, |text| Cell::Text(text.into())),
        }
    }

    fn float(value: f64) -> Self {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }

    /// Leaves out the zeros after the second decimal: a scale of twelve is room for prices, not precision.
    fn decimal(mut digits: String) -> Self {
        if let Some(point) = digits.find('.') {
            let kept = digits.trim_end_matches('0').len().max(point + 3);
            digits.truncate(kept);
        }
        Cell::Decimal(digits)
    }

    /// Writes the value as JSON; money and times are strings.
    pub fn write_json<W: Write>(&self, out: &mut W, zone: &TimeZone) -> io::Result<()> {
        match self {
            Cell::Null => out.write_all(b"null"),
            Cell::Bool(value) => write!(out, "{value}"),
            Cell::Int(value) => write!(out, "{value}"),
            Cell::Float(value) => Ok(serde_json::to_writer(out, value)?),
            Cell::Decimal(digits) => write!(out, "\"{digits}\""),
            Cell::Time(time) => write!(out, "\"{}\"", with_offset(*time, zone)),
            Cell::Text(text) => Ok(serde_json::to_writer(out, text)?),
            Cell::List(items) => {
                out.write_all(b"[")?;
                for item in 0..items.len() {
                    if item > 0 {
                        out.write_all(b",")?;
                    }
                    Cell::at(items, item).write_json(out, zone)?;
                }
                out.write_all(b"]")
            }
            Cell::Struct(fields, row) => {
                out.write_all(b"{")?;
                for (index, (name, values)) in fields.column_names().into_iter().zip(fields.columns()).enumerate() {
                    if index > 0 {
                        out.write_all(b",")?;
                    }
                    serde_json::to_writer(&mut *out, name)?;
                    out.write_all(b":")?;
                    Cell::at(values, *row).write_json(out, zone)?;
                }
                out.write_all(b"}")
            }
        }
    }

    /// Writes the value as bare text: nothing for unknown, lists and structs as JSON.
    pub fn write_plain<W: Write>(&self, out: &mut W, zone: &TimeZone) -> io::Result<()> {
        match self {
            Cell::Null => Ok(()),
            Cell::Decimal(digits) => out.write_all(digits.as_bytes()),
            Cell::Time(time) => out.write_all(with_offset(*time, zone).as_bytes()),
            Cell::Text(text) => out.write_all(text.as_bytes()),
            _ => self.write_json(out, zone),
        }
    }
}

fn native<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// The double that prints as the single does: 0.1 stays 0.1, where a cast would show 0.10000000149011612.
fn widened(single: f32) -> f64 {
    single.to_string().parse().unwrap_or(f64::from(single))
}

/// RFC 3339 in `zone` with a numeric offset, for example `2025-06-01T08:00:00+08:00`.
pub fn with_offset(time: Timestamp, zone: &TimeZone) -> String {
    printer(time).timestamp_with_offset_to_string(&time, zone.to_offset(time))
}

/// Shows 0, 3, 6 or 9 digits of a second: as many as the time needs.
pub fn printer(time: Timestamp) -> DateTimePrinter {
    let digits = match time.subsec_nanosecond() {
        0 => 0,
        nanoseconds if nanoseconds % 1_000_000 == 0 => 3,
        nanoseconds if nanoseconds % 1_000 == 0 => 6,
        _ => 9,
    };
    DateTimePrinter::new().precision(Some(digits))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::*;

    use super::*;

    fn json(array: impl Array) -> String {
        let mut out = Vec::new();
        for row in 0..array.len() {
            Cell::at(&array, row).write_json(&mut out, &TimeZone::UTC).unwrap();
            out.push(b' ');
        }
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    #[test]
    fn floats_take_their_shortest_form_and_are_never_nan_or_infinite() {
        let values = vec![Some(0.1 + 0.2), Some(5.0), Some(1e300), Some(f64::NAN), Some(f64::NEG_INFINITY), None];
        assert_eq!(json(Float64Array::from(values)), "0.30000000000000004 5.0 1e+300 null null null");
        assert_eq!(json(Float32Array::from(vec![0.1, f32::NAN])), "0.1 null");
        assert!(matches!(Cell::at(&Float64Array::from(vec![f64::INFINITY]), 0), Cell::Null));
    }

    #[test]
    fn integers_of_any_width_stay_whole() {
        assert_eq!(json(Int64Array::from(vec![i64::MIN, 9007199254740993])), "-9223372036854775808 9007199254740993");
        assert_eq!(json(UInt64Array::from(vec![u64::MAX])), "18446744073709551615");
    }

    #[test]
    fn money_is_exact_and_keeps_two_decimals() {
        let money = |units: Vec<i128>| Decimal128Array::from(units).with_precision_and_scale(38, 12).unwrap();
        let units = vec![12_500_000_000_000, -1, 0, 100_000_000_000_000_000_000_000_000];
        assert_eq!(json(money(units)), r#""12.50" "-0.000000000001" "0.00" "100000000000000.00""#);
        let whole = Decimal128Array::from(vec![1200]).with_precision_and_scale(38, 0).unwrap();
        assert_eq!(json(whole), r#""1200""#);
    }

    #[test]
    fn times_of_any_unit_are_written_in_the_zone_with_the_digits_they_need() {
        let mut out = Vec::new();
        let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
        for array in [
            Arc::new(TimestampSecondArray::from(vec![0])) as ArrayRef,
            Arc::new(TimestampMillisecondArray::from(vec![-1])),
            Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")),
            Arc::new(TimestampNanosecondArray::from(vec![100_000_001])),
            Arc::new(TimestampSecondArray::from(vec![i64::MAX])),
        ] {
            Cell::at(&array, 0).write_plain(&mut out, &shanghai).unwrap();
            out.push(b'\n');
        }
        let expected = "1970-01-01T08:00:00+08:00\n1970-01-01T07:59:59.999+08:00\n1970-01-01T08:00:00.000001+08:00\n\
                        1970-01-01T08:00:00.100000001+08:00\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_text_type_gives_the_same_text() {
        assert_eq!(json(StringArray::from(vec!["a\"\n"])), r#""a\"\n""#);
        assert_eq!(json(LargeStringArray::from(vec!["a\"\n"])), r#""a\"\n""#);
        assert_eq!(json(StringViewArray::from(vec!["a\"\n"])), r#""a\"\n""#);
        let dictionary: DictionaryArray<Int32Type> = vec![Some("a\"\n"), None].into_iter().collect();
        assert_eq!(json(dictionary), r#""a\"\n" null"#);
    }

    #[test]
    fn lists_and_structs_nest() {
        let list = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![
            Some(vec![Some(1.5), None, Some(f64::NAN)]),
            Some(vec![]),
            None,
        ]);
        let field = Arc::new(Field::new("gaps", list.data_type().clone(), true));
        let nested = StructArray::from(vec![(field, Arc::new(list) as ArrayRef)]);
        assert_eq!(json(nested), r#"{"gaps":[1.5,null,null]} {"gaps":[]} {"gaps":null}"#);
    }

    #[test]
    fn types_without_a_form_of_their_own_are_text() {
        assert_eq!(json(Date32Array::from(vec![Some(20_240), None])), r#""2025-06-01" null"#);
        assert_eq!(json(BinaryArray::from(vec![&b"\x00\xff"[..]])), r#""00ff""#);
        assert_eq!(json(NullArray::new(1)), "null");
    }
}
