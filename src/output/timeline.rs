//! The whole life of a request for people: what explains it first, then the timeline, then all that is known.

mod axis;
mod chart;
mod difference;
mod fact;
mod grid;
mod headline;
mod ink;
mod layout;
mod markdown;
mod room;
mod section;
mod skyline;
mod standing;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unfriendly;

use std::io::{self, Write};
use std::slice;

use jiff::tz::TimeZone;

use crate::output::accounting::accounting_line;
use crate::output::{Style, legible};
use crate::report::Report;
use crate::trace::life::{Finding, Life};

use ink::{Ink, Line};
use layout::Layout;
use section::Section;

/// More findings than this hide the timeline.
const MOST_FINDINGS: usize = 6;
/// Columns of a finding at a terminal; off one it is one line however long it is.
const LONGEST_FINDING: usize = 240;

/// Writes a trace, and the notes that belong to it.
///
/// # Errors
/// `out` cannot be written.
pub fn write<W: Write>(report: &Report, style: Style, out: &mut W) -> anyhow::Result<()> {
    write_lives(&report.lives, &report.zone, shows_steps(report), style, out)?;
    if !report.lives.is_empty() && !report.notes.is_empty() {
        writeln!(out)?;
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "{}", legible::note_line(note)))?;
    Ok(())
}

/// The same for a CI job summary, an issue, a chat.
///
/// # Errors
/// `out` cannot be written.
pub fn write_markdown<W: Write>(report: &Report, out: &mut W) -> anyhow::Result<()> {
    markdown::write_lives(&report.lives, &report.zone, shows_steps(report), out)?;
    if !report.lives.is_empty() && !report.notes.is_empty() {
        writeln!(out)?;
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "- {}", super::markdown::escaped(&legible::note(note))))?;
    Ok(writeln!(out, "\n{}", super::markdown::escaped(&accounting_line(&report.source, &report.zone)))?)
}

fn shows_steps(report: &Report) -> bool {
    report.parameters.get("tokens") == Some(&true.into())
}

/// Writes the lives one after the other; two of them on the same scale, and then what sets them apart. With `steps`
/// every step of the answers is a row.
fn write_lives<W: Write>(lives: &[Life], zone: &TimeZone, steps: bool, style: Style, out: &mut W) -> io::Result<()> {
    let layouts: Vec<_> = match lives {
        // On one scale, or the longer one would not look longer.
        [_, _] => vec![Layout::of(lives, style.width); 2],
        _ => lives.iter().map(|life| Layout::of(slice::from_ref(life), style.width)).collect(),
    };
    let mut blocks = Vec::new();
    for (place, (life, layout)) in lives.iter().zip(&layouts).enumerate() {
        if place > 0 && lives.len() > 2 {
            blocks.push(vec![rule(layout, "")]);
        }
        blocks.push(above(life, layout, zone));
        if lives.len() != 2 {
            blocks.extend(below(life, steps, layout, zone));
        }
    }
    if let ([first, second], [layout, _]) = (lives, &layouts[..]) {
        blocks.push(section_lines(&difference::section(first, second, zone), layout));
        for life in lives {
            let sections = below(life, steps, layout, zone);
            blocks.extend((!sections.is_empty()).then(|| vec![rule(layout, &headline::id(life))]));
            blocks.extend(sections);
        }
    }
    let lines = blocks.join(&Line::default());
    lines.iter().try_for_each(|line| line.write(style.color, out))
}

/// What fits the first screen: who, why, and the timeline.
fn above(life: &Life, layout: &Layout, zone: &TimeZone) -> Vec<Line> {
    let (ink, mark) = headline::mark(life);
    let [total, began] = headline::when(life, zone);
    let first = vec![
        (Ink::Strong, headline::id(life)),
        (ink, format!("{mark} {}", headline::outcome(life))),
        (Ink::Strong, total),
        (Ink::Plain, began),
    ];
    let who = headline::who(life, zone).into_iter().map(|text| (Ink::Plain, text)).collect();
    let mut lines = ink::flowed(first, " · ", layout.line);
    lines.extend(ink::flowed(who, " · ", layout.line));
    if !life.findings.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(life.findings.iter().take(MOST_FINDINGS).flat_map(|finding| finding_lines(finding, layout)));
    if let Some(hidden) = life.findings.len().checked_sub(MOST_FINDINGS).filter(|hidden| *hidden > 0) {
        lines.push(Line::of(Ink::Quiet, format!("  {}", chart::more(hidden))));
    }
    lines.push(Line::default());
    lines.extend(chart::lines(life, layout, zone));
    lines
}

/// All that is known, a block for each section.
fn below(life: &Life, steps: bool, layout: &Layout, zone: &TimeZone) -> Vec<Vec<Line>> {
    section::all(life, steps, zone).iter().map(|section| section_lines(section, layout)).collect()
}

/// What parts one life from the next.
fn rule(layout: &Layout, id: &str) -> Line {
    let id = room::without_middle(id, layout.line.saturating_sub(3));
    let width = layout.line.min(layout::OFF_TERMINAL);
    if id.is_empty() {
        Line::of(Ink::Quiet, "─".repeat(width))
    } else {
        Line::of(Ink::Quiet, "── ").with(Ink::Strong, id)
    }
}

fn finding_lines(finding: &Finding, layout: &Layout) -> Vec<Line> {
    let (ink, mark) = match finding.severity {
        "error" => (Ink::Error, "✗ "),
        "warning" => (Ink::Warning, "! "),
        _ => (Ink::Quiet, "· "),
    };
    let room = layout.line.saturating_sub(2);
    let most = if layout.line == usize::MAX { usize::MAX } else { LONGEST_FINDING };
    let text = room::without_end(&legible::text(&finding.text), most);
    let starts = std::iter::once((ink, mark)).chain(std::iter::repeat((Ink::Plain, "  ")));
    let folded = room::folded(&text, room).into_iter();
    starts.zip(folded).map(|((ink, start), text)| Line::of(ink, start).with(Ink::Plain, text)).collect()
}

fn section_lines(section: &Section, layout: &Layout) -> Vec<Line> {
    let dropped = section.grid.dropped(layout.line);
    let title = Line::of(Ink::Strong, section.title);
    let room = layout.line.saturating_sub(title.width());
    let dropped = match dropped.is_empty() {
        true => String::new(),
        false => room::without_end(&format!("  (too narrow for {})", dropped.join(", ")), room),
    };
    let mut lines = vec![title.with(Ink::Quiet, dropped)];
    for sentence in &section.sentences {
        let folded = room::folded(sentence, layout.line.saturating_sub(2));
        lines.extend(folded.into_iter().map(|text| Line::indented(2).with(Ink::Plain, text)));
    }
    if !section.grid.rows.is_empty() {
        lines.extend(section.grid.lines(layout.line));
    }
    if section.grid.left_out > 0 {
        lines.push(Line::of(Ink::Quiet, format!("  {}", chart::more(section.grid.left_out))));
    }
    lines
}
