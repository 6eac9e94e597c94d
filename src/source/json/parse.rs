//! The general parser: one JSON text that is an object, byte by byte, whatever its form.
//!
//! It is what decides if a line is valid; the shapes are only a faster way to the same answer.
//! Records that span lines (items of an array, pretty-printed objects) come here directly.

use super::keys::{Key, Keys};
use super::record::Span;
use super::scalar::scalar_length;
use crate::source::value::Reject;

/// Objects and arrays may stand in each other this deep, the record itself being the first level.
pub(super) const MAX_DEPTH: u32 = 64;

/// Checks the array or object that starts at `start`, which stands `depth` levels deep. Returns its
/// end, or None if it is broken or repeats a key.
pub(super) fn nested_end(text: &[u8], start: usize, depth: u32) -> Option<usize> {
    let mut keys = Keys::default();
    let mut parser = Parser { text, at: start, depth, duplicates: 0, visitor: &mut (), keys: &mut keys };
    parser.value().ok()?;
    (parser.duplicates == 0).then_some(parser.at)
}

/// Parses one JSON text that is an object, blanks and newlines around it allowed. Returns how many
/// keys repeat an earlier one of their object.
pub(super) fn parse_object<V: Visitor>(text: &[u8], visitor: &mut V, keys: &mut Keys) -> Result<u32, Reject> {
    match text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => parse_value(text, visitor, keys),
        _ if u32::try_from(text.len()).is_err() => Err(Reject::TooLong),
        _ => Err(Reject::NotAnObject),
    }
}

/// The same for a JSON text of any kind.
pub(super) fn parse_value<V: Visitor>(text: &[u8], visitor: &mut V, keys: &mut Keys) -> Result<u32, Reject> {
    if u32::try_from(text.len()).is_err() {
        return Err(Reject::TooLong);
    }
    keys.clear();
    let mut parser = Parser { text, at: 0, depth: 0, duplicates: 0, visitor, keys };
    parser.skip_blanks();
    let is_utf8 = match simdutf8::compat::from_utf8(text) {
        Ok(_) => true,
        Err(error) if error.error_len().is_none() => {
            // Cut off inside a character, and most likely elsewhere too.
            parser.text = &text[..error.valid_up_to()];
            false
        }
        Err(_) => return Err(Reject::BadUtf8),
    };
    parser.value()?;
    parser.skip_blanks();
    match parser.peek() {
        Some(_) => Err(Reject::Malformed),
        None if is_utf8 => Ok(parser.duplicates),
        None => Err(Reject::BadUtf8),
    }
}

/// What the parser tells as it goes. Values come in the order of the text; a key comes before its
/// value.
pub(super) trait Visitor {
    fn key(&mut self, text: &[u8], key: Key);
    fn scalar(&mut self, value: Span);
    fn open(&mut self, bracket: u8);
    /// The array or object whose text is `value` ends.
    fn close(&mut self, value: Span);
}

impl Visitor for () {
    fn key(&mut self, _: &[u8], _: Key) {}
    fn scalar(&mut self, _: Span) {}
    fn open(&mut self, _: u8) {}
    fn close(&mut self, _: Span) {}
}

struct Parser<'t, 'p, V> {
    text: &'t [u8],
    at: usize,
    /// How many arrays and objects are open.
    depth: u32,
    duplicates: u32,
    visitor: &'p mut V,
    keys: &'p mut Keys,
}

impl<V: Visitor> Parser<'_, '_, V> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte, which a value cannot do without.
    fn next(&mut self) -> Result<u8, Reject> {
        let byte = self.peek().ok_or(Reject::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<(), Reject> {
        let start = self.at;
        match self.peek().ok_or(Reject::CutOff)? {
            b'"' => {
                self.at += 1;
                self.string()?;
                self.visitor.scalar(Span::new(start, self.at));
            }
            bracket @ (b'{' | b'[') => {
                if self.depth == MAX_DEPTH {
                    return Err(Reject::TooDeep);
                }
                self.at += 1;
                self.depth += 1;
                self.visitor.open(bracket);
                if bracket == b'{' { self.members() } else { self.items() }?;
                self.depth -= 1;
                self.visitor.close(Span::new(start, self.at));
            }
            _ => {
                self.at += scalar_length(&self.text[start..])?;
                self.visitor.scalar(Span::new(start, self.at));
            }
        }
        Ok(())
    }

    /// The rest of an object behind its opening brace.
    fn members(&mut self) -> Result<(), Reject> {
        let first_key = self.keys.len();
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_blanks();
            self.expect(b'"')?;
            let key = self.string()?;
            self.keys.push(self.text, key);
            self.visitor.key(self.text, key);
            self.skip_blanks();
            self.expect(b':')?;
            self.skip_blanks();
            self.value()?;
            self.skip_blanks();
            match self.next()? {
                b',' => {}
                b'}' => break,
                _ => return Err(Reject::Malformed),
            }
        }
        self.duplicates += self.keys.close_object(self.text, first_key);
        Ok(())
    }

    /// The rest of an array behind its opening bracket.
    fn items(&mut self) -> Result<(), Reject> {
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_blanks();
            self.value()?;
            self.skip_blanks();
            match self.next()? {
                b',' => {}
                b']' => return Ok(()),
                _ => return Err(Reject::Malformed),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Reject> {
        if self.next()? == byte { Ok(()) } else { Err(Reject::Malformed) }
    }

    /// The rest of a string behind its opening quote.
    fn string(&mut self) -> Result<Key, Reject> {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_length(&self.text[self.at..]);
            match self.next()? {
                b'"' => {
                    return Ok(Key { name: Span::new(start, self.at - 1), escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Reject::Malformed),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Reject> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.next()?.is_ascii_hexdigit() {
                        return Err(Reject::Malformed);
                    }
                }
                Ok(())
            }
            _ => Err(Reject::Malformed),
        }
    }
}

/// How many bytes come before the first quote, backslash or control character.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The lowest high bit that is set marks the first byte below `bound`; those above it may be
    // wrong.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    for (count, bytes) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let special = below(word, 0x20) | is(b'"') | is(b'\\');
        if special != 0 {
            return count * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().take_while(|&&byte| !matches!(byte, b'"' | b'\\' | ..0x20)).count();
    words.len() * 8 + plain
}
