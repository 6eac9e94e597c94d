//! Numbers as logs write them: exact, or refused with a reason. A value that does not fit is never bent to fit.

use std::borrow::Cow;

use super::excerpt::Excerpt;

/// Why a value did not become a value of its column. Counted per column, shown in the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Unfit {
    /// NaN or Infinity: missing, as no number was measured.
    NotFinite,
    /// `1.5` tokens.
    NotWhole,
    /// An integer beyond i64, or a time outside the years of the calendar.
    OutOfRange,
    /// Text, a boolean, an object or an array where a number is due, or the other way round.
    WrongType,
    /// Text that is no timestamp, or goes on after it.
    NotATime,
    /// An epoch whose size contradicts its unit, or that lies outside 2015 to next year.
    NotAClock,
}

impl Unfit {
    pub const ALL: [Unfit; 6] =
        [Unfit::NotFinite, Unfit::NotWhole, Unfit::OutOfRange, Unfit::WrongType, Unfit::NotATime, Unfit::NotAClock];

    /// The machine name, used in metric names.
    pub fn code(self) -> &'static str {
        match self {
            Unfit::NotFinite => "not_finite",
            Unfit::NotWhole => "not_whole",
            Unfit::OutOfRange => "out_of_range",
            Unfit::WrongType => "wrong_type",
            Unfit::NotATime => "not_a_time",
            Unfit::NotAClock => "not_a_clock",
        }
    }

    /// How a note ends: "12 values of input_tokens were ...".
    pub fn phrase(self) -> &'static str {
        match self {
            Unfit::NotFinite => "NaN or Infinity",
            Unfit::NotWhole => "no whole number",
            Unfit::OutOfRange => "out of range",
            Unfit::WrongType => "of another type",
            Unfit::NotATime => "no timestamp",
            Unfit::NotAClock => "no calendar time (a relative or monotonic clock, or another unit)",
        }
    }
}

/// A whole number: `21073`, `21073.0` and `2.1073e4` are one, `1.5` is none.
#[inline]
pub fn count(text: &[u8]) -> Result<i64, Unfit> {
    if let Some(value) = short_integer(text) {
        return Ok(value);
    }
    let decimal = Decimal::parse(text)?;
    decimal.whole()
}

/// A decimal number as the nearest double.
#[inline]
pub fn float(text: &[u8]) -> Result<f64, Unfit> {
    if let Some(value) = short_decimal(text) {
        return Ok(value);
    }
    Decimal::parse(text)?;
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(Unfit::NotFinite),
        None => Err(Unfit::WrongType),
    }
}

/// A decimal number times 10^`scale`: `"0.0171"` with scale 12 is 17100000000. For money. Digits behind that are the noise
/// of a program that computed with floats, and rounded away.
pub fn scaled(text: &[u8], scale: i32) -> Result<i128, Unfit> {
    Decimal::parse(text)?.scaled(scale)
}

/// [`count`] of a number without sign, point and exponent and of up to 16 digits, well inside its text. None is not sure.
#[inline(always)]
pub fn short_count(number: Excerpt<'_>) -> Option<i64> {
    Some(digits_value(Window::ending(number)?.bytes)? as i64)
}

/// [`float`] of a number without sign and exponent and of up to 16 characters, well inside its text, which has a digit on
/// either side of its point as every number in JSON. None is not sure.
#[inline(always)]
pub fn short_float(number: Excerpt<'_>) -> Option<f64> {
    Window::ending(number)?.decimal()
}

/// An epoch in seconds with ten digits before its point and up to nine behind it, of the years 2015 to 2026, as
/// nanoseconds. None is not sure.
#[inline(always)]
pub fn short_epoch(number: Excerpt<'_>) -> Option<i64> {
    const YEARS: std::ops::Range<i64> = 1_420_070_400..1_798_761_600;
    const PLACES: [i64; 10] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1];
    let text = number.text.get(number.start..number.end)?;
    let (whole, rest) = text.split_first_chunk::<10>()?;
    let seconds = digits_value(Window::of(whole)?.bytes)? as i64;
    let fraction = match rest {
        [] => 0,
        [b'.', digits @ ..] if digits.len() <= 9 => {
            // by its end: how many digits there are differs from line to line
            let digits = Excerpt { start: number.end - digits.len(), ..number };
            let Window { bytes, length } = Window::ending(digits)?;
            digits_value(bytes)? as i64 * PLACES[length]
        }
        _ => return None,
    };
    YEARS.contains(&seconds).then_some(seconds * 1_000_000_000 + fraction)
}

