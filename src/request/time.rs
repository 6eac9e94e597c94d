//! Instants and ranges of time as people write them: dates, `7d`, `--month 2025-06`, resolved in the report's zone.

use jiff::civil::{Date, DateTime};
use jiff::{Span, Timestamp, ToSpan, ZonedDateTime};

use super::{Mistake, Note, Zone};

/// From `since` (included) to `until` (excluded). None is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// The flags that limit the time, as they were typed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds<'a> {
    pub since: Option<&'a str>,
    pub until: Option<&'a str>,
    pub month: Option<&'a str>,
}

impl TimeRange {
    /// What the flags mean in `zone`, counted back from `now`. What a reader might take otherwise goes to `notes`.
    pub fn resolve(bounds: Bounds, clock: &Clock, notes: &mut Vec<Note>) -> Result<Self, Mistake> {
        if let Some(month) = bounds.month {
            if bounds.since.is_some() || bounds.until.is_some() {
                return Err(Mistake::MonthWithRange);
            }
            return month_range(month, clock);
        }
        let range = TimeRange {
            since: bounds.since.map(|text| clock.read("--since", text, notes)).transpose()?,
            until: bounds.until.map(|text| clock.read("--until", text, notes)).transpose()?,
        };
        if let (Some(since), Some(until)) = (range.since, range.until)
            && since >= until
        {
            return Err(Mistake::EmptyRange {
                since: bounds.since.unwrap_or_default().to_owned(),
                until: bounds.until.unwrap_or_default().to_owned(),
            });
        }
        if let Some(text) = bounds.until.filter(|text| bare_date(text).is_some()) {
            notes.push(Note::new(
                "until_exclusive",
                format!("--until {text} ends at midnight ({}): that day itself is not included", clock.zone.name),
            ));
        }
        Ok(range)
    }
}

impl TimeRange {
    /// Whether it begins and ends with months of a zone, or is open.
    pub fn is_whole_months(&self, zone: &Zone) -> bool {
        let begins = |time: Timestamp| {
            let local = time.to_zoned_datetime(zone.rules.clone());
            local.day() == 1 && local.start_of_day().is_ok_and(|start| start.timestamp() == time)
        };
        self.since.is_none_or(begins) && self.until.is_none_or(begins)
    }

    /// When the period before began: the month before a month, else as long as the range is; None of an open range.
    pub fn before(&self, zone: &Zone) -> Option<Timestamp> {
        let (since, until) = (self.since?, self.until?);
        let local = |time: Timestamp| time.to_zoned_datetime(zone.rules.clone());
        let is_month = local(since).checked_add(1.month()).is_ok_and(|next| next.timestamp() == until);
        if is_month && local(since).day() == 1 {
            return local(since).checked_sub(1.month()).ok().map(|before| before.timestamp());
        }
        since.checked_sub(since.duration_until(until)).ok()
    }
}

/// The moment that spans count back from, and the zone in which days begin.
#[derive(Debug, Clone)]
pub struct Clock {
    pub now: Timestamp,
    pub zone: Zone,
}

impl Clock {
    /// The instant that `text` names: RFC 3339 with or without offset, a date, a span back such as `7d`, or a word.
    ///
    /// Spans of days and weeks keep the local time of day, so that `1d` is 23 hours where the clock went forward.
    pub fn read(&self, flag: &'static str, text: &str, notes: &mut Vec<Note>) -> Result<Timestamp, Mistake> {
        let text = text.trim();
        let now = || self.now.to_zoned_datetime(self.zone.rules.clone());
        let midnight = |date: Result<Date, jiff::Error>| {
            date.and_then(|date| date.to_zoned_datetime(self.zone.rules.clone()))
                .map(|midnight| midnight.timestamp())
                .map_err(|reason| out_of_range(flag, text, reason))
        };
        match text {
            "now" => return Ok(self.now),
            "today" => return midnight(Ok(now().date())),
            "yesterday" => return midnight(now().date().yesterday()),
            _ => {}
        }
        if let Some(date) = bare_date(text) {
            return midnight(Ok(date));
        }
        if let Some(back) = span_back(text) {
            return back
                .and_then(|span| now().checked_sub(span))
                .map(|then| then.timestamp())
                .map_err(|reason| out_of_range(flag, text, reason));
        }
        if let Ok(instant) = text.parse::<Timestamp>() {
            return Ok(instant);
        }
        match text.parse::<DateTime>() {
            // The parser would drop a zone in brackets, and the time would be read in another.
            Ok(local) if !text.contains('[') => self.local(flag, text, local, notes),
            _ => Err(Mistake::NotATime { flag, text: text.to_owned() }),
        }
    }

    /// The instant at which the clocks of the zone show `local`.
    fn local(
        &self,
        flag: &'static str,
        text: &str,
        local: DateTime,
        notes: &mut Vec<Note>,
    ) -> Result<Timestamp, Mistake> {
        let candidates = self.zone.rules.to_ambiguous_zoned_datetime(local);
        let ambiguous = candidates.is_ambiguous();
        let chosen = candidates.compatible().map_err(|reason| out_of_range(flag, text, reason))?;
        if ambiguous {
            notes.push(Note::new(
                "clock_change",
                format!(
                    "{flag} {text} falls into a clock change in {}; it is read as {}",
                    self.zone.name,
                    shown(&chosen)
                ),
            ));
        }
        Ok(chosen.timestamp())
    }
}

