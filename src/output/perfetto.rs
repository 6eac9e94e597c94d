//! Lives as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.
//!
//! A request is a process; its tracks are itself, what was found, its roles, tokens, events and neighbours. Times count
//! from one zero for all requests of a file, which the metadata tell: the importer takes `ts` and `dur` for doubles of
//! microseconds and rounds them to nanoseconds (`CoerceToTs` in Perfetto's `json_trace_tokenizer.cc`), so that a time
//! since 1970 would be off by up to 125 ns, while a time since the zero is exact for 26 days.

mod lanes;
#[cfg(test)]
mod rules;
mod slice;

use std::io::{self, Write};

use serde_json::{Value, json};

use self::lanes::lanes;
use self::slice::Slice;
use crate::trace::life::Life;

/// Slices of one moment that stand below each other; the importer drops what is deeper than 512.
const DEEPEST: usize = 100;

/// Who wrote a file, as both exports name it.
const TOOL: &str = env!("CARGO_PKG_NAME");

/// Writes all lives as one file, an event a line.
pub fn write<W: Write>(lives: &[Life], out: &mut W) -> io::Result<()> {
    let zero = lives.iter().filter_map(|life| Some(life.origin_ns?.saturating_add(before_origin(life)))).min();
    let mut file = File { out, is_empty: true, threads: 0, flows: 0 };
    file.out.write_all(b"{\"traceEvents\":[")?;
    for life in lives {
        // where no record has a time, the life stands at the zero
        let start = zero.zip(life.origin_ns).map(|(zero, origin)| origin.saturating_sub(zero));
        file.life(life, start.unwrap_or(-before_origin(life)))?;
    }
    let zero = zero.map(|zero| json!({ "time": time(zero), "unix_ns": zero.to_string() }));
    let ids: Vec<_> = lives.iter().map(|life| &life.id).collect();
    let metadata = json!({ "tool": TOOL, "version": env!("CARGO_PKG_VERSION"), "zero": zero, "requests": ids });
    file.out.write_all(b"\n],\"displayTimeUnit\":\"ms\",\"metadata\":")?;
    file.json(&metadata)?;
    file.out.write_all(b"}\n")
}

/// How far the first moment of a life lies before its origin: events and neighbours may, and no time may be negative.
fn before_origin(life: &Life) -> i64 {
    let records = life.records.iter().flat_map(|record| [record.start_ms, record.end_ms]);
    let stages = life.stages.iter().flat_map(|stage| [Some(stage.start_ms), Some(stage.end_ms)]);
    let events = life.events.iter().map(|event| event.at_ms);
    let neighbours = life.neighbours.iter().flat_map(|neighbour| [neighbour.start_ms, neighbour.end_ms]);
    let tokens = life.tokens.iter().flat_map(|tokens| &tokens.steps).map(|step| begin(step.at_ms, step.step_ms));
    let stalls = life.tokens.iter().flat_map(|tokens| &tokens.stalls).map(|stall| stall.at_ms);
    let moments = records.chain(stages).chain(events).chain(neighbours).chain(tokens).chain(stalls);
    moments.filter_map(nanoseconds).fold(0, i64::min)
}

/// When what ended then and took so long began.
fn begin(end_ms: Option<f64>, duration_ms: Option<f64>) -> Option<f64> {
    end_ms.map(|end| end - duration_ms.filter(|duration| *duration > 0.0).unwrap_or(0.0))
}

/// Nanoseconds from the origin; None where that is no time. Those of a century from then are as good as none.
fn nanoseconds(ms: Option<f64>) -> Option<i64> {
    const CENTURY: f64 = 3.2e18;
    ms.map(|ms| (ms * 1e6).round()).filter(|ns| ns.abs() < CENTURY).map(|ns| ns as i64)
}

/// Microseconds, as the format has times.
fn microseconds(ns: i64) -> Value {
    match ns % 1000 {
        0 => json!(ns / 1000),
        _ => json!(ns as f64 / 1000.0),
    }
}

fn time(ns: i64) -> Option<String> {
    Some(format!("{:.9}", jiff::Timestamp::from_nanosecond(i128::from(ns)).ok()?))
}

/// Slices that belong together, in as many tracks as they need.
struct Track {
    name: String,
    slices: Vec<Slice>,
    /// How many of one moment may stand below each other in one of the tracks.
    deepest: usize,
}

impl Track {
    fn new(name: &str, slices: Vec<Slice>, deepest: usize) -> Self {
        Self { name: name.to_owned(), slices, deepest }
    }
}

/// A file while it is written.
struct File<'w, W> {
    out: &'w mut W,
    is_empty: bool,
    /// Threads so far: the importer tells them by their number alone, whatever the process.
    threads: usize,
    flows: usize,
}

