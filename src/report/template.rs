//! From a query file to the statement that runs: dimensions and metrics put in by MiniJinja, values bound by name.

use std::collections::BTreeMap;

use anyhow::Context;
use datafusion::common::ScalarValue;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, context};

use crate::engine::{Statement, Step};
use crate::report::catalog::{self, Query};
use crate::report::dimension::{self, DimensionSql, quoted};
use crate::report::parameter::{self, ParameterValue};
use crate::request::{Dimension, Order, Request, Sort, WeekStart, Word};

/// Ends a query whose rows the rest of the file reads as a table, so that the logs are read once.
const STEP: &str = "-- step:";

/// The end of the answer, over the columns of `logs`; unknown where an absurd duration would lead beyond the years that there are.
const ENDED: &str = "coalesce(completed_at, CASE WHEN abs(total_latency_ms) < 3e12 AND arrow_cast(timestamp, 'Int64') < 6200000000000000000 \
    THEN timestamp + arrow_cast(TRY_CAST(round(total_latency_ms * 1000000) AS BIGINT), 'Duration(Nanosecond)') END)";

/// A query with values for its parameters.
#[derive(Debug)]
pub struct Filled<'a> {
    pub query: &'a Query,
    /// By name, every parameter of the header.
    pub values: BTreeMap<String, ParameterValue>,
}

impl<'a> Filled<'a> {
    /// Takes `given` values and the header's defaults for the rest; a name that the header lacks is an error.
    pub fn new(query: &'a Query, given: Vec<(String, ParameterValue)>, request: &Request) -> anyhow::Result<Self> {
        let mut values = BTreeMap::new();
        for (name, value) in given {
            values.insert(query.parameter(&name)?.name.clone(), value);
        }
        for parameter in &query.header.parameters {
            if !values.contains_key(&parameter.name) {
                let default = parameter.value(&parameter.default, &request.clock());
                let default = match default {
                    Err(error) if parameter.default == parameter::REQUIRED => return Err(error),
                    default => default
                        .with_context(|| format!("the default of `{}` in {} is wrong", parameter.name, query.origin))?,
                };
                values.insert(parameter.name.clone(), default);
            }
        }
        Ok(Self { query, values })
    }

    /// Spells the dimensions that are columns as the schema does; one that is neither word nor column is a mistake. One
    /// that is called like a column of the answer is shown as `by_...`.
    pub fn check_dimensions(&mut self, columns: &[&str]) -> anyhow::Result<()> {
        let header = &self.query.header;
        for value in self.values.values_mut() {
            if let ParameterValue::Dimensions(dimensions) = value {
                let checked = std::mem::take(dimensions).into_iter().map(|dimension| dimension.in_schema(columns));
                *dimensions = checked.collect::<Result<_, _>>()?;
                for dimension in dimensions.iter_mut().filter(|dimension| header.column(&dimension.name).is_some()) {
                    dimension.name = format!("by_{}", dimension.name);
                }
            }
        }
        Ok(())
    }

