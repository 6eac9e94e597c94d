//! The functions as a query sees them: planned, split over threads, spilled.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};

use super::register;

fn session(threads: usize) -> SessionContext {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
    register(&ctx);
    ctx
}

/// A table `t` of these columns, cut into batches of 8192 rows and dealt to `partitions`.
fn add_table(ctx: &SessionContext, partitions: usize, columns: Vec<(&str, ArrayRef)>) {
    let all = RecordBatch::try_from_iter(columns).unwrap();
    let mut dealt = vec![vec![]; partitions];
    for (i, start) in (0..all.num_rows()).step_by(8192).enumerate() {
        let length = (all.num_rows() - start).min(8192);
        dealt[i % partitions].push(all.slice(start, length));
    }
    let table = MemTable::try_new(all.schema(), dealt).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
}

fn with_values(values: Vec<Option<f64>>) -> SessionContext {
    let ctx = session(2);
    add_table(&ctx, 2, vec![("x", Arc::new(Float64Array::from(values)))]);
    ctx
}

async fn run(ctx: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = ctx.sql(sql).await?;
    only_batch(frame).await
}

async fn only_batch(frame: DataFrame) -> Result<RecordBatch> {
    let batches = frame.collect().await?;
    let schema = batches[0].schema();
    Ok(datafusion::arrow::compute::concat_batches(&schema, &batches)?)
}

async fn numbers(ctx: &SessionContext, sql: &str) -> Vec<Option<f64>> {
    let batch = run(ctx, sql).await.unwrap();
    let columns = batch.columns().iter();
    columns.map(|column| column.as_primitive::<Float64Type>().iter().next().unwrap()).collect()
}

async fn shown(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let batch = run(ctx, sql).await.unwrap();
    let table = pretty_format_batches(&[batch]).unwrap().to_string();
    let rows = table.lines().skip(3).filter(|line| line.starts_with('|'));
    rows.map(|row| row.split_whitespace().collect()).collect()
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    run(ctx, sql).await.unwrap_err().to_string()
}

#[tokio::test]
async fn one_state_gives_all_percentiles() {
    let ctx = with_values((0..=100).rev().map(|i| Some(f64::from(i))).collect());

    let sql = "SELECT percentiles(x, [0.5, 0.95, 0.99])[1], percentiles(x, [0.5, 0.95, 0.99])[2], \
               percentiles(x, [0.5, 0.95, 0.99])[3], percentiles_nearest(x, [0.501])[1] FROM t";

    assert_eq!(numbers(&ctx, sql).await, [Some(50.0), Some(95.0), Some(99.0), Some(50.0)]);
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await;
    let plan = displayable(plan.unwrap().as_ref()).indent(false).to_string();
    let partial = plan.lines().find(|line| line.contains("mode=Partial")).unwrap();
    assert_eq!(partial.matches("percentiles(t.x, [").count(), 1, "{partial}");
}

#[tokio::test]
async fn a_constant_list_is_shared_by_all_rows() {
    let ctx = with_values(vec![Some(1.0)]);
    let frame = ctx.sql("SELECT percentiles(x, [0.5, 0.95]) FROM t").await;

    let plan = frame.unwrap().into_optimized_plan().unwrap();

    let plan = format!("{plan:?}");
    assert!(plan.contains("Dictionary(Int8, List"), "{plan}");
}

#[tokio::test]
async fn nulls_and_nan_are_no_values_and_infinity_is_one() {
    let ctx = with_values(vec![Some(f64::NAN), Some(1.0), None, Some(f64::INFINITY), Some(3.0)]);

    let found = numbers(
        &ctx,
        "SELECT median(x), percentiles(x, [1])[1], exact_sum(x), exact_sum(x) FILTER (WHERE x < 5) FROM t",
    );

    let infinity = Some(f64::INFINITY);
    assert_eq!(found.await, [Some(3.0), infinity, infinity, Some(4.0)]);
}

#[tokio::test]
async fn without_values_the_answer_is_null() {
    let ctx = with_values(vec![None, Some(f64::NAN)]);
    let sql = "SELECT percentiles(x, [0.5])[1], median(x), percentile_cont(x, 0.5), exact_sum(x), exact_mean(x) FROM t";

    assert_eq!(numbers(&ctx, sql).await, [None; 5]);
    let none = format!("{sql} WHERE x IS NULL AND x > 0");
    assert_eq!(numbers(&ctx, &none).await, [None; 5]);
    let nothing = numbers(&ctx, "SELECT median(NULL), exact_mean(NULL) FROM t");
    assert_eq!(nothing.await, [None; 2]);
}

