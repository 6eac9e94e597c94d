//! What records come in: arrays, objects, CSV, Parquet, compressed or not, told apart by content and not by name.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};
use crate::compress::{CODECS, gzip, xz, zstd};
use crate::reading::good;

const IDS: &str = "SELECT request_id, input_tokens FROM logs ORDER BY request_id";

/// Ids of the records of a file under this name, none of them rejected.
#[track_caller]
fn ids(name: &str, content: impl AsRef<[u8]>) -> Vec<Value> {
    let report = Workspace::with(name, content).sql(IDS, &[name]);
    assert_eq!(report.records().rejected, 0, "{}", report.0);
    report.column("request_id")
}

fn lines(count: usize) -> String {
    (0..count).map(|index| good(&format!("id-{index:05}")) + "\n").collect()
}

/// A Parquet file of three records, made by the program itself.
pub fn parquet() -> Vec<u8> {
    let workspace = Workspace::with("log.ndjson", lines(3));
    let query = "SELECT request_id, input_tokens, total_latency_ms, timestamp FROM logs";
    workspace.run(&["sql", query, "--format", "parquet", "-o", "log.parquet", "log.ndjson"]).exits(0);
    std::fs::read(workspace.path("log.parquet")).unwrap()
}

#[test]
fn an_array_of_records_is_read() {
    assert_eq!(ids("log.json", format!("[{},\n{}]", good("a"), good("b"))), ["a", "b"]);
    assert_eq!(ids("log.json", format!("\u{feff}[\n  {},\r\n  {}\r\n]\r\n", good("a"), good("b"))), ["a", "b"]);
}

#[test]
fn pretty_printed_objects_one_after_another_are_read() {
    let pretty = |id: &str| {
        let value: Value = serde_json::from_str(&good(id)).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    };
    assert_eq!(ids("log.json", format!("{}\n{}\n", pretty("a"), pretty("b"))), ["a", "b"]);
    assert_eq!(ids("log.json", pretty("a")), ["a"]);
    assert_eq!(ids("log.json", format!("[\n{},\n{}\n]\n", pretty("a"), pretty("b"))), ["a", "b"]);
}

#[test]
fn an_array_that_is_cut_off_gives_its_whole_records() {
    let array = format!("[{},{},{}]", good("a"), good("b"), good("c"));
    let workspace = Workspace::with("log.json", &array[..array.len() - 30]);
    let report = workspace.sql(IDS, &["log.json"]);
    assert_eq!(report.column("request_id"), ["a", "b"]);
    assert_eq!((report.records().records, report.records().rejected), (3, 1));
}

#[test]
fn one_bad_record_of_an_array_costs_that_record_only() {
    let array = format!("[{},\n42,\n{}]", good("a"), good("b"));
    let report = Workspace::with("log.json", array).sql(IDS, &["log.json"]);
    assert_eq!(report.column("request_id"), ["a", "b"]);
    assert_eq!((report.records().records, report.records().rejected), (3, 1));
}

#[test]
fn csv_is_read_with_any_line_ends_quotes_and_without_a_final_newline() {
    for text in [
        "request_id,input_tokens,model\na,1,m\nb,2,m\n",
        "request_id,input_tokens,model\r\na,1,m\r\nb,2,m",
        "\u{feff}request_id,input_tokens,model\r\n\"a\",\"1\",\"m, large\"\r\n\r\n\"b\",2,\"two\r\nlines\"\r\n",
        "request_id;input_tokens;model\na;1;m\nb;2;m\n",
        "request_id\tinput_tokens\tmodel\na\t1\tm\nb\t2.0\tm",
    ] {
        let report = Workspace::with("log.csv", text).sql(IDS, &["log.csv"]);
        assert_eq!(
            report.rows(),
            [json!({"request_id": "a", "input_tokens": 1}), json!({"request_id": "b", "input_tokens": 2})],
            "{text}"
        );
        assert_eq!(report.records().records, 2, "{text}");
    }
}

#[test]
fn quoted_cells_keep_their_commas_quotes_and_newlines() {
    let workspace = Workspace::with("log.csv", "model,request_id\r\n\"a, \"\"b\"\"\r\nc\",x\r\n");
    assert_eq!(workspace.sql("SELECT model_name FROM logs", &["log.csv"]).row()["model_name"], "a, \"b\"\r\nc");
}

#[test]
fn empty_cells_are_missing_and_not_zero() {
    let workspace = Workspace::with("log.csv", "request_id,input_tokens,latency_ms\na,,1.5\nb,3,\n");
    let report = workspace.sql("SELECT request_id, input_tokens, total_latency_ms FROM logs ORDER BY 1", &["log.csv"]);
    assert_eq!(
        report.rows(),
        [
            json!({"request_id": "a", "input_tokens": null, "total_latency_ms": 1.5}),
            json!({"request_id": "b", "input_tokens": 3, "total_latency_ms": null}),
        ]
    );
    assert_eq!(report.notes("unfit_value"), []);
}

