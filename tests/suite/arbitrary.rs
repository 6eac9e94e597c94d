//! Arbitrary and damaged lines: the reader accepts what a strict parser accepts, and sees the same values.
//!
//! The lines stand in one log, in a few shapes that take turns, as that is what the reader learns from.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::command::Workspace;

const LINES: usize = 3000;

/// A value as JSON text; every number is small enough for any parser.
fn value() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        3 => (-100_000_i64..100_000).prop_map(|number| number.to_string()),
        2 => (0_u32..1000, 0_u32..1000).prop_map(|(whole, part)| format!("{whole}.{part}")),
        1 => (1_u32..100, -5_i32..5).prop_map(|(digits, exponent)| format!("{digits}e{exponent}")),
        3 => text(),
        1 => prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(str::to_owned),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((text(), inner), 0..4).prop_map(|fields| format!(
                "{{{}}}",
                fields.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
            )),
        ]
    })
}

/// What a reader of strings may trip over.
const PIECES: [&str; 15] =
    [r#"\""#, r"\\", r"\/", r"\n", r"\u00e9", r"\ud83d\ude00", "{", "}", "[", "]", ":", ",", "路", "😀", "\u{7f}"];

/// What stands in place of a number of tokens and is none.
const NO_TOKENS: [&str; 6] = ["1.5", "null", "[7]", "{\"x\":7}", "true", "9223372036854775808"];

/// A string with quotes, escapes, braces and other scripts in it.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z0-9 ]{1,9}",
        1 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// A whole number, or what else may stand where one is due, and what becomes of it.
fn tokens() -> impl Strategy<Value = (String, Option<i64>)> {
    prop_oneof![
        6 => (0_i64..200_000).prop_map(|number| (number.to_string(), Some(number))),
        1 => (0_i64..200_000).prop_map(|number| (format!("\"{number}\""), Some(number))),
        1 => (0_i64..200_000).prop_map(|number| (format!("{number}.0"), Some(number))),
        // counts below zero stand for what is not known
        1 => any::<i64>().prop_map(|number| (number.to_string(), Some(number).filter(|number| *number >= 0))),
        1 => prop::sample::select(&NO_TOKENS[..]).prop_map(|text| (text.to_owned(), None)),
    ]
}

/// A record in one of three shapes or in any, and its input tokens.
fn record() -> impl Strategy<Value = (String, Option<i64>)> {
    let others = prop::collection::vec(value(), 6);
    let blank = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t ")];
    (tokens(), others, 0_usize..8, blank).prop_map(|((tokens, expected), others, shape, blank)| {
        let mut fields: Vec<String> = ["a", "b", "deep", "ttft", "c\\u0064", "text"]
            .iter()
            .zip(&others)
            .map(|(key, value)| format!("\"{key}\":{blank}{value}"))
            .collect();
        fields.truncate([6, 3, 5, 6, 2, 6, 1, 0][shape]);
        fields.insert(fields.len() * (shape % 3) / 2, format!("\"input_tokens\"{blank}:{tokens}"));
        (format!("{blank}{{{}{blank}}}", fields.join(",")), expected)
    })
}

/// One change of one byte, never one that makes or ends a line.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![
        Just(b'"'),
        Just(b'\\'),
        Just(b'{'),
        Just(b'}'),
        Just(b','),
        Just(b':'),
        Just(b'0'),
        Just(b' '),
        Just(0x01),
        Just(0xff),
        Just(b'x')
    ];
    (record(), any::<prop::sample::Index>(), 0..3, bytes).prop_map(|((text, _), at, change, byte)| {
        let mut line = text.into_bytes();
        let at = at.index(line.len());
        match change {
            0 => line[at] = byte,
            1 => line.insert(at, byte),
            _ => line.truncate(at),
        }
        line
    })
}

/// Whether a strict parser takes the line for an object.
fn is_record(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).map(str::trim_ascii);
    text.is_ok_and(|text| text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok())
}

#[test]
fn the_reader_and_a_strict_parser_accept_the_same_lines() {
    let mut lines: Vec<Vec<u8>> = vec![b"{\"input_tokens\":1}".to_vec()];
    let whole = record().prop_map(|(text, _)| text.into_bytes());
    let line = prop_oneof![1 => whole, 1 => damaged()].prop_filter("blank", |line| !line.trim_ascii().is_empty());
    let mut runner = TestRunner::deterministic();
    lines.extend(prop::collection::vec(line, LINES).new_tree(&mut runner).unwrap().current());
    let workspace = Workspace::with("log.ndjson", lines.join(&b'\n'));
    for query in ["SELECT count(*) FROM logs", "SELECT input_tokens FROM logs", "SELECT * FROM logs"] {
        workspace.sql(query, &["--rejects", "rejects.jsonl", "log.ndjson"]);
        let rejects = workspace.read("rejects.jsonl");
        let rejected: BTreeSet<usize> = rejects
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].as_u64().unwrap() as usize - 1)
            .collect();
        for (index, line) in lines.iter().enumerate() {
            let taken = !rejected.contains(&index);
            assert_eq!(taken, is_record(line), "{query}, line {}: {}", index + 1, String::from_utf8_lossy(line));
        }
        assert!((LINES / 4..LINES / 2).contains(&rejected.len()), "{} of {LINES} lines are bad", rejected.len());
    }
}

#[test]
fn a_value_is_found_in_any_shape_of_record() {
    let mut runner = TestRunner::deterministic();
    let records = prop::collection::vec(record(), LINES).new_tree(&mut runner).unwrap().current();
    let log: String = records.iter().map(|(text, _)| format!("{text}\n")).collect();
    let workspace = Workspace::with("log.ndjson", log);
    let report = workspace.sql("SELECT input_tokens FROM logs ORDER BY source_offset", &["log.ndjson"]);
    assert_eq!(report.rows().len(), LINES);
    for (row, (text, expected)) in report.rows().iter().zip(&records) {
        assert_eq!(row["input_tokens"], json!(expected), "{text}");
    }
}
