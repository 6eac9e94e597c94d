//! Text in the room it has: how wide it is, and what of it stays where it is wider.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const CUT: &str = "…";

/// Columns of a terminal that the text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The most that a character adds to a text; an emoji's selector widens the sign before it.
fn most(char: char) -> usize {
    if char == '\u{fe0f}' { 1 } else { char.width().unwrap_or(0) }
}

/// The text without its end, where it is too wide: for sentences.
pub fn without_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (kept, _) = text.split_at(fitting(text, room.saturating_sub(1)));
    if room == 0 { String::new() } else { format!("{kept}{CUT}") }
}

/// The text without its middle, where it is too wide: ids and places differ at their ends.
pub fn without_middle(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head = &text[..fitting(text, kept.div_ceil(2))];
    let mut tail = text.len();
    let mut left = kept / 2;
    for (place, char) in text.char_indices().rev().take_while(|(place, _)| *place >= head.len()) {
        let Some(after) = left.checked_sub(most(char)) else { break };
        (left, tail) = (after, place);
    }
    if room == 0 { String::new() } else { format!("{head}{CUT}{}", &text[tail..]) }
}

/// How many bytes fit.
fn fitting(text: &str, room: usize) -> usize {
    let mut taken = 0;
    let beyond = text.char_indices().find(|(_, char)| {
        taken += most(*char);
        taken > room
    });
    beyond.map_or(text.len(), |(place, _)| place)
}

/// The text in lines that fit, broken between words where possible.
pub fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split(' ') {
        let wide = word.chars().map(most).fold(0, usize::saturating_add);
        let blank = usize::from(taken > 0);
        if taken > 0 && taken + blank + wide > room {
            lines.push(String::new());
            taken = 0;
        }
        let mut rest = word;
        while rest.chars().map(most).sum::<usize>() > room.saturating_sub(taken) && taken == 0 {
            // A character wider than the line stands in it all the same.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let (line, after) = rest.split_at(fitting(rest, room).max(first));
            if after.is_empty() {
                break;
            }
            lines.last_mut().into_iter().for_each(|last| last.push_str(line));
            lines.push(String::new());
            rest = after;
        }
        if let Some(last) = lines.last_mut() {
            if taken > 0 {
                last.push(' ');
            }
            last.push_str(rest);
            taken = last.chars().map(most).sum();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_loses_its_end_and_an_id_its_middle() {
        assert_eq!(without_end("evicted 312 blocks", 11), "evicted 31…");
        assert_eq!(without_middle("req-0123456789-77", 9), "req-…9-77");
        assert_eq!((without_end("abc", 3), without_middle("abc", 3)), ("abc".to_owned(), "abc".to_owned()));
        assert_eq!((without_end("abc", 0), without_middle("abc", 1)), (String::new(), "…".to_owned()));
    }

    #[test]
    fn wide_characters_are_never_halved() {
        assert_eq!(without_end("日本語", 4), "日…");
        assert_eq!(without_middle("日本語日本語", 6), "日…語");
        assert_eq!(folded("日本語", 4), ["日本", "語"]);
    }

    #[test]
    fn a_text_is_broken_between_words_and_a_long_word_within() {
        assert_eq!(folded("engine has no record of this id", 12), ["engine has", "no record of", "this id"]);
        assert_eq!(folded("a abcdefghij b", 4), ["a", "abcd", "efgh", "ij b"]);
        assert_eq!(folded("", 4), [""]);
        assert_eq!(folded("one line", usize::MAX), ["one line"]);
    }
}
