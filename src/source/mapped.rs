//! A log as memory, without copying it: a search reads each byte once and keeps none, so that copying would cost as much.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use memmap2::Mmap;

/// A log that nobody wrote to for so long is at rest.
const AT_REST: Duration = Duration::from_secs(60);

/// A file in memory, for as long as it is looked at.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// None where the file cannot be mapped, or may be written to: that is read instead.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let age = SystemTime::now().duration_since(metadata.modified().ok()?).ok()?;
        if !metadata.is_file() || metadata.len() == 0 || age < AT_REST {
            return None;
        }
        // SAFETY: the bytes of a map must not change while they are borrowed, and the file must not become shorter, which
        // no program can forbid others. A log is only appended to, moved away, or emptied by a rotation that copies it,
        // and one that was not written to for a minute is at rest for the fraction of a second that a search takes. The
        // map is private and read-only, lives as long as the borrow, and any bytes at all are valid `u8`: what a search
        // finds is decoded by code that takes hostile bytes.
        unsafe { Mmap::map(&file) }.ok().map(Self)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
