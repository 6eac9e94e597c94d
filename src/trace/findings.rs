//! What explains a request, each cause in a sentence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::calls::depth;
use super::discretion::shown;
use super::entry::Entry;
use super::life::{Event, Finding, Life, Neighbour, Stage, Standing};
use crate::record::Column;

/// Stalls, and others of a kind, that are named one by one.
const NAMED: usize = 3;

/// A member of a batch starved by others writes this much less than they.
const OUTGROWN: i64 = 5;

/// Others of a kind that there must be to say what is above almost all of them.
const ENOUGH: u64 = 20;

/// A gap between two roles that is worth a warning where it is the longest of all.
const NETWORK_MS: f64 = 100.0;

/// Part of the total that a stage must take more than usual to explain anything.
const EXPLAINS: f64 = 0.05;

/// Part of the total from which on time that nothing explains is worth a word.
const UNEXPLAINED: f64 = 0.1;

/// All findings of a request, the weightiest first. `pace` is its time of decoding for each token behind the first, and where
/// that stands among others.
pub fn findings(life: &Life, records: &[&Entry], pace: Option<(f64, &Standing)>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(failure(life, records));
    findings.extend(attempts(records));
    findings.extend(reused(records));
    findings.extend(contradiction(life));
    findings.extend(life.missing.iter().map(|missing| {
        let severity = if missing.text.contains("lost between") { "error" } else { "info" };
        finding("missing_record", severity, missing.text.clone())
    }));
    findings.extend(life.neighbours.iter().filter_map(|neighbour| chain(life, neighbour)));
    findings.extend(starved(life, records, pace));
    findings.extend(stalls(life));
    findings.extend(slow_stages(life, pace));
    findings.extend(unexplained(life));
    findings.extend(life.skews.iter().map(|skew| finding("clock_skew", "warning", skew.text.clone())));
    findings.extend(events(life));
    findings
}

fn finding(code: &'static str, severity: &'static str, text: String) -> Finding {
    Finding { code, severity, text }
}

/// That it failed, as each role that failed tells it, the innermost first.
fn failure(life: &Life, records: &[&Entry]) -> Option<Finding> {
    if life.outcome != "failed" {
        return None;
    }
    let mut failed: Vec<&&Entry> = records.iter().filter(|record| record.outcome() == "failed").collect();
    failed.sort_by_key(|record| (std::cmp::Reverse(depth(record)), std::cmp::Reverse(record.start())));
    let mut told = Vec::new();
    for record in failed {
        let by = record.role().map_or(String::new(), |role| format!(" in {role}"));
        let text = format!("failed{by}{}", why(record));
        if !told.contains(&text) {
            told.push(text);
        }
    }
    (!told.is_empty()).then(|| finding("failed", "error", told.join("; ")))
}

