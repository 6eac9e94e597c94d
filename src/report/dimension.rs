//! Dimensions as SQL: what to group by, how to show it, how to order it.
//!
//! The expressions come from a fixed list or are a quoted column that the schema has; nothing a user typed is pasted.

use crate::request::{Dimension, DimensionKey, Period, WeekStart};

/// A dimension's parts of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionSql {
    /// The column of the answer, quoted.
    pub name: String,
    /// The column that holds the grouping value inside the statement.
    pub key: String,
    /// The grouping value, over the columns of `logs`.
    pub value: String,
    /// What is shown, over `key`.
    pub label: String,
    /// The same as text that can be typed, over the columns of `logs`.
    pub text: String,
}

impl DimensionSql {
    /// As the templates see it.
    pub fn context(&self) -> minijinja::Value {
        let DimensionSql { name, key, value, label, text } = self;
        minijinja::context! { name, key, value, label, text }
    }
}

/// Lengths of cached prefixes: none at all stands apart.
const PREFIX_EDGES: &str = "[1, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]";

/// The SQL of the `number`-th dimension.
pub fn sql(dimension: &Dimension, number: usize, week_start: WeekStart) -> DimensionSql {
    let key = format!("key_{number}");
    let period = |word: &str| format!("local_period(timestamp, '{word}', $zone, $week_start)");
    let (value, label) = match &dimension.key {
        DimensionKey::InputBucket => {
            ("bucket(input_tokens, $input_edges)".to_owned(), format!("bucket_label({key}, $input_edges)"))
        }
        DimensionKey::OutputBucket => {
            ("bucket(output_tokens, $output_edges)".to_owned(), format!("bucket_label({key}, $output_edges)"))
        }
        DimensionKey::TotalBucket => (
            "bucket(TRY_CAST(CAST(input_tokens AS DECIMAL(38, 0)) + CAST(output_tokens AS DECIMAL(38, 0)) AS BIGINT), $total_edges)".to_owned(),
            format!("bucket_label({key}, $total_edges)"),
        ),
        DimensionKey::CachedBucket => (
            format!("bucket(cached_tokens, {PREFIX_EDGES})"),
            format!("CASE {key} WHEN 0 THEN '0' ELSE bucket_label({key}, {PREFIX_EDGES}) END"),
        ),
        DimensionKey::IdPrefix => (r"regexp_match(request_id, '^[A-Za-z]+[-_:.]?')[1]".to_owned(), key.clone()),
        DimensionKey::Period(Period::Minute) => (period("minute"), key.clone()),
        DimensionKey::Period(Period::Hour) => (period("hour"), key.clone()),
        DimensionKey::Period(Period::Day) => (period("day"), key.clone()),
        DimensionKey::Period(Period::Week) => (period("week"), key.clone()),
        DimensionKey::Period(Period::Month) => (period("month"), key.clone()),
        DimensionKey::HourOfDay => ("local_part(timestamp, 'hour', $zone, $week_start)".to_owned(), key.clone()),
        DimensionKey::Weekday => {
            let days = weekdays(week_start).map(|day| format!("'{day}'")).join(", ");
            (
                "local_part(timestamp, 'weekday', $zone, $week_start)".to_owned(),
                format!("make_array({days})[{key} + 1]"),
            )
        }
        DimensionKey::Column(column) => (quoted(column), key.clone()),
    };
    let text = match &dimension.key {
        DimensionKey::Period(Period::Day | Period::Week | Period::Month) => {
            format!("CAST(arrow_cast(local_part({value}, 'date', $zone, $week_start), 'Date32') AS VARCHAR)")
        }
        _ => format!("CAST({} AS VARCHAR)", label.replace(&key, &format!("({value})"))),
    };
    DimensionSql { name: quoted(&dimension.name), key, value, label, text }
}

/// What a dimension's column means, for the column list of a report.
pub fn definition(dimension: &Dimension) -> String {
    match &dimension.key {
        DimensionKey::InputBucket => "input tokens, lower edge included".to_owned(),
        DimensionKey::OutputBucket => "output tokens, lower edge included".to_owned(),
        DimensionKey::TotalBucket => "input and output tokens, lower edge included".to_owned(),
        DimensionKey::CachedBucket => "input tokens that came from the prefix cache, lower edge included".to_owned(),
        DimensionKey::IdPrefix => "leading letters of the request id".to_owned(),
        DimensionKey::Period(_) => "local start of the period that the request arrived in".to_owned(),
        DimensionKey::HourOfDay => "local hour of arrival, 0 to 23".to_owned(),
        DimensionKey::Weekday => "local weekday of arrival".to_owned(),
        DimensionKey::Column(column) => match crate::record::Column::named(column) {
            Some(column) => column.definition().to_owned(),
            None => format!("the column {column}"),
        },
    }
}

fn weekdays(week_start: WeekStart) -> [&'static str; 7] {
    let mut days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    if week_start == WeekStart::Sunday {
        days.rotate_right(1);
    }
    days
}

/// An identifier in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
