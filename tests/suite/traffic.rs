//! A few hundred made-up requests, the same in every run, and the slow and obvious way to the numbers of a report.

use std::fmt::Write;

/// One request as a log holds it; None is left out of the record.
pub struct Request {
    pub id: String,
    pub model: &'static str,
    pub input: Option<u64>,
    pub output: u64,
    pub queue: f64,
    pub prefill: f64,
    pub decode: f64,
    /// Milliseconds; where it is not logged, it is the sum of the three above.
    pub total: Option<f64>,
    /// None: the record does not say.
    pub failed: Option<bool>,
    pub minute: u64,
}

/// `count` requests whose inputs are spread over all buckets.
pub fn requests(count: u64) -> Vec<Request> {
    let mut state = 20_250_601_u64;
    let mut below = |limit: u64| {
        // Knuth's MMIX generator; its upper bits are the good ones
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let request = |index: u64| {
        let length = 1 << (4 + below(14));
        let thousandths = |value: u64| value as f64 / 1000.0;
        Request {
            id: format!("req-{index:05}"),
            model: ["small", "large", "中文"][below(3) as usize],
            input: (below(20) > 0).then(|| length + below(length)),
            output: 2 + below(900),
            queue: thousandths(below(4_000_000)),
            prefill: thousandths(below(900_000)),
            decode: thousandths(below(9_000_000)),
            total: (below(4) > 0).then(|| thousandths(1 + below(20_000_000))),
            failed: [Some(true), None, Some(false), Some(false), Some(false)][below(5) as usize],
            minute: index,
        }
    };
    (0..count).map(request).collect()
}

impl Request {
    pub fn total_ms(&self) -> f64 {
        self.total.unwrap_or(self.queue + self.prefill + self.decode)
    }

    /// The fields of the record with their JSON values, in the order of [`COLUMNS`].
    fn fields(&self) -> [Option<String>; 10] {
        let status = |failed| if failed { "\"error\"" } else { "\"success\"" };
        [
            Some(format!("\"{}\"", self.id)),
            Some(format!("\"2025-06-01T{:02}:{:02}:00.250Z\"", self.minute / 60 % 24, self.minute % 60)),
            Some(format!("\"{}\"", self.model)),
            self.input.map(|tokens| tokens.to_string()),
            Some(self.output.to_string()),
            Some(self.queue.to_string()),
            Some(self.prefill.to_string()),
            Some(self.decode.to_string()),
            self.total.map(|ms| ms.to_string()),
            self.failed.map(|failed| status(failed).to_owned()),
        ]
    }
}

/// The keys of a record, canonical so that a Parquet copy has the same.
pub const COLUMNS: [&str; 10] = [
    "request_id",
    "timestamp",
    "model_name",
    "input_tokens",
    "output_tokens",
    "queue_wait_ms",
    "prefill_time_ms",
    "decode_time_ms",
    "total_latency_ms",
    "status",
];

fn objects(requests: &[Request], between_fields: &str) -> Vec<String> {
    let object = |request: &Request| {
        let fields = COLUMNS.iter().zip(request.fields());
        let fields = fields.filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(between_fields))
    };
    requests.iter().map(object).collect()
}

pub fn ndjson(requests: &[Request]) -> String {
    objects(requests, ",").join("\n") + "\n"
}

pub fn array(requests: &[Request]) -> String {
    format!("[\n{}\n]\n", objects(requests, ", ").join(",\n"))
}

pub fn pretty(requests: &[Request]) -> String {
    objects(requests, ",\n  ").join("\n") + "\n"
}

pub fn csv(requests: &[Request]) -> String {
    let mut text = COLUMNS.join(",");
    for request in requests {
        let cells = request.fields().map(Option::unwrap_or_default);
        write!(text, "\r\n{}", cells.join(",")).unwrap();
    }
    text
}

/// The percentile of sorted values between the two nearest ranks.
pub fn continuous(sorted: &[f64], fraction: f64) -> f64 {
    let rank = fraction * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    low + (high - low) * rank.fract()
}

/// The value at the nearest rank: the first with at least this fraction of the values at or below it.
pub fn nearest(sorted: &[f64], per_thousand: usize) -> f64 {
    let rank = (per_thousand * sorted.len()).div_ceil(1000).max(1);
    sorted[rank - 1]
}

/// Equal but for the rounding of the last digits.
#[track_caller]
pub fn assert_close(found: &serde_json::Value, expected: f64, what: &str) {
    let value = found.as_f64().unwrap_or_else(|| panic!("{what}: {found} is no number, expected {expected}"));
    assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {value}, expected {expected}");
}
