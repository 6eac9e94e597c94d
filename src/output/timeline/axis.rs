//! The one time axis that everything is drawn on.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::output::legible;
use crate::trace::life::Life;

use super::{fact, room};

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Below this the clock's milliseconds would tell the middle and the end of the axis apart badly.
const CLOCK_FROM_MS: f64 = 10.0;
const DAY_MS: f64 = 86_400_000.0;

/// So many milliseconds in so many columns.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub length_ms: f64,
    pub cells: usize,
}

impl Axis {
    /// The length that holds all stages and tokens, should the records end before them.
    pub fn length(life: &Life) -> f64 {
        let stages = life.stages.iter().map(|stage| stage.end_ms);
        let steps = life.tokens.iter().flat_map(|tokens| &tokens.steps).filter_map(|step| step.at_ms);
        stages.chain(steps).filter(|end| end.is_finite()).fold(life.length_ms.max(0.0), f64::max)
    }

    /// Where a time stands, in columns and parts of one.
    fn place(&self, at_ms: f64) -> f64 {
        let part = if self.length_ms > 0.0 { at_ms / self.length_ms } else { 0.0 };
        part.clamp(0.0, 1.0) * self.cells as f64
    }

    /// The column that a time falls in.
    pub fn cell(&self, at_ms: f64) -> usize {
        (self.place(at_ms) as usize).min(self.cells.saturating_sub(1))
    }

    /// Whether a time is on the axis at all.
    pub fn holds(&self, at_ms: f64) -> bool {
        (0.0..=self.length_ms).contains(&at_ms)
    }

    /// A stretch to scale: its length to an eighth of a column, its start to a column, for a block can be filled from
    /// the left only.
    pub fn bar(&self, start_ms: f64, end_ms: f64) -> String {
        let eighths = ((self.place(end_ms) - self.place(start_ms)) * 8.0).round() as usize;
        let eighths = eighths.clamp(1, (self.cells * 8).max(1));
        let start = (self.place(start_ms).round() as usize).min(self.cells.saturating_sub(eighths.div_ceil(8)));
        let mut bar = " ".repeat(start) + &"█".repeat(eighths / 8);
        bar.extend((eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]));
        bar
    }

    /// A line with the start, the middle and the end: by the clock where that fits and tells them apart.
    pub fn ruler(&self, origin_ns: Option<i64>, zone: &TimeZone) -> String {
        let at = [0.0, self.length_ms / 2.0, self.length_ms];
        let readable = (CLOCK_FROM_MS..DAY_MS).contains(&self.length_ms);
        let clocks = origin_ns.filter(|_| readable).and_then(|origin| {
            let times = at.map(|at_ms| clock(origin, at_ms, zone));
            let [Some(start), Some(middle), Some(end)] = times else { return None };
            self.spread([&start, &middle, &end]).filter(|ruler| ruler.matches(" ─").count() == 2)
        });
        let offsets = || {
            let [start, middle, end] = at.map(fact::amount);
            let end_with_unit = format!("{end} ms");
            self.spread([&start, &middle, &end_with_unit]).or_else(|| self.spread([&start, "", &end_with_unit]))
        };
        clocks.or_else(offsets).unwrap_or_else(|| "─".repeat(self.cells))
    }

    /// The three with lines between them, the middle one in the middle; an empty one leaves two.
    fn spread(&self, [start, middle, end]: [&str; 3]) -> Option<String> {
        let [first, second, last] = [start, middle, end].map(room::width);
        let line =
            |length: usize| if length < 3 { " ".repeat(length) } else { format!(" {} ", "─".repeat(length - 2)) };
        if middle.is_empty() {
            let between = self.cells.checked_sub(first + last).filter(|between| *between > 0)?;
            return Some(format!("{start}{}{end}", line(between)));
        }
        let before = (self.cells / 2).checked_sub(first + second / 2).filter(|before| *before > 0)?;
        let after = self.cells.checked_sub(first + before + second + last).filter(|after| *after > 0)?;
        Some(format!("{start}{}{middle}{}{end}", line(before), line(after)))
    }
}

/// The time of day to the millisecond.
pub fn clock(origin_ns: i64, at_ms: f64, zone: &TimeZone) -> Option<String> {
    let time = i128::from(origin_ns).saturating_add((at_ms * 1e6).round() as i128);
    let time = Timestamp::from_nanosecond(time).ok()?;
    Some(time.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S%.3f").to_string())
}

/// The moment, with the date and the offset of the zone.
pub fn moment(origin_ns: i64, zone: &TimeZone) -> Option<String> {
    Timestamp::from_nanosecond(i128::from(origin_ns)).ok().map(|time| legible::time(time, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_to_scale_in_eighths_and_never_vanish() {
        let axis = Axis { length_ms: 1000.0, cells: 10 };
        let drawn = [(0.0, 1000.0), (0.0, 512.5), (500.0, 562.5), (900.0, 1000.0), (0.0, 0.0), (1000.0, 1000.0)]
            .map(|(start, end)| axis.bar(start, end));
        assert_eq!(drawn, ["██████████", "█████▏", "     ▋", "         █", "▏", "         ▏"]);
    }

    #[test]
    fn what_lies_beside_the_axis_is_drawn_at_its_edge() {
        let axis = Axis { length_ms: 1000.0, cells: 10 };
        assert_eq!((axis.cell(-5.0), axis.cell(5000.0)), (0, 9));
        assert!(!axis.holds(-5.0) && axis.holds(0.0) && axis.holds(1000.0));
        assert_eq!(axis.bar(-500.0, 5000.0), "██████████");
        assert_eq!(Axis { length_ms: 0.0, cells: 10 }.bar(0.0, 0.0), "▏");
    }

    #[test]
    fn the_ruler_tells_three_times_as_well_as_it_can() {
        let ruler = |length_ms, cells| Axis { length_ms, cells }.ruler(Some(1_748_736_000_123_000_000), &TimeZone::UTC);
        assert_eq!(ruler(3000.0, 48), "00:00:00.123 ──── 00:00:01.623 ──── 00:00:03.123");
        assert_eq!(ruler(3000.0, 24), "0 ─────── 1,500 3,000 ms");
        assert_eq!(ruler(3000.0, 14), "0 ─── 3,000 ms");
        assert_eq!(ruler(3000.0, 6), "──────");
        assert_eq!(ruler(4.5, 30), "0 ────────── 2.25 ───── 4.5 ms");
        assert_eq!(ruler(3000.0, 40), "0 ─────────────── 1,500 ─────── 3,000 ms");
    }
}
