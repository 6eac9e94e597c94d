//! Instants as logs write them: RFC 3339 and its near relatives, epochs in four units, nothing that only starts like one.
//!
//! Everything becomes nanoseconds since 1970 in UTC. Reading is by hand because every record of every log passes
//! here and because a lenient parser would take `...45ZZTOP` for a time.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use regex::bytes::Regex;

use super::number::{self, Unfit};
use super::unit::Unit;

const SECOND: i64 = 1_000_000_000;

/// An instant and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub nanoseconds: i64,
    /// Whether the text left its zone out, so that the source's zone was assumed.
    pub zone_assumed: bool,
}

/// Reads a time that stands as text: a calendar time, or an epoch in digits.
///
/// `zone` is the source's, for times without one; `unit` is an epoch's, where the key or the mapping states it.
pub fn from_text(text: &[u8], zone: &TimeZone, unit: Option<Unit>) -> Result<Instant, Unfit> {
    let text = text.trim_ascii();
    match text.get(4) {
        Some(b'-') => calendar(text, zone),
        _ if text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')) => {
            from_epoch(text, unit)
        }
        _ => Err(Unfit::NotATime),
    }
}

/// Reads times of one log after the other: nearly every line lies in the same minute as the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// `YYYY-MM-DDTHH:MM` of the last time in UTC, and its seconds since 1970.
    minute: [u8; 16],
    seconds: i64,
}

impl Clock {
    /// What [`from_text`] reads, if it is a time in UTC within the minute of the last one. None is not sure.
    #[inline(always)]
    pub fn same_minute(&self, text: &[u8]) -> Option<i64> {
        let (&[minute @ .., b':', tens @ b'0'..=b'5', ones @ b'0'..=b'9'], rest) = text.split_first_chunk::<19>()?
        else {
            return None;
        };
        if minute != self.minute {
            return None;
        }
        let seconds = self.seconds + i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
        Some(seconds * SECOND + short_fraction(rest)?)
    }

    /// What [`from_text`] reads.
    #[inline]
    pub fn read(&mut self, text: &[u8], zone: &TimeZone, unit: Option<Unit>) -> Result<Instant, Unfit> {
        if let Some(nanoseconds) = self.same_minute(text) {
            return Ok(Instant { nanoseconds, zone_assumed: false });
        }
        let instant = from_text(text, zone, unit)?;
        if let ([minute @ .., b':', tens, ones], Some(b'Z')) = (&text[..text.len().min(19)], text.last())
            && let Ok(minute) = minute.try_into()
        {
            // also right for a leap second, which is written as the sixtieth of its minute
            let second = i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
            let seconds = instant.nanoseconds.div_euclid(SECOND) - second;
            // a minute that does not fit as a whole is not remembered
            if seconds.checked_mul(SECOND).is_some() && (seconds + 60).checked_mul(SECOND).is_some() {
                self.minute = minute;
                self.seconds = seconds;
            }
        }
        Ok(instant)
    }
}

/// What follows the seconds in most logs: `Z`, or milliseconds or microseconds and `Z`. In nanoseconds.
#[inline(always)]
fn short_fraction(text: &[u8]) -> Option<i64> {
    match text {
        [b'Z'] => Some(0),
        [b'.', thousandths @ .., b'Z'] if thousandths.len() == 3 => {
            Some(i64::from(digits(thousandths).ok()?) * 1_000_000)
        }
        [b'.', millionths @ .., b'Z'] if millionths.len() == 6 => Some(i64::from(digits(millionths).ok()?) * 1000),
        _ => None,
    }
}

