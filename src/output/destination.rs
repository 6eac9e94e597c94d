//! Where a report goes: standard output, or a file that appears only when it is whole.
//!
//! A file is written beside its target under another name and takes the target's place in one step at the end.
//! So a bad path fails before the long work, and an error or Ctrl-C leaves what was there before.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempPath;

use super::Format;

/// Few system calls, also where each row is a line of its own.
const BUFFER_BYTES: usize = 128 << 10;

/// Why nothing can be written to a place.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    #[error("cannot write to {path}: the folder {folder} does not exist; create it, or name another file")]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("cannot write to {0}: it names a folder; name a file in it")]
    IsFolder(PathBuf),
    #[error("Parquet is not for a terminal: write it to a file with -o FILE, or pipe it into a program")]
    ParquetToTerminal,
    #[error("cannot write to {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// A place that takes a report. Dropped without a commit, it leaves no file behind.
pub struct Destination {
    out: BufWriter<Box<dyn Write + Send>>,
    name: String,
    terminal: bool,
    reader_gone: bool,
    unfinished: Unfinished,
    /// The path that the unfinished file is to have; none where bytes go straight to their place.
    target: Option<PathBuf>,
}

impl Destination {
    /// Opens the file at `path`, or standard output for none, `-` and `/dev/stdout`.
    ///
    /// A special file (a named pipe, `/dev/null`) is written directly. A link stays, and what it leads to is
    /// replaced. A file that exists keeps its permissions.
    pub fn open(path: Option<&Path>, format: Format) -> Result<Self, DestinationError> {
        let destination = match path {
            // Opened by its name, the standard output of `>> log` would be overwritten from its beginning.
            Some(path) if path != "-" && path != "/dev/stdout" => Self::file(path)?,
            _ => Self::direct(io::stdout(), "standard output".to_owned()),
        };
        destination.suits(format)?;
        Ok(destination)
    }

