//! What becomes of lines, by example: each line once by the general parser, once by its shape.

use super::*;
use crate::source::value::RawValue;

/// What became of the lines, written down: `id=1` for a record with that value, the reason for a
/// reject.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    layouts: Vec<Option<usize>>,
    offsets: Vec<usize>,
}

impl Sink for Log {
    fn record(&mut self, record: &Record<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let values = record.present().iter().map(|&slot| {
            let value = match record.get(slot as usize) {
                RawValue::Missing => "missing".into(),
                RawValue::Null => "null".into(),
                RawValue::Bool(value) => value.to_string(),
                RawValue::Number(number) => text(number),
                RawValue::Text { bytes, .. } => format!("'{}'", text(bytes)),
                RawValue::Nested(json) => text(json),
            };
            (slot, format!("{slot}={value}"))
        });
        let mut values: Vec<_> = values.collect();
        values.sort_unstable();
        let values: Vec<_> = values.into_iter().map(|(_, value)| value).collect();
        let duplicates = match record.duplicate_keys() {
            0 => String::new(),
            count => format!(" ({count} repeated)"),
        };
        self.lines.push(values.join(" ") + &duplicates);
        self.layouts.push(record.layout());
        self.offsets.push(record.offset());
    }

    fn reject(&mut self, offset: usize, _: &[u8], why: Reject) {
        self.lines.push(format!("{why:?}"));
        self.layouts.push(None);
        self.offsets.push(offset);
    }
}

/// A decoder of the paths `a`, `b` and `u.x`.
fn decoder(writing: Writing) -> LineDecoder {
    let paths = [&["a"][..], &["b"], &["u", "x"]];
    let paths = paths.map(|path| path.iter().map(|key| key.to_string()).collect());
    LineDecoder::new(Arc::new(Wanted::new(paths.to_vec())), writing)
}

/// Decodes the text twice, so that shapes are known the second time, which must not change a thing.
fn decoded(text: impl AsRef<[u8]>) -> Vec<String> {
    let mut decoder = decoder(Writing::Plain);
    let [first, second] = [(); 2].map(|()| {
        let mut log = Log::default();
        decoder.decode(text.as_ref(), &mut log);
        log
    });
    assert_eq!(first.lines, second.lines);
    assert_eq!(first.offsets, second.offsets);
    second.lines
}

#[test]
fn values_come_as_they_are_written() {
    let lines = decoded("{\"a\":1.50,\"b\":\"x\\ty\",\"u\":{\"x\":null}}\n{\"a\":true,\"u\":{\"y\":1}}\n{}\n");
    assert_eq!(lines, ["0=1.50 1='x\\ty' 2=null", "0=true", ""]);
}

#[test]
fn objects_and_arrays_come_as_their_text() {
    let lines = decoded("{\"a\":{\"b\":[1]},\"b\":[1, {\"b\":2}]}\n{\"a\":{ },\"b\":[ ]}\n");
    assert_eq!(lines, ["0={\"b\":[1]} 1=[1, {\"b\":2}]", "0={ } 1=[ ]"]);
}

#[test]
fn a_path_leads_through_objects_only() {
    let lines =
        decoded(concat!("{\"u\":1}\n{\"u\":[{\"x\":1}]}\n", "{\"u\":{\"x\":{\"x\":1}}}\n{\"w\":{\"u\":{\"x\":1}}}\n"));
    assert_eq!(lines, ["", "", "2={\"x\":1}", ""]);
}

#[test]
fn keys_may_hold_escapes() {
    assert_eq!(decoded("{\"\\u0061\":1}\n{\"\\u0075\":{\"\\u0078\":2}}\n"), ["0=1", "2=2"]);
}

