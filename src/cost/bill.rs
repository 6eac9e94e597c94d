//! An invoice as a table: CSV or Parquet, FOCUS or a provider's own, whose columns are known by their names.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use jiff::Timestamp;
use jiff::civil::Date;

use super::{ONE, first_moment};
use crate::nearest::suggestion;
use crate::record::Kind;
use crate::record::number::{count, scaled};
use crate::report::mistake::ReportMistake;
use crate::request::{Request, Zone};

/// What a line of an invoice says, and the names of columns that say it, the most telling first.
const FIELDS: [(&str, &[&str]); 13] = [
    (
        "since",
        &[
            "chargeperiodstart",
            "lineitemusagestartdate",
            "usagestarttime",
            "usagestartdate",
            "usagedate",
            "usagedateutc",
            "startingat",
            "starttimeiso",
            "starttime",
            "serviceperiodstartdate",
            "date",
            "day",
            "timestamp",
            "createdat",
            "billingperiodstart",
        ],
    ),
    (
        "until",
        &[
            "chargeperiodend",
            "lineitemusageenddate",
            "usageendtime",
            "usageenddate",
            "endingat",
            "endtimeiso",
            "endtime",
            "serviceperiodenddate",
        ],
    ),
    ("request_id", &["requestid", "xrequestid", "generationid", "responseid"]),
    (
        "model",
        &[
            "model",
            "xmodel",
            "modelname",
            "skumodel",
            "modelpermaslug",
            "modelid",
            "servicemodel",
            "snapshotid",
            "resourcename",
        ],
    ),
    (
        "line",
        &[
            "businessline",
            "xbusinessline",
            "costcenter",
            "projectname",
            "workspacename",
            "subaccountname",
            "teamalias",
            "apikeyname",
            "workspace",
            "project",
            "workspaceid",
            "projectid",
        ],
    ),
    (
        "class",
        &[
            "tokenclass",
            "xtokenclass",
            "tokentype",
            "lineitemusagetype",
            "usagetype",
            "skumeter",
            "metername",
            "meter",
            "lineitem",
            "skudescription",
        ],
    ),
    ("tier", &["tier", "servicetier", "pricingtier"]),
    (
        "tokens",
        &[
            "tokens",
            "tokencount",
            "consumedquantity",
            "lineitemusageamount",
            "usagequantity",
            "usageamount",
            "quantity",
        ],
    ),
    ("requests", &["requests", "requestcount", "nummodelrequests", "numrequests", "apirequests"]),
    (
        "cost",
        &[
            "billedcost",
            "cost",
            "amount",
            "amountvalue",
            "costinbillingcurrency",
            "costusd",
            "lineitemunblendedcost",
            "unblendedcost",
            "totalcost",
            "costtotal",
            "spend",
            "responsecost",
            "pretaxcost",
        ],
    ),
    ("currency", &["billingcurrency", "billingcurrencycode", "currency", "amountcurrency", "lineitemcurrencycode"]),
    ("category", &["chargecategory", "chargetype", "lineitemlineitemtype", "lineitemtype", "costtype", "category"]),
    ("unit", &["consumedunit", "unit", "pricingunit", "usageunit", "unitofmeasure"]),
];

/// The invoice in one shape: `row, since, until, request_id, model, line, class, tier, tokens, requests, cost, currency,
/// category`. `map` names columns that are not known, as in `cost=Amount,since=Day`. Dates without a time begin in the zone of
/// the report.
///
/// # Errors
/// It cannot be read, a column is not there, or a value is no date or number; the message says where.
pub fn read(path: &Path, map: &str, request: &Request) -> anyhow::Result<RecordBatch> {
    let table = Table::read(path)?;
    ensure!(!table.rows.is_empty(), ReportMistake::EmptyBill { path: path.display().to_string() });
    let columns = table.columns(map)?;
    ensure!(columns.contains_key("cost"), ReportMistake::NoBillColumn { what: "cost", names: table.names.join(", ") });
    let in_cents = table.is_in_cents(&columns);
    let mut lines = Lines::default();
    for (index, row) in table.rows.iter().enumerate() {
        let field = |name: &str| {
            columns.get(name).and_then(|&column| row[column].as_deref()).map(str::trim).filter(|text| !text.is_empty())
        };
        let mut line = Line::read(&field, &request.zone).with_context(|| format!("row {}", index + 2))?;
        if in_cents {
            line.cost = line.cost.map(|cents| cents / 100);
        }
        lines.push(index as i64 + 1, line);
    }
    lines.batch()
}

