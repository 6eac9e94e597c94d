//! Backslash escapes resolved: the text that a JSON string stands for.
//!
//! Where a text holds JSON, an escaped quote comes every few bytes. So windows of 32 bytes are taken, and those backslashes
//! that only protect the byte behind them are dropped from eight bytes at once, by vector instructions (`simd`).

use super::simd::{Instructions, Lanes, Task, WINDOW};

/// Bytes that are moved at once.
const WORD: usize = 8;

/// Bytes behind the text so far into which a window may be written.
const ROOM: usize = WINDOW + WORD;

/// Appends `bytes` to `into` with JSON's backslash escapes resolved. Returns how many of them stand for another character
/// than the one behind the backslash, as those for newlines do.
///
/// A surrogate without its partner becomes U+FFFD. `bytes` is the inside of a valid JSON string;
/// from anything else an escape that makes no sense is taken as it stands.
pub fn unescape(bytes: &[u8], into: &mut Vec<u8>) -> usize {
    let start = into.len();
    // an escape takes more room than what it stands for, and whole windows are written
    into.resize(start + bytes.len() + ROOM, 0);
    let (written, others) = Instructions::detect().run(Unescape { bytes, out: &mut into[start..] });
    into.truncate(start + written);
    others
}

struct Unescape<'t, 'o> {
    bytes: &'t [u8],
    out: &'o mut [u8],
}

impl Task for Unescape<'_, '_> {
    /// Bytes written, and escapes that stand for another character.
    type Output = (usize, usize);

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> (usize, usize) {
        let Self { bytes, out } = self;
        let (mut read, mut written, mut others) = (0, 0, 0);
        while let Some(rest) = bytes.get(read..).filter(|rest| !rest.is_empty()) {
            let mut padded = [0; WINDOW];
            let window = match rest.first_chunk::<WINDOW>() {
                Some(window) => window,
                None => {
                    padded[..rest.len()].copy_from_slice(rest);
                    &padded
                }
            };
            let length = rest.len().min(WINDOW);
            let (backslashes, letters) = lanes.backslashes_and_letters(window);
            let protecting = first_of_pairs(backslashes);
            // what a letter is behind must be looked up, and what is behind the window comes with the next
            let special = protecting & (letters >> 1 | 1 << (length - 1));
            // a branch, so that the next window need not wait for what is in this one
            let plain = if special == 0 { length } else { special.trailing_zeros() as usize };
            let kept = ((1u64 << plain) - 1) as u32 & !protecting;
            let (words, _) = window.as_chunks::<WORD>();
            // room for the window wherever its words begin, so that each is written without a check
            let Some(room) = out.get_mut(written..).and_then(|room| room.first_chunk_mut::<ROOM>()) else { break };
            let mut place = 0;
            for (number, word) in words.iter().enumerate() {
                let first = number * WORD;
                let (from, to) = (place % WINDOW, place % WINDOW + WORD);
                room[from..to].copy_from_slice(&lanes.without(word, (protecting >> first) as u8));
                place += (kept >> first & 0xff).count_ones() as usize;
            }
            written += place;
            read += plain;
            if letters >> 1 & special & special.wrapping_neg() != 0 {
                let (length, character) = escape(&bytes[read..]);
                read += length;
                written += character.write(&mut out[written..]);
                others += 1;
            } else if plain == 0 {
                // a backslash with nothing behind it
                break;
            }
        }
        (written, others)
    }
}

/// Of the backslashes in a row the first of each pair: the second is a character.
#[inline(always)]
pub(super) fn first_of_pairs(backslashes: u32) -> u32 {
    if backslashes & backslashes << 1 == 0 {
        return backslashes;
    }
    let (mut rest, mut first) = (backslashes, 0);
    while rest != 0 {
        let lowest = rest & rest.wrapping_neg();
        first |= lowest;
        rest &= !(lowest | lowest << 1);
    }
    first
}

/// What an escape stands for.
enum Escaped {
    Nothing,
    Byte(u8),
    Character(char),
}

