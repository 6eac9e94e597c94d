//! The timeline itself: stages as bars, events as marks and tokens as a line, all on one axis.

use jiff::tz::TimeZone;

use crate::output::legible;
use crate::trace::life::{Life, Stage, Step};

use super::ink::{Ink, Line};
use super::layout::{Layout, role};
use super::{fact, room, skyline, standing};

/// More stages than this hide what follows; the shortest are left out.
const MOST_STAGES: usize = 16;
/// More events than this are marks without words.
const MOST_EVENTS: usize = 4;
const EVENT: char = '◆';

/// The lines of one life.
pub fn lines(life: &Life, layout: &Layout, zone: &TimeZone) -> Vec<Line> {
    let rows = [stages(life, layout), events(life, layout), tokens(life, layout)].concat();
    if rows.is_empty() {
        let why = if life.origin_ns.is_none() { ": no record has a time" } else { ": no record tells a stage" };
        return vec![Line::of(Ink::Quiet, format!("  stages unknown{why}"))];
    }
    [vec![header(life, layout, zone)], rows].concat()
}

fn header(life: &Life, layout: &Layout, zone: &TimeZone) -> Line {
    let ruler = layout.axis.ruler(life.origin_ns, zone);
    let line = Line::indented(layout.axis_at()).left(Ink::Quiet, ruler, layout.axis.cells);
    if life.stages.is_empty() {
        line
    } else {
        beside(line, Ink::Quiet, ["took", "share", ""].map(str::to_owned), layout)
    }
}

/// Duration, share and standing, where there is room for them.
fn beside(line: Line, ink: Ink, [took, share, standing]: [String; 3], layout: &Layout) -> Line {
    let columns = [(took, layout.took), (share, layout.share)];
    let shown = columns.into_iter().filter(|(_, width)| *width > 0);
    let line = shown.fold(line, |line, (text, width)| line.with(Ink::Plain, "  ").right(ink, text, width));
    if layout.standing == 0 { line } else { line.with(Ink::Plain, "  ").left(ink, standing, layout.standing) }
}

fn stages(life: &Life, layout: &Layout) -> Vec<Line> {
    let mut shown: Vec<(usize, &Stage)> = life.stages.iter().enumerate().collect();
    shown.sort_by(|(_, one), (_, other)| other.duration_ms.total_cmp(&one.duration_ms));
    shown.truncate(MOST_STAGES);
    shown.sort_by_key(|(place, _)| *place);
    let mut lines = Vec::new();
    let mut before = None;
    for (_, stage) in shown {
        let role = role(stage);
        let label = if before.as_ref() == Some(&role) { String::new() } else { role.clone() };
        before = Some(role);
        lines.extend(stage_lines(stage, &label, layout));
    }
    let hidden = life.stages.len().saturating_sub(MOST_STAGES);
    if hidden > 0 {
        lines.push(Line::of(Ink::Quiet, format!("  {}", more(hidden))));
    }
    lines
}

/// The bar, and below it how far it is from others of its kind where that is the point.
fn stage_lines(stage: &Stage, role: &str, layout: &Layout) -> Vec<Line> {
    let ink = if stage.dominant { Ink::Strong } else { Ink::Plain };
    let bar_ink = match stage.name {
        "queue" | "network" | "unexplained" => Ink::Waiting,
        "prefill" => Ink::Reading,
        "decode" => Ink::Writing,
        _ => Ink::Plain,
    };
    let short = stage.standing.as_ref().map_or("", |standing| standing::short(stage, standing));
    let line = Line::of(ink, if stage.dominant { "▸ " } else { "  " })
        .left(ink, room::without_middle(role, layout.role), layout.role + 1)
        .left(ink, legible::text(stage.name), layout.stage + 1)
        .left(bar_ink, layout.axis.bar(stage.start_ms, stage.end_ms), layout.axis.cells);
    let numbers = [fact::ms(Some(stage.duration_ms)), fact::share(stage.share), short.to_owned()];
    let mut lines = vec![beside(line, ink, numbers, layout)];
    if let Some(standing) = stage.standing.as_ref().filter(|standing| standing::stands_out(stage, standing)) {
        let text = standing::long(stage, standing);
        let indent = layout.axis_at().min(layout.line.saturating_sub(room::width(&text))).max(2);
        let folded = room::folded(&text, layout.line.saturating_sub(indent));
        lines.extend(folded.into_iter().map(|text| Line::indented(indent).with(Ink::Quiet, text)));
    }
    lines
}

