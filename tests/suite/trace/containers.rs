//! The same request in every form that a log may have.

use serde_json::{Value, json};

use super::{only, stories};
use crate::command::Workspace;
use crate::compress::CODECS;

const ID: &str = "req-slowqueue-01";

/// What must not depend on the form: stages, and what the record says.
fn essence(life: &Value) -> Value {
    let mut record = life["records"][0].clone();
    assert_eq!(life["records"].as_array().unwrap().len(), 1, "{life}");
    record.as_object_mut().unwrap().remove("place");
    let values = record["values"].as_object_mut().unwrap();
    values.retain(|name, _| !name.starts_with("source_"));
    json!({"record": record, "stages": life["stages"], "total": life["total_ms"], "origin": life["origin"],
           "findings": life["findings"]})
}

/// The engine's log as an array, as CSV, within the envelope of a container's log, and as Parquet.
fn forms(workspace: &Workspace) -> Vec<String> {
    let text = workspace.read("engine.ndjson");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut keys: Vec<&String> = records.iter().flat_map(|record| record.as_object().unwrap().keys()).collect();
    keys.sort();
    keys.dedup();
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let row = |record: &Value| keys.iter().map(|key| cell(record.get(key))).collect::<Vec<_>>().join(",");
    let header = keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",");
    let csv: String = std::iter::once(header).chain(records.iter().map(row)).map(|row| row + "\n").collect();
    workspace.write("engine.csv", csv);
    workspace.write("engine.json", serde_json::to_string_pretty(&records).unwrap());
    let enveloped =
        |line: &str| json!({"log": format!("{line}\n"), "stream": "stdout", "time": "2025-06-01T09:00:00Z"});
    let docker: Vec<Value> = text.lines().map(enveloped).collect();
    workspace.write("engine-docker.log", crate::command::ndjson(&docker));
    let cri = |line: &str| format!("2025-06-01T09:00:00.5Z stdout F {line}\n");
    workspace.write("engine-cri.log", text.lines().map(cri).collect::<String>());
    let logged: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
    let query = format!("SELECT {} FROM logs", logged.join(", "));
    workspace.run(&["sql", &query, "--format", "parquet", "-o", "engine.parquet", "engine.ndjson"]).exits(0);
    ["engine.csv", "engine.json", "engine-docker.log", "engine-cri.log", "engine.parquet"].map(str::to_owned).to_vec()
}

#[test]
fn a_request_is_the_same_in_every_form_and_compression() {
    let workspace = stories();
    workspace.write("infer-stats.toml", "[[source]]\nname = \"engine\"\nrole = \"engine\"\npaths = [\"engine*\"]\n");
    let mut names = forms(&workspace);
    names.push("engine.ndjson".to_owned());
    for name in names.clone() {
        let content = std::fs::read(workspace.path(&name)).unwrap();
        for (ending, compress) in CODECS {
            workspace.write(&format!("{name}{ending}"), compress(&content));
            names.push(format!("{name}{ending}"));
        }
    }
    let ask = |name: &str, flags: &[&str]| only(&workspace.report(&[&["trace", ID], flags, &[name]].concat()));
    let expected = essence(&ask("engine.ndjson", &[]));
    assert_eq!(expected["record"]["values"]["queue_wait_ms"], 2900.0);
    let alone = essence(&ask("engine.ndjson", &["--alone"]));
    assert_eq!(names.len(), 30);
    for name in &names {
        assert_eq!(essence(&ask(name, &[])), expected, "{name}");
        assert_eq!(essence(&ask(name, &["--alone"])), alone, "{name} alone");
    }
}

#[test]
fn the_place_of_a_record_is_its_line_in_the_unpacked_log() {
    let workspace = stories();
    let text = workspace.read("engine.ndjson");
    let line = text.lines().position(|line| line.contains(ID)).unwrap() + 1;
    workspace.write("engine.ndjson.gz", crate::compress::gzip(text.as_bytes()));
    forms(&workspace);
    let place = |name: &str| only(&workspace.report(&["trace", ID, name]))["records"][0]["place"].clone();
    assert_eq!(place("engine.ndjson"), format!("engine.ndjson:{line}"));
    assert_eq!(place("engine.ndjson.gz"), format!("engine.ndjson.gz:{line}"));
    assert_eq!(place("engine-docker.log"), format!("engine-docker.log:{line}"));
    assert_eq!(place("engine.csv"), format!("engine.csv:{}", line + 1));
    assert_eq!(place("engine.parquet"), "engine.parquet");
}

#[test]
fn standard_input_is_searched_too() {
    let workspace = stories();
    let text = workspace.read("engine.ndjson");
    for content in [text.clone().into_bytes(), crate::compress::zstd(text.as_bytes())] {
        for flags in [&[][..], &["--alone"]] {
            let asked = [&["trace", ID, "--format", "json"], flags, &["-"]].concat();
            let life = only(&workspace.command(&asked).input(content.clone()).run().report());
            assert_eq!(life["records"].as_array().unwrap().len(), 1);
            assert_eq!(flags.is_empty(), !life["stages"][0]["standing"].is_null(), "{life}");
        }
    }
}

#[test]
fn a_record_that_a_container_runtime_cut_is_found_whole() {
    let record = r#"{"request_id":"req-cut-1","input_tokens":7,"latency_ms":5,"model":"m"}"#;
    // through the id and behind it
    for at in [17, 24, 40] {
        let (head, tail) = record.split_at(at);
        let cri = format!("2025-06-01T09:00:00Z stdout P {head}\n2025-06-01T09:00:00Z stdout F {tail}\n");
        let piece = |text: &str| json!({"log": text, "stream": "stdout", "time": "2025-06-01T09:00:00Z"}).to_string();
        let docker = format!("{}\n{}\n", piece(head), piece(&format!("{tail}\n")));
        for log in [cri, docker] {
            let workspace = Workspace::with("pod.log", &log);
            let life = only(&workspace.report(&["trace", "req-cut-1", "--alone", "pod.log"]));
            assert_eq!(life["records"][0]["values"]["input_tokens"], 7, "{log}");
        }
    }
}

#[test]
fn an_id_across_two_members_of_a_compressed_log_is_found() {
    // the id lies across two members, near the start of the log and far behind
    let filler = |count: usize| "{\"request_id\":\"x\",\"input_tokens\":1}\n".repeat(count);
    for before in [0, 1900, 7600] {
        let text = format!("{}{{\"request_id\":\"req-far-1\",\"input_tokens\":7}}\n{}", filler(before), filler(10));
        let (head, tail) = text.split_at(text.find("far-1").unwrap());
        let members = [crate::compress::gzip(head.as_bytes()), crate::compress::gzip(tail.as_bytes())].concat();
        let workspace = Workspace::with("log.ndjson.gz", members);
        let life = only(&workspace.report(&["trace", "req-far-1", "--alone", "log.ndjson.gz"]));
        assert_eq!(life["records"][0]["place"], format!("log.ndjson.gz:{}", before + 1));
    }
}

#[test]
fn a_damaged_log_is_told_and_the_others_are_searched() {
    let workspace = stories();
    let text = workspace.read("engine.ndjson");
    let packed = crate::compress::gzip(text.as_bytes());
    workspace.write("cut.ndjson.gz", &packed[..packed.len() / 3]);
    let report = workspace.report(&["trace", "req-skew-07", "cut.ndjson.gz", "gateway.ndjson"]);
    assert_eq!(report.counted("damaged_files"), 1);
    assert_eq!(only(&report)["records"].as_array().unwrap().len(), 1);
}
