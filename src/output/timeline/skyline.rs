//! Steps as a line of eight heights, from zero to the longest.

use crate::trace::life::Step;

use super::axis::Axis;

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Over the axis: in each column the longest of the steps that took place in it. Blank before the first token and after
/// the last.
pub fn over_time(steps: &[Step], axis: &Axis) -> String {
    let mut columns = vec![None::<f64>; axis.cells];
    for (place, step) in steps.iter().enumerate() {
        let Some(at_ms) = step.at_ms else { continue };
        // The time to the first token is the prefill, and would dwarf every gap.
        let took = if place == 0 { None } else { step.step_ms.filter(|took| took.is_finite()) };
        let cells = axis.cell(at_ms - took.unwrap_or(0.0))..=axis.cell(at_ms);
        for column in columns.get_mut(cells).into_iter().flatten() {
            let height = took.unwrap_or(0.0).max(0.0);
            *column = Some(column.map_or(height, |before| before.max(height)));
        }
    }
    drawn(&columns)
}

/// Over the tokens, where no step has a time: in each column the longest of its steps.
pub fn over_index(steps: &[Step], cells: usize) -> String {
    let gaps: Vec<_> = steps.iter().skip(1).map(|step| step.step_ms.filter(|took| took.is_finite())).collect();
    let longest = |gaps: &[Option<f64>]| gaps.iter().flatten().copied().reduce(f64::max);
    let columns: Vec<_> = gaps.chunks(gaps.len().div_ceil(cells.max(1)).max(1)).map(longest).collect();
    drawn(&columns)
}

fn drawn(columns: &[Option<f64>]) -> String {
    let most = columns.iter().flatten().copied().fold(0.0, f64::max);
    let height = |value: f64| {
        let part = if most > 0.0 { value.max(0.0) / most } else { 0.0 };
        HEIGHTS[((part * 8.0).ceil() as usize).clamp(1, HEIGHTS.len()) - 1]
    };
    columns.iter().map(|column| column.map_or(' ', height)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_ms: Option<f64>, step_ms: f64) -> Step {
        Step { at_ms, step_ms: Some(step_ms), ..Step::default() }
    }

    #[test]
    fn a_stall_stands_as_wide_and_as_high_as_it_was_long() {
        let steps =
            [step(Some(400.0), 400.0), step(Some(450.0), 50.0), step(Some(750.0), 300.0), step(Some(790.0), 40.0)];
        assert_eq!(over_time(&steps, &Axis { length_ms: 1000.0, cells: 10 }), "    ████  ");
        let calm = (0..10).map(|n| step(Some(f64::from(n) * 100.0), if n == 5 { 100.0 } else { 25.0 }));
        assert_eq!(over_time(&calm.collect::<Vec<_>>(), &Axis { length_ms: 1000.0, cells: 10 }), "▂▂▂▂██▂▂▂▂");
    }

    #[test]
    fn steps_without_a_time_are_drawn_by_their_place() {
        let steps: Vec<_> = (0..101).map(|n| step(None, if n == 47 { 100.0 } else { 10.0 })).collect();
        assert_eq!(over_index(&steps, 10), "▁▁▁▁█▁▁▁▁▁");
        assert_eq!(over_index(&[], 10), "");
    }
}
