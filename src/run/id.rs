//! `infer-stats id`: what ids say of themselves.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};

use super::Ending;
use crate::ident::{self, Decoded, Lines};
use crate::output::{self, Destination, Outcome, Style};
use crate::record::Kind;
use crate::report::{Note, Report};
use crate::request::{Identification, Mistake};

/// A stream of ids may be of any length; so many are rows at a time.
const BATCH: usize = 8192;

const MEANINGS: [(&str, &str, &str); 9] = [
    ("id", "", "as it was given"),
    ("form", "", "the likeliest of the forms that it can have; unknown: none"),
    ("time", "", "when it says that it was made; null: it does not say, or nothing that can be meant"),
    ("resolution", "", "how exactly it holds that time: a unit, or day"),
    ("instance", "", "who made it: a machine, worker, node or process; null: it does not say"),
    ("sequence", "", "its number among those of its instance, time or day; null: it has none"),
    ("random_bits", "bits", "bits that say nothing; makers of UUIDs 7 and ULIDs may count in some; null: not known"),
    ("not_encoded", "", "which of time, instance and sequence its form has no room for; null: the form is unknown"),
    ("note", "", "what was taken off, guessed or doubted, and which other forms it can have"),
];

/// What nobody needs to see where no id has it.
const DETAILS: [&str; 6] = ["time", "resolution", "instance", "sequence", "random_bits", "not_encoded"];

/// Takes ids apart; a row each, in their order.
pub(super) fn identify(asked: &Identification) -> anyhow::Result<Ending> {
    let mut report = Report::of_rows("id", "Ids", rows(&[])?, &MEANINGS)?;
    let mut is_any_known = false;
    let mut batch = Vec::with_capacity(BATCH);
    for id in ids(asked)? {
        let decoded = ident::decode(&id?, &asked.options).into_iter().next();
        is_any_known |= decoded.as_ref().is_some_and(Decoded::is_known);
        batch.extend(decoded);
        if batch.len() == BATCH {
            report.rows.push(rows(&batch)?)?;
            batch.clear();
        }
    }
    report.rows.push(rows(&batch)?)?;
    let parameters = [
        ("epoch", asked.options.epoch.map(|epoch| epoch.to_string())),
        ("source_tz", Some(asked.source_zone.name.clone())),
        ("tz", Some(asked.zone.name.clone())),
    ];
    report.parameters.extend(parameters.map(|(name, value)| (name.to_owned(), value.into())));
    report.notes = asked.notes.iter().map(Note::from).collect();
    report.details = DETAILS.map(str::to_owned).into();
    report.zone = asked.zone.rules.clone();
    let destination = Destination::open(asked.file.as_deref(), asked.format)?;
    let style = Style { width: destination.terminal_width(), color: false };
    let outcome = output::write(&mut report, asked.format, style, destination)?;
    Ok(if is_any_known || outcome == Outcome::ReaderGone { Ending::Done } else { Ending::NothingFound })
}

/// The ids in their order, those of standard input where a `-` stands, or where none was named.
fn ids(asked: &Identification) -> anyhow::Result<impl Iterator<Item = anyhow::Result<String>> + '_> {
    // whoever types `infer-stats id` and nothing else waits for help, not for lines
    anyhow::ensure!(!asked.ids.is_empty() || !io::stdin().is_terminal(), Mistake::NoIds);
    let piped = asked.ids.is_empty().then_some("-");
    let named = asked.ids.iter().map(String::as_str).chain(piped);
    Ok(named.flat_map(|id| -> Box<dyn Iterator<Item = anyhow::Result<String>>> {
        match id {
            "-" => Box::new(Lines::new(io::stdin().lock()).map(|line| line.context("could not read standard input"))),
            id => Box::new(std::iter::once(Ok(id.to_owned()))),
        }
    }))
}

fn rows(decoded: &[Decoded]) -> anyhow::Result<RecordBatch> {
    let texts =
        |of: fn(&Decoded) -> Option<&str>| -> ArrayRef { Arc::new(decoded.iter().map(of).collect::<StringArray>()) };
    let nanoseconds = |decoded: &Decoded| i64::try_from(decoded.time?.as_nanosecond()).ok();
    let times = decoded.iter().map(nanoseconds).collect::<TimestampNanosecondArray>();
    let random_bits = decoded.iter().map(|decoded| decoded.random_bits.map(i64::from)).collect::<Int64Array>();
    let columns: [(&str, ArrayRef); 9] = [
        ("id", texts(|decoded| Some(decoded.id.as_str()))),
        ("form", texts(|decoded| Some(decoded.form))),
        ("time", Arc::new(times.with_data_type(Kind::Time.data_type()))),
        ("resolution", texts(|decoded| decoded.resolution)),
        ("instance", texts(|decoded| decoded.instance.as_deref())),
        ("sequence", texts(|decoded| decoded.sequence.as_deref())),
        ("random_bits", Arc::new(random_bits)),
        ("not_encoded", texts(|decoded| decoded.not_encoded.as_deref())),
        // nothing to say is not unknown
        ("note", texts(|decoded| Some(decoded.note.as_deref().unwrap_or_default()))),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))?)
}
