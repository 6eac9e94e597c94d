//! Request ids, taken apart: when one was made, by which instance, as which of how many, and what it does not say.
//!
//! An id is only text. Each form that it may have is tried on it, then on what is left behind each prefix; a time that
//! no request can have shows that it only looks so. The forms are those whose clocks `queries/clocks.sql` watches, and
//! more.

mod counted;
mod dated;
mod digits;
mod epoch;
mod ksuid;
mod lines;
mod objectid;
mod openai;
mod part;
mod reading;
mod snowflake;
mod span_id;
mod trace_id;
mod traceparent;
mod ulid;
mod uuid;
mod xray;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use lines::Lines;

use part::Part;
use reading::{Certainty, Moment, Reading};

/// No form is longer, even with a prefix; and the work grows with the square of an id's separators.
const LONGEST: usize = 256;

/// What an id does not say itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where snowflakes count from; None: guessed.
    pub epoch: Option<Timestamp>,
    /// No id is made later than in the year after this one.
    pub now: Timestamp,
    /// The zone of times that name none.
    pub zone: TimeZone,
}

impl Options {
    /// No service that logs tokens is older.
    const FIRST_YEAR: i16 = 2015;

    fn last_year(&self) -> i16 {
        TimeZone::UTC.to_datetime(self.now).year().saturating_add(1)
    }

    fn is_plausible(&self, time: Timestamp) -> bool {
        (Self::FIRST_YEAR..=self.last_year()).contains(&TimeZone::UTC.to_datetime(time).year())
    }
}

/// One way to read an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub id: String,
    /// A word of its own for each form; `unknown`.
    pub form: &'static str,
    /// The form in words.
    pub title: &'static str,
    pub time: Option<Timestamp>,
    /// How exactly the id holds its time: `ms`, `s`, `day`, ...
    pub resolution: Option<&'static str>,
    /// Who made it: a machine, worker, node or process.
    pub instance: Option<String>,
    pub sequence: Option<String>,
    /// Bits that say nothing. Makers of UUIDs 7 and ULIDs may count in some of them.
    pub random_bits: Option<u32>,
    /// Which of time, instance and sequence the form has no room for; None of an unknown form.
    pub not_encoded: Option<String>,
    pub note: Option<String>,
}

impl Decoded {
    /// Whether the id has a known form.
    pub fn is_known(&self) -> bool {
        self.form != "unknown"
    }

    fn unknown(id: &str, note: String) -> Self {
        Decoded {
            id: id.to_owned(),
            form: "unknown",
            title: "no known form",
            time: None,
            resolution: None,
            instance: None,
            sequence: None,
            random_bits: None,
            not_encoded: None,
            note: Some(note),
        }
    }
}

/// The ways to read an id, never none: the most certain first, whose note names the others.
pub fn decode(id: &str, options: &Options) -> Vec<Decoded> {
    let text = id.trim();
    if text.is_empty() {
        return vec![Decoded::unknown(id, "empty".to_owned())];
    }
    if text.len() > LONGEST {
        return vec![Decoded::unknown(id, "longer than any known form".to_owned())];
    }
    let found = behind_prefixes(text, "", options);
    let found = match text.rfind(part::is_separator) {
        // `cmpl-...-0` is the first prompt of a batch, `chatcmpl-...-a1b2c3d4` one of several answers
        Some(last) if !is_known(&found) && text.len() - last <= 9 => {
            let (whole, suffix) = text.split_at(last);
            Some(behind_prefixes(whole, suffix, options)).filter(|behind| is_known(behind)).unwrap_or(found)
        }
        _ => found,
    };
    match found.first() {
        None => vec![Decoded::unknown(id, "no known form".to_owned())],
        Some(Found { reading, time: Err(implausible), .. }) if reading.certainty == Certainty::Unlikely => {
            vec![Decoded::unknown(id, format!("looks like {}, but {implausible}", reading.title))]
        }
        Some(_) => told(id, found),
    }
}

/// A reading, and whether its time can be meant.
struct Found<'a> {
    reading: Reading,
    time: Result<Option<Timestamp>, String>,
    prefix: &'a str,
    suffix: &'a str,
}

