//! Finds the inputs behind what the user named: files, folders, globs and `-`.

use std::collections::HashSet;
use std::fs::{self, File, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use walkdir::WalkDir;

use crate::source::format::Format;
use crate::source::input::Input;

/// What Hive writes for a partition value that is null.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The system's error number (ELOOP) for links in a circle, for which the standard library has no stable name.
const TOO_MANY_LINKS: i32 = 40;

/// How many skipped files a message names.
const NAMED_IN_MESSAGE: usize = 3;

/// The inputs in the order named, those of one folder or glob sorted by path, each file once.
#[derive(Debug, Default)]
pub struct Located {
    pub inputs: Vec<Input>,
    /// Entries of folders and globs that are not read.
    pub skipped: Vec<Skipped>,
}

/// An entry of a folder or glob that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// As the user would write it.
    pub name: String,
    /// Such as "a PNG image".
    pub why: String,
}

/// Why the inputs cannot be read; each is one sentence for the user.
#[derive(Debug, Error)]
pub enum LocateError {
    #[error("{name}: no such file or folder; {nearest}")]
    NotFound { name: String, nearest: String },
    #[error("{pattern}: nothing matches; {nearest}")]
    NoMatch { pattern: String, nearest: String },
    #[error("{pattern}: not a valid pattern: {why}; put a literal `*`, `?` or `[` in brackets, as in `[[]`")]
    BadPattern { pattern: String, why: String },
    #[error("{name}: no log file in there{skipped}")]
    NothingToRead { name: String, skipped: String },
    #[error("{name}: not a log: this is {kind}")]
    UnknownKind { name: String, kind: &'static str },
    #[error("{name}: cannot be read: {reason}")]
    Unreadable { name: String, reason: io::Error },
}

/// Finds and looks into everything that `names` stand for.
///
/// A folder is searched with everything below it, links included; hidden entries (`.x`, `_x`) and files that are no logs are
/// skipped and listed; plain text is no log unless `reads_text` says that its lines are known. A file named directly must
/// be readable and of a known kind; plain text is left to the caller.
pub fn locate<P: AsRef<Path>>(names: &[P], reads_text: &dyn Fn(&Input) -> bool) -> Result<Located, LocateError> {
    let mut search = Search { reads_text, located: Located::default(), seen: HashSet::new(), found: 0 };
    for name in names {
        search.name(name.as_ref())?;
    }
    Ok(search.located)
}

struct Search<'a> {
    reads_text: &'a dyn Fn(&Input) -> bool,
    located: Located,
    /// Resolved paths, so that a file reached twice counts once.
    seen: HashSet<PathBuf>,
    /// Inputs reached, repeated ones included.
    found: usize,
}

