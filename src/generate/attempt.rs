//! One try of an engine at a request: its stages in whole microseconds, and what it took.
//!
//! The stages add up to the total exactly, in the written digits too, since a microsecond is the
//! third decimal of a millisecond.

use super::draw::{Draws, Purpose};
use super::failure::{Fault, QUEUE_LIMIT_US};
use super::quantiles::Quantiles;
use super::request::Request;
use super::rhythm::Load;

/// Microseconds in the queue: see [`Load`].
pub const QUEUE_WAIT_US: [Quantiles; 3] = [
    Quantiles([150, 800, 2_000, 4_500, 9_000, 15_000, 60_000, 180_000, 500_000]),
    Quantiles([300, 4_000, 12_000, 35_000, 90_000, 180_000, 900_000, 2_500_000, 5_000_000]),
    Quantiles([500, 20_000, 80_000, 400_000, 1_400_000, 2_500_000, 9_000_000, 18_000_000, 29_000_000]),
];

/// Requests that share the GPU's steps: see [`Load`].
const BATCH_SIZE: [Quantiles; 3] = [
    Quantiles([1, 1, 3, 5, 7, 8, 10, 12, 12]),
    Quantiles([2, 8, 14, 20, 26, 30, 34, 38, 40]),
    Quantiles([8, 28, 40, 48, 56, 60, 64, 64, 64]),
];

/// How far a stage strays from its rule, in thousandths: see [`Attempt`].
const NOISE: Quantiles = Quantiles([850, 960, 1_000, 1_050, 1_120, 1_200, 1_400, 1_800, 2_500]);

const POSTPROCESS_US: Quantiles = Quantiles([50, 180, 300, 500, 800, 1_100, 2_200, 5_000, 9_000]);

/// What an engine did for a request. A stage that was not reached has no time.
///
/// prefill = (base + per token * tokens not in the cache) * noise;
/// decode = (tokens of the answer - 1) * per token * version * (1 + batch / 256) * noise.
pub struct Attempt {
    pub queue_us: u64,
    pub prefill_us: Option<u64>,
    pub decode_us: Option<u64>,
    pub postprocess_us: Option<u64>,
    /// From arrival to the first token, for streamed answers.
    pub ttft_us: Option<u64>,
    /// Tokens written, 0 where the answer was not begun.
    pub output_tokens: u64,
    pub fault: Option<Fault>,
    /// Where and how it ran; none if it never left the queue.
    pub placement: Option<Placement>,
}

/// The GPU that an attempt ran on.
pub struct Placement {
    pub gpu_id: u64,
    pub batch_size: u64,
    pub memory_peak_mb: u64,
}

impl Attempt {
    /// The attempt that the draws of one call lead to.
    pub fn run(request: &Request, draws: Draws) -> Self {
        let load = request.arrival.load;
        let fault = Fault::draw(draws, load, request.input_tokens);
        if fault == Some(Fault::QueueTimeout) {
            return Attempt::timed_out(QUEUE_LIMIT_US + draws.below(Purpose::QueueWait, 5_000));
        }
        let queue_us = by_load(&QUEUE_WAIT_US, load).at(draws.unit(Purpose::QueueWait));
        let batch_size = by_load(&BATCH_SIZE, load).at(draws.unit(Purpose::BatchSize));
        let whole_prefill_us = prefill_us(request, draws);
        let output_tokens = match fault {
            None => request.output_tokens,
            Some(Fault::BrokenAnswer) => 1 + draws.below(Purpose::FailedPart, request.output_tokens),
            Some(Fault::QueueTimeout | Fault::PrefillOutOfMemory) => 0,
        };
        let begun = output_tokens > 0;
        let prefill_us = if begun { whole_prefill_us } else { part(whole_prefill_us, draws) };
        Attempt {
            queue_us,
            prefill_us: Some(prefill_us),
            decode_us: begun.then(|| decode_us(request, output_tokens, batch_size, draws)),
            postprocess_us: fault.is_none().then(|| POSTPROCESS_US.at(draws.unit(Purpose::Postprocess))),
            ttft_us: (begun && request.stream).then_some(queue_us + prefill_us),
            output_tokens,
            fault,
            placement: Some(Placement {
                gpu_id: request.model.gpus.start
                    + draws.below(Purpose::Gpu, request.model.gpus.end - request.model.gpus.start),
                batch_size,
                memory_peak_mb: memory_peak_mb(request, output_tokens, fault, draws),
            }),
        }
    }

    fn timed_out(queue_us: u64) -> Self {
        Attempt {
            queue_us,
            prefill_us: None,
            decode_us: None,
            postprocess_us: None,
            ttft_us: None,
            output_tokens: 0,
            fault: Some(Fault::QueueTimeout),
            placement: None,
        }
    }

