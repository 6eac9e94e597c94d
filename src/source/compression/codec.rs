//! The raw decoders of four crates behind one call that says how far it came, also when it fails.

use std::error::Error;
use std::io;

use liblzma::stream::Action;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use crate::source::compression::Compression;

/// The largest zstd window accepted, as a power of two: 128 MiB, which is what the zstd tool itself unpacks unasked and
/// what its highest level uses. `--long=31` files would need 2 GiB at once and are refused with a sentence.
const ZSTD_WINDOW_LOG: u32 = 27;

/// The most memory an xz decoder may take, in bytes: `xz -9` needs 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// One raw decoder, for one member.
pub enum Codec {
    Gzip(flate2::Decompress),
    Zstd { decoder: zstd::stream::raw::Decoder<'static>, wanted: usize },
    Bzip2(bzip2::Decompress),
    Xz(liblzma::stream::Stream),
}

/// What one call did.
pub struct Step {
    pub read: usize,
    pub written: usize,
    pub outcome: Outcome,
}

/// What one call came to.
pub enum Outcome {
    More,
    MemberEnd,
    /// Why, as the rest of "the gzip data ...".
    Corrupt(String),
}

impl Codec {
    /// A decoder for the next member; none for what is not compressed.
    pub fn new(compression: Compression) -> io::Result<Option<Self>> {
        Ok(Some(match compression {
            Compression::None => return Ok(None),
            Compression::Gzip => Self::Gzip(flate2::Decompress::new_gzip(15)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
                Self::Zstd { decoder, wanted: 1 }
            }
            Compression::Bzip2 => Self::Bzip2(bzip2::Decompress::new(false)),
            Compression::Xz => Self::Xz(liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, 0)?),
        }))
    }

    /// Decodes some of `input` into `out`. What was written before corrupt bytes is counted in `written`.
    pub fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        match self {
            Self::Gzip(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let outcome = match decoder.decompress(input, out, flate2::FlushDecompress::None) {
                    Ok(flate2::Status::StreamEnd) => Outcome::MemberEnd,
                    Ok(_) => Outcome::More,
                    Err(error) => corrupt(&error),
                };
                progress(before, (decoder.total_in(), decoder.total_out()), outcome)
            }
            Self::Bzip2(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let outcome = match decoder.decompress(input, out) {
                    Ok(bzip2::Status::StreamEnd) => Outcome::MemberEnd,
                    Ok(_) => Outcome::More,
                    Err(error) => corrupt(&error),
                };
                progress(before, (decoder.total_in(), decoder.total_out()), outcome)
            }
            Self::Xz(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let outcome = match decoder.process(input, out, Action::Run) {
                    Ok(liblzma::stream::Status::StreamEnd) => Outcome::MemberEnd,
                    Ok(_) => Outcome::More,
                    Err(liblzma::stream::Error::MemLimit) => Outcome::Corrupt(format!(
                        "needs more than {} MiB of memory to unpack; unpack it with xz first",
                        XZ_MEMORY >> 20
                    )),
                    Err(error) => corrupt(&error),
                };
                progress(before, (decoder.total_in(), decoder.total_out()), outcome)
            }
            Self::Zstd { decoder, wanted } => {
                // Never more than the decoder asks for: then one call decodes one block, and a corrupt block cannot
                // take the block before it along (zstd does not say what it wrote in a call that fails).
                let mut source = InBuffer::around(&input[..input.len().min(*wanted)]);
                let mut target = OutBuffer::around(out);
                let result = decoder.run(&mut source, &mut target);
                let (read, written) = (source.pos(), target.pos());
                let outcome = match result {
                    Ok(0) => Outcome::MemberEnd,
                    Ok(hint) => {
                        // a full target may hide decoded bytes, which go first
                        *wanted = if written < target.capacity() { hint } else { 0 };
                        Outcome::More
                    }
                    Err(error) if error.to_string().contains("requires too much memory") => Outcome::Corrupt(format!(
                        "needs a window over {} MiB; unpack it with zstd --long=31 first",
                        1 << (ZSTD_WINDOW_LOG - 20)
                    )),
                    Err(error) => corrupt(&error),
                };
                Step { read, written, outcome }
            }
        }
    }
}

fn corrupt(error: &dyn Error) -> Outcome {
    Outcome::Corrupt(format!("is corrupt ({error})"))
}

fn progress(before: (u64, u64), after: (u64, u64), outcome: Outcome) -> Step {
    // both differences are at most the length of a slice
    Step { read: (after.0 - before.0) as usize, written: (after.1 - before.1) as usize, outcome }
}
