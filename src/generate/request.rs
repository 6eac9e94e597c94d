//! What a user asks for: everything about a request that is settled before any server sees it.

use super::draw::{Draws, Purpose};
use super::population::{BUSINESS_LINES, BusinessLine, MODELS, Model, VERSIONS, Version};
use super::rhythm::Arrival;

/// A cached beginning is a whole number of blocks of this many tokens.
pub const CACHE_BLOCK: u64 = 16;

/// Prompts that a business line sends again and again.
const KNOWN_PROMPTS: u64 = 40;

/// How often a request that is not served from the cache has one of the known prompts, in 10,000.
const KNOWN_PROMPT_SHARE: u32 = 4_000;

/// A session is what one user does within one stretch of this length.
const SESSION_US: i64 = 1_800_000_000;

/// How a complete answer ends, and how often in 10,000.
pub const FINISH_REASONS: [(&str, u32); 3] = [("stop", 9_540), ("length", 390), ("content_filter", 70)];

const TEMPERATURES: [(u32, u32); 4] = [(0, 25), (200, 25), (700, 40), (1_000, 10)];
const TOP_PS: [(u32, u32); 3] = [(900, 30), (950, 50), (1_000, 20)];
const TOKEN_LIMITS: [u64; 8] = [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192];

/// A request, as its sender means it.
pub struct Request {
    pub draws: Draws,
    pub arrival: Arrival,
    pub id: String,
    pub line: &'static BusinessLine,
    pub tenant: &'static str,
    pub app: &'static str,
    pub user_tag: String,
    pub session_id: String,
    pub prompt_version: &'static str,
    pub prompt_hash: String,
    pub model: &'static Model,
    pub version: &'static Version,
    pub input_tokens: u64,
    /// Tokens of the answer, if it gets complete.
    pub output_tokens: u64,
    pub max_tokens: u64,
    pub finish_reason: &'static str,
    pub stream: bool,
    /// The beginning of the prompt that the prefix cache holds, 0 for none.
    pub cached_tokens: u64,
    pub temperature_thousandths: u32,
    pub top_p_thousandths: u32,
}

impl Request {
    /// The request number `index` of a seed.
    pub fn draw(seed: u64, index: u64, arrival: Arrival) -> Self {
        let draws = Draws::of_request(seed, index);
        let line = draws.pick(Purpose::BusinessLine, &BUSINESS_LINES, |line| line.weight);
        let user = line.user(draws);
        let input_tokens = line.input_tokens.at(draws.unit(Purpose::InputTokens));
        let output_tokens = line.output_tokens.at(draws.unit(Purpose::OutputTokens));
        let cached_tokens = cached_tokens(draws, line, input_tokens);
        let (finish_reason, _) = *draws.pick(Purpose::FinishReason, &FINISH_REASONS, |reason| reason.1);
        Request {
            draws,
            arrival,
            id: request_id(draws),
            line,
            // a user keeps to one tenant, and may use every app of the line
            tenant: line.tenants[(user % line.tenants.len() as u64) as usize],
            app: line.apps[draws.below(Purpose::App, line.apps.len() as u64) as usize],
            user_tag: format!("{}-user-{user:04}", line.apps[0]),
            session_id: session_id(seed, line, user, arrival),
            prompt_version: if arrival.quarter < 2 { "p1" } else { "p2" },
            prompt_hash: prompt_hash(draws, seed, line, cached_tokens > 0),
            model: draws.pick(Purpose::Model, &MODELS, |model| model.weight),
            version: draws.pick(Purpose::Version, &VERSIONS, |version| version.weights[arrival.quarter]),
            input_tokens,
            output_tokens,
            max_tokens: max_tokens(output_tokens, finish_reason),
            finish_reason,
            stream: draws.chance(Purpose::Streamed, line.streamed * 100),
            cached_tokens,
            temperature_thousandths: draws.pick(Purpose::Temperature, &TEMPERATURES, |choice| choice.1).0,
            top_p_thousandths: draws.pick(Purpose::TopP, &TOP_PS, |choice| choice.1).0,
        }
    }
}

/// The id under which a client sends the same request once more, as a request of its own.
pub fn second_id(request: &Request) -> String {
    request_id(request.draws.of_call(u64::MAX - 1))
}

fn request_id(draws: Draws) -> String {
    format!("req-{:016x}", draws.identity())
}

/// Half or more of the prompt, in whole blocks. The lines that use the cache send no prompt too
/// short for one block.
fn cached_tokens(draws: Draws, line: &BusinessLine, input_tokens: u64) -> u64 {
    if !draws.chance(Purpose::Cached, line.cached * 100) {
        return 0;
    }
    let percent = 50 + draws.below(Purpose::CachedPart, 45);
    input_tokens * percent / 100 / CACHE_BLOCK * CACHE_BLOCK
}

