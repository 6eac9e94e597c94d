//! Ids that are looked for as bytes, in whatever way a log writes them.
//!
//! A search must not miss a record: a line that may hold an id is read, and what was read decides. So only the longest
//! part of an id that every producer writes as it is (no character that some JSON writer escapes) is looked for, and a
//! line that writes one of its characters as `\u00xx` may hold it as well.

use std::ops::Range;

use memchr::memmem::{self, Finder};
use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};

/// Ids that are looked for.
#[derive(Debug)]
pub struct Needles {
    ids: Vec<Vec<u8>>,
    /// Finds the part of an id that is never escaped; None where some id has no such part, so that any line may hold it.
    plain: Option<Plain>,
    /// Characters that an id has, of those that an escape of two digits can stand for.
    characters: [bool; 256],
    /// Endings that producers add to an id.
    cuts: Vec<String>,
}

/// Finds texts as they stand.
#[derive(Debug)]
enum Plain {
    /// One text, which takes half the time.
    One(Box<Finder<'static>>),
    Several(Regex),
}

impl Plain {
    fn find_at(&self, block: &[u8], at: usize) -> Option<Range<usize>> {
        match self {
            Plain::One(finder) => {
                let found = at + finder.find(&block[at..])?;
                Some(found..found + finder.needle().len())
            }
            Plain::Several(regex) => regex.find_at(block, at).map(|found| found.range()),
        }
    }
}

/// A line that may hold an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// With its newline.
    pub line: Range<usize>,
    /// False where the id goes on behind what was looked for: it is only the beginning of another.
    pub is_whole: bool,
}

impl Needles {
    /// For ids without what producers put around them.
    pub fn new<'a>(ids: impl IntoIterator<Item = &'a str>, cuts: &[String]) -> Self {
        let mut ids: Vec<&str> = ids.into_iter().filter(|id| !id.is_empty()).collect();
        // of two that begin alike the longer one is tried first
        ids.sort_unstable_by_key(|id| (std::cmp::Reverse(id.len()), *id));
        ids.dedup();
        let mut characters = [false; 256];
        for character in ids.iter().flat_map(|id| id.chars()) {
            let byte = u8::try_from(u32::from(character)).ok();
            byte.into_iter().for_each(|byte| characters[usize::from(byte)] = true);
        }
        let pattern = |id: &&str| {
            Some(match is_hex(id) {
                true => format!("(?i:{})", with_hyphens(id, "-?")),
                false => regex::escape(longest_plain(id)?),
            })
        };
        let patterns: Option<Vec<String>> = ids.iter().map(pattern).collect();
        let several = || {
            let patterns = patterns.filter(|patterns| !patterns.is_empty())?.join("|");
            RegexBuilder::new(&patterns).unicode(false).size_limit(64 << 20).build().ok().map(Plain::Several)
        };
        let plain = match &ids[..] {
            [id] if !is_hex(id) => longest_plain(id).map(|plain| Plain::One(Box::new(Finder::new(plain).into_owned()))),
            _ => several(),
        };
        let ids = ids.iter().map(|id| id.as_bytes().to_vec()).collect();
        Self { ids, plain, characters, cuts: cuts.to_vec() }
    }

    /// Tells of every line of a block that may hold an id, each once and in order.
    pub fn find(&self, block: &[u8], mut take: impl FnMut(Hit)) {
        let Some(plain) = &self.plain else {
            return lines(block).for_each(|line| take(Hit { line, is_whole: true }));
        };
        let mut escaped = self.escaped(block).into_iter().peekable();
        let mut at = 0;
        while let Some(found) = plain.find_at(block, at) {
            let line = line_around(block, found.start);
            while let Some(other) = escaped.next_if(|other| other.start < line.start) {
                take(Hit { line: other, is_whole: true });
            }
            let is_escaped = escaped.next_if_eq(&line).is_some();
            let is_whole = is_escaped || self.is_whole_in(block, found, line.end);
            at = line.end;
            take(Hit { line, is_whole });
        }
        escaped.for_each(|line| take(Hit { line, is_whole: true }));
    }

    /// Whether one of the ids stands in a text, as a word of its own.
    pub fn stand_in(&self, text: &str) -> bool {
        let (text, lower) = (text.as_bytes(), text.to_ascii_lowercase().replace('-', ""));
        let stands = |id: &Vec<u8>| {
            // so many digits stand for nothing else, whatever they stand between
            if std::str::from_utf8(id).is_ok_and(is_hex) {
                return memmem::find(lower.as_bytes(), id).is_some();
            }
            memmem::find_iter(text, id).any(|place| {
                let (before, rest) = (text[..place].last(), &text[place + id.len()..]);
                let is_cut = || self.cuts.iter().any(|cut| rest.starts_with(cut.as_bytes()));
                before.is_none_or(|byte| !byte.is_ascii_alphanumeric()) && (!goes_on(rest) || is_cut())
            })
        };
        self.ids.iter().any(stands)
    }

    /// The lines that write a character of an id as an escape.
    fn escaped(&self, block: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while let Some(place) = memmem::find(&block[at..], br"\u00") {
            let digits = at + place + 4;
            at = digits;
            let byte = block.get(digits..digits + 2).and_then(|digits| std::str::from_utf8(digits).ok());
            if byte
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .is_some_and(|byte| self.characters[byte as usize])
            {
                let line = line_around(block, digits);
                at = line.end;
                found.push(line);
            }
        }
        found
    }

    /// Whether the id ends where something in the line from a first place on was found.
    fn is_whole_in(&self, block: &[u8], first: Range<usize>, end: usize) -> bool {
        let Some(plain) = &self.plain else { return true };
        let mut found = Some(first);
        while let Some(place) = found {
            let text = &block[place.clone()];
            // an id that is looked for in part is compared when the line was read
            let bare: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'-').collect();
            let is_all = self.ids.iter().any(|id| id == text || id.eq_ignore_ascii_case(&bare));
            let rest = &block[place.end..end];
            if !is_all || !goes_on(rest) || self.cuts.iter().any(|cut| rest.starts_with(cut.as_bytes())) {
                return true;
            }
            found = plain.find_at(&block[..end], place.end);
        }
        false
    }
}

