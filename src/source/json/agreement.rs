//! The decoder against `serde_json`: whatever the lines, valid or damaged, both must say the same,
//! and so must each way through the decoder.
//!
//! The listed differences: NaN and Infinity are accepted here, and so are escapes of lone
//! surrogates and numbers beyond an f64, which `serde_json` refuses; it also nests deeper than 64.
//! More cases make this a fuzzer of the vector code: `PROPTEST_CASES=20000 cargo test`.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use super::decoder::{LineDecoder, Sink, Writing};
use super::record::Record;
use super::simd::Instructions;
use super::wanted::Wanted;
use crate::source::json::{one_line, unescape};
use crate::source::value::{RawValue, Reject};

const LONG_KEY: &str = "a_key_that_is_longer_than_one_window_of_bytes";
/// Keys as written; `a\u0062` is `ab` again.
const KEYS: [&str; 10] = ["a", "b", "ab", r"a\u0062", "usage", "in", "x,y", "路", r#"q\""#, LONG_KEY];
const PATHS: [&[&str]; 10] = [
    &["a"],
    &["b"],
    &["ab"],
    &["usage"],
    &["usage", "in"],
    &["usage", "in", "a"],
    &["usage", "ab"],
    &["路"],
    &["q\""],
    &[LONG_KEY],
];

/// What became of a line: the values by slot and how many keys repeat, or the reason.
type Outcome = Result<(Vec<Option<Value>>, u32), Reject>;

#[derive(Default)]
struct Outcomes(Vec<(usize, Outcome)>);

impl Sink for Outcomes {
    fn record(&mut self, record: &Record<'_>) {
        let values: Vec<_> = (0..PATHS.len()).map(|slot| value(record.get(slot))).collect();
        let mut present = record.present().to_vec();
        present.sort_unstable();
        let filled: Vec<_> = (0..PATHS.len() as u32).filter(|&slot| values[slot as usize].is_some()).collect();
        assert_eq!(present, filled, "the present slots are those with a value");
        self.0.push((record.offset(), Ok((values, record.duplicate_keys()))));
    }

    fn reject(&mut self, offset: usize, _: &[u8], why: Reject) {
        self.0.push((offset, Err(why)));
    }
}

fn value(raw: RawValue<'_>) -> Option<Value> {
    Some(match raw {
        RawValue::Missing => return None,
        RawValue::Null => Value::Null,
        RawValue::Bool(value) => Value::Bool(value),
        RawValue::Number(text) | RawValue::Nested(text) => {
            serde_json::from_slice(text).unwrap_or_else(|_| Value::from("one of the listed differences"))
        }
        RawValue::Text { bytes, escaped } => {
            assert_eq!(escaped, bytes.contains(&b'\\'));
            let mut text = Vec::new();
            unescape(bytes, &mut text);
            Value::String(String::from_utf8(text).expect("accepted text is UTF-8"))
        }
    })
}

/// What is to become of the line, by the oracle; None for a blank line.
fn expected(line: &[u8]) -> Option<Outcome> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))?;
    if *first != b'{' {
        return Some(Err(Reject::NotAnObject));
    }
    Some(match std::str::from_utf8(line) {
        Ok(text) => parse(text),
        Err(error) if error.error_len().is_some() => Err(Reject::BadUtf8),
        // Cut off inside a character: any other fault comes before that.
        Err(error) => Err(match parse(&String::from_utf8_lossy(&line[..error.valid_up_to()])) {
            Ok(_) => Reject::BadUtf8,
            Err(why) => why,
        }),
    })
}

fn parse(text: &str) -> Outcome {
    let reason = |error: serde_json::Error| match error.classify() {
        Category::Eof => Reject::CutOff,
        _ => Reject::Malformed,
    };
    let record: Value = serde_json::from_str(text).map_err(reason)?;
    let Duplicates(duplicates) = serde_json::from_str(text).map_err(reason)?;
    let at = |path: &&[&str]| path.iter().try_fold(&record, |value, key| value.as_object()?.get(*key)).cloned();
    Ok((PATHS.iter().map(at).collect(), duplicates))
}

/// How many keys of a JSON text repeat an earlier one of their object.
struct Duplicates(u32);

impl<'de> Deserialize<'de> for Duplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        macro_rules! none {
            ($($visit:ident: $type:ty),*) => { $(fn $visit<E>(self, _: $type) -> Result<u32, E> { Ok(0) })* };
        }
        impl<'de> Visitor<'de> for Count {
            type Value = u32;
            none!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<u32, E> {
                Ok(0)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u32, A::Error> {
                let mut count = 0;
                while let Some(Duplicates(more)) = items.next_element()? {
                    count += more;
                }
                Ok(count)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u32, A::Error> {
                let mut keys = HashSet::new();
                let mut count = 0;
                while let Some((key, Duplicates(more))) = members.next_entry::<String, Duplicates>()? {
                    count += more + u32::from(!keys.insert(key));
                }
                Ok(count)
            }
        }
        deserializer.deserialize_any(Count).map(Duplicates)
    }
}