#[tokio::test]
async fn medians_of_known_cases_are_right() {
    let ctx = with_values([1.0, 2.0, 3.0].map(Some).into_iter().chain([None; 3]).collect());
    assert_eq!(numbers(&ctx, "SELECT median(x) FROM t").await, [Some(2.0)]);

    let ctx = session(2);
    add_table(&ctx, 2, vec![("i", Arc::new(Int64Array::from_iter_values(0..10)))]);
    for (call, expected) in [
        ("median(i)", 4.5),
        ("median(CAST(i AS DECIMAL(10, 0)))", 4.5),
        ("median(CAST(i AS REAL))", 4.5),
        ("quantile_cont(i, 0.5)", 4.5),
        ("percentiles(i, [0.5])[1]", 4.5),
        ("percentiles_nearest(i, [0.5])[1]", 4.0),
        ("exact_mean(i)", 4.5),
        ("exact_sum(i)", 45.0),
    ] {
        let found = numbers(&ctx, &format!("SELECT {call} FROM t")).await;
        assert_eq!(found, [Some(expected)], "{call}");
    }
}

#[tokio::test]
async fn the_interpolation_weight_is_not_cut() {
    let ctx = with_values([0.0, 1.0, 2.0].map(Some).to_vec());

    let found = numbers(&ctx, "SELECT percentile_cont(x, 2.5e-7), percentiles(x, [2.5e-7])[1] FROM t");

    assert_eq!(found.await, [Some(5e-7), Some(5e-7)]);
}

#[tokio::test]
async fn within_group_counts_from_either_side_without_a_sort() {
    let ctx = with_values((1..=5).map(|i| Some(f64::from(i))).collect());
    let sql = "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x), \
               percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC), \
               percentile_cont(0) WITHIN GROUP (ORDER BY x DESC) FROM t";

    let found = numbers(&ctx, sql).await;

    assert_eq!(found, [Some(2.0), Some(4.0), Some(5.0)]);
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await;
    let plan = displayable(plan.unwrap().as_ref()).indent(false).to_string();
    assert!(!plan.contains("Sort"), "{plan}");
}

#[tokio::test]
async fn a_window_asks_again_after_more_rows() {
    let ctx = session(1);
    add_table(&ctx, 1, vec![("i", Arc::new(Int64Array::from(vec![4, 1, 3])))]);

    let sql = "SELECT i, median(i) OVER (ORDER BY i), percentiles(i, [1.0]) OVER (ORDER BY i), \
               exact_sum(i) OVER (ORDER BY i) FROM t ORDER BY i";

    assert_eq!(shown(&ctx, sql).await, ["|1|1.0|[1.0]|1.0|", "|3|2.0|[3.0]|4.0|", "|4|3.0|[4.0]|8.0|"]);
}

#[tokio::test]
async fn groups_keep_apart_and_a_filter_leaves_rows_out() {
    let ctx = session(3);
    let rows = 60_000_i64;
    let group = Int64Array::from_iter_values((0..rows).map(|i| i % 3));
    let x = Float64Array::from_iter_values((0..rows).map(|i| (i / 3) as f64));
    add_table(&ctx, 3, vec![("g", Arc::new(group)), ("x", Arc::new(x))]);

    let found = shown(
        &ctx,
        "SELECT g, percentiles(x, [0.5, 1.0]), median(x) FILTER (WHERE x < 3 AND g > 0), \
         exact_mean(x), exact_sum(x) FILTER (WHERE x > 19998) FROM t GROUP BY g ORDER BY g",
    );

    assert_eq!(
        found.await,
        [
            "|0|[9999.5,19999.0]||9999.5|19999.0|",
            "|1|[9999.5,19999.0]|1.0|9999.5|19999.0|",
            "|2|[9999.5,19999.0]|1.0|9999.5|19999.0|"
        ]
    );
}

#[tokio::test]
async fn a_list_may_come_in_as_a_parameter() {
    let ctx = with_values((0..=10).map(|i| Some(f64::from(i))).collect());
    let list = |items: &[ScalarValue], item: &DataType| ScalarValue::List(ScalarValue::new_list_nullable(items, item));
    let percentiles = list(&[0.5, 1.0].map(|p| ScalarValue::Float64(Some(p))), &DataType::Float64);
    let edges = list(&[4, 8].map(|e| ScalarValue::Int64(Some(e))), &DataType::Int64);

    let frame = ctx
        .sql(
            "SELECT bucket_label(b, $edges) AS label, percentiles(x, $p)[1] AS median, percentiles(x, $p)[2] AS max \
             FROM (SELECT bucket(CAST(x AS BIGINT), $edges) AS b, x FROM t) GROUP BY b ORDER BY b",
        )
        .await
        .unwrap()
        .with_param_values(vec![("p", percentiles), ("edges", edges)])
        .unwrap();

    let table = pretty_format_batches(&[only_batch(frame).await.unwrap()]).unwrap();
    let table = table.to_string().replace(' ', "");
    for row in ["|0-4|1.5|3.0|", "|4-8|5.5|7.0|", "|8+|9.0|10.0|"] {
        assert!(table.contains(row), "{table}");
    }
}