fn is_known(found: &[Found]) -> bool {
    found.first().is_some_and(|best| best.reading.certainty > Certainty::Unlikely)
}

/// The readings behind the shortest prefix that leaves a known form, the most certain first; else what only looks so.
fn behind_prefixes<'a>(text: &'a str, suffix: &'a str, options: &Options) -> Vec<Found<'a>> {
    let mut unlikely = Vec::new();
    for part in Part::all(text) {
        let found = |reading: Reading| {
            let time = reading.moment.map(|moment| plausible(moment, options)).transpose();
            Found {
                reading: if time.is_err() { reading.doubted() } else { reading },
                time,
                prefix: part.prefix,
                suffix,
            }
        };
        let mut all: Vec<Found> = readings(&part, options).into_iter().map(found).collect();
        all.sort_by_key(|found| std::cmp::Reverse(found.reading.certainty));
        if is_known(&all) {
            return all;
        }
        unlikely.extend(all);
    }
    unlikely
}

fn plausible(moment: Moment, options: &Options) -> Result<Timestamp, String> {
    let years = || format!("{} to {}", Options::FIRST_YEAR, options.last_year());
    let time = Timestamp::from_nanosecond(moment.nanoseconds)
        .map_err(|_| format!("its time would be beyond every calendar, outside {}", years()))?;
    match options.is_plausible(time) {
        true => Ok(time),
        false => Err(format!("its time would be {time}, outside {}", years())),
    }
}

fn readings(part: &Part, options: &Options) -> Vec<Reading> {
    let mut found = uuid::read(part);
    if part.is_apart() {
        let forms = [
            traceparent::read(part.text),
            xray::read(part.text),
            ulid::read(part),
            counted::read(part.text),
            ksuid::read(part.text),
            objectid::read(part.text),
            openai::read(part),
            span_id::read(part.text),
        ];
        found.extend(forms.into_iter().flatten());
        found.extend(trace_id::read(part.text));
    }
    if part.is_behind_a_word() {
        found.extend(dated::read(part.text, options));
        found.extend(epoch::read(part.text));
    }
    found.extend(snowflake::read(part, options));
    found
}

/// The readings as they are told; the first names those that are possible too.
fn told(id: &str, found: Vec<Found>) -> Vec<Decoded> {
    let possible = |other: &&Found| other.reading.certainty > Certainty::Unlikely || other.time.is_ok();
    let named = |other: &Found| match &other.time {
        Ok(Some(time)) => format!("{} ({time})", other.reading.title),
        _ => other.reading.title.to_owned(),
    };
    let others: Vec<String> = found.iter().skip(1).filter(possible).map(named).collect();
    let mut decoded: Vec<Decoded> =
        found.into_iter().filter(|found| possible(&found)).map(|found| found.decoded(id)).collect();
    if let Some(best) = decoded.first_mut().filter(|_| !others.is_empty()) {
        let note = best.note.take().into_iter().chain([format!("could also be: {}", others.join(", "))]);
        best.note = Some(note.collect::<Vec<_>>().join("; "));
    }
    decoded
}

impl Found<'_> {
    fn decoded(self, id: &str) -> Decoded {
        let Found { reading, time, prefix, suffix } = self;
        let not_encoded = reading.not_encoded();
        let is_timed = time.as_ref().is_ok_and(Option::is_some);
        let without = [(prefix, "prefix"), (suffix, "suffix")].into_iter().filter(|(text, _)| !text.is_empty());
        let without = without.map(|(text, place)| format!("without the {place} `{text}`"));
        let notes: Vec<String> = without
            .chain(reading.notes)
            .chain(time.as_ref().err().map(|implausible| format!("no time: {implausible}")))
            .collect();
        Decoded {
            id: id.to_owned(),
            form: reading.form,
            title: reading.title,
            time: time.ok().flatten(),
            resolution: reading.moment.filter(|_| is_timed).map(|moment| moment.resolution),
            instance: reading.instance,
            sequence: reading.sequence,
            random_bits: reading.random_bits,
            not_encoded: Some(not_encoded),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests;
