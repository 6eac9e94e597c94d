//! The scan of Parquet logs: DataFusion's reader underneath, the canonical record on top.
//!
//! Footers decide everything before the first page is read: which columns hold what, in which row groups a value may be
//! missing (only those read what it could be derived from), which row groups a predicate can skip, how many records there
//! are and from when to when. A predicate on canonical columns is rewritten to the physical ones for pruning.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::aggregate::{max, min};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef, TimestampNanosecondType};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfigBuilder, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column as ColumnExpr, InListExpr, Literal, lit};
use datafusion::physical_expr::utils::conjunction;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;
use jiff::tz::TimeZone;

use crate::record::alias::ERROR_KEYS;
use crate::record::{Column, Kind, derive};
use crate::source::LogFile;
use crate::source::columnar::{ColumnPlan, Origin, Output};
use crate::source::counts::PublishedCounts;
use crate::source::mapping::{Mapping, extra_candidates};
use crate::source::schema::{LogSchema, Meaning, OF_TOKENS};

/// A Parquet log with its footer.
#[derive(Debug, Clone)]
pub struct ParquetLog {
    pub file: Arc<LogFile>,
    /// Absolute; a temporary file where the log itself is compressed or a stream.
    pub path: PathBuf,
    size: u64,
    footer: ArrowReaderMetadata,
    /// What the footer tells about the records' times; None where it does not.
    pub span: Option<Span>,
}

/// First and last time of a file's records, nanoseconds since 1970; every record has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub first: i64,
    pub last: i64,
    /// How many of the times name no zone.
    pub zone_assumed: u64,
}

impl ParquetLog {
    /// Reads the footer; an error says what is wrong with the file.
    pub fn open(file: Arc<LogFile>, path: &Path, mapping: &Mapping) -> anyhow::Result<Self> {
        let opened = File::open(path)?;
        let size = opened.metadata()?.len();
        let footer = ArrowReaderMetadata::load(&opened, ArrowReaderOptions::new())?;
        let mut log = Self { file, path: path.canonicalize()?, size, footer, span: None };
        log.span = log.read_span(mapping);
        Ok(log)
    }

    pub fn rows(&self) -> u64 {
        self.footer.metadata().file_metadata().num_rows().max(0) as u64
    }

    pub fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    /// Whether its rows are steps of tokens.
    pub fn is_of_tokens(&self) -> bool {
        OF_TOKENS[0].2.iter().any(|key| self.schema().field_with_name(key).is_ok())
    }

    /// Whether its rows may tell of steps of tokens.
    pub fn may_tell_of_tokens(&self) -> bool {
        let mut keys = OF_TOKENS.iter().flat_map(|(_, _, keys)| keys.iter());
        keys.any(|key| self.schema().field_with_name(key).is_ok())
    }

    /// Rows of a top-level column that are null, where all row groups say.
    pub fn nulls(&self, column: &str) -> Option<u64> {
        let counts = self.null_counts(column)?;
        counts.into_iter().sum()
    }

    fn read_span(&self, mapping: &Mapping) -> Option<Span> {
        let origins = origins(&mapping.candidates(Column::Timestamp).0, self.schema(), Column::Timestamp.kind());
        let [Origin { path, .. }] = &origins[..] else { return None };
        let zone_assumed = match self.schema().field_with_name(&path[0]).ok()?.data_type() {
            DataType::Timestamp(_, Some(_)) => 0,
            // elsewhere than in UTC the first wall clock reading need not be the first instant
            DataType::Timestamp(_, None) if mapping.zone == TimeZone::UTC => self.rows(),
            _ => return None,
        };
        let undated = self.nulls(&path[0])?;
        let statistics = self.statistics(&path[0])?;
        let groups = self.footer.metadata().row_groups();
        let extreme = |values: ArrayRef| cast(&values, &Kind::Time.data_type()).ok();
        let low = extreme(statistics.row_group_mins(groups).ok()?)?;
        let high = extreme(statistics.row_group_maxes(groups).ok()?)?;
        if low.null_count() + high.null_count() > 0 {
            return None;
        }
        let first = min(low.as_primitive::<TimestampNanosecondType>())?;
        let last = max(high.as_primitive::<TimestampNanosecondType>())?;
        // a record that lacks its time may still get one by derivation
        (undated == 0).then_some(Span { first, last, zone_assumed })
    }