#[test]
fn the_last_of_repeated_keys_counts() {
    let lines = decoded(concat!(
        "{\"a\":1,\"a\":2}\n",
        "{\"u\":{\"x\":1},\"u\":{\"y\":1}}\n",
        "{\"b\":1,\"\\u0062\":2,\"w\":{\"v\":1,\"v\":2,\"v\":3}}\n"
    ));
    assert_eq!(lines, ["0=2 (1 repeated)", " (1 repeated)", "1=2 (3 repeated)"]);
    assert_eq!(
        decoded("{\"a\":[{\"v\":1,\"v\":1}]}\n{\"a\":[{\"v\":1}]}"),
        ["0=[{\"v\":1,\"v\":1}] (1 repeated)", "0=[{\"v\":1}]"]
    );
}

#[test]
fn nan_and_infinity_are_numbers() {
    assert_eq!(decoded("{\"a\":NaN,\"b\":Infinity}\n{\"a\":-Infinity}\n"), ["0=NaN 1=Infinity", "0=-Infinity"]);
    assert_eq!(decoded("{\"a\":nan}\n{\"a\":+Infinity}\n{\"a\":Inf}\n"), ["Malformed"; 3]);
}

#[test]
fn numbers_follow_the_strict_grammar() {
    let broken = ["01", "1.", "+1", ".5", "-", "1e", "1.2.3", ""];
    let text: String = broken.iter().map(|number| format!("{{\"a\":{number}}}\n")).collect();
    assert_eq!(decoded(format!("{{\"a\":1}}\n{text}"))[1..], ["Malformed"; 8]);
    let numbers = ["0", "-1", "0.5", "1e9", "12345678901234567890123456789012", "0.123456789012345678901234567890"];
    for number in numbers {
        assert_eq!(decoded(format!("{{\"a\":7}}\n{{\"a\":{number}}}\n"))[1], format!("0={number}"));
    }
}

#[test]
fn blank_lines_are_no_lines() {
    assert_eq!(decoded("\n \t\r\n{\"a\":1}\r\n\r\n\n  {\"a\":2}  \n   "), ["0=1", "0=2"]);
    assert_eq!(decoded(""), [""; 0]);
}

#[test]
fn the_last_line_may_lack_its_newline() {
    assert_eq!(decoded("{\"a\":1}\n{\"a\":2}"), ["0=1", "0=2"]);
}

#[test]
fn lines_that_are_no_objects_are_told_from_damaged_ones() {
    let no_objects = decoded("starting up\n[1]\n\"x\"\n");
    assert_eq!(no_objects, ["NotAnObject"; 3]);
    let cut_off = decoded("{\"a\":1\n{\"a\n{\"a\":[{}\n{\n");
    assert_eq!(cut_off, ["CutOff"; 4]);
    let malformed = decoded("{\"a\":1}}\n{\"a\":1} x\n{\"a\" 1}\n{a:1}\n{\"a\":1,}\n");
    assert_eq!(malformed, ["Malformed"; 5]);
}

#[test]
fn brackets_must_match_also_where_a_shape_expects_them() {
    let good = "{\"a\":[1,2],\"u\":{\"x\":3}}\n";
    let broken = [
        good.replace('[', "{"),
        good.replace(']', "}"),
        good.replace('[', ","),
        good.replace("{\"x", "[\"x"),
        good.replace("3}}", "3]}"),
        good.replace("3}}", "3,}"),
    ];
    let lines = decoded([good, &broken.concat(), good].concat());
    assert_eq!([&*lines[0], &*lines[7]], ["0=[1,2] 2=3"; 2]);
    assert_eq!(lines[1..7], ["Malformed"; 6]);
}

#[test]
fn a_byte_order_mark_inside_is_no_object() {
    assert_eq!(decoded("\u{feff}{\"a\":1}\n"), ["NotAnObject"]);
}