    /// The dimensions that the answer's first columns are.
    pub fn dimensions(&self) -> &[Dimension] {
        self.values
            .values()
            .find_map(|value| match value {
                ParameterValue::Dimensions(dimensions) => Some(dimensions.as_slice()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The statement to run, in which calls are not billed where `exemption`, an expression, has a reason.
    pub fn statement(&self, request: &Request, exemption: &str) -> anyhow::Result<Statement> {
        let dimensions: Vec<DimensionSql> = self
            .dimensions()
            .iter()
            .enumerate()
            .map(|(index, by)| dimension::sql(by, index + 1, request.week_start))
            .collect();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        // a part ends with a line, so that the next one does not go on with it
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        environment.set_syntax(syntax.build()?);
        for (name, text) in catalog::parts() {
            environment.add_template(name, text).with_context(|| format!("the template of `{name}` is wrong"))?;
        }
        let keys: Vec<String> = dimensions.iter().map(|dimension| dimension.key.clone()).collect();
        environment.add_function("same_keys", move |left: String, right: String| same_keys(&keys, &left, &right));
        let exemption = exemption.to_owned();
        environment.add_function("charge_at", move |at: String| charge_at(&at, &exemption));
        let values: BTreeMap<&str, minijinja::Value> = self
            .values
            .iter()
            .map(|(name, value)| (name.as_str(), template_value(value, request.week_start)))
            .collect();
        let size = self.query.header.totals.first().map(String::as_str);
        let order = order_of(&dimensions, request.sort.as_ref(), size.filter(|_| request.top.is_some()));
        let limit = limit(request.top);
        let logs = if request.merges { "requests" } else { "logs" };
        let fragments = fragments(&dimensions, order_of(&[], request.sort.as_ref(), None));
        let dimensions: minijinja::Value = dimensions.iter().map(DimensionSql::context).collect();
        let is_narrowed = request.predicate.is_some();
        let standing = context! { dimensions, order, limit, logs, is_narrowed, attempts => "attempts" };
        let values = context! { ..standing, ..minijinja::Value::from(values), ..fragments };
        let rendered = environment.render_str(&self.query.text, values);
        let sql = rendered
            .with_context(|| format!("the template of `{}` ({}) is wrong", self.query.name, self.query.origin))?;
        let mut steps = Vec::new();
        let mut lines = Vec::new();
        for line in sql.lines() {
            match line.strip_prefix(STEP) {
                Some(table) => {
                    let sql = std::mem::take(&mut lines).join("\n");
                    steps.push(Step { table: table.trim().to_owned(), sql });
                }
                None if line.starts_with("--") || line.trim().is_empty() => {}
                None => lines.push(line),
            }
        }
        let bound = self.values.iter().flat_map(|(name, value)| value.bound(name));
        let values = bound.chain(standing_values(request)).collect();
        let stored = self.values.iter().filter_map(|(name, value)| match value {
            ParameterValue::Table(path) => Some((name.clone(), path.clone())),
            _ => None,
        });
        Ok(Statement { stored: stored.collect(), steps, sql: lines.join("\n"), values, weighs: false })
    }
}

/// Parts of a statement that many reports have. Lists end with a comma where they are not empty, so that more may follow; a
/// parameter of the same name comes before them.
fn fragments(dimensions: &[DimensionSql], sort: String) -> minijinja::Value {
    let list = |part: &dyn Fn(&DimensionSql) -> String| -> String {
        dimensions.iter().map(|dimension| part(dimension) + ", ").collect()
    };
    let keys = list(&|dimension| dimension.key.clone());
    let by_keys = |clause: &str| match keys.strip_suffix(", ") {
        Some(keys) => format!("{clause} BY {keys}"),
        None => String::new(),
    };
    context! {
        keyed => list(&|dimension| format!("{} AS {}", dimension.value, dimension.key)),
        labelled => list(&|dimension| format!("{} AS {}", dimension.label, dimension.name)),
        group_by => by_keys("GROUP"),
        partition_by => by_keys("PARTITION"),
        keys,
        sort,
        ended => ENDED,
    }
}

/// Whether rows of two tables are of one group, as a condition; groups without a value are one too.
fn same_keys(keys: &[String], left: &str, right: &str) -> String {
    let same: Vec<String> =
        keys.iter().map(|key| format!("({left}.{key} IS NOT DISTINCT FROM {right}.{key})")).collect();
    if same.is_empty() { "TRUE".to_owned() } else { same.join(" AND ") }
}

/// What the call upstream of a row of `attempts` costs at the prices of a time, as a struct.
fn charge_at(at: &str, exemption: &str) -> String {
    format!(
        "charge({at}, model_name, provider, service_tier, input_tokens, output_tokens, cached_tokens, cache_write_tokens, \
         cache_write_1h_tokens, reasoning_tokens, total_tokens, max_tokens, response_cache_hit, {exemption}, upper($currency))"
    )
}

/// Values that every statement may use: the request's buckets, error codes, zone and time range.
pub fn standing_values(request: &Request) -> Vec<(String, ScalarValue)> {
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
    let meanings = || request.errors.iter();
    vec![
        ("error_codes".to_owned(), parameter::texts(meanings().map(|(code, _)| Some(code.as_str())))),
        ("error_names".to_owned(), parameter::texts(meanings().map(|(_, meaning)| meaning.name.as_deref()))),
        ("error_stages".to_owned(), parameter::texts(meanings().map(|(_, meaning)| meaning.stage.as_deref()))),
        ("input_edges".to_owned(), parameter::integers(&request.buckets.input)),
        ("output_edges".to_owned(), parameter::integers(&request.buckets.output)),
        ("total_edges".to_owned(), parameter::integers(&request.buckets.total)),
        ("zone".to_owned(), text(&request.zone.name)),
        ("week_start".to_owned(), text(request.week_start.word())),
        ("since".to_owned(), parameter::instant(request.time.since)),
        ("until".to_owned(), parameter::instant(request.time.until)),
        ("before".to_owned(), parameter::instant(request.time.before(&request.zone))),
        ("now".to_owned(), parameter::instant(Some(request.now))),
    ]
}

fn template_value(value: &ParameterValue, week_start: WeekStart) -> minijinja::Value {
    match value {
        ParameterValue::Dimensions(dimensions) => {
            dimensions.iter().map(|by| dimension::sql(by, 0, week_start).context()).collect()
        }
        ParameterValue::Metrics(metrics) => {
            metrics.iter().map(|metric| context! { name => metric.word(), column => metric.column() }).collect()
        }
        ParameterValue::Percentiles(percentiles) => percentiles
            .iter()
            .map(|percentile| context! { name => percentile.name.clone(), fraction => percentile.fraction })
            .collect(),
        ParameterValue::Flag(flag) => (*flag).into(),
        ParameterValue::Integer(integer) => (*integer).into(),
        ParameterValue::Number(number) => (*number).into(),
        ParameterValue::Text(text) => text.clone().into(),
        ParameterValue::Condition(sql) => context! { condition => sql.clone() },
        ParameterValue::Time(time) => time.to_string().into(),
        ParameterValue::Span(milliseconds, _) => (*milliseconds).into(),
        ParameterValue::Replay(replay) => replay.text.clone().into(),
        ParameterValue::Table(path) | ParameterValue::Book(path) | ParameterValue::Bill(path) => {
            path.display().to_string().into()
        }
        ParameterValue::Unset => ().into(),
    }
}

/// `--top` as SQL; nothing where all rows are wanted. The engine counts rows in signed 64 bits.
pub fn limit(top: Option<u64>) -> String {
    top.map(|top| format!("LIMIT {}", top.min(i64::MAX as u64))).unwrap_or_default()
}

/// The order of the rows: as asked, else by the `size` of the groups, then by the dimensions, so that it is total.
fn order_of(dimensions: &[DimensionSql], sort: Option<&Sort>, size: Option<&str>) -> String {
    let mut terms = Vec::new();
    match sort {
        Some(sort) => {
            let direction = if sort.order == Order::Descending { "DESC" } else { "ASC" };
            terms.push(format!("{} {direction} NULLS LAST", quoted(&sort.column)));
        }
        // the top of a list is its largest groups, unless the user says by what
        None => terms.extend(size.map(|size| format!("{size} DESC NULLS LAST"))),
    }
    terms.extend(dimensions.iter().map(|dimension| format!("{} ASC NULLS LAST", dimension.key)));
    terms.iter().map(|term| format!("{term}, ")).collect()
}
