//! One thing to read: a file or a stream, what it holds, and how to open it.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use tempfile::NamedTempFile;

use crate::record::Column;
use crate::source::compression::{Compression, Counted};
use crate::source::format::{self, Format};

/// A file or a stream that was found and looked into.
#[derive(Debug, Clone)]
pub struct Input {
    pub origin: Origin,
    /// As the user would write it: a relative path stays relative, `-` is standard input.
    pub name: String,
    /// Bytes on disk; unknown for a stream.
    pub size: Option<u64>,
    /// `key=value` folders in the path, outermost first, each key once (the innermost counts).
    pub partitions: Vec<(String, String)>,
    pub compression: Compression,
    pub format: Format,
    /// Whether its first records say that they stand for others too.
    pub is_sampled: bool,
}

/// Where an input comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    File(PathBuf),
    /// Standard input, a pipe or a device: can be read once.
    Stream(Arc<Stream>),
}

/// A stream whose start was looked at, and which is taken by the one who reads it.
pub struct Stream {
    contents: Mutex<Option<Contents>>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// The decoded bytes of an input, with a count of the bytes on disk that they took.
pub struct Contents {
    stream: Box<dyn Read + Send>,
    consumed: Arc<AtomicU64>,
}

impl Contents {
    /// Bytes read from the input so far as they lie on disk, counted while reading; may be kept by a progress display.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }
}

impl Read for Contents {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.read(out)
    }
}

impl Input {
    /// Looks into the file at `path`.
    pub(super) fn file(path: PathBuf, partitions: Vec<(String, String)>) -> io::Result<Self> {
        let file = File::open(&path)?;
        let size = Some(file.metadata()?.len());
        let Examined { compression, format, is_sampled, .. } = examine(file, &path)?;
        let name = path.display().to_string();
        Ok(Self { origin: Origin::File(path), name, size, partitions, compression, format, is_sampled })
    }

    /// Looks at the start of a stream, which is kept for the one who reads it.
    pub(super) fn stream(stream: impl Read + Send + 'static, name: String) -> io::Result<Self> {
        let Examined { compression, format, is_sampled, contents } = examine(stream, Path::new(&name))?;
        let stream = Stream { contents: Mutex::new(Some(contents)) };
        let origin = Origin::Stream(Arc::new(stream));
        Ok(Self { origin, name, size: None, partitions: Vec::new(), compression, format, is_sampled })
    }

    /// The decoded bytes from the start. Damage comes as an error after every byte before it (see
    /// [`is_damage`](crate::source::compression::is_damage)). An error when a stream is opened a second time.
    pub fn open(&self) -> io::Result<Contents> {
        match &self.origin {
            Origin::File(path) => {
                let consumed = Arc::new(AtomicU64::new(0));
                let counted = Counted::new(File::open(path)?, Arc::clone(&consumed));
                Ok(Contents { stream: self.compression.decode(counted)?, consumed })
            }
            Origin::Stream(stream) => {
                let contents = stream.contents.lock().unwrap_or_else(PoisonError::into_inner).take();
                contents.ok_or_else(|| {
                    io::Error::other(format!(
                        "{} is a stream and can be read only once; save it to a file first",
                        self.name
                    ))
                })
            }
        }
    }

    /// Whether it is a file, which can be read again.
    pub fn is_file(&self) -> bool {
        self.path().is_some()
    }

