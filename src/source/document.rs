//! Cuts JSON that is not one record a line into the texts of its records: arrays of records, and objects that span lines or
//! follow each other, in any mixture.
//!
//! Only quotes and braces are looked at, so that a record costs one fast pass here and is judged by its own parser. A cut or
//! damaged record must not take its neighbours along: pretty printers indent what is inside a record, so a line that
//! starts a record where records start ends a broken one before it.

mod record_line;

use std::io::{self, Read};

use memchr::{memchr3, memrchr};

use crate::source::value::{Reject, looks_like_json};
use crate::source::window::{MAX_RECORD, Piece, Window};
use record_line::{RecordLine, is_blank};

/// Bytes kept in view behind the scan of an object too long to keep, for looking back to the start of a line.
const LOOK_BACK: usize = 4096;

/// The objects of one input, in order.
pub struct Documents {
    window: Window,
    place: Place,
    /// Blanks in front of the line that is being read, and whether nothing else was read of it yet.
    indent: usize,
    in_indent: bool,
    /// Bytes at the front of the window that the last object lent out.
    lent: usize,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// Outside arrays: anything, with or without commas.
    Top,
    /// In an array: an item or its end.
    ItemOrEnd,
    /// In an array behind a comma: an item.
    Item,
    /// In an array behind an item: a comma or the end.
    CommaOrEnd,
}

/// How the search for the end of an object or array ended, each with the bytes up to there.
enum Cut {
    Whole(usize),
    /// A line starts the next record although this one is not closed.
    Restart(usize),
    TooLong(usize),
    /// The input ends first.
    Unclosed(usize),
}

impl Documents {
    /// The objects of a stream. A byte order mark at its start is passed over.
    pub fn new(stream: impl Read + Send + 'static) -> Self {
        let mut window = Window::over_stream(stream);
        window.skip_byte_order_mark();
        Self { window, place: Place::Top, indent: 0, in_indent: true, lent: 0 }
    }

    /// The next object, whose braces balance and which may still be malformed inside, a line of text, or a reject; `None`
    /// at the end.
    /// An error of the stream comes after all objects before it.
    pub fn next_object(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.pass(self.lent);
        self.lent = 0;
        loop {
            self.skip_blanks();
            let offset = self.window.offset();
            let rejected = |reject| Ok(Some(Piece::Rejected { offset, reject }));
            let Some(byte) = self.window.byte(0) else {
                let open_array = self.place != Place::Top && !self.window.is_broken();
                self.place = Place::Top;
                if open_array {
                    return rejected(Reject::CutOff);
                }
                self.window.finish()?;
                return Ok(None);
            };
            match (byte, self.place) {
                (b',', Place::Top) => self.pass(1),
                (b',', Place::CommaOrEnd) => self.step(1, Place::Item),
                (b',', Place::Item | Place::ItemOrEnd) => {
                    self.step(1, Place::Item);
                    return rejected(Reject::Malformed);
                }
                (b']', Place::ItemOrEnd | Place::CommaOrEnd) => self.step(1, Place::Top),
                (b']', Place::Item) => {
                    self.step(1, Place::Top);
                    return rejected(Reject::Malformed);
                }
                (b'{' | b'[', Place::CommaOrEnd) => {
                    self.place = Place::Item;
                    return rejected(Reject::Malformed);
                }
                (b'{', _) => return self.object(offset),
                (b'[', Place::Top) if self.opens_array() => self.step(1, Place::ItemOrEnd),
                (b'[', Place::Item | Place::ItemOrEnd) => {
                    let (Cut::Whole(length) | Cut::Restart(length) | Cut::TooLong(length) | Cut::Unclosed(length)) =
                        self.cut(b'[', b']');
                    self.step(length, Place::CommaOrEnd);
                    return rejected(Reject::NotAnObject);
                }
                _ => {
                    return match self.skip_stray() {
                        Some(reject) => rejected(reject),
                        None => Ok(Some(Piece::Line { offset })),
                    };
                }
            }
        }
    }