#[test]
fn strings_hold_no_control_characters_and_only_known_escapes() {
    let broken = ["\"\t\"", "\"\\x\"", "\"\\u12g4\"", "\"x\"\"y\"", "\"x\" \"y\"", "\\\"x\""];
    let text: String = broken.iter().map(|text| format!("{{\"a\":{text}}}\n")).collect();
    let lines = decoded(format!("{{\"a\":\"\\u00e9 \\/\"}}\n{text}"));
    assert_eq!(lines[0], "0='\\u00e9 \\/'");
    assert_eq!(lines[1..], ["Malformed"; 6]);
    assert_eq!(decoded("{\"a\":\"\\ud800\"}\n"), ["0='\\ud800'"]);
}

#[test]
fn bad_utf8_costs_its_own_line() {
    let text =
        [&b"{\"a\":\"\xe8\xb7\xaf\"}\n{\"a\":\"\xe8\xb7\"}\n{\"a\":\"\xff\"}\n"[..], "{\"a\":\"路\"}\n".as_bytes()]
            .concat();
    assert_eq!(decoded(text), ["0='路'", "BadUtf8", "BadUtf8", "0='路'"]);
}

#[test]
fn a_line_cut_inside_a_character_is_cut_off() {
    assert_eq!(decoded(b"{\"a\":\"x\xe8\xb7"), ["CutOff"]);
}