/// The cells of a file as texts.
struct Table {
    names: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| ReportMistake::UnreadableBill {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        if bytes.starts_with(b"PAR1") { Self::parquet(path) } else { Self::csv(&bytes) }
    }

    fn csv(bytes: &[u8]) -> anyhow::Result<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let header = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let frequency = |delimiter: &u8| header.iter().filter(|byte| *byte == delimiter).count();
        let delimiter = [b',', b';', b'\t', b'|'].into_iter().rev().max_by_key(frequency).unwrap_or(b',');
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(bytes);
        let names = reader.headers()?.iter().map(|name| name.trim().to_owned()).collect();
        let row = |record: Result<csv::StringRecord, csv::Error>| -> anyhow::Result<Vec<Option<String>>> {
            Ok(record?.iter().map(|cell| Some(cell.to_owned())).collect())
        };
        Ok(Self { names, rows: reader.records().map(row).collect::<Result<_, _>>()? })
    }

    fn parquet(path: &Path) -> anyhow::Result<Self> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
        let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut rows = Vec::new();
        for batch in reader.build()? {
            let batch = batch?;
            // what is no plain value, such as a map of tags, is none of ours
            let texts: Vec<ArrayRef> = batch
                .columns()
                .iter()
                .map(|column| {
                    cast(column, &DataType::Utf8).unwrap_or_else(|_| Arc::new(StringArray::new_null(batch.num_rows())))
                })
                .collect();
            for row in 0..batch.num_rows() {
                let cell =
                    |column: &ArrayRef| column.is_valid(row).then(|| column.as_string::<i32>().value(row).to_owned());
                rows.push(texts.iter().map(cell).collect());
            }
        }
        Ok(Self { names, rows })
    }

    /// Whether its amounts are in the lowest unit of the currency, as in Anthropic's cost report
    /// (platform.claude.com/docs/en/api/admin/cost_report).
    fn is_in_cents(&self, columns: &HashMap<&'static str, usize>) -> bool {
        let has = |name: &str| self.names.iter().any(|own| own == name);
        let is_amount = columns.get("cost").is_some_and(|column| self.names[*column] == "amount");
        is_amount && has("starting_at") && (has("cost_type") || has("token_type"))
    }

    /// Which column says what.
    fn columns(&self, map: &str) -> anyhow::Result<HashMap<&'static str, usize>> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
        };
        let names: Vec<String> = self.names.iter().map(|name| plain(name)).collect();
        let mut columns = HashMap::new();
        for (field, known) in FIELDS {
            let found = known.iter().chain([&field]).find_map(|name| names.iter().position(|own| *own == plain(name)));
            columns.extend(found.map(|column| (field, column)));
        }
        for pair in map.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (field, name) =
                pair.split_once('=').with_context(|| ReportMistake::NotABillMap { text: pair.to_owned() })?;
            let known = || FIELDS.iter().map(|(field, _)| *field);
            let Some(field) = known().find(|known| *known == field.trim()) else {
                let hint = suggestion(field.trim(), known());
                let known = known().collect::<Vec<_>>().join(", ");
                bail!(ReportMistake::NoBillField { field: field.trim().to_owned(), hint, known });
            };
            let position = self.names.iter().position(|own| own == name.trim());
            let column = position.with_context(|| ReportMistake::NoBillName {
                name: name.trim().to_owned(),
                names: self.names.join(", "),
            })?;
            columns.insert(field, column);
        }
        Ok(columns)
    }
}

/// One line of an invoice.
struct Line {
    since: Option<i64>,
    until: Option<i64>,
    texts: [Option<String>; 5],
    tokens: Option<i64>,
    requests: Option<i64>,
    cost: Option<i128>,
    currency: Option<String>,
    category: String,
}

