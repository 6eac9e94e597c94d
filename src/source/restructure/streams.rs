//! The chunks of streamed answers to one record an answer, as it would be without streaming.
//!
//! Chunks of OpenAI's kind have the answer's id each: `{"id", "object": "chat.completion.chunk", "choices": [{"delta"}]}`,
//! usage only in the last, or so far in each. Events of Anthropic's kind have none: what follows a `message_start` in its
//! stream belongs to it. A stream that is cut is an answer as far as it came.

use std::collections::HashMap;

use super::{Part, Parts};
use crate::record::{Column, alias};
use crate::source::json::{ObjectWriter, Tree};

/// Answers that are open at once; a log whose ends are lost must not fill the memory.
const MOST_OPEN: usize = 1 << 20;

/// The answers that have not ended, by id, or by stream where chunks have none.
#[derive(Default)]
pub(super) struct Streams {
    open: HashMap<Key, Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(String),
    /// A hash of what tells streams apart.
    Stream(u64),
}

#[derive(Debug)]
struct Answer {
    /// Byte of the file where its first chunk starts.
    offset: u64,
    /// Keys with the JSON text of their values.
    members: Vec<(String, Vec<u8>)>,
}

impl Streams {
    /// Takes a chunk; hands out the answer that it ends.
    pub fn take(&mut self, chunk: &Tree<'_>, offset: u64, stream: u64, parts: &mut Parts) {
        let key = match chunk.get("id").and_then(Tree::scalar) {
            Some(id) => Key::Id(id.into_owned()),
            None => Key::Stream(stream),
        };
        let kind = chunk.get("type").and_then(Tree::scalar);
        let starts = kind.as_deref() == Some("message_start");
        if starts {
            // the one before it was cut
            self.end(&key, parts);
        }
        let begins = !self.open.contains_key(&key);
        if begins && self.open.len() >= MOST_OPEN {
            return parts.skipped.push("too many open");
        }
        // an error may be all of the answer; other events of an answer whose beginning is lost do not say whose they are
        let is_lost = begins && !matches!(kind.as_deref(), None | Some("message_start" | "error"));
        if is_lost || !begins {
            parts.skipped.push("stream chunk");
        }
        if is_lost {
            return;
        }
        let answer = self.open.entry(key.clone()).or_insert_with(|| Answer { offset, members: Vec::new() });
        let ends = match kind {
            Some(kind) => answer.add_event(&kind, chunk),
            None => answer.add_chunk(chunk),
        };
        if ends {
            self.end(&key, parts);
        }
    }

    fn end(&mut self, key: &Key, parts: &mut Parts) {
        parts.records.extend(self.open.remove(key).map(Answer::into_part));
    }

    /// The answers that never ended, as far as they came.
    pub fn finish(self, parts: &mut Parts) {
        let mut open: Vec<Answer> = self.open.into_values().collect();
        open.sort_by_key(|answer| answer.offset);
        parts.records.extend(open.into_iter().map(Answer::into_part));
    }
}

impl Answer {
    /// Takes a chunk of OpenAI's kind. Returns whether it is the last: it has usage and nothing of the answer.
    fn add_chunk(&mut self, chunk: &Tree<'_>) -> bool {
        let usage = chunk.get("usage").is_some_and(Tree::is_object);
        let choices = chunk.get("choices").map(Tree::items).unwrap_or_default();
        for (key, value) in chunk.members() {
            match &**key {
                "object" => self.set(key, b"\"chat.completion\""),
                // the chunk that tells why the answer ended
                "choices" if is_finished(choices) => self.set(key, value.text),
                "choices" => self.set_first(key, value),
                key if is_time(key) => self.set_first(key, value),
                _ if value.text == b"null" => self.set_first(key, value),
                _ => self.set(key, value.text),
            }
        }
        usage && choices.is_empty()
    }

    /// Takes an event of Anthropic's kind. Returns whether it is the last.
    fn add_event(&mut self, kind: &str, event: &Tree<'_>) -> bool {
        for (key, value) in event.members() {
            match (kind, &**key) {
                ("message_start" | "error", "type") => self.set(key, b"\"message\""),
                ("message_start", "message") | ("message_delta", "delta") => {
                    for (key, value) in value.members() {
                        match &**key {
                            // how much the answer will have is not known where it starts, whatever stands there
                            "usage" => self.add_usage(value, "output_tokens"),
                            key => self.set(key, value.text),
                        }
                    }
                }
                ("message_delta", "usage") => self.add_usage(value, ""),
                ("error", "error") => self.set(key, value.text),
                (_, "type" | "index" | "delta" | "content_block") => {}
                _ => self.set_first(key, value),
            }
        }
        matches!(kind, "message_stop" | "error")
    }