/// Reads an epoch: seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by `unit` or by size.
///
/// Digits behind the point are taken as written, down to the nanosecond, and never pass through a float.
pub fn from_epoch(text: &[u8], unit: Option<Unit>) -> Result<Instant, Unfit> {
    let text = text.trim_ascii();
    if unit.is_none()
        && let Some(nanoseconds) = from_ticks(text)
    {
        return Ok(Instant { nanoseconds, zone_assumed: false });
    }
    let nanoseconds = match unit.map_or_else(|| unit_by_size(text), Ok)? {
        Unit::Minutes => return Err(Unfit::NotAClock),
        unit => shifted(text, unit)?,
    };
    let (earliest, latest) = *PLAUSIBLE;
    if (earliest..latest).contains(&nanoseconds) {
        Ok(Instant { nanoseconds, zone_assumed: false })
    } else {
        Err(Unfit::NotAClock)
    }
}

/// Epochs outside 2015 to the end of next year belong to some other clock.
static PLAUSIBLE: LazyLock<(i64, i64)> = LazyLock::new(|| {
    let this_year = i64::from(Timestamp::now().to_zoned_datetime(TimeZone::UTC).year());
    let start = |year: i64| days_from_civil(year, 1, 1) * 86_400 * SECOND;
    (start(2015), start(this_year + 2))
});

/// Ticks of 100 ns since the year 1, as .NET counts: of the years 2015 to 2100 they are of a size that no epoch has.
fn from_ticks(text: &[u8]) -> Option<i64> {
    const TICKS_BEFORE_1970: i64 = 621_355_968_000_000_000;
    if text.len() != 18 || text.first() != Some(&b'6') {
        return None;
    }
    let ticks = super::number::count(text)
        .ok()
        .filter(|ticks| (635_000_000_000_000_000..663_000_000_000_000_000).contains(ticks))?;
    Some((ticks - TICKS_BEFORE_1970) * 100)
}

/// The bands of the four units do not touch for any year from 2001 to 2100.
fn unit_by_size(text: &[u8]) -> Result<Unit, Unfit> {
    if memchr::memchr2(b'e', b'E', text).is_some() {
        let value = super::number::float(text).or(Err(Unfit::NotATime))?;
        return unit_of_digits(value.log10() as usize + 1);
    }
    unit_of_digits(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn unit_of_digits(digits: usize) -> Result<Unit, Unfit> {
    match digits {
        10 => Ok(Unit::Seconds),
        13 => Ok(Unit::Milliseconds),
        16 => Ok(Unit::Microseconds),
        19 => Ok(Unit::Nanoseconds),
        _ => Err(Unfit::NotAClock),
    }
}

/// `whole.fraction` of `unit` in nanoseconds; digits below a nanosecond are cut.
fn shifted(text: &[u8], unit: Unit) -> Result<i64, Unfit> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if whole.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        let nanoseconds = super::number::float(text).or(Err(Unfit::NotATime))? * unit.nanoseconds() as f64;
        return if nanoseconds.abs() < i64::MAX as f64 { Ok(nanoseconds as i64) } else { Err(Unfit::NotAClock) };
    }
    let whole = super::number::count(whole).or(Err(Unfit::NotAClock))?;
    let mut nanoseconds = whole.checked_mul(unit.nanoseconds()).ok_or(Unfit::NotAClock)?;
    let mut place = unit.nanoseconds() / 10;
    for &digit in fraction {
        nanoseconds = nanoseconds.saturating_add(i64::from(digit - b'0') * place);
        place /= 10;
    }
    Ok(nanoseconds)
}

