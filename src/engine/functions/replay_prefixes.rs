//! `replay_prefixes(hashes, time, capacity, ttl_ms) OVER (ORDER BY ...)`: for each request, in order, how many blocks its
//! prompt has and how many of them a prefix cache would have held, as a list `[blocks, reused]`.
//!
//! `capacity` in blocks and `ttl_ms` may be null: no limit. Null where the hashes are unknown, or the time while a TTL is
//! asked for.

use std::sync::Arc;

use datafusion::arrow::array::builder::{Int64Builder, ListBuilder};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimestampNanosecondType};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDFImpl};

use super::argument::list_of;
use super::prefix_cache::{Limits, PrefixCache};
use crate::record::Kind;

/// The window function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ReplayPrefixes {
    signature: Signature,
}

impl ReplayPrefixes {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl WindowUDFImpl for ReplayPrefixes {
    fn name(&self) -> &str {
        "replay_prefixes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [_, _, _, _] => Ok(vec![DataType::Utf8View, Kind::Time.data_type(), DataType::Int64, DataType::Float64]),
            _ => plan_err!("replay_prefixes takes hashes, a time, a capacity in blocks and a TTL in milliseconds"),
        }
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Replay))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), list_of(DataType::Int64), true)))
    }
}

#[derive(Debug)]
struct Replay;

impl PartitionEvaluator for Replay {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let hashes = values[0].as_string_view();
        let times = values[1].as_primitive::<TimestampNanosecondType>();
        let capacities = values[2].as_primitive::<Int64Type>();
        let ttls = values[3].as_primitive::<Float64Type>();
        let limits = match rows {
            0 => Limits::default(),
            _ => Limits {
                blocks: capacities.is_valid(0).then(|| usize::try_from(capacities.value(0)).unwrap_or(0)),
                ttl: ttls.is_valid(0).then(|| (ttls.value(0) * 1e6) as i64),
            },
        };
        let mut cache = PrefixCache::new(limits);
        let mut replayed = ListBuilder::new(Int64Builder::new());
        for row in 0..rows {
            let time = times.is_valid(row).then(|| times.value(row));
            let now = time.or(limits.ttl.is_none().then_some(0));
            let known = now.filter(|_| hashes.is_valid(row));
            let reuse = known.and_then(|now| cache.request(hashes.value(row), now));
            if let Some(reuse) = reuse {
                replayed.values().append_value(reuse.blocks);
                replayed.values().append_value(reuse.reused);
            }
            replayed.append(reuse.is_some());
        }
        Ok(Arc::new(replayed.finish()))
    }
}
