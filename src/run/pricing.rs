//! `infer-stats prices`: what a price book holds, and what is wrong with it.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};

use super::{Ending, print};
use crate::cost::book::Book;
use crate::cost::sanity::{self, Finding, Severity};
use crate::cost::{lock, tables};
use crate::output::{self, Destination, Style};
use crate::report::Report;
use crate::request::{BookQuestion, Mistake, Pricing};

/// A price book to begin with.
const EXAMPLE: &str = include_str!("../../prices.example.toml");

/// Does what was asked about a price book.
pub(super) fn pricing(pricing: &Pricing) -> anyhow::Result<Ending> {
    match pricing {
        Pricing::Example => print(|out| Ok(out.write_all(EXAMPLE.as_bytes())?)),
        Pricing::Lock(book) => {
            Book::parse(&book.display().to_string(), &text(book)?)?;
            let lock = lock::lock(book)?;
            print(|out| Ok(writeln!(out, "{} locks {}", lock.display(), book.display())?))
        }
        Pricing::List(question) => {
            let rows = tables::price_list(&Book::read(&question.book)?)?;
            show(question, "prices list", "Prices", rows, &LISTED)?;
            Ok(Ending::Done)
        }
        Pricing::Check(question) => {
            let text = text(&question.book)?;
            let mut found = sanity::findings(&Book::parse(&question.book.display().to_string(), &text)?);
            if let Err(changed) = lock::check(&question.book, &text) {
                let (severity, subject) = (Severity::Error, "the book".to_owned());
                found.insert(0, Finding { severity, subject, text: changed.to_string() });
            }
            let is_wrong = found.iter().any(|finding| finding.severity == Severity::Error);
            show(question, "prices check", "Findings in the price book", findings(&found)?, &FOUND)?;
            Ok(if is_wrong { Ending::Breached } else { Ending::Done })
        }
    }
}

fn text(book: &Path) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(book).map_err(|reason| Mistake::UnreadablePrices { path: book.to_owned(), reason })?)
}

fn findings(found: &[Finding]) -> anyhow::Result<RecordBatch> {
    let column = |of: fn(&Finding) -> &str| -> ArrayRef {
        Arc::new(found.iter().map(|finding| Some(of(finding))).collect::<StringArray>())
    };
    Ok(RecordBatch::try_from_iter([
        ("severity", column(|finding| finding.severity.word())),
        ("model", column(|finding| &finding.subject)),
        ("what", column(|finding| &finding.text)),
    ])?)
}

/// Columns with their units and meanings.
type Meanings = [(&'static str, &'static str, &'static str)];

const FOUND: [(&str, &str, &str); 3] = [
    ("severity", "", "info, warning or error"),
    ("model", "", "the model, and the day of the price"),
    ("what", "", "what is remarkable about it"),
];

const LISTED: [(&str, &str, &str); 17] = [
    ("model", "", "the name of the model"),
    ("provider", "", "only for records of this provider, or of none"),
    ("since", "", "from when on the price holds; null: always"),
    ("until", "", "until when; null: still"),
    ("tier", "", "the service tier; null: the base price"),
    ("input", "per 1M tokens", "an input token that no cache held"),
    ("cached", "per 1M tokens", "a token read from the prefix cache; null: as input"),
    ("write_5m", "per 1M tokens", "a token written to a cache for five minutes; null: as input"),
    ("write_1h", "per 1M tokens", "a token written to a cache for an hour; null: as for five minutes"),
    ("output", "per 1M tokens", "an output token; null: the model has no output"),
    ("reasoning", "per 1M tokens", "a reasoning token; null: as output"),
    ("total", "per 1M tokens", "any token, where the total is billed"),
    ("request", "per request", "the fee of a request"),
    ("above", "tokens", "the price is that of longer prompts than this"),
    ("mode", "", "whole: of the whole request; marginal: of the tokens above alone"),
    ("currency", "", "the currency of the price"),
    ("source", "", "where the price comes from"),
];

fn show(
    question: &BookQuestion,
    name: &str,
    title: &str,
    rows: RecordBatch,
    meanings: &Meanings,
) -> anyhow::Result<()> {
    let mut report = Report::of_rows(name, title, rows, meanings)?;
    let book = question.book.file_name().map(|name| name.to_string_lossy());
    report.parameters.insert("book".to_owned(), book.into());
    let destination = Destination::open(question.file.as_deref(), question.format)?;
    let style = Style { width: destination.terminal_width(), color: false };
    output::write(&mut report, question.format, style, destination)?;
    Ok(())
}
