//! Unpacks gzip, zstd, bzip2 and xz as a stream.
//!
//! The crates' own `Read` adapters drop what they decoded in the call that meets a damaged byte. A cut log file must
//! still give every record before the damage, so the loop over their raw decoders is ours: it hands out each decoded byte
//! first and reports the damage afterwards.

mod codec;

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{error, fmt};

use codec::{Codec, Outcome};

/// Compressed bytes asked for in one read.
const CHUNK: usize = 128 * 1024;

/// How a file is compressed, judged by its first bytes and never by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

impl Compression {
    /// How many first bytes [`Compression::detect`] needs.
    pub const MAGIC_LEN: usize = 10;

    /// The compression that a file starting with `head` has.
    pub fn detect(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // a skippable frame, as parallel zstd writers put in front
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            // the block magic tells it from a text that starts with "BZh1"
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Self::Bzip2,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Self::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }

    /// The decoded bytes of `packed`. Damage comes as an error for which [`is_damage`] is true, after every byte that
    /// could be decoded, and again on each later read.
    pub fn decode(self, packed: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match Codec::new(self)? {
            None => Box::new(packed),
            Some(codec) => Box::new(Decoder {
                packed: Box::new(packed),
                chunk: vec![0; CHUNK],
                head: 0,
                tail: 0,
                codec,
                compression: self,
                stage: Stage::Start,
                failure: None,
            }),
        })
    }

    /// Whether a further member can start with this byte; what else follows a member is garbage.
    fn may_start_with(self, byte: u8) -> bool {
        match self {
            Self::None => true,
            Self::Gzip => byte == 0x1f,
            Self::Zstd => byte == 0x28 || (0x50..=0x5f).contains(&byte),
            Self::Bzip2 => byte == b'B',
            Self::Xz => byte == 0xfd,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        })
    }
}

/// What is wrong with compressed bytes, as the end of a sentence: "the gzip data is cut off".
#[derive(Debug, Clone, PartialEq, Eq)]
struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Damage {}

/// Whether a read failed because the bytes themselves are damaged: what came before counts, and the file is counted as
/// damaged. Every other error is one of the disk or the network.
pub fn is_damage(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Damage>())
}

/// Where the decoder is between two members of a file.
#[derive(PartialEq)]
enum Stage {
    /// Before the first byte of the first member.
    Start,
    /// Inside a member.
    Member,
    /// Behind a whole member: another one, zero padding or the end may follow.
    Between,
    /// In zero padding, behind which no member may follow.
    Padding,
}

/// Members (gzip), frames (zstd) or streams (bzip2, xz), one after another, as one stream of decoded bytes.
struct Decoder {
    packed: Box<dyn Read + Send>,
    chunk: Vec<u8>,
    /// `chunk[head..tail]` is read and not yet decoded.
    head: usize,
    tail: usize,
    codec: Codec,
    compression: Compression,
    stage: Stage,
    /// Kept, so that a caller who reads on meets the same end again.
    failure: Option<(ErrorKind, Damage)>,
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some((kind, damage)) = &self.failure {
                return Err(io::Error::new(*kind, damage.clone()));
            }
            let at_end = self.head == self.tail && !self.fill()?;
            if self.stage != Stage::Member {
                if at_end {
                    return Ok(0);
                }
                self.enter_member()?;
                continue;
            }
            let step = self.codec.step(&self.chunk[self.head..self.tail], out);
            self.head += step.read;
            match step.outcome {
                Outcome::More if at_end && step.written == 0 => self.fail(ErrorKind::UnexpectedEof, "is cut off"),
                Outcome::More => {}
                Outcome::MemberEnd => self.stage = Stage::Between,
                Outcome::Corrupt(why) => self.fail(ErrorKind::InvalidData, &why),
            }
            if step.written > 0 {
                return Ok(step.written);
            }
        }
    }
}

impl Decoder {
    fn fill(&mut self) -> io::Result<bool> {
        self.head = 0;
        self.tail = self.packed.read(&mut self.chunk)?;
        Ok(self.tail > 0)
    }

    fn fail(&mut self, kind: ErrorKind, why: &str) {
        self.failure = Some((kind, Damage(format!("the {} data {why}", self.compression))));
    }

    /// Starts the next member, or passes over the zero bytes that tapes and block writers leave behind the last one.
    fn enter_member(&mut self) -> io::Result<()> {
        let rest = &self.chunk[self.head..self.tail];
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        if self.stage == Stage::Start || (self.stage == Stage::Between && zeros == 0) {
            if self.stage == Stage::Between {
                if !self.compression.may_start_with(rest[0]) {
                    self.fail(ErrorKind::InvalidData, "is followed by other bytes");
                    return Ok(());
                }
                if let Some(codec) = Codec::new(self.compression)? {
                    self.codec = codec;
                }
            }
            self.stage = Stage::Member;
        } else if zeros < rest.len() && self.compression != Compression::Xz {
            self.fail(ErrorKind::InvalidData, "is followed by other bytes");
        } else {
            // xz allows padding between streams, the others only at the end
            self.stage = if zeros < rest.len() { Stage::Between } else { Stage::Padding };
            self.head += zeros;
        }
        Ok(())
    }
}

