//! Synthetic logs whose truth is known: for tests, benchmarks and people without logs at hand.
//!
//! A month of a service that answers for several business lines, as three servers log it. `rows` is
//! the number of requests that users make. What each leaves behind:
//!
//! | file | one line per | speaks of |
//! |--|--|--|
//! | `app` | request of a user | session, prompt, when it was complete, status in words |
//! | `gateway` | call to the gateway, refused ones too | tenant, HTTP status, the whole latency, host |
//! | `engine` | attempt that reached an engine | model, tokens, stages, cache, GPU, error as a number |
//!
//! They share request ids, and each file is in order of its own timestamp. The same rows, seed,
//! start and days give the same bytes on every machine: every draw is a hash of its place
//! (`draw.rs`), and there is no floating-point arithmetic in the text. Memory holds the requests
//! under way, whatever the number of rows.
//!
//! # The design of the numbers
//!
//! Every distribution is a table of quantiles with straight lines between them (`quantiles.rs`), so
//! its percentiles are the truth. Numbers are independent of each other unless said here.
//!
//! **Arrivals** (`rhythm.rs`): each UTC hour has a weight, least at 03:00 (8) and most at 15:00
//! (120); weekends have 45 % of it. An hour is *calm* below weight 50, *busy* below 100, *peak*
//! from there on.
//!
//! **Business lines** (`population.rs`), with the share of requests, of streamed answers and of
//! prefix cache hits in percent, and the tokens of complete prompts and answers:
//!
//! | line | share | streamed | cached | input P50 | P95 | P99 | most | output P50 | P95 | P99 | most |
//! |--|--|--|--|--|--|--|--|--|--|--|--|
//! | finance_ai | 20 | 60 | 0 | 1100 | 6000 | 16000 | 90000 | 110 | 800 | 1800 | 8192 |
//! | support | 30 | 95 | 35 | 700 | 3200 | 7000 | 32000 | 90 | 420 | 900 | 4096 |
//! | search | 15 | 50 | 0 | 250 | 1200 | 2500 | 12000 | 20 | 120 | 300 | 2048 |
//! | code | 20 | 95 | 35 | 1800 | 14000 | 33000 | 110000 | 220 | 1500 | 3400 | 8192 |
//! | 文档问答 | 15 | 90 | 35 | 3600 | 28000 | 60000 | 120000 | 140 | 900 | 2000 | 8192 |
//! | all | 100 | 80.5 | 22.75 | 982 | 11851 | 32408 | 120000 | 100 | 862 | 2268 | 8192 |
//!
//! Cached beginnings are 50 to 94 % of the prompt, in blocks of 16 tokens; their prompts are among
//! 40 that the line repeats, as are 40 % of the others. A user has one tenant, and a session per
//! half hour. 3.9 % of the answers end at their limit, 0.7 % at a content filter.
//!
//! **Models and versions** (`population.rs`): requests choose a model by weight and a version by
//! the quarter of the period:
//!
//! | model | share | prefill | decode per token | GPUs |
//! |--|--|--|--|--|
//! | qwen2.5-72b-instruct | 45 | 18 ms + 120 µs a token | 28 ms | 0-3, h800-a |
//! | llama-7b-trt | 35 | 6 ms + 18 µs a token | 7 ms | 4-5, a100-b |
//! | demo_model | 20 | 10 ms + 40 µs a token | 12 ms | 6-7, l40s-c |
//!
//! | version | decode time | 1st quarter | 2nd | 3rd | 4th |
//! |--|--|--|--|--|--|
//! | v2.3.0 | 100 % | 80 | 40 | 10 | 0 |
//! | v2.3.1 | 96 % | 20 | 60 | 60 | 40 |
//! | v2.4.0 | 108 % | 0 | 0 | 30 | 60 |
//!
//! **Stages** (`attempt.rs`): prefill takes the tokens that are not cached, decode the tokens of
//! the answer after the first, slower by 1/256 for each request in the batch; both times a noise
//! with median 1. The queue depends on the hour:
//!
//! | hour | queue P50 | P95 | P99 |
//! |--|--|--|--|
//! | calm | 2 ms | 15 ms | 60 ms |
//! | busy | 12 ms | 180 ms | 900 ms |
//! | peak | 80 ms | 2500 ms | 9000 ms |
//!
//! The engine's total is exactly queue + prefill + decode + post-processing; TTFT is queue +
//! prefill, logged for streamed answers; the gateway's latency is exactly the sum of
//! authentication, network and the engine's total.
//!
//! **Failures** (`failure.rs`), about 3 % of the requests. A stage that was not reached is null:
//!
//! | what | how often | gateway | engine |
//! |--|--|--|--|
//! | invalid request | 0.2 % | 400 | no line |
//! | invalid key | 0.1 % | 401 | no line |
//! | rate limit | busy 0.3 %, peak 0.9 % | 429 | no line |
//! | queue timeout after 30 s | busy 0.2 %, peak 2 % of attempts | 504 | error 2, queue |
//! | out of memory | 40 % of attempts from 32768 input tokens on | 500 | error 1, prefill |
//! | answer breaks off | 0.9 % of attempts | 502 | error 3, decode |
//!
//! **Second calls** (`history.rs`): after an engine's fault the gateway tries again in 40 % of the
//! cases, some seconds later under the same id (`attempt` 2); else, where a stream broke off, half
//! of the clients reconnect under a new id, which names the old one as `previous_request_id` at the
//! gateway. The app knows the first id only, and the outcome of the last call.