/// `YYYY-MM-DD`, `T` or a space, `HH:MM:SS`, 0 to 9 digits of a second, and `Z`, an offset or nothing.
fn calendar(text: &[u8], zone: &TimeZone) -> Result<Instant, Unfit> {
    let head: &[u8; 19] = text.first_chunk().ok_or(Unfit::NotATime)?;
    let [_, _, _, _, b'-', _, _, b'-', _, _, b'T' | b't' | b' ', _, _, b':', _, _, b':', _, _] = head else {
        return Err(Unfit::NotATime);
    };
    let digit = |at: usize| u32::from(head[at].wrapping_sub(b'0'));
    let two = |at: usize| digit(at) * 10 + digit(at + 1);
    // one test for all digits, so that the usual case takes no branch for each
    if [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18].into_iter().fold(0, |most, at| most.max(digit(at))) > 9 {
        return Err(Unfit::NotATime);
    }
    let year = i64::from(two(0) * 100 + two(2));
    let (month, day) = (two(5), two(8));
    let (hour, minute, second) = (two(11), two(14), two(17));
    // 60 is a leap second; it is read as the first instant of the next minute.
    if !(1..=12).contains(&month)
        || day < 1
        || day > month_length(year, month)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return Err(Unfit::NotATime);
    }
    let (fraction, rest) = fraction(&text[19..])?;
    let clock = i64::from(hour * 3600 + minute * 60 + second);
    let local = days_from_civil(year, i64::from(month), i64::from(day)) * 86_400 + clock;
    let (seconds, zone_assumed) = match offset(rest)? {
        Some(offset) => (local - offset, false),
        None if *zone == TimeZone::UTC => (local, true),
        None => (in_zone(local, zone)?, true),
    };
    let nanoseconds = seconds.checked_mul(SECOND).and_then(|ns| ns.checked_add(fraction)).ok_or(Unfit::OutOfRange)?;
    Ok(Instant { nanoseconds, zone_assumed })
}

/// The time `number` units behind `start`, which is nanoseconds since 1970: that of a clock that tells no date.
pub fn since(start: i64, number: &[u8], unit: Unit) -> Result<i64, Unfit> {
    const PLACES: i32 = 12;
    let behind = number::scaled(number, PLACES)?.checked_mul(i128::from(unit.nanoseconds()));
    let behind = behind.ok_or(Unfit::OutOfRange)? / 10_i128.pow(PLACES as u32);
    i64::try_from(i128::from(start) + behind).or(Err(Unfit::OutOfRange))
}

/// A wall clock reading in `zone`, given as the nanoseconds that it would be in UTC.
pub fn from_wall_clock(wall: i64, zone: &TimeZone) -> Result<i64, Unfit> {
    let seconds = in_zone(wall.div_euclid(SECOND), zone)?;
    seconds.checked_mul(SECOND).and_then(|ns| ns.checked_add(wall.rem_euclid(SECOND))).ok_or(Unfit::OutOfRange)
}

/// Seconds since 1970 of a wall clock reading in `zone`; in a gap or a fold, as the earlier offset has it.
fn in_zone(local: i64, zone: &TimeZone) -> Result<i64, Unfit> {
    let wall: civil::DateTime =
        Timestamp::from_second(local).or(Err(Unfit::OutOfRange))?.to_zoned_datetime(TimeZone::UTC).datetime();
    let instant = zone.to_timestamp(wall).or(Err(Unfit::OutOfRange))?;
    Ok(instant.as_second())
}

fn digits(text: &[u8]) -> Result<u32, Unfit> {
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Unfit::NotATime);
        }
        value = value * 10 + u32::from(digit);
    }
    Ok(value)
}

/// A fraction of a second in nanoseconds, and what follows it. Python's logging writes a comma for the point.
fn fraction(text: &[u8]) -> Result<(i64, &[u8]), Unfit> {
    let [b'.' | b',', digits @ ..] = text else {
        return Ok((0, text));
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&length) {
        return Err(Unfit::NotATime);
    }
    let value = digits[..length].iter().fold(0i64, |value, &digit| value * 10 + i64::from(digit - b'0'));
    Ok((value * 10i64.pow(9 - length as u32), &digits[length..]))
}

