//! Lives for tests of the exports: a small one to read, and any number that nobody would log.

use crate::trace::life::{
    Event, Fact, Finding, Gaps, Life, Missing, Neighbour, Record, Skew, Stage, Stall, Standing, Step, Tokens, Value,
};

/// 2026-01-02 03:00:00 UTC.
pub const ORIGIN: i64 = 1_767_322_800_000_000_000;

/// How many lives a test draws.
pub const LIVES: u64 = 24;

/// A request of two roles, three tokens and a stall.
pub fn stalled() -> Life {
    let record = |role: &str, start_ms: f64, end_ms: f64, values: &[(&'static str, Value)]| Record {
        role: Some(role.to_owned()),
        start_ms: Some(start_ms),
        end_ms: Some(end_ms),
        place: format!("{role}.ndjson:17"),
        values: values.to_vec(),
        ..Record::default()
    };
    let stage = |name, record, start_ms, end_ms| Stage {
        name,
        record: Some(record),
        start_ms,
        end_ms,
        duration_ms: end_ms - start_ms,
        ..Stage::default()
    };
    let step = |index, at_ms, step_ms, stall: bool| Step {
        index,
        at_ms: Some(at_ms),
        step_ms: Some(step_ms),
        cache_hit: Some(!stall),
        state: if stall { "cache_miss" } else { "normal" },
        stall,
        ..Step::default()
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let stall = Stall {
        index: 2,
        at_ms: Some(400.0),
        step_ms: 334.0,
        over_ms: 312.0,
        cause: "cache_miss",
        neighbours: 3,
        text: "token 2: +312 ms, KV miss".to_owned(),
    };
    Life {
        id: "req-stall-06".to_owned(),
        asked: "req-stall".to_owned(),
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
        origin_ns: Some(ORIGIN),
        length_ms: 500.0,
        total_ms: Some(500.0),
        outcome: "success",
        records: vec![
            record("gateway", 0.0, 500.0, &[("request_id", text("req-stall-06")), ("failed", Value::Flag(false))]),
            record(
                "engine",
                2.5,
                422.000001,
                &[
                    ("request_id", text("req-stall-06")),
                    ("timestamp", Value::Time(ORIGIN + 2_500_000)),
                    ("model_name", text("m")),
                    ("output_tokens", Value::Count(3)),
                ],
            ),
        ],
        stages: vec![stage("auth", 0, 0.0, 2.0), stage("prefill", 1, 2.5, 44.0), stage("decode", 1, 44.0, 422.000001)],
        events: vec![Event { at_ms: Some(60.0), name: "kv_eviction".to_owned(), ..Event::default() }],
        tokens: Some(Tokens {
            unit: "token",
            steps: vec![step(0, 44.0, 41.5, false), step(1, 66.0, 22.0, false), step(2, 400.0, 334.0, true)],
            itl: None,
            stalls: vec![stall],
        }),
        neighbours: vec![Neighbour {
            id: "req-retry-03".to_owned(),
            relation: "retry",
            start_ms: Some(510.0),
            end_ms: Some(700.0),
            outcome: "success",
            ..Neighbour::default()
        }],
        findings: vec![Finding { code: "stall", severity: "warning", text: "one stall".to_owned() }],
        ..Life::default()
    }
}

/// Draws, the same for the same seed.
pub struct Draws(fastrand::Rng);

impl Draws {
    pub fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0.usize(..count)
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Mostly there.
    fn some<T>(&mut self, value: T) -> Option<T> {
        (self.below(5) > 0).then_some(value)
    }

    fn many<T>(&mut self, most: usize, of: impl Fn(&mut Self, usize) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|at| of(self, at)).collect()
    }

    /// Whole milliseconds often, so that moments meet, else to the nanosecond; seldom what is no time at all.
    fn ms(&mut self) -> f64 {
        match self.below(40) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -1e300,
            3 => 0.0,
            4..20 => (self.below(60) as f64) - 10.0,
            _ => self.0.i64(-100_000_000..2_000_000_000) as f64 / 1e6,
        }
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 14] = [
            "req-1",
            "",
            "\"}],\"x\":[{",
            "</script><script>alert(1)</script>",
            "\u{1b}[31mred\u{1b}[0m",
            "nul\0 del\u{7f} nel\u{85} bom\u{feff}",
            "line\nline\r\n\u{2028}\u{2029}",
            "日本語 🦀 e\u{301} \u{202e}rtl",
            "\\u0000 \\",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "NaN",
            "null",
            "=1+1",
            "00000000000000000000000000000000",
        ];
        self.any(&TEXTS).to_owned()
    }

    fn label(&mut self) -> Option<String> {
        let text = self.text();
        self.some(text)
    }

    fn role(&mut self) -> Option<String> {
        self.any(&[Some("gateway"), Some("engine"), Some("app"), Some("router"), Some(""), None]).map(str::to_owned)
    }

    fn time(&mut self) -> Option<f64> {
        let ms = self.ms();
        self.some(ms)
    }

    fn count(&mut self) -> Option<i64> {
        let count = self.any(&[0, 1, 12, 200, i64::MAX, i64::MIN, (1 << 53) + 1]);
        self.some(count)
    }

    fn flag(&mut self) -> Option<bool> {
        self.any(&[Some(true), Some(false), None])
    }

    fn value(&mut self, kind: char) -> Value {
        match kind {
            't' => Value::Text(self.text()),
            'c' => Value::Count(self.count().unwrap_or(7)),
            'n' => Value::Number(self.any(&[0.1, 0.0, -0.0, 1e-300, 1e300, 123_456.789_012_345])),
            'f' => Value::Flag(self.0.bool()),
            'm' => Value::Money(self.any(&["0.000000000001", "-12.5", "9999999999999999.123456789012"]).to_owned()),
            _ => Value::Time(ORIGIN + self.0.i64(0..1 << 50)),
        }
    }

    fn record(&mut self, _: usize) -> Record {
        const COLUMNS: [(&str, char); 20] = [
            ("request_id", 't'),
            ("trace_id", 't'),
            ("session_id", 't'),
            ("role", 't'),
            ("service", 't'),
            ("host", 't'),
            ("timestamp", '@'),
            ("completed_at", '@'),
            ("model_name", 't'),
            ("stream", 'f'),
            ("temperature", 'n'),
            ("input_tokens", 'c'),
            ("output_tokens", 'c'),
            ("cached_tokens", 'c'),
            ("ttft_ms", 'n'),
            ("error_code", 't'),
            ("http_status", 'c'),
            ("finish_reason", 't'),
            ("failed", 'f'),
            ("cost_logged", 'm'),
        ];
        let mut values = Vec::new();
        for (column, kind) in COLUMNS {
            let value = self.value(kind);
            values.extend(self.flag().map(|_| (column, value)));
        }
        let (start_ms, end_ms) = (self.time(), self.time());
        Record {
            role: self.role(),
            host: self.label(),
            attempt: self.any(&[None, Some(1), Some(2)]),
            start_ms,
            end_ms,
            place: self.text(),
            values,
        }
    }

    fn stage(&mut self, _: usize) -> Stage {
        let standing = Standing { model_name: self.label(), count: 9, p50_ms: 1.0, ..Standing::default() };
        Stage {
            name: self.any(&["auth", "queue", "prefill", "decode", "network", "unexplained"]),
            role: self.role(),
            record: self.any(&[None, Some(0), Some(1), Some(2), Some(99)]),
            start_ms: self.ms(),
            end_ms: self.ms(),
            duration_ms: self.ms(),
            share: self.any(&[None, Some(0.5), Some(f64::NAN)]),
            dominant: self.0.bool(),
            standing: self.some(standing),
        }
    }

    fn event(&mut self, _: usize) -> Event {
        Event {
            at_ms: self.time(),
            name: self.text(),
            text: self.text(),
            role: self.role(),
            host: self.label(),
            gpu_id: self.label(),
            duration_ms: self.time(),
            place: self.text(),
        }
    }

    fn step(&mut self, at: usize) -> Step {
        Step {
            index: at as i64,
            at_ms: self.time(),
            step_ms: self.time(),
            wait_ms: self.time().filter(|wait| wait.is_finite()),
            context_len: self.count(),
            cache_hit: self.flag(),
            recompute: self.flag(),
            batch_size: self.count(),
            state: self.any(&["normal", "cache_miss", "recompute"]),
            stall: self.0.bool(),
        }
    }

    fn stall(&mut self, at: usize) -> Stall {
        let text = self.text();
        Stall { index: at as i64, at_ms: self.time(), step_ms: self.ms(), cause: "wait", text, ..Stall::default() }
    }

    fn tokens(&mut self) -> Tokens {
        let most = self.any(&[3, 3, 30, 30, 30, 600]);
        let mut steps = self.many(most, Self::step);
        if self.0.bool() {
            // a log of whole seconds
            steps.iter_mut().for_each(|step| step.at_ms = Some(7.0));
        }
        let itl = Gaps { count: 3, mean_ms: 22.0, ..Gaps::default() };
        Tokens {
            unit: self.any(&["token", "chunk", ""]),
            steps,
            itl: self.some(itl),
            stalls: self.many(5, Self::stall),
        }
    }

    fn neighbour(&mut self, _: usize) -> Neighbour {
        Neighbour {
            id: self.text(),
            relation: self.any(&["batch", "retry", "retried", "reconnect", "reconnected", "trace", "child", "gpu"]),
            start_ms: self.time(),
            end_ms: self.time(),
            role: self.role(),
            gpu_id: self.label(),
            batch_id: self.label(),
            input_tokens: self.count(),
            output_tokens: self.count(),
            queue_wait_ms: self.time(),
            decode_time_ms: self.time(),
            outcome: self.any(&["success", "failed", "unknown"]),
            place: self.text(),
        }
    }

    fn finding(&mut self, _: usize) -> Finding {
        Finding { code: "stall", severity: self.any(&["error", "warning", "info"]), text: self.text() }
    }

    pub fn life(&mut self) -> Life {
        let origin = ORIGIN + self.0.i64(0..1 << 40);
        let tokens = self.tokens();
        let value = self.value('t');
        Life {
            id: self.text(),
            asked: self.text(),
            trace_id: self.label(),
            origin_ns: self.some(origin),
            length_ms: self.ms(),
            total_ms: self.time(),
            outcome: self.any(&["success", "failed", "unknown"]),
            facts: vec![Fact { name: "tenant", value, unit: "" }],
            records: self.many(5, Self::record),
            stages: self.many(12, Self::stage),
            events: self.many(40, Self::event),
            tokens: self.some(tokens),
            missing: self.many(2, |draws, _| Missing { role: draws.text(), text: draws.text() }),
            skews: self.many(2, |draws, _| Skew { role: draws.text(), ahead_ms: 1500.0, ..Skew::default() }),
            neighbours: self.many(20, Self::neighbour),
            findings: self.many(110, Self::finding),
        }
    }
}
