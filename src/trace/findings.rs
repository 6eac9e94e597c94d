//! What explains a request, each cause in a sentence.

use super::entry::Entry;
use super::life::{Finding, Life, Neighbour, Stage, Standing};
use crate::record::Column;

/// Stalls, and others of a kind, that are named one by one.
const NAMED: usize = 3;

/// A member of a batch starved by others writes this much less than they.
const OUTGROWN: i64 = 5;

/// Part of the total that a stage must take more than usual to explain anything.
const EXPLAINS: f64 = 0.05;

/// Part of the total from which on time that nothing explains is worth a word.
const UNEXPLAINED: f64 = 0.1;

/// All findings of a request, the weightiest first. `pace` is where its time per output token stands among others.
pub fn findings(life: &Life, records: &[&Entry], pace: Option<(f64, &Standing)>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(failure(life, records));
    findings.extend(life.missing.iter().map(|missing| finding("missing_record", "error", missing.text.clone())));
    findings.extend(life.neighbours.iter().filter_map(|neighbour| chain(life, neighbour)));
    findings.extend(starved(life, records, pace));
    findings.extend(stalls(life));
    findings.extend(slow_stages(life));
    findings.extend(unexplained(life));
    findings.extend(life.skews.iter().map(|skew| finding("clock_skew", "warning", skew.text.clone())));
    findings.extend(events(life));
    findings
}

fn finding(code: &'static str, severity: &'static str, text: String) -> Finding {
    Finding { code, severity, text }
}

/// That it failed, as the innermost record that failed tells it.
fn failure(life: &Life, records: &[&Entry]) -> Option<Finding> {
    if life.outcome != "failed" {
        return None;
    }
    let failed = |record: &&&Entry| record.outcome() == "failed";
    let record = records.iter().filter(failed).max_by_key(|record| super::stages::depth(record))?;
    let text = |column: Column| record.text(column.name());
    let mut parts = Vec::new();
    let code = text(Column::ErrorCode).or(text(Column::FinishReason)).or(text(Column::Status));
    parts.extend(code.map(str::to_owned));
    parts.extend(text(Column::ErrorStage).map(|stage| format!("in {stage}")));
    let statuses = records.iter().filter_map(|record| record.count(Column::HttpStatus.name()));
    parts.extend(statuses.max().map(|status| format!("HTTP {status}")));
    let by = record.role().map_or(String::new(), |role| format!(" in {role}"));
    let why = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    Some(finding("failed", "error", format!("failed{by}{why}")))
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
    let (tpot_ms, standing) = pace.filter(|(tpot_ms, standing)| *tpot_ms > standing.p95_ms)?;
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
fn slow_stages(life: &Life) -> Vec<Finding> {
    let total = life.total_ms.unwrap_or(life.length_ms);
    let is_slow = |stage: &&Stage| {
        stage.standing.as_ref().is_some_and(|standing| {
            let excess = stage.duration_ms - standing.p50_ms;
            stage.duration_ms > standing.p99_ms && excess >= EXPLAINS * total
        })
    };
    let mut slow: Vec<&Stage> = life.stages.iter().filter(|stage| is_slow(stage) || stage.dominant).collect();
    slow.sort_by(|a, b| is_slow(b).cmp(&is_slow(a)).then(b.duration_ms.total_cmp(&a.duration_ms)));
    slow.into_iter()
        .take(NAMED)
        .map(|stage| {
            let severity = if is_slow(&stage) { "warning" } else { "info" };
            finding(if is_slow(&stage) { "slow_stage" } else { "dominant_stage" }, severity, stage_text(stage, life))
        })
        .collect()
}

fn stage_text(stage: &Stage, life: &Life) -> String {
    let share = stage
        .share
        .zip(life.total_ms)
        .map_or(String::new(), |(share, total)| format!(", {:.0} % of {}", share * 100.0, ms(total)));
    let standing = stage.standing.as_ref().map_or(String::new(), |standing| {
        let place = match stage.duration_ms {
            took if took > standing.p99_ms => format!("above P99 of its bucket, {}", ms(standing.p99_ms)),
            took if took > standing.p95_ms => format!("above P95 of its bucket, {}", ms(standing.p95_ms)),
            took if took > standing.p50_ms => format!("above the median of its bucket, {}", ms(standing.p50_ms)),
            _ => format!("below the median of its bucket, {}", ms(standing.p50_ms)),
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

fn events(life: &Life) -> Vec<Finding> {
    let happened = life.events.iter().filter(|event| event.name != "line");
    let text = |event: &super::life::Event| {
        let at = event.at_ms.map_or(String::new(), |at| format!(" at {}", ms(at)));
        let gpu = event.gpu_id.as_ref().map_or(String::new(), |gpu| format!(" on GPU {gpu}"));
        let took = event.duration_ms.map_or(String::new(), |took| format!(", {}", ms(took)));
        format!("{}{gpu}{at}{took}", event.name)
    };
    happened.take(NAMED).map(|event| finding("event", "info", text(event))).collect()
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