    fn file(path: &Path) -> Result<Self, DestinationError> {
        let failed = |source| DestinationError::Io { path: path.to_owned(), source };
        // Follows links, and fails where they lead in a circle.
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        match &existing {
            Some(metadata) if metadata.is_dir() => return Err(DestinationError::IsFolder(path.to_owned())),
            Some(metadata) if !metadata.is_file() => {
                let special = File::options().write(true).open(path).map_err(failed)?;
                return Ok(Self::direct(special, path.display().to_string()));
            }
            _ => {}
        }

        let target = behind_links(path);
        let names_folder = path.to_string_lossy().ends_with(std::path::is_separator);
        let folder = match (target.parent(), target.file_name()) {
            (Some(folder), Some(_)) if !names_folder => folder,
            _ => return Err(DestinationError::IsFolder(path.to_owned())),
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !folder.is_dir() {
            return Err(DestinationError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
        }
        if existing.is_some() {
            // Renaming over a file asks only the folder; a file that is read-only must be respected too.
            File::options().write(true).open(&target).map_err(failed)?;
        }
        let (file, unfinished) = Unfinished::create(folder, existing.map(|old| old.permissions())).map_err(failed)?;
        let mut destination = Self::direct(file, path.display().to_string());
        destination.unfinished = unfinished;
        destination.target = Some(target);
        Ok(destination)
    }

    fn direct(out: impl Write + IsTerminal + Send + 'static, name: String) -> Self {
        Self {
            terminal: out.is_terminal(),
            out: BufWriter::with_capacity(BUFFER_BYTES, Box::new(out)),
            name,
            reader_gone: false,
            unfinished: Unfinished::default(),
            target: None,
        }
    }

    fn suits(&self, format: Format) -> Result<(), DestinationError> {
        if self.terminal && format == Format::Parquet {
            return Err(DestinationError::ParquetToTerminal);
        }
        Ok(())
    }

    /// The path as given, or `standard output`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a person is watching.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Columns of the terminal that shows standard output; none where it goes elsewhere.
    pub fn terminal_width(&self) -> Option<u16> {
        if self.terminal { comfy_table::Table::new().width() } else { None }
    }

    /// Whether a write failed because the program that reads our output has closed it.
    pub fn reader_gone(&self) -> bool {
        self.reader_gone
    }

    /// For the handler of Ctrl-C, which ends the process before anything is dropped.
    pub fn unfinished(&self) -> Unfinished {
        self.unfinished.clone()
    }

    /// Writes out what is buffered and gives a file its name.
    pub fn commit(&mut self) -> io::Result<()> {
        self.flush()?;
        match &self.target {
            Some(target) => self.unfinished.rename(target),
            None => Ok(()),
        }
    }

    fn watch<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        if matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            self.reader_gone = true;
        }
        written
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.watch(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.watch(flushed)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.unfinished.remove();
    }
}

/// The file that a destination writes until it is whole; none for what is written directly.
#[derive(Clone, Default)]
pub struct Unfinished(Arc<Mutex<Option<TempPath>>>);

impl Unfinished {
    fn create(folder: &Path, permissions: Option<Permissions>) -> io::Result<(File, Self)> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".infer-stats-").suffix(".partial");
        // A temporary file is private by default; this one is to become a file like any other.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let (file, path) = builder.tempfile_in(folder)?.into_parts();
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        Ok((file, Self(Arc::new(Mutex::new(Some(path))))))
    }

    /// Removes the file, if it is there still; it can no longer be committed.
    pub fn remove(&self) {
        drop(self.held().take());
    }

    /// Keeps the lock until the file has its name: a removal comes wholly before or wholly after.
    fn rename(&self, target: &Path) -> io::Result<()> {
        match self.held().take() {
            Some(path) => path.persist(target).map_err(|failed| failed.error),
            None => Err(io::Error::new(io::ErrorKind::Interrupted, "the run was interrupted")),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<TempPath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file that a path leads to, which need not exist yet. The path must not lead in a circle.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(next) = fs::read_link(&path) {
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(path: &Path) -> Destination {
        Destination::open(Some(path), Format::Json).unwrap()
    }

    fn refusal(path: &Path) -> String {
        match Destination::open(Some(path), Format::Json) {
            Ok(_) => panic!("{} was opened", path.display()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_old_file_stays_until_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let mut destination = open(&path);
        destination.write_all(b"new").unwrap();
        destination.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        destination.commit().unwrap();
        drop(destination);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(entries(folder.path()), ["out.json"]);
    }

    #[test]
    fn dropped_without_commit_it_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let mut destination = open(&path);
        destination.write_all(b"half").unwrap();
        assert_eq!(entries(folder.path()).len(), 1);
        let _held_by_the_handler_of_ctrl_c = destination.unfinished();
        drop(destination);
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn an_interrupted_run_leaves_no_half_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let mut destination = open(&path);
        let unfinished = destination.unfinished();
        destination.write_all(b"half").unwrap();
        unfinished.remove();
        assert_eq!(entries(folder.path()), ["out.json"]);
        assert_eq!(destination.commit().unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn an_interrupt_after_the_commit_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let mut destination = open(&path);
        destination.commit().unwrap();
        destination.unfinished().remove();
        assert_eq!(entries(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/out.json");
        let expected = format!(
            "cannot write to {}: the folder {} does not exist; create it, or name another file",
            path.display(),
            folder.path().join("missing").display()
        );
        assert_eq!(refusal(&path), expected);
    }

    #[test]
    fn a_folder_is_no_target() {
        let folder = tempfile::tempdir().unwrap();
        let refused = format!("cannot write to {}: it names a folder; name a file in it", folder.path().display());
        assert_eq!(refusal(folder.path()), refused);
        assert!(refusal(&folder.path().join("new/")).contains("names a folder"));
        assert!(refusal(Path::new("")).contains("names a folder"));
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{PermissionsExt, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        }

        #[test]
        fn a_new_file_has_the_mode_of_any_new_file_and_an_old_one_keeps_its_own() {
            let folder = tempfile::tempdir().unwrap();
            let (new, plain, private) =
                (folder.path().join("new"), folder.path().join("plain"), folder.path().join("private"));
            fs::write(&plain, "").unwrap();
            fs::write(&private, "").unwrap();
            fs::set_permissions(&private, Permissions::from_mode(0o600)).unwrap();
            open(&new).commit().unwrap();
            open(&private).commit().unwrap();
            assert_eq!(mode(&new), mode(&plain));
            assert_eq!(mode(&private), 0o600);
        }

        #[test]
        fn a_link_stays_and_its_target_is_replaced() {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("real")).unwrap();
            let target = folder.path().join("real/out.json");
            let link = folder.path().join("link.json");
            symlink("real/out.json", &link).unwrap();
            for text in ["first, through a link that leads nowhere yet", "second"] {
                let mut destination = open(&link);
                destination.write_all(text.as_bytes()).unwrap();
                destination.commit().unwrap();
                assert_eq!(fs::read_to_string(&target).unwrap(), text);
            }
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(entries(&folder.path().join("real")), ["out.json"]);
        }

        #[test]
        fn links_in_a_circle_are_an_error() {
            let folder = tempfile::tempdir().unwrap();
            let (one, two) = (folder.path().join("one"), folder.path().join("two"));
            symlink(&one, &two).unwrap();
            symlink(&two, &one).unwrap();
            assert_eq!(refusal(&one), format!("cannot write to {}", one.display()));
        }

        #[test]
        fn special_files_are_written_directly() {
            let mut destination = open(Path::new("/dev/null"));
            destination.write_all(b"gone").unwrap();
            destination.commit().unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
        }

        #[test]
        fn the_names_of_standard_output_open_it_as_it_is() {
            for name in ["-", "/dev/stdout"] {
                assert_eq!(open(Path::new(name)).name(), "standard output");
            }
        }

        #[test]
        fn a_reader_that_is_gone_is_noticed() {
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            let mut destination = Destination::direct(File::from(std::os::fd::OwnedFd::from(writer)), String::new());
            destination.write_all(b"unread").unwrap();
            assert!(!destination.reader_gone());
            assert!(destination.commit().is_err());
            assert!(destination.reader_gone());
        }
    }

    #[test]
    fn parquet_is_kept_from_a_terminal() {
        let mut destination = Destination::direct(io::stdout(), String::new());
        destination.terminal = true;
        assert!(matches!(destination.suits(Format::Parquet), Err(DestinationError::ParquetToTerminal)));
        assert!(destination.suits(Format::Csv).is_ok());
    }
}
