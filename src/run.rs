//! One run of the program, from what is meant to what is printed.

mod check;
mod id;
mod money;
mod pack;
mod pricing;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, col, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionContext;
use datafusion::sql::unparser::expr_to_sql;
use indicatif::HumanBytes;
use jiff::{SignedDuration, Timestamp};

use crate::cli;
use crate::engine::mistake::SqlMistake;
use crate::engine::{self, OutOfMemory, Statement, session};
use crate::frame::{self, pivot::Axes};
use crate::generate;
use crate::inspect::{BREACH, Inspection, inspect, proposal};
use crate::interrupt;
use crate::output::{self, Destination, Outcome, Style, accounting_line};
use crate::profile::{self, Profile};
use crate::record::Column;
use crate::report::answer::{self, Question};
use crate::report::catalog::{Catalog, Query};
use crate::report::dimension::quoted;
use crate::report::header::{Header, Sampled};
use crate::report::mistake::ReportMistake;
use crate::report::parameter::{ParameterValue, instant};
use crate::report::template::{self, Filled};
use crate::report::{Accounting, Note, Report};
use crate::request::{
    Ask, Color, Format, Generation, Latency, Limits, Matching, Method, Parameter, Request, Task, TimeRange, Word,
};
use crate::source::LogFile;
use crate::source::logs::Logs;
use crate::source::requests::{COMPARED, Unit};

/// How a run that printed its answer ended; each has an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Done,
    /// `--strict`, and something was rejected or damaged.
    NotClean,
    /// A log differs from what `--expect` says, or a finding is as severe as `--fail-on` says.
    Breached,
    /// No record was used.
    NothingFound,
}

impl Ending {
    pub fn exit_code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Breached => 3,
            Ending::NotClean => 4,
            Ending::NothingFound => 5,
        }
    }
}

/// Does what was asked.
pub fn run(task: Task) -> anyhow::Result<Ending> {
    match task {
        Task::Report(request) => answer(&request),
        Task::Queries(listing) => {
            print(|out| list_queries(&Catalog::load(&listing.folders)?, listing.name.as_deref(), out))
        }
        Task::Profiles { catalog, shown } => print(|out| list_profiles(&catalog, shown.as_deref(), out)),
        Task::ProposeProfile(request) => {
            let spill = tempfile::tempdir().context("could not create a folder to spill into")?;
            let proposal = proposal(&request, &Logs::open(&request, spill.path())?)?;
            print(|out| Ok(out.write_all(proposal.as_bytes())?))
        }
        Task::Prices(pricing) => pricing::pricing(&pricing),
        Task::Identify(asked) => id::identify(&asked),
        Task::Generate(generation) => generate(&generation),
        Task::Completions(shell) => print(|out| Ok(cli::completions::write(shell, out)?)),
        Task::Man(command) => print(|out| Ok(cli::man::page(command.as_deref())?.render(out)?)),
    }
}