impl Line {
    fn read<'a>(field: &impl Fn(&str) -> Option<&'a str>, zone: &Zone) -> anyhow::Result<Self> {
        let since = field("since").map(|text| moment(text, zone)).transpose()?;
        let until = field("until").map(|text| moment(text, zone)).transpose()?;
        let whole_day = since
            .as_ref()
            .and_then(|(day, _)| day.as_ref())
            .and_then(|day| first_moment(day.tomorrow().ok()?, &zone.rules));
        let unit = field("unit").map(str::to_lowercase).unwrap_or_default();
        let quantity = field("tokens").map(|text| amount(text, 12)).transpose()?;
        // a line of a bill may name the model and the class in one
        let (named, class_text) = match (field("model"), field("class")) {
            (None, Some(text)) => {
                text.rsplit_once(", ").map_or((None, Some(text)), |(model, class)| (Some(model), Some(class)))
            }
            (model, class) => (model, class),
        };
        Ok(Self {
            since: since.map(|(_, time)| time),
            until: until.map(|(_, time)| time).or(whole_day),
            texts: ["request_id", "model", "line", "class", "tier"].map(|name| match name {
                "model" => named.map(str::to_owned),
                "class" => class_text.map(class),
                name => field(name).map(str::to_owned),
            }),
            tokens: quantity.and_then(|quantity| tokens(quantity, &unit)),
            requests: match field("requests") {
                Some(text) => Some(count(text.as_bytes()).ok().with_context(|| wrong("requests", text))?),
                // a fee for each request has their number as its quantity
                None if unit.contains("request") => quantity.and_then(|quantity| tokens(quantity, "")),
                None => None,
            },
            cost: field("cost").map(|text| amount(text, 12)).transpose()?,
            currency: field("currency").map(str::to_uppercase),
            category: category(field("category").unwrap_or_default()),
        })
    }
}

fn wrong(what: &str, text: &str) -> String {
    format!("`{text}` is no number of {what}")
}

/// A quantity in some unit as tokens.
fn tokens(quantity: i128, unit: &str) -> Option<i64> {
    let factor = match unit {
        unit if unit.contains("request") => return None,
        unit if unit.contains("1m") || unit.contains("million") => 1_000_000,
        unit if unit.contains("1k") || unit.contains("1000") || unit.contains("thousand") => 1_000,
        _ => 1,
    };
    // a fraction of a token is the rounding of whoever wrote the invoice
    let exact = quantity.checked_mul(factor)?;
    i64::try_from((exact + exact.signum() * ONE / 2) / ONE).ok()
}

/// An amount with a sign of its currency, commas between thousands, or parentheses for less than nothing. A comma that may
/// stand for a point is a mistake: who guesses wrong is off by a thousand.
fn amount(text: &str, scale: i32) -> anyhow::Result<i128> {
    let between_thousands = |(at, _): (usize, &str)| {
        let digits = text[at + 1..].chars().take_while(char::is_ascii_digit).count();
        digits == 3 && !text[..at].contains('.')
    };
    let is_clear = text.match_indices(',').all(between_thousands);
    ensure!(is_clear, "`{text}` is no amount with a decimal point");
    let is_negative = text.starts_with('(') && text.ends_with(')');
    let digits: String = text
        .trim_matches(['(', ')'])
        .chars()
        .filter(|letter| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | 'e' | 'E'))
        .collect();
    let amount = scaled(digits.as_bytes(), scale).ok().with_context(|| format!("`{text}` is no amount"))?;
    Ok(if is_negative { -amount } else { amount })
}

/// An instant; of a bare date its first moment, and the date.
fn moment(text: &str, zone: &Zone) -> anyhow::Result<(Option<Date>, i64)> {
    let nanoseconds = |time: Timestamp| i64::try_from(time.as_nanosecond()).ok();
    let is_date = text.len() == "2025-06-01".len();
    let day: Option<Date> = text.parse().ok().filter(|_| is_date);
    let local = || {
        let time: jiff::civil::DateTime = text.parse().ok()?;
        nanoseconds(time.to_zoned_datetime(zone.rules.clone()).ok()?.timestamp())
    };
    let seconds = || text.parse::<i64>().ok().and_then(|seconds| nanoseconds(Timestamp::from_second(seconds).ok()?));
    let day = day.or_else(|| Date::strptime("%m/%d/%Y", text).ok());
    let time = match day {
        Some(day) => first_moment(day, &zone.rules),
        None => text.parse().ok().and_then(nanoseconds).or_else(local).or_else(seconds),
    };
    Ok((day, time.with_context(|| format!("`{text}` is no time: write it as in 2025-06-01T00:00:00Z"))?))
}

