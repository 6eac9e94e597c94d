//! Public files of real systems, one request at a time: their chunks and their spans; skipped where not at hand.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{lives, moment, near, one, only};
use crate::command::{Workspace, real_data};

const AIPERF: [(&str, usize); 2] =
    [("aiperf/qwen_concurrency4_profile_export.jsonl", 10), ("aiperf/llama_concurrency1_profile_export.jsonl", 64)];

#[test]
fn the_chunks_of_aiperf_are_the_tokens_of_its_requests() {
    for (file, requests) in AIPERF {
        let Some(path) = real_data(file) else { return };
        let text = std::fs::read_to_string(&path).unwrap();
        let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: Vec<&str> =
            records.iter().map(|record| record["metadata"]["x_request_id"].as_str().unwrap()).collect();
        let report = Workspace::new().report(&["trace", &ids.join(","), path.to_str().unwrap()]);
        assert_eq!(lives(&report).len(), requests, "{file}");
        for (record, life) in records.iter().zip(lives(&report)) {
            let metric = |name: &str| &record["metrics"][name]["value"];
            let gaps = metric("inter_chunk_latency").as_array().unwrap();
            assert_eq!(life["id"], record["metadata"]["x_request_id"]);
            let tokens = &life["tokens"];
            assert_eq!(tokens["unit"], "chunk");
            let steps = tokens["steps"].as_array().unwrap();
            assert_eq!(steps.len(), gaps.len() + 1);
            let mut at = metric("time_to_first_token").as_f64().unwrap();
            near(&steps[0]["at_ms"], at, "the first chunk");
            for (step, gap) in steps[1..].iter().zip(gaps) {
                at += gap.as_f64().unwrap();
                near(&step["step_ms"], gap.as_f64().unwrap(), "a gap");
                near(&step["at_ms"], at, "a chunk");
            }
            assert_eq!(tokens["itl"]["count"], gaps.len());
            let mean = gaps.iter().map(|gap| gap.as_f64().unwrap()).sum::<f64>() / gaps.len() as f64;
            near(&tokens["itl"]["mean_ms"], mean, "mean");
            near(&life["total_ms"], metric("request_latency").as_f64().unwrap(), "total");
            let start = record["metadata"]["request_start_ns"].as_f64().unwrap() / 1e6;
            assert!((moment(&life["origin"]) - start).abs() < 1e-2, "{life}");
        }
    }
}

#[test]
fn a_conversation_of_aiperf_is_found_by_its_trace_id_and_by_the_front_of_an_id() {
    let Some(path) = real_data(AIPERF[0].0) else { return };
    let ask = |asked: &str| only(&Workspace::new().report(&["trace", asked, path.to_str().unwrap()]));
    let id = "50878a42-b0be-4408-a8a5-78e5cd7e4180";
    for asked in [id, "50878a42", "0013a312-7b29-484d-8338-f4ab8302306e"] {
        assert_eq!(ask(asked)["id"], id);
    }
}

#[test]
fn calls_of_one_trace_are_its_requests_and_spans_around_them_are_told_apart() {
    for (file, trace, calls) in [
        (
            "otel/agentevals_tempo_otlp_batches.json",
            "dd547580319ab0312cee07f1def50dad",
            [
                ("chatcmpl-DaLYlqJDD4djXUGg9TjyClK9BdeVV", 2256, 13, 1816.2606),
                ("chatcmpl-DaLYmIS19l0ClnUwPDWAYAmn2jz66", 2392, 116, 2703.3155),
            ],
        ),
        (
            "otel/inferenceperf_tau2_retail_claude_code_315397.json",
            "677d79cd5c01a44883296fe88972923d",
            [
                ("chatcmpl-9ddd8fb7-f264-49ca-9e17-cd2121639924", 1690, 161, 16.725),
                ("chatcmpl-41533b49-a6f8-4afd-a9ff-d14de4465fa0", 1780, 54, 8.945),
            ],
        ),
    ] {
        let Some(path) = real_data(file) else { return };
        let report = Workspace::new().report(&["trace", trace, path.to_str().unwrap()]);
        let found: BTreeMap<&str, &Value> =
            lives(&report).iter().map(|life| (life["id"].as_str().unwrap(), life)).collect();
        assert_eq!(found.len(), calls.len(), "{file}: {:?}", found.keys());
        for (id, input, output, total) in calls {
            let life = found[id];
            near(&life["total_ms"], total, id);
            assert_eq!(life["trace_id"], trace);
            assert_eq!(one(life, "facts", json!({"name": "input_tokens"}))["value"], input);
            assert_eq!(one(life, "facts", json!({"name": "output_tokens"}))["value"], output);
            // the other call of the trace
            let other = calls.iter().find(|(other, ..)| *other != id).unwrap().0;
            assert_eq!(one(life, "neighbours", json!({"id": other}))["relation"], "trace");
            // one alone, with the front of its id that its producer put there and without
            for asked in [id, id.trim_start_matches("chatcmpl-")] {
                let one = only(&Workspace::new().report(&["trace", asked, "--alone", path.to_str().unwrap()]));
                assert_eq!(one["id"], id, "{asked}");
            }
        }
    }
}

#[test]
fn an_engine_log_of_text_alone_is_searched_in_its_lines() {
    let Some(path) = real_data("inferencex/vllm_server_dsr1_tp4_bs32_offloadon.log") else { return };
    let run = Workspace::new().run(&["trace", "req-nowhere-98", "--format", "json", path.to_str().unwrap()]).exits(5);
    let report = run.report_anyway();
    assert_eq!(report.counted("rejected"), 0);
    assert_eq!(lives(&report), &[] as &[Value]);
}
