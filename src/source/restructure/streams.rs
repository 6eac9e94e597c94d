//! The chunks of streamed answers to one record an answer, as it would be without streaming.
//!
//! Chunks of OpenAI's kind have the answer's id each: `{"id", "object": "chat.completion.chunk", "choices": [{"delta"}]}`,
//! usage only in the last, or so far in each; so have the events of its Responses: `{"type": "response.completed",
//! "response": {"id"}}`. Events of Anthropic's kind have none: what follows a `message_start` in its stream belongs to it.
//! A stream that is cut is an answer as far as it came.

use std::collections::HashMap;

use super::members::Members;
use super::{Part, Parts};
use crate::record::{Column, alias};
use crate::source::json::{ObjectWriter, Tree};

/// Answers that are open at once; a log whose ends are lost must not fill the memory.
const MOST_OPEN: usize = 1 << 20;

/// Why a chunk is no request: its answer is.
const JOINED: &str = "stream chunk";

/// Why an event is of no answer.
const LOST: &str = "stream chunk of an unknown answer";

/// The answers that have not ended, by id, or by stream where chunks have none.
#[derive(Default)]
pub(super) struct Streams {
    open: HashMap<Key, Answer>,
    /// The answer of the last chunk, by stream.
    last: HashMap<u64, Last>,
    /// By stream, an answer that ended while it may have been mixed up with another one.
    doubtful: HashMap<u64, Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(String),
    /// A hash of what tells streams apart.
    Stream(u64),
}

#[derive(Debug)]
struct Last {
    key: Key,
    /// Whether no other answer of the stream was under way when it began.
    is_alone: bool,
}

#[derive(Debug, Default)]
struct Answer {
    /// Byte of the file where its first chunk starts.
    offset: u64,
    members: Members,
    /// The choices that have said why they ended, by index.
    finished: Vec<String>,
    /// Whether another one had not ended when it began.
    follows_open: bool,
}

impl Streams {
    /// Takes a chunk; hands out the answer that it ends.
    pub fn take(&mut self, chunk: &Tree<'_>, offset: u64, stream: u64, parts: &mut Parts) {
        if self.open.len() >= MOST_OPEN {
            return parts.skipped.push("too many open");
        }
        match chunk.get("type").and_then(Tree::scalar) {
            Some(kind) if kind.starts_with("response.") => self.take_response(&kind, chunk, offset, parts),
            Some(kind) => self.take_event(&kind, chunk, offset, stream, parts),
            None => self.take_chunk(chunk, offset, stream, parts),
        }
    }

    /// A chunk of OpenAI's kind.
    fn take_chunk(&mut self, chunk: &Tree<'_>, offset: u64, stream: u64, parts: &mut Parts) {
        let Some(id) = chunk.get("id").and_then(Tree::scalar).filter(|id| !id.is_empty()) else {
            return match chunk.get("error") {
                Some(error) => self.take_error(chunk, error, offset, stream, parts),
                // what filters of the content say beside the answer
                None => parts.skipped.push(JOINED),
            };
        };
        let key = Key::Id(id.into_owned());
        let choices = chunk.get("choices").map(Tree::items).unwrap_or_default();
        if self.open.get(&key).is_some_and(|answer| answer.is_over_before(choices)) {
            self.end(&key, parts);
        }
        let begins = !self.open.contains_key(&key);
        if self.last.get(&stream).is_none_or(|last| last.key != key) {
            let under_way = |last: &Last| self.open.get(&last.key).is_some_and(|open| open.finished.is_empty());
            let is_alone = begins && !self.last.get(&stream).is_some_and(under_way);
            self.last.insert(stream, Last { key: key.clone(), is_alone });
        }
        if self.answer(&key, offset, parts).add_chunk(chunk, choices) {
            self.end(&key, parts);
        }
    }

    /// An error in place of a chunk ends the answer that is under way, where there can be no doubt which.
    fn take_error(&mut self, chunk: &Tree<'_>, error: &Tree<'_>, offset: u64, stream: u64, parts: &mut Parts) {
        let last = self.last.remove(&stream).filter(|last| last.is_alone);
        let open = last.and_then(|last| Some((self.open.get_mut(&last.key)?, last.key)));
        match open.filter(|(answer, _)| answer.finished.is_empty()) {
            Some((answer, key)) => {
                answer.members.set("error", error.text);
                parts.skipped.push(JOINED);
                self.end(&key, parts);
            }
            None => {
                let mut answer = Answer { offset, ..Answer::default() };
                chunk.members().iter().for_each(|(key, value)| answer.members.set(key, value.text));
                // it is not to be taken for a chunk again
                answer.members.set("object", COMPLETION);
                parts.records.push(answer.into_part());
            }
        }
    }