#[test]
fn a_csv_row_with_too_few_cells_is_cut_off() {
    let workspace = Workspace::with("log.csv", "request_id,input_tokens,model\na,1,m\nb,2,m\nc");
    let report = workspace.sql(IDS, &["log.csv"]);
    assert_eq!(report.column("request_id"), ["a", "b"]);
    assert_eq!((report.records().records, report.records().rejected), (3, 1));
}

#[test]
fn every_format_may_be_compressed() {
    let contents = [
        ("log.ndjson", lines(3).into_bytes()),
        ("array.json", format!("[{}]", lines(3).trim_end().replace('\n', ",")).into_bytes()),
        ("log.csv", b"request_id,input_tokens\nid-00000,100\nid-00001,100\nid-00002,100".to_vec()),
        ("log.parquet", parquet()),
    ];
    for (name, content) in contents {
        let expected = ids(name, &content);
        assert_eq!(expected, ["id-00000", "id-00001", "id-00002"], "{name}");
        for (ending, compress) in CODECS {
            let name = format!("{name}{ending}");
            assert_eq!(ids(&name, compress(&content)), expected, "{name}");
        }
    }
}

#[test]
fn all_members_and_frames_of_a_compressed_file_are_read() {
    for (ending, compress) in CODECS {
        let name = format!("log.ndjson{ending}");
        let (first, second) = (good("a") + "\n", good("b") + "\n" + &good("c"));
        // a record may begin in one member and end in the next
        let (head, tail) = second.split_at(30);
        let members = [compress(first.as_bytes()), compress(head.as_bytes()), compress(b""), compress(tail.as_bytes())];
        assert_eq!(ids(&name, members.concat()), ["a", "b", "c"], "{name}");
    }
}

/// What is left of 4000 records when the end of their compressed file is missing.
#[track_caller]
fn cut(name: &str, whole: &[u8]) -> Report {
    let workspace = Workspace::with(name, &whole[..whole.len() * 2 / 3]);
    let query = "SELECT count(*) AS n, max(request_id) AS last, sum(input_tokens) AS tokens FROM logs";
    let report = workspace.sql(query, &[name]);
    assert_eq!(report.counted("damaged_files"), 1, "{name}");
    let (text, count) = report.note("damaged_file");
    assert!(text.contains(name) && count == Some(1), "{text}");
    let strict = workspace.run(&["latency", "--strict", name]).exits(4);
    assert!(strict.stderr.contains("1 damaged") && strict.text().contains("p95_ms"), "{strict:?}");
    report
}

#[test]
fn a_cut_gzip_file_gives_its_whole_records_and_counts_as_damaged() {
    // ids in no order that compresses well, so that the cut falls into the data
    let mut text = String::new();
    let mut state = 1u64;
    for index in 0..4000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text += &(good(&format!("id-{index:05}")).replace("success", &format!("{state:x}")) + "\n");
    }
    let compressed = gzip(text.as_bytes());
    let report = cut("log.ndjson.gz", &compressed);

    // what any gzip gets out of the same bytes
    let mut plain = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&compressed[..compressed.len() * 2 / 3]);
    std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap_err();
    let whole = plain.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(whole > 1000, "{whole}");
    let row = report.row();
    assert_eq!(row["n"], whole);
    assert_eq!(row["last"], format!("id-{:05}", whole - 1));
    assert_eq!(row["tokens"], 100 * whole);
    assert!(report.records().rejected <= 1, "the record that the cut went through");
}

#[test]
fn a_cut_file_of_any_compression_counts_as_damaged_and_not_as_silence() {
    for (ending, compress) in CODECS {
        cut(&format!("log.ndjson{ending}"), &compress(lines(4000).as_bytes()));
    }
}

#[test]
fn of_nothing_but_a_damaged_file_nothing_is_found() {
    let workspace = Workspace::with("cut.parquet", b"PAR1 and no footer");
    let run = workspace.run(&["latency", "--format", "json", "cut.parquet"]).exits(5);
    assert_eq!(run.report_anyway().counted("damaged_files"), 1);
}

#[test]
fn a_damaged_file_does_not_cost_the_others() {
    let workspace = Workspace::with("good.ndjson", lines(5));
    let broken = xz(lines(100).as_bytes());
    workspace.write("cut.ndjson.xz", &broken[..broken.len() - 20]);
    workspace.write("cut.parquet", &parquet()[..200]);
    let report = workspace.sql(
        "SELECT count(*) AS n FROM logs WHERE source_file = 'good.ndjson'",
        &["good.ndjson", "cut.ndjson.xz", "cut.parquet"],
    );
    assert_eq!(report.row()["n"], 5);
    assert_eq!((report.counted("files"), report.counted("damaged_files")), (3, 2));
}

#[test]
fn the_content_decides_and_not_the_name() {
    assert_eq!(ids("log.csv", lines(2)), ["id-00000", "id-00001"]);
    assert_eq!(ids("log.parquet", lines(1)), ["id-00000"]);
    assert_eq!(ids("log.json", "request_id,input_tokens\na,1\nb,2\n"), ["a", "b"]);
    assert_eq!(ids("log.ndjson", gzip(lines(2).as_bytes())), ["id-00000", "id-00001"]);
    assert_eq!(ids("log.gz", lines(1)), ["id-00000"]);
    assert_eq!(ids("log.gz", zstd(lines(1).as_bytes())), ["id-00000"]);
    assert_eq!(ids("log", format!("[{}]", good("a"))), ["a"]);
    assert_eq!(ids("log.ndjson.1", lines(1)), ["id-00000"]);
    assert_eq!(ids("log.txt", parquet()), ["id-00000", "id-00001", "id-00002"]);
}

