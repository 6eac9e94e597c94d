//! Whole inspections: logs in, what is printed out.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Parser;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StructArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::cli::Cli;
use crate::output::{self, Destination, Style};
use crate::record::Column;
use crate::request::{Ask, Place, Task};

/// Logs in a folder whose config names them all, so that they are shown by their bare names.
struct Logbook {
    folder: TempDir,
}

impl Logbook {
    fn of(logs: &[(&str, &[u8])]) -> Self {
        let book = Self { folder: tempfile::tempdir().unwrap() };
        let names: Vec<&str> = logs.iter().map(|(name, _)| *name).collect();
        fs::write(book.path("infer-stats.toml"), format!("logs = {names:?}")).unwrap();
        logs.iter().for_each(|(name, content)| fs::write(book.path(name), content).unwrap());
        book
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn request(&self, flags: &[&str]) -> Request {
        let place = Place {
            folder: self.folder.path().to_owned(),
            now: "2025-06-10T12:00:00Z".parse().unwrap(),
            logs: None,
            config: None,
            config_home: None,
        };
        let columns: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
        let cli = Cli::try_parse_from(["infer-stats", "inspect"].iter().chain(flags)).unwrap();
        match Task::resolve(cli, &place, &columns).unwrap() {
            Task::Report(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn inspect(&self, flags: &[&str]) -> Inspection {
        let request = self.request(flags);
        let Ask::Inspect { expect } = &request.ask else { panic!("{:?}", request.ask) };
        inspect(&request, &Logs::open(&request, &std::env::temp_dir()).unwrap(), expect.as_deref()).unwrap()
    }

    fn text(&self, flags: &[&str]) -> String {
        let format = self.request(flags).output.format;
        let mut report = self.inspect(flags).report;
        let path = self.path("answer");
        let destination = Destination::open(Some(&path), format).unwrap();
        output::write(&mut report, format, Style::default(), destination).unwrap();
        fs::read_to_string(path).unwrap()
    }

    fn json(&self, flags: &[&str]) -> Value {
        let flags: Vec<&str> = flags.iter().chain(&["--format", "json"]).copied().collect();
        serde_json::from_str(&self.text(&flags)).unwrap()
    }

    /// What `--expect` with this text says.
    fn breaches(&self, expectations: &str) -> Vec<String> {
        let path = self.path("fields.toml");
        fs::write(&path, expectations).unwrap();
        let inspection = self.inspect(&["--expect", path.to_str().unwrap()]);
        let notes = inspection.report.notes.iter().filter(|note| note.code == "breach");
        let texts: Vec<String> = notes
            .map(|note| {
                let count = note.count.map_or(String::new(), |count| format!(" ({count})"));
                format!("{}{count}", note.text.trim_start_matches("breach: "))
            })
            .collect();
        assert_eq!(inspection.breached, !texts.is_empty());
        texts
    }
}

/// The row of a key.
fn row<'a>(answer: &'a Value, key: &str) -> &'a Value {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key} in {rows:#?}"))
}

fn notes(answer: &Value) -> Vec<&str> {
    answer["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect()
}

fn has_note(answer: &Value, part: &str) -> bool {
    notes(answer).iter().any(|note| note.contains(part))
}

const MIXED: &str = r#"{"rid":"r1","ts":"2025-06-01T08:00:00Z","model":"m","usage":{"prompt_tokens":21,"completion_tokens":5},"latency_s":1.5,"ttft":0.2,"tags":["a"],"prompt":"my secret text"}
starting worker 3
{"rid":"r2","ts":"2025-06-01T08:00:01.5Z","model":"m","usage":{"prompt_tokens":"42","completion_tokens":7},"latency_s":2.25,"ttft":0.3,"tags":[],"prompt":"another"}
{"rid":"r3","ts":"2025-06-01T08:00:03Z","model":"m","usage":{"prompt_tokens":1000,"completion_tokens":null},"latency_s":NaN,"ttft":0.25,"tags":["b"],"prompt":"more"}
{"rid":"r4","ts":"2025-06-01T08:00:04Z","mod
"#;

#[test]
fn a_mixed_log_as_people_see_it() {
    let book = Logbook::of(&[("mixed.log", MIXED.as_bytes())]);
    let text = book.text(&[]);
    insta::assert_snapshot!(text, @r#"
    What is in mixed.log: NDJSON, 5 records, 2025-06-01T08:00:00Z to 2025-06-01T08:00:03Z
    ┌─────────────────────────┬─────────┬─────────┬─────────────────────────┬─────────────┬──────────────────┬──────┬───────────┐
    │ key                     │ records │ present │ types                   │ range       │ column           │ unit │ evidence  │
    ├─────────────────────────┼─────────┼─────────┼─────────────────────────┼─────────────┼──────────────────┼──────┼───────────┤
    │ (file)                  │       5 │       - │ NDJSON                  │             │                  │      │           │
    │ (rejected)              │       1 │  20.0 % │ cut_off                 │             │                  │      │           │
    │ (skipped)               │       1 │  20.0 % │ text                    │             │                  │      │           │
    │ rid                     │       3 │ 100.0 % │ text                    │             │ request_id       │      │ alias     │
    │ ts                      │       3 │ 100.0 % │ time                    │             │ timestamp        │      │ alias     │
    │ model                   │       3 │ 100.0 % │ text                    │             │ model_name       │      │ alias     │
    │ usage.prompt_tokens     │       3 │ 100.0 % │ integer 67 %, text 33 % │ 21 to 1000  │ input_tokens     │      │ alias     │
    │ usage.completion_tokens │       2 │  66.7 % │ integer                 │ 5 to 7      │ output_tokens    │      │ alias     │
    │ latency_s               │       3 │ 100.0 % │ number 67 %, NaN 33 %   │ 1.5 to 2.25 │ total_latency_ms │ s    │ suffix _s │
    │ ttft                    │       3 │ 100.0 % │ number                  │ 0.2 to 0.3  │ not mapped       │      │           │
    │ tags[]                  │       3 │ 100.0 % │ array                   │             │ tags             │      │ name      │
    │ prompt                  │       3 │ 100.0 % │ text                    │             │ not mapped       │      │           │
    └─────────────────────────┴─────────┴─────────┴─────────────────────────┴─────────────┴──────────────────┴──────┴───────────┘
    note: rejected records: mixed.log:5: cut off before its JSON ends (1)
    note: records are no requests: text (1)
    note: values of total_latency_ms that are NaN or Infinity count as missing (1)
    note: requests do not say whether they failed; they are measured like successes (3)
    note: `ttft` is not read: its name has no unit; use --map ttft_ms=ttft:s, or :ms (3)
    "#);
    assert!(!text.contains("secret"));
}

#[test]
fn a_mixed_log_as_programs_see_it() {
    let book = Logbook::of(&[("mixed.log", MIXED.as_bytes())]);
    let answer = book.json(&[]);
    let rows: Vec<String> = answer["rows"].as_array().unwrap().iter().map(Value::to_string).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    {"file":"mixed.log","key":"(file)","records":5,"present":null,"types":"NDJSON","range":"","column":"","unit":"","evidence":""}
    {"file":"mixed.log","key":"(rejected)","records":1,"present":0.2,"types":"cut_off","range":"","column":"","unit":"","evidence":""}
    {"file":"mixed.log","key":"(skipped)","records":1,"present":0.2,"types":"text","range":"","column":"","unit":"","evidence":""}
    {"file":"mixed.log","key":"(first)","records":null,"present":null,"types":"","range":"2025-06-01T08:00:00Z","column":"","unit":"","evidence":""}
    {"file":"mixed.log","key":"(last)","records":null,"present":null,"types":"","range":"2025-06-01T08:00:03Z","column":"","unit":"","evidence":""}
    {"file":"mixed.log","key":"rid","records":3,"present":1.0,"types":"text","range":"","column":"request_id","unit":"","evidence":"alias"}
    {"file":"mixed.log","key":"ts","records":3,"present":1.0,"types":"time","range":"","column":"timestamp","unit":"","evidence":"alias"}
    {"file":"mixed.log","key":"model","records":3,"present":1.0,"types":"text","range":"","column":"model_name","unit":"","evidence":"alias"}
    {"file":"mixed.log","key":"usage.prompt_tokens","records":3,"present":1.0,"types":"integer 67 %, text 33 %","range":"21 to 1000","column":"input_tokens","unit":"","evidence":"alias"}
    {"file":"mixed.log","key":"usage.completion_tokens","records":2,"present":0.6666666666666666,"types":"integer","range":"5 to 7","column":"output_tokens","unit":"","evidence":"alias"}
    {"file":"mixed.log","key":"latency_s","records":3,"present":1.0,"types":"number 67 %, NaN 33 %","range":"1.5 to 2.25","column":"total_latency_ms","unit":"s","evidence":"suffix _s"}
    {"file":"mixed.log","key":"ttft","records":3,"present":1.0,"types":"number","range":"0.2 to 0.3","column":"not mapped","unit":"","evidence":""}
    {"file":"mixed.log","key":"tags[]","records":3,"present":1.0,"types":"array","range":"","column":"tags","unit":"","evidence":"name"}
    {"file":"mixed.log","key":"prompt","records":3,"present":1.0,"types":"text","range":"","column":"not mapped","unit":"","evidence":""}
    "#);
    let source = &answer["source"];
    let counts = ["records", "rejected", "skipped", "used"].map(|name| source[name].as_u64().unwrap());
    assert_eq!(counts, [5, 1, 1, 3]);
    assert_eq!(source["last"], "2025-06-01T08:00:03+00:00");
}

#[test]
fn one_log_shows_its_name_above_the_table_and_several_beside_their_keys() {
    let one = Logbook::of(&[("a.ndjson", b"{\"ttft_ms\":1}")]).text(&[]);
    assert!(one.starts_with("What is in a.ndjson: NDJSON, 1 record\n") && !one.contains(" file "), "{one}");
    let two = Logbook::of(&[("a.ndjson", b"{\"ttft_ms\":1}"), ("b.csv", b"ttft_s,id\n1,2\n")]);
    let text = two.text(&[]);
    assert!(text.starts_with("What is in 2 logs\n") && text.contains("│ b.csv    │ ttft_s"), "{text}");
}

#[test]
fn a_plain_text_file_is_described_as_one_without_records() {
    let answer = Logbook::of(&[("notes.txt", b"hello\nworld\n")]).json(&[]);
    assert_eq!(row(&answer, "(file)")["types"], "plain text");
    let skipped = row(&answer, "(skipped)");
    assert_eq!((&skipped["records"], &skipped["types"]), (&2.into(), &"text".into()));
    assert!(has_note(&answer, "notes.txt: nothing in it is a record"));
}

#[test]
fn an_empty_file_has_no_records_and_no_keys() {
    let answer = Logbook::of(&[("empty.ndjson", b"")]).json(&[]);
    assert_eq!(row(&answer, "(file)")["records"], 0);
    assert_eq!(answer["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_of_rejects_alone_names_every_reason() {
    let answer = Logbook::of(&[("bad.ndjson", b"{\"a\":1,}\n{\"a\":\n{\"\xff\":1}\n")]).json(&[]);
    let rows = answer["rows"].as_array().unwrap().iter().filter(|row| row["key"] == "(rejected)");
    let told: Vec<_> = rows.map(|row| (row["types"].as_str().unwrap(), row["records"].as_u64().unwrap())).collect();
    assert_eq!(told, [("malformed", 1), ("cut_off", 1), ("bad_utf8", 1)]);
    assert!(has_note(&answer, "bad.ndjson:1: malformed JSON"));
}

#[test]
fn a_cut_gz_file_shows_what_came_before_and_says_that_it_is_damaged() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..20_000).for_each(|n| writeln!(packed, "{{\"id\":\"r{n}\",\"ttft_ms\":{n}}}").unwrap());
    let packed = packed.finish().unwrap();
    let answer = Logbook::of(&[("cut.ndjson.gz", &packed[..packed.len() / 2])]).json(&[]);
    let file = row(&answer, "(file)");
    assert_eq!((&file["types"], &file["evidence"]), (&"NDJSON, gzip".into(), &"damaged".into()));
    assert!(row(&answer, "ttft_ms")["records"].as_u64() > Some(100));
    assert_eq!(answer["source"]["damaged_files"], 1);
}

#[test]
fn nested_keys_are_paths_and_arrays_are_not_looked_into() {
    let deep = format!("{}1{}", "{\"k\":".repeat(60), "}".repeat(60));
    let log = format!("{deep}\n{{\"a\":{{\"b.c\":1}},\"list\":[{{\"x\":1}}],\"none\":{{}}}}\n");
    let answer = Logbook::of(&[("deep.ndjson", log.as_bytes())]).json(&[]);
    assert_eq!(row(&answer, &vec!["k"; 60].join("."))["types"], "integer");
    assert_eq!(row(&answer, "a.\"b.c\"")["records"], 1);
    assert_eq!(row(&answer, "list[]")["types"], "array");
    assert_eq!(row(&answer, "none")["types"], "object");
}

#[test]
fn of_thousands_of_keys_the_most_frequent_are_listed() {
    let keys = |from: usize| (from..from + 1500).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
    let log = format!("{{{}}}\n{{{},\"ttft_ms\":3}}\n{{\"ttft_ms\":2}}\n", keys(0), keys(1500));
    let book = Logbook::of(&[("wide.ndjson", log.as_bytes())]);
    let answer = book.json(&[]);
    let listed = answer["rows"].as_array().unwrap().iter().filter(|row| row["column"] != "").count();
    assert_eq!(listed, LISTED);
    assert_eq!(row(&answer, "ttft_ms")["records"], 2);
    let hidden = answer["notes"].as_array().unwrap().iter().find(|note| note["code"] == "keys_hidden").unwrap();
    assert_eq!(hidden["count"], 3001 - 500);
    let all = book.json(&["--top", "5000"]);
    assert_eq!(all["rows"].as_array().unwrap().iter().filter(|row| row["column"] != "").count(), 3001);
}

#[test]
fn a_type_that_changes_is_shown_with_shares() {
    let mut log: String = (0..98).map(|n| format!("{{\"input_tokens\":{n}}}\n")).collect();
    log += "{\"input_tokens\":\"a\"}\n{\"input_tokens\":\"b\"}\n";
    let answer = Logbook::of(&[("mixed.ndjson", log.as_bytes())]).json(&[]);
    assert_eq!(row(&answer, "input_tokens")["types"], "integer 98 %, text 2 %");
    assert!(has_note(&answer, "values of input_tokens that are of another type count as missing"));
}

#[test]
fn nan_is_a_type_and_no_part_of_the_range() {
    let answer =
        Logbook::of(&[("n.ndjson", b"{\"ttft_ms\":NaN}\n{\"ttft_ms\":-Infinity}\n{\"ttft_ms\":2.5}\n")]).json(&[]);
    assert_eq!(row(&answer, "ttft_ms")["types"], "NaN 67 %, number 33 %");
    assert_eq!(row(&answer, "ttft_ms")["range"], "2.5");
}

#[test]
fn of_duplicate_keys_the_last_counts_and_a_note_says_so() {
    let answer = Logbook::of(&[("d.ndjson", b"{\"ttft_ms\":1,\"ttft_ms\":\"x\"}\n")]).json(&[]);
    let ttft = row(&answer, "ttft_ms");
    assert_eq!((&ttft["records"], &ttft["types"]), (&1.into(), &"text".into()));
    assert!(has_note(&answer, "keys stand twice in a record"));
}

#[test]
fn a_missing_value_is_missing_in_every_format() {
    let json =
        b"[{\"id\":\"a\",\"ttft_ms\":1},{\"id\":\"b\",\"ttft_ms\":null},{\"id\":\"c\"},{\"id\":\"d\",\"ttft_ms\":4}]";
    let csv = b"id,ttft_ms\na,1\nb,\nc,\nd,4\n";
    for (name, content) in [("x.json", json.as_slice()), ("x.csv", csv)] {
        let answer = Logbook::of(&[(name, content)]).json(&[]);
        let ttft = row(&answer, "ttft_ms");
        assert_eq!((&ttft["records"], &ttft["present"], &ttft["range"]), (&2.into(), &0.5.into(), &"1 to 4".into()));
        assert_eq!(ttft["types"], "integer", "{name}");
    }
}

#[test]
fn units_and_what_says_so() {
    let log = br#"{"ts":1748764800,"completed_at":"2025-06-01T08:00:00","ttft_s":0.5,"timing":{"total":3},"queue_ms":1,"region":"eu","error":{"code":3}}"#;
    let book = Logbook::of(&[("u.ndjson", log)]);
    let answer = book.json(&["--map", "total_latency_ms=timing.total:us", "--column", "region=region"]);
    let told = |key: &str| {
        let row = row(&answer, key);
        [&row["column"], &row["unit"], &row["evidence"]].map(|cell| cell.as_str().unwrap().to_owned())
    };
    assert_eq!(told("ts"), ["timestamp", "s", "epoch size"]);
    assert_eq!(told("completed_at"), ["completed_at", "", "name"]);
    assert_eq!(told("ttft_s"), ["ttft_ms", "s", "suffix _s"]);
    assert_eq!(told("timing.total"), ["total_latency_ms", "us", "--map"]);
    assert_eq!(told("queue_ms"), ["queue_wait_ms", "ms", "suffix _ms"]);
    assert_eq!(told("region"), ["region", "", "--column"]);
    assert_eq!(told("error.code"), ["failed", "", "error key"]);
    assert!(has_note(&answer, "times name no zone"));
}

#[test]
fn a_map_that_meets_no_key_or_contradicts_its_name_is_told() {
    let book = Logbook::of(&[("m.ndjson", b"{\"wait_s\":2,\"timing\":{\"ttft\":1}}")]);
    let answer = book.json(&["--map", "queue_wait_ms=wait_s", "--map", "ttft_ms=timing.tfft:s"]);
    assert!(has_note(&answer, "`wait_s` is read in ms, as mapped, although its name ends in _s"));
    assert!(has_note(&answer, "records lack `timing.tfft`, which ttft_ms is mapped to; did you mean `timing.ttft`?"));
}

#[test]
fn a_map_of_a_source_names_the_source() {
    let book = Logbook::of(&[("e.ndjson", b"{\"lat\":2}")]);
    let config = "[[source]]\nname = \"engine\"\npaths = [\"e.ndjson\"]\nmap = { total_latency_ms = \"lat:s\" }";
    fs::write(book.path("infer-stats.toml"), config).unwrap();
    let answer = book.json(&[]);
    assert_eq!(row(&answer, "lat")["evidence"], "source engine");
    assert_eq!(row(&answer, "lat")["unit"], "s");
}

#[test]
fn keys_that_are_not_read_come_with_what_they_may_be() {
    let log = br#"{"latency":2.5,"promt_tokens":3,"metrics":{"ttft_ms":4},"e2e_latency":{"value":4},"question_id":"q","prompt":"text","model":"m","name":"x"}"#;
    let answer = Logbook::of(&[("near.ndjson", log)]).json(&[]);
    for part in [
        "`latency` is not read: its name has no unit; use --map total_latency_ms=latency:s, or :ms",
        "`promt_tokens` is not read; if it is input_tokens, use --map input_tokens=promt_tokens",
        "`metrics.ttft_ms` is not read; if it is ttft_ms, use --map ttft_ms=metrics.ttft_ms:ms",
        "`e2e_latency.value` is not read: its name has no unit; use --map total_latency_ms=e2e_latency.value:s, or :ms",
    ] {
        assert!(has_note(&answer, part), "{part} in {:#?}", notes(&answer));
    }
    for key in ["`prompt`", "`name`", "`question_id`"] {
        assert!(!has_note(&answer, key), "{key} in {:#?}", notes(&answer));
    }
}

#[test]
fn of_two_keys_of_one_column_it_is_told_which_one_counts() {
    let answer = Logbook::of(&[("two.ndjson", b"{\"ttft_s\":1,\"ttft_ms\":999}")]).json(&[]);
    assert_eq!(row(&answer, "ttft_ms")["evidence"], "name");
    assert_eq!(row(&answer, "ttft_s")["evidence"], "suffix _s (2nd)");
    assert!(has_note(&answer, "`ttft_s` fills ttft_ms only where `ttft_ms` is missing"));
}

#[test]
fn a_relative_clock_is_told_and_has_no_unit() {
    let answer = Logbook::of(&[("mono.ndjson", b"{\"timestamp\":1234.5}\n{\"timestamp\":1240}")]).json(&[]);
    assert_eq!(row(&answer, "timestamp")["unit"], "");
    assert_eq!(row(&answer, "(undated)")["records"], 2);
    assert!(has_note(&answer, "relative or monotonic clock"));
}

#[test]
fn parquet_is_described_by_its_footer() {
    let ttft: ArrayRef = std::sync::Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0), None]));
    let tokens: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let field = std::sync::Arc::new(Field::new("prompt_tokens", DataType::Int64, false));
    let usage: ArrayRef = std::sync::Arc::new(StructArray::from(vec![(field, tokens)]));
    let batch = RecordBatch::try_from_iter([("ttft_ms", ttft), ("usage", usage)]).unwrap();
    let mut packed = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut packed, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let book = Logbook::of(&[("x.parquet", &packed), ("broken.parquet", b"PAR1 and no footer")]);
    let answer = book.json(&[]);
    assert_eq!(row(&answer, "ttft_ms")["present"], 0.5);
    assert_eq!(row(&answer, "usage.prompt_tokens")["column"], "input_tokens");
    assert_eq!(row(&answer, "usage.prompt_tokens")["present"], Value::Null);
    assert_eq!((&answer["source"]["records"], &answer["source"]["damaged_files"]), (&4.into(), &1.into()));
}

#[test]
fn bounds_are_checked_by_a_parquet_footer_and_not_kept_where_it_does_not_tell() {
    let ttft: ArrayRef = std::sync::Arc::new(Float64Array::from(vec![Some(0.5), None, Some(1.75)]));
    let batch = RecordBatch::try_from_iter([("ttft_seconds", ttft)]).unwrap();
    let expected = "[fields]\nttft_ms = { min = 600, max = 1000 }";
    let breaches = |properties: Option<WriterProperties>| {
        let mut packed = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut packed, batch.schema(), properties).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Logbook::of(&[("x.parquet", &packed)]).breaches(expected)
    };
    assert_eq!(
        breaches(None),
        [
            "x.parquet: `ttft_seconds` goes down to 500 ms, expected at least 600 ms",
            "x.parquet: `ttft_seconds` goes up to 1750 ms, expected at most 1000 ms",
        ]
    );
    let silent = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    let [breach] = &breaches(Some(silent))[..] else { panic!("one breach") };
    assert!(breach.contains("does not tell how small and how large `ttft_seconds` is"), "{breach}");
}

