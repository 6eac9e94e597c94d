//! Each story is told on the first screen, and its numbers are those of the logs.

use serde_json::{Value, json};

use super::{
    ENGINE_STAGES, assert_says, assert_tells, codes, fact, finding, life, lives, logged, moment, names, near,
    neighbours, one, ordinary, percentile, screen, stories, trace, usual, with,
};

#[test]
fn a_slow_queue_is_named_with_its_place_among_requests_alike() {
    let workspace = stories();
    let id = "req-slowqueue-01";
    let life = life(&workspace, id);
    assert_eq!(codes(&life)[0], "slow_stage", "the weightiest comes first");
    let screen = screen(&workspace, id);
    for told in [&finding(&life, "slow_stage"), &screen] {
        assert_says(told, &["queue", "P99"]);
        assert_tells(told, &["2,900 ms", "2.9 s"]);
        // the P99 of its bucket
        assert_tells(told, &["402.5 ms", "402 ms", "0.4 s"]);
    }
    assert_says(&screen, &[id, "bank-north", "finance_ai", "qwen2.5-72b", "v1.4.0", "3,000", "51"]);

    let (_, engine) = logged(&workspace, "engine.ndjson", "chatcmpl-req-slowqueue-01");
    let (_, gateway) = logged(&workspace, "gateway.ndjson", id);
    let (_, app) = logged(&workspace, "app.ndjson", id);
    near(&life["total_ms"], gateway["latency_ms"].as_f64().unwrap(), "the total is the gateway's");
    let origin = moment(&life["origin"]);
    assert_eq!(origin, moment(&app["timestamp"]), "the axis begins with the first moment of all records");
    near(&life["length_ms"], moment(&app["complete_at"]) - origin, "and ends with the last");
    let mut start = moment(&engine["timestamp"]) - origin;
    for (name, column) in ENGINE_STAGES {
        let stage = one(&life, "stages", json!({"name": name, "role": "engine"}));
        let duration = engine[column].as_f64().unwrap();
        near(&stage["duration_ms"], duration, name);
        near(&stage["start_ms"], start, name);
        start += duration;
        near(&stage["end_ms"], start, name);
        near(&stage["share"], duration / gateway["latency_ms"].as_f64().unwrap(), name);
        assert_eq!(stage["dominant"], name == "queue");
        let usual = usual(&workspace, column, &engine["model_name"], id);
        let standing = &stage["standing"];
        assert_eq!(standing["model_name"], engine["model_name"]);
        assert_eq!(standing["input_bucket"], "2K-4K");
        assert_eq!(standing["count"], usual.len());
        near(&standing["p50_ms"], percentile(&usual, 0.5), name);
        near(&standing["p95_ms"], percentile(&usual, 0.95), name);
        near(&standing["p99_ms"], percentile(&usual, 0.99), name);
        let below = usual.iter().filter(|value| **value < duration).count() as f64;
        near(&standing["below"], below / usual.len() as f64, name);
    }
    let dominant = with(&life, "stages", json!({"dominant": true}));
    assert_eq!(dominant.len(), 1, "{dominant:?}");
}

#[test]
fn every_record_of_a_request_stands_with_its_place_and_its_values() {
    let workspace = stories();
    let life = life(&workspace, "req-slowqueue-01");
    assert_eq!(life["records"].as_array().unwrap().len(), 3);
    for (role, name, id) in [
        ("app", "app.ndjson", "req-slowqueue-01"),
        ("gateway", "gateway.ndjson", "req-slowqueue-01"),
        ("engine", "engine.ndjson", "chatcmpl-req-slowqueue-01"),
    ] {
        let (number, line) = logged(&workspace, name, id);
        let record = one(&life, "records", json!({ "role": role }));
        assert_eq!(record["place"], format!("{name}:{number}"));
        near(&record["start_ms"], moment(&line["timestamp"]) - moment(&life["origin"]), role);
        for (key, value) in line.as_object().unwrap() {
            let column = match key.as_str() {
                "complete_at" => "completed_at",
                "latency_ms" => "total_latency_ms",
                "model" => "model_name",
                other => other,
            };
            let found = record["values"].get(column).unwrap_or(&Value::Null);
            match (value, found) {
                (Value::Number(value), found) => near(found, value.as_f64().unwrap(), column),
                (Value::String(_), found) if column.ends_with("_at") || column == "timestamp" => {
                    assert_eq!(moment(found), moment(value), "{column}");
                }
                (value, found) => assert_eq!(found, value, "{column}"),
            }
        }
    }
    let starts: Vec<f64> =
        life["records"].as_array().unwrap().iter().map(|record| record["start_ms"].as_f64().unwrap()).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(fact(&life, "tenant"), "bank-north");
    assert_eq!(fact(&life, "business_line"), "finance_ai");
    assert_eq!(fact(&life, "input_tokens"), 3000);
    assert_eq!(fact(&life, "output_tokens"), 51);
}