/// The keys and nesting of a record, to be written with one set of scalars or another.
#[derive(Clone, Debug)]
enum Form {
    Scalar,
    Array(Vec<Form>),
    Object(Vec<(&'static str, Form)>),
}

fn form() -> impl Strategy<Value = Form> {
    let nested = Just(Form::Scalar).prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            3 => Just(Form::Scalar),
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Form::Array),
            2 => prop::collection::vec((select(&KEYS[..]), inner), 0..5).prop_map(Form::Object),
        ]
    });
    prop::collection::vec((select(&KEYS[..]), nested), 0..9).prop_map(Form::Object)
}

fn scalar() -> impl Strategy<Value = String> {
    let pieces = select(
        &[
            r#"\""#,
            r"\\",
            r"\n",
            r"\/",
            r"\u0041",
            r"\ud83d\ude00",
            "a",
            "Zz",
            "路",
            "é",
            "😀",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "0123456789",
            "*",
        ][..],
    );
    prop_oneof![
        3 => "-?(0|[1-9][0-9]{0,8})(\\.[0-9]{1,6})?",
        1 => "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?",
        1 => select(&["true", "false", "null"][..]).prop_map(String::from),
        3 => prop::collection::vec(pieces, 0..12).prop_map(|pieces| format!("\"{}\"", pieces.concat())),
    ]
}

/// Where a writer puts blanks: behind a comma, behind a colon, inside braces.
#[derive(Clone, Copy, Debug)]
struct Style {
    comma: &'static str,
    colon: &'static str,
    brace: &'static str,
}

fn style() -> impl Strategy<Value = Style> {
    let style = |comma, colon, brace| Style { comma, colon, brace };
    select(vec![style("", "", ""), style(" ", " ", ""), style("", " ", ""), style(" ", " ", " "), style("", "  ", "")])
}