    fn object(&mut self, offset: u64) -> io::Result<Option<Piece<'_>>> {
        let in_array = self.place != Place::Top;
        let (behind, again) = if in_array { (Place::CommaOrEnd, Place::ItemOrEnd) } else { (Place::Top, Place::Top) };
        let reject = match self.cut(b'{', b'}') {
            Cut::Whole(length) => {
                self.lent = length;
                self.place = behind;
                return Ok(Some(Piece::Text { offset, bytes: &self.window.bytes()[..length] }));
            }
            Cut::Restart(length) => {
                self.step(length, again);
                Reject::CutOff
            }
            Cut::TooLong(length) => {
                self.step(length, behind);
                Reject::TooLong
            }
            Cut::Unclosed(length) => {
                // an array that is not closed either is the same damage
                self.step(length, Place::Top);
                Reject::CutOff
            }
        };
        Ok(Some(Piece::Rejected { offset, reject }))
    }

    /// Finds the end of the object or array at the front of the window.
    fn cut(&mut self, open: u8, close: u8) -> Cut {
        let mut line = RecordLine { indent: self.indent, opens_block: self.opens_block(), indented: None };
        let (mut at, mut depth, mut in_string, mut too_long) = (0, 0_usize, false, false);
        loop {
            let bytes = self.window.bytes();
            let rest = bytes.get(at..).unwrap_or_default();
            let found = if in_string { find_near(*b"\"\\\n", rest) } else { find_near([b'"', open, close], rest) };
            let Some(found) = found else {
                at = at.max(bytes.len());
                if bytes.len() > MAX_RECORD {
                    too_long = true;
                    line.is_indented(bytes, bytes.len());
                    let dropped = at.saturating_sub(LOOK_BACK).min(bytes.len());
                    self.window.consume(dropped);
                    at -= dropped;
                }
                if !self.window.extend() {
                    return Cut::Unclosed(self.window.bytes().len());
                }
                continue;
            };
            at += found;
            let cut = match bytes[at] {
                b'"' => {
                    in_string = !in_string;
                    None
                }
                b'\\' => {
                    at += 1;
                    None
                }
                // no string of JSON holds a newline: either the record is cut here, or its parser will say so
                b'\n' => {
                    let first = at + 1 + line.indent;
                    match self.window.byte(first) {
                        Some(b'{') if line.starts_at(self.window.bytes(), first) => Some(Cut::Restart(at + 1)),
                        Some(b'}') if line.ends_at(self.window.bytes(), first) => Some(Cut::Whole(first + 1)),
                        _ => None,
                    }
                }
                byte if byte == close => {
                    depth -= 1;
                    (depth == 0 || byte == b'}' && line.ends_at(bytes, at)).then_some(Cut::Whole(at + 1))
                }
                _ if depth > 0 && bytes[at] == b'{' && line.restarts_at(bytes, at) => {
                    Some(Cut::Restart(at - line.indent))
                }
                _ => {
                    depth += 1;
                    None
                }
            };
            match cut {
                Some(Cut::Whole(length) | Cut::Restart(length)) if too_long || length > MAX_RECORD => {
                    return Cut::TooLong(length);
                }
                Some(cut) => return cut,
                None => at += 1,
            }
        }
    }

    /// Whether nothing but the opening brace stands on the line where the object at the front of the window starts.
    fn opens_block(&mut self) -> bool {
        let mut at = 1;
        while let Some(b' ' | b'\t' | b'\r') = self.window.byte(at) {
            at += 1;
        }
        self.window.byte(at) == Some(b'\n')
    }

    /// Whether the bracket at the front of the window starts an array, and not a line of text such as `[12:00:01] started`.
    fn opens_array(&mut self) -> bool {
        let mut at = 1;
        while self.window.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at += 1;
        }
        match self.window.byte(at) {
            None | Some(b'{' | b'[' | b']' | b'"') => true,
            Some(_) => {
                let length = self.length_until(at, |byte, _| matches!(byte, b',' | b']' | b'\n'));
                is_scalar(&self.window.bytes()[at..length])
            }
        }
    }

    /// Passes over a scalar or a stretch of text where an object should be; None where that is a line of text.
    fn skip_stray(&mut self) -> Option<Reject> {
        let in_array = self.place != Place::Top;
        let start = if self.window.byte(0) == Some(b'"') { self.string_length() } else { 1 };
        let length = self.length_until(start, |byte, next| match byte {
            b',' | b']' => in_array,
            b'\n' => !in_array,
            b'{' => matches!(next, Some(b'"' | b'}' | b' ' | b'\n' | b'\r')),
            _ => false,
        });
        let line = &self.window.bytes()[..length];
        let scalar = is_scalar(line.trim_ascii());
        let is_text = !in_array && !scalar && !looks_like_json(line);
        let place = match self.place {
            Place::Top => Place::Top,
            // the record behind the text shall not count as one with a missing comma too
            _ if self.window.byte(length) == Some(b'{') => Place::ItemOrEnd,
            _ => Place::CommaOrEnd,
        };
        self.step(length, place);
        let reject = if scalar { Reject::NotAnObject } else { Reject::Malformed };
        (!is_text).then_some(reject)
    }

    /// How many bytes stand before the first one at or behind `from` for which `stop(byte, next byte)` holds. What is
    /// longer than a record may be is cut there.
    fn length_until(&mut self, from: usize, stop: impl Fn(u8, Option<u8>) -> bool) -> usize {
        let mut at = from;
        while let Some(byte) = self.window.byte(at) {
            let next = self.window.byte(at + 1);
            if stop(byte, next) || at >= MAX_RECORD {
                break;
            }
            at += 1;
        }
        at
    }

    /// The length with its quotes of the string at the front of the window, as far as it stays on its line.
    fn string_length(&mut self) -> usize {
        let mut at = 1;
        while let Some(byte) = self.window.byte(at) {
            match byte {
                b'"' => return at + 1,
                b'\n' => return at,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.window.bytes().len()
    }

    fn skip_blanks(&mut self) {
        loop {
            let bytes = self.window.bytes();
            let blanks = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let more = blanks == bytes.len();
            self.pass(blanks);
            if !(more && self.window.extend()) {
                return;
            }
        }
    }

    fn step(&mut self, count: usize, place: Place) {
        self.pass(count);
        self.place = place;
    }

    /// Moves forward and keeps account of the indentation of the line reached.
    fn pass(&mut self, count: usize) {
        let passed = &self.window.bytes()[..count.min(self.window.bytes().len())];
        let line = match memrchr(b'\n', passed) {
            Some(newline) => {
                (self.indent, self.in_indent) = (0, true);
                &passed[newline + 1..]
            }
            None => passed,
        };
        if self.in_indent {
            let blanks = line.iter().take_while(|&&byte| is_blank(byte)).count();
            self.indent += blanks;
            self.in_indent = blanks == line.len();
        }
        self.window.consume(count);
    }
}

/// Where one of three bytes is found first. Marks in JSON are a few bytes apart, where the start of a vector search costs more
/// than it saves; eight bytes at once in a register are the middle way, and a vector search takes over in long texts.
#[inline]
fn find_near(marks: [u8; 3], bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let mut at = 0;
    for word in bytes.as_chunks::<8>().0.iter().take(4) {
        let word = u64::from_le_bytes(*word);
        // a byte equal to a mark becomes zero, and the highest bit of the first zero byte is set
        let found = marks.iter().fold(0, |found, &mark| {
            let differing = word ^ (ONES * u64::from(mark));
            found | differing.wrapping_sub(ONES) & !differing
        }) & ONES << 7;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr3(marks[0], marks[1], marks[2], &bytes[at..]).map(|found| at + found)
}

/// Whether a text is one JSON value that is neither object nor array, judged by its form only.
fn is_scalar(text: &[u8]) -> bool {
    match text {
        b"null" | b"true" | b"false" => true,
        [b'"', inner @ .., b'"'] => !inner.contains(&b'\n'),
        [b'-' | b'0'..=b'9', ..] => std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_cut_the_same_however_it_is_read(content in r#"[\[\]{}",:\\\n a1]{0,60}"#) {
            pieces(&content);
        }

        #[test]
        fn objects_of_any_layout_are_cut_where_they_end(
            objects in prop::collection::vec(
                r#"\{("[a{}\[\],:]{0,3}(\\\\|\\")?": ?(1|\{\}|\[\{"b":\[\]\}, 2\]),\n? {0,3})*"z":null\n? *\}"#,
                0..5,
            ),
            blanks in "[ \n]{0,3}",
        ) {
            prop_assert_eq!(&pieces(&objects.join(&format!("{blanks}\n"))), &objects);
            prop_assert_eq!(&pieces(&format!("[{blanks}{}]", objects.join(&format!(",{blanks}")))), &objects);
        }
    }

    /// The objects as text and the rejects by name, each in order; offsets are checked on the way.
    fn pieces(content: &str) -> Vec<String> {
        let whole = cut(Cursor::new(content.to_owned()), content);
        let in_single_bytes = cut(SingleBytes(content.as_bytes().to_vec(), 0), content);
        assert_eq!(whole, in_single_bytes, "the cutting depends on how much is read at once");
        whole
    }

    fn cut(stream: impl Read + Send + 'static, content: &str) -> Vec<String> {
        let mut documents = Documents::new(stream);
        let mut pieces = Vec::new();
        while let Some(piece) = documents.next_object().unwrap() {
            pieces.push(match piece {
                Piece::Line { .. } => "Line".to_owned(),
                Piece::Text { offset, bytes } => {
                    assert!(content.as_bytes()[offset as usize..].starts_with(bytes));
                    String::from_utf8(bytes.to_vec()).unwrap()
                }
                Piece::Rejected { reject, .. } => format!("{reject:?}"),
            });
        }
        pieces
    }

    struct SingleBytes(Vec<u8>, usize);

    impl Read for SingleBytes {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some(&byte) = self.0.get(self.1) else { return Ok(0) };
            out[0] = byte;
            self.1 += 1;
            Ok(1)
        }
    }

    #[test]
    fn an_array_gives_its_objects() {
        assert_eq!(pieces("[]"), [""; 0]);
        assert_eq!(pieces("\u{feff} [ {\"a\":1} ,\n {\"a\":{\"b\":[{}]}}\n]\n"), ["{\"a\":1}", "{\"a\":{\"b\":[{}]}}"]);
    }

    #[test]
    fn objects_and_arrays_may_follow_each_other() {
        assert_eq!(pieces("{\n  \"a\": 1\n}\n{\n}\n"), ["{\n  \"a\": 1\n}", "{\n}"]);
        assert_eq!(pieces("{}{},\n{}[{},{}][{}]{}").len(), 7);
    }

    #[test]
    fn quotes_hide_braces_and_backslashes_hide_quotes() {
        let object = r#"{"a}":"{\"}\\","b":"\\\\\"{"}"#;
        assert_eq!(pieces(&format!("[{object},{object}]")), [object, object]);
    }

    #[test]
    fn items_that_are_no_objects_are_rejected_each() {
        let array = r#"[1, {"a":1}, "x,{", null, [1,[{"b":2}]], -1.5e3, {"a":2}]"#;
        let rejected = "NotAnObject";
        let expected = [rejected, "{\"a\":1}", rejected, rejected, rejected, rejected, "{\"a\":2}"];
        assert_eq!(pieces(array), expected);
    }

    #[test]
    fn damage_between_items_costs_that_stretch_only() {
        let (one, two) = ("{\"a\":1}", "{\"a\":2}");
        assert_eq!(pieces("[{\"a\":1} {\"a\":2}]"), [one, "Malformed", two]);
        assert_eq!(pieces("[{\"a\":1},,{\"a\":2}]"), [one, "Malformed", two]);
        assert_eq!(pieces("[{\"a\":1},{\"a\":2},]"), [one, two, "Malformed"]);
        assert_eq!(pieces("[{\"a\":1}, junk here {\"a\":2}]"), [one, "Malformed", two]);
        assert_eq!(pieces("[{\"a\":1} junk here, {\"a\":2}]"), [one, "Malformed", two]);
        assert_eq!(pieces("[{\"a\":1}}, {\"a\":2}]"), [one, "Malformed", two]);
    }

    #[test]
    fn lines_of_text_between_objects_are_told_each() {
        let content = "INFO start\n{\n  \"a\": 1\n}\n[12:00:01] busy {x}\nbye\n{\n}\n";
        assert_eq!(pieces(content), ["Line", "{\n  \"a\": 1\n}", "Line", "Line", "{\n}"]);
    }

    #[test]
    fn a_damaged_object_whose_braces_balance_is_left_to_its_parser() {
        assert_eq!(pieces("[{\"a\":,},{\"b\":[}]"), ["{\"a\":,}", "{\"b\":[}"]);
    }

    #[test]
    fn what_the_end_of_the_file_cuts_off_is_one_reject() {
        assert_eq!(pieces("[{\"a\":1},{\"a\":"), ["{\"a\":1}", "CutOff"]);
        assert_eq!(pieces("[{\"a\":1},{\"a\":\"x"), ["{\"a\":1}", "CutOff"]);
        assert_eq!(pieces("[{\"a\":1},\n"), ["{\"a\":1}", "CutOff"]);
        assert_eq!(pieces("{\n  \"a\": 1\n}\n{\n"), ["{\n  \"a\": 1\n}", "CutOff"]);
    }

    /// Writes the records in the ways that are common, each with what stands between and around them.
    fn layouts(records: &[&str]) -> Vec<(&'static str, String)> {
        let indented =
            |by: &str| records.iter().map(|record| record.replace('\n', &format!("\n{by}"))).collect::<Vec<_>>();
        vec![
            ("objects", records.join("\n")),
            ("array with indented items", format!("[\n  {}\n]\n", indented("  ").join(",\n  "))),
            ("array with items at column 0", format!("[{}]\n", records.join(",\n"))),
            ("array with braces that share a line", format!("[ {} ]\n", records.join(", "))),
        ]
    }

    #[test]
    fn a_record_that_is_cut_at_any_place_costs_that_record_only() {
        let record =
            "{\n  \"a\": \"x{\\\"\",\n  \"b\": {\n    \"c\": [\n      {\n        \"d\": 1\n      }\n    ]\n  }\n}";
        for cut in 1..record.len() {
            let broken = record[..cut].trim_end_matches('\\');
            for (layout, content) in layouts(&[record, broken, record, record]) {
                // braces that share a line do not mark where a record starts that lost its own last line
                if layout == "array with braces that share a line" {
                    continue;
                }
                let whole = pieces(&content)
                    .iter()
                    .filter(|piece| piece.split_whitespace().eq(record.split_whitespace()))
                    .count();
                assert_eq!(whole, 3, "{layout}: {content}");
            }
        }
    }

    #[test]
    fn a_record_that_lost_a_line_costs_that_record_only() {
        let record = "{\n  \"a\": \"x\",\n  \"b\": {\n    \"c\": \"y\"\n  },\n  \"e\": 5\n}";
        for broken in [
            "{\n  \"a\": \"x\",\n  \"b\": {\n    \"c\": \"y\"\n  \"e\": 5\n}",
            "{\n  \"a\": \"x\",\n  \"b\": {\n    \"c\": \"y\n  },\n  \"e\": 5\n}",
            "{\n  \"a\": \"x,\n  \"b\": {\n    \"c\": \"y\"\n  },\n  \"e\": 5\n}",
        ] {
            for (layout, content) in layouts(&[record, broken, record, record]) {
                let pieces = pieces(&content);
                let whole =
                    pieces.iter().filter(|piece| piece.split_whitespace().eq(record.split_whitespace())).count();
                assert_eq!((whole, pieces.len()), (3, 4), "{layout}: {content}\n{pieces:#?}");
            }
        }
    }

    #[test]
    fn objects_whose_lines_are_not_indented_stay_whole() {
        let object = "{\n\"a\": [\n{\n\"b\": 1\n},\n{\n\"c\": 2\n}\n],\n\"d\":\n{\n}\n}";
        assert_eq!(pieces(&format!("{object}\n{object}\n")), [object, object]);
        assert_eq!(pieces(&format!("[\n{object},\n{object}\n]\n")), [object, object]);
        let hugging = "{\"a\": {\n  \"b\": 1\n}, \"c\": 2\n}";
        assert_eq!(pieces(&format!("{hugging}\n{hugging}\n")), [hugging, hugging]);
    }

    #[test]
    fn an_object_over_the_limit_is_rejected_and_its_neighbours_are_read() {
        let long = format!("{{\"a\":{{\"b\":\"{}\"}}}}", "x".repeat(MAX_RECORD));
        let expected = ["{\"a\":1}", "TooLong", "{\"a\":2}"];
        let content = format!("[{{\"a\":1}},{long},{{\"a\":2}}]");
        assert_eq!(cut(Cursor::new(content.clone()), &content), expected);
        let open = format!("{{\"a\":1}}\n{}\n{{\"a\":2}}\n", &long[..long.len() - 2]);
        assert_eq!(cut(Cursor::new(open.clone()), &open), expected);
    }

    #[test]
    fn an_error_of_the_stream_comes_after_the_objects_before_it() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut documents = Documents::new(Cursor::new(b"[{},").chain(Failing));
        assert_eq!(documents.next_object().unwrap(), Some(Piece::Text { offset: 1, bytes: b"{}" }));
        assert_eq!(documents.next_object().unwrap_err().to_string(), "broken");
        assert_eq!(documents.next_object().unwrap(), None);
    }
}