/// Seconds east of UTC: `Z`, `+08:00`, `+0800`, `+08`; None where nothing is written.
fn offset(text: &[u8]) -> Result<Option<i64>, Unfit> {
    let (sign, text) = match text {
        [] => return Ok(None),
        [b'Z' | b'z'] => return Ok(Some(0)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Err(Unfit::NotATime),
    };
    let (hours, minutes) = match text {
        [a, b, b':', c, d] | [a, b, c, d] => (digits(&[*a, *b])?, digits(&[*c, *d])?),
        [a, b] => (digits(&[*a, *b])?, 0),
        _ => return Err(Unfit::NotATime),
    };
    if hours > 23 || minutes > 59 {
        return Err(Unfit::NotATime);
    }
    Ok(Some(sign * i64::from(hours * 3600 + minutes * 60)))
}

fn month_length(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the years from 1 on, in the Gregorian calendar, counted in years that begin in March
/// so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// Month and day, as `06-01`, and time of a line that begins with them without a year, as engines and syslog write it.
pub fn without_year(line: &str) -> Option<(String, &str)> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    static TIME: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
        let text = r"(?x)^(?:\S{0,40}\s|\[)?(?:(?P<month>\d{2})-(?P<day>\d{2})|(?P<name>[A-Z][a-z]{2})\s{1,2}(?P<of>\d{1,2}))\s(?P<time>\d{2}:\d{2}:\d{2}(?:\.\d+)?)";
        regex::Regex::new(text).ok()
    });
    let found = TIME.as_ref()?.captures(line)?;
    let part = |name: &str| found.name(name).map(|part| part.as_str());
    let date = match (part("month"), part("day"), part("name"), part("of")) {
        (Some(month), Some(day), ..) => format!("{month}-{day}"),
        (_, _, Some(name), Some(day)) => {
            format!("{:02}-{day:0>2}", MONTHS.iter().position(|month| *month == name)? + 1)
        }
        _ => return None,
    };
    Some((date, part("time")?))
}