    /// An event of OpenAI's Responses: each that has the response has all of it so far.
    fn take_response(&mut self, kind: &str, event: &Tree<'_>, offset: u64, parts: &mut Parts) {
        let response = event.get("response").filter(|response| response.is_object());
        let Some((response, id)) = response.and_then(|response| Some((response, response.get("id")?.scalar()?))) else {
            return parts.skipped.push(JOINED);
        };
        let key = Key::Id(id.into_owned());
        let answer = self.answer(&key, offset, parts);
        response.members().iter().for_each(|(key, value)| answer.members.set(key, value.text));
        if matches!(kind, "response.completed" | "response.failed" | "response.incomplete") {
            self.end(&key, parts);
        }
    }

    /// An event of Anthropic's kind.
    fn take_event(&mut self, kind: &str, event: &Tree<'_>, offset: u64, stream: u64, parts: &mut Parts) {
        let key = Key::Stream(stream);
        let is_open = self.open.contains_key(&key);
        let starts = kind == "message_start";
        if starts {
            // the one before it was cut, unless two are mixed up
            self.end(&key, parts);
            parts.records.extend(self.doubtful.remove(&stream).map(Answer::into_part));
        } else if !is_open && kind != "error" {
            if let Some(mut mixed) = self.doubtful.remove(&stream) {
                // there were two answers: which of them the events between belong to, nobody knows
                mixed.members.remove("stop_reason");
                mixed.forget_output();
                parts.records.push(mixed.into_part());
            }
            return parts.skipped.push(LOST);
        }
        let answer = self.answer(&key, offset, parts);
        answer.follows_open |= starts && is_open;
        if answer.add_event(kind, event) {
            match self.open.remove(&key) {
                Some(answer) if answer.follows_open => _ = self.doubtful.insert(stream, answer),
                answer => parts.records.extend(answer.map(Answer::into_part)),
            }
        }
    }

    /// The open answer, from here on if there was none.
    fn answer(&mut self, key: &Key, offset: u64, parts: &mut Parts) -> &mut Answer {
        if self.open.contains_key(key) {
            parts.skipped.push(JOINED);
        }
        self.open.entry(key.clone()).or_insert_with(|| Answer { offset, ..Answer::default() })
    }

    fn end(&mut self, key: &Key, parts: &mut Parts) {
        parts.records.extend(self.open.remove(key).map(Answer::into_part));
    }

    /// The answers that never ended, as far as they came.
    pub fn finish(self, parts: &mut Parts) {
        let mut open: Vec<Answer> = self.open.into_values().chain(self.doubtful.into_values()).collect();
        open.sort_by_key(|answer| answer.offset);
        parts.records.extend(open.into_iter().map(Answer::into_part));
    }
}

impl Answer {
    /// Takes a chunk of OpenAI's kind. Returns whether it is the last: it has usage and nothing of the answer.
    fn add_chunk(&mut self, chunk: &Tree<'_>, choices: &[Tree<'_>]) -> bool {
        let usage = chunk.get("usage").is_some_and(Tree::is_object);
        let ended: Vec<String> = choices.iter().filter(|choice| is_finished(choice)).map(index).collect();
        for (key, value) in chunk.members() {
            match &**key {
                "object" => self.members.set(key, COMPLETION),
                // the chunk that tells why the answer ended
                "choices" if !ended.is_empty() => self.members.set(key, value.text),
                "choices" => self.members.set_first(key, value.text),
                key if is_time(key) => self.members.set_first(key, value.text),
                _ if value.text == b"null" => self.members.set_first(key, value.text),
                _ => self.members.set(key, value.text),
            }
        }
        self.finished.extend(ended);
        usage && choices.is_empty()
    }

    /// Whether it has ended without usage, and a chunk with these choices is of another answer with the same id.
    fn is_over_before(&self, choices: &[Tree<'_>]) -> bool {
        choices.iter().any(|choice| has_content(choice) && self.finished.contains(&index(choice)))
    }

    fn forget_output(&mut self) {
        let usage = self.members.get("usage").map(<[u8]>::to_vec);
        self.members.remove("usage");
        if let Some(Ok(usage)) = usage.as_deref().map(Tree::parse) {
            self.add_usage(&usage, "output_tokens");
        }
    }

    /// Takes an event of Anthropic's kind. Returns whether it is the last.
    fn add_event(&mut self, kind: &str, event: &Tree<'_>) -> bool {
        for (key, value) in event.members() {
            match (kind, &**key) {
                ("message_start" | "error", "type") => self.members.set(key, b"\"message\""),
                ("message_start", "message") | ("message_delta", "delta") => {
                    for (key, value) in value.members() {
                        match &**key {
                            // how much the answer will have is not known where it starts, whatever stands there
                            "usage" => self.add_usage(value, "output_tokens"),
                            key => self.members.set(key, value.text),
                        }
                    }
                }
                ("message_delta", "usage") => self.add_usage(value, ""),
                ("error", "error") => self.members.set(key, value.text),
                (_, "type" | "index" | "delta" | "content_block") => {}
                _ => self.members.set_first(key, value.text),
            }
        }
        matches!(kind, "message_stop" | "error")
    }

    /// Counts that are told later are of the whole answer; all but one.
    fn add_usage(&mut self, later: &Tree<'_>, but: &str) {
        let Ok(known) = Tree::parse(self.members.get("usage").unwrap_or(b"{}")) else { return };
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
        self.members.set("usage", &text);
    }

    fn into_part(self) -> Part {
        Part { json: self.members.json(), offset: Some(self.offset) }
    }
}

