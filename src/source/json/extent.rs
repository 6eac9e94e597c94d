//! Where values end: the grammar of JSON once more, built for speed, for the values inside a shape.
//!
//! Each function is given where a value starts and returns where it ends, or None if it is invalid. None of them looks
//! for control characters or at UTF-8, which is the index's part, nor for the end of the line: a value that goes on behind
//! it does not end where the shape of the line says. Lines end where a window follows.

use super::parse::nested_end;
use super::scalar::scalar_length;
use super::simd::{Lanes, Task, Text, WINDOW};
use super::unescape::first_of_pairs;

/// The end of the string whose content starts at `at`, which is the place of its closing quote.
pub(super) struct StringEnd<'a> {
    pub text: Text<'a>,
    pub at: u32,
}

impl Task for StringEnd<'_> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<u32> {
        let StringEnd { text, mut at } = self;
        while at + WINDOW as u32 <= text.nowhere() {
            let (quotes, backslashes) = lanes.quotes_and_backslashes(text.window(at));
            let escapes = first_of_pairs(backslashes);
            let end = quotes & !(escapes << 1);
            // Escaped quotes and backslashes need no second look; in a text that holds JSON they are many.
            let others = escapes & !((quotes | backslashes) >> 1);
            let next = end | others;
            if next == 0 {
                // a branch, so that the next window need not wait for what is in this one
                at += WINDOW as u32;
                continue;
            }
            at += next.trailing_zeros();
            if next & next.wrapping_neg() & others != 0 {
                at += escape_length(&text.bytes()[at as usize..])?;
            } else {
                return Some(at);
            }
        }
        None
    }
}

/// The length of the escape that the text, which begins with a backslash, begins with.
#[inline(always)]
fn escape_length(text: &[u8]) -> Option<u32> {
    match text {
        [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [_, b'u', digits @ ..] => digits.get(..4)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// The end of a number without sign and exponent; None is not sure. The number ends there unless it is longer than a
/// window, in which case digits follow. There is no branch for what kind of number it is, since the processor would often
/// guess it wrong.
#[inline(always)]
pub(super) fn usual_number_end<L: Lanes>(lanes: L, text: Text<'_>, at: u32) -> Option<u32> {
    let (non_digits, stops) = lanes.non_digits_and_stops(text.window(at));
    // The full stop of a fraction, if the first byte that is no digit is one, and something follows in the window.
    let stop = non_digits & non_digits.wrapping_neg() & stops & (u32::MAX >> 1);
    // A digit must be the first byte, and must follow the full stop.
    let no_digit = non_digits & (stop << 1 | 1);
    let leading_zero = !(non_digits >> 1) & stops & 1;
    (no_digit | leading_zero == 0).then_some(at + (non_digits ^ stop).trailing_zeros())
}

/// The end of one of the words of JSON, with no branch for the one it is; None is not sure.
#[inline(always)]
pub(super) fn usual_word_end(text: Text<'_>, at: u32) -> Option<u32> {
    let window = text.window(at);
    let (fours, _) = window.as_chunks();
    let four = u32::from_le_bytes(fours[0]);
    let is = |word: &[u8; 4]| four == u32::from_le_bytes(*word);
    let is_false = is(b"fals") & (window[4] == b'e');
    (is_false | is(b"true") | is(b"null")).then_some(at + 4 + u32::from(is_false))
}

/// The end of any string, number or word; of a number longer than a window perhaps too early, so that its line does not fit.
pub(super) struct ScalarEnd<'a> {
    pub text: Text<'a>,
    pub at: u32,
}

impl Task for ScalarEnd<'_> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<u32> {
        let ScalarEnd { text, at } = self;
        let unusual = || Some(at + scalar_length(&text.bytes()[at as usize..]).ok()? as u32);
        match text.bytes().get(at as usize)? {
            b'"' => Some(StringEnd { text, at: at + 1 }.run(lanes)? + 1),
            b'0'..=b'9' => usual_number_end(lanes, text, at).or_else(unusual),
            _ => unusual(),
        }
    }
}

/// The end of an array below `depth` objects, in a line that ends at `line_end`.
pub(super) struct ArrayEnd<'a> {
    pub text: Text<'a>,
    pub at: u32,
    pub depth: u8,
    pub line_end: u32,
}

