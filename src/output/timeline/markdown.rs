//! The life of a request as Markdown: what a CI job summary, an issue or a chat shows.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use crate::output::legible;
use crate::output::markdown::escaped;
use crate::trace::life::{Life, Stage};

use super::axis::Axis;
use super::grid::{Grid, Kind};
use super::layout::role;
use super::section::{self, Section};
use super::{chart, difference, fact, headline, standing};

const BAR_CELLS: usize = 20;

/// Writes the lives as headings, lists and tables; of two also what sets them apart.
///
/// # Errors
/// `out` cannot be written.
pub fn write_lives<W: Write>(lives: &[Life], zone: &TimeZone, steps: bool, out: &mut W) -> io::Result<()> {
    for (place, life) in lives.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        write_life(life, zone, steps, out)?;
    }
    if let [first, second] = lives {
        writeln!(out)?;
        write_section("##", &difference::section(first, second, zone), out)?;
    }
    Ok(())
}

fn write_life<W: Write>(life: &Life, zone: &TimeZone, steps: bool, out: &mut W) -> io::Result<()> {
    writeln!(out, "## {}\n", escaped(&headline::id(life)))?;
    let (_, mark) = headline::mark(life);
    let how = std::iter::once(format!("{mark} {}", headline::outcome(life))).chain(headline::when(life, zone));
    for line in [how.collect::<Vec<_>>(), headline::who(life, zone)] {
        writeln!(out, "- {}", escaped(&line.join(" · ")))?;
    }
    if !life.findings.is_empty() {
        writeln!(out, "\n### Findings\n")?;
    }
    for finding in &life.findings {
        let [severity, text] = [finding.severity, &finding.text].map(|text| escaped(&legible::text(text)));
        writeln!(out, "- **{severity}**: {text}")?;
    }
    write_section("\n###", &stages(life), out)?;
    section::all(life, steps, zone).iter().try_for_each(|section| write_section("\n###", section, out))
}

/// The timeline in numbers, with the length of each stage to scale.
fn stages(life: &Life) -> Section {
    let columns = [
        ("role", Kind::Id, 0),
        ("stage", Kind::Sentence, 0),
        ("start ms", Kind::Number, 0),
        ("took ms", Kind::Number, 0),
        ("share", Kind::Number, 0),
        ("length", Kind::Sentence, 0),
        ("standing", Kind::Sentence, 0),
    ];
    let axis = Axis { length_ms: Axis::length(life), cells: BAR_CELLS };
    let row = |stage: &Stage| {
        let name = legible::text(stage.name);
        vec![
            role(stage),
            if stage.dominant { format!("▸ {name}") } else { name },
            fact::number(Some(stage.start_ms)),
            fact::number(Some(stage.duration_ms)),
            fact::share(stage.share),
            axis.bar(0.0, stage.end_ms - stage.start_ms),
            stage.standing.as_ref().map(|standing| standing::long(stage, standing)).unwrap_or_default(),
        ]
    };
    let grid = Grid::of(&columns).filled(life.stages.iter().map(row), usize::MAX).known();
    let sentences = if life.stages.is_empty() { vec!["stages unknown".to_owned()] } else { Vec::new() };
    Section { title: "Timeline", sentences, grid }
}

fn write_section<W: Write>(level: &str, section: &Section, out: &mut W) -> io::Result<()> {
    writeln!(out, "{level} {}\n", section.title)?;
    for sentence in &section.sentences {
        writeln!(out, "- {}", escaped(sentence))?;
    }
    let grid = &section.grid;
    if grid.rows.is_empty() {
        return Ok(());
    }
    if !section.sentences.is_empty() {
        writeln!(out)?;
    }
    write_row(grid.columns.iter().map(|column| column.name), out)?;
    let alignments = grid.columns.iter().map(|column| if column.kind == Kind::Number { " --: |" } else { " :-- |" });
    writeln!(out, "|{}", alignments.collect::<String>())?;
    grid.rows.iter().try_for_each(|row| write_row(row.iter().map(String::as_str), out))?;
    if grid.left_out > 0 {
        writeln!(out, "\n{}", escaped(&chart::more(grid.left_out)))?;
    }
    Ok(())
}

fn write_row<'a, W: Write>(values: impl Iterator<Item = &'a str>, out: &mut W) -> io::Result<()> {
    let cells = values.map(|value| format!(" {} |", escaped(value)));
    writeln!(out, "|{}", cells.collect::<String>())
}