    /// The sum of the stages that were reached.
    pub fn total_us(&self) -> u64 {
        let later = [self.prefill_us, self.decode_us, self.postprocess_us];
        self.queue_us + later.into_iter().flatten().sum::<u64>()
    }
}

fn by_load(tables: &[Quantiles; 3], load: Load) -> &Quantiles {
    match load {
        Load::Calm => &tables[0],
        Load::Busy => &tables[1],
        Load::Peak => &tables[2],
    }
}

fn prefill_us(request: &Request, draws: Draws) -> u64 {
    let uncached = request.input_tokens - request.cached_tokens;
    let rule_ns = request.model.prefill_base_us * 1_000 + request.model.prefill_ns_per_token * uncached;
    rule_ns * NOISE.at(draws.unit(Purpose::PrefillNoise)) / 1_000_000
}

fn decode_us(request: &Request, output_tokens: u64, batch_size: u64, draws: Draws) -> u64 {
    let per_token_us = request.model.decode_us_per_token * request.version.decode_percent * (256 + batch_size) / 25_600;
    (output_tokens - 1) * per_token_us * NOISE.at(draws.unit(Purpose::DecodeNoise)) / 1_000
}

/// A stage that broke off: 20 to 90 percent of it.
fn part(whole_us: u64, draws: Draws) -> u64 {
    whole_us * (20 + draws.below(Purpose::FailedPart, 71)) / 100
}

/// The weights, the cache of the whole sequence and a little more; all there is where memory ran
/// out.
fn memory_peak_mb(request: &Request, output_tokens: u64, fault: Option<Fault>, draws: Draws) -> u64 {
    if fault == Some(Fault::PrefillOutOfMemory) {
        return request.model.gpu_memory_mb;
    }
    let cache_mb = (request.input_tokens + output_tokens) * request.model.cache_kb_per_token / 1_024;
    request.model.weights_mb + cache_mb + draws.below(Purpose::GpuMemory, 512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::rhythm::Arrival;

    fn attempts(load: Load) -> impl Iterator<Item = (Request, Attempt)> {
        (0..20_000).map(move |index| {
            let request = Request::draw(9, index, Arrival { at_us: 0, load, quarter: 0 });
            let attempt = Attempt::run(&request, request.draws.of_call(0));
            (request, attempt)
        })
    }

    #[test]
    fn a_stage_that_was_not_reached_has_no_time() {
        for (request, attempt) in attempts(Load::Peak) {
            let reached = [attempt.prefill_us, attempt.decode_us, attempt.postprocess_us].map(|stage| stage.is_some());
            let expected = match attempt.fault {
                None => [true, true, true],
                Some(Fault::BrokenAnswer) => [true, true, false],
                Some(Fault::PrefillOutOfMemory) => [true, false, false],
                Some(Fault::QueueTimeout) => [false, false, false],
            };
            assert_eq!(reached, expected);
            assert_eq!(attempt.ttft_us.is_some(), request.stream && reached[1]);
            assert_eq!(attempt.output_tokens > 0, reached[1]);
            assert_eq!(attempt.placement.is_some(), reached[0]);
        }
    }

    #[test]
    fn waits_of_an_hour_are_those_of_its_table() {
        for (table, load) in QUEUE_WAIT_US.iter().zip([Load::Calm, Load::Busy, Load::Peak]) {
            let waits: Vec<u64> =
                attempts(load).filter(|(_, a)| a.placement.is_some()).map(|(_, a)| a.queue_us).collect();
            for share in [0.5, 0.95, 0.99] {
                let seen =
                    waits.iter().filter(|&&us| us as f64 <= table.truth(share)).count() as f64 / waits.len() as f64;
                let spread = (share * (1.0 - share) / waits.len() as f64).sqrt();
                assert!((seen - share).abs() < 4.0 * spread, "{load:?} P{share}: {seen}");
            }
        }
    }

    #[test]
    fn the_median_stage_follows_its_rule() {
        let mut strays: Vec<u64> = attempts(Load::Calm)
            .filter_map(|(request, attempt)| {
                let uncached = request.input_tokens - request.cached_tokens;
                let rule = request.model.prefill_base_us + request.model.prefill_ns_per_token * uncached / 1_000;
                attempt.fault.is_none().then_some(attempt.prefill_us? * 1_000 / rule)
            })
            .collect();
        strays.sort_unstable();
        assert!((995..=1_005).contains(&strays[strays.len() / 2]));
    }

    #[test]
    fn memory_grows_with_the_sequence_and_stays_on_the_gpu() {
        for (request, attempt) in attempts(Load::Busy) {
            let Some(placement) = attempt.placement else {
                continue;
            };
            assert!(request.model.gpus.contains(&placement.gpu_id));
            assert!(placement.memory_peak_mb <= request.model.gpu_memory_mb);
            assert!(placement.memory_peak_mb >= request.model.weights_mb);
        }
    }
}
