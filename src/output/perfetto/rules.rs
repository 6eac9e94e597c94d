//! The rules of Chrome trace files, as their documents have them, and what the importer of Perfetto makes of a file.
//!
//! - the format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>
//! - overlaps: <https://perfetto.dev/docs/faq#why-are-overlapping-events-in-json-traces-not-displayed-correctly>
//! - times and ids: <https://github.com/google/perfetto/blob/main/src/trace_processor/importers/json/json_trace_tokenizer.cc>
//! - order of one moment: <https://github.com/google/perfetto/blob/main/src/trace_processor/sorter/trace_sorter.h>
//! - nesting: <https://github.com/google/perfetto/blob/main/src/trace_processor/importers/common/slice_tracker.cc>

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

/// Slices below each other that the importer keeps.
const DEPTH: usize = 512;

/// A slice as the importer has it, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub name: String,
    pub start: i64,
    pub duration: i64,
    pub pid: u64,
    pub tid: u64,
    pub args: Map<String, Value>,
}

/// What the importer makes of a file: its slices, and for each arrow the slices at its ends.
#[derive(Debug, Default)]
pub struct Import {
    pub slices: Vec<Imported>,
    pub flows: Vec<(Imported, Imported)>,
    pub threads: HashMap<u64, String>,
}

/// Reads a file; every breach of a rule is an error.
pub fn import(file: &str) -> Result<Import, String> {
    if let Some(at) = file.bytes().position(|byte| byte != b'\n' && byte.is_ascii_control()) {
        return Err(format!("a control character at byte {at}"));
    }
    if !file.starts_with("{\"traceEvents\":[") {
        return Err("the file does not begin as one of trace events".to_owned());
    }
    let whole: Value = serde_json::from_str(file).map_err(|error| error.to_string())?;
    if !matches!(whole["displayTimeUnit"].as_str(), Some("ms" | "ns")) || !whole["metadata"].is_object() {
        return Err("no time unit or metadata".to_owned());
    }
    let events = whole["traceEvents"].as_array().ok_or("traceEvents is no list")?;
    for event in events {
        check(event).map_err(|why| format!("{why}: {event}"))?;
    }
    let threads = names(events)?;
    let mut import = arrange(events)?;
    import.threads = threads;
    Ok(import)
}