impl<W: Write> File<'_, W> {
    /// All events of a life that starts so many nanoseconds from the zero.
    fn life(&mut self, life: &Life, start: i64) -> io::Result<()> {
        // of one number space, so that no thread but the first is taken for the main one of a process
        let pid = self.threads + 1;
        self.metadata("process_name", pid, pid, json!({ "name": format!("{} ({})", life.id, life.outcome) }))?;
        self.metadata("process_sort_index", pid, pid, json!({ "sort_index": pid }))?;
        let mut tracks =
            vec![Track::new("request", slice::request(life), 1), Track::new("findings", slice::findings(life), 1)];
        for role in roles(life) {
            let name = role.filter(|role| !role.is_empty()).unwrap_or("records");
            tracks.push(Track::new(name, slice::role(life, role), 1));
        }
        tracks.push(Track::new("tokens", slice::tokens(life), DEEPEST));
        tracks.push(Track::new("events", slice::events(life), DEEPEST));
        tracks.push(Track::new("neighbours", slice::neighbours(life), 1));

        let mut placed = Vec::new();
        for track in tracks.into_iter().filter(|track| !track.slices.is_empty()) {
            for (at, lane) in lanes(track.slices, track.deepest).into_iter().enumerate() {
                self.threads += 1;
                let name = if at == 0 { track.name.clone() } else { format!("{} {}", track.name, at + 1) };
                self.metadata("thread_name", pid, self.threads, json!({ "name": name }))?;
                self.metadata("thread_sort_index", pid, self.threads, json!({ "sort_index": self.threads }))?;
                for slice in &lane {
                    self.slice(slice, pid, self.threads, start)?;
                }
                placed.extend(lane.into_iter().map(|slice| (self.threads, slice)));
            }
        }
        self.flows(life, &placed, pid, start)
    }

    fn metadata(&mut self, name: &str, pid: usize, tid: usize, args: Value) -> io::Result<()> {
        self.event(&json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args }))
    }

    fn slice(&mut self, slice: &Slice, pid: usize, tid: usize, start: i64) -> io::Result<()> {
        let ts = microseconds(start.saturating_add(slice.start));
        let mut event = json!({
            "ph": "X", "name": slice.name, "cat": slice.category, "ts": ts, "dur": microseconds(slice.duration()),
            "pid": pid, "tid": tid, "args": slice.args,
        });
        if let Value::Object(event) = &mut event {
            if slice.is_instant {
                event.remove("dur");
                event.extend([("ph".to_owned(), json!("i")), ("s".to_owned(), json!("t"))]);
            }
            event.extend(slice.colour.map(|colour| ("cname".to_owned(), json!(colour))));
        }
        self.event(&event)?;
        if let Some((name, value)) = &slice.counter {
            let args = json!({ *name: value });
            self.event(&json!({ "ph": "C", "name": "token", "ts": ts, "pid": pid, "tid": tid, "args": args }))?;
        }
        slice.inside.iter().try_for_each(|inside| self.slice(inside, pid, tid, start))
    }

    /// Arrows from each record to those of the next role, and from a request to what it was retried or resumed as.
    fn flows(&mut self, life: &Life, placed: &[(usize, Slice)], pid: usize, start: i64) -> io::Result<()> {
        let find = |anchor| placed.iter().find(|(_, slice)| slice.anchor == Some(anchor));
        let roles = super::roles::parents(&life.records).into_iter().enumerate();
        let calls =
            roles.filter_map(|(record, parent)| Some(("call", Anchor::Record(parent?), Anchor::Record(record))));
        let chain = life.neighbours.iter().enumerate().filter_map(|(at, neighbour)| {
            let neighbour_at = Anchor::Neighbour(at);
            match neighbour.relation {
                "retry" | "reconnect" => Some((neighbour.relation, Anchor::Request, neighbour_at)),
                "retried" => Some(("retry", neighbour_at, Anchor::Request)),
                "reconnected" => Some(("reconnect", neighbour_at, Anchor::Request)),
                _ => None,
            }
        });
        for (name, from, to) in calls.chain(chain) {
            let (Some((from_tid, from)), Some((to_tid, to))) = (find(from), find(to)) else { continue };
            let Some((leaves, arrives)) = from.arrow_to(to) else { continue };
            self.flows += 1;
            let arrow = |ph: &str, tid: usize, at: i64| {
                let ts = microseconds(start.saturating_add(at));
                let mut event = json!({
                    "ph": ph, "name": name, "cat": "flow", "id": self.flows, "ts": ts, "pid": pid, "tid": tid,
                });
                // to the slice that is open then, not to the next that begins
                if let (Value::Object(event), "f") = (&mut event, ph) {
                    event.insert("bp".to_owned(), json!("e"));
                }
                event
            };
            let (leaves, arrives) = (arrow("s", *from_tid, leaves), arrow("f", *to_tid, arrives));
            self.event(&leaves)?;
            self.event(&arrives)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.is_empty { b"\n" } else { b",\n" })?;
        self.is_empty = false;
        self.json(event)
    }

    /// With DEL escaped, which JSON need not: raw in the metadata the importer refuses the file for it.
    fn json(&mut self, value: &Value) -> io::Result<()> {
        self.out.write_all(value.to_string().replace('\u{7f}', "\\u007f").as_bytes())
    }
}

