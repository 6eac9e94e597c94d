//! Where and when a command runs: the folder, the clock and the environment.
//!
//! They are gathered once, so that a request depends on nothing hidden and a test can set all of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, io};

use jiff::Timestamp;

/// Everything outside the command line that a request depends on.
#[derive(Debug, Clone)]
pub struct Place {
    /// The current folder, absolute.
    pub folder: PathBuf,
    pub now: Timestamp,
    /// `INFER_STATS_LOGS`: paths separated as in PATH.
    pub logs: Option<OsString>,
    /// `INFER_STATS_CONFIG`.
    pub config: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config_home: Option<PathBuf>,
}

impl Place {
    /// This process, now. An error where the current folder is gone or closed to the user.
    pub fn here() -> io::Result<Self> {
        // A variable that is set to nothing is a variable that someone meant to unset.
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        Ok(Place {
            folder: env::current_dir()?,
            now: Timestamp::now(),
            logs: variable("INFER_STATS_LOGS"),
            config: variable("INFER_STATS_CONFIG").map(PathBuf::from),
            config_home: variable("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config"))),
        })
    }
}
