//! A date, perhaps with the time of day and an instance, and a number: `20250601-083015-gw1-00042`.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use super::Options;
use super::digits::decimal;
use super::part::is_separator;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str, options: &Options) -> Option<Reading> {
    let (date, behind_date) = leading_date(text)?;
    let (hour, behind) = leading_hour(behind_date).map_or((None, behind_date), |(hour, behind)| (Some(hour), behind));
    // digits right behind a date are one number with it, and a date alone is the name of a day
    let rest = if behind.is_empty() { "" } else { behind.strip_prefix(is_separator)? };
    if rest.is_empty() && hour.is_none() {
        return None;
    }
    let (instance, last) =
        rest.rsplit_once(is_separator).map_or((None, rest), |(instance, last)| (Some(instance), last));
    let sequence = decimal(last).map(|number| number.to_string());
    let zone = if hour.is_some_and(|hour| hour.is_utc) { &TimeZone::UTC } else { &options.zone };
    let local = date.to_datetime(hour.map_or(Time::midnight(), |hour| hour.time));
    let instant = zone.to_ambiguous_timestamp(local).compatible().ok()?;
    let mut notes = vec![format!("read in {}", name(zone))];
    if let Some(time) = clock(last).filter(|_| hour.is_none() && instance.is_none()) {
        notes.push(format!("its number could be the time {time}"));
    }
    if sequence.is_none() && !last.is_empty() {
        notes.push(format!("`{last}` is no number"));
    }
    let resolution = hour.map_or("day", |hour| hour.resolution);
    Some(Reading {
        moment: Some(Moment { nanoseconds: instant.as_nanosecond(), resolution }),
        instance: instance.map(str::to_owned),
        sequence,
        notes,
        ..Reading::new("dated", "date and number", Certainty::Likely)
    })
}

fn name(zone: &TimeZone) -> String {
    let offset = || zone.to_fixed_offset().map_or_else(|_| "the zone given".to_owned(), |offset| offset.to_string());
    zone.iana_name().map_or_else(offset, str::to_owned)
}

/// `20250601` or `2025-06-01`, and what follows.
fn leading_date(text: &str) -> Option<(Date, &str)> {
    let number = |text: Option<&str>| decimal(text?).and_then(|number| i16::try_from(number).ok());
    let date = |year, month, day| Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok();
    let plain = || {
        let parsed = date(number(text.get(..4))?, number(text.get(4..6))?, number(text.get(6..8))?)?;
        Some((parsed, &text[8..]))
    };
    let parted = || {
        let separators = [text.get(4..5)?, text.get(7..8)?];
        let parsed = date(number(text.get(..4))?, number(text.get(5..7))?, number(text.get(8..10))?)?;
        (separators == ["-", "-"]).then(|| (parsed, &text[10..]))
    };
    plain().or_else(parted)
}

/// The time of day behind a date.
#[derive(Debug, Clone, Copy)]
struct Hour {
    time: Time,
    resolution: &'static str,
    is_utc: bool,
}

/// `083015`, `T083015Z`, `-083015-` or `083015123`, and what follows.
fn leading_hour(text: &str) -> Option<(Hour, &str)> {
    let digits = text.strip_prefix(['T', 't']).or_else(|| text.strip_prefix(is_separator)).unwrap_or(text);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = digits.split_at(length);
    let (behind, is_utc) = behind.strip_prefix('Z').map_or((behind, false), |behind| (behind, true));
    // behind a separator, six digits at the end are the number
    let is_number = text.starts_with(is_separator) && behind.is_empty() && !is_utc;
    let is_whole = behind.is_empty() || behind.starts_with(is_separator);
    let resolution = if length == 6 { "s" } else { "ms" };
    let time = clock(digits).filter(|_| is_whole && !is_number)?;
    Some((Hour { time, resolution, is_utc }, behind))
}

/// `083015` or `083015123`.
fn clock(digits: &str) -> Option<Time> {
    let number = |from: usize, to: usize| digits.get(from..to).and_then(decimal);
    let two = |from| number(from, from + 2).and_then(|number| i8::try_from(number).ok());
    let milliseconds = match digits.len() {
        6 => 0,
        9 => i32::try_from(number(6, 9)?).ok()?,
        _ => return None,
    };
    Time::new(two(0)?, two(2)?, two(4)?, milliseconds * 1_000_000).ok()
}