    /// The path of a file; a stream has none.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File(path) => Some(path),
            Origin::Stream(_) => None,
        }
    }

    /// The path of the input's bytes where they can be read in any order and by several threads: a plain file.
    pub fn plain_file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File(path) if self.compression == Compression::None => Some(path),
            _ => None,
        }
    }

    /// Writes the decoded bytes to a temporary file in `folder`, deleted when dropped: Parquet is read from its end, which neither a
    /// stream nor a compressed file can give.
    pub fn unpack(&self, folder: &Path) -> io::Result<NamedTempFile> {
        let mut file = NamedTempFile::with_prefix_in("infer-stats-", folder)?;
        io::copy(&mut self.open()?, &mut file)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// What a stream of bytes is, and its contents, whole.
struct Examined {
    compression: Compression,
    format: Format,
    is_sampled: bool,
    contents: Contents,
}

fn examine(mut packed: impl Read + Send + 'static, name: &Path) -> io::Result<Examined> {
    let mut magic = Vec::with_capacity(Compression::MAGIC_LEN);
    packed.by_ref().take(Compression::MAGIC_LEN as u64).read_to_end(&mut magic)?;
    let compression = Compression::detect(&magic);
    let consumed = Arc::new(AtomicU64::new(magic.len() as u64));
    let rest = Counted::new(packed, Arc::clone(&consumed));
    let mut decoded = compression.decode(Cursor::new(magic).chain(rest))?;
    let (format, head) = format::sniff(&mut decoded, name)?;
    let is_sampled = memmem::find(&head, Column::SampleWeight.name().as_bytes()).is_some();
    let contents = Contents { stream: Box::new(Cursor::new(head).chain(decoded)), consumed };
    Ok(Examined { compression, format, is_sampled, contents })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::Ordering;

    use super::*;

    const RECORDS: &str = "{\"a\":1}\n{\"a\":2}\n";

    fn zstd_file(folder: &Path, text: &[u8]) -> Input {
        let path = folder.join("x.log");
        std::fs::write(&path, zstd::encode_all(text, 1).unwrap()).unwrap();
        Input::file(path, Vec::new()).unwrap()
    }

    #[test]
    fn a_compressed_file_is_known_by_its_content_and_opened_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let input = zstd_file(folder.path(), RECORDS.as_bytes());
        assert_eq!((input.compression, input.format), (Compression::Zstd, Format::Ndjson));
        assert_eq!(input.plain_file(), None);
        for _ in 0..2 {
            assert_eq!(io::read_to_string(input.open().unwrap()).unwrap(), RECORDS);
        }
    }

    #[test]
    fn progress_counts_bytes_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let input = zstd_file(folder.path(), RECORDS.repeat(10_000).as_bytes());
        let contents = input.open().unwrap();
        let consumed = contents.consumed();
        io::read_to_string(contents).unwrap();
        assert_eq!(Some(consumed.load(Ordering::Relaxed)), input.size);
    }

    #[test]
    fn a_stream_is_looked_into_without_losing_its_start() {
        let packed = zstd::encode_all(RECORDS.as_bytes(), 1).unwrap();
        let size = packed.len() as u64;
        let input = Input::stream(Cursor::new(packed), "-".to_owned()).unwrap();
        assert_eq!((input.compression, input.format), (Compression::Zstd, Format::Ndjson));
        let contents = input.open().unwrap();
        let consumed = contents.consumed();
        assert_eq!(io::read_to_string(contents).unwrap(), RECORDS);
        assert_eq!(consumed.load(Ordering::Relaxed), size);
        assert!(input.open().is_err_and(|error| error.to_string().contains("only once")));
    }

    #[test]
    fn a_damaged_file_is_looked_into_by_what_can_be_decoded() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(RECORDS.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let input = Input::stream(Cursor::new(packed[..packed.len() - 3].to_vec()), "-".to_owned()).unwrap();
        assert_eq!(input.format, Format::Ndjson);
        let mut text = String::new();
        let error = input.open().unwrap().read_to_string(&mut text).unwrap_err();
        assert!(crate::source::compression::is_damage(&error));
    }

    #[test]
    fn what_must_be_read_from_its_end_can_be_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let input = zstd_file(folder.path(), b"PAR1 and more");
        assert_eq!(input.format, Format::Parquet);
        assert_eq!(std::fs::read(input.unpack(folder.path()).unwrap().path()).unwrap(), b"PAR1 and more");
    }
}
