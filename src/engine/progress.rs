//! The progress bar: bytes read, rate and time left, on stderr, for work that takes longer than a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::accounting::bytes_read;

const PATIENCE: Duration = Duration::from_secs(1);

/// Follows a running plan.
pub struct Progress {
    plan: Arc<dyn ExecutionPlan>,
    total: u64,
    started: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `total` is what there is to read, in bytes on disk; 0 where it is not known.
    pub fn new(plan: Arc<dyn ExecutionPlan>, total: u64, quiet: bool) -> Self {
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self { plan, total, started: Instant::now(), wanted, bar: None }
    }

    /// Brings the bar up to date; the first second passes without one.
    pub fn tick(&mut self) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let total = self.total;
        let bar = self.bar.get_or_insert_with(|| bar(total));
        bar.set_position(bytes_read(self.plan.as_ref()));
    }

    /// Takes the bar away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let (bar, template) = if total > 0 {
        (ProgressBar::new(total), "reading [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
    } else {
        (ProgressBar::new_spinner(), "reading {bytes}, {bytes_per_sec}")
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