fn events(life: &Life, layout: &Layout) -> Vec<Line> {
    let mut timed: Vec<_> = life.events.iter().filter_map(|event| Some((event.at_ms?, event))).collect();
    // What the server said of itself explains more than a line that happens to carry the id.
    timed.sort_by_key(|(_, event)| event.name == "line");
    let rest = timed.split_off(timed.len().min(MOST_EVENTS));
    timed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut lines: Vec<_> = timed
        .into_iter()
        .map(|(at_ms, event)| {
            let name = fact::word(Some(&event.name));
            let text = legible::text(&event.text);
            let fits = room::width(&name) <= layout.label();
            let (label, words) = if fits { (name, text) } else { ("event".to_owned(), format!("{name} {text}")) };
            told(&label, at_ms, EVENT, words.trim_end(), Ink::Warning, layout)
        })
        .collect();
    if !rest.is_empty() {
        let label = format!("{} more", legible::grouped(&rest.len().to_string()));
        lines.push(marks(&label, rest.into_iter().map(|(at_ms, _)| at_ms), EVENT, Ink::Warning, layout));
    }
    lines
}

/// The steps as a line of heights, and below it the steps that were not as they should be.
fn tokens(life: &Life, layout: &Layout) -> Vec<Line> {
    let Some(tokens) = life.tokens.as_ref().filter(|tokens| tokens.steps.iter().any(|step| step.at_ms.is_some()))
    else {
        return Vec::new();
    };
    let skyline = skyline::over_time(&tokens.steps, &layout.axis);
    let unit = fact::word(Some(tokens.unit));
    let line = Line::indented(2)
        .left(Ink::Plain, room::without_end(&format!("{unit}s"), layout.label()), layout.label() + 1)
        .left(Ink::Writing, skyline, layout.axis.cells);
    let most = tokens.itl.as_ref().map(|itl| format!("  max {}", fact::ms(Some(itl.max_ms)))).unwrap_or_default();
    let fits = line.width() + room::width(&most) <= layout.line;
    let mut lines = vec![if fits { line.with(Ink::Plain, most) } else { line }];
    match tokens.stalls.as_slice() {
        [] => {}
        [stall] => lines.extend(stall.at_ms.map(|at_ms| {
            let text = legible::text(&stall.text);
            told("stall", at_ms, '▲', &text, Ink::Error, layout)
        })),
        stalls => lines.push(marks("stalls", stalls.iter().filter_map(|stall| stall.at_ms), '▲', Ink::Error, layout)),
    }
    for (label, mark, state) in [("misses", '○', "cache_miss"), ("recomputes", '◇', "recompute")] {
        let of_state = |step: &&Step| step.state == state;
        let mut times = tokens.steps.iter().filter(of_state).filter_map(|step| step.at_ms).peekable();
        if times.peek().is_some() {
            lines.push(marks(label, times, mark, Ink::Warning, layout));
        }
    }
    lines
}

/// A mark on the axis and beside it the time and the words, on the side that has room for them.
fn told(label: &str, at_ms: f64, mark: char, words: &str, ink: Ink, layout: &Layout) -> Line {
    let cell = layout.axis.cell(at_ms);
    let mark = if layout.axis.holds(at_ms) {
        mark
    } else if at_ms < 0.0 {
        '◁'
    } else {
        '▷'
    };
    let line = Line::indented(2).left(Ink::Plain, room::without_end(label, layout.label()), layout.label() + 1);
    let (left, right) = (cell.saturating_sub(1), layout.line.saturating_sub(layout.axis_at() + cell + 2));
    // The mark tells the time well enough where the words need the room.
    let at = fact::ms(Some(at_ms));
    let timed = if words.is_empty() { at } else { format!("{at}: {words}") };
    let words = if room::width(&timed) <= right.max(left) { &timed } else { words };
    let wide = room::width(words);
    if wide <= right || right >= left {
        line.with(Ink::Plain, " ".repeat(cell))
            .with(ink, mark)
            .with(Ink::Plain, " ")
            .with(Ink::Plain, room::without_end(words, right))
    } else {
        line.right(Ink::Plain, room::without_end(words, left), left).with(Ink::Plain, " ").with(ink, mark)
    }
}

/// Marks on the axis without words, and how many they are.
fn marks(label: &str, times: impl Iterator<Item = f64>, mark: char, ink: Ink, layout: &Layout) -> Line {
    let mut cells = vec![' '; layout.axis.cells];
    let mut count = 0_usize;
    for at_ms in times {
        cells[layout.axis.cell(at_ms)] = mark;
        count += 1;
    }
    let line = Line::indented(2).left(Ink::Plain, room::without_end(label, layout.label()), layout.label() + 1).left(
        ink,
        cells.into_iter().collect::<String>(),
        layout.axis.cells,
    );
    let count = format!("  {}", legible::grouped(&count.to_string()));
    if label.ends_with("more") || line.width() + count.len() > layout.line {
        line
    } else {
        line.with(Ink::Plain, count)
    }
}

/// What a cut list ends with.
pub fn more(hidden: usize) -> String {
    format!("… and {} more (--format json has all)", legible::grouped(&hidden.to_string()))
}