impl Escaped {
    /// Writes it, which takes no more room than its escape did; returns how much.
    #[inline(always)]
    fn write(self, out: &mut [u8]) -> usize {
        match self {
            Escaped::Nothing => 0,
            Escaped::Byte(byte) => {
                out[0] = byte;
                1
            }
            Escaped::Character(character) => character.encode_utf8(out).len(),
        }
    }
}

/// The length and the meaning of the escape that `text`, which begins with a backslash, begins with.
#[inline(always)]
fn escape(text: &[u8]) -> (usize, Escaped) {
    let byte = match text.get(1) {
        None => return (1, Escaped::Nothing),
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') if hex_unit(&text[2..]).is_some() => {
            let (character, after) = unescape_unicode(&text[2..]);
            return (text.len() - after.len(), Escaped::Character(character));
        }
        Some(other) => *other,
    };
    (2, Escaped::Byte(byte))
}

/// The character of the hex digits at the front of `after_u`, of two escapes if they are a
/// surrogate pair, and what follows.
fn unescape_unicode(after_u: &[u8]) -> (char, &[u8]) {
    let Some((unit, rest)) = hex_unit(after_u) else {
        return (char::REPLACEMENT_CHARACTER, after_u);
    };
    if (0xd800..0xdc00).contains(&unit)
        && let Some((low @ 0xdc00..0xe000, after_pair)) = rest.strip_prefix(b"\\u").and_then(hex_unit)
    {
        let point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), after_pair);
    }
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), rest)
}

/// Four hex digits as a UTF-16 unit, and what follows them.
fn hex_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let mut unit = 0;
    for &digit in digits {
        unit = unit * 16 + char::from(digit).to_digit(16)?;
    }
    Some((unit, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::simd::Portable;
    use super::*;

    fn unescaped(text: &str) -> String {
        let mut into = Vec::new();
        unescape(text.as_bytes(), &mut into);
        String::from_utf8(into).expect("unescaped text is UTF-8")
    }

    /// Byte by byte.
    fn slowly(text: &[u8]) -> Vec<u8> {
        let (mut read, mut out) = (0, Vec::new());
        while let Some(&byte) = text.get(read) {
            if byte == b'\\' {
                let (length, character) = escape(&text[read..]);
                let mut room = [0; 8];
                let written = character.write(&mut room);
                out.extend_from_slice(&room[..written]);
                read += length;
            } else {
                out.push(byte);
                read += 1;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn escapes_are_resolved_wherever_they_stand(
            parts in prop::collection::vec(prop_oneof![
                Just(r#"\""#.to_owned()), Just(r"\\".to_owned()), Just(r"\n".to_owned()), Just(r"\u00e9".to_owned()),
                Just(r"\ud83d\ude00".to_owned()), Just(r"\".to_owned()), Just("é".to_owned()), "[ -~]{0,40}",
            ], 0..40),
        ) {
            let text = parts.concat();
            let mut fast = b"before".to_vec();
            unescape(text.as_bytes(), &mut fast);
            prop_assert_eq!(&fast[..6], b"before");
            prop_assert_eq!(&fast[6..], slowly(text.as_bytes()));
            let mut plain = vec![0; text.len() + ROOM];
            let (written, _) = Unescape { bytes: text.as_bytes(), out: &mut plain }.run(Portable);
            prop_assert_eq!(&plain[..written], &fast[6..]);
        }
    }

    #[test]
    fn text_without_escapes_is_copied() {
        assert_eq!(unescaped("路径 a/b"), "路径 a/b");
    }

    #[test]
    fn every_short_escape_is_resolved() {
        assert_eq!(unescaped(r#"\"\\\/\b\f\n\r\t"#), "\"\\/\u{8}\u{c}\n\r\t");
    }

    #[test]
    fn unicode_escapes_are_resolved_also_as_surrogate_pairs() {
        assert_eq!(unescaped(r"\u0041\u00e9\u8def\uD83D\ude00!"), "Aé路😀!");
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(unescaped(r"\ud800"), "\u{fffd}");
        assert_eq!(unescaped(r"\ude00x"), "\u{fffd}x");
        assert_eq!(unescaped(r"\ud800\u0041"), "\u{fffd}A");
        assert_eq!(unescaped(r"\ud800\ud83d\ude00"), "\u{fffd}😀");
    }
}
