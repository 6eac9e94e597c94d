//! Numbers as logs write them: exact, or refused with a reason. A value that does not fit is never bent to fit.

use std::borrow::Cow;

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
pub fn count(text: &[u8]) -> Result<i64, Unfit> {
    if let Some(value) = short_integer(text) {
        return Ok(value);
    }
    let decimal = Decimal::parse(text)?;
    decimal.whole()
}

/// A decimal number as the nearest double.
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

/// A decimal number times 10^`scale`, exact: `"0.0171"` with scale 12 is 17100000000. For money.
pub fn scaled(text: &[u8], scale: i32) -> Result<i128, Unfit> {
    Decimal::parse(text)?.scaled(scale)
}

/// A run of up to 18 digits with an optional minus: what nearly every count looks like.
fn short_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// `ddd.ddd` with at most 15 significant digits: mantissa and power of ten are exact doubles, so that one
/// division rounds once, which is the correctly rounded result (Clinger's fast path).
fn short_decimal(text: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut fraction = None;
    for (index, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if byte == b'.' && fraction.is_none() && index > 0 && index + 1 < digits.len() {
            fraction = Some(digits.len() - index - 1);
        } else {
            return None;
        }
    }
    if fraction.is_none() && digits.len() > 15 {
        return None;
    }
    let value = mantissa as f64 / POWERS[fraction.unwrap_or(0)];
    Some(if negative { -value } else { value })
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
        self.integer(self.exponent + i64::from(scale), Unfit::OutOfRange)
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
        assert_eq!(scaled(b"0.0000000000001", 12), Err(Unfit::OutOfRange));
    }

    proptest::proptest! {
        #[test]
        fn the_short_path_for_decimals_agrees_with_the_standard_library(text in "-?[0-9]{1,9}(\\.[0-9]{1,9})?(e-?[0-9]{1,2})?") {
            proptest::prop_assert_eq!(float(text.as_bytes()), Ok(text.parse::<f64>().unwrap()));
        }

        #[test]
        fn counts_agree_with_integer_parsing(value: i64) {
            proptest::prop_assert_eq!(count(value.to_string().as_bytes()), Ok(value));
        }
    }
}