/// What must stand in an event, by its phase.
fn check(event: &Value) -> Result<(), &'static str> {
    let members = event.as_object().ok_or("an event is no object")?;
    let phase = event["ph"].as_str().ok_or("no phase")?;
    let needed: &[&str] = match phase {
        "X" => &["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"],
        "i" => &["name", "cat", "ph", "ts", "s", "pid", "tid", "args"],
        "C" => &["name", "ph", "ts", "pid", "tid", "args"],
        "s" => &["name", "cat", "ph", "id", "ts", "pid", "tid"],
        "f" => &["name", "cat", "ph", "id", "ts", "bp", "pid", "tid"],
        "M" => &["name", "ph", "pid", "tid", "args"],
        _ => return Err("an unknown phase"),
    };
    if needed.iter().any(|key| !members.contains_key(*key)) {
        return Err("a key is missing");
    }
    if members.keys().any(|key| !needed.contains(&key.as_str()) && key != "cname") {
        return Err("a key too many");
    }
    if event["name"].as_str().is_none_or(str::is_empty) || event.get("cat").is_some_and(|cat| !cat.is_string()) {
        return Err("no name, or a category that is no text");
    }
    // 0 is the idle process, and stands for a thread that is not known
    let is_id = |key: &str| event[key].as_u64().is_some_and(|id| (1..=u64::from(u32::MAX)).contains(&id));
    if !is_id("pid") || !is_id("tid") {
        return Err("pid and tid are numbers of 32 bits above 0");
    }
    let is_time = |key: &str| event.get(key).is_none_or(|time| time.as_f64().is_some_and(|time| time >= 0.0));
    if !is_time("ts") || !is_time("dur") {
        return Err("times are numbers that are not negative");
    }
    let has_null = event.get("args").is_some_and(has_null);
    let args = event["args"].as_object();
    match phase {
        "X" | "i" | "C" | "M" if args.is_none() || has_null => Err("args are no object, or hold what is not known"),
        "i" if !matches!(event["s"].as_str(), Some("g" | "p" | "t")) => Err("no scope of an instant"),
        "C" if args.is_none_or(|args| args.is_empty() || !args.values().all(Value::is_number)) => Err("no count"),
        "s" | "f" if !event["id"].is_u64() => Err("no id of an arrow"),
        "f" if event["bp"] != "e" => Err("an arrow that does not end at the slice it stands in"),
        "M" => match event["name"].as_str() {
            Some("process_name" | "thread_name") => {
                event["args"]["name"].as_str().filter(|name| !name.is_empty()).map(drop).ok_or("no name")
            }
            Some("process_sort_index" | "thread_sort_index") if event["args"]["sort_index"].is_i64() => Ok(()),
            _ => Err("unknown metadata"),
        },
        _ => Ok(()),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// The name of each thread: every thread and process has just one, and a thread is of one process.
fn names(events: &[Value]) -> Result<HashMap<u64, String>, String> {
    let number = |event: &Value, key: &str| event[key].as_u64().unwrap_or_default();
    let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name && event["ph"] == "M");
    let mut threads = HashMap::new();
    let mut process_of = HashMap::new();
    for event in named("thread_name") {
        let name = event["args"]["name"].as_str().unwrap_or_default().to_owned();
        process_of.insert(number(event, "tid"), number(event, "pid"));
        if threads.insert(number(event, "tid"), name).is_some() {
            return Err(format!("a thread with two names: {event}"));
        }
    }
    let mut processes = HashSet::new();
    for event in named("process_name") {
        if !processes.insert(number(event, "pid")) {
            return Err(format!("a process with two names: {event}"));
        }
    }
    for event in events {
        let (pid, tid) = (number(event, "pid"), number(event, "tid"));
        if !processes.contains(&pid) || process_of.get(&tid) != Some(&pid) {
            return Err(format!("a thread without a name, or of another process: {event}"));
        }
    }
    Ok(threads)
}

/// Nanoseconds of microseconds, as the importer takes them.
fn nanoseconds(value: &Value) -> i64 {
    match (value.as_i64(), value.as_f64()) {
        (Some(whole), _) => whole * 1000,
        (None, Some(number)) if number == number.trunc() => number as i64 * 1000,
        (None, number) => (number.unwrap_or_default() * 1000.0).round() as i64,
    }
}

