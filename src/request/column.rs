//! Where columns come from when the user says so: `--map` fills a canonical column, `--column` adds one.

use super::{KeyPath, Mistake, Word};
use crate::nearest::suggestion;
use crate::record::Kind;
use crate::record::unit::Unit;

/// `--map canonical=path[:unit]`: a canonical column and the key that fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    pub canonical: String,
    pub path: KeyPath,
    /// None: as the key's suffix says.
    pub unit: Option<Unit>,
}

/// `--column name=path[:type]`: a column beyond the canonical record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraColumn {
    pub name: String,
    /// Where its values stand; the first that holds one counts.
    pub paths: Vec<KeyPath>,
    pub kind: Kind,
}

/// The types that an added column can have.
impl Word for Kind {
    const KIND: &'static str = "column type";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("text", Kind::Text),
        ("int", Kind::Count),
        ("float", Kind::Number),
        ("bool", Kind::Flag),
        ("timestamp", Kind::Time),
    ];
}

impl Map {
    /// Reads `canonical=path[:unit]` against the names of the canonical columns.
    pub fn parse(text: &str, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let (name, place) = text.split_once('=').ok_or_else(|| Mistake::NotAMap { text: text.to_owned() })?;
        Self::new(name.trim(), place.trim(), canonical_columns)
    }

    /// Of a canonical column and `path[:unit]`, the form in which a config has them.
    pub fn new(name: &str, place: &str, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let text = || format!("{name}={place}");
        if !canonical_columns.contains(&name) {
            return Err(Mistake::UnknownCanonical {
                text: text(),
                name: name.to_owned(),
                hint: suggestion(name, canonical_columns.iter().copied()),
            });
        }
        let (path, unit) = KeyPath::parse_with_suffix(place)?;
        let unit = unit.map(Unit::from_word).transpose()?;
        if let Some(unit) = unit
            && let Some(allowed) = refusal(name, unit)
        {
            return Err(Mistake::WrongUnit { text: text(), name: name.to_owned(), unit: unit.word(), allowed });
        }
        Ok(Map { canonical: name.to_owned(), path, unit })
    }

    /// All of `--map`, each canonical column at most once.
    pub fn parse_all(texts: &[String], canonical_columns: &[&str]) -> Result<Vec<Self>, Mistake> {
        let mut maps: Vec<Map> = Vec::with_capacity(texts.len());
        for text in texts {
            let map = Map::parse(text, canonical_columns)?;
            if maps.iter().any(|other| other.canonical == map.canonical) {
                return Err(Mistake::MappedTwice { name: map.canonical });
            }
            maps.push(map);
        }
        Ok(maps)
    }
}

/// What to do instead, where the canonical column cannot have this unit. The record's names tell what a column is.
fn refusal(canonical: &str, unit: Unit) -> Option<&'static str> {
    let is_duration = canonical.ends_with("_ms");
    let is_time = canonical == "timestamp" || canonical.ends_with("_at");
    match unit {
        _ if is_duration => None,
        Unit::Minutes if is_time => Some("a time takes s, ms, us or ns"),
        _ if is_time => None,
        _ => Some("only durations and times have one; leave it out, or quote a key that holds a colon"),
    }
}

impl ExtraColumn {
    /// Reads `name=path[:type]`; without a type the column is text.
    pub fn parse(text: &str, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let text_owned = || text.to_owned();
        let (name, place) = text.split_once('=').ok_or_else(|| Mistake::NotAColumn { text: text_owned() })?;
        let name = name.trim().to_owned();
        if !is_identifier(&name) {
            return Err(Mistake::ColumnName { text: text_owned(), name });
        }
        if canonical_columns.contains(&name.as_str()) {
            return Err(Mistake::ColumnTaken { text: text_owned(), name });
        }
        let (path, kind) = KeyPath::parse_with_suffix(place.trim())?;
        let kind = kind.map(Kind::from_word).transpose()?;
        Ok(ExtraColumn { name, paths: vec![path], kind: kind.unwrap_or(Kind::Text) })
    }