/// Answers a question about logs.
fn answer(request: &Request) -> anyhow::Result<Ending> {
    // Opened before the work, so that a bad path fails at once.
    let destination = Destination::open(request.output.file.as_deref(), request.output.format)?;
    let spill = tempfile::Builder::new()
        .prefix("infer-stats-spill-")
        .tempdir()
        .context("could not create a folder to spill into")?;
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(request.limits.threads).enable_all().build()?;
    let (unfinished, spilled) = (destination.unfinished(), spill.path().to_owned());
    interrupt::clean_up_on(threads.handle(), move || {
        unfinished.remove();
        // What cannot be removed now is in the system's folder for temporary files, which others clean.
        let _ = std::fs::remove_dir_all(&spilled);
    });

    let logs = Logs::open(request, spill.path())?;
    check_outputs(request, &logs)?;
    let Inspection { mut report, breached } = match &request.ask {
        Ask::Inspect { expect } if !prints_records(request) => inspect(request, &logs, expect.as_deref())?,
        Ask::Pack { prices } => {
            let pack = pack::pack(prices.as_deref(), request, &logs, spill.path());
            let (parts, source) = threads.block_on(pack)?;
            output::write_document(parts, destination)?;
            return Ok(ending(request, &source, true));
        }
        Ask::Trace(question) => threads.block_on(trace::trace(question, request, &logs, spill.path()))?,
        ask => {
            let mut report = threads.block_on(async {
                match ask {
                    Ask::Check { policy, prices } => {
                        check::check(policy, prices.as_deref(), request, &logs, spill.path()).await
                    }
                    _ => self::ask(request, &logs, spill.path()).await,
                }
            })?;
            let breached = report.has_finding_to_fail_on()?;
            Inspection { report, breached }
        }
    };
    if let Some(path) = &request.rejects {
        logs.rejects.write_all(&logs.files, path)?;
    }
    if let Some(folder) = &request.output.explode {
        explode(&mut report, folder, request, &logs)?;
    }
    let ending = show(&mut report, request, destination)?;
    Ok(if breached && ending != Ending::NotClean { Ending::Breached } else { ending })
}

/// Writes a statement for each of those whom the rows concern.
fn explode(report: &mut Report, folder: &Path, request: &Request, logs: &Logs) -> anyhow::Result<()> {
    /// Letters of a name that any file system takes.
    const LONGEST: usize = 60;
    let format = request.output.format;
    std::fs::create_dir_all(folder).with_context(|| format!("could not create the folder {}", folder.display()))?;
    // two names that differ in case alone are one file on many disks
    let mut names = BTreeSet::new();
    for mut statement in report.statements()? {
        let label = statement.of.as_deref().unwrap_or("unknown");
        let letter = |letter: char| if letter.is_alphanumeric() || letter == '_' { letter } else { '-' };
        let plain: String = label.chars().take(LONGEST).map(letter).collect();
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut free =
            std::iter::once(plain.clone()).chain(numbered).filter(|name| !names.contains(&name.to_lowercase()));
        let Some(name) = free.next() else { continue };
        let path = folder.join(format!("{name}.{}", format.ending()));
        names.insert(name.to_lowercase());
        let mistake = || ReportMistake::OutputIsAnInput { path: path.display().to_string(), what: "statements" };
        anyhow::ensure!(!is_input(&path, request, logs), mistake());
        let destination = Destination::open(Some(&path), format)?;
        output::write(&mut statement.report, format, Style::default(), destination)?;
    }
    Ok(())
}

/// A report must not replace a file that it answers from, nor the rejects the report.
fn check_outputs(request: &Request, logs: &Logs) -> Result<(), ReportMistake> {
    let outputs = [(request.output.file.as_deref(), "report"), (request.rejects.as_deref(), "rejected records")];
    for (path, what) in outputs.into_iter().filter_map(|(path, what)| Some((path?, what))) {
        if is_input(path, request, logs) {
            return Err(ReportMistake::OutputIsAnInput { path: path.display().to_string(), what });
        }
    }
    match (&request.output.file, &request.rejects) {
        (Some(report), Some(rejects)) if report == rejects => Err(ReportMistake::OneFileForTwo),
        _ => Ok(()),
    }
}

/// Whether a file is a log, the price book, or one that a parameter names.
fn is_input(path: &Path, request: &Request, logs: &Logs) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let target = resolved(path);
    let is_log = |file: &Arc<LogFile>| file.input.path().is_some_and(|log| resolved(log) == target);
    let given: &[Parameter] = match &request.ask {
        Ask::Report { parameters, .. } | Ask::Run { parameters, .. } => parameters,
        _ => &[],
    };
    let is_given = |parameter: &Parameter| resolved(Path::new(&parameter.value)) == target;
    let is_book = request.money.book.as_deref().is_some_and(|book| resolved(book) == target);
    let is_ids = match &request.ask {
        Ask::Trace(trace) => trace.ids_file.as_deref().is_some_and(|ids| resolved(ids) == target),
        _ => false,
    };
    path.is_file() && (is_book || is_ids || logs.files.iter().any(is_log) || given.iter().any(is_given))
}