/// Sorts the events and puts the slices of each thread below each other; one that would be dropped is an error.
fn arrange(events: &[Value]) -> Result<Import, String> {
    let phase = |event: &Value| event["ph"].as_str().unwrap_or_default().to_owned();
    let duration = |event: &Value| event.get("dur").map_or(0, nanoseconds);
    let mut sorted: Vec<&Value> = events.iter().filter(|event| event["ph"] != "M").collect();
    // of one moment the longest slices first, then all else as it stands in the file
    sorted.sort_by_key(|event| (nanoseconds(&event["ts"]), if phase(event) == "X" { -duration(event) } else { 0 }));
    let mut import = Import::default();
    let mut stacks: HashMap<u64, Vec<Imported>> = HashMap::new();
    let mut begun: BTreeMap<(String, u64), Imported> = BTreeMap::new();
    let mut ended = HashSet::new();
    for event in sorted {
        let tid = event["tid"].as_u64().unwrap_or_default();
        let at = nanoseconds(&event["ts"]);
        let stack = stacks.entry(tid).or_default();
        let arrow =
            || (event["name"].as_str().unwrap_or_default().to_owned(), event["id"].as_u64().unwrap_or_default());
        match phase(event).as_str() {
            "X" | "i" => {
                let slice = Imported {
                    name: event["name"].as_str().unwrap_or_default().to_owned(),
                    start: at,
                    duration: duration(event),
                    pid: event["pid"].as_u64().unwrap_or_default(),
                    tid,
                    args: event["args"].as_object().cloned().unwrap_or_default(),
                };
                let is_over = |open: &Imported| {
                    let end = open.start + open.duration;
                    end < at || end == at && !(open.duration == 0 && slice.duration == 0)
                };
                while stack.last().is_some_and(is_over) {
                    stack.pop();
                }
                if stack.last().is_some_and(|open| at + slice.duration > open.start + open.duration) {
                    return Err(format!("it overlaps {:?} in part: {event}", stack.last()));
                }
                if stack.len() >= DEPTH {
                    return Err(format!("too deep: {event}"));
                }
                stack.push(slice.clone());
                import.slices.push(slice);
            }
            "s" => {
                let slice = stack.last().filter(|open| at <= open.start + open.duration);
                let slice = slice.ok_or_else(|| format!("an arrow from nowhere: {event}"))?;
                if begun.insert(arrow(), slice.clone()).is_some() {
                    return Err(format!("two arrows of one id: {event}"));
                }
            }
            "f" => {
                let slice = stack.last().filter(|open| at <= open.start + open.duration);
                let slice = slice.ok_or_else(|| format!("an arrow to nowhere: {event}"))?;
                let from = begun.get(&arrow()).ok_or_else(|| format!("an arrow that did not begin: {event}"))?;
                import.flows.push((from.clone(), slice.clone()));
                if !ended.insert(arrow()) {
                    return Err(format!("an arrow that ends twice: {event}"));
                }
            }
            _ => {}
        }
    }
    match begun.keys().find(|arrow| !ended.contains(*arrow)) {
        Some(arrow) => Err(format!("an arrow that does not end: {arrow:?}")),
        None => Ok(import),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(more: &[Value]) -> String {
        let mut events = vec![
            json!({ "ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": { "name": "p" } }),
            json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": { "name": "t" } }),
        ];
        events.extend_from_slice(more);
        json!({ "traceEvents": events, "displayTimeUnit": "ms", "metadata": {} }).to_string()
    }

    fn slice(ts: f64, dur: f64) -> Value {
        json!({ "ph": "X", "name": "a", "cat": "c", "ts": ts, "dur": dur, "pid": 1, "tid": 1, "args": {} })
    }

    fn without(mut event: Value, key: &str) -> Value {
        event.as_object_mut().unwrap().remove(key);
        event
    }

    fn with(mut event: Value, key: &str, value: Value) -> Value {
        event[key] = value;
        event
    }

    #[test]
    fn slices_nest_or_follow_each_other_and_are_dropped_where_they_overlap() {
        assert!(import(&file(&[slice(0.0, 10.0), slice(2.0, 3.0), slice(10.0, 5.0)])).is_ok());
        assert!(import(&file(&[slice(2.0, 3.0), slice(0.0, 10.0)])).is_ok());
        let overlap = import(&file(&[slice(0.0, 10.0), slice(2.0, 8.001)])).unwrap_err();
        assert!(overlap.contains("overlaps"), "{overlap}");
    }

    #[test]
    fn each_missing_or_wrong_part_of_an_event_is_found() {
        let good = slice(0.0, 1.0);
        let flow = json!({ "ph": "s", "name": "f", "cat": "c", "id": 1, "ts": 0, "pid": 1, "tid": 1 });
        for bad in [
            without(good.clone(), "dur"),
            without(good.clone(), "ts"),
            with(good.clone(), "ts", json!("0")),
            with(good.clone(), "dur", json!(-1)),
            with(good.clone(), "dur", Value::Null),
            with(good.clone(), "tid", json!(0)),
            with(good.clone(), "tid", json!(2)),
            with(good.clone(), "name", json!("")),
            with(good.clone(), "args", json!({ "unknown": null })),
            with(without(good.clone(), "dur"), "ph", json!("i")),
            with(good.clone(), "ph", json!("Q")),
            flow,
        ] {
            assert!(import(&file(&[good.clone(), bad.clone()])).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_moments_on_one_track_are_too_deep() {
        let moments = |count| vec![slice(5.0, 0.0); count];
        assert!(import(&file(&moments(DEPTH))).is_ok());
        assert!(import(&file(&moments(DEPTH + 1))).unwrap_err().contains("deep"));
    }
}
