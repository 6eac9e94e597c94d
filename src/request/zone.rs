//! Time zones by name or offset, kept with the name that a report shows.

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{self, Offset, TimeZone};

use super::Mistake;
use crate::nearest::nearest;

/// A time zone and its name: `Asia/Shanghai`, `UTC` or `+08:00`.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    pub name: String,
    pub rules: TimeZone,
}

impl Zone {
    /// The zone of a report that names none.
    pub fn utc() -> Self {
        Zone { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// An IANA name in any case, or an offset from UTC such as `+08:00` or `-0330`.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") {
            return Ok(Self::utc());
        }
        let Ok(rules) = DateTimeParser::new().parse_time_zone(text) else {
            return Err(unknown(text));
        };
        let name = match (rules.iana_name(), rules.to_fixed_offset()) {
            (Some(name), _) => name.to_owned(),
            (None, Ok(offset)) => offset_name(offset),
            // POSIX rules such as `CST6CDT,M3.2.0,M11.1.0` mean something, but a report could not name them.
            (None, Err(_)) => return Err(unknown(text)),
        };
        Ok(Zone { name, rules })
    }
}

/// `+08:00`, as in the times that the report shows.
fn offset_name(offset: Offset) -> String {
    let minutes = offset.seconds().abs() / 60;
    let sign = if offset.seconds() < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn unknown(name: &str) -> Mistake {
    let known: Vec<String> = tz::db().available().map(|zone| zone.to_string()).collect();
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => ".".to_owned(),
    };
    Mistake::UnknownZone { name: name.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_any_case_and_are_shown_in_their_own() {
        assert_eq!(Zone::parse("asia/shanghai").unwrap().name, "Asia/Shanghai");
        assert_eq!(Zone::parse("utc").unwrap(), Zone::utc());
    }

    #[test]
    fn an_offset_is_a_zone_too() {
        for (text, seconds) in [("+08:00", 8 * 3600), ("+0800", 8 * 3600), ("-03:30", -12_600)] {
            let zone = Zone::parse(text).unwrap();
            let offset = zone.rules.to_fixed_offset().unwrap();
            assert_eq!(offset.seconds(), seconds, "{text}");
        }
        assert_eq!(Zone::parse("+0800").unwrap().name, "+08:00");
    }

    #[test]
    fn an_unknown_zone_is_named_with_the_nearest_and_an_example() {
        assert_eq!(
            Zone::parse("Asia/Shangai").unwrap_err().to_string(),
            "unknown time zone `Asia/Shangai`; did you mean `Asia/Shanghai`? \
             Write a name such as Asia/Shanghai, or an offset such as +08:00"
        );
        for text in ["", "Mars/Olympus", "+99:00", "CST6CDT,M3.2.0,M11.1.0"] {
            let sentence = Zone::parse(text).unwrap_err().to_string();
            assert!(sentence.contains("such as Asia/Shanghai"), "{sentence}");
        }
    }
}