#[test]
fn a_large_file_is_read_by_several_threads_to_the_same_answer() {
    let line = |n: usize| format!("{{\"id\":\"r{n}\",\"k{}\":{n},\"text\":\"{}\"}}\n", n / 30_000, "x".repeat(1000));
    let log: String = (0..80_000).map(line).collect();
    let book = Logbook::of(&[("large.ndjson", log.as_bytes())]);
    let one = book.text(&["--threads", "1"]);
    assert_eq!(one, book.text(&["--threads", "3"]));
    assert_eq!(row(&book.json(&[]), "k1")["range"], "30000 to 59999");
}

#[test]
fn a_log_that_is_as_expected_has_no_breach() {
    let book = Logbook::of(&[("mixed.log", MIXED.as_bytes())]);
    let expected = "[fields]
        request_id = { type = \"text\", required = true }
        timestamp = { type = \"time\", required = true }
        output_tokens = { type = \"integer\", present = 0.6, min = 5, max = 7 }
        total_latency_ms = { unit = \"s\", min = 1.5, max = 2.25 }
        ttft = { type = \"number\", min = 0.2 }
        tags = { type = \"array\" }";
    assert_eq!(book.breaches(expected), [""; 0]);
}

#[test]
fn each_breach_says_what_where_and_how_many() {
    let book = Logbook::of(&[("mixed.log", MIXED.as_bytes())]);
    let expected = "[fields]
        request_id = { type = \"integer\" }
        input_tokens = { type = \"integer\", max = 999 }
        output_tokens = { required = true }
        total_latency_ms = { unit = \"ms\", max = 2000 }
        ttft = { unit = \"s\" }
        lateny_s = {}";
    let mut breaches = book.breaches(expected);
    breaches.sort();
    assert_eq!(
        breaches,
        [
            "mixed.log: `latency_s` is in s, expected ms (3)",
            "mixed.log: `output_tokens` has a value in 66.66 % of the records, expected in at least 100 % (1)",
            "mixed.log: `ttft` states no unit, expected s (3)",
            "mixed.log: no record has `lateny_s`; did you mean `latency_s`? (3)",
            "mixed.log:1: `rid` is text, expected integer (3)",
            "mixed.log:3: `latency_s` goes up to 2250 ms, expected at most 2000 ms",
            "mixed.log:3: `usage.prompt_tokens` is text, expected integer (1)",
            "mixed.log:4: `usage.prompt_tokens` goes up to 1000, expected at most 999",
        ]
    );
}

#[test]
fn an_expectation_file_that_is_not_there_is_a_mistake() {
    let book = Logbook::of(&[("mixed.log", MIXED.as_bytes())]);
    let request = book.request(&[]);
    let answer = inspect(&request, &Logs::open(&request, &std::env::temp_dir()).unwrap(), Some(Path::new("gone.toml")));
    let error = answer.err().unwrap();
    assert!(error.is::<crate::request::Mistake>() && error.to_string().contains("gone.toml"), "{error}");
}
