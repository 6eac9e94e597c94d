//! Random draws that depend on nothing but their place: the seed, the request, the call and what is
//! drawn.
//!
//! There is no generator state to carry along, so a request can be drawn alone, in any order and on
//! any machine, and comes out the same. A new purpose added at the end of the list leaves every
//! other draw as it was.

/// What a draw decides. The number is part of the draw: never reuse or reorder.
#[derive(Clone, Copy)]
#[repr(u64)]
pub enum Purpose {
    Arrival = 1,
    BusinessLine,
    App,
    UserNear,
    UserFar,
    Model,
    Version,
    InputTokens,
    OutputTokens,
    Streamed,
    Cached,
    CachedPart,
    KnownPrompt,
    PromptHash,
    FinishReason,
    Temperature,
    TopP,
    Host,
    Hop,
    Auth,
    Network,
    Refusal,
    QueueWait,
    Gpu,
    BatchSize,
    Failure,
    FailedPart,
    PrefillNoise,
    DecodeNoise,
    Postprocess,
    GpuMemory,
    Retry,
    RetryDelay,
}

/// The draws of one request, or of one call made for it.
#[derive(Clone, Copy)]
pub struct Draws {
    key: u64,
}

impl Draws {
    pub fn of_request(seed: u64, request: u64) -> Self {
        let key = scramble(scramble(seed).wrapping_add(request.wrapping_mul(STEP)));
        Draws { key }
    }

    /// The draws of one of the calls that a request leads to.
    pub fn of_call(self, call: u64) -> Self {
        let key = scramble(self.key ^ scramble(call.wrapping_add(1)));
        Draws { key }
    }

    /// A number of this request that no other request of the same seed has: scrambling is one to
    /// one.
    pub fn identity(self) -> u64 {
        self.key
    }

    pub fn bits(self, purpose: Purpose) -> u64 {
        scramble(self.key.wrapping_add((purpose as u64).wrapping_mul(STEP)))
    }

    /// An even draw from [0, 1), counted in steps of 2^-32.
    pub fn unit(self, purpose: Purpose) -> u32 {
        (self.bits(purpose) >> 32) as u32
    }

    /// An even draw from 0 up to, not including, `bound`; 0 for a bound of 0.
    pub fn below(self, purpose: Purpose, bound: u64) -> u64 {
        ((u128::from(self.bits(purpose)) * u128::from(bound)) >> 64) as u64
    }

    /// True `share` times in 10,000.
    pub fn chance(self, purpose: Purpose, share: u32) -> bool {
        self.below(purpose, 10_000) < u64::from(share)
    }

    /// One of the choices, each as often as its weight says.
    pub fn pick<T>(self, purpose: Purpose, choices: &[T], weight: impl Fn(&T) -> u32) -> &T {
        let total = choices.iter().map(|choice| u64::from(weight(choice))).sum();
        let mut left = self.below(purpose, total);
        let (last, others) = choices.split_last().expect("the tables of choices are not empty");
        for choice in others {
            match left.checked_sub(u64::from(weight(choice))) {
                Some(rest) => left = rest,
                None => return choice,
            }
        }
        last
    }
}

/// The golden ratio as a 64-bit fraction: multiples of it spread evenly over all 64-bit numbers.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finishing function of SplitMix64: one to one, and every bit of the result depends on every
/// bit of `value`.
fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrambled_multiples_of_the_step_are_the_published_sequence_of_splitmix64() {
        let sequence: Vec<u64> = (1..=3u64).map(|n| scramble(n.wrapping_mul(STEP))).collect();
        assert_eq!(sequence, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn a_draw_differs_by_seed_request_call_and_purpose_and_repeats_otherwise() {
        let draws = Draws::of_request(1, 2);
        let bits = draws.bits(Purpose::Gpu);
        assert_eq!(bits, Draws::of_request(1, 2).bits(Purpose::Gpu));
        assert_ne!(bits, Draws::of_request(2, 2).bits(Purpose::Gpu));
        assert_ne!(bits, Draws::of_request(1, 3).bits(Purpose::Gpu));
        assert_ne!(bits, draws.of_call(0).bits(Purpose::Gpu));
        assert_ne!(bits, draws.bits(Purpose::Auth));
    }

    #[test]
    fn choices_come_as_often_as_their_weights_say() {
        let choices = [("a", 70), ("b", 0), ("c", 30)];
        let mut seen = [0u32; 3];
        for request in 0..10_000 {
            let (name, _) = Draws::of_request(7, request).pick(Purpose::Model, &choices, |choice| choice.1);
            seen[usize::from(name.as_bytes()[0] - b'a')] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!((6_800..7_200).contains(&seen[0]), "{seen:?}");
    }

    #[test]
    fn a_chance_of_all_is_always_and_of_nothing_never() {
        for request in 0..1_000 {
            let draws = Draws::of_request(7, request);
            assert!(draws.chance(Purpose::Retry, 10_000));
            assert!(!draws.chance(Purpose::Retry, 0));
        }
    }
}