/// The class of tokens in one of a few words, whatever the invoice calls it; else as written.
fn class(text: &str) -> String {
    let lower = text.to_lowercase();
    let has = |word: &str| lower.contains(word);
    let class = match () {
        () if has("cache") && (has("write") || has("creation")) => "write",
        () if has("cache") && !has("uncached") => "cached",
        () if has("output") || has("completion") || has("generated") => "output",
        () if has("input") || has("prompt") || has("uncached") => "input",
        () if has("request") => "request",
        () if lower == "total" || lower == "tokens" || lower == "total tokens" => "total",
        () => return text.to_owned(),
    };
    class.to_owned()
}

fn category(text: &str) -> String {
    let lower = text.to_lowercase();
    // usage at a discount is usage
    if lower.ends_with("usage") {
        return "usage".to_owned();
    }
    let category =
        ["tax", "credit", "refund", "discount", "adjustment", "purchase"].into_iter().find(|word| lower.contains(word));
    match category {
        Some("refund" | "discount") => "credit",
        Some(category) => category,
        None => "usage",
    }
    .to_owned()
}

/// The lines column by column.
#[derive(Default)]
struct Lines {
    row: Vec<i64>,
    since: Vec<Option<i64>>,
    until: Vec<Option<i64>>,
    texts: [Vec<Option<String>>; 5],
    tokens: Vec<Option<i64>>,
    requests: Vec<Option<i64>>,
    cost: Vec<Option<i128>>,
    currency: Vec<Option<String>>,
    category: Vec<String>,
}

impl Lines {
    fn push(&mut self, row: i64, line: Line) {
        self.row.push(row);
        self.since.push(line.since);
        self.until.push(line.until);
        self.texts.iter_mut().zip(line.texts).for_each(|(column, text)| column.push(text));
        self.tokens.push(line.tokens);
        self.requests.push(line.requests);
        self.cost.push(line.cost);
        self.currency.push(line.currency);
        self.category.push(line.category);
    }

    fn batch(self) -> anyhow::Result<RecordBatch> {
        let time = |times: Vec<Option<i64>>| -> ArrayRef {
            Arc::new(TimestampNanosecondArray::from(times).with_data_type(Kind::Time.data_type()))
        };
        let text = |texts: Vec<Option<String>>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        let [request_id, model, line, class, tier] = self.texts.map(text);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("row", Arc::new(Int64Array::from(self.row))),
            ("since", time(self.since)),
            ("until", time(self.until)),
            ("request_id", request_id),
            ("model", model),
            ("line", line),
            ("class", class),
            ("tier", tier),
            ("tokens", Arc::new(Int64Array::from(self.tokens))),
            ("requests", Arc::new(Int64Array::from(self.requests))),
            ("cost", Arc::new(Decimal128Array::from(self.cost).with_precision_and_scale(38, 12)?)),
            ("currency", text(self.currency)),
            ("category", Arc::new(StringArray::from(self.category))),
        ];
        Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: i128 = 1_000_000_000_000;

    #[test]
    fn amounts_are_read_as_people_write_them_and_never_guessed() {
        for (text, expected) in [
            ("12.50", DOLLAR * 25 / 2),
            ("$1,234.56", DOLLAR * 123_456 / 100),
            ("(3.00)", -3 * DOLLAR),
            ("-0.000000000001", -1),
            ("1,234,567", 1_234_567 * DOLLAR),
        ] {
            assert_eq!(amount(text, 12).unwrap(), expected, "{text}");
        }
        for text in ["1.234,56", "12,5", "", "free"] {
            assert!(amount(text, 12).is_err(), "{text}");
        }
    }

    #[test]
    fn classes_and_categories_of_providers_are_ours() {
        let classes = [
            "cached input tokens",
            "uncached_input_tokens",
            "cache_creation.ephemeral_5m_input_tokens",
            "Output",
            "gizmo",
        ];
        assert_eq!(classes.map(class), ["cached", "input", "write", "output", "gizmo"]);
        let categories = ["DiscountedUsage", "Usage", "Tax", "Refund", "Adjustment", ""];
        assert_eq!(categories.map(category), ["usage", "usage", "tax", "credit", "adjustment", "usage"]);
    }

    #[test]
    fn quantities_are_tokens_whatever_their_unit() {
        assert_eq!(tokens(3 * DOLLAR / 2, "1m tokens"), Some(1_500_000));
        assert_eq!(tokens(12_345 * DOLLAR / 10_000, "1k"), Some(1_235));
        assert_eq!(tokens(7 * DOLLAR, "tokens"), Some(7));
        assert_eq!(tokens(7 * DOLLAR, "requests"), None);
    }
}
