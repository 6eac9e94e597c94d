//! The functions our SQL has and stock DataFusion has not, or has wrong; registered here and nowhere else.
//!
//! | function | answer |
//! |--|--|
//! | `percentiles(x, [0.5, 0.95])` | exact continuous percentiles of one state, as a list |
//! | `percentiles_nearest(x, [0.5, 0.95])` | the same by nearest rank: always values that occurred |
//! | `percentile_cont(x, p)`, `quantile_cont`, `median(x)` | SQL's own names; they replace the stock ones |
//! | `exact_sum(x)`, `exact_mean(x)` | floating-point sums whose bits do not depend on the order of work |
//! | `weighted_percentiles(x, [0.5], w)`, `weighted_percentiles_nearest` | percentiles of a sample each of whose values stands for w |
//! | `breakdown(hour, cell, error, seen, a, b, ..)` | how often each value of a, of b .. comes, in one pass |
//! | `draw(text, seed)` | a number by chance, the same for the same text |
//! | `round_together(amount, places)` | amounts in fewer decimals that still add up (a window function) |
//! | `readable(number)` | a number as a sentence writes it |
//! | `normal_reason(finish_reason)` | why generation ended, in one of a few words |
//! | `text_features(a, b, ..)` | control characters, personal data and secrets in texts |
//! | `bucket(x, edges)`, `bucket_label(bucket, edges)` | which bucket a count falls into, and its name |
//! | `fullest(times, amounts, span_ms)`, `fullest_minute(times, amounts)` | the stretch of time with the largest amount |
//! | `minute_percentiles(times, amounts, [0.5])`, `concurrency(starts, ends)`, `concurrency_percentiles(starts, ends, [0.5])` | how much there usually is, and how many requests run at once |
//! | `percentile_change(a, b, p, confidence, seed)` | how a percentile changed between two sides, with bootstrap bounds |
//! | `relation(x, y)` | how y goes with x: correlation, rank correlation and slope |
//! | `replay_prefixes(hashes, time, capacity, ttl_ms)` | what a prefix cache would have held, request by request (a window function) |
//! | `charge(at, model, ..)` | what an upstream call costs by the price book of the run |
//! | `apportion(amount, weight, places)` | an amount split by weights so that its parts are the whole (a window function) |
//! | `around(gap, n)` | median and MAD of the rows around each (a window function) |
//! | `local_period(time, ..)`, `local_part(time, ..)`, `local_window(time, ..)` | days, hours, weekdays and windows in the report's zone |
//!
//! Why not the stock ones: `percentile_cont` cuts the interpolation weight to 1e-6, keeps one copy of the values for
//! each percentile and panics when almost every row is a group of its own; `avg` and `sum` of floats change in the
//! last digits with the number of threads.
//!
//! All aggregates share one shape: `accumulator.rs` turns a `GroupStates` into what DataFusion calls, `state.rs` is how
//! a state travels between threads and to disk, `samples.rs` and `fixed_sum.rs` are the two states.

mod accumulator;
mod apportion;
mod argument;
mod around;
mod bootstrap;
mod breakdown;
mod bucket;
mod bucket_label;
mod charge;
mod draw;
mod exact_mean;
mod exact_sum;
mod fixed_sum;
mod fullest;
mod load;
mod local_time;
mod local_window;
mod median;
mod normal_reason;
mod percentile_change;
mod percentile_cont;
mod percentiles;
mod prefix_cache;
mod quantile;
mod readable;
mod relation;
mod replay_prefixes;
mod round_together;
mod samples;
mod selection;
mod state;
mod text_features;
mod weighted_percentiles;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::prelude::SessionContext;

use apportion::Apportion;
use around::Around;
use breakdown::Breakdown;
use bucket::Bucket;
pub use bucket::Edges;
use bucket_label::BucketLabel;
pub use charge::ChargeCall;
use draw::Draw;
use exact_mean::ExactMean;
use exact_sum::ExactSum;
use fullest::Fullest;
use load::Load;
use local_time::{LocalPart, LocalPeriod};
use local_window::LocalWindow;
use median::Median;
use normal_reason::NormalReason;
use percentile_change::PercentileChange;
use percentile_cont::PercentileCont;
use percentiles::Percentiles;
use readable::Readable;
use relation::Relation;
use replay_prefixes::ReplayPrefixes;
use round_together::RoundTogether;
use text_features::TextFeatures;
use weighted_percentiles::WeightedPercentiles;

/// Gives the session all functions of this product, in place of stock ones of the same name.
pub fn register(ctx: &SessionContext) {
    ctx.register_udaf(AggregateUDF::new_from_impl(Percentiles::continuous()));
    ctx.register_udaf(AggregateUDF::new_from_impl(Percentiles::nearest()));
    ctx.register_udaf(AggregateUDF::new_from_impl(PercentileCont::ascending()));
    ctx.register_udaf(AggregateUDF::new_from_impl(PercentileCont::descending()));
    ctx.register_udaf(AggregateUDF::new_from_impl(Median::new()));
    ctx.register_udaf(AggregateUDF::new_from_impl(ExactSum::new()));
    ctx.register_udaf(AggregateUDF::new_from_impl(ExactMean::new()));
    ctx.register_udaf(AggregateUDF::new_from_impl(Breakdown::new()));
    ctx.register_udaf(AggregateUDF::new_from_impl(WeightedPercentiles::continuous()));
    ctx.register_udaf(AggregateUDF::new_from_impl(WeightedPercentiles::nearest()));
    ctx.register_udaf(AggregateUDF::new_from_impl(Relation::new()));
    ctx.register_udwf(WindowUDF::new_from_impl(ReplayPrefixes::new()));
    ctx.register_udwf(WindowUDF::new_from_impl(Apportion::new()));
    ctx.register_udwf(WindowUDF::new_from_impl(RoundTogether::new()));
    ctx.register_udwf(WindowUDF::new_from_impl(Around::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(PercentileChange::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(Draw::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(NormalReason::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(TextFeatures::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(Readable::new()));
    Load::all().into_iter().for_each(|load| ctx.register_udf(ScalarUDF::new_from_impl(load)));
    ctx.register_udf(ScalarUDF::new_from_impl(Fullest::span()));
    ctx.register_udf(ScalarUDF::new_from_impl(Fullest::minute()));
    ctx.register_udf(ScalarUDF::new_from_impl(Bucket::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(BucketLabel::new()));
    ctx.register_udf(ScalarUDF::new_from_impl(LocalPeriod::default()));
    ctx.register_udf(ScalarUDF::new_from_impl(LocalPart::default()));
    ctx.register_udf(ScalarUDF::new_from_impl(LocalWindow::start()));
    ctx.register_udf(ScalarUDF::new_from_impl(LocalWindow::end()));
}

#[cfg(test)]
mod tests;