/// Counts the bytes read from a file as they lie on disk, for progress in the bytes the user sees.
pub struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    /// Counts what is read from `inner` on top of what `count` holds.
    pub fn new(inner: R, count: Arc<AtomicU64>) -> Self {
        Self { inner, count }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    const PACKED: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Bzip2, Compression::Xz];

    fn pack(compression: Compression, text: &[u8]) -> Vec<u8> {
        match compression {
            Compression::None => text.to_vec(),
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Xz => liblzma::encode_all(text, 1).unwrap(),
        }
    }

    /// Lines that do not repeat, so that they stay many after packing.
    fn lines(count: u64) -> Vec<u8> {
        (0..count)
            .flat_map(|n| format!("{{\"id\":{}}}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes())
            .collect()
    }

    /// What is decoded, and the error at the end.
    fn unpack(packed: &[u8]) -> (Vec<u8>, Option<io::Error>) {
        let mut decoded = Compression::detect(packed).decode(Cursor::new(packed.to_vec())).unwrap();
        let mut text = Vec::new();
        // much room, so that what a failing call decoded would be missed
        let mut buffer = vec![0; 1 << 20];
        loop {
            match decoded.read(&mut buffer) {
                Ok(0) => return (text, None),
                Ok(read) => text.extend_from_slice(&buffer[..read]),
                Err(error) => return (text, Some(error)),
            }
        }
    }

    #[test]
    fn every_compression_gives_back_the_text() {
        let text = lines(40_000);
        for compression in PACKED {
            let packed = pack(compression, &text);
            assert_eq!(Compression::detect(&packed), compression);
            let (decoded, error) = unpack(&packed);
            assert!(decoded == text && error.is_none(), "{compression}: {error:?}");
        }
    }

    #[test]
    fn members_behind_each_other_are_one_text() {
        for compression in PACKED {
            let packed = [b"ab".as_slice(), b"", b"cd\n"].map(|text| pack(compression, text)).concat();
            let (decoded, error) = unpack(&packed);
            assert_eq!((decoded.as_slice(), error.is_none()), (b"abcd\n".as_slice(), true), "{compression}");
        }
    }

    #[test]
    fn skippable_zstd_frames_are_passed_over() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let packed = [&skippable, pack(Compression::Zstd, b"ab").as_slice(), &skippable].concat();
        let (decoded, error) = unpack(&packed);
        assert!(decoded == b"ab" && error.is_none(), "{error:?}");
    }

    #[test]
    fn zeros_behind_the_last_member_are_no_damage() {
        for compression in PACKED {
            let (decoded, error) = unpack(&[pack(compression, b"ab"), vec![0; 300_000]].concat());
            assert!(decoded == b"ab" && error.is_none(), "{compression}: {error:?}");
        }
    }

    #[test]
    fn other_bytes_behind_the_last_member_are_damage_after_the_text() {
        for compression in PACKED {
            let (decoded, error) = unpack(&[pack(compression, b"ab").as_slice(), b"garbage"].concat());
            assert_eq!(decoded, b"ab");
            let error = error.unwrap();
            assert!(is_damage(&error));
            assert_eq!(error.to_string(), format!("the {compression} data is followed by other bytes"));
        }
    }

    #[test]
    fn a_cut_file_gives_what_can_be_decoded_and_then_damage_on_every_read() {
        let text = lines(40_000);
        for compression in PACKED {
            let packed = pack(compression, &text);
            for share in [30, 60, 99] {
                let cut = packed[..packed.len() * share / 100].to_vec();
                let mut decoded = compression.decode(Cursor::new(cut)).unwrap();
                let mut start = Vec::new();
                let error = decoded.read_to_end(&mut start).unwrap_err();
                assert!(is_damage(&error), "{error}");
                assert_eq!(error.to_string(), format!("the {compression} data is cut off"));
                assert!(text.starts_with(&start), "{compression}");
                // a block of bzip2 is 100 KB here; the others come in smaller ones
                assert!(
                    start.len() + 150_000 > text.len() * share / 100 - text.len() / 20,
                    "{compression} {}",
                    start.len()
                );
                assert!(is_damage(&decoded.read(&mut [0; 10]).unwrap_err()));
            }
        }
    }

    #[test]
    fn a_cut_in_the_trailer_loses_no_text() {
        for compression in PACKED {
            let packed = pack(compression, b"{\"a\":1}\n");
            let (decoded, error) = unpack(&packed[..packed.len() - 1]);
            let whole = decoded == b"{\"a\":1}\n";
            assert!(whole, "{compression}");
            assert!(is_damage(&error.unwrap()));
        }
    }

    #[test]
    fn overwritten_bytes_give_the_text_before_them_and_then_damage() {
        let text = lines(40_000);
        for compression in PACKED {
            let mut packed = pack(compression, &text);
            let middle = packed.len() / 2;
            packed[middle..middle + 3_000].fill(0xff);
            let (decoded, error) = unpack(&packed);
            let same = decoded.iter().zip(&text).take_while(|(a, b)| a == b).count();
            assert!(is_damage(&error.unwrap()), "{compression}");
            assert!(same > text.len() * 35 / 100, "{compression}: {same} of {}", text.len());
        }
    }

    #[test]
    fn a_file_that_unpacks_to_very_much_is_streamed() {
        let packed = pack(Compression::Zstd, &vec![b'x'; 300 << 20]);
        assert!(packed.len() < 100_000);
        let mut decoded = Compression::Zstd.decode(Cursor::new(packed)).unwrap();
        assert_eq!(io::copy(&mut decoded, &mut io::sink()).unwrap(), 300 << 20);
    }

    #[test]
    fn a_zstd_window_beyond_the_limit_is_refused_with_what_to_do() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(b"ab").unwrap();
        let (_, error) = unpack(&encoder.finish().unwrap());
        let expected = "the zstd data needs a window over 128 MiB; unpack it with zstd --long=31 first";
        assert_eq!(error.unwrap().to_string(), expected);
    }

    #[test]
    fn text_is_handed_through() {
        assert_eq!(Compression::detect(b"BZh1 is no magic"), Compression::None);
        let (decoded, error) = unpack(b"{}\n");
        assert!(decoded == b"{}\n" && error.is_none());
    }
}