#[tokio::test]
async fn an_unknown_count_has_no_bucket() {
    let ctx = session(1);
    add_table(&ctx, 1, vec![("i", Arc::new(Int64Array::from(vec![Some(1023), None, Some(1024)])))]);

    let sql = "SELECT bucket(i, [1024]), bucket_label(bucket(i, [1024]), [1024]) FROM t";

    assert_eq!(shown(&ctx, sql).await, ["|0|0-1K|", "|||", "|1|1K+|"]);
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let ctx = session(1);
    add_table(
        &ctx,
        1,
        vec![("x", Arc::new(Float64Array::from(vec![1.0, 2.0]))), ("i", Arc::new(Int64Array::from(vec![1, 7])))],
    );

    for (sql, sentence) in [
        (
            "percentiles(x, [0.5, 95])",
            "percentiles: a percentile is given as a number from 0 to 1, such as 0.95, and 95 is not",
        ),
        ("percentiles(x, [0.5, NULL])", "one of them is null"),
        ("percentiles(x, [x])", "percentiles: the second argument must be the same for all rows"),
        ("percentiles(x, 0.5)", "percentiles takes a list of numbers second, such as [0.5, 0.95], not Float64"),
        ("percentiles(x)", "percentiles takes a number and a list of percentiles"),
        ("percentiles('a', [0.5])", "percentiles takes numbers, not"),
        ("percentile_cont(x, 95)", "percentile_cont: a percentile is given as a number from 0 to 1"),
        ("percentile_cont(x, x)", "percentile_cont: the second argument must be the same for all rows"),
        ("percentile_cont(x, NULL)", "percentile_cont: the percentile must be a number, not NULL"),
        ("median(x, 0.5)", "median takes one number"),
        ("exact_sum('a')", "exact_sum takes numbers, not"),
        ("exact_sum(DISTINCT x), count(DISTINCT i)", "exact_sum does not take DISTINCT"),
        ("median(DISTINCT x), count(DISTINCT i)", "median does not take DISTINCT"),
        ("bucket(x, [1])", "bucket takes a whole number first, not Float64"),
        ("bucket(i, [1.5])", "bucket takes a list of whole numbers second, such as [1024, 2048], not List(Float64)"),
        ("bucket(i, [i])", "bucket: the edges must be a constant list"),
        ("bucket(i, [2, 1])", "bucket: the edges must be above 0 and ascending, and [2, 1] are not"),
        ("bucket(i, [0, 1])", "bucket: the edges must be above 0"),
        ("bucket(i, [1, NULL])", "one of them is null"),
        ("bucket_label(i, [10])", "bucket_label: there is no bucket 7, the edges make 2 of them, from 0"),
    ] {
        let error = error(&ctx, &format!("SELECT {sql} FROM t")).await;
        assert!(error.contains(sentence), "{sql}: {error}");
    }
}

#[tokio::test]
async fn threads_change_no_bit_of_a_sum() {
    let x: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..50_000).map(|i| f64::from(i).sin() * 10_f64.powi(i % 20))));
    let mut bits = vec![];
    for threads in [1, 2, 7] {
        let ctx = session(threads);
        add_table(&ctx, threads, vec![("x", Arc::clone(&x))]);
        let found = numbers(&ctx, "SELECT exact_sum(x), exact_mean(x) FROM t").await;
        bits.push(found.into_iter().map(|x| x.unwrap().to_bits()).collect::<Vec<_>>());
    }

    assert_eq!(bits[0], bits[1]);
    assert_eq!(bits[0], bits[2]);
}

/// A session that may hold `bytes` and then spills.
fn small_session(bytes: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(bytes))).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(2);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    register(&ctx);
    ctx
}

/// A metric summed over all operators of a plan that has run.
fn metric(plan: &dyn ExecutionPlan, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum(|metric| metric.value().name() == name));
    let below = plan.children().into_iter();
    let below = below.map(|child| metric(child.as_ref(), name));
    own.map_or(0, |value| value.as_usize()) + below.sum::<usize>()
}

fn spilled_bytes_a_row(plan: &dyn ExecutionPlan) -> usize {
    let rows = metric(plan, "spilled_rows");
    assert!(rows > 0, "nothing was spilled");
    metric(plan, "spilled_bytes") / rows
}