/// A run of up to 16 digits with an optional minus: what nearly every count looks like.
#[inline]
fn short_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = unsigned(text);
    let value = digits_value(Window::of(digits)?.bytes)? as i64;
    Some(if negative { -value } else { value })
}

/// `ddd.ddd` with at most 15 digits and an optional minus.
#[inline]
fn short_decimal(text: &[u8]) -> Option<f64> {
    let (negative, digits) = unsigned(text);
    if digits.first() == Some(&b'.') || digits.last() == Some(&b'.') {
        return None;
    }
    let value = Window::of(digits)?.decimal()?;
    Some(if negative { -value } else { value })
}

fn unsigned(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

/// Up to 16 characters of a number in one machine word, the last in the highest byte and zeros before the first, so that
/// digits are worked on together: how long a number is differs from line to line, and a loop over its digits would end
/// where the processor does not expect it.
struct Window {
    bytes: u128,
    length: usize,
}

const ZEROS: u128 = 0x3030_3030_3030_3030_3030_3030_3030_3030;

impl Window {
    #[inline(always)]
    fn of(text: &[u8]) -> Option<Self> {
        let length = text.len();
        let bytes = match length {
            8..=16 => {
                let (first, last) = (text.first_chunk()?, text.last_chunk()?);
                u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (length - 8))
            }
            4..8 => {
                let (first, last) = (text.first_chunk()?, text.last_chunk()?);
                u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << (8 * (length - 4))
            }
            1..4 => {
                let last = u128::from(text[length - 1]) << (8 * (length - 1));
                u128::from(text[0]) | u128::from(text[length / 2]) << (8 * (length / 2)) | last
            }
            _ => return None,
        };
        let blank = 8 * (16 - length as u32);
        let before_first = ZEROS & !u128::MAX.checked_shl(blank).unwrap_or(0);
        Some(Self { bytes: bytes << blank | before_first, length })
    }

    /// The same of a number that has at least so many bytes before its end.
    #[inline(always)]
    fn ending(number: Excerpt<'_>) -> Option<Self> {
        let length = number.end.wrapping_sub(number.start);
        let last = number.text.get(number.end.wrapping_sub(16)..number.end)?.first_chunk()?;
        if !(1..=16).contains(&length) {
            return None;
        }
        let before_first = 8 * (16 - length as u32);
        let kept = u128::MAX.checked_shl(before_first).unwrap_or(0);
        Some(Self { bytes: (u128::from_le_bytes(*last) & kept) | (ZEROS & !kept), length })
    }

    /// The nearest double: mantissa and power of ten are exact doubles below 16 digits, so that one division rounds once,
    /// which is the correctly rounded result (Clinger's fast path).
    #[inline(always)]
    fn decimal(&self) -> Option<f64> {
        const POWERS: [f64; 16] =
            [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
        let (bytes, places) = self.without_point();
        if self.length == 16 && places == 0 {
            return None;
        }
        Some(digits_value(bytes)? as f64 / POWERS[places])
    }

    /// The characters with a decimal point taken out, and how many stood behind it.
    #[inline(always)]
    fn without_point(&self) -> (u128, usize) {
        const ONES: u128 = 0x0101_0101_0101_0101_0101_0101_0101_0101;
        let differing = self.bytes ^ (ONES * b'.' as u128);
        // the lowest byte that is zero has its high bit set here; bytes above it may be wrong, the lowest never is
        let marks = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        if marks == 0 {
            return (self.bytes, 0);
        }
        let at = marks.trailing_zeros() / 8;
        let below = (1u128 << (8 * at)) - 1;
        // what stands before the point moves up one place, and a zero comes in at the front
        let moved = (self.bytes & below) << 8 | u128::from(b'0');
        let kept = self.bytes & !(below << 8 | 0xff);
        (moved | kept, (15 - at as usize).min(self.length))
    }
}

/// The value of 16 digits; None where a byte is no digit.
#[inline(always)]
fn digits_value(bytes: u128) -> Option<u64> {
    let values = bytes ^ ZEROS;
    // a digit's value is at most 9: adding 6 leaves the high half of its byte empty
    let carried = values.wrapping_add(0x0606_0606_0606_0606_0606_0606_0606_0606);
    if (values | carried) & 0xf0f0_f0f0_f0f0_f0f0_f0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let (high, low) = (values as u64, (values >> 64) as u64);
    Some(eight_digits(high) * 100_000_000 + eight_digits(low))
}

/// Pairs, then fours, then all eight: three multiplications for eight digits, the first in the lowest byte.
#[inline(always)]
fn eight_digits(values: u64) -> u64 {
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// A decimal number taken apart: digits and where the point stands.
struct Decimal<'a> {
    negative: bool,
    digits: Cow<'a, [u8]>,
    /// value = digits * 10^exponent
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, Unfit> {
        let text = text.trim_ascii();
        let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        if is_not_finite(unsigned) {
            return Err(Unfit::NotFinite);
        }
        let (mantissa, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match memchr::memchr(b'.', mantissa) {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &mantissa[..0]),
        };
        if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
            return Err(Unfit::WrongType);
        }
        let digits = if fraction.is_empty() { Cow::Borrowed(whole) } else { Cow::Owned([whole, fraction].concat()) };
        Ok(Self { negative: text.starts_with(b"-"), digits, exponent: exponent - fraction.len() as i64 })
    }

    fn whole(&self) -> Result<i64, Unfit> {
        let value = self.integer(self.exponent, Unfit::NotWhole)?;
        i64::try_from(value).or(Err(Unfit::OutOfRange))
    }

    fn scaled(&self, scale: i32) -> Result<i128, Unfit> {
        let exponent = self.exponent + i64::from(scale);
        let Some(cut) = usize::try_from(-exponent).ok().filter(|cut| *cut > 0) else {
            return self.integer(exponent, Unfit::OutOfRange);
        };
        let significant = self.digits.trim_ascii_start_zeros();
        if significant.is_empty() {
            return Ok(0);
        }
        // what would round to nothing is not nothing
        let kept = significant.len().checked_sub(cut).ok_or(Unfit::OutOfRange)?;
        let (kept, dropped) = significant.split_at(kept);
        let whole = Decimal { negative: false, digits: Cow::Borrowed(kept), exponent: 0 };
        match whole.integer(0, Unfit::OutOfRange)? + i128::from(dropped[0] >= b'5') {
            0 => Err(Unfit::OutOfRange),
            rounded if self.negative => Ok(-rounded),
            rounded => Ok(rounded),
        }
    }

    /// digits * 10^exponent as an integer; `inexact` where digits behind the point would be lost.
    fn integer(&self, exponent: i64, inexact: Unfit) -> Result<i128, Unfit> {
        let significant = self.digits.trim_ascii_start_zeros();
        if significant.is_empty() {
            return Ok(0);
        }
        let (kept, zeros) = if exponent < 0 {
            let cut = usize::try_from(-exponent).unwrap_or(usize::MAX);
            if cut > significant.len() || significant[significant.len() - cut..].iter().any(|&digit| digit != b'0') {
                return Err(inexact);
            }
            (&significant[..significant.len() - cut], 0)
        } else {
            (significant, usize::try_from(exponent).unwrap_or(usize::MAX))
        };
        if kept.len().saturating_add(zeros) > 38 {
            return Err(Unfit::OutOfRange);
        }
        let mut value = 0i128;
        for &digit in kept {
            value = value * 10 + i128::from(digit - b'0');
        }
        value *= 10i128.pow(zeros as u32);
        Ok(if self.negative { -value } else { value })
    }
}

