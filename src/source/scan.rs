//! The scan of text logs: DataFusion asks for columns of files and byte ranges, and gets batches of canonical records.
//!
//! This is a [`FileSource`] inside a `FileScanConfig`, so that DataFusion's file stream, work stealing and metrics work,
//! and so that a scan can be cut and sent elsewhere. NDJSON is split by byte ranges; everything that cannot be split
//! (arrays, CSV, compressed files, streams) is one piece, read whole in bounded memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, PhysicalExpr};
use futures::StreamExt;
use object_store::ObjectStore;

use crate::source::LogFile;
use crate::source::compression::is_damage;
use crate::source::counts::PublishedCounts;
use crate::source::cuts::{self, Piece};
use crate::source::mapping::Mapping;
use crate::source::nest::Nest;
use crate::source::nest::deferred::{Course, Handover};
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, RecordReader};
use crate::source::records::{self, Records};
use crate::source::rejects::Rejects;
use crate::source::schema::LogSchema;
use crate::source::search::Found;
use crate::source::sink::{Desk, RecordSink, TopLevel};

/// Scans text logs of any format.
#[derive(Clone)]
pub struct LogScan {
    table_schema: TableSchema,
    schema: Arc<LogSchema>,
    /// By the index that a [`LogFile`] carries.
    mappings: Arc<[Mapping]>,
    rejects: Arc<Rejects>,
    found: Option<Arc<Found>>,
    handover: Arc<Handover>,
    plans: Arc<Plans>,
    projection: SplitProjection,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl LogScan {
    /// The plan that reads columns `projection` of the table from `files`, of those that were searched only the lines
    /// `found`, on up to `partitions` threads.
    pub fn plan(
        schema: Arc<LogSchema>,
        mappings: Arc<[Mapping]>,
        rejects: Arc<Rejects>,
        found: Option<Arc<Found>>,
        files: &[Arc<LogFile>],
        projection: &[usize],
        partitions: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table_schema = TableSchema::from(schema.arrow.clone());
        let mut source = Self {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            schema,
            mappings,
            rejects,
            found,
            handover: Arc::default(),
            plans: Arc::default(),
            batch_size: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
        };
        let (mut cut, plans) = (Vec::with_capacity(files.len()), Plans::default());
        for file in files {
            let new = || ReadPlan::new(&source.schema, &[], &source.mappings[file.mapping]);
            let pieces = match source.found.as_ref().and_then(|found| found.of(file)) {
                Some([]) => continue,
                Some(_) => vec![None],
                None => cuts::pieces(file, || plans.of(file.mapping, new))?,
            };
            cut.push((file, pieces));
        }
        source.handover = Arc::new(Handover::new(cut.iter().map(|(file, pieces)| (file.index, pieces.len()))));
        // Files are opened by path; the store only keys the scan.
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(dealt(&cut, partitions))
            .with_projection_indices(Some(projection.to_vec()))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Deals the pieces of the files out; threads that are done early take over pieces of others.
fn dealt(files: &[(&Arc<LogFile>, Vec<Piece>)], partitions: usize) -> Vec<FileGroup> {
    let mut all = Vec::new();
    for (file, pieces) in files {
        let size = file.input.size.unwrap_or(0);
        let whole = PartitionedFile::new(file.input.name.clone(), size).with_extension(Arc::clone(file));
        all.extend(pieces.iter().map(|piece| match piece {
            Some((start, end)) => whole.clone().with_range(*start as i64, *end as i64),
            None => whole.clone(),
        }));
    }
    let mut groups = vec![Vec::new(); partitions.min(all.len()).max(1)];
    let count = groups.len();
    for (index, piece) in all.into_iter().enumerate() {
        groups[index % count].push(piece);
    }
    groups.into_iter().map(FileGroup::new).collect()
}

impl FileSource for LogScan {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = LogOpener {
            plans: self.plans.clone(),
            mappings: self.mappings.clone(),
            columns: self.projection.file_indices.clone(),
            schema: self.schema.clone(),
            rejects: self.rejects.clone(),
            found: self.found.clone(),
            handover: self.handover.clone(),
            batch_size: self.batch_size,
            metrics: self.metrics.clone(),
            partition,
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.table_schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size, ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "logs"
    }

    fn fmt_extra(&self, _: DisplayFormatType, _: &mut fmt::Formatter) -> fmt::Result {
        Ok(())
    }

    /// The pieces are cut already, by rules that DataFusion does not know.
    fn repartitioned(
        &self,
        _: usize,
        _: usize,
        _: Option<LexOrdering>,
        _: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        Ok(None)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, plans: Arc::default(), ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::execution_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// How the logs of each mapping are read, for the columns of one scan: settled by the thread that asks first.
#[derive(Default)]
struct Plans(Mutex<HashMap<usize, Arc<ReadPlan>>>);

impl Plans {
    fn of(&self, mapping: usize, new: impl FnOnce() -> Result<ReadPlan, ArrowError>) -> Result<Arc<ReadPlan>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match plans.entry(mapping) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(free) => Ok(free.insert(Arc::new(new()?)).clone()),
        }
    }
}

/// Opens the pieces of one partition.
struct LogOpener {
    plans: Arc<Plans>,
    mappings: Arc<[Mapping]>,
    /// The columns of the table that are read.
    columns: Vec<usize>,
    schema: Arc<LogSchema>,
    rejects: Arc<Rejects>,
    found: Option<Arc<Found>>,
    handover: Arc<Handover>,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
}

impl FileOpener for LogOpener {
    fn open(&self, piece: PartitionedFile) -> Result<FileOpenFuture> {
        let file = piece.extension::<Arc<LogFile>>().cloned();
        let file =
            file.ok_or_else(|| DataFusionError::Internal("a piece of a log scan carries no log file".to_owned()))?;
        let new = || ReadPlan::new(&self.schema, &self.columns, &self.mappings[file.mapping]);
        let plan = self.plans.of(file.mapping, new)?;
        let range = piece.range.as_ref().map(|range| (range.start as u64, range.end as u64));
        let could_not =
            |error| DataFusionError::External(format!("could not open {}: {error}", file.input.name).into());
        let (records, packed) = match self.found.as_ref().and_then(|found| found.of(&file)) {
            Some(lines) => (Records::found(lines, &plan), None),
            None => records::open(&file, &plan, range).map_err(could_not)?,
        };
        let provenance = file.provenance(&self.schema);
        let counts = PublishedCounts::new(self.metrics.clone(), self.partition);
        let mut batches = Batches {
            file,
            records: Some(records),
            reader: RecordReader::new(plan, provenance, self.batch_size, counts),
            layouts: Layouts::default(),
            nest: Nest::of_course(Course::of_piece(range.map(|(start, _)| start))),
            handover: self.handover.clone(),
            rejects: self.rejects.clone(),
            batch_size: self.batch_size,
            packed,
            bytes_read: MetricBuilder::new(&self.metrics).counter("bytes_read", self.partition),
        };
        let stream = futures::stream::iter(std::iter::from_fn(move || batches.next_batch().transpose()));
        Ok(Box::pin(async move { Ok(stream.boxed()) }))
    }
}

/// Reads one piece batch by batch.
struct Batches {
    file: Arc<LogFile>,
    /// None once the piece is read to its end.
    records: Option<Records>,
    reader: RecordReader,
    layouts: Layouts,
    nest: Nest,
    handover: Arc<Handover>,
    rejects: Arc<Rejects>,
    batch_size: usize,
    packed: Option<Arc<AtomicU64>>,
    bytes_read: Count,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.reader.rows() < self.batch_size {
            let Some(records) = &mut self.records else { break };
            let desk = Desk { reader: &mut self.reader, rejects: &self.rejects, file: &self.file, watcher: None };
            let level = TopLevel { base: 0 };
            let mut sink = RecordSink { desk, level, layouts: &mut self.layouts, nest: &mut self.nest };
            match records.advance(&mut sink) {
                Ok(Some(bytes)) if self.packed.is_none() => self.bytes_read.add(bytes),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.handover.settle(sink.nest, &mut sink.desk);
                    self.records = None;
                }
                Err(error) if is_damage(&error) => {
                    sink.nest.finish(&mut sink.desk);
                    self.reader.counts.damaged_files += 1;
                    self.rejects.damage(&self.file, &error);
                    self.records = None;
                }
                Err(error) => {
                    return Err(DataFusionError::External(
                        format!("could not read {}: {error}", self.file.input.name).into(),
                    ));
                }
            }
        }
        if let Some(packed) = &self.packed {
            self.bytes_read.add(packed.swap(0, Ordering::Relaxed) as usize);
        }
        if self.reader.rows() > 0 {
            return Ok(Some(self.reader.finish()?));
        }
        Ok(None)
    }
}