/// What an arrow may come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Request,
    Record(usize),
    Neighbour(usize),
}

/// The roles of records and stages, in the order in which a request passes them, None last.
fn roles(life: &Life) -> Vec<Option<&str>> {
    let records = life.records.iter().map(|record| record.role.as_deref());
    let stages = life.stages.iter().filter(|stage| stage.role.is_some()).map(|stage| stage.role.as_deref());
    let mut roles = Vec::new();
    for role in records.chain(stages) {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    let place = |role: Option<&str>| super::roles::rank(role).map_or((1, 0), |rank| (0, rank));
    roles.sort_by_key(|role| (role.is_none(), place(*role)));
    roles
}

#[cfg(test)]
mod tests {
    use super::rules::{Import, import};
    use super::*;
    use crate::output::any_life::{Draws, LIVES, ORIGIN, stalled};

    fn text(lives: &[Life]) -> String {
        let mut out = Vec::new();
        write(lives, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn imported(lives: &[Life]) -> Import {
        import(&text(lives)).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn whatever_the_lives_the_file_keeps_the_rules_and_nothing_is_dropped() {
        for seed in 0..LIVES {
            let mut draws = Draws::of(seed);
            let lives: Vec<Life> = (0..seed % 4).map(|_| draws.life()).collect();
            imported(&lives);
        }
    }

    #[test]
    fn all_that_has_a_time_is_drawn_once() {
        for seed in 0..LIVES {
            let life = Draws::of(seed).life();
            let dated = |times: &[Option<f64>]| times.iter().any(|time| nanoseconds(*time).is_some());
            let tokens = life.tokens.clone().unwrap_or_default();
            let count = 1
                + life.findings.len()
                + life.records.iter().filter(|record| dated(&[record.start_ms, record.end_ms])).count()
                + life.stages.iter().filter(|stage| dated(&[Some(stage.start_ms), Some(stage.end_ms)])).count()
                + life.events.iter().filter(|event| dated(&[event.at_ms])).count()
                + tokens.steps.iter().filter(|step| dated(&[step.at_ms])).count()
                + tokens.stalls.iter().filter(|stall| dated(&[stall.at_ms])).count()
                + life.neighbours.iter().filter(|other| dated(&[other.start_ms, other.end_ms])).count();
            assert_eq!(imported(&[life]).slices.len(), count, "seed {seed}");
        }
    }

    #[test]
    fn the_importer_has_every_record_to_the_nanosecond() {
        let mut life = stalled();
        life.records[1].start_ms = Some(86_400_000.000_001);
        life.records[1].end_ms = Some(86_400_000.123_457);
        life.stages.clear();
        let slices = imported(&[life]).slices;
        let engine = slices.iter().find(|slice| slice.name == "engine").unwrap();
        assert_eq!((engine.start, engine.duration), (86_400_000_000_001, 123_456));
    }

    #[test]
    fn requests_of_one_file_share_a_zero_which_is_the_first_moment_of_all() {
        let (first, mut second) = (stalled(), stalled());
        second.origin_ns = Some(ORIGIN + 1_000_000_000);
        second.events[0].at_ms = Some(-3000.0);
        let text = text(&[first, second]);
        assert!(text.contains(r#""zero":{"time":"2026-01-02T02:59:58.000000000Z","unix_ns":"1767322798000000000"}"#));
        let slices = import(&text).unwrap().slices;
        let starts: Vec<_> = slices.iter().filter(|slice| slice.name == "gateway").map(|slice| slice.start).collect();
        assert_eq!(starts, [2_000_000_000, 3_000_000_000]);
    }

    #[test]
    fn arrows_lead_from_what_a_role_did_last_to_the_record_it_called_and_on_to_the_retry() {
        let flows = imported(&[stalled()]).flows;
        let names: Vec<_> = flows.iter().map(|(from, to)| (from.name.as_str(), to.name.as_str())).collect();
        assert_eq!(names, [("auth", "prefill"), ("req-stall-06", "req-retry-03")]);
    }

    #[test]
    fn a_request_reads_as_tracks_of_events() {
        let expected = r#"{"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"req-stall-06 (success)"}},
"#;
        let text = text(&[stalled()]);
        assert!(text.starts_with(expected), "{text}");
        let token = r#"{"ph":"X","name":"token 2 (stall)","cat":"token","ts":66000,"dur":334000,"pid":1,"tid":5,"args":{"index":2,"state":"cache_miss","step_ms":334.0,"cache_hit":false,"stall":{"text":"token 2: +312 ms, KV miss","cause":"cache_miss","over_ms":312.0,"step_ms":334.0,"neighbours":3}},"cname":"terrible"},
{"ph":"C","name":"token","ts":66000,"pid":1,"tid":5,"args":{"step_ms":334.0}},"#;
        assert!(text.contains(token), "{text}");
        let threads = imported(&[stalled()]).threads;
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort();
        let names: Vec<_> = threads.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["request", "findings", "gateway", "engine", "tokens", "events", "neighbours"]);
    }
}