#[test]
fn sixty_four_levels_are_the_limit() {
    let nested = |levels: usize| format!("{}1{}\n", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(decoded(nested(64))[0].starts_with("0={"));
    assert_eq!(decoded(nested(65)), ["TooDeep"]);
    let arrays = |levels: usize| format!("{{\"a\":1,\"b\":{}{}}}\n", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(decoded(arrays(1) + &arrays(63) + &arrays(64))[2], "TooDeep");
}

#[test]
fn a_damaged_line_costs_only_itself() {
    let good = "{\"a\":1,\"b\":\"two\"}\n";
    let damaged = [
        "{\"a\":\"1,\"b\":\"two\"}\n",
        "{\"a\":1,\"b\":\"tw\n",
        "{\"a\":1,\"b\":\"two\\\n",
        "\\\n",
        "\"\n",
        "{\"a\":[[{\n",
        "}}]\n",
    ];
    for line in damaged {
        for lead in 0..70 {
            let text = [&" ".repeat(lead), good, line, good].concat();
            let lines = decoded(&text);
            assert_eq!(lines.len(), 3, "{line:?}");
            assert_eq!([&*lines[0], &*lines[2]], ["0=1 1='two'"; 2], "{line:?}");

            // Nor does it send the next line the slow way.
            let mut decoder = decoder(Writing::Plain);
            decoder.decode(good.as_bytes(), &mut Log::default());
            let mut log = Log::default();
            decoder.decode(text.as_bytes(), &mut log);
            assert_eq!(log.layouts[2], Some(0), "{line:?}");
        }
    }
}

#[test]
fn lines_alike_share_a_layout_whatever_their_values() {
    let mut decoder = decoder(Writing::Plain);
    let mut log = Log::default();
    let values = ["1", "null", "\"x\"", "-2.5e3", "true", "NaN", "\"y\""];
    let text: String =
        values.iter().map(|value| format!("{{\"a\": {value},\"v\":[1,{value}],\"b\":{value}}}\n")).collect();
    decoder.decode(text.as_bytes(), &mut log);
    log = Log::default();
    decoder.decode(text.as_bytes(), &mut log);
    assert_eq!(log.layouts, [Some(0); 7]);
    let compact = text.replace(": ", ":");
    decoder.decode(compact.as_bytes(), &mut Log::default());
    log = Log::default();
    decoder.decode(compact.as_bytes(), &mut log);
    assert_eq!(log.layouts, [Some(0); 7]);
}

#[test]
fn values_are_found_behind_a_blank_that_only_some_have() {
    let text = "{\"a\": 1,\"b\":null}\n{\"a\":null,\"b\": \"x\"}\n{\"a\": true,\"b\": 2}\n{\"a\":\"y\",\"b\":\"z\"}\n";
    assert_eq!(decoded(text), ["0=1 1=null", "0=null 1='x'", "0=true 1=2", "0='y' 1='z'"]);
}

#[test]
fn a_shape_that_changes_does_not_move_the_values_of_lines_it_has_fitted_before() {
    let mut decoder = decoder(Writing::Plain);
    decoder.decode(b"{\"b\":\"x\",\"a\":1}\n", &mut Log::default());
    let usual = |row| format!("{{\"b\":\"x{row}\",\"a\":{row}}}\n");
    let mut lines: Vec<String> = (0..9).map(usual).collect();
    lines.insert(4, "{\"b\":null,\"a\":44}\n".to_owned());
    let mut log = Log::default();
    decoder.decode(lines.concat().as_bytes(), &mut log);
    let mut expected: Vec<String> = (0..9).map(|row| format!("0={row} 1='x{row}'")).collect();
    expected.insert(4, "0=44 1=null".to_owned());
    assert_eq!(log.lines, expected);
}

#[test]
fn a_log_whose_every_line_is_different_is_read_all_the_same() {
    let text: String = (0..3000).map(|row| format!("{{\"k{row}\":0,\"a\":{row}}}\n")).collect();
    let lines = decoded(&text);
    assert!(lines.iter().enumerate().all(|(row, line)| *line == format!("0={row}")));
}

#[test]
fn offsets_are_those_of_the_lines() {
    let text: String = (0..5000).map(|row| format!("{{\"a\":{row}}}\n")).collect();
    let starts: Vec<_> =
        text.split_inclusive('\n').scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
    let mut log = Log::default();
    decoder(Writing::Plain).decode(text.as_bytes(), &mut log);
    assert_eq!(log.offsets, starts);
}

#[test]
fn a_line_longer_than_a_portion_is_read_whole() {
    let long = format!("{{\"a\":\"{}\",\"b\":2}}\n", "x".repeat(3 * PORTION));
    let lines = decoded(format!("{{\"b\":1}}\n{long}{{\"b\":3}}\n{long}"));
    assert!(lines[1].ends_with("1=2") && lines[3].ends_with("1=2"));
    assert_eq!([&*lines[0], &*lines[2]], ["1=1", "1=3"]);
}

#[test]
fn quoted_lines_come_as_those_that_they_quote() {
    let lines = [
        r#"{"a":1,"b":"x","u":{"x":null}}"#,
        r#"{"a":-2.5e3,"b":"a \"quote\" and \\ more\n","u":{"x":[1,2]}}"#,
        r#"{"a":"one","b":null,"u":{"x":{"y":"z"}}}"#,
        r#"{"a": "\u00e9", "b": [{"c": "d"}]}"#,
        r#"{"a": 7, "b": "", "u": 1}"#,
    ];
    let plain = lines.join("\n");
    let quoted: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    let quoted: Vec<&str> = quoted.iter().map(|line| &line[1..line.len() - 1]).collect();
    let mut decoder = decoder(Writing::Quoted);
    let mut log = Log::default();
    // the more often, the more of them by their shapes
    (0..3).for_each(|_| decoder.decode(quoted.join("\n").as_bytes(), &mut log));
    assert_eq!(log.lines, [decoded(&plain), decoded(&plain), decoded(&plain)].concat());
    assert!(log.layouts.iter().filter(|layout| layout.is_some()).count() > 5, "{:?}", log.layouts);
}

#[test]
fn what_a_quoted_line_holds_over_several_lines_is_one_record_or_a_record_each() {
    let mut log = Log::default();
    let text = concat!(r#"{\"a\":1,\n \"b\":2}"#, "\n", r#"{\"a\":3}\n{\"a\":4}"#, "\n", r#"a text\n of two lines\n"#);
    decoder(Writing::Quoted).decode(text.as_bytes(), &mut log);
    assert_eq!(log.lines, ["0=1 1=2", "0=3", "0=4", "NotAnObject"]);
}