/// Whether `inspect` prints the records as they were read, rather than what they hold.
fn prints_records(request: &Request) -> bool {
    request.ask == Ask::Inspect { expect: None } && request.output.format == Format::Jsonl
}

/// Runs the question's statement over the logs.
async fn ask(request: &Request, logs: &Logs, spill: &Path) -> anyhow::Result<Report> {
    logs.sightings.forget(&request.limits);
    // Records are printed in the order of the logs, which one thread keeps.
    let limits = if prints_records(request) { Limits { threads: 1, ..request.limits } } else { request.limits };
    let context = session::session(&limits, spill)?;
    let catalog = Catalog::load(&request.queries)?;
    let (query, given) = asked(request, &catalog)?;
    if let Some(query) = query.filter(|query| query.header.is_of_months) {
        let refuse = |flag| ReportMistake::WholeMonths { report: query.name.clone(), flag };
        anyhow::ensure!(request.predicate.is_none(), refuse("--where"));
        anyhow::ensure!(request.time.is_whole_months(&request.zone), refuse("--since and --until"));
    }
    if let (Some(query), Some(file)) = (query.filter(|query| query.header.is_kept), &request.output.file) {
        let (path, report) = (file.display().to_string(), query.name.clone());
        anyhow::ensure!(!file.exists(), ReportMistake::AlreadyKept { path, report });
    }
    let range = range(request, query, &given);
    let mut requests = [Unit::Request, Unit::Attempt].map(|unit| logs.requests(unit, margin(range), request));
    let subject = match query {
        Some(query) if query.header.is_of_money() => requests[1].schema(),
        _ if request.merges => requests[0].schema(),
        _ => logs.schema.arrow.clone(),
    };
    let predicate = predicate(&context, request, range, &subject)?;
    requests.iter_mut().for_each(|table| table.predicate = predicate.clone());
    // what a condition says of whole requests alone, no record can be asked
    let is_of_records = |predicate: &Expr| {
        predicate.column_refs().iter().all(|column| logs.schema.arrow.field_with_name(&column.name).is_ok())
    };
    let of_records = predicate.filter(is_of_records).or_else(|| between(range));
    let (events, tokens) = (logs.events(between(range)), logs.tokens(between(range)));
    session::register_logs(&context, logs.table(of_records), requests, events, tokens).await?;
    if request.fixes_skew {
        // one look at all requests, before the question itself
        let sql = "SELECT count(timestamp) FROM requests".to_owned();
        let frame = engine::plan(&context, &Statement::new(sql, Vec::new())).await?;
        engine::run(&context, frame, logs.bytes(), true).await?;
        logs.skews.correct();
    }
    if request.matching == Matching::AsOf {
        let records = engine::collect(&context, logs.table(margin(range)), &COMPARED).await?;
        logs.matches.search(&records, &request.profiles.ids(), &logs.skews);
    }
    if let Some(query) = query {
        return ask_query(query, given, request, logs, &context).await;
    }
    match &request.ask {
        Ask::Latency(_)
        | Ask::Report { .. }
        | Ask::Run { .. }
        | Ask::Check { .. }
        | Ask::Trace(_)
        | Ask::Pack { .. } => {
            anyhow::bail!("a question of several queries is asked one by one")
        }
        Ask::Sql { query } => {
            let statement = Statement::new(query.clone(), template::standing_values(request));
            let header = Header { title: "SQL".to_owned(), ..Header::default() };
            let question =
                Question { name: "sql", title: "SQL", header: &header, dimensions: &[], values: &BTreeMap::new() };
            ask_statement(&question, &statement, request, logs, &context).await
        }
        Ask::Inspect { .. } => {
            let sort = request
                .sort
                .as_ref()
                .map_or(String::new(), |sort| format!("ORDER BY {} {}", quoted(&sort.column), sort.order.word()));
            let sql = format!("SELECT * FROM logs {sort} {}", template::limit(request.top));
            let statement = Statement::new(sql, Vec::new());
            let header = Header { title: "Records".to_owned(), ..Header::default() };
            let question = Question {
                name: "inspect",
                title: "Records",
                header: &header,
                dimensions: &[],
                values: &BTreeMap::new(),
            };
            ask_statement(&question, &statement, request, logs, &context).await
        }
    }
}

