//! Who asks and what answers: business lines with their token lengths, models, versions. These
//! tables are the truth.

use std::ops::Range;

use super::draw::{Draws, Purpose};
use super::quantiles::Quantiles;

/// A part of the company that sends requests of its own kind.
pub struct BusinessLine {
    pub name: &'static str,
    /// Percent of all requests.
    pub weight: u32,
    pub input_tokens: Quantiles,
    /// Tokens of a complete answer.
    pub output_tokens: Quantiles,
    /// Percent of its requests whose answer is streamed.
    pub streamed: u32,
    /// Percent of its requests that find the beginning of their prompt in the prefix cache.
    pub cached: u32,
    pub users: u64,
    pub tenants: &'static [&'static str],
    pub apps: &'static [&'static str],
}

pub static BUSINESS_LINES: [BusinessLine; 5] = [
    BusinessLine {
        name: "finance_ai",
        weight: 20,
        input_tokens: Quantiles([120, 600, 1_100, 2_000, 3_800, 6_000, 16_000, 48_000, 90_000]),
        output_tokens: Quantiles([4, 40, 110, 260, 520, 800, 1_800, 4_000, 8_192]),
        streamed: 60,
        cached: 0,
        users: 400,
        tenants: &["bank-north", "bank-south", "treasury"],
        apps: &["report-writer", "risk-check"],
    },
    BusinessLine {
        name: "support",
        weight: 30,
        input_tokens: Quantiles([48, 380, 700, 1_200, 2_200, 3_200, 7_000, 16_000, 32_000]),
        output_tokens: Quantiles([2, 45, 90, 170, 300, 420, 900, 2_000, 4_096]),
        streamed: 95,
        cached: 35,
        users: 5_000,
        tenants: &["shop-eu", "shop-cn"],
        apps: &["chat-widget", "mail-answers", "call-notes"],
    },
    BusinessLine {
        name: "search",
        weight: 15,
        input_tokens: Quantiles([10, 120, 250, 450, 800, 1_200, 2_500, 6_000, 12_000]),
        output_tokens: Quantiles([1, 8, 20, 40, 80, 120, 300, 800, 2_048]),
        streamed: 50,
        cached: 0,
        users: 9_000,
        tenants: &["portal"],
        apps: &["query-rewrite", "answer-box"],
    },
    BusinessLine {
        name: "code",
        weight: 20,
        input_tokens: Quantiles([64, 700, 1_800, 4_200, 9_000, 14_000, 33_000, 70_000, 110_000]),
        output_tokens: Quantiles([8, 90, 220, 480, 1_000, 1_500, 3_400, 6_500, 8_192]),
        streamed: 95,
        cached: 35,
        users: 700,
        tenants: &["dev-platform", "dev-mobile"],
        apps: &["ide-plugin", "review-bot"],
    },
    BusinessLine {
        name: "文档问答",
        weight: 15,
        input_tokens: Quantiles([400, 1_600, 3_600, 8_000, 18_000, 28_000, 60_000, 98_000, 120_000]),
        output_tokens: Quantiles([5, 60, 140, 300, 600, 900, 2_000, 4_500, 8_192]),
        streamed: 90,
        cached: 35,
        users: 1_200,
        tenants: &["legal", "archive"],
        apps: &["contract-qa", "policy-qa"],
    },
];

/// A model, how fast it is, and where it runs.
pub struct Model {
    pub name: &'static str,
    /// Percent of all requests.
    pub weight: u32,
    pub prefill_base_us: u64,
    pub prefill_ns_per_token: u64,
    pub decode_us_per_token: u64,
    pub gpus: Range<u64>,
    pub gpu_pool: &'static str,
    pub gpu_memory_mb: u64,
    pub weights_mb: u64,
    pub cache_kb_per_token: u64,
}

#[rustfmt::skip]
pub static MODELS: [Model; 3] = [
    Model {
        name: "qwen2.5-72b-instruct", weight: 45,
        prefill_base_us: 18_000, prefill_ns_per_token: 120_000, decode_us_per_token: 28_000,
        gpus: 0..4, gpu_pool: "h800-a", gpu_memory_mb: 81_559, weights_mb: 38_000, cache_kb_per_token: 80,
    },
    Model {
        name: "llama-7b-trt", weight: 35,
        prefill_base_us: 6_000, prefill_ns_per_token: 18_000, decode_us_per_token: 7_000,
        gpus: 4..6, gpu_pool: "a100-b", gpu_memory_mb: 81_920, weights_mb: 14_000, cache_kb_per_token: 128,
    },
    Model {
        name: "demo_model", weight: 20,
        prefill_base_us: 10_000, prefill_ns_per_token: 40_000, decode_us_per_token: 12_000,
        gpus: 6..8, gpu_pool: "l40s-c", gpu_memory_mb: 46_068, weights_mb: 8_000, cache_kb_per_token: 64,
    },
];

/// A release of the serving software.
pub struct Version {
    pub name: &'static str,
    /// Decode time in percent of the first version's.
    pub decode_percent: u64,
    /// Percent of the requests in each quarter of the period.
    pub weights: [u32; 4],
}

#[rustfmt::skip]
pub static VERSIONS: [Version; 3] = [
    Version { name: "v2.3.0", decode_percent: 100, weights: [80, 40, 10, 0] },
    Version { name: "v2.3.1", decode_percent: 96, weights: [20, 60, 60, 40] },
    Version { name: "v2.4.0", decode_percent: 108, weights: [0, 0, 30, 60] },
];

impl BusinessLine {
    /// A user by number. The product of two even draws: a few users ask often, most ask seldom.
    pub fn user(&self, draws: Draws) -> u64 {
        let near = draws.below(Purpose::UserNear, self.users);
        (near * u64::from(draws.unit(Purpose::UserFar))) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_percents_and_add_up() {
        assert_eq!(BUSINESS_LINES.iter().map(|line| line.weight).sum::<u32>(), 100);
        assert_eq!(MODELS.iter().map(|model| model.weight).sum::<u32>(), 100);
        for quarter in 0..4 {
            assert_eq!(VERSIONS.iter().map(|version| version.weights[quarter]).sum::<u32>(), 100);
        }
    }

    #[test]
    fn about_four_in_five_requests_are_streamed() {
        let streamed: u32 = BUSINESS_LINES.iter().map(|line| line.weight * line.streamed).sum();
        assert_eq!(streamed, 8_050);
    }

    #[test]
    fn the_longest_sequence_fits_every_gpu() {
        for model in &MODELS {
            assert!(
                model.weights_mb + 128_312 * model.cache_kb_per_token / 1024 < model.gpu_memory_mb - 1_024,
                "{}",
                model.name
            );
        }
    }
}
