//! Ctrl-C and termination: the process ends at once, and nothing half done stays behind.

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// Exit codes of a process that a signal ended, as shells count them.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;
const HUNG_UP: i32 = 129;

/// From now on a signal runs `clean_up` and ends the process, whatever the other threads are at.
pub fn clean_up_on(runtime: &Handle, clean_up: impl FnOnce() + Send + 'static) {
    runtime.spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
        let code = tokio::select! {
            _ = interrupt.recv() => INTERRUPTED,
            _ = terminate.recv() => TERMINATED,
            _ = hangup.recv() => HUNG_UP,
        };
        clean_up();
        std::process::exit(code);
    });
}