impl Search<'_> {
    fn name(&mut self, name: &Path) -> Result<(), LocateError> {
        if name == Path::new("-") {
            return self.stream(name, io::stdin());
        }
        match fs::metadata(name) {
            Ok(metadata) if metadata.is_dir() => self.entries_of(name, |search| search.walk(name)),
            Ok(metadata) if is_stream(metadata.file_type()) => {
                let stream = File::open(name).map_err(|error| unreadable(name, error))?;
                self.stream(name, stream)
            }
            Ok(_) => self.named_file(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match name.to_str() {
                Some(pattern) if pattern.contains(['*', '?', '[']) => self.glob(pattern),
                _ => Err(LocateError::NotFound { name: shown(name), nearest: nearest_folder(name) }),
            },
            Err(error) => Err(unreadable(name, error)),
        }
    }

    fn stream(&mut self, name: &Path, stream: impl io::Read + Send + 'static) -> Result<(), LocateError> {
        if self.seen.insert(name.to_owned()) {
            let input = Input::stream(stream, shown(name)).map_err(|error| unreadable(name, error))?;
            self.take_named(input)?;
        }
        Ok(())
    }

    fn named_file(&mut self, path: &Path) -> Result<(), LocateError> {
        self.look_into(path)?.map_or(Ok(()), |input| self.take_named(input))
    }

    fn take_named(&mut self, input: Input) -> Result<(), LocateError> {
        if let Format::Unknown(kind) = input.format {
            return Err(LocateError::UnknownKind { name: input.name, kind });
        }
        self.take(input);
        Ok(())
    }

    fn glob(&mut self, pattern: &str) -> Result<(), LocateError> {
        let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
        let matches = glob::glob_with(pattern, options)
            .map_err(|error| LocateError::BadPattern { pattern: pattern.to_owned(), why: error.msg.to_owned() })?;
        let paths: Vec<PathBuf> = matches.collect::<Result<_, _>>().map_err(|error: glob::GlobError| {
            LocateError::Unreadable { name: shown(error.path()), reason: error.into() }
        })?;
        if paths.is_empty() {
            let nearest = nearest_folder(Path::new(pattern));
            return Err(LocateError::NoMatch { pattern: pattern.to_owned(), nearest });
        }
        self.entries_of(Path::new(pattern), |search| paths.iter().try_for_each(|path| search.walk(path)))
    }

    /// Takes a file, or everything below a folder.
    fn walk(&mut self, root: &Path) -> Result<(), LocateError> {
        let mut walk = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.walk_error(root, error)?;
                    continue;
                }
            };
            let is_hidden =
                entry.file_name().as_encoded_bytes().first().is_some_and(|byte| matches!(byte, b'.' | b'_'));
            if entry.depth() > 0 && is_hidden {
                if self.seen.insert(entry.path().to_owned()) {
                    self.skip(entry.path(), "hidden");
                }
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
            } else if is_stream(entry.file_type()) {
                self.skip(entry.path(), "a pipe, socket or device");
            } else if !entry.file_type().is_dir() {
                self.entry(entry.path())?;
            }
        }
        Ok(())
    }

    /// Links that lead nowhere or in a circle are skipped; whatever else cannot be read might have held logs.
    fn walk_error(&mut self, root: &Path, error: walkdir::Error) -> Result<(), LocateError> {
        let path = error.path().unwrap_or(root).to_owned();
        if error.loop_ancestor().is_some() {
            self.skip(&path, "a link back to a folder above it");
            return Ok(());
        }
        match error.into_io_error() {
            Some(error) if error.kind() == io::ErrorKind::NotFound => {
                self.skip(&path, "a link to nothing");
                Ok(())
            }
            Some(error) if error.raw_os_error() == Some(TOO_MANY_LINKS) => {
                self.skip(&path, "a link that leads back to itself");
                Ok(())
            }
            Some(error) => Err(unreadable(&path, error)),
            None => Ok(()),
        }
    }

    /// A file that was found rather than named: skipped when it is no log.
    fn entry(&mut self, path: &Path) -> Result<(), LocateError> {
        if let Some(input) = self.look_into(path)? {
            match input.format {
                Format::Unknown(kind) => self.skip(path, kind),
                Format::Text if !(self.reads_text)(&input) => self.skip(path, "plain text without any record"),
                _ => self.take(input),
            }
        }
        Ok(())
    }

    /// The input at a path, unless it was seen before.
    fn look_into(&mut self, path: &Path) -> Result<Option<Input>, LocateError> {
        let resolved = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        if !self.seen.insert(resolved) {
            self.found += 1;
            return Ok(None);
        }
        Input::file(path.to_owned(), partitions(path)).map(Some).map_err(|error| unreadable(path, error))
    }

    /// Runs a search for the entries of a folder or glob, and sees to it that it found something to read.
    fn entries_of(
        &mut self,
        name: &Path,
        search: impl FnOnce(&mut Self) -> Result<(), LocateError>,
    ) -> Result<(), LocateError> {
        let (found, skipped) = (self.found, self.located.skipped.len());
        search(self)?;
        if self.found == found {
            let skipped = listed(&self.located.skipped[skipped..]);
            return Err(LocateError::NothingToRead { name: shown(name), skipped });
        }
        Ok(())
    }

    fn take(&mut self, input: Input) {
        self.found += 1;
        self.located.inputs.push(input);
    }

    fn skip(&mut self, path: &Path, why: &str) {
        self.located.skipped.push(Skipped { name: shown(path), why: why.to_owned() });
    }
}

/// Whether a file is read front to back, once: a pipe (process substitution is one too) or a device.
fn is_stream(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_socket() || kind.is_block_device()
}