trait TrimZeros {
    fn trim_ascii_start_zeros(&self) -> &[u8];
}

impl TrimZeros for Cow<'_, [u8]> {
    fn trim_ascii_start_zeros(&self) -> &[u8] {
        let zeros = self.iter().take_while(|&&digit| digit == b'0').count();
        &self[zeros..]
    }
}

fn exponent(text: &[u8]) -> Result<i64, Unfit> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    match short_integer(digits) {
        Some(value) => Ok(value.clamp(-100_000, 100_000)),
        None if !digits.is_empty() && digits.iter().skip(1).all(u8::is_ascii_digit) => Err(Unfit::OutOfRange),
        None => Err(Unfit::WrongType),
    }
}

/// NaN and Infinity in the spellings that JSON writers and spreadsheets use.
fn is_not_finite(text: &[u8]) -> bool {
    ["nan", "inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_in_every_spelling() {
        for text in ["21073", "21073.0", "21073.000", "2.1073e4", "210730e-1", "+21073", " 21073 "] {
            assert_eq!(count(text.as_bytes()), Ok(21073), "{text}");
        }
        assert_eq!(count(b"-7"), Ok(-7));
        assert_eq!(count(b"0.0"), Ok(0));
        assert_eq!(count(b"0e99999999"), Ok(0));
    }

    #[test]
    fn integers_beyond_2_to_the_53_stay_exact_and_beyond_i64_are_out_of_range() {
        assert_eq!(count(b"9007199254740993"), Ok(9_007_199_254_740_993));
        assert_eq!(count(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(count(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(count(b"9223372036854775808"), Err(Unfit::OutOfRange));
        assert_eq!(count(b"17000000000000000001"), Err(Unfit::OutOfRange));
        assert_eq!(count(b"1e40"), Err(Unfit::OutOfRange));
    }

    #[test]
    fn a_fraction_is_no_count_and_text_is_no_number() {
        assert_eq!(count(b"1.5"), Err(Unfit::NotWhole));
        assert_eq!(count(b"1e-3"), Err(Unfit::NotWhole));
        for text in ["", ".", "-", "abc", "1x", "0x10", "1 2", "1e", "--1", "1.2.3", "1,000"] {
            assert_eq!(count(text.as_bytes()), Err(Unfit::WrongType), "{text}");
            assert_eq!(float(text.as_bytes()), Err(Unfit::WrongType), "{text}");
        }
        for text in ["NaN", "-Infinity", "inf", "nan"] {
            assert_eq!(float(text.as_bytes()), Err(Unfit::NotFinite), "{text}");
        }
        assert_eq!(float(b"1e999"), Err(Unfit::NotFinite));
    }

    #[test]
    fn money_is_exact_to_twelve_decimals() {
        assert_eq!(scaled(b"0.000225", 12), Ok(225_000_000));
        assert_eq!(scaled(b"1.71e-5", 12), Ok(17_100_000));
        assert_eq!(scaled(b"-3", 12), Ok(-3_000_000_000_000));
        assert_eq!(scaled(b"0.00013500000000000003", 12), Ok(135_000_000));
        assert_eq!(scaled(b"-0.0000000000015", 12), Ok(-2));
        assert_eq!(scaled(b"0.0000000000001", 12), Err(Unfit::OutOfRange));
    }

    proptest::proptest! {
        #[test]
        fn the_short_path_for_decimals_agrees_with_the_standard_library(text in "-?[0-9]{1,9}(\\.[0-9]{1,9})?(e-?[0-9]{1,2})?") {
            proptest::prop_assert_eq!(float(text.as_bytes()), Ok(text.parse::<f64>().unwrap()));
        }

        #[test]
        fn any_text_is_read_as_the_long_path_reads_it(text in "-?[0-9.a-f+ ]{0,18}") {
            let long = Decimal::parse(text.as_bytes());
            proptest::prop_assert_eq!(count(text.as_bytes()), long.and_then(|decimal| decimal.whole()), "{}", text);
            let parsed = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
            if Decimal::parse(text.as_bytes()).is_ok() {
                proptest::prop_assert_eq!(float(text.as_bytes()).ok(), parsed, "{}", text);
            } else {
                proptest::prop_assert!(float(text.as_bytes()).is_err(), "{}", text);
            }
        }

        #[test]
        fn counts_agree_with_integer_parsing(value: i64) {
            proptest::prop_assert_eq!(count(value.to_string().as_bytes()), Ok(value));
        }
    }
}
