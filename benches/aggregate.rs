//! What the percentile and sum aggregates cost, planning and shuffle included: `cargo bench --bench aggregate`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use infer_stats::engine::functions;
use tokio::runtime::Runtime;

const ROWS: usize = 2_000_000;
const PARTITIONS: usize = 2;

/// A table `t` with latencies `x` that have a long tail, in 9 groups `bucket` and in almost as many groups `id` as rows.
fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(PARTITIONS);
    let ctx = SessionContext::new_with_config(config);
    functions::register(&ctx);

    let mut partitions = vec![vec![]; PARTITIONS];
    for (i, start) in (0..ROWS).step_by(8192).enumerate() {
        let rows = start..ROWS.min(start + 8192);
        // a cheap hash of the row number, from 0 to less than 1
        let noise = |row: usize| (row as f64 * 0.618_033_988_749_895).fract();
        let id = Int64Array::from_iter_values(rows.clone().map(|row| row as i64 * 7 % 1_999_993));
        let bucket = Int64Array::from_iter_values(rows.clone().map(|row| (noise(row) * 9.0) as i64));
        let x = Float64Array::from_iter_values(rows.map(|row| -1000.0 * (1.0 - noise(row * 3)).ln()));
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(id) as _),
            ("bucket", Arc::new(bucket) as _),
            ("x", Arc::new(x) as _),
        ]);
        partitions[i % PARTITIONS].push(batch.expect("columns of equal length"));
    }
    let schema = partitions[0][0].schema();
    let table = MemTable::try_new(schema, partitions).expect("batches of one schema");
    ctx.register_table("t", Arc::new(table)).expect("a new name");
    ctx
}

fn aggregates(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("threads");
    let ctx = session();
    let mut group = criterion.benchmark_group("aggregate");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.sample_size(10);
    for (name, sql) in [
        ("floor: stock sum, 9 groups", "SELECT bucket, sum(x) FROM t GROUP BY bucket"),
        ("exact sum, 9 groups", "SELECT bucket, exact_sum(x) FROM t GROUP BY bucket"),
        ("percentiles, 1 group", "SELECT percentiles(x, [0.5, 0.95, 0.99]) FROM t"),
        ("percentiles, 9 groups", "SELECT bucket, percentiles(x, [0.5, 0.95, 0.99]) FROM t GROUP BY bucket"),
        ("floor: stock sum, near-unique groups", "SELECT id, sum(x) FROM t GROUP BY id"),
        ("percentiles, near-unique groups", "SELECT id, percentiles(x, [0.5, 0.95, 0.99]) FROM t GROUP BY id"),
        ("buckets", "SELECT sum(bucket(id, [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072])) FROM t"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let rows = runtime.block_on(async { ctx.sql(sql).await?.collect().await });
                black_box(rows.expect("an answer"))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, aggregates);
criterion_main!(benches);