fn shown(time: &ZonedDateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn out_of_range(flag: &'static str, text: &str, reason: jiff::Error) -> Mistake {
    Mistake::TimeOutOfRange { flag, text: text.to_owned(), reason }
}

/// A date and nothing else. The date parser alone would take a date with a time too, and drop the time.
fn bare_date(text: &str) -> Option<Date> {
    let text = text.trim();
    let has_time = text.contains(['T', 't', ' ', '[']);
    if has_time { None } else { text.parse().ok() }
}

/// `30m`, `24h`, `7d`, `2w`; None where the text is no span at all.
fn span_back(text: &str) -> Option<Result<Span, jiff::Error>> {
    let unit = text.chars().next_back()?;
    let digits = &text[..text.len() - unit.len_utf8()];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond i64 is beyond every span as well: both are told as out of range.
    let count: i64 = digits.parse().unwrap_or(i64::MAX);
    let zero = Span::new();
    match unit {
        'm' => Some(zero.try_minutes(count)),
        'h' => Some(zero.try_hours(count)),
        'd' => Some(zero.try_days(count)),
        'w' => Some(zero.try_weeks(count)),
        _ => None,
    }
}

/// `500ms`, `30s`, `5m`, `24h`, `7d` as milliseconds, days of 24 hours; None where the text is no length of time, or none
/// above zero.
pub fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(unit).filter(|length| *length > 0)
}