    /// Counts that are told later are of the whole answer; all but one.
    fn add_usage(&mut self, later: &Tree<'_>, but: &str) {
        let known = self.members.iter().find(|(key, _)| key == "usage").map(|(_, value)| value.clone());
        let known = known.unwrap_or_else(|| b"{}".to_vec());
        let Ok(known) = Tree::parse(&known) else { return };
        let mut text = Vec::new();
        let mut object = ObjectWriter::new(&mut text);
        let is_told = |key: &str| later.get(key).is_some_and(|value| value.text != b"null");
        for (key, value) in known.members().iter().filter(|(key, _)| !is_told(key)) {
            object.key(key).extend_from_slice(value.text);
        }
        for (key, value) in later.members().iter().filter(|(key, _)| is_told(key) && key != but) {
            object.key(key).extend_from_slice(value.text);
        }
        object.end();
        self.set("usage", &text);
    }

    fn set(&mut self, key: &str, value: &[u8]) {
        match self.members.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) => *known = value.to_vec(),
            None => self.members.push((key.to_owned(), value.to_vec())),
        }
    }

    /// Sets what is not known yet.
    fn set_first(&mut self, key: &str, value: &Tree<'_>) {
        match self.members.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) if known != b"null" => {}
            Some((_, known)) => *known = value.text.to_vec(),
            None => self.members.push((key.to_owned(), value.text.to_vec())),
        }
    }

    fn into_part(self) -> Part {
        let mut json = Vec::new();
        let mut object = ObjectWriter::new(&mut json);
        for (key, value) in &self.members {
            object.key(key).extend_from_slice(value);
        }
        object.end();
        Part { json, offset: Some(self.offset) }
    }
}

/// Whether a choice says why it ended.
fn is_finished(choices: &[Tree<'_>]) -> bool {
    choices.iter().any(|choice| choice.get("finish_reason").is_some_and(|reason| reason.text != b"null"))
}

/// Whether the key is one of those for the time of a record: that of the first chunk is the answer's.
fn is_time(key: &str) -> bool {
    key == "created" || alias::aliases(Column::Timestamp).iter().any(|alias| alias.path == [key])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(chunks: &[(u64, &str)]) -> (Vec<String>, usize) {
        let mut streams = Streams::default();
        let mut parts = Parts::default();
        for ((stream, chunk), offset) in chunks.iter().zip(0..) {
            streams.take(&Tree::parse(chunk.as_bytes()).unwrap(), offset, *stream, &mut parts);
        }
        streams.finish(&mut parts);
        let told = |part: Part| format!("{} {}", part.offset.unwrap(), String::from_utf8(part.json).unwrap());
        (parts.records.into_iter().map(told).collect(), parts.skipped.len())
    }

    #[test]
    fn chunks_of_one_id_are_one_answer_with_the_last_usage_and_the_first_time() {
        let chunks = [
            (
                0,
                r#"{"id":"a","object":"chat.completion.chunk","created":1,"choices":[{"delta":{"role":"x"},"finish_reason":null}],"usage":{"n":1}}"#,
            ),
            (
                0,
                r#"{"id":"b","object":"chat.completion.chunk","created":2,"choices":[{"finish_reason":null}],"usage":null}"#,
            ),
            (
                0,
                r#"{"id":"a","object":"chat.completion.chunk","created":3,"choices":[{"finish_reason":"stop"}],"usage":{"n":2}}"#,
            ),
            (0, r#"{"id":"a","object":"chat.completion.chunk","created":4,"choices":[],"usage":{"n":3}}"#),
        ];
        let whole = r#"0 {"id":"a","object":"chat.completion","created":1,"choices":[{"finish_reason":"stop"}],"usage":{"n":3}}"#;
        let cut =
            r#"1 {"id":"b","object":"chat.completion","created":2,"choices":[{"finish_reason":null}],"usage":null}"#;
        assert_eq!(answers(&chunks), (vec![whole.to_owned(), cut.to_owned()], 2));
    }

    #[test]
    fn events_without_an_id_belong_to_the_message_that_started_in_their_stream() {
        let events = [
            (
                1,
                r#"{"type":"message_start","message":{"id":"m1","type":"message","usage":{"input_tokens":9,"output_tokens":1}}}"#,
            ),
            (2, r#"{"type":"message_start","message":{"id":"m2","type":"message","usage":{"input_tokens":5}}}"#),
            (1, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#),
            (
                1,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7,"input_tokens":null}}"#,
            ),
            (1, r#"{"type":"message_stop"}"#),
            (1, r#"{"type":"ping"}"#),
            (2, r#"{"type":"error","error":{"type":"overloaded_error"}}"#),
            (3, r#"{"type":"error","error":{"type":"api_error"}}"#),
        ];
        let one =
            r#"0 {"type":"message","id":"m1","usage":{"input_tokens":9,"output_tokens":7},"stop_reason":"end_turn"}"#;
        let two = r#"1 {"type":"message","id":"m2","usage":{"input_tokens":5},"error":{"type":"overloaded_error"}}"#;
        let three = r#"7 {"type":"message","error":{"type":"api_error"}}"#;
        assert_eq!(answers(&events), ([one, two, three].map(str::to_owned).to_vec(), 5));
    }
}
