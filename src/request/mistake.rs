//! What a user can get wrong before any log is read, each as a sentence that says what to do.
//!
//! All lead to exit code 2.

use std::path::PathBuf;

use thiserror::Error;

/// A mistake in the command line, the environment or `infer-stats.toml`.
#[derive(Debug, Error)]
pub enum Mistake {
    #[error(
        "no logs named: give them as arguments (infer-stats latency logs/*.ndjson), in the environment \
         variable INFER_STATS_LOGS, or as `logs = [...]` in an infer-stats.toml in this folder or one above it"
    )]
    NoLogs,

    #[error("unknown {kind} `{word}`{hint} (it is one of: {words})")]
    UnknownWord { kind: &'static str, word: String, words: String, hint: String },

    #[error(
        "--pivot {text}: write the dimension of the rows, that of the columns, and perhaps the measure, as in \
         hour-of-day,input-bucket,p95_ms"
    )]
    NotAPivot { text: String },
    #[error("--pivot is for reports that group: `sql` and `inspect` do not")]
    PivotOfNoReport,
    #[error("--pivot says what to group by: drop --by")]
    PivotAndBy,

    // times
    #[error(
        "`{text}` is no time for {flag}: write 2025-06-01, 2025-06-01T08:30:00Z, 7d (before now), now, \
         today or yesterday"
    )]
    NotATime { flag: &'static str, text: String },
    #[error("{flag} {text} lies beyond the years that a time can have: give a shorter span or another date")]
    TimeOutOfRange {
        flag: &'static str,
        text: String,
        #[source]
        reason: jiff::Error,
    },
    #[error("--month {text} is no month: write the year and the month, as in 2025-06")]
    NotAMonth { text: String },
    #[error("--month already says where the time range starts and ends: drop --month, or --since and --until")]
    MonthWithRange,
    #[error("--since {since} is not before --until {until}: no time is left between them")]
    EmptyRange { since: String, until: String },
    #[error("unknown time zone `{name}`{hint} Write a name such as Asia/Shanghai, or an offset such as +08:00")]
    UnknownZone { name: String, hint: String },

    // money
    #[error(
        "could not read the price book {path}: name another with --prices, or in the config as `[prices] book = ...`"
    )]
    UnreadablePrices {
        path: PathBuf,
        #[source]
        reason: std::io::Error,
    },
    #[error(
        "the price book {book} is not the one that {lock} locks: restore it, or accept the new prices with \
         `infer-stats prices lock {book}`"
    )]
    PricesChanged { book: PathBuf, lock: PathBuf },
    #[error("`report` writes Markdown: drop --format, or ask the reports one by one")]
    PackIsMarkdown,
    #[error("`report` is one document: --explode is for the reports in it, as in infer-stats cost --explode DIR")]
    PackInOne,
    #[error("could not read the policy {path}")]
    UnreadablePolicy {
        path: PathBuf,
        #[source]
        reason: std::io::Error,
    },
    #[error("no price book: name one, or in the config as `[prices] book = \"prices.toml\"`")]
    NoPrices,
    #[error("`{text}` is no currency: write its three letters, as in USD")]
    NotACurrency { text: String },
    #[error("`{text}` is no pattern for names of models: write it as in gpt-4o*, with * for any letters")]
    NotAPattern { text: String },

    // record
    #[error("--map {text}: write canonical=path or canonical=path:unit, as in ttft_ms=timing.ttft:s")]
    NotAMap { text: String },
    #[error("cannot map {text}: there is no canonical column `{name}`{hint}")]
    UnknownCanonical { text: String, name: String, hint: String },
    #[error("cannot map {text}: `{name}` has no unit `{unit}`: {allowed}")]
    WrongUnit { text: String, name: String, unit: &'static str, allowed: &'static str },
    #[error("{flag} is about requests put together from their records: give --requests too")]
    NotOfRequests { flag: &'static str },
    #[error("--map names `{name}` twice: keep one of them")]
    MappedTwice { name: String },
    #[error("--column {text}: write name=path or name=path:type, as in region=labels.region:text")]
    NotAColumn { text: String },
    #[error("--column {text}: `{name}` must be letters, digits and `_`, and not start with a digit")]
    ColumnName { text: String, name: String },
    #[error("--column {text}: `{name}` is a column of every log already: use --map to say where it comes from")]
    ColumnTaken { text: String, name: String },
    #[error("--column names `{name}` twice: keep one of them")]
    ColumnTwice { name: String },
    #[error(
        "`{path}` is no path to a key: write keys joined by dots, and quote a key that holds a dot or a colon, \
         as in \"gen_ai.usage\".input_tokens"
    )]
    NotAPath { path: String },

    // report
    #[error("--by names `{name}` twice: keep one of them")]
    DimensionTwice { name: String },
    #[error("--by has an empty entry: write words joined by single commas, as in --by model,hour")]
    EmptyDimension,
    #[error("--by {word}: there is no such dimension or column{hint}")]
    UnknownDimension { word: String, hint: String },
    #[error("--percentiles {text}: write numbers from 0 to 100, as in 50,95,99.9")]
    NotAPercentile { text: String },
    #[error("{flag} {text}: write whole numbers above 0, each larger than the one before, as in 500,2000,8000")]
    BadBuckets { flag: &'static str, text: String },
    #[error("--sort {text}: write a column of the report, with :asc or :desc after it if needed, as in p99_ms:desc")]
    NotASort { text: String },
    #[error("--where is empty: write an SQL predicate, as in --where \"model_name = 'demo'\", or leave it out")]
    EmptyPredicate,
    #[error("the SQL is empty: write a query, as in \"SELECT count(*) FROM logs\"")]
    EmptyQuery,
    #[error("--what-if {text}: write infinite, or limits as in ttl=10m,blocks=100000,block=16")]
    NotAReplay { text: String },
    #[error("--{flag} {text}: write a length of time as in 30s, 5m, 24h or 7d")]
    NotASpan { flag: String, text: String },
    #[error("--param {text}: write name=value, as in --param model=demo")]
    NotAParameter { text: String },
    #[error("--param names `{name}` twice: keep one of them")]
    ParameterTwice { name: String },

    // trace
    #[error("no id: name one, as in infer-stats trace req-abc123 logs/, or a file of ids with --ids-from")]
    NoId,
    #[error("no ids: name them (infer-stats id req_20250601_00042), or send them to standard input, one a line")]
    NoIds,
    #[error("could not read the ids of {}: {reason}", path.display())]
    UnreadableIds { path: PathBuf, reason: std::io::Error },
    #[error("{flag}: a trace is no table of many requests, and says nothing about that: drop it")]
    NotOfATrace { flag: &'static str },
    #[error("--format {format} is for `trace`: write table, markdown, csv, json, jsonl or parquet")]
    OnlyOfATrace { format: &'static str },

    // limits
    #[error("`{text}` is no amount of memory: write a number and a unit, as in 300MiB, 2GiB or 500MB")]
    NotASize { text: String },
    #[error("`{text}` is no usable amount of memory: it must be above 0 and below 8 EiB")]
    SizeOutOfRange { text: String },

    // profiles
    #[error("could not read the profile {}: {reason}", path.display())]
    UnreadableProfile { path: PathBuf, reason: std::io::Error },
    #[error(
        "there is no profile `{name}`{hint} `infer-stats profiles` lists them; one of your own is given by its path, \
         as in --profile ./mine.toml"
    )]
    UnknownProfile { name: String, hint: String },

    // expectations
    #[error("could not read the expectations {}: {reason}", path.display())]
    UnreadableExpectations { path: PathBuf, reason: std::io::Error },

    // config
    #[error("could not read the config {}: {reason}", path.display())]
    UnreadableConfig { path: PathBuf, reason: std::io::Error },
    #[error("`{text}` is no glob: {}", reason.msg)]
    NotAGlob { text: String, reason: glob::PatternError },
    #[error("{place}: {what}")]
    BadConfig { place: String, what: String },
    #[error("{place}: {mistake}")]
    InConfig { place: String, mistake: Box<Mistake> },
}

impl Mistake {
    /// The same mistake, made at `place` (`path:line`) of a config.
    pub fn at(self, place: String) -> Self {
        Mistake::InConfig { place, mistake: Box::new(self) }
    }
}