mod attempt;
mod draw;
mod failure;
mod file;
mod history;
mod line;
mod ndjson;
mod parquet;
mod population;
mod quantiles;
mod request;
mod rhythm;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use file::LogFile;
use history::History;
use line::{AppLine, EngineLine, GatewayLine, Line};
use request::Request;

use crate::request::{Generation, Word};
use rhythm::Rhythm;

/// The files that were written.
pub struct Generated {
    pub files: Vec<GeneratedFile>,
}

pub struct GeneratedFile {
    pub path: PathBuf,
    pub rows: u64,
    pub bytes: u64,
}

/// The files that stand in the folder while the logs are written, for the one who must remove them.
pub fn partial_files(plan: &Generation) -> [PathBuf; 3] {
    [EngineLine::LOG, GatewayLine::LOG, AppLine::LOG]
        .map(|log| file::partial_path(&plan.folder, &format!("{log}.{}", plan.format.word())))
}

/// Writes the three logs. They get their names when all are complete; an error leaves what was
/// there before.
pub fn generate(plan: &Generation) -> Result<Generated> {
    ensure!(plan.rows > 0, "cannot generate logs of 0 rows: give at least 1");
    let rhythm = Rhythm::new(plan.start, plan.days)?;
    let folder = &plan.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut engine = LogFile::<EngineLine>::create(folder, plan.format, plan.force)?;
    let mut gateway = LogFile::<GatewayLine>::create(folder, plan.format, plan.force)?;
    let mut app = LogFile::<AppLine>::create(folder, plan.format, plan.force)?;

    for (index, arrival) in (0..).zip(rhythm.arrivals(plan.seed, plan.rows)) {
        engine.write_before(arrival.at_us)?;
        gateway.write_before(arrival.at_us)?;
        app.write_before(arrival.at_us)?;
        let history = History::of(&Request::draw(plan.seed, index, arrival));
        history.engine.into_iter().for_each(|line| engine.push(line));
        history.gateway.into_iter().for_each(|line| gateway.push(line));
        app.push(history.app);
    }

    let complete = [engine.complete()?, gateway.complete()?, app.complete()?];
    let files = complete.into_iter().map(|file| file.publish()).collect::<Result<_>>()?;
    Ok(Generated { files })
}