/// Values of parameters by name.
type Given = Vec<(String, ParameterValue)>;

/// The query that a question names, and the values that it gives.
fn asked<'a>(request: &Request, catalog: &'a Catalog) -> anyhow::Result<(Option<&'a Query>, Given)> {
    Ok(match &request.ask {
        Ask::Latency(latency) => (Some(catalog.find("latency")?), latency_values(latency)),
        Ask::Report { name, parameters } | Ask::Run { name, parameters } => {
            let query = catalog.find(name)?;
            let values = parameters.iter().map(|given| {
                let declared = query.parameter(&given.name)?;
                Ok((given.name.clone(), declared.value(&given.value, &request.clock())?))
            });
            (Some(query), values.collect::<anyhow::Result<_>>()?)
        }
        Ask::Sql { .. } | Ask::Inspect { .. } | Ask::Check { .. } | Ask::Trace(_) | Ask::Pack { .. } => {
            (None, Vec::new())
        }
    })
}

/// The time whose records are read: that which was asked for, with the period before it where the question looks back.
fn range(request: &Request, query: Option<&Query>, given: &[(String, ParameterValue)]) -> TimeRange {
    let flag = query.and_then(|query| query.header.lookback.as_ref());
    let is_set = |(name, value): &(String, ParameterValue)| Some(name) == flag && *value == ParameterValue::Flag(true);
    match request.time.before(&request.zone) {
        Some(before) if given.iter().any(is_set) => TimeRange { since: Some(before), ..request.time },
        _ => request.time,
    }
}

async fn ask_query(
    query: &Query,
    values: Vec<(String, ParameterValue)>,
    request: &Request,
    logs: &Logs,
    context: &SessionContext,
) -> anyhow::Result<Report> {
    let subject = match () {
        () if query.header.is_of_money() => "attempts",
        () if request.merges => "requests",
        () => "logs",
    };
    let subject = context.table_provider(subject).await.map_err(engine::in_words)?;
    let table = DFSchema::try_from(subject.schema())?;
    let check = |sql: &str| -> anyhow::Result<String> {
        let checked = condition(context, sql, &table).with_context(|| format!("where {sql}"))?;
        Ok(expr_to_sql(&checked).map_err(engine::in_words)?.to_string())
    };
    let values = values.into_iter().map(|(name, value)| Ok((name, value.checked(check)?)));
    let values = values.collect::<anyhow::Result<Vec<_>>>()?;
    let values = match &request.pivot {
        Some(pivot) => {
            let by = vec![pivot.down.clone(), pivot.across.clone()];
            let others = values.into_iter().filter(|(name, _)| name != "by");
            others.chain([("by".to_owned(), ParameterValue::Dimensions(by))]).collect()
        }
        None => values,
    };
    let mut filled = Filled::new(query, values, request)?;
    let columns: Vec<&str> = logs.schema.arrow.fields().iter().map(|field| field.name().as_str()).collect();
    filled.check_dimensions(&columns)?;
    let mut exemption = String::new();
    let mut known = money::Known::default();
    if query.header.is_of_money() {
        known = money::register(context, &query.header, &filled.values, request)?;
        exemption = money::exemption(&request.money.not_billed, check)?;
    }
    let mut statement = filled.statement(request, &exemption)?;
    statement.values.push(("book".to_owned(), ScalarValue::Utf8(known.label.clone())));
    if logs.are_sampled() {
        match query.header.sampled {
            Sampled::Weighted => {
                refuse_unknown_rates(context, logs, request).await?;
                statement.weighs = true;
            }
            Sampled::AsRecords => {}
            Sampled::Refused => return Err(ReportMistake::NotOfASample { report: query.name.clone() }.into()),
        }
    }
    let question = Question::of(&filled);
    let mut report = ask_statement(&question, &statement, request, logs, context).await?;
    report.parameters.extend(known.label.map(|book| ("prices".to_owned(), book.into())));
    report.notes.extend(known.notes);
    let (Some(pivot), [down, across]) = (&request.pivot, question.dimensions) else { return Ok(report) };
    let of_its_own = || ReportMistake::NoMeasureOfItsOwn { report: query.name.clone() };
    let measure = pivot.measure.as_ref().or(query.header.pivot.as_ref()).ok_or_else(of_its_own)?;
    frame::pivot::pivot(report, Axes { down, across, measure })
}

