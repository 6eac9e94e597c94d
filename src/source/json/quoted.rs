//! JSON inside a JSON string, read where it stands: its escapes are resolved only where a value needs it.
//!
//! In such text a quote is `\"`, a backslash `\\`, and so an escape of the object inside begins with two backslashes. Any
//! other escape of the string around it is left to the general parser, which reads the text with its escapes resolved.

use std::cell::{Cell, OnceCell};

use super::record::{Span, is_escaped};
use super::simd::{Lanes, Task, Text, WINDOW};
use super::unescape::unescape;

/// The object that the inside of a JSON string seems to be, without the newline at its end; None if it is none, or with
/// blanks around it.
pub fn object(text: &[u8]) -> Option<&[u8]> {
    let object = text.strip_suffix(br"\n").unwrap_or(text);
    (object.starts_with(br#"{\""#) && object.ends_with(b"}")).then_some(object)
}

/// Puts what stands from `start` on one line: newlines inside a JSON text are blanks, and other text is one record
/// however many lines it has. Lines that are each an object stay apart.
pub fn one_line(text: &mut Vec<u8>, start: usize) {
    while text.len() > start && matches!(text.last(), Some(b'\n' | b'\r')) {
        text.pop();
    }
    if memchr::memchr2(b'\n', b'\r', &text[start..]).is_none() {
        return;
    }
    let is_object = |line: &[u8]| line.trim_ascii().starts_with(b"{") && line.trim_ascii().ends_with(b"}");
    if text[start..].split(|&byte| byte == b'\n').all(is_object) {
        return;
    }
    for byte in &mut text[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Text as it stands in a string.
pub(super) fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(quoted_length(text));
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted
}

/// The length of text as it stands in a string.
pub(super) fn quoted_length(text: &[u8]) -> usize {
    text.len() + text.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

/// The end of the quoted string whose content starts at `at`, which is the place of the backslash of its closing quote.
pub(super) struct QuotedEnd<'a> {
    pub text: Text<'a>,
    pub at: u32,
}

impl Task for QuotedEnd<'_> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<u32> {
        let QuotedEnd { text, mut at } = self;
        while at + WINDOW as u32 <= text.nowhere() {
            let stops = lanes.string_stops(text.window(at));
            if stops == 0 {
                at += WINDOW as u32;
                continue;
            }
            at += stops.trailing_zeros();
            match text.bytes().get(at as usize..)? {
                [b'\\', b'"', ..] => return Some(at),
                [b'\\', b'\\', behind @ ..] => at += 2 + rest_of_escape(behind)?,
                _ => return None,
            }
        }
        None
    }
}

/// The length of what follows the backslash of an escape of the object inside.
#[inline(always)]
fn rest_of_escape(text: &[u8]) -> Option<u32> {
    match text {
        [b'\\', b'"' | b'\\', ..] => Some(2),
        [b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(1),
        [b'u', digits @ ..] => digits.get(..4)?.iter().all(u8::is_ascii_hexdigit).then_some(5),
        _ => None,
    }
}

/// The values of a quoted record that its text does not hold as they are: objects, arrays and strings with escapes of their
/// own. They are written when they are asked for.
#[derive(Default)]
pub(super) struct Apart {
    /// By slot.
    values: Vec<OnceCell<Vec<u8>>>,
    is_used: Cell<bool>,
}

impl Apart {
    /// Forgets the values of the last record; another with so many slots comes.
    #[inline(always)]
    pub fn clear(&mut self, slots: usize) {
        if self.is_used.take() || self.values.len() != slots {
            self.values.clear();
            self.values.resize_with(slots, OnceCell::new);
        }
    }

    /// Where the value stands that stands quoted in this place.
    #[inline(always)]
    pub fn place<'a>(&'a self, slot: usize, text: &'a [u8], span: Span, may_hold_escapes: bool) -> (&'a [u8], Span) {
        match span.of(text) {
            [b'{' | b'[', ..] => self.write(slot, text, span),
            [b'"', content @ .., _] if may_hold_escapes && is_escaped(content) => self.write(slot, text, span),
            _ => (text, span),
        }
    }

    #[inline(never)]
    fn write<'a>(&'a self, slot: usize, text: &'a [u8], span: Span) -> (&'a [u8], Span) {
        let Some(value) = self.values.get(slot) else { return (text, Span::ABSENT) };
        self.is_used.set(true);
        let value = value.get_or_init(|| {
            let mut value = Vec::new();
            match span.of(text) {
                // the last byte is the backslash of the closing quote
                [b'"', content @ .., _] => {
                    value.push(b'"');
                    unescape(content, &mut value);
                    value.push(b'"');
                }
                nested => _ = unescape(nested, &mut value),
            }
            value
        });
        (value, Span::new(0, value.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::simd::Portable;
    use super::*;

    proptest! {
        #[test]
        fn a_quoted_string_ends_at_its_own_quote(
            parts in prop::collection::vec("[a-z]{0,40}|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-f]{4}", 0..9),
        ) {
            let content = quote(parts.concat().as_bytes());
            let padded = [&content[..], br#"\",\"next\":\""#, &[0; WINDOW]].concat();
            let text = Text::new(&padded).expect("long enough");
            prop_assert_eq!(QuotedEnd { text, at: 0 }.run(Portable), Some(content.len() as u32));
        }
    }

    #[test]
    fn an_escape_of_the_string_around_it_is_no_part_of_a_quoted_string() {
        for broken in [r#"\u0022"#, r"\n", r"a\/b\", r#"a"b\""#, r#"\\x\""#, r#"\\u12g4\""#, r"abc"] {
            let padded = [broken.as_bytes(), &[0; WINDOW]].concat();
            let text = Text::new(&padded).expect("long enough");
            assert_eq!(QuotedEnd { text, at: 0 }.run(Portable), None, "{broken}");
        }
    }

    #[test]
    fn an_object_is_told_by_its_first_key_and_its_brace() {
        assert_eq!(object(br#"{\"a\":1}\n"#), Some(&br#"{\"a\":1}"#[..]));
        assert_eq!(object(br#"{\"a\":1}"#), Some(&br#"{\"a\":1}"#[..]));
        for other in [&br#"{\"a\":1"#[..], br#"{\"a\":\n"#, b"{ }", br#" {\"a\":1}"#, br"text\n", br#"{\"a\":1}\r\n"#] {
            assert_eq!(object(other), None);
        }
    }
}