/// `rows` rows in `groups` groups, where group g holds g, g + 1, ...; checks all answers.
async fn check_groups(ctx: &SessionContext, groups: i64, rows: i64) -> Arc<dyn ExecutionPlan> {
    let group = Int64Array::from_iter_values((0..rows).map(|i| i % groups));
    let x = Float64Array::from_iter_values((0..rows).map(|i| (i % groups + i / groups) as f64));
    add_table(ctx, 2, vec![("g", Arc::new(group)), ("x", Arc::new(x))]);
    let frame = ctx
        .sql("SELECT g, percentiles(x, [0.0, 0.5, 1.0]) AS p, exact_sum(x) AS s, median(x) AS m FROM t GROUP BY g")
        .await
        .unwrap();
    let plan = frame.create_physical_plan().await.unwrap();

    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();

    let mut seen = 0;
    for batch in &batches {
        let g = batch.column(0).as_primitive::<Int64Type>();
        let sums = batch.column(2).as_primitive::<Float64Type>();
        let medians = batch.column(3).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let first = g.value(row) as f64;
            let count = ((rows - g.value(row) + groups - 1) / groups) as f64;
            let middle = first + (count - 1.0) / 2.0;
            let list = batch.column(1).as_list::<i32>().value(row);
            let expected = [first, middle, first + count - 1.0];
            assert_eq!(list.as_primitive::<Float64Type>().values(), &expected);
            assert_eq!(medians.value(row), middle);
            assert_eq!(sums.value(row), middle * count);
        }
        seen += batch.num_rows() as i64;
    }
    assert_eq!(seen, groups);
    plan
}

#[tokio::test]
async fn a_group_for_almost_every_row_skips_the_partial_stage_and_is_right() {
    let plan = check_groups(&session(2), 290_000, 300_000).await;

    assert!(metric(plan.as_ref(), "skipped_aggregation_rows") > 0);
    assert_eq!(metric(plan.as_ref(), "spilled_rows"), 0);
}

#[tokio::test]
async fn a_group_for_almost_every_row_spills_and_is_right() {
    let plan = check_groups(&small_session(5 << 20), 115_000, 120_000).await;

    // a key of 8 bytes and a view of 16 bytes for each of three states, and next to nothing besides
    let bytes = spilled_bytes_a_row(plan.as_ref());
    assert!((56..60).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn groups_of_some_values_spill_and_are_right() {
    let plan = check_groups(&small_session(6 << 20), 20_000, 200_000).await;

    // as above, a sum of 32 bytes and two lists of up to 10 values: a batch takes its own bytes along and no others
    let bytes = spilled_bytes_a_row(plan.as_ref());
    assert!(bytes < 8 + 3 * 16 + 32 + 2 * 80, "{bytes}");
}

#[tokio::test]
async fn what_is_usual_around_a_row_is_told_by_the_rows_of_its_partition_in_order() {
    let sql = "WITH usual AS (SELECT k, i, around(x, 3) OVER (PARTITION BY k ORDER BY i DESC) AS usual \
               FROM (VALUES (1, 5, 20.0), (1, 4, NULL), (1, 3, 26.0), (1, 2, 90.0), (1, 1, 24.0), (2, 4, 7.0)) AS t (k, i, x)) \
               SELECT k, i, usual['median'], usual['mad'], usual['known'] FROM usual ORDER BY k, i DESC";
    let expected = [
        "|1|5|20.0|0.0|1|",
        "|1|4|20.0|0.0|2|",
        "|1|3|26.0|0.0|2|",
        "|1|2|26.0|2.0|3|",
        "|1|1|24.0|0.0|2|",
        "|2|4|7.0|0.0|1|",
    ];
    assert_eq!(shown(&session(2), sql).await, expected);
    let error = error(&session(2), "SELECT around(i, 0) OVER (ORDER BY i) FROM (VALUES (1)) AS t (i)").await;
    assert!(error.contains("1 row or more"), "{error}");
}

/// Numbers with holes, in two groups.
fn add_holes(ctx: &SessionContext, partitions: usize) {
    let numbers: Float64Array = (0..40_000).map(|row| (row % 7 != 3).then(|| f64::from(row % 1000))).collect();
    let keys: Int64Array = (0..40_000).map(|row| Some(row % 2)).collect();
    let rows: Int64Array = (0..40_000).map(Some).collect();
    add_table(ctx, partitions, vec![("k", Arc::new(keys)), ("i", Arc::new(rows)), ("x", Arc::new(numbers))]);
}

#[tokio::test]
async fn a_relation_has_the_same_bits_on_any_number_of_threads_with_and_without_groups() {
    let mut answers = vec![];
    for threads in [1, 2, 7] {
        let ctx = session(threads);
        add_holes(&ctx, threads);
        let sql = "SELECT k, relation(x, sin(i)) AS r FROM t GROUP BY k UNION ALL SELECT 2, relation(x, sin(i)) FROM t \
                   UNION ALL SELECT 3, relation(x, sin(i)) FILTER (WHERE i < 0) FROM t ORDER BY 1";
        answers.push(shown(&ctx, sql).await);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    assert!(answers[0][3].contains("{n:0,pearson:,spearman:,slope:}"), "{:?}", answers[0]);
}