async fn ask_statement(
    question: &Question<'_>,
    statement: &Statement,
    request: &Request,
    logs: &Logs,
    context: &SessionContext,
) -> anyhow::Result<Report> {
    if request.output.show_sql {
        let steps = statement.steps.iter().map(|step| format!("{}\n-- step: {}\n", step.sql, step.table));
        output::say(steps.collect::<String>() + &statement.sql);
    }
    let memory = || format!("--memory {} is too little", HumanBytes(request.limits.memory.unwrap_or_default()));
    let mut answer = engine::answer(context, statement, logs.bytes(), request.output.quiet).await;
    if answer.is_ok() && logs.sightings.settle() {
        answer = engine::answer(context, statement, logs.bytes(), request.output.quiet).await;
    }
    let answer = answer.map_err(|error| match statement.stored.first() {
        _ if error.is::<OutOfMemory>() => error.context(memory()),
        Some((_, path)) if error.is::<SqlMistake>() => {
            error.context(format!("is {} what this report compares with?", path.display()))
        }
        _ => error,
    })?;
    let mut report = answer::report(question, answer, logs, request)?;
    if statement.weighs {
        // its counts are no longer those of values
        report.notes.retain(|note| note.code != "few_values");
    }
    report.notes.extend(logs.are_sampled().then(|| sample_note(statement.weighs)));
    report.notes.extend(several_roles(request, logs, question.header));
    Ok(report)
}

/// A total that some records are part of, nobody knows how often, is no total. What can be read only once is not looked at
/// before: there such totals are null.
async fn refuse_unknown_rates(context: &SessionContext, logs: &Logs, request: &Request) -> anyhow::Result<()> {
    if !logs.files.iter().all(|file| file.input.is_file()) {
        return Ok(());
    }
    let table = if request.merges { "requests" } else { "logs" };
    let weight = Column::SampleWeight.name();
    let counting = Statement::new(format!("SELECT count(*) FROM {table} WHERE {weight} IS NULL"), Vec::new());
    let mut answer = engine::run(context, engine::plan(context, &counting).await?, logs.bytes(), true).await?;
    let unknown: i64 = answer
        .rows
        .batches()?
        .map(|batch| Ok(batch?.column(0).as_primitive::<Int64Type>().value(0)))
        .sum::<anyhow::Result<i64>>()?;
    anyhow::ensure!(unknown == 0, ReportMistake::UnknownRate { count: unknown });
    Ok(())
}

/// Records of a request in the logs of several roles are each counted, unless they are put together.
fn several_roles(request: &Request, logs: &Logs, header: &Header) -> Option<Note> {
    let is_of_requests = !matches!(request.ask, Ask::Sql { .. } | Ask::Inspect { .. })
        && header.sampled != Sampled::AsRecords
        && !header.is_of_money();
    let roles = logs.roles();
    (is_of_requests && !request.merges && roles.len() > 1).then(|| Note {
        code: "several_roles".to_owned(),
        text: format!(
            "the logs of {} are read, and a request that stands in several of them is counted in each: --requests counts it once",
            roles.join(" and ")
        ),
        count: None,
    })
}