#[test]
fn a_request_that_the_engine_does_not_know_was_lost_on_the_way_to_it() {
    let workspace = stories();
    let id = "req-lostengine-02";
    let life = life(&workspace, id);
    assert_eq!(life["outcome"], "failed");
    near(&life["total_ms"], 30_000.0, "total");
    let missing = life["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["role"], "engine");
    let said = ["engine has no record", "lost between gateway and engine"];
    assert_says(missing[0]["text"].as_str().unwrap(), &said);
    assert_says(&finding(&life, "missing_record"), &said);
    assert_says(&screen(&workspace, id), &said);
    let screen = screen(&workspace, id);
    assert_says(&screen, &["504"]);
    assert_tells(&screen, &["30,000 ms", "30 s", "30.0 s"]);
}

#[test]
fn a_retry_under_a_new_id_is_found_from_both_ends() {
    let workspace = stories();
    let first = life(&workspace, "req-first-03");
    let retry = life(&workspace, "req-retry-03");
    assert_eq!((&first["outcome"], &retry["outcome"]), (&json!("failed"), &json!("success")));
    assert_eq!(one(&first, "neighbours", json!({"id": "req-retry-03"}))["relation"], "retry");
    assert_eq!(one(&retry, "neighbours", json!({"id": "req-first-03"}))["relation"], "retried");
    assert_eq!(one(&first, "neighbours", json!({"id": "req-retry-03"}))["outcome"], "success");
    assert_says(&finding(&first, "failed"), &["OOM", "prefill"]);
    assert_says(&finding(&first, "retry"), &["req-retry-03"]);
    assert_says(&finding(&retry, "retry"), &["req-first-03"]);
    assert_says(&screen(&workspace, "req-first-03"), &["OOM", "prefill", "503", "req-retry-03"]);
    assert_says(&screen(&workspace, "req-retry-03"), &["req-first-03"]);
    // it ended in its prefill: there is no decoding to show
    assert_eq!(with(&first, "stages", json!({"name": "decode"})), Vec::<Value>::new());
}

#[test]
fn a_client_that_went_away_and_came_back_is_found_from_both_ends() {
    let workspace = stories();
    let cut = life(&workspace, "req-recon-04");
    let again = life(&workspace, "req-recon-04b");
    assert_eq!(one(&cut, "neighbours", json!({"id": "req-recon-04b"}))["relation"], "reconnect");
    assert_eq!(one(&again, "neighbours", json!({"id": "req-recon-04"}))["relation"], "reconnected");
    assert_says(&finding(&cut, "reconnect"), &["req-recon-04b"]);
    assert_says(&finding(&again, "reconnect"), &["req-recon-04"]);
    assert!(!codes(&cut).contains(&"retry") && !codes(&again).contains(&"retry"), "{:?}", codes(&cut));
    assert_says(&screen(&workspace, "req-recon-04"), &["499", "req-recon-04b"]);
    assert_eq!((fact(&cut, "output_tokens"), fact(&again, "output_tokens")), (json!(80), json!(120)));
}

#[test]
fn a_short_answer_in_a_batch_of_long_ones_is_starved() {
    let workspace = stories();
    let id = "req-starved-05";
    let long = ["req-long-05a", "req-long-05b", "req-long-05c"];
    let starved = life(&workspace, id);
    assert_eq!(neighbours(&starved, "batch"), names(&long));
    for id in long {
        let member = one(&starved, "neighbours", json!({ "id": id }));
        let (number, engine) = logged(&workspace, "engine.ndjson", id);
        for column in ["output_tokens", "input_tokens", "batch_id", "gpu_id"] {
            assert_eq!(member[column], engine[column], "{column}");
        }
        near(&member["decode_time_ms"], engine["decode_time_ms"].as_f64().unwrap(), id);
        near(&member["start_ms"], moment(&engine["timestamp"]) - moment(&starved["origin"]), id);
        assert_eq!(member["place"], format!("engine.ndjson:{number}"));
    }
    let said = ["batch-77", "2,000 tokens"];
    assert_says(&finding(&starved, "starved"), &said);
    assert_says(&screen(&workspace, id), &said);
    // the event names the batch alone
    assert_eq!(one(&starved, "events", json!({"name": "kernel"}))["gpu_id"], "2");
    for id in long {
        let life = life(&workspace, id);
        assert!(!codes(&life).contains(&"starved"), "{id}: {:?}", codes(&life));
        assert!(neighbours(&life, "batch").contains("req-starved-05"));
    }
}

#[test]
fn a_clock_that_is_ahead_is_said_and_not_hidden() {
    let workspace = stories();
    let id = "req-skew-07";
    let life = life(&workspace, id);
    let skew = one(&life, "skews", json!({"role": "engine", "against": "gateway"}));
    let ahead = skew["ahead_ms"].as_f64().unwrap();
    // at least: nobody can say how long the way took
    assert!((1490.0..=1500.0).contains(&ahead), "{ahead}");
    for told in [&finding(&life, "clock_skew"), &screen(&workspace, id)] {
        assert_says(told, &["engine", "ahead", "gateway"]);
        assert_tells(told, &["1,499 ms", "1,500 ms", "1.5 s"]);
    }
    // the times themselves are as logged
    let (_, engine) = logged(&workspace, "engine.ndjson", id);
    let record = one(&life, "records", json!({"role": "engine"}));
    near(&record["start_ms"], moment(&engine["timestamp"]) - moment(&life["origin"]), "start of the engine");
}

#[test]
fn requests_without_a_story_have_none() {
    let workspace = stories();
    let everything = ordinary(&workspace);
    let report = trace(&workspace, &[&everything.join(",")]);
    assert_eq!(lives(&report).iter().map(|life| life["id"].as_str().unwrap()).collect::<Vec<_>>(), everything);
    let mut quiet = 0;
    for life in lives(&report) {
        assert_eq!((&life["skews"], &life["missing"]), (&json!([]), &json!([])), "{life}");
        let standing = |name: &str| one(life, "stages", json!({"name": name, "role": "engine"}))["standing"].clone();
        let usual = |name: &str| standing(name)["below"].as_f64().unwrap() < 0.95;
        if ["queue", "prefill", "decode"].into_iter().all(usual) {
            quiet += 1;
            let loud: Vec<_> = with(life, "findings", json!({"severity": "warning"}));
            assert_eq!(loud, Vec::<Value>::new(), "{}", life["id"]);
            assert_eq!(with(life, "findings", json!({"severity": "error"})), Vec::<Value>::new(), "{}", life["id"]);
        }
    }
    assert!(quiet > 20, "{quiet} of {}", everything.len());
}

#[test]
fn stages_of_one_role_do_not_overlap_and_their_shares_are_of_the_total() {
    let workspace = stories();
    let ids = ["req-slowqueue-01", "req-retry-03", "req-starved-05", "req-stall-06", "req-skew-07"].join(",");
    for life in lives(&trace(&workspace, &[&ids])) {
        let stages = life["stages"].as_array().unwrap();
        let number = |stage: &Value, key: &str| stage[key].as_f64().unwrap_or_else(|| panic!("{key}: {stage}"));
        assert!(stages.iter().map(|stage| number(stage, "start_ms")).is_sorted(), "{stages:?}");
        for role in ["gateway", "engine", "app"] {
            let own: Vec<&Value> = stages.iter().filter(|stage| stage["role"] == role).collect();
            for pair in own.windows(2) {
                assert!(number(pair[0], "end_ms") <= number(pair[1], "start_ms") + 1e-6, "{pair:?}");
            }
        }
        for stage in stages {
            near(&stage["share"], number(stage, "duration_ms") / life["total_ms"].as_f64().unwrap(), "share");
        }
    }
}

#[test]
fn events_and_lines_of_text_stand_on_the_axis_of_the_request() {
    let workspace = stories();
    let slow = life(&workspace, "req-slowqueue-01");
    let waits = one(&slow, "events", json!({"place": "engine.log:2"}));
    assert_eq!(waits["name"], "line");
    assert_says(waits["text"].as_str().unwrap(), &["waits behind 31 others"]);
    // 09:02:10,561
    near(&waits["at_ms"], moment(&json!("2025-06-01T09:02:10.561Z")) - moment(&slow["origin"]), "a time with a comma");
    let scheduled = one(&slow, "events", json!({"place": "engine.log:3"}));
    near(&scheduled["at_ms"], moment(&json!("2025-06-01T09:02:12.906Z")) - moment(&slow["origin"]), "in brackets");

    let first = life(&workspace, "req-first-03");
    let kernel = one(&first, "events", json!({"name": "kernel"}));
    assert_eq!((&kernel["gpu_id"], &kernel["host"]), (&json!("1"), &json!("node-2")));
    near(&kernel["duration_ms"], 12.5, "duration");
    // of the lines about it one has a time without a year, one has none
    for place in ["engine.log:4", "engine.log:5"] {
        one(&first, "events", json!({ "place": place }));
    }
    assert_eq!(one(&first, "events", json!({"place": "engine.log:5"}))["at_ms"], Value::Null);
    let times: Vec<Option<f64>> =
        first["events"].as_array().unwrap().iter().map(|event| event["at_ms"].as_f64()).collect();
    let dated: Vec<f64> = times.iter().flatten().copied().collect();
    assert!(dated.is_sorted() && times[dated.len()..].iter().all(Option::is_none), "{times:?}");

    // a line about the one is no line about the other
    let cut = life(&workspace, "req-recon-04");
    let places = |life: &Value| {
        with(life, "events", json!({"name": "line"})).iter().map(|event| event["place"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(places(&cut), ["engine.log:7"]);
    assert_eq!(places(&life(&workspace, "req-recon-04b")), ["engine.log:8"]);
}