/// The `key=value` folders of a path. A null value is left out, as a missing one.
fn partitions(path: &Path) -> Vec<(String, String)> {
    let mut partitions: Vec<(String, String)> = Vec::new();
    for folder in path.parent().into_iter().flat_map(Path::components) {
        let folder = folder.as_os_str().to_string_lossy();
        let Some((key, value)) = folder.split_once('=').filter(|(key, _)| !key.is_empty()) else { continue };
        let key = percent_decoded(key);
        partitions.retain(|(outer, _)| *outer != key);
        if value != NULL_PARTITION {
            partitions.push((key, percent_decoded(value)));
        }
    }
    partitions
}

/// Resolves `%3A` and the like, as Hive and Spark write them; a text that is not encoded stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let byte = match behind {
            [high, low, ..] if *first == b'%' => {
                hex_digit(*high).zip(hex_digit(*low)).map(|(high, low)| high * 16 + low)
            }
            _ => None,
        };
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

fn hex_digit(byte: u8) -> Option<u8> {
    // a hexadecimal digit is below 16
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn unreadable(path: &Path, reason: io::Error) -> LocateError {
    LocateError::Unreadable { name: shown(path), reason }
}

/// Where a path that leads nowhere stops leading somewhere, as the end of a message.
fn nearest_folder(path: &Path) -> String {
    match path.ancestors().skip(1).find(|folder| folder.is_dir()) {
        Some(folder) => format!("the nearest folder that exists is {}", shown(folder)),
        None => "it was looked for in the current folder".to_owned(),
    }
}

/// The first skipped entries, as the end of a message.
fn listed(skipped: &[Skipped]) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let named: Vec<String> =
        skipped.iter().take(NAMED_IN_MESSAGE).map(|skipped| format!("{} ({})", skipped.name, skipped.why)).collect();
    let more = skipped.len().saturating_sub(NAMED_IN_MESSAGE);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; skipped: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    const RECORD: &str = "{\"a\":1}\n";

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    /// The names of the inputs, below `root`.
    fn found(root: &TempDir, names: &[&str]) -> Vec<String> {
        let names: Vec<PathBuf> = names.iter().map(|name| root.path().join(name)).collect();
        let located = locate(&names, &|_| false).unwrap();
        located.inputs.iter().map(|input| below(root, &input.name)).collect()
    }

    fn below(root: &TempDir, name: &str) -> String {
        name.strip_prefix(root.path().to_str().unwrap()).unwrap().trim_start_matches('/').to_owned()
    }

    fn message(root: &TempDir, name: &str) -> String {
        let error = locate(&[root.path().join(name)], &|_| false).unwrap_err().to_string();
        error.replace(root.path().to_str().unwrap(), "ROOT")
    }

    #[test]
    fn arguments_keep_their_order_and_folders_are_sorted() {
        let root = folder(&[("d/b.json", RECORD), ("d/a.json", RECORD), ("d/c/x.json", RECORD), ("z.json", RECORD)]);
        assert_eq!(found(&root, &["z.json", "d"]), ["z.json", "d/a.json", "d/b.json", "d/c/x.json"]);
    }

    #[test]
    fn a_file_named_twice_counts_once() {
        let root = folder(&[("d/a.json", RECORD), ("d/b.json", RECORD)]);
        symlink(root.path().join("d/a.json"), root.path().join("link.json")).unwrap();
        let names = ["d/b.json", "d", "d/*.json", "d/../d/a.json", "link.json", "d"];
        assert_eq!(found(&root, &names), ["d/b.json", "d/a.json"]);
    }

    #[test]
    fn globs_match_files_and_folders_and_leave_hidden_ones_out() {
        let root =
            folder(&[("x/1.json", RECORD), ("x/.2.json", RECORD), ("y/d.json/3.json", RECORD), ("y/4.png", "\u{89}")]);
        symlink(root.path().join("nowhere"), root.path().join("broken.json")).unwrap();
        assert_eq!(found(&root, &["**/*.json"]), ["x/1.json", "y/d.json/3.json"]);
    }

    #[test]
    fn a_name_with_brackets_that_exists_is_no_glob() {
        let root = folder(&[("[prod]/a.json", RECORD)]);
        assert_eq!(found(&root, &["[prod]/a.json"]), ["[prod]/a.json"]);
    }

    #[test]
    fn folders_skip_and_name_what_is_no_log() {
        let root = folder(&[
            ("a.json", RECORD),
            ("_SUCCESS", ""),
            (".git/config.json", RECORD),
            ("notes.txt", "some text\n"),
            ("i.png", "GIF89a"),
        ]);
        symlink(root.path().join("nowhere"), root.path().join("broken.json")).unwrap();
        let located = locate(&[root.path()], &|_| false).unwrap();
        assert_eq!(located.inputs.len(), 1);
        let mut skipped: Vec<_> =
            located.skipped.iter().map(|skipped| (below(&root, &skipped.name), skipped.why.as_str())).collect();
        skipped.sort();
        let expected = [
            (".git", "hidden"),
            ("_SUCCESS", "hidden"),
            ("broken.json", "a link to nothing"),
            ("i.png", "a GIF image"),
            ("notes.txt", "plain text without any record"),
        ];
        assert_eq!(skipped, expected.map(|(name, why)| (name.to_owned(), why)));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let root = folder(&[("d/a.json", RECORD)]);
        symlink(root.path(), root.path().join("d/up")).unwrap();
        let located = locate(&[root.path()], &|_| false).unwrap();
        assert_eq!(located.inputs.len(), 1);
        assert_eq!(located.skipped[0].why, "a link back to a folder above it");
    }

    #[test]
    fn partitions_come_from_the_folders_of_the_path() {
        let root = folder(&[("day=2025-06-01/hour=10%3A00/x=%zz/n=__HIVE_DEFAULT_PARTITION__/v=1.json", RECORD)]);
        let located = locate(&[root.path()], &|_| false).unwrap();
        let partitions: Vec<_> =
            located.inputs[0].partitions.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(partitions, [("day", "2025-06-01"), ("hour", "10:00"), ("x", "%zz")]);
    }

    #[test]
    fn an_empty_file_is_an_input_without_records() {
        let root = folder(&[("empty.ndjson", "")]);
        let located = locate(&[root.path().join("empty.ndjson")], &|_| false).unwrap();
        assert_eq!((located.inputs[0].size, located.inputs[0].format), (Some(0), Format::Ndjson));
    }

    #[test]
    fn a_gz_name_does_not_make_a_file_compressed() {
        let root = folder(&[("x.json.gz", RECORD)]);
        let located = locate(&[root.path().join("x.json.gz")], &|_| false).unwrap();
        assert_eq!(located.inputs[0].plain_file(), Some(root.path().join("x.json.gz").as_path()));
    }

    #[test]
    fn what_cannot_be_found_is_a_sentence_with_the_nearest_folder() {
        let root = folder(&[("d/a.json", RECORD), ("e/i.gif", "GIF89a")]);
        fs::create_dir(root.path().join("void")).unwrap();
        let nearest = "the nearest folder that exists is ROOT/d";
        assert_eq!(message(&root, "d/e/f.json"), format!("ROOT/d/e/f.json: no such file or folder; {nearest}"));
        assert_eq!(message(&root, "d/*.csv"), format!("ROOT/d/*.csv: nothing matches; {nearest}"));
        assert_eq!(message(&root, "void"), "ROOT/void: no log file in there");
        assert_eq!(message(&root, "e"), "ROOT/e: no log file in there; skipped: ROOT/e/i.gif (a GIF image)");
        assert_eq!(message(&root, "e/i.gif"), "ROOT/e/i.gif: not a log: this is a GIF image");
        assert!(message(&root, "d/***").starts_with("ROOT/d/***: not a valid pattern: "));
    }

    #[test]
    fn a_folder_that_may_not_be_read_is_an_error_that_names_it() {
        let root = folder(&[("a.json", RECORD), ("closed/b.json", RECORD)]);
        let closed = root.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let is_superuser = fs::read_dir(&closed).is_ok();
        let result = locate(&[root.path()], &|_| false);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        if !is_superuser {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("closed: cannot be read: "), "{message}");
        }
    }

    #[test]
    fn a_pipe_is_read_as_a_stream_once() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(RECORD.as_bytes()).unwrap();
        drop(writer);
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let located = locate(&[&name, &name], &|_| false).unwrap();
        let [input] = located.inputs.as_slice() else { panic!("{:?}", located.inputs) };
        assert_eq!((input.name.as_str(), input.size, input.format), (name.as_str(), None, Format::Ndjson));
        assert_eq!(io::read_to_string(input.open().unwrap()).unwrap(), RECORD);
        assert!(input.open().is_err());
    }
}