/// Whether what follows an id belongs to it.
fn goes_on(rest: &[u8]) -> bool {
    match rest {
        [next, ..] if next.is_ascii_alphanumeric() => true,
        [b'-' | b'_' | b'.' | b':', behind, ..] => behind.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// Whether an id is a number in hexadecimal digits, as UUIDs and trace ids are, which some write in capitals.
pub fn is_hex(id: &str) -> bool {
    const LEAST: usize = 16;
    id.bytes().filter(|byte| *byte != b'-').count() >= LEAST
        && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A number of 32 digits with what stands where a UUID has its hyphens; others as they are.
pub fn with_hyphens(id: &str, between: &str) -> String {
    match id.len() {
        32 => [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join(between),
        _ => id.to_owned(),
    }
}

/// The longest part of an id that no JSON writer escapes; None where that is too short to find much by it.
fn longest_plain(id: &str) -> Option<&str> {
    const LEAST: usize = 2;
    let is_escaped = |character: char| !character.is_ascii_graphic() || r#""\/<>&'+=`"#.contains(character);
    id.split(is_escaped).max_by_key(|part| part.len()).filter(|part| part.len() >= LEAST)
}

/// The line, with its newline, that a place of a block stands in.
fn line_around(block: &[u8], place: usize) -> Range<usize> {
    let start = memrchr(b'\n', &block[..place]).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', &block[place..]).map_or(block.len(), |newline| place + newline + 1);
    start..end
}

fn lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    block.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        start += line.len();
        start - line.len()..start
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines that may hold one of the ids, each with whether it is whole.
    fn found(ids: &[&str], block: &str) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let needles = Needles::new(ids.iter().copied(), &["_cache_hit".to_owned()]);
        needles.find(block.as_bytes(), |hit| found.push((block[hit.line].trim_end().to_owned(), hit.is_whole)));
        found
    }

    fn whole(ids: &[&str], line: &str) -> bool {
        found(ids, line).contains(&(line.to_owned(), true))
    }

    #[test]
    fn an_id_is_found_in_its_line_wherever_that_stands() {
        let block = "{\"id\":\"a-1\"}\n{\"id\":\"a-2\"}\nends with a-1";
        assert_eq!(found(&["a-1"], block), [("{\"id\":\"a-1\"}".to_owned(), true), ("ends with a-1".to_owned(), true)]);
        assert_eq!(found(&["a-3"], block), []);
    }

    #[test]
    fn an_id_that_begins_another_is_told_from_it() {
        assert_eq!(found(&["req-1"], r#"{"id":"req-10"}"#), [(r#"{"id":"req-10"}"#.to_owned(), false)]);
        assert_eq!(found(&["req-1"], r#"{"id":"req-1-2"}"#), [(r#"{"id":"req-1-2"}"#.to_owned(), false)]);
        assert!(whole(&["req-1"], r#"{"ids":["req-10","req-1"]}"#));
        assert!(whole(&["req-1", "req-10"], r#"{"id":"req-10"}"#));
        assert!(whole(&["req-1"], "request req-1: done"));
        assert!(whole(&["req-1"], r#"{"id":"req-1_cache_hit1700"}"#));
    }

    #[test]
    fn an_id_is_found_however_json_writes_it() {
        assert!(whole(&["a/b-1"], r#"{"id":"a\/b-1"}"#));
        assert!(whole(&["req-1"], r#"{"id":"req\u002d1"}"#));
        assert!(whole(&["req-1"], r#"{"id":"\u0072eq-1"}"#));
        assert!(whole(&["订单-12"], r#"{"id":"\u8ba2\u5355-12"}"#));
        assert!(whole(&["订单"], r#"{"id":"\u8ba2\u5355"}"#));
        assert!(whole(&["a\"b"], r#"{"id":"a\"b"}"#));
        assert!(whole(&["req-1"], r#"{"log":"{\"id\":\"req-1\"}\n"}"#));
    }

    #[test]
    fn hexadecimal_ids_are_found_in_capitals_too_and_others_are_not() {
        let uuid = "0197a3f2c1d07abc8def0123456789ab";
        assert!(whole(&[uuid], &uuid.to_uppercase()));
        assert!(whole(&[uuid], "0197A3F2-c1d0-7abc-8def-0123456789ab"));
        assert_eq!(found(&["req-one"], "REQ-ONE"), []);
    }

    #[test]
    fn an_id_stands_in_a_text_as_a_word_of_its_own() {
        let stands = |id: &str, text: &str| Needles::new([id], &[]).stand_in(text);
        assert!(stands("req-1", "evicted req-1, req-2"));
        assert!(stands("req-1", "chatcmpl-req-1: done"));
        assert!(!stands("req-1", "evicted req-10"));
        assert!(!stands("eq-1", "evicted req-1"));
        assert!(stands("订单", "订单"));
    }

    proptest! {
        #[test]
        fn no_line_with_an_id_is_missed(
            id in r#"[a-c/"é-]{1,6}"#,
            before in r#"[a-c/é -]{0,8}"#,
            after in r#"[ ,}]{0,4}"#,
            others in prop::collection::vec("[x-z\"]{0,9}", 0..4),
            escapes in 0..4_usize,
        ) {
            let written: String = id.chars().enumerate().map(|(at, character)| match character {
                '"' => "\\\"".to_owned(),
                '/' if escapes == 1 => "\\/".to_owned(),
                _ if escapes == 2 && at == 0 || escapes == 3 => format!("\\u{:04x}", u32::from(character)),
                _ => character.to_string(),
            }).collect();
            let line = format!("{before}{written}{after}");
            let block = others.iter().cloned().chain([line.clone()]).chain(others.clone()).collect::<Vec<_>>().join("\n");
            let mut seen = Vec::new();
            Needles::new([id.as_str()], &[]).find(block.as_bytes(), |hit| seen.push(block[hit.line].trim_end_matches('\n').to_owned()));
            prop_assert!(seen.contains(&line), "{:?} in {:?}", id, block);
        }
    }
}
