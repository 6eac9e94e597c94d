//! What rows are grouped by: the words of `--by`, each a bucket, a part of the time, or a column.

use super::{Mistake, Word};
use crate::nearest::suggestion;

/// One entry of `--by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// The column in the answer: the word as typed, with `_` for `-`.
    pub name: String,
    pub key: DimensionKey,
}

/// What a dimension is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DimensionKey {
    InputBucket,
    OutputBucket,
    TotalBucket,
    /// The length of the prefix that came from the cache.
    CachedBucket,
    /// The leading part of the request id.
    IdPrefix,
    /// The local start of the minute, hour, day, week or month that the request arrived in.
    Period(Period),
    /// 0 to 23, local.
    HourOfDay,
    Weekday,
    /// A column, checked against the schema once that is known: see [`Dimension::in_schema`].
    Column(String),
}

/// A stretch of local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

/// The day that a week begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeekStart {
    /// As in ISO 8601.
    #[default]
    Monday,
    Sunday,
}

impl Word for WeekStart {
    const KIND: &'static str = "start of the week";
    const WORDS: &'static [(&'static str, Self)] = &[("monday", WeekStart::Monday), ("sunday", WeekStart::Sunday)];
}

const COMPUTED: [(&str, DimensionKey); 12] = [
    ("input-bucket", DimensionKey::InputBucket),
    ("output-bucket", DimensionKey::OutputBucket),
    ("total-bucket", DimensionKey::TotalBucket),
    ("cached-bucket", DimensionKey::CachedBucket),
    ("id-prefix", DimensionKey::IdPrefix),
    ("minute", DimensionKey::Period(Period::Minute)),
    ("hour", DimensionKey::Period(Period::Hour)),
    ("day", DimensionKey::Period(Period::Day)),
    ("week", DimensionKey::Period(Period::Week)),
    ("month", DimensionKey::Period(Period::Month)),
    ("hour-of-day", DimensionKey::HourOfDay),
    ("weekday", DimensionKey::Weekday),
];

/// Words that stand for a column of the canonical record.
const NAMED_COLUMNS: [(&str, &str); 16] = [
    ("model", "model_name"),
    ("version", "model_version"),
    ("business-line", "business_line"),
    ("tenant", "tenant"),
    ("user", "user_tag"),
    ("app", "app"),
    ("gpu", "gpu_id"),
    ("gpu-pool", "gpu_pool"),
    ("batch-size", "batch_size"),
    ("role", "role"),
    ("status", "status"),
    ("finish-reason", "finish_reason"),
    ("error-code", "error_code"),
    ("error-stage", "error_stage"),
    ("stream", "stream"),
    ("priority", "priority"),
];

impl Dimension {
    /// Every word that is not simply the name of a column, in the order of the documentation.
    pub fn words() -> impl Iterator<Item = &'static str> {
        let computed = COMPUTED.iter().map(|(word, _)| *word);
        computed.chain(NAMED_COLUMNS.iter().map(|(word, _)| *word))
    }

    /// A word of the list, with `-` or `_`, or else a column that the schema must have.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Mistake::EmptyDimension);
        }
        let word = text.replace('_', "-");
        let computed = COMPUTED.iter().find(|(known, _)| *known == word);
        let named = NAMED_COLUMNS.iter().find(|(known, _)| *known == word);
        let key = match (computed, named) {
            (Some((_, key)), _) => key.clone(),
            (None, Some((_, column))) => DimensionKey::Column((*column).to_owned()),
            (None, None) => DimensionKey::Column(text.to_owned()),
        };
        Ok(Dimension { name: text.replace('-', "_"), key })
    }

    /// All of `--by`, each name at most once.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Mistake> {
        let mut dimensions: Vec<Dimension> = Vec::with_capacity(texts.len());
        for text in texts {
            let dimension = Dimension::parse(text)?;
            if dimensions.iter().any(|other| other.name == dimension.name) {
                return Err(Mistake::DimensionTwice { name: text.trim().to_owned() });
            }
            dimensions.push(dimension);
        }
        Ok(dimensions)
    }

    /// The dimension with its column spelled as the schema has it, or a mistake that names the nearest word or column.
    pub fn in_schema(self, columns: &[&str]) -> Result<Self, Mistake> {
        let DimensionKey::Column(typed) = &self.key else {
            return Ok(self);
        };
        let spelled = [typed.as_str(), &self.name].into_iter().find(|spelling| columns.contains(spelling));
        match spelled {
            Some(column) => Ok(Dimension { key: DimensionKey::Column(column.to_owned()), ..self }),
            None => {
                let mut known: Vec<&str> = Self::words().collect();
                known.extend(columns);
                Err(Mistake::UnknownDimension { word: typed.clone(), hint: suggestion(typed, known) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> DimensionKey {
        Dimension::parse(text).unwrap().key
    }

    fn column(name: &str) -> DimensionKey {
        DimensionKey::Column(name.to_owned())
    }

    #[test]
    fn words_are_taken_with_dashes_or_underscores() {
        assert_eq!(key("input-bucket"), DimensionKey::InputBucket);
        assert_eq!(key("input_bucket"), DimensionKey::InputBucket);
        assert_eq!(key("hour"), DimensionKey::Period(Period::Hour));
        assert_eq!(key("hour-of-day"), DimensionKey::HourOfDay);
        assert_eq!(key("user"), column("user_tag"));
        assert_eq!(key("gpu_pool"), column("gpu_pool"));
    }

    #[test]
    fn the_column_of_the_answer_is_the_word_with_underscores() {
        for (typed, name) in [
            ("input-bucket", "input_bucket"),
            ("model", "model"),
            ("model-name", "model_name"),
            ("request_id", "request_id"),
        ] {
            assert_eq!(Dimension::parse(typed).unwrap().name, name);
        }
    }

    #[test]
    fn every_other_word_is_a_column_that_the_schema_must_have() {
        let columns = ["model_name", "request_id", "data-center"];
        for (typed, spelled) in
            [("model-name", "model_name"), ("model_name", "model_name"), ("data-center", "data-center")]
        {
            let dimension = Dimension::parse(typed).unwrap().in_schema(&columns).unwrap();
            assert_eq!(dimension.key, column(spelled), "{typed}");
        }
        let unknown = |typed| {
            let dimension = Dimension::parse(typed).unwrap();
            dimension.in_schema(&columns).unwrap_err().to_string()
        };
        assert_eq!(
            unknown("input-buckt"),
            "--by input-buckt: there is no such dimension or column; did you mean `input-bucket`?"
        );
        assert!(unknown("request_ids").ends_with("did you mean `request_id`?"));
        assert!(unknown("continent").ends_with("dimension or column"));
    }

    #[test]
    fn an_entry_given_twice_or_left_empty_is_a_mistake() {
        let by = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Dimension::parse_all(&words)
        };
        assert_eq!(by(&["model", "hour"]).unwrap().len(), 2);
        assert!(matches!(by(&["hour", "hour"]), Err(Mistake::DimensionTwice { .. })));
        assert!(matches!(by(&["model", " "]), Err(Mistake::EmptyDimension)));
    }
}