/// The date and time that a line of text begins with, or has near its beginning.
pub fn within(line: &[u8]) -> Option<&[u8]> {
    /// Bytes of what loggers write before the time: a name, a level, a process.
    const NEAR: usize = 120;
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let text = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?";
        Regex::new(text).ok()
    });
    TIME.as_ref()?.find(&line[..line.len().min(NEAR)]).map(|found| found.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Result<i64, Unfit> {
        from_text(text.as_bytes(), &TimeZone::UTC, None).map(|instant| instant.nanoseconds)
    }

    /// 2025-06-01T00:00:00Z
    const JUNE: i64 = 1_748_736_000 * SECOND;

    #[test]
    fn a_calendar_time_is_read_with_any_fraction_separator_and_offset() {
        for text in [
            "2025-06-01T00:00:00Z",
            "2025-06-01 00:00:00",
            "2025-06-01t00:00:00z",
            "2025-06-01T08:00:00+08:00",
            "2025-06-01T08:00:00+0800",
            "2025-06-01T08:00:00+08",
            "2025-05-31T19:00:00.000-05:00",
            "2025-06-01T00:00:00.000000000Z",
            "2025-06-01T00:00:00+00:00",
            "2025-05-31T23:59:60Z",
        ] {
            assert_eq!(utc(text), Ok(JUNE), "{text}");
        }
        assert_eq!(utc("2025-06-01T00:00:00.1Z"), Ok(JUNE + 100_000_000));
        assert_eq!(utc("2025-06-01 00:00:00.6805900"), Ok(JUNE + 680_590_000));
        assert_eq!(utc("2025-06-01T00:00:00,482"), Ok(JUNE + 482_000_000));
        assert_eq!(utc("2025-06-01T00:00:00.123456789Z"), Ok(JUNE + 123_456_789));
    }

    #[test]
    fn garbage_in_or_after_a_timestamp_is_no_timestamp() {
        for text in [
            "2025-06-01T00:00:00ZZTOP",
            "2025-06-01T00:00:00.Z",
            "2025-06-01T00:00:00.1234567890Z",
            "2025-06-01T24:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-06-31T00:00:00Z",
            "2025-06-01T00:60:00Z",
            "2025-06-01",
            "2025-06-01T00:00:00 UTC",
            "2025-06-01T00:00:00+8",
            "2025-06-01T00:00:00+24:00",
            "2025/06/01 00:00:00",
            "yesterday",
            "",
            "2025-06-01T00:00:0\u{663}Z",
        ] {
            assert!(utc(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_without_zone_takes_the_sources_zone_and_says_so() {
        let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
        let read = from_text(b"2025-06-01T08:00:00", &shanghai, None).unwrap();
        assert_eq!(read, Instant { nanoseconds: JUNE, zone_assumed: true });
        assert!(!from_text(b"2025-06-01T08:00:00Z", &shanghai, None).unwrap().zone_assumed);
    }

    #[test]
    fn an_epoch_is_read_in_four_units_as_number_or_text_without_a_float() {
        for text in ["1748736000", "1748736000000", "1748736000000000", "1748736000000000000", "1748736000.000"] {
            assert_eq!(utc(text), Ok(JUNE), "{text}");
        }
        assert_eq!(utc("1748736000.123456789"), Ok(JUNE + 123_456_789));
        assert_eq!(utc("1748736000120.5"), Ok(JUNE + 120_500_000));
        assert_eq!(utc("1748736000000000001"), Ok(JUNE + 1));
        assert_eq!(utc("1.748736e9"), Ok(JUNE));
    }

    #[test]
    fn a_clock_that_is_no_calendar_is_refused() {
        // relative, monotonic, the suffix against the size, years before 2015 and far ahead
        for (text, unit) in [
            ("45", None),
            ("0", None),
            ("9123.10", None),
            ("3262830524.289", Some(Unit::Milliseconds)),
            ("1748736000", Some(Unit::Milliseconds)),
            ("1748736000000", Some(Unit::Seconds)),
            ("1000000000", None),
            ("4102444800", None),
            ("-1748736000", None),
        ] {
            assert_eq!(from_epoch(text.as_bytes(), unit), Err(Unfit::NotAClock), "{text} {unit:?}");
        }
    }

    #[test]
    fn a_clock_reads_each_time_as_if_it_were_the_first() {
        let mut clock = Clock::default();
        for text in [
            "2025-06-01T00:00:00.000Z",
            "2025-06-01T00:00:59.999Z",
            "2025-06-01T00:00:07Z",
            "2025-06-01T00:00:61Z",
            "2025-06-01T00:00:60Z",
            "2025-06-01T00:00:01.5Z",
            "2025-06-01T00:00:01.123456Z",
            "2025-06-01T00:00:01.-12Z",
            "2025-06-01T00:00:0",
            "2025-06-01T00:01:00.250Z",
            "2025-06-01 00:01:00.250Z",
            "2025-06-01T00:01:00.250+08:00",
            "2025-06-01T00:01:00.250ZZ",
            "2025-06-01T00:01:00",
            "1748736000",
            "1969-12-31T23:59:59.500Z",
            "1969-12-31T23:59:01Z",
            "2262-04-11T23:47:10Z",
            "2262-04-11T23:47:30Z",
            "1677-09-21T00:12:50Z",
            "1677-09-21T00:12:10Z",
            "",
        ] {
            let read = clock.read(text.as_bytes(), &TimeZone::UTC, None);
            assert_eq!(read, from_text(text.as_bytes(), &TimeZone::UTC, None), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn calendar_times_agree_with_jiff(second in -2_208_988_800i64..4_102_444_800, nanosecond in 0i32..1_000_000_000, offset in -14i32..=14) {
            let instant = Timestamp::new(second, nanosecond).unwrap();
            let text = instant.display_with_offset(jiff::tz::offset(offset as i8)).to_string();
            proptest::prop_assert_eq!(utc(&text), Ok(instant.as_nanosecond() as i64));
        }
    }
}
