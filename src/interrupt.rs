//! Ctrl-C and termination: the process ends at once, and nothing half done stays behind.

use std::path::Path;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::output::Unfinished;

/// Exit codes of a process that a signal ended, as shells count them.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// From now on a signal removes the unfinished output and the spilled data and ends the process.
pub fn clean_up_on(runtime: &Handle, output: Unfinished, spill: &Path) {
    let spill = spill.to_owned();
    runtime.spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        let code = tokio::select! {
            _ = interrupt.recv() => INTERRUPTED,
            _ = terminate.recv() => TERMINATED,
        };
        output.remove();
        // What cannot be removed now is in the system's folder for temporary files, which others clean.
        let _ = std::fs::remove_dir_all(&spill);
        std::process::exit(code);
    });
}