#[test]
fn standard_input_may_hold_anything_that_a_file_may() {
    let array = format!("[{}]", lines(3).trim_end().replace('\n', ","));
    let contents = [
        lines(3).into_bytes(),
        array.into_bytes(),
        lines(3).replace(',', ",\n  ").into_bytes(),
        b"request_id,input_tokens\nid-00000,100\nid-00001,100\nid-00002,100".to_vec(),
        parquet(),
        gzip(lines(3).as_bytes()),
        zstd(lines(3).as_bytes()),
        xz(&parquet()),
    ];
    let workspace = Workspace::new();
    for (index, content) in contents.into_iter().enumerate() {
        let report = workspace.command(&["sql", IDS, "--format", "json", "-"]).input(content).run().report();
        assert_eq!(report.column("request_id"), ["id-00000", "id-00001", "id-00002"], "content {index}");
        assert_eq!(report.records().used, 3, "content {index}");
    }
}

#[test]
fn an_empty_standard_input_holds_no_record() {
    let run = Workspace::new().command(&["latency", "--format", "json", "-"]).input("").run().exits(5);
    assert_eq!(run.report_anyway().records().records, 0);
}

#[test]
fn a_log_of_lines_in_pieces_is_the_same_however_many_threads_read_it() {
    // long enough for several pieces of the file, in each of which some record was cut by the container runtime
    let mut log = String::new();
    let mut number = 0;
    while log.len() < 36 << 20 {
        let record = format!(
            "{{\\\"request_id\\\":\\\"r{number}\\\",\\\"input_tokens\\\":{},\\\"note\\\":\\\"{}\\\"}}",
            number % 1000,
            "x".repeat(700)
        );
        let (first, second) = record.split_at(100);
        let line =
            |text: &str| format!("{{\"log\":\"{text}\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:00:00.5Z\"}}\n");
        log += &line(first);
        log += "{\"log\":\"noise\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:00:00.6Z\"}\n";
        log += &line(&format!("{second}\\n"));
        number += 1;
    }
    let workspace = Workspace::with("docker.log", log);
    let query = "SELECT count(*) AS n, count(DISTINCT request_id) AS ids, sum(input_tokens) AS tokens FROM logs";
    let ask = |threads| workspace.report(&["sql", query, "--threads", threads, "docker.log"]);
    let one = ask("1");
    assert_eq!((&one.row()["n"], &one.row()["ids"]), (&json!(number), &json!(number)));
    assert_eq!(one.counted("skipped"), number);
    assert_eq!(one.counted("rejected"), 0);
    assert_eq!(one, ask("8"));
}

#[test]
fn a_line_that_a_runtime_cut_within_a_character_is_joined() {
    let record = r#"{"request_id":"rö","input_tokens":7}"#;
    let (head, tail) = record.as_bytes().split_at(record.find('ö').unwrap() + 1);
    let line = |tag: &str, text: &[u8]| [b"2026-01-02T03:00:00Z stdout ", tag.as_bytes(), b" ", text, b"\n"].concat();
    assert_eq!(ids("pod.log", [line("P", head), line("F", tail)].concat()), ["rö"]);
}

/// A Parquet file of one row that a query makes.
#[track_caller]
fn parquet_of(workspace: &Workspace, name: &str, row: &str) {
    workspace.write("one.ndjson", good("one"));
    workspace
        .run(&["sql", &format!("SELECT {row} FROM logs"), "--format", "parquet", "-o", name, "one.ndjson"])
        .exits(0);
}

#[test]
fn envelopes_in_parquet_are_opened() {
    let workspace = Workspace::new();
    let line = good("inside") + "\n";
    let row = format!("'{line}' AS log, 'stdout' AS stream, '2026-01-02T03:00:00Z' AS time");
    parquet_of(&workspace, "docker.parquet", &row);
    assert_eq!(workspace.sql(IDS, &["docker.parquet"]).column("request_id"), ["inside"]);
}

#[test]
fn text_that_a_parquet_file_calls_bytes_is_text_still() {
    let workspace = Workspace::new();
    let binary = |value: &str, name: &str| format!("arrow_cast('{value}', 'Binary') AS {name}");
    for row in [
        // one of a known producer, one of none
        ["request_id", "call_type", "model", "spend", "startTime", "endTime"].map(|key| binary("11", key)).join(", "),
        [binary("11", "request_id"), binary("11", "model")].join(", "),
    ] {
        parquet_of(&workspace, "log.parquet", &row);
        let report = workspace.sql("SELECT request_id, model_name FROM logs", &["log.parquet"]);
        assert_eq!(report.rows(), [json!({"request_id": "11", "model_name": "11"})], "{row}");
    }
}