    /// The smallest and the largest number in a top-level column of numbers, where all row groups say.
    pub fn range(&self, column: &str) -> Option<(f64, f64)> {
        let statistics = self.statistics(column)?;
        let groups = self.footer.metadata().row_groups();
        let numbers =
            |values: ArrayRef| cast(&values, &DataType::Float64).ok().filter(|values| values.null_count() == 0);
        let low = numbers(statistics.row_group_mins(groups).ok()?)?;
        let high = numbers(statistics.row_group_maxes(groups).ok()?)?;
        min(low.as_primitive::<Float64Type>()).zip(max(high.as_primitive::<Float64Type>()))
    }

    fn statistics(&self, column: &str) -> Option<StatisticsConverter<'_>> {
        StatisticsConverter::try_new(column, self.schema(), self.footer.parquet_schema()).ok()
    }

    /// Nulls of a top-level column by row group; a row group that does not say is None.
    fn null_counts(&self, column: &str) -> Option<Vec<Option<u64>>> {
        let statistics = self.statistics(column)?.with_missing_null_counts_as_zero(false);
        let counts = statistics.row_group_null_counts(self.footer.metadata().row_groups()).ok()?;
        Some(counts.iter().collect())
    }
}

/// How Parquet is read, whatever the file.
pub struct Reading<'a> {
    /// Helps to read less: over the columns that are read.
    pub predicate: Option<&'a Arc<dyn PhysicalExpr>>,
    /// Whether it leaves few rows.
    pub is_lookup: bool,
    pub partitions: usize,
    pub reader: &'a Arc<dyn ParquetFileReaderFactory>,
}

/// The plans that read columns `projection` of the table from Parquet logs; one for each set of row groups that can be
/// read alike.
pub fn plans(
    logs: &[ParquetLog],
    schema: &LogSchema,
    mappings: &[Mapping],
    projection: &[usize],
    reading: &Reading<'_>,
) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
    let output_schema = Arc::new(schema.arrow.project(projection)?);
    let named = projection.contains(&Column::SourceFile.index());
    let mut alike: Vec<(Class, Vec<PartitionedFile>)> = Vec::new();
    for log in logs {
        for (derived, groups) in row_groups(log, &mappings[log.file.mapping], schema, projection) {
            let class = Class {
                file: class_of(&log.file, named),
                schema: log.schema().clone(),
                derived,
                dated: log.span.is_some(),
            };
            let known = alike.iter().position(|(other, _)| *other == class);
            let position = known.unwrap_or_else(|| {
                alike.push((class, Vec::new()));
                alike.len() - 1
            });
            alike[position].1.extend(pieces(log, &groups, reading.partitions));
        }
    }
    let plan = |(class, files): (Class, Vec<PartitionedFile>)| {
        let columns = column_plan(&class, schema, &mappings[class.file.mapping], projection, output_schema.clone());
        scan(Arc::new(columns), &class.schema, files, reading)
    };
    alike.into_iter().map(plan).collect()
}

/// What row groups must share to be read by one plan.
#[derive(PartialEq)]
struct Class {
    file: FileClass,
    schema: SchemaRef,
    derived: Vec<Column>,
    /// The footer told that every record has a time.
    dated: bool,
}

/// What files must share: the mapping, and the values that hold for all their rows.
#[derive(PartialEq)]
struct FileClass {
    mapping: usize,
    partitions: Vec<(String, String)>,
    /// Only where the query reads it: else one plan serves any number of files.
    name: Option<String>,
}

fn class_of(file: &LogFile, named: bool) -> FileClass {
    let name = named.then(|| file.input.name.clone());
    FileClass { mapping: file.mapping, partitions: file.input.partitions.clone(), name }
}

