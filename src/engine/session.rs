//! The session: every option of the engine in one place, each with its reason.

use std::path::Path;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext, col};

use crate::record::Column;
use crate::request::Limits;
use crate::source::requests::{RequestTable, Unit};
use crate::source::table::LogTable;
use crate::source::tokens::TokenTable;

/// Consumers that an out-of-memory error names.
const NAMED_CONSUMERS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(5).unwrap();

/// Bytes of a budget for each row of a batch: a sort needs twice a wide row, and its merge a batch of every run.
const ROW: usize = 64 << 10;

/// A session that knows our functions and spills into `spill`.
pub fn session(limits: &Limits, spill: &Path) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_target_partitions(limits.threads);
    let options = config.options_mut();
    // The footers were read when the table was opened; nothing here would read them again.
    options.execution.collect_statistics = false;
    // Our scans are cut into as many partitions as there are threads; moving batches of a small log between threads
    // costs more than it gains.
    options.optimizer.enable_round_robin_repartition = false;
    // A field that is read of what a function made would have the function called once for each field.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // Spilled text and values compress well and the disk is the slower part.
    options.execution.spill_compression = datafusion::config::SpillCompression::Lz4Frame;

    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![spill.to_owned()]));
    let mut runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk);
    if let Some(bytes) = limits.memory {
        // Fair: several operators share the budget, and the one that grew must spill, not the one that came last.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let pool = FairSpillPool::new(bytes);
        // What a sort keeps back for merging its runs must leave room for the runs themselves.
        config.options_mut().execution.sort_spill_reservation_bytes = (bytes / (16 * limits.threads)).min(10 << 20);
        // A merge holds a batch of every run and cannot spill: under a small budget the batches are small too.
        let batch_size = (bytes / (ROW * limits.threads)).clamp(256, config.batch_size());
        config = config.with_batch_size(batch_size);
        runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(pool, NAMED_CONSUMERS)));
    }
    let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
    super::functions::register(&context);
    Ok(context)
}

/// The table `logs`, the tables `requests` and `attempts` of records put together, the tables `events` of what else is said
/// about them and `tokens` of their steps, and the view `inference_logs`: the rows of `logs` with the time as `ts` too, so that SQL people already have runs as it is.
pub async fn register_logs(
    context: &SessionContext,
    logs: LogTable,
    requests: [RequestTable; 2],
    events: LogTable,
    tokens: TokenTable,
) -> Result<()> {
    context.register_table("logs", Arc::new(logs))?;
    for table in requests {
        let name = match table.unit {
            Unit::Request => "requests",
            Unit::Attempt => "attempts",
        };
        context.register_table(name, Arc::new(table))?;
    }
    context.register_table("events", Arc::new(events))?;
    context.register_table("tokens", Arc::new(tokens))?;
    let logs = context.table("logs").await?;
    let view = logs.with_column("ts", col(Column::Timestamp.name()))?.into_view();
    context.register_table("inference_logs", view)?;
    Ok(())
}