/// What is in the cache was asked before; other prompts are often new.
fn prompt_hash(draws: Draws, seed: u64, line: &BusinessLine, cached: bool) -> String {
    let drawn = draws.bits(Purpose::PromptHash);
    let known = cached || draws.chance(Purpose::KnownPrompt, KNOWN_PROMPT_SHARE);
    let hash = if known { Draws::of_request(seed ^ name_bits(line), drawn % KNOWN_PROMPTS).identity() } else { drawn };
    format!("{hash:016x}")
}

fn session_id(seed: u64, line: &BusinessLine, user: u64, arrival: Arrival) -> String {
    let stretch = (arrival.at_us / SESSION_US) as u64;
    let session = Draws::of_request(seed ^ name_bits(line), user).of_call(stretch);
    format!("sess-{:012x}", session.identity() >> 16)
}

/// A number that tells the business lines apart, whatever their order in the table.
fn name_bits(line: &BusinessLine) -> u64 {
    line.name.bytes().fold(0, |bits, byte| bits.wrapping_mul(257).wrapping_add(u64::from(byte)))
}

/// An answer cut off by its limit is as long as the limit; any other is shorter.
fn max_tokens(output_tokens: u64, finish_reason: &str) -> u64 {
    if finish_reason == "length" {
        return output_tokens;
    }
    TOKEN_LIMITS.into_iter().find(|&limit| output_tokens < limit).unwrap_or(2 * TOKEN_LIMITS[TOKEN_LIMITS.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::rhythm::Load;

    fn requests() -> impl Iterator<Item = Request> {
        let arrival = |index: u64| Arrival { at_us: index as i64 * 1_000_000, load: Load::Busy, quarter: 2 };
        (0..20_000).map(move |index| Request::draw(3, index, arrival(index)))
    }

    #[test]
    fn token_lengths_of_a_line_are_those_of_its_table() {
        for line in &BUSINESS_LINES {
            let mut lengths: Vec<u64> =
                requests().filter(|r| r.line.name == line.name).map(|r| r.input_tokens).collect();
            lengths.sort_unstable();
            for share in [0.5, 0.95, 0.99] {
                let below = lengths.partition_point(|&n| n as f64 <= line.input_tokens.truth(share));
                let spread = (share * (1.0 - share) / lengths.len() as f64).sqrt();
                let seen = below as f64 / lengths.len() as f64;
                assert!((seen - share).abs() < 4.0 * spread, "{} P{share}: {seen}", line.name);
            }
        }
    }

    #[test]
    fn a_cached_beginning_is_whole_blocks_within_the_prompt_of_the_lines_that_have_a_cache() {
        let (mut cached, mut all) = (0, 0);
        for request in requests() {
            assert_eq!(request.cached_tokens % CACHE_BLOCK, 0);
            assert!(request.cached_tokens < request.input_tokens);
            if request.line.cached > 0 {
                all += 1;
                cached += u32::from(request.cached_tokens > 0);
            } else {
                assert_eq!(request.cached_tokens, 0);
            }
        }
        assert!((f64::from(cached) / f64::from(all) - 0.35).abs() < 0.02, "{cached} of {all}");
    }

    #[test]
    fn an_answer_is_as_long_as_its_limit_only_where_the_limit_ended_it() {
        for request in requests() {
            assert_eq!(request.output_tokens == request.max_tokens, request.finish_reason == "length");
            assert!(request.output_tokens <= request.max_tokens);
        }
    }

    #[test]
    fn ids_are_unique_and_prompts_are_not() {
        let ids: std::collections::HashSet<String> = requests().flat_map(|r| [second_id(&r), r.id]).collect();
        assert_eq!(ids.len(), 40_000);
        let prompts: std::collections::HashSet<String> = requests().map(|r| r.prompt_hash).collect();
        assert!((8_000..14_000).contains(&prompts.len()), "{}", prompts.len());
    }

    #[test]
    fn a_user_has_one_tenant_and_one_session_in_half_an_hour() {
        let mut tenants = std::collections::HashMap::new();
        let mut sessions = std::collections::HashMap::new();
        for request in requests() {
            assert_eq!(*tenants.entry(request.user_tag.clone()).or_insert(request.tenant), request.tenant);
            let stretch = (request.user_tag, request.arrival.at_us / SESSION_US);
            assert_eq!(sessions.entry(stretch).or_insert(request.session_id.clone()), &request.session_id);
        }
    }

    #[test]
    fn the_newest_version_comes_in_the_middle_of_the_period() {
        let arrival = |quarter| Arrival { at_us: 0, load: Load::Calm, quarter };
        let newest =
            |quarter| (0..1_000).filter(|&i| Request::draw(1, i, arrival(quarter)).version.name == "v2.4.0").count();
        assert_eq!((newest(0), newest(1)), (0, 0));
        assert!(newest(2) > 200 && newest(3) > 500);
    }
}
