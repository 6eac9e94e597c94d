//! How fast lines are decoded: logs of one shape, of eight, and with long texts.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use infer_stats::source::json::{LineDecoder, Record, Sink, Wanted, Writing};
use infer_stats::source::value::{RawValue, Reject};

const BLOCK: usize = 256 << 10;
const WANTED: [&str; 5] = ["timestamp", "input_tokens", "total_latency_ms", "finish_reason", "error_code"];

/// Reads every wanted value, as a query would.
struct Values(usize);

impl Sink for Values {
    fn record(&mut self, record: &Record<'_>) {
        for slot in 0..WANTED.len() {
            self.0 += usize::from(black_box(record.get(slot)) != RawValue::Missing);
        }
    }

    fn reject(&mut self, offset: usize, _: &[u8], why: Reject) {
        panic!("line at {offset} is {why}");
    }
}

/// A block of lines: of as many shapes, and with a prompt of as many bytes.
fn block(shapes: usize, prompt: usize) -> String {
    let mut block = String::new();
    let prompt: String = "and then, she said \"no\"; ".chars().cycle().take(prompt).collect();
    for row in 0.. {
        let shape = row * 7 % shapes;
        let _ = write!(
            block,
            r#"{{"request_id":"req_{row:08x}","timestamp":"2025-06-01T00:{:02}:{:02}.{:03}Z","model_name":"qwen2.5-72b-instruct","#,
            row / 60 % 60,
            row % 60,
            row * 37 % 1000
        );
        for key in 0..shape {
            let _ = write!(block, r#""extra_{shape}_{key}":{row},"#);
        }
        let _ = write!(
            block,
            r#""input_tokens":{},"output_tokens":{},"total_latency_ms":{}.{},"cache_hit":{},"prompt":{prompt:?},"#,
            row * 131 % 9000,
            row * 17 % 400,
            row * 311 % 20000,
            row % 1000,
            row % 3 == 0
        );
        let _ = writeln!(block, r#""gpu_id":{},"error_code":0,"error_stage":null,"finish_reason":"stop"}}"#, row % 8);
        if block.len() >= BLOCK {
            return block;
        }
    }
    block
}

fn decoder(criterion: &mut Criterion) {
    let paths = WANTED.iter().map(|key| vec![key.to_string()]).collect();
    let wanted = Arc::new(Wanted::new(paths));
    let mut group = criterion.benchmark_group("decoder");
    for (name, shapes, prompt) in [("one shape", 1, 40), ("eight shapes", 8, 40), ("long texts", 1, 4000)] {
        let block = block(shapes, prompt);
        let mut decoder = LineDecoder::new(Arc::clone(&wanted), Writing::Plain);
        group.throughput(Throughput::Bytes(block.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut values = Values(0);
                decoder.decode(block.as_bytes(), &mut values);
                values.0
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decoder);
criterion_main!(benches);