/// What a whole answer says that it is.
const COMPLETION: &[u8] = b"\"chat.completion\"";

/// Whether a choice says why it ended.
fn is_finished(choice: &Tree<'_>) -> bool {
    choice.get("finish_reason").is_some_and(|reason| reason.text != b"null")
}

fn index(choice: &Tree<'_>) -> String {
    choice.get("index").and_then(Tree::scalar).map_or_else(|| "0".to_owned(), |index| index.into_owned())
}

/// Whether a choice has more of the answer.
fn has_content(choice: &Tree<'_>) -> bool {
    let is_text = |value: &Tree<'_>| value.scalar().is_some_and(|text| !text.is_empty());
    let delta = choice.get("delta");
    let of_delta = |key: &str| delta.and_then(|delta| delta.get(key));
    choice.get("text").is_some_and(is_text)
        || of_delta("content").is_some_and(is_text)
        || of_delta("reasoning_content").is_some_and(is_text)
        || of_delta("tool_calls").is_some_and(Tree::is_array)
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

    #[test]
    fn an_id_that_is_used_again_behind_a_finished_answer_is_another_answer() {
        let chunk = |created: u64, content: &str, reason: &str| {
            format!(
                r#"{{"id":"a","object":"chat.completion.chunk","created":{created},"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{reason}}}]}}"#
            )
        };
        let chunks =
            [chunk(1, "x", "null"), chunk(1, "", "\"stop\""), chunk(5, "y", "null"), chunk(5, "", "\"length\"")];
        let (answers, joined) = answers(&chunks.each_ref().map(|chunk| (0, chunk.as_str())));
        assert!(answers[0].contains(r#""created":1"#) && answers[0].contains("stop"), "{answers:?}");
        assert!(answers[1].contains(r#""created":5"#) && answers[1].contains("length"), "{answers:?}");
        assert_eq!((answers.len(), joined), (2, 2));
    }

    #[test]
    fn an_error_ends_the_answer_that_is_alone_under_way_and_no_other() {
        let chunk = |id: &str| {
            format!(
                r#"{{"id":"{id}","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{"content":"x"}},"finish_reason":null}}]}}"#
            )
        };
        let (a, b, error) = (chunk("a"), chunk("b"), r#"{"error":{"message":"died"}}"#);
        let failed = answers(&[(1, &a), (2, &b), (1, error)]).0;
        assert!(failed[0].contains(r#""id":"a""#) && failed[0].contains("died"), "{failed:?}");
        assert!(failed[1].contains(r#""id":"b""#) && !failed[1].contains("died"), "{failed:?}");
        // of two in one stream nobody knows which failed
        let failed = answers(&[(1, &a), (1, &b), (1, error)]).0;
        assert_eq!(failed[0], r#"2 {"error":{"message":"died"},"object":"chat.completion"}"#);
        assert_eq!(failed.len(), 3);
    }

    #[test]
    fn of_messages_that_are_mixed_up_nobody_knows_the_output() {
        let start = |id: &str| {
            format!(
                r#"{{"type":"message_start","message":{{"id":"{id}","type":"message","usage":{{"input_tokens":9}}}}}}"#
            )
        };
        let (p, q) = (start("p"), start("q"));
        let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#;
        let stop = r#"{"type":"message_stop"}"#;
        let (mixed, _) = answers(&[(1, &p), (1, &q), (1, delta), (1, stop), (1, delta), (1, stop)]);
        assert!(mixed.iter().all(|answer| !answer.contains("output_tokens")), "{mixed:?}");
        // the first was cut
        let (cut, _) = answers(&[(1, &p), (1, &q), (1, delta), (1, stop)]);
        assert!(cut[1].contains(r#""output_tokens":7"#) && cut[1].contains(r#""id":"q""#), "{cut:?}");
    }

    #[test]
    fn the_events_of_a_response_are_one_response() {
        let event = |kind: &str, status: &str| {
            format!(r#"{{"type":"response.{kind}","response":{{"id":"r","object":"response","status":"{status}"}}}}"#)
        };
        let delta = r#"{"type":"response.output_text.delta","delta":"x"}"#;
        let events = [event("created", "in_progress"), event("completed", "completed")];
        let (answers, joined) = answers(&[(1, &events[0]), (1, delta), (1, &events[1])]);
        assert_eq!((answers, joined), (vec![r#"0 {"id":"r","object":"response","status":"completed"}"#.to_owned()], 2));
    }
}