fn sample_note(weighs: bool) -> Note {
    let text = match weighs {
        true => {
            "the logs are a sample: counts, sums and percentiles are estimates in which each record stands for as \
                 many requests as its sample_weight says; different values are counted as far as they were sampled"
        }
        false => "the logs are a sample, and records are counted here, not the requests that they stand for",
    };
    Note { code: "sampled".to_owned(), text: text.to_owned(), count: None }
}

/// The time range and `--where` as one condition on rows of a table; a record without a timestamp is outside every range.
fn predicate(
    context: &SessionContext,
    request: &Request,
    range: TimeRange,
    subject: &SchemaRef,
) -> anyhow::Result<Option<Expr>> {
    let table = DFSchema::try_from(subject.clone())?;
    let typed = request.predicate.as_ref().map(|sql| {
        let expression = condition(context, sql, &table).with_context(|| format!("--where '{sql}'"))?;
        // what the planner would do to a query's own condition: `now()` becomes an instant, constants are computed
        let context = SimplifyContext::builder().with_schema(Arc::new(table.clone())).with_current_time().build();
        let simplified = ExprSimplifier::new(context).simplify(expression).map_err(engine::in_words);
        simplified.with_context(|| format!("--where '{sql}'"))
    });
    Ok([between(range), typed.transpose()?].into_iter().flatten().reduce(Expr::and))
}

/// A condition on one record of a table.
fn condition(context: &SessionContext, sql: &str, table: &DFSchema) -> anyhow::Result<Expr> {
    let expression = context.parse_sql_expr(sql, table).map_err(engine::in_words)?;
    let is_of_many = expression.exists(|part| Ok(is_of_many_records(part))).map_err(engine::in_words)?;
    anyhow::ensure!(!is_of_many, ReportMistake::NotOfOneRecord { sql: sql.to_owned() });
    let is_condition = expression.get_type(table).map_err(engine::in_words)? == DataType::Boolean;
    anyhow::ensure!(is_condition, ReportMistake::NoCondition { sql: sql.to_owned() });
    Ok(expression)
}

/// Records that may be part of a request in a time range: those around it by more than any clock is wrong, and those
/// without a time.
fn margin(range: TimeRange) -> Option<Expr> {
    const MARGIN: SignedDuration = SignedDuration::from_hours(26);
    let beyond = |time: Timestamp, by: SignedDuration| time.checked_add(by).unwrap_or(time);
    let since = range.since.map(|since| beyond(since, -MARGIN));
    let until = range.until.map(|until| beyond(until, MARGIN));
    between(TimeRange { since, until }).map(|near| near.or(col(Column::Timestamp.name()).is_null()))
}

/// Whether a row's time is in a range; None where the range is open at both ends.
fn between(range: TimeRange) -> Option<Expr> {
    let time = || col(Column::Timestamp.name());
    let since = range.since.map(|since| time().gt_eq(lit(instant(Some(since)))));
    let until = range.until.map(|until| time().lt(lit(instant(Some(until)))));
    [since, until].into_iter().flatten().reduce(Expr::and)
}

fn is_of_many_records(expression: &Expr) -> bool {
    use Expr::{AggregateFunction, Exists, InSubquery, ScalarSubquery, Unnest, WindowFunction};
    matches!(
        expression,
        AggregateFunction(_) | Unnest(_) | WindowFunction(_) | ScalarSubquery(_) | InSubquery(_) | Exists(_)
    )
}