/// Row groups by the columns that must be derived in them.
fn row_groups(
    log: &ParquetLog,
    mapping: &Mapping,
    schema: &LogSchema,
    projection: &[usize],
) -> Vec<(Vec<Column>, Vec<usize>)> {
    let mut sets: Vec<(Vec<Column>, Vec<usize>)> = Vec::new();
    let cached = &mapping.candidates(Column::CachedTokens).0;
    let knows_cached = !origins(cached, log.schema(), Column::CachedTokens.kind()).is_empty();
    let derivable: Vec<(Column, Vec<Option<u64>>)> = projection
        .iter()
        .filter_map(|&index| match schema.meaning(index) {
            Meaning::Canonical(column) if column != Column::Failed && !derive::inputs(column).is_empty() => {
                Some(column)
            }
            _ => None,
        })
        .map(|column| {
            let origins = origins(&mapping.candidates(column).0, log.schema(), column.kind());
            // several origins or a nested one: the footer does not tell which rows have neither
            let nulls = match &origins[..] {
                [Origin { path, .. }] if path.len() == 1 => log.null_counts(&path[0]),
                _ => None,
            };
            (column, nulls.unwrap_or_default())
        })
        .collect();
    for group in 0..log.footer.metadata().num_row_groups() {
        let is_derived = |(column, nulls): &&(Column, Vec<Option<u64>>)| match column {
            // where nothing is known of cached tokens, nothing is added
            Column::InputTokens => knows_cached,
            _ => nulls.get(group).copied().flatten() != Some(0),
        };
        let derived: Vec<Column> = derivable.iter().filter(is_derived).map(|(column, _)| *column).collect();
        match sets.iter_mut().find(|(other, _)| *other == derived) {
            Some((_, groups)) => groups.push(group),
            None => sets.push((derived, vec![group])),
        }
    }
    sets
}

/// A file cut into runs of row groups, some for every thread, so that all threads end together.
fn pieces(log: &ParquetLog, groups: &[usize], partitions: usize) -> Vec<PartitionedFile> {
    let all = log.footer.metadata().num_row_groups();
    let run = groups.len().div_ceil(partitions * 8).max(1);
    groups
        .chunks(run)
        .map(|run| {
            let mut access = ParquetAccessPlan::new_none(all);
            run.iter().for_each(|&group| access.set(group, RowGroupAccess::Scan));
            PartitionedFile::new(log.path.to_string_lossy().trim_start_matches('/'), log.size).with_extension(access)
        })
        .collect()
}

/// The aliases that a file's schema has, as origins.
fn origins(candidates: &[crate::record::alias::Alias], schema: &Schema, kind: Kind) -> Vec<Origin> {
    let present = candidates.iter().filter(|alias| field(schema, &alias.path).is_some());
    present.map(|alias| Origin { path: alias.path.clone(), unit: alias.unit.or(Mapping::default_unit(kind)) }).collect()
}

fn field<'a>(schema: &'a Schema, path: &[String]) -> Option<&'a Field> {
    let (first, rest) = path.split_first()?;
    let mut field = schema.field_with_name(first).ok()?;
    for name in rest {
        let DataType::Struct(fields) = field.data_type() else { return None };
        field = fields.find(name)?.1;
    }
    Some(field)
}

fn column_plan(
    class: &Class,
    schema: &LogSchema,
    mapping: &Mapping,
    projection: &[usize],
    output: SchemaRef,
) -> ColumnPlan {
    let meanings = projection.iter().map(|&index| schema.meaning(index));
    let canonical = meanings.clone().filter_map(|meaning| match meaning {
        Meaning::Canonical(column) => Some(column),
        _ => None,
    });
    // derivation inputs are read only where something is derived
    let origins_of = |column: Column| origins(&mapping.candidates(column).0, &class.schema, column.kind());
    let needed = canonical.flat_map(|column| match column {
        _ if !class.derived.contains(&column) && column != Column::Failed => vec![column],
        // where no total can speak for the input, nothing of it need be read
        Column::InputTokens if origins_of(Column::TotalTokens).is_empty() => {
            vec![column, Column::CachedTokens, Column::CacheWriteTokens]
        }
        _ => derive::with_inputs([column]),
    });
    let errors = ERROR_KEYS.iter().filter(|key| class.schema.field_with_name(key).is_ok());
    let partition =
        |name: &str| class.file.partitions.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let outputs = meanings.map(|meaning| match meaning {
        Meaning::Canonical(column) => {
            let constant = match column {
                Column::SourceFile => class.file.name.clone(),
                Column::Role => mapping.role.clone(),
                column if matches!(column.kind(), Kind::Text | Kind::Id) => partition(column.name()),
                _ => None,
            };
            Output { meaning, kind: column.kind(), extra: Vec::new(), constant }
        }
        Meaning::Extra(index) => {
            let extra = &schema.extras[index];
            Output {
                meaning,
                kind: extra.kind,
                extra: origins(&extra_candidates(extra), &class.schema, extra.kind),
                constant: None,
            }
        }
        Meaning::Partition(index) => {
            Output { meaning, kind: Kind::Text, extra: Vec::new(), constant: partition(&schema.partitions[index]) }
        }
    });
    ColumnPlan {
        outputs: outputs.collect(),
        origins: needed.map(|column| (column, origins_of(column))).collect(),
        errors: errors.map(|key| Origin { path: vec![(*key).to_owned()], unit: None }).collect(),
        derived: class.derived.clone(),
        counts_times: !class.dated,
        zone: mapping.zone.clone(),
        schema: output,
    }
}