fn write(form: &Form, style: Style, scalars: &mut dyn Iterator<Item = &String>, into: &mut String) {
    match form {
        Form::Scalar => into.push_str(scalars.next().map_or("0", String::as_str)),
        Form::Array(items) => {
            into.push('[');
            for (number, item) in items.iter().enumerate() {
                into.push_str(if number > 0 { "," } else { "" });
                into.push_str(if number > 0 { style.comma } else { style.brace });
                write(item, style, scalars, into);
            }
            into.push_str(style.brace);
            into.push(']');
        }
        Form::Object(members) => {
            into.push('{');
            for (number, (key, member)) in members.iter().enumerate() {
                into.push_str(if number > 0 { "," } else { "" });
                into.push_str(if number > 0 { style.comma } else { style.brace });
                into.push_str(&format!("\"{key}\":{}", style.colon));
                write(member, style, scalars, into);
            }
            into.push_str(style.brace);
            into.push('}');
        }
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Insert(Index, u8),
    Delete(Index),
    Cut(Index),
    Repeat(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || {
        prop_oneof![
            4 => select(&b"\"\\{}[],: \n\r\t\x00\x1f\x7f0.-eEu*\x0c/"[..]),
            1 => select(&[0x80, 0xbf, 0xc3, 0xe8, 0xf0, 0xff][..]),
            1 => any::<u8>(),
        ]
    };
    prop_oneof![
        3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        2 => any::<Index>().prop_map(Damage::Delete),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ]
}

fn apply(damage: &Damage, line: &mut Vec<u8>) {
    if line.is_empty() {
        return;
    }
    match damage {
        Damage::Set(at, byte) => *at.get_mut(line) = *byte,
        Damage::Insert(at, byte) => line.insert(at.index(line.len()), *byte),
        Damage::Delete(at) => drop(line.remove(at.index(line.len()))),
        Damage::Cut(at) => line.truncate(at.index(line.len())),
        Damage::Repeat(from, to) => {
            let (from, to) = (from.index(line.len()), to.index(line.len()));
            let part = line[from.min(to)..from.max(to)].to_vec();
            line.splice(from..from, part);
        }
    }
}

/// A line of one of the known forms, with other scalars, its end, and perhaps damaged.
type Plan = (Index, Vec<String>, Vec<Damage>, &'static str);

fn plan() -> impl Strategy<Value = Plan> {
    let damages = prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(damage(), 1..3)];
    let ends = select(&["\n", "\n", "\n", "\r\n", " \n", "\n\n"][..]);
    (any::<Index>(), prop::collection::vec(scalar(), 1..12), damages, ends)
}

fn line((form, style): &(Form, Style), scalars: &[String]) -> Vec<u8> {
    let mut line = String::new();
    write(form, *style, &mut scalars.iter().cycle(), &mut line);
    line.into_bytes()
}

/// Whether the outcome, which is not the known one, is one of the listed differences.
fn is_listed_difference(line: &[u8], outcome: &Outcome, known: &Outcome) -> bool {
    let contains = |part: &[u8]| line.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    let long_exponent =
        line.windows(4).any(|part| matches!(part, [b'e' | b'E', .., c, d] if c.is_ascii_digit() && d.is_ascii_digit()));
    match (outcome, known) {
        (_, Err(_)) if contains(br"\ud") || long_exponent => true,
        // Of `\u12"`, serde_json says that two digits are to come, we that a quote is none.
        (Err(Reject::Malformed), Err(Reject::CutOff)) => contains(br"\u"),
        _ => false,
    }
}

fn instructions() -> [Instructions; 2] {
    [Instructions::detect(), Instructions::Portable]
}

proptest! {
    #[test]
    fn the_decoder_agrees_with_serde_json(
        forms in prop::collection::vec((form(), style()), 1..4),
        plans in prop::collection::vec(plan(), 1..10),
        lead in 0_usize..70,
        ends_with_newline: bool,
    ) {
        let lessons: Vec<u8> = forms.iter().flat_map(|form| [line(form, &[]), vec![b'\n']].concat()).collect();
        // Blanks in front move the lines to every place in a word.
        let mut text = vec![b' '; lead];
        for (form, scalars, damages, end) in &plans {
            let mut line = line(form.get(&forms), scalars);
            damages.iter().for_each(|damage| apply(damage, &mut line));
            text.extend(line);
            text.extend_from_slice(end.as_bytes());
        }
        if !ends_with_newline {
            text.pop();
        }

        let mut known = Vec::new();
        let mut offset = 0;
        for line in text.split(|&byte| byte == b'\n') {
            known.extend(expected(line).map(|outcome| (offset, outcome, line)));
            offset += line.len() + 1;
        }
        agree(Writing::Plain, &lessons, &text, &known)?;
    }

    #[test]
    fn quoted_lines_say_what_the_lines_say(
        forms in prop::collection::vec((form(), style()), 1..4),
        plans in prop::collection::vec(plan(), 1..10),
        lead in 0_usize..70,
        damages in prop::collection::vec(damage(), 0..2),
    ) {
        let lessons: Vec<Vec<u8>> = forms.iter().map(|form| line(form, &[])).collect();
        let lines: Vec<Vec<u8>> = plans.iter().map(|(form, scalars, damages, _)| {
            let mut line = line(form.get(&forms), scalars);
            damages.iter().for_each(|damage| apply(damage, &mut line));
            line
        }).collect();
        let mut text = vec![b' '; lead];
        let mut known = Vec::new();
        for line in lines {
            // what the string around it may hold, and other escapes than there need be
            let mut quoted = quoted(&String::from_utf8_lossy(&line));
            damages.iter().for_each(|damage| apply(damage, &mut quoted));
            let Ok(line) = serde_json::from_slice::<String>(&[b"\"", &quoted[..], b"\""].concat()) else { continue };
            let mut line = line.into_bytes();
            one_line(&mut line, 0);
            // the blanks in front belong to the first line
            let offset = if text.len() == lead { 0 } else { text.len() };
            for line in line.split(|&byte| byte == b'\n') {
                known.extend(expected(line).map(|outcome| (offset, outcome, line.to_vec())));
            }
            text.extend(quoted);
            text.push(b'\n');
        }
        let lessons = lessons.iter().map(|line| [quoted(&String::from_utf8_lossy(line)), vec![b'\n']].concat());
        let lessons: Vec<u8> = lessons.flatten().collect();
        agree(Writing::Quoted, &lessons, &text, &known)?;
    }
}

/// Whether each way through the decoder says of the text what is known, which is by offset and with its line.
fn agree<L: AsRef<[u8]>>(
    writing: Writing,
    lessons: &[u8],
    text: &[u8],
    known: &[(usize, Outcome, L)],
) -> Result<(), TestCaseError> {
    let wanted = PATHS.iter().map(|path| path.iter().map(|key| key.to_string()).collect()).collect();
    let wanted = Arc::new(Wanted::new(wanted));
    for instructions in instructions() {
        let mut decoder = LineDecoder::with_instructions(Arc::clone(&wanted), writing, instructions);
        decoder.decode(lessons, &mut Outcomes::default());
        // The first time the general parser does some of it, the second time the shapes.
        for _ in 0..2 {
            let mut outcomes = Outcomes::default();
            decoder.decode(text, &mut outcomes);
            prop_assert_eq!(outcomes.0.len(), known.len());
            for ((offset, outcome), (known_offset, known, line)) in outcomes.0.iter().zip(known) {
                prop_assert_eq!(offset, known_offset);
                if outcome != known && !is_listed_difference(line.as_ref(), outcome, known) {
                    let line = line.as_ref().escape_ascii();
                    prop_assert!(false, "{} gives {:?}, but should {:?}", line, outcome, known);
                }
            }
        }
    }
    Ok(())
}

/// A text as it stands inside a JSON string.
fn quoted(text: &str) -> Vec<u8> {
    let string = serde_json::to_string(text).expect("text");
    string.as_bytes()[1..string.len() - 1].to_vec()
}