/// What a record says of its failure, behind a colon.
fn why(record: &Entry) -> String {
    let text = |column: Column| record.text(column.name());
    let code = text(Column::ErrorCode).or(text(Column::FinishReason)).or(text(Column::Status));
    let mut parts: Vec<String> = code.map(str::to_owned).into_iter().collect();
    parts.extend(text(Column::ErrorStage).map(|stage| format!("in {stage}")));
    parts.extend(record.count(Column::HttpStatus.name()).map(|status| format!("HTTP {status}")));
    parts.extend(record.text("error_text").filter(|text| Some(*text) != code).map(shown));
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// That it took several attempts under one id, as the role tells that saw the most.
fn attempts(records: &[&Entry]) -> Option<Finding> {
    let of = |role: &str| -> Vec<&&Entry> {
        let mut records: Vec<&&Entry> = records.iter().filter(|record| record.role() == Some(role)).collect();
        records.sort_by_key(|record| record.start());
        records.dedup_by_key(|record| (record.start(), record.count(Column::Attempt.name())));
        records
    };
    let all = ["engine", "gateway"].map(of).into_iter().max_by_key(Vec::len).filter(|all| all.len() > 1)?;
    let told = all.iter().enumerate().map(|(number, record)| {
        let took = record.end().zip(record.start()).map(|(end, start)| (end - start) as f64 / 1e6);
        let took = took.map_or(String::new(), |took| format!(" after {}", ms(took)));
        match record.outcome() {
            "failed" => format!("attempt {} failed{took}{}", number + 1, why(record)),
            "success" => format!("attempt {} succeeded{took}", number + 1),
            _ => format!("attempt {} ended{took}", number + 1),
        }
    });
    Some(finding("retry", "warning", told.collect::<Vec<_>>().join("; then ")))
}

/// That the id is that of several requests.
fn reused(records: &[&Entry]) -> Option<Finding> {
    const APART_NS: i64 = 3_600_000_000_000;
    let tenants: BTreeSet<&str> = records.iter().filter_map(|record| record.text(Column::Tenant.name())).collect();
    let starts: Vec<i64> = records.iter().filter_map(|record| record.start()).collect();
    let apart = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let why = match () {
        () if tenants.len() > 1 => format!("of the tenants {}", tenants.into_iter().collect::<Vec<_>>().join(" and ")),
        () if apart > APART_NS => format!("{} apart", ms(apart as f64 / 1e6)),
        () => return None,
    };
    let text = format!("several requests have this id, {why}: what is shown is of all of them");
    Some(finding("reused_id", "error", text))
}

/// That stages take longer than the whole.
fn contradiction(life: &Life) -> Option<Finding> {
    let total = life.total_ms?;
    let worst = life
        .stages
        .iter()
        .filter(|stage| stage.name != "network")
        .max_by(|a, b| a.duration_ms.total_cmp(&b.duration_ms))?;
    let text = || {
        format!(
            "its records contradict each other: {} takes {}, the whole {}",
            worst.name,
            ms(worst.duration_ms),
            ms(total)
        )
    };
    (total < 0.0 || worst.duration_ms > 1.05 * life.length_ms.max(total))
        .then(|| finding("contradiction", "warning", text()))
}

/// What came before or after it in a chain of calls.
fn chain(life: &Life, other: &Neighbour) -> Option<Finding> {
    let id = &other.id;
    let ended = match other.outcome {
        "success" => "which succeeded",
        "failed" => "which failed as well",
        _ => "of unknown outcome",
    };
    let after = |end: Option<f64>, start: Option<f64>| {
        let gap = start.zip(end).map(|(start, end)| start - end);
        gap.filter(|gap| *gap >= 0.0).map_or(String::new(), |gap| format!(", {} later", ms(gap)))
    };
    let end = life.records.iter().filter_map(|record| record.end_ms).reduce(f64::max);
    let start = life.records.iter().filter_map(|record| record.start_ms).reduce(f64::min);
    let written =
        |tokens: Option<i64>| tokens.map_or(String::new(), |tokens| format!(" after {} tokens", grouped(tokens)));
    let own =
        life.facts.iter().find(|fact| fact.name == Column::OutputTokens.name()).and_then(|fact| fact.value.count());
    Some(match other.relation {
        "retry" => finding("retry", "warning", format!("was retried as {id}{}, {ended}", after(end, other.start_ms))),
        "retried" => {
            let failed = if other.outcome == "failed" { ", which failed" } else { "" };
            finding("retry", "info", format!("is a retry of {id}{failed}{}", after(other.end_ms, start)))
        }
        "reconnect" => {
            let text =
                format!("was left by its caller{}, who came back as {id}{}", written(own), after(end, other.start_ms));
            finding("reconnect", "warning", format!("{text}, {ended}"))
        }
        "reconnected" => {
            let text = format!("takes up {id} again, which its caller left{}", written(other.output_tokens));
            finding("reconnect", "info", format!("{text}{}", after(other.end_ms, start)))
        }
        _ => return None,
    })
}

/// That it wrote little, and slowly, in a batch whose others wrote much.
fn starved(life: &Life, records: &[&Entry], pace: Option<(f64, &Standing)>) -> Option<Finding> {
    let is_slow = |(pace, standing): &(f64, &Standing)| *pace > standing.p95_ms && standing.count >= ENOUGH;
    let (tpot_ms, standing) = pace.filter(is_slow)?;
    let own = records.iter().filter_map(|record| record.count(Column::OutputTokens.name())).max()?;
    let members = life.neighbours.iter().filter(|neighbour| neighbour.relation == "batch");
    let long: Vec<i64> =
        members.filter_map(|member| member.output_tokens).filter(|tokens| *tokens >= own * OUTGROWN).collect();
    let longest = long.iter().max()?;
    let batch = records.iter().find_map(|record| record.text(Column::BatchId.name())).unwrap_or("its batch");
    let above = if tpot_ms > standing.p99_ms { "P99" } else { "P95" };
    let limit = if tpot_ms > standing.p99_ms { standing.p99_ms } else { standing.p95_ms };
    let text = format!(
        "starved by long outputs in its batch: {} per token for {own} tokens, above {above} of its bucket ({}), while {} \
         {} of {batch} wrote up to {} tokens each",
        ms(tpot_ms),
        ms(limit),
        long.len(),
        if long.len() == 1 { "member" } else { "members" },
        grouped(*longest),
    );
    Some(finding("starved", "warning", text))
}

fn stalls(life: &Life) -> Vec<Finding> {
    let Some(tokens) = &life.tokens else { return Vec::new() };
    let mut stalls: Vec<_> = tokens.stalls.iter().collect();
    stalls.sort_by(|a, b| b.over_ms.total_cmp(&a.over_ms));
    let mut findings: Vec<Finding> =
        stalls.iter().take(NAMED).map(|stall| finding("stall", "warning", stall.text.clone())).collect();
    if stalls.len() > NAMED {
        let rest: f64 = stalls[NAMED..].iter().map(|stall| stall.over_ms).sum();
        let text = format!("{} more stalls, {} in all", stalls.len() - NAMED, ms(rest));
        findings.push(finding("stall", "warning", text));
    }
    findings
}

/// Stages that took longer than almost all of their kind, and the longest of all.
fn slow_stages(life: &Life, pace: Option<(f64, &Standing)>) -> Vec<Finding> {
    let total = life.total_ms.unwrap_or(life.length_ms);
    let is_usual_pace = pace.is_some_and(|(pace, standing)| pace <= standing.p95_ms);
    let is_slow = |stage: &&Stage| {
        let is_long_answer = stage.name == "decode" && is_usual_pace;
        let is_network = stage.name == "network" && stage.dominant && stage.duration_ms >= NETWORK_MS;
        is_network
            || !is_long_answer
                && stage.standing.as_ref().is_some_and(|standing| {
                    let excess = stage.duration_ms - standing.p50_ms;
                    standing.count >= ENOUGH && stage.duration_ms > standing.p99_ms && excess >= EXPLAINS * total
                })
    };
    let mut slow: Vec<&Stage> = life.stages.iter().filter(|stage| is_slow(stage) || stage.dominant).collect();
    slow.sort_by(|a, b| is_slow(b).cmp(&is_slow(a)).then(b.duration_ms.total_cmp(&a.duration_ms)));
    slow.into_iter()
        .take(NAMED)
        .map(|stage| {
            let (code, severity) = if is_slow(&stage) { ("slow_stage", "warning") } else { ("dominant_stage", "info") };
            finding(code, severity, stage_text(stage, life) + &pace_text(stage, life, pace))
        })
        .collect()
}

/// How fast the tokens of a long decode came.
fn pace_text(stage: &Stage, life: &Life, pace: Option<(f64, &Standing)>) -> String {
    let Some((pace, standing)) = pace.filter(|_| stage.name == "decode") else { return String::new() };
    let written = life.facts.iter().find(|fact| fact.name == Column::OutputTokens.name());
    let Some(tokens) = written.and_then(|fact| fact.value.count()) else { return String::new() };
    let place = match pace {
        _ if standing.count < ENOUGH => format!("median of {} like it {}", standing.count, ms(standing.p50_ms)),
        pace if pace > standing.p99_ms => format!("above P99 of its bucket, {}", ms(standing.p99_ms)),
        pace if pace > standing.p95_ms => format!("above P95 of its bucket, {}", ms(standing.p95_ms)),
        _ => format!("usual for its bucket, P95 {}", ms(standing.p95_ms)),
    };
    format!("; {} tokens at {} each, {place}", grouped(tokens), ms(pace))
}

fn stage_text(stage: &Stage, life: &Life) -> String {
    let whole = life.total_ms.filter(|total| stage.duration_ms <= *total).unwrap_or(life.length_ms);
    let share = stage.share.map_or(String::new(), |share| format!(", {:.0} % of {}", share * 100.0, ms(whole)));
    let standing = stage.standing.as_ref().map_or(String::new(), |standing| {
        let place = match stage.duration_ms {
            _ if standing.count < ENOUGH => format!("median {}", ms(standing.p50_ms)),
            took if took > standing.p99_ms => format!("above P99 of its bucket, {}", ms(standing.p99_ms)),
            took if took > standing.p95_ms => format!("above P95 of its bucket, {}", ms(standing.p95_ms)),
            took if took > standing.p50_ms => format!("above the median of its bucket, {}", ms(standing.p50_ms)),
            _ => format!("not above the median of its bucket, {}", ms(standing.p50_ms)),
        };
        format!(": {place} ({} like it)", grouped(standing.count as i64))
    });
    format!("{} {}{share}{standing}", stage.name.replace('_', " "), ms(stage.duration_ms))
}

fn unexplained(life: &Life) -> Option<Finding> {
    let stages = life.stages.iter().filter(|stage| stage.name == "unexplained" && !stage.dominant);
    let sum: f64 = stages.map(|stage| stage.duration_ms).sum();
    let share = sum / life.total_ms?;
    let text = || format!("{} ({:.0} % of its time) is explained by no record", ms(sum), share * 100.0);
    (share > UNEXPLAINED).then(|| finding("unexplained", "warning", text()))
}

/// What happened meanwhile, and lines that tell of trouble.
fn events(life: &Life) -> Vec<Finding> {
    static TROUBLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let words = r"\b(?:ERROR|FATAL|CRITICAL|PANIC|Traceback)\b|(?i:out of memory|exception|timed out|killed)";
        Regex::new(words).ok()
    });
    // what a logger writes of every request is nothing that happened
    let is_routine = |event: &&&Event| event.name.contains(' ') || event.name == "line";
    let is_trouble = |event: &&&Event| TROUBLE.as_ref().is_some_and(|words| words.is_match(&event.text));
    let all = || life.events.iter();
    let trouble = all().filter(|event| is_routine(&event) && is_trouble(&event));
    let mut found: Vec<Finding> =
        trouble.take(NAMED).map(|event| finding("event", "warning", format!("logged: {}", event.text))).collect();
    let text = |event: &Event| {
        let at = event.at_ms.map_or(String::new(), |at| format!(" at {}", ms(at)));
        let gpu = event.gpu_id.as_ref().map_or(String::new(), |gpu| format!(" on GPU {gpu}"));
        let took = event.duration_ms.map_or(String::new(), |took| format!(", {}", ms(took)));
        format!("{}{gpu}{at}{took}", event.name)
    };
    let happened = all().filter(|event| !is_routine(&event));
    found.extend(happened.take(NAMED).map(|event| finding("event", "info", text(event))));
    found
}

/// Milliseconds as people read them: `2,900 ms`, `22.4 ms`.
pub fn ms(ms: f64) -> String {
    match ms {
        ms if ms.abs() >= 100.0 => format!("{} ms", grouped(ms.round() as i64)),
        ms if ms.abs() >= 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

/// A whole number with its thousands apart.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>();
    format!("{}{}", if number < 0 { "-" } else { "" }, groups.join(","))
}