fn month_range(text: &str, clock: &Clock) -> Result<TimeRange, Mistake> {
    let first = super::month(text)?;
    let midnight = |date: Date| date.to_zoned_datetime(clock.zone.rules.clone());
    let next = first.checked_add(1.month());
    let (Ok(since), Ok(until)) = (midnight(first), next.and_then(midnight)) else {
        return Err(Mistake::NotAMonth { text: text.to_owned() });
    };
    Ok(TimeRange { since: Some(since.timestamp()), until: Some(until.timestamp()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(now: &str, zone: &str) -> Clock {
        Clock { now: now.parse().unwrap(), zone: Zone::parse(zone).unwrap() }
    }

    fn read(text: &str, clock: &Clock) -> Result<Timestamp, Mistake> {
        clock.read("--since", text, &mut Vec::new())
    }

    fn range(bounds: Bounds, clock: &Clock) -> Result<(TimeRange, Vec<Note>), Mistake> {
        let mut notes = Vec::new();
        TimeRange::resolve(bounds, clock, &mut notes).map(|range| (range, notes))
    }

    fn hours_of_day(date: &str, next: &str, zone: &str) -> i64 {
        let clock = clock("2026-01-01T00:00:00Z", zone);
        let bounds = Bounds { since: Some(date), until: Some(next), month: None };
        let (range, _) = range(bounds, &clock).unwrap();
        let seconds = range.until.unwrap().as_second() - range.since.unwrap().as_second();
        assert_eq!(seconds % 3600, 0);
        seconds / 3600
    }

    #[test]
    fn every_way_to_write_an_instant_is_read() {
        let tokyo = clock("2025-06-10T12:00:00Z", "Asia/Tokyo");
        for (text, instant) in [
            ("2025-06-01T08:30:00Z", "2025-06-01T08:30:00Z"),
            ("2025-06-01T08:30:00+08:00", "2025-06-01T00:30:00Z"),
            ("2025-06-01T08:30:00+0800", "2025-06-01T00:30:00Z"),
            ("2025-06-01 08:30:00.123456789Z", "2025-06-01T08:30:00.123456789Z"),
            ("2025-06-01T08:30:00", "2025-05-31T23:30:00Z"),
            ("2025-06-01 08:30", "2025-05-31T23:30:00Z"),
            ("2025-06-01", "2025-05-31T15:00:00Z"),
            ("now", "2025-06-10T12:00:00Z"),
            ("today", "2025-06-09T15:00:00Z"),
            ("yesterday", "2025-06-08T15:00:00Z"),
            ("30m", "2025-06-10T11:30:00Z"),
            ("24h", "2025-06-09T12:00:00Z"),
            ("7d", "2025-06-03T12:00:00Z"),
            ("2w", "2025-05-27T12:00:00Z"),
        ] {
            let expected: Timestamp = instant.parse().unwrap();
            assert_eq!(read(text, &tokyo).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_zoneless_time_in_kolkata_is_half_an_hour_off_the_full_hour() {
        let kolkata = clock("2025-06-10T12:00:00Z", "Asia/Kolkata");
        let midnight = read("2025-06-10", &kolkata).unwrap();
        assert_eq!(midnight.to_string(), "2025-06-09T18:30:00Z");
    }

    #[test]
    fn days_of_a_clock_change_have_23_and_25_hours() {
        assert_eq!(hours_of_day("2026-03-29", "2026-03-30", "Europe/Berlin"), 23);
        assert_eq!(hours_of_day("2026-10-25", "2026-10-26", "Europe/Berlin"), 25);
        assert_eq!(hours_of_day("2026-03-29", "2026-03-30", "UTC"), 24);
    }

    #[test]
    fn a_span_of_days_keeps_the_local_time_of_day() {
        let berlin = clock("2026-03-29T12:00:00Z", "Europe/Berlin");
        assert_eq!(read("1d", &berlin).unwrap().to_string(), "2026-03-28T13:00:00Z");
        assert_eq!(read("24h", &berlin).unwrap().to_string(), "2026-03-28T12:00:00Z");
    }

    #[test]
    fn a_day_that_a_zone_skipped_begins_with_the_next_day() {
        let apia = clock("2012-01-01T00:00:00Z", "Pacific/Apia");
        let skipped = read("2011-12-30", &apia).unwrap();
        assert_eq!(skipped, read("2011-12-31", &apia).unwrap());
        assert_eq!(skipped.to_string(), "2011-12-30T10:00:00Z");
        assert_eq!(hours_of_day("2011-12-29", "2011-12-31", "Pacific/Apia"), 24);
    }

    #[test]
    fn a_local_time_that_happens_twice_is_the_first_and_noted() {
        let berlin = clock("2026-11-01T00:00:00Z", "Europe/Berlin");
        let mut notes = Vec::new();
        let instant = berlin.read("--since", "2026-10-25T02:30:00", &mut notes).unwrap();
        assert_eq!(instant.to_string(), "2026-10-25T00:30:00Z");
        assert_eq!(notes[0].code, "clock_change");
        assert!(notes[0].text.ends_with("it is read as 2026-10-25T02:30:00+02:00"));
    }

    #[test]
    fn a_month_runs_from_local_midnight_to_local_midnight() {
        for (month, zone, since, until) in [
            ("2025-06", "Asia/Tokyo", "2025-05-31T15:00:00Z", "2025-06-30T15:00:00Z"),
            ("2025-12", "UTC", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-03", "Europe/Berlin", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"),
        ] {
            let bounds = Bounds { month: Some(month), ..Bounds::default() };
            let (range, notes) = range(bounds, &clock("2026-01-01T00:00:00Z", zone)).unwrap();
            assert_eq!(range.since.unwrap().to_string(), since, "{zone}");
            assert_eq!(range.until.unwrap().to_string(), until, "{zone}");
            assert!(notes.is_empty());
        }
    }

    #[test]
    fn a_bare_until_date_says_that_the_day_is_not_included() {
        let clock = clock("2026-01-01T00:00:00Z", "UTC");
        let until = |text| {
            let bounds = Bounds { until: Some(text), ..Bounds::default() };
            range(bounds, &clock).unwrap().1
        };
        assert_eq!(until("2025-06-30")[0].code, "until_exclusive");
        assert!(until("2025-06-30T00:00:00Z").is_empty());
    }

    #[test]
    fn a_range_without_time_in_it_is_a_mistake() {
        let clock = clock("2026-01-01T00:00:00Z", "UTC");
        for (since, until) in [("2025-06-01", "2025-06-01"), ("1h", "2h")] {
            let bounds = Bounds { since: Some(since), until: Some(until), month: None };
            let mistake = range(bounds, &clock).unwrap_err();
            assert!(matches!(mistake, Mistake::EmptyRange { .. }), "{mistake}");
        }
    }

    #[test]
    fn a_month_excludes_since_and_until() {
        let bounds = Bounds { since: Some("2025-06-01"), until: None, month: Some("2025-06") };
        let mistake = range(bounds, &clock("2026-01-01T00:00:00Z", "UTC")).unwrap_err();
        assert!(matches!(mistake, Mistake::MonthWithRange));
    }

    #[test]
    fn what_is_no_time_is_a_mistake_that_shows_how_to_write_one() {
        let clock = clock("2026-01-01T00:00:00Z", "UTC");
        for text in [
            "",
            "d",
            "7",
            "-7d",
            "7.5d",
            "7y",
            "2025-02-30",
            "2025-6-1",
            "tomorrow",
            "１d",
            "2025-06-01T25:00",
            "2025-06-01T08:30:00Zgarbage",
            "2025-06-01T08:30:00[Asia/Tokyo]",
        ] {
            let mistake = read(text, &clock).unwrap_err();
            assert!(matches!(mistake, Mistake::NotATime { .. }), "{text}: {mistake}");
        }
        for text in ["99999999999999999999d", "999999w"] {
            let mistake = read(text, &clock).unwrap_err();
            assert!(matches!(mistake, Mistake::TimeOutOfRange { .. }), "{text}: {mistake}");
        }
        for month in ["2025-13", "2025", "2025-6", "June", "9999-12"] {
            let bounds = Bounds { month: Some(month), ..Bounds::default() };
            let mistake = range(bounds, &clock).unwrap_err();
            assert!(matches!(mistake, Mistake::NotAMonth { .. }), "{month}: {mistake}");
        }
    }
}
