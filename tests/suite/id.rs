//! `id`: ids from arguments and standard input, and how it ends. What each form says is tested beside the forms.

use serde_json::Value;

use crate::command::{Workspace, assert_sentence};

const NOW: [&str; 3] = ["id", "--now", "2025-06-02"];

fn forms(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["form"].as_str().unwrap()).collect()
}

#[test]
fn ids_come_from_arguments_and_where_a_hyphen_stands_from_standard_input() {
    let workspace = Workspace::new();
    let counted = "1972aef1100-gw1-17";
    let piped = |arguments: &[&str]| {
        let arguments = [&NOW[..], arguments, &["--format", "json"]].concat();
        let report = workspace.command(&arguments).input("\n00f067aa0ba902b7\r\n\nreq_20250601_00042").run().report();
        report.rows().to_vec()
    };
    assert_eq!(forms(&piped(&[])), ["span-id", "dated"]);
    assert_eq!(forms(&piped(&[counted, "-", counted])), ["counted", "span-id", "dated", "counted"]);
    assert_eq!(forms(&piped(&[counted])), ["counted"]);
}

#[test]
fn a_row_says_when_where_and_as_which_of_how_many() {
    let report = Workspace::new().report(&[&NOW[..], &["--tz", "Asia/Shanghai", "req-1972aef1100-gw1-17"]].concat());
    let expected = serde_json::json!({
        "id": "req-1972aef1100-gw1-17", "form": "counted", "time": "2025-06-01T18:00:00+08:00", "resolution": "ms",
        "instance": "gw1", "sequence": "17", "random_bits": 0, "not_encoded": "nothing", "note": "without the prefix `req-`"
    });
    assert_eq!(report.rows(), [expected]);
}

#[test]
fn dates_are_of_the_zone_that_is_given() {
    let typed = [&NOW[..], &["--source-tz", "Asia/Shanghai", "req_20250601_1"]].concat();
    assert_eq!(Workspace::new().report(&typed).rows()[0]["time"], "2025-05-31T16:00:00+00:00");
}

#[test]
fn ids_without_a_form_are_rows_and_the_end_says_that_none_has_one() {
    let workspace = Workspace::new();
    let odd = ["id", "--format", "json", "nothing", "", "\u{1b}[31m"];
    assert_eq!(forms(workspace.run(&odd).exits(5).report_anyway().rows()), ["unknown"; 3]);
    workspace.command(&["id", "--format", "csv"]).input("").run().exits(5);
    workspace.run(&["id", "nothing", "00f067aa0ba902b7"]).exits(0);
}

#[test]
fn hostile_ids_are_shown_and_not_obeyed() {
    let run = Workspace::new().command(&["id"]).input(b"\x1b[2J-00f067aa0ba902b7\n\xff\xfe\n".to_vec()).run().exits(0);
    assert!(run.text().chars().all(|letter| letter == '\n' || !letter.is_control()), "{run:?}");
    assert!(run.text().contains(r"without the prefix `\x1b[2J-`"), "{run:?}");
}

#[test]
fn a_stream_of_ids_of_any_length_is_read() {
    let mut input = "00f067aa0ba902b7\n".repeat(20_000);
    input += &"x".repeat(10_000_000);
    let run = Workspace::new().command(&["id", "--format", "jsonl"]).input(input).run().exits(0);
    let lines: Vec<&str> = run.text().lines().collect();
    assert_eq!(lines.len(), 20_001);
    assert!(lines[20_000].len() < 10_000 && lines[20_000].contains("longer than any known form"));
}

#[test]
fn an_epoch_that_is_no_time_is_refused() {
    assert_sentence(&Workspace::new().run(&["id", "--epoch", "yesteryear", "1"]).refusal(2));
}
