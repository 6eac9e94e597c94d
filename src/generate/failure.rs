//! What goes wrong, how often, and how each server names it.

use super::draw::{Draws, Purpose};
use super::rhythm::Load;

/// A request turned away by the gateway; no engine hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    InvalidRequest,
    InvalidKey,
    RateLimited,
}

/// A fault in the engine, by the stage it strikes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not scheduled within [`QUEUE_LIMIT_US`].
    QueueTimeout,
    /// No memory for a long input.
    PrefillOutOfMemory,
    /// The answer breaks off.
    BrokenAnswer,
}

/// The longest wait in the engine's queue, in microseconds.
pub const QUEUE_LIMIT_US: u64 = 30_000_000;

/// Inputs of at least this many tokens may run out of memory.
pub const LONG_INPUT: u64 = 32_768;

impl Refusal {
    /// How often, in 10,000 requests under `load`.
    pub fn shares(load: Load) -> [(Option<Refusal>, u32); 4] {
        let rate_limited = match load {
            Load::Calm => 0,
            Load::Busy => 30,
            Load::Peak => 90,
        };
        let others =
            [(Some(Self::InvalidRequest), 20), (Some(Self::InvalidKey), 10), (Some(Self::RateLimited), rate_limited)];
        with_none(others)
    }

    pub fn draw(draws: Draws, load: Load) -> Option<Self> {
        draws.pick(Purpose::Refusal, &Self::shares(load), |choice| choice.1).0
    }

    pub fn http_status(self) -> u16 {
        match self {
            Refusal::InvalidRequest => 400,
            Refusal::InvalidKey => 401,
            Refusal::RateLimited => 429,
        }
    }

    pub fn gateway_code(self) -> &'static str {
        match self {
            Refusal::InvalidRequest => "invalid_request",
            Refusal::InvalidKey => "invalid_api_key",
            Refusal::RateLimited => "rate_limit_exceeded",
        }
    }
}

impl Fault {
    /// How often, in 10,000 attempts under `load` with an input of `input_tokens`.
    pub fn shares(load: Load, input_tokens: u64) -> [(Option<Fault>, u32); 4] {
        let timeout = match load {
            Load::Calm => 0,
            Load::Busy => 20,
            Load::Peak => 200,
        };
        let out_of_memory = if input_tokens >= LONG_INPUT { 4_000 } else { 0 };
        let others = [
            (Some(Self::QueueTimeout), timeout),
            (Some(Self::PrefillOutOfMemory), out_of_memory),
            (Some(Self::BrokenAnswer), 90),
        ];
        with_none(others)
    }

    pub fn draw(draws: Draws, load: Load, input_tokens: u64) -> Option<Self> {
        draws.pick(Purpose::Failure, &Self::shares(load, input_tokens), |choice| choice.1).0
    }

    /// The number in the engine's log, where 0 stands for no error.
    pub fn engine_code(self) -> u64 {
        match self {
            Fault::PrefillOutOfMemory => 1,
            Fault::QueueTimeout => 2,
            Fault::BrokenAnswer => 3,
        }
    }

    pub fn stage(self) -> &'static str {
        match self {
            Fault::QueueTimeout => "queue",
            Fault::PrefillOutOfMemory => "prefill",
            Fault::BrokenAnswer => "decode",
        }
    }

    pub fn http_status(self) -> u16 {
        match self {
            Fault::QueueTimeout => 504,
            Fault::PrefillOutOfMemory => 500,
            Fault::BrokenAnswer => 502,
        }
    }

    pub fn gateway_code(self) -> &'static str {
        match self {
            Fault::QueueTimeout => "upstream_timeout",
            Fault::PrefillOutOfMemory => "upstream_error",
            Fault::BrokenAnswer => "upstream_closed",
        }
    }
}

fn with_none<T: Copy>([a, b, c]: [(Option<T>, u32); 3]) -> [(Option<T>, u32); 4] {
    [(None, 10_000 - a.1 - b.1 - c.1), a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_as_often_as_their_shares_say() {
        let rows = 100_000;
        let mut timeouts = 0;
        let mut out_of_memory = 0;
        for row in 0..rows {
            match Fault::draw(Draws::of_request(2, row), Load::Peak, LONG_INPUT) {
                Some(Fault::QueueTimeout) => timeouts += 1,
                Some(Fault::PrefillOutOfMemory) => out_of_memory += 1,
                _ => {}
            }
        }
        assert!((1_800..2_200).contains(&timeouts), "{timeouts}");
        assert!((39_300..40_700).contains(&out_of_memory), "{out_of_memory}");
    }

    #[test]
    fn short_inputs_never_run_out_of_memory_and_calm_hours_never_time_out() {
        for row in 0..20_000 {
            let fault = Fault::draw(Draws::of_request(2, row), Load::Calm, LONG_INPUT - 1);
            assert!(matches!(fault, None | Some(Fault::BrokenAnswer)));
        }
    }
}