    /// All of `--column`, each name at most once.
    pub fn parse_all(texts: &[String], canonical_columns: &[&str]) -> Result<Vec<Self>, Mistake> {
        let mut columns: Vec<ExtraColumn> = Vec::with_capacity(texts.len());
        for text in texts {
            let column = ExtraColumn::parse(text, canonical_columns)?;
            if columns.iter().any(|other| other.name == column.name) {
                return Err(Mistake::ColumnTwice { name: column.name });
            }
            columns.push(column);
        }
        Ok(columns)
    }
}

/// A name that SQL takes without quotes, so that `--where` and `sql` can use the column as it was named.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["timestamp", "completed_at", "ttft_ms", "input_tokens", "model_name"];

    fn sentence(text: &str) -> String {
        Map::parse(text, KNOWN).unwrap_err().to_string()
    }

    #[test]
    fn a_map_names_the_canonical_column_the_path_and_the_unit() {
        for (text, unit) in [
            ("ttft_ms=timing.ttft", None),
            ("ttft_ms=timing.ttft:s", Some(Unit::Seconds)),
            ("ttft_ms=timing.ttft:min", Some(Unit::Minutes)),
            ("ttft_ms=timing.ttft:µs", Some(Unit::Microseconds)),
            ("ttft_ms=timing.ttft:μs", Some(Unit::Microseconds)),
        ] {
            let map = Map::parse(text, KNOWN).unwrap();
            assert_eq!(map.canonical, "ttft_ms");
            assert_eq!(map.path.to_string(), "timing.ttft");
            assert_eq!(map.unit, unit, "{text}");
        }
    }

    #[test]
    fn an_unknown_canonical_column_names_the_nearest() {
        assert_eq!(
            sentence("tttf_ms=ttft"),
            "cannot map tttf_ms=ttft: there is no canonical column `tttf_ms`; did you mean `ttft_ms`?"
        );
    }

    #[test]
    fn a_unit_is_refused_where_it_makes_no_sense() {
        assert!(Map::parse("timestamp=ts:ns", KNOWN).is_ok());
        assert_eq!(
            sentence("completed_at=end:min"),
            "cannot map completed_at=end:min: `completed_at` has no unit `min`: a time takes s, ms, us or ns"
        );
        assert!(sentence("input_tokens=n:ms").contains("leave it out"));
        assert!(sentence("ttft_ms=ttft:sec").contains("unknown unit `sec`"));
    }

    #[test]
    fn a_map_without_a_path_and_one_given_twice_are_mistakes() {
        assert!(sentence("ttft_ms").contains("canonical=path"));
        assert!(sentence("ttft_ms=").contains("is no path"));
        let twice = ["ttft_ms=a".to_owned(), "ttft_ms=b".to_owned()];
        let mistake = Map::parse_all(&twice, KNOWN).unwrap_err();
        assert!(matches!(mistake, Mistake::MappedTwice { .. }));
    }

    #[test]
    fn an_added_column_is_text_unless_it_says_otherwise() {
        let column = ExtraColumn::parse("region=labels.region", KNOWN).unwrap();
        assert_eq!(column.kind, Kind::Text);
        let column = ExtraColumn::parse("retries=meta.retries:int", KNOWN).unwrap();
        assert_eq!((column.name.as_str(), column.kind), ("retries", Kind::Count));
    }

    #[test]
    fn an_added_column_needs_a_free_and_plain_name() {
        for (text, part) in [
            ("region", "name=path"),
            ("=x", "letters, digits"),
            ("2nd=x", "letters, digits"),
            ("my-col=x", "letters, digits"),
            ("model_name=x", "use --map"),
            ("a=x:number", "unknown column type `number`"),
        ] {
            let sentence = ExtraColumn::parse(text, KNOWN).unwrap_err().to_string();
            assert!(sentence.contains(part), "{sentence}");
        }
        let twice = ["a=x".to_owned(), "a=y".to_owned()];
        let mistake = ExtraColumn::parse_all(&twice, KNOWN).unwrap_err();
        assert!(matches!(mistake, Mistake::ColumnTwice { .. }));
    }
}
