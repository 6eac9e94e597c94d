//! How the columns of a timeline share the line.

use crate::output::legible;
use crate::trace::life::{Life, Stage};

use super::axis::Axis;
use super::{fact, room};

/// Off a terminal there is no width to fill, and this is one that most editors and chats show whole.
pub const OFF_TERMINAL: usize = 100;
/// Longer labels lose their middle at a terminal.
const WIDEST_ROLE: usize = 12;
/// Room for the labels of events and tokens, which stand across role and stage.
const LEAST_LABEL: usize = 11;
/// With less the rarer columns go.
const GOOD_AXIS: usize = 24;
const FAIR_AXIS: usize = 16;
const LEAST_AXIS: usize = 8;
/// A wider one is harder to follow from the bar to its number.
const WIDEST_AXIS: usize = 96;

/// Widths in columns; a width of zero is a column that is not shown.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What a line may take, without end off a terminal.
    pub line: usize,
    pub role: usize,
    pub stage: usize,
    pub took: usize,
    pub share: usize,
    pub standing: usize,
    pub axis: Axis,
}

impl Layout {
    /// For the lives that are drawn on one scale.
    pub fn of(lives: &[Life], width: Option<u16>) -> Self {
        let line = width.map_or(usize::MAX, usize::from);
        let stages = || lives.iter().flat_map(|life| &life.stages);
        let widest =
            |text: &dyn Fn(&Stage) -> String| stages().map(|stage| room::width(&text(stage))).max().unwrap_or(0);
        let role = widest(&|stage| role(stage)).min(width.map_or(usize::MAX, |_| WIDEST_ROLE));
        let stage = widest(&|stage| legible::text(stage.name)).max(LEAST_LABEL.saturating_sub(role + 1));
        let mut layout = Layout {
            line,
            role,
            stage,
            took: widest(&|stage| fact::ms(Some(stage.duration_ms))).max("took".len()),
            share: widest(&|stage| fact::share(stage.share)).max("share".len()),
            standing: if stages().any(|stage| stage.standing.is_some()) { "> P99".len() } else { 0 },
            axis: Axis { length_ms: lives.iter().map(Axis::length).fold(0.0, f64::max), cells: 0 },
        };
        let wanted = width.map_or(OFF_TERMINAL, usize::from);
        if stages().all(|stage| stage.share.is_none()) {
            layout.share = 0;
        }
        if layout.left(wanted) < GOOD_AXIS {
            layout.standing = 0;
        }
        if layout.left(wanted) < FAIR_AXIS {
            layout.share = 0;
        }
        layout.axis.cells = layout.left(wanted).clamp(LEAST_AXIS, WIDEST_AXIS);
        layout
    }

    /// Role and stage as one.
    pub fn label(&self) -> usize {
        self.role + 1 + self.stage
    }

    /// Where the axis begins: behind the mark and the labels.
    pub fn axis_at(&self) -> usize {
        2 + self.label() + 1
    }

    fn left(&self, line: usize) -> usize {
        let beside = [self.took, self.share, self.standing];
        let beside: usize = beside.into_iter().filter(|width| *width > 0).map(|width| width + 2).sum();
        line.saturating_sub(self.axis_at() + beside)
    }
}

/// Whose stage it is; what lies between two records is nobody's.
pub fn role(stage: &Stage) -> String {
    match (&stage.role, stage.record) {
        (None, None) => "between".to_owned(),
        (role, _) => fact::word(role.as_deref()),
    }
}