/// Parquet scan, then [`ColumnarExec`].
fn scan(
    columns: Arc<ColumnPlan>,
    schema: &SchemaRef,
    files: Vec<PartitionedFile>,
    reading: &Reading<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = Arc::new(datafusion::datasource::physical_plan::parquet::transform_schema_to_view(schema));
    let extras = columns.outputs.iter().flat_map(|output| &output.extra);
    let read = columns.origins.values().flatten().chain(&columns.errors).chain(extras);
    let mut indices: Vec<usize> = read.map(|origin| schema.index_of(&origin.path[0])).collect::<Result<_, _>>()?;
    indices.sort_unstable();
    indices.dedup();
    let reader = reading.reader.clone();
    let mut source = ParquetSource::new(TableSchema::from(schema.clone())).with_parquet_file_reader_factory(reader);
    if let Some(pruning) = reading.predicate.and_then(|predicate| pruning(predicate, &columns, &schema)) {
        // what the file's own columns rule out is no row of the table either
        source = source.with_predicate(pruning).with_pushdown_filters(reading.is_lookup);
    }
    let mut groups = vec![Vec::new(); reading.partitions.min(files.len()).max(1)];
    let count = groups.len();
    for (index, file) in files.into_iter().enumerate() {
        groups[index % count].push(file);
    }
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
        .with_file_groups(groups.into_iter().map(FileGroup::new).collect())
        .with_projection_indices(Some(indices))?
        .build();
    Ok(Arc::new(ColumnarExec::new(DataSourceExec::from_data_source(config), columns)))
}

/// The parts of a predicate that physical columns can answer, for skipping row groups and pages.
///
/// Only comparisons that a missing value fails are taken: a column that is cleaned (words for nothing become null) can
/// lack values that the file has, but never the other way round. Derived columns are left out: a value that the file
/// lacks may still match.
fn pruning(predicate: &Arc<dyn PhysicalExpr>, columns: &ColumnPlan, schema: &Schema) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = datafusion::physical_expr::split_conjunction(predicate);
    let physical: Vec<_> = parts.into_iter().filter_map(|part| physical(part, columns, schema)).collect();
    (!physical.is_empty()).then(|| conjunction(physical))
}

fn physical(part: &Arc<dyn PhysicalExpr>, columns: &ColumnPlan, schema: &Schema) -> Option<Arc<dyn PhysicalExpr>> {
    let mut expressible = true;
    let rewritten = Arc::clone(part).transform_down(|expression| {
        if let Some(column) = expression.downcast_ref::<ColumnExpr>() {
            return match physical_column(&columns.outputs[column.index()], columns, schema) {
                Some(physical) => Ok(Transformed::new(physical, true, TreeNodeRecursion::Jump)),
                None => {
                    expressible = false;
                    Ok(Transformed::no(expression))
                }
            };
        }
        if compares_nothing(&expression, columns) {
            return Ok(Transformed::new(lit(false), true, TreeNodeRecursion::Jump));
        }
        use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, Or};
        let plain = match (expression.downcast_ref::<BinaryExpr>(), expression.downcast_ref::<InListExpr>()) {
            (Some(binary), _) => matches!(binary.op(), And | Or | Eq | Lt | LtEq | Gt | GtEq),
            (_, Some(list)) => !list.negated(),
            _ => expression.is::<Literal>() || expression.is::<CastExpr>(),
        };
        expressible &= plain;
        Ok(Transformed::no(expression))
    });
    let rewritten = rewritten.ok().filter(|_| expressible)?.data;
    rewritten.transform_up(without_false).ok().map(|rewritten| rewritten.data)
}

