//! What comes out: one report, in the format that was asked for, at the place that was asked for.
//!
//! A format knows the report and nothing of where it came from; a destination knows bytes and nothing of
//! reports. How one value reads is decided once for all formats: `cell` for machines, `legible` for people.

mod accounting;
#[cfg(test)]
mod any_life;
mod blank;
mod cell;
mod csv;
mod destination;
mod findings;
mod html;
mod json;
mod jsonl;
mod legible;
mod markdown;
mod object;
mod otlp;
mod parquet;
mod perfetto;
mod roles;
mod rounded;
#[cfg(test)]
mod sample;
mod table;
mod timeline;

use std::io::Write;

use anyhow::Context;

use crate::report::Report;
pub use crate::request::Format;

pub use accounting::accounting_line;
pub use destination::{Destination, DestinationError, Unfinished};
pub use legible::note_line;

/// How a table may look where it is read; the other formats look the same everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; none off a terminal, where nothing is ever cut or wrapped.
    pub width: Option<u16>,
    pub color: bool,
}

/// How writing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The program that read our output has closed it, as `head` does: all it wanted was written.
    ReaderGone,
}

/// Says a line beside the answer, on standard error. Where nobody can hear it the answer still stands.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes the whole report and commits the destination; after an error the destination is as it was before.
pub fn write(
    report: &mut Report,
    format: Format,
    style: Style,
    mut destination: Destination,
) -> anyhow::Result<Outcome> {
    if matches!(format, Format::Table | Format::Markdown) {
        blank::drop_blanks(report)?;
        rounded::round_money(report)?;
    }
    let out = &mut destination;
    let written = match format {
        Format::Table if report.is_of_lives() => timeline::write(report, style, out),
        Format::Markdown if report.is_of_lives() => timeline::write_markdown(report, out),
        Format::Table => table::write(report, style, out),
        Format::Markdown => markdown::write(report, out),
        Format::Csv => csv::write(report, out),
        Format::Json => json::write(report, out),
        Format::Jsonl => jsonl::write(report, out),
        Format::Parquet => parquet::write(report, out),
        Format::Html => html::write(report, out),
        Format::Perfetto => Ok(perfetto::write(&report.lives, out)?),
        Format::Otlp => Ok(otlp::write(&report.lives, out)?),
        Format::Junit => findings::junit(report, out),
        Format::Github => findings::github(report, out),
    };
    finished(written, destination)
}

/// A part of a document.
pub enum Part {
    Report(Box<Report>),
    /// Markdown as it stands.
    Text(String),
}

/// Writes several reports as one Markdown document and commits the destination.
pub fn write_document(parts: Vec<Part>, mut destination: Destination) -> anyhow::Result<Outcome> {
    let out = &mut destination;
    let write_parts = || -> anyhow::Result<()> {
        for part in parts {
            match part {
                Part::Report(mut report) => {
                    blank::drop_blanks(&mut report)?;
                    rounded::round_money(&mut report)?;
                    markdown::write(&mut report, out)?;
                }
                Part::Text(text) => writeln!(out, "{text}")?,
            }
            writeln!(out)?;
        }
        Ok(())
    };
    let written = write_parts();
    finished(written, destination)
}

/// Commits what was written; after an error the destination is as it was before.
fn finished(written: anyhow::Result<()>, mut destination: Destination) -> anyhow::Result<Outcome> {
    match written.and_then(|()| Ok(destination.commit()?)) {
        Err(_) if destination.reader_gone() => Ok(Outcome::ReaderGone),
        ended => ended
            .map(|()| Outcome::Written)
            .with_context(|| format!("could not write the report to {}", destination.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_cannot_be_written_says_where_to() {
        let path = std::path::Path::new("/dev/full");
        if !path.exists() {
            return;
        }
        let destination = Destination::open(Some(path), Format::Json).unwrap();
        let error = write(&mut sample::empty(), Format::Json, Style::default(), destination).unwrap_err();
        assert!(format!("{error:#}").starts_with("could not write the report to /dev/full: "), "{error:#}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_closed_pipe_is_a_quiet_end_in_every_format() {
        use std::os::fd::AsRawFd;
        for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json, Format::Jsonl, Format::Parquet] {
            let (reader, writer) = std::io::pipe().unwrap();
            let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
            let destination = Destination::open(Some(path.as_ref()), format).unwrap();
            drop(reader);
            let outcome = write(&mut sample::every_type(), format, Style::default(), destination);
            assert_eq!(outcome.unwrap(), Outcome::ReaderGone, "{format:?}");
        }
    }
}