impl Task for ArrayEnd<'_> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<u32> {
        let ArrayEnd { text, at: open, .. } = self;
        if text.byte(open) != b'[' {
            return None;
        }
        let behind_blank = |at: u32| at + u32::from(text.byte(at) == b' ');
        let mut at = behind_blank(open + 1);
        if text.byte(at) == b']' {
            return Some(at + 1);
        }
        loop {
            at = match text.byte(at) {
                b'[' | b'{' => return self.nested(),
                _ => behind_blank(ScalarEnd { text, at }.run(lanes)?),
            };
            match text.byte(at) {
                b']' => return Some(at + 1),
                b',' if at < self.line_end => at = behind_blank(at + 1),
                _ => return None,
            }
        }
    }
}

impl ArrayEnd<'_> {
    /// The same for an array that holds arrays or objects: the general parser checks it, within its line.
    #[inline(never)]
    fn nested(&self) -> Option<u32> {
        let line = self.text.bytes().get(..self.line_end as usize)?;
        nested_end(line, self.at as usize, u32::from(self.depth)).map(|end| end as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::simd::Portable;
    use super::*;

    /// Does something with a text that a window follows.
    fn with_text<T>(text: &str, done: impl FnOnce(Text<'_>) -> T) -> T {
        let padded = [text.as_bytes(), &[0; WINDOW]].concat();
        done(Text::new(&padded).expect("long enough"))
    }

    proptest! {
        #[test]
        fn a_usual_number_ends_where_the_grammar_says(number in "[0-9.]{0,34}|[0-9]{0,31}\\.?[0-9]{0,4}", behind in "[,}e-]") {
            let length = scalar_length(number.as_bytes()).ok();
            match with_text(&format!("{number}{behind}"), |text| usual_number_end(Portable, text, 0)) {
                Some(end) => {
                    let (before, rest) = number.split_at(end as usize);
                    let goes_on = rest.starts_with(|next: char| next.is_ascii_digit() || next == '.');
                    prop_assert!(length == Some(before.len()) || goes_on, "{} {}", before, rest);
                }
                None => prop_assert_ne!(length, Some(number.len())),
            }
        }

        #[test]
        fn a_string_ends_at_its_first_quote_without_a_backslash(parts in prop::collection::vec("[a-z]{0,40}|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-f]{4}", 0..9)) {
            let content = parts.concat();
            let end = with_text(&format!("{content}\",\"\""), |text| StringEnd { text, at: 0 }.run(Portable));
            prop_assert_eq!(end, Some(content.len() as u32));
        }
    }

    #[test]
    fn a_full_stop_at_the_end_of_the_window_ends_no_number() {
        let digits = "1".repeat(WINDOW - 1);
        let end = |text: &str| with_text(text, |text| usual_number_end(Portable, text, 0));
        assert_eq!(end(&format!("{digits}.,")), Some(WINDOW as u32 - 1));
        assert_eq!(end(&format!("{digits},")), Some(WINDOW as u32 - 1));
        assert_eq!(end(&format!("{}.,", &digits[1..])), None);
    }

    #[test]
    fn a_string_with_an_unknown_escape_or_without_an_end_has_none() {
        for broken in [r#"\x""#, r#"\u12g4""#, r#"\u12""#, "abc", r#"abc\""#] {
            assert_eq!(with_text(broken, |text| StringEnd { text, at: 0 }.run(Portable)), None, "{broken}");
        }
    }

    #[test]
    fn an_array_ends_at_its_own_bracket() {
        let end = |array: &str| {
            let line_end = array.len() as u32;
            with_text(array, |text| ArrayEnd { text, at: 0, depth: 1, line_end }.run(Portable))
        };
        for array in ["[]", "[ ]", "[1,2]", "[\"]\", null]", "[[],{\"a\":[1]}]", "[ 1.5, -2e3 ]"] {
            assert_eq!(end(array), Some(array.len() as u32), "{array}");
        }
        for broken in ["1", "[", "[1", "[,]", "[1,]", "[1 2]", "{}", "[1}", "[{\"a\":1,\"a\":2}]"] {
            assert_eq!(end(broken), None, "{broken}");
        }
    }
}