/// Whether a comparison is with a column that the file has not, nor anything to derive it from, and so holds for no row.
fn compares_nothing(expression: &Arc<dyn PhysicalExpr>, columns: &ColumnPlan) -> bool {
    let is_comparison = match (expression.downcast_ref::<BinaryExpr>(), expression.downcast_ref::<InListExpr>()) {
        (Some(binary), _) => !matches!(binary.op(), Operator::And | Operator::Or),
        (_, list) => list.is_some_and(|list| !list.negated()),
    };
    let is_nowhere = |column: &ColumnExpr| {
        let output = &columns.outputs[column.index()];
        let Meaning::Canonical(canonical) = output.meaning else { return false };
        let is_read = columns.origins.get(&canonical).is_some_and(|origins| !origins.is_empty());
        !is_read
            && output.constant.is_none()
            && derive::inputs(canonical).is_empty()
            && canonical != Column::SampleWeight
    };
    is_comparison
        && expression.children().iter().any(|child| child.downcast_ref::<ColumnExpr>().is_some_and(is_nowhere))
}

/// An alternative that never holds is none.
fn without_false(expression: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let Some(or) = expression.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == Operator::Or) else {
        return Ok(Transformed::no(expression));
    };
    let is_false = |side: &Arc<dyn PhysicalExpr>| {
        side.downcast_ref::<Literal>().is_some_and(|literal| *literal.value() == ScalarValue::Boolean(Some(false)))
    };
    match (is_false(or.left()), is_false(or.right())) {
        (true, _) => Ok(Transformed::yes(or.right().clone())),
        (_, true) => Ok(Transformed::yes(or.left().clone())),
        _ => Ok(Transformed::no(expression)),
    }
}

/// The file's column behind an output, where its values stand for themselves.
fn physical_column(output: &Output, columns: &ColumnPlan, schema: &Schema) -> Option<Arc<dyn PhysicalExpr>> {
    let Meaning::Canonical(column) = output.meaning else { return None };
    let [origin] = &columns.origins.get(&column)?[..] else { return None };
    if output.constant.is_some()
        || columns.derived.contains(&column)
        || column == Column::Failed
        || origin.path.len() > 1
    {
        return None;
    }
    let index = schema.index_of(&origin.path[0]).ok()?;
    let from = schema.field(index).data_type();
    let to = column.kind().data_type();
    let same_meaning = match column.kind() {
        Kind::Text | Kind::Id => from.is_string(),
        Kind::Count => from.is_integer(),
        Kind::Number => from.is_numeric(),
        Kind::Duration => from.is_numeric() && origin.unit == Mapping::default_unit(Kind::Duration),
        Kind::Time => match from {
            DataType::Timestamp(_, Some(_)) => true,
            DataType::Timestamp(_, None) => columns.zone == TimeZone::UTC,
            _ => false,
        },
        Kind::Flag => *from == DataType::Boolean,
        Kind::Money => false,
    };
    let physical: Arc<dyn PhysicalExpr> = Arc::new(ColumnExpr::new(&origin.path[0], index));
    same_meaning.then(|| if *from == to { physical } else { Arc::new(CastExpr::new(physical, to, None)) })
}

/// Turns a file's columns into canonical ones.
#[derive(Debug)]
struct ColumnarExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Arc<ColumnPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ColumnarExec {
    fn new(input: Arc<dyn ExecutionPlan>, columns: Arc<ColumnPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(columns.schema.clone()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, columns, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for ColumnarExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnarExec")
    }
}

impl ExecutionPlan for ColumnarExec {
    fn name(&self) -> &str {
        "ColumnarExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(children.swap_remove(0), self.columns.clone())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let mut counts = PublishedCounts::new(self.metrics.clone(), partition);
        let columns = self.columns.clone();
        let batches = input.map(move |batch| columns.read(&batch?, &mut counts).map_err(DataFusionError::from));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.columns.schema.clone(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