fn latency_values(latency: &Latency) -> Vec<(String, ParameterValue)> {
    vec![
        ("by".to_owned(), ParameterValue::Dimensions(latency.by.clone())),
        ("metrics".to_owned(), ParameterValue::Metrics(latency.metrics.clone())),
        ("stages".to_owned(), ParameterValue::Flag(latency.stages)),
        ("percentiles".to_owned(), ParameterValue::Percentiles(latency.percentiles.clone())),
        ("nearest".to_owned(), ParameterValue::Flag(latency.method == Method::Nearest)),
        ("min_count".to_owned(), ParameterValue::Integer(i64::try_from(latency.min_count).unwrap_or(i64::MAX))),
        ("include_failed".to_owned(), ParameterValue::Flag(latency.include_failed)),
    ]
}

/// Prints the report, and on stderr what stands beside it.
fn show(report: &mut Report, request: &Request, destination: Destination) -> anyhow::Result<Ending> {
    let terminal = destination.is_terminal();
    let width = destination.terminal_width();
    let color = match request.output.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
    };
    let outcome = output::write(report, request.output.format, Style { width, color }, destination)?;
    if outcome == Outcome::ReaderGone {
        return Ok(Ending::Done);
    }
    // Formats for machines hold rows alone; what must be known beside them goes to stderr, the reason of a failure always.
    let is_told = |note: &&Note| match request.output.format {
        Format::Table | Format::Markdown => note.code == BREACH && report.is_of_lives(),
        Format::Json | Format::Junit | Format::Github => note.code == BREACH,
        _ => !request.output.quiet || note.code == BREACH,
    };
    report.notes.iter().filter(is_told).for_each(|note| output::say(output::note_line(note)));
    if !request.output.quiet {
        output::say(accounting_line(&report.source, &report.zone));
    }
    let ending = ending(request, &report.source, report.reads_logs);
    Ok(if report.nothing_found && ending == Ending::Done { Ending::NothingFound } else { ending })
}

/// How a run over these records ends.
fn ending(request: &Request, source: &Accounting, reads_logs: bool) -> Ending {
    if request.strict && source.rejected + source.damaged_files > 0 {
        Ending::NotClean
    } else if reads_logs && source.used == 0 {
        Ending::NothingFound
    } else {
        Ending::Done
    }
}

/// Prints text of the program's own; a reader that closes early got what it wanted.
fn print(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<Ending> {
    let mut out = Vec::new();
    write(&mut out)?;
    match io::stdout().write_all(&out) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write to standard output")
        }
        _ => Ok(Ending::Done),
    }
}

/// All queries in a line each, or one as it is.
fn list_queries(catalog: &Catalog, name: Option<&str>, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(name) = name {
        return Ok(out.write_all(catalog.find(name)?.text.as_bytes())?);
    }
    let width = catalog.all().iter().map(|query| query.name.len()).max().unwrap_or(0);
    for query in catalog.all() {
        writeln!(out, "{:width$}  {}", query.name, query.header.question)?;
    }
    Ok(())
}

/// All profiles in a line each, or one as it is.
fn list_profiles(catalog: &profile::Catalog, shown: Option<&Profile>, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(profile) = shown {
        return Ok(out.write_all(profile.text.as_bytes())?);
    }
    let width = catalog.all().iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let mut profiles: Vec<&Arc<Profile>> = catalog.all().iter().collect();
    profiles.sort_by_key(|profile| (profile.is_envelope(), &profile.name));
    for profile in profiles {
        let kind = if profile.is_envelope() { " (envelope)" } else { "" };
        writeln!(out, "{:width$}  {}{kind}", profile.name, profile.title)?;
    }
    Ok(())
}

/// Writes made-up logs and says on stderr what they are.
fn generate(generation: &Generation) -> anyhow::Result<Ending> {
    let signals = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let partial = generate::partial_files(generation);
    interrupt::clean_up_on(signals.handle(), move || {
        // a file that is not there yet needs no removing
        partial.iter().for_each(|path| drop(std::fs::remove_file(path)));
    });
    for file in generate::generate(generation)?.files {
        output::say(format_args!("{}: {} rows, {} bytes", file.path.display(), file.rows, file.bytes));
    }
    Ok(Ending::Done)
}
