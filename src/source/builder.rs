//! A column of canonical values while it is filled, of whichever type its kind has.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, BooleanBufferBuilder, Decimal128Builder, NullBufferBuilder, PrimitiveArray,
    StringViewBuilder,
};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, Float64Type, Int64Type, TimestampNanosecondType};
use jiff::tz::TimeZone;

use crate::record::Kind;
use crate::record::number::{self, Unfit};
use crate::record::timestamp;
use crate::record::unit::Unit;
use crate::source::row::{flag_word, is_missing_word};

/// Room for so many texts. Blocks are small and stay so: a batch holds on to the whole of its last one.
fn texts(rows: usize) -> StringViewBuilder {
    let block = (rows * 8).clamp(4 << 10, 64 << 10);
    StringViewBuilder::with_capacity(rows).with_fixed_block_size(block as u32)
}

/// Appends what `read` makes of a text, or null.
fn append<T>(
    text: Option<&[u8]>,
    read: impl FnOnce(&[u8]) -> Result<T, Unfit>,
    mut append: impl FnMut(Option<T>),
) -> Result<(), Unfit> {
    match text.map(read).transpose() {
        Ok(value) => {
            append(value);
            Ok(())
        }
        Err(why) => {
            append(None);
            Err(why)
        }
    }
}

/// Numbers while they are collected: with room for a whole batch from the start, and so little code for one value that
/// it stands where the value is read.
pub(super) struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn new(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), nulls: NullBufferBuilder::new(rows) }
    }

    #[inline(always)]
    pub fn append_value(&mut self, value: T::Native) {
        self.values.push(value);
        self.nulls.append_non_null();
    }

    fn append_option(&mut self, value: Option<T::Native>) {
        self.values.push(value.unwrap_or_default());
        self.nulls.append(value.is_some());
    }

    fn finish(&mut self) -> PrimitiveArray<T> {
        let room = Vec::with_capacity(self.values.len());
        PrimitiveArray::new(std::mem::replace(&mut self.values, room).into(), self.nulls.finish())
    }
}

/// Flags while they are collected.
pub(super) struct Flags {
    values: BooleanBufferBuilder,
    nulls: NullBufferBuilder,
}

impl Flags {
    fn new(rows: usize) -> Self {
        Self { values: BooleanBufferBuilder::new(rows), nulls: NullBufferBuilder::new(rows) }
    }

    #[inline(always)]
    pub fn append_value(&mut self, value: bool) {
        self.values.append(value);
        self.nulls.append_non_null();
    }

    fn append_option(&mut self, value: Option<bool>) {
        self.values.append(value.unwrap_or_default());
        self.nulls.append(value.is_some());
    }

    fn finish(&mut self) -> BooleanArray {
        BooleanArray::new(self.values.finish(), self.nulls.finish())
    }
}

/// A column while it is filled.
pub(super) enum Builder {
    Text(StringViewBuilder),
    Count(Numbers<Int64Type>),
    Number(Numbers<Float64Type>),
    Time(Numbers<TimestampNanosecondType>),
    Flag(Flags),
    Money(Decimal128Builder),
}

impl Builder {
    pub fn new(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Text | Kind::Id => Builder::Text(texts(rows)),
            Kind::Count => Builder::Count(Numbers::new(rows)),
            Kind::Number | Kind::Duration => Builder::Number(Numbers::new(rows)),
            Kind::Time => Builder::Time(Numbers::new(rows)),
            Kind::Flag => Builder::Flag(Flags::new(rows)),
            Kind::Money => Builder::Money(Decimal128Builder::with_capacity(rows).with_data_type(kind.data_type())),
        }
    }

    pub fn text(&mut self, value: Option<&[u8]>) {
        // The decoder let only valid UTF-8 pass; a byte that is not becomes a replacement character, never an error.
        if let Builder::Text(builder) = self {
            match value.map(String::from_utf8_lossy) {
                Some(text) => builder.append_value(text),
                None => builder.append_null(),
            }
        }
    }

    /// A value that is not known, of whatever kind.
    pub fn null(&mut self) {
        match self {
            Builder::Text(builder) => builder.append_null(),
            Builder::Count(builder) => builder.append_option(None),
            Builder::Number(builder) => builder.append_option(None),
            Builder::Time(builder) => builder.append_option(None),
            Builder::Flag(builder) => builder.append_option(None),
            Builder::Money(builder) => builder.append_null(),
        }
    }

    pub fn count(&mut self, value: Option<i64>) {
        if let Builder::Count(builder) = self {
            builder.append_option(value);
        }
    }

    pub fn number(&mut self, value: Option<f64>) {
        if let Builder::Number(builder) = self {
            builder.append_option(value);
        }
    }

    pub fn time(&mut self, value: Option<i64>) {
        if let Builder::Time(builder) = self {
            builder.append_option(value);
        }
    }

    pub fn flag(&mut self, value: Option<bool>) {
        if let Builder::Flag(builder) = self {
            builder.append_option(value);
        }
    }

    pub fn money(&mut self, value: Option<i128>) {
        if let Builder::Money(builder) = self {
            builder.append_option(value);
        }
    }

    /// Takes an extra column's value from its text; what does not fit is null, and the reason comes back.
    pub fn parse(&mut self, text: Option<&[u8]>, zone: &TimeZone) -> Result<(), Unfit> {
        let text = text.filter(|text| matches!(self, Builder::Text(_)) || !is_missing_word(text));
        match self {
            Builder::Text(_) => self.text(text),
            Builder::Count(builder) => return append(text, number::count, |value| builder.append_option(value)),
            Builder::Number(builder) => return append(text, number::float, |value| builder.append_option(value)),
            Builder::Time(builder) => {
                let read = |text: &[u8]| timestamp::from_text(text, zone, None).map(|instant| instant.nanoseconds);
                return append(text, read, |value| builder.append_option(value));
            }
            Builder::Flag(builder) => {
                let read = |text: &[u8]| flag_word(text).ok_or(Unfit::WrongType);
                return append(text, read, |value| builder.append_option(value));
            }
            Builder::Money(builder) => {
                return append(text, |text| number::scaled(text, 12), |value| builder.append_option(value));
            }
        }
        Ok(())
    }

    /// A duration in this unit, as milliseconds; anything else as it is.
    pub fn duration(&mut self, text: Option<&[u8]>, unit: Unit) -> Result<(), Unfit> {
        let text = text.filter(|text| !is_missing_word(text));
        let read = |text: &[u8]| match number::float(text)? {
            value if value < 0.0 => Err(Unfit::OutOfRange),
            value => Ok(unit.to_ms(value)),
        };
        match self {
            Builder::Number(builder) => append(text, read, |value| builder.append_option(value)),
            _ => self.parse(text, &TimeZone::UTC),
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Count(builder) => Arc::new(builder.finish()),
            Builder::Number(builder) => Arc::new(builder.finish()),
            Builder::Time(builder) => Arc::new(builder.finish().with_data_type(Kind::Time.data_type())),
            Builder::Flag(builder) => Arc::new(builder.finish()),
            Builder::Money(builder) => Arc::new(builder.finish()),
        }
    }
}
