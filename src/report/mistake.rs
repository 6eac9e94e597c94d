//! Mistakes in asking for a report by name.

use thiserror::Error;

/// What is wrong with a query's name, its parameters or their values.
#[derive(Debug, Error)]
pub enum ReportMistake {
    #[error("there is no query `{name}` (`infer-stats queries` lists them){hint}")]
    NoQuery { name: String, hint: String },
    #[error("the query `{query}` has no parameter `{name}`{hint}")]
    NoParameter { query: String, name: String, hint: String },
    #[error("--{flag} must be given: see --help")]
    Missing { flag: String },
    #[error("`{name}` is {text}, and not {expected}")]
    WrongValue { name: String, text: String, expected: String },
    #[error("`{report}` needs every request, and these logs are a sample (sample_weight): ask the whole logs")]
    NotOfASample { report: String },
    #[error("--pivot: the answer has no column of numbers `{name}`; it has {names}")]
    NoMeasure { name: String, names: String },
    #[error("--pivot: `{report}` shows no measure by itself: name one, as in --pivot model,hour,requests")]
    NoMeasureOfItsOwn { report: String },
    #[error("--pivot: {columns} columns are too many to read: put {dimension} down, and the other dimension across")]
    PivotTooWide { columns: usize, dimension: String },
    #[error(
        "--pivot: the answer has several rows for {row} and {column}: ask for one metric, or narrow it with --where"
    )]
    PivotOfSeveral { row: String, column: String },
    #[error(
        "{count} records were sampled at an unknown rate (sample_weight is no positive number), so that no total can be told: \
         leave them out with --where \"sample_weight > 0\", or give the log its rate"
    )]
    UnknownRate { count: i64 },
    #[error(
        "no price book: name one with --prices FILE, or in the config as `[prices] book = \"prices.toml\"`; \
         `infer-stats prices example` prints one to begin with"
    )]
    NoPrices,
    #[error(
        "--format junit and github are for reports whose rows are findings, such as check and audit; `{report}` has none"
    )]
    NoFindings { report: String },
    #[error("the rows of `{report}` have no severity: give the rule a column with max or min")]
    RuleOfNoFindings { report: String },
    #[error("`{report}` has no column `{name}` (it has {names})")]
    NoRuleColumn { report: String, name: String, names: String },
    #[error("{path} is there already, and what `{report}` stores never changes: name another file")]
    AlreadyKept { path: String, report: String },
    #[error("`{report}` is about all requests of a month: drop {flag}")]
    WholeMonths { report: String, flag: &'static str },
    #[error("could not read the invoice {path}: {reason}")]
    UnreadableBill { path: String, reason: String },
    #[error("the invoice {path} has a header and no line")]
    EmptyBill { path: String },
    #[error("`{name}` of `{report}` is no number: a limit needs one")]
    NoRuleNumber { report: String, name: String },
    #[error("the invoice has no column of {what}: say which with --bill-map {what}=NAME (it has {names})")]
    NoBillColumn { what: &'static str, names: String },
    #[error("--bill-map {text}: write what=column, as in cost=Amount,since=Day")]
    NotABillMap { text: String },
    #[error("--bill-map: a line of an invoice has no `{field}`{hint} (it has {known})")]
    NoBillField { field: String, hint: String, known: String },
    #[error("--bill-map: the invoice has no column `{name}` (it has {names})")]
    NoBillName { name: String, names: String },
    #[error("`{asked}` is the beginning of {count} ids or more, such as {examples}: write more of it")]
    AmbiguousId { asked: String, count: usize, examples: String },
    #[error("could not read {path}: {reason}")]
    NoAnswerFile { path: String, reason: String },
    #[error("{path} holds no rows of an answer: write it with --format json, jsonl or parquet, and -o")]
    NotAnAnswer { path: String },
    #[error("{path} is read by this command: name another file for the {what}")]
    OutputIsAnInput { path: String, what: &'static str },
    #[error("-o and --rejects name the same file: the one would replace the other")]
    OneFileForTwo,
    #[error("`{sql}` is no condition: it must be true or false for a record, as in --where \"input_tokens > 8192\"")]
    NoCondition { sql: String },
    #[error("`{sql}` asks about many records, but a condition is about one; `infer-stats sql` can group and count")]
    NotOfOneRecord { sql: String },
}
