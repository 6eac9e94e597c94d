//! Snowflakes: milliseconds since an epoch of their own, a worker and a number, in 63 bits written in decimal.

use jiff::Timestamp;

use super::Options;
use super::digits::decimal;
use super::part::{Part, is_separator};
use super::reading::{Certainty, Moment, Reading};

/// 2010-11-04T01:42:54.657Z; most libraries took it over.
const TWITTER_MS: i64 = 1_288_834_974_657;
/// 2015-01-01.
const DISCORD_MS: i64 = 1_420_070_400_000;

pub fn read(part: &Part, options: &Options) -> Vec<Reading> {
    // a name may stand before it, another number may not
    let before = part.prefix.strip_suffix(is_separator).unwrap_or(part.prefix);
    let may_follow = part.prefix.is_empty() || before.ends_with(|letter: char| letter.is_ascii_alphabetic());
    // fewer digits are of the first days of an epoch
    let least = if options.epoch.is_some() { 12 } else { 15 };
    let has_form = (least..=19).contains(&part.text.len()) && !part.text.starts_with('0');
    let number = decimal(part.text).and_then(|number| i64::try_from(number).ok());
    let Some(number) = number.filter(|_| may_follow && has_form) else { return Vec::new() };
    if let Some(epoch) = options.epoch {
        return vec![of(number, epoch, "snowflake of the given epoch")];
    }
    let guessed = |(epoch_ms, title)| {
        let epoch = Timestamp::from_millisecond(epoch_ms).ok()?;
        let mut reading = of(number, epoch, title);
        reading.notes.insert(0, format!("epoch guessed: {epoch}"));
        Some(reading)
    };
    let mastodon = Reading {
        moment: Some(Moment::of_milliseconds(number >> 16)),
        sequence: Some((number & 0xffff).to_string()),
        ..Reading::new("snowflake", "snowflake of Mastodon's kind", Certainty::Possible)
    };
    let epochs = [(TWITTER_MS, "snowflake of Twitter's epoch"), (DISCORD_MS, "snowflake of Discord's epoch")];
    epochs.into_iter().filter_map(guessed).chain([mastodon]).collect()
}

fn of(number: i64, epoch: Timestamp, title: &'static str) -> Reading {
    let worker = number >> 12 & 0x3ff;
    Reading {
        moment: Some(Moment::of_milliseconds(number >> 22).after(epoch)),
        instance: Some(worker.to_string()),
        sequence: Some((number & 0xfff).to_string()),
        random_bits: Some(0),
        notes: vec![format!("instance {worker} is worker {} of datacenter {}", worker & 0x1f, worker >> 5)],
        ..Reading::new("snowflake", title, Certainty::Likely)
    }
}
