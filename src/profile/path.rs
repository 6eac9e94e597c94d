//! Where a value stands in a record: keys from the top down, then perhaps a way into lists and unknown keys.

use std::fmt;

/// A way to a value. The keys are followed while a record is read; the steps behind them inside the value found there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValuePath {
    /// At least one.
    pub keys: Vec<String>,
    pub inner: Vec<Step>,
}

/// A step inside a list or an object whose keys are not all known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Key(String),
    /// The first key that begins so.
    Prefix(String),
    /// The first key that leads on.
    AnyKey,
    /// Counted from the end where negative.
    Item(i64),
    /// The first item that leads on.
    AnyItem,
}

impl ValuePath {
    /// Reads `a.b`, `choices[0].x`, `list[*].x`, `ai.*.usage`, `usage.input*`; quotes keep odd characters inside a key.
    /// None where that is no path.
    pub fn parse(text: &str) -> Option<Self> {
        let mut path = ValuePath::default();
        let mut rest = text;
        loop {
            let (key, quoted, after) = match rest.strip_prefix('"') {
                Some(inside) => inside.split_once('"').map(|(key, after)| (key, true, after))?,
                None => {
                    let (key, after) = rest.split_at(rest.find(['.', '[', '"']).unwrap_or(rest.len()));
                    (key, false, after)
                }
            };
            path.push_key(key, quoted)?;
            rest = after;
            while let Some(inside) = rest.strip_prefix('[') {
                let (item, after) = inside.split_once(']')?;
                path.inner.push(if item == "*" { Step::AnyItem } else { Step::Item(item.parse().ok()?) });
                rest = after;
            }
            match rest.strip_prefix('.') {
                Some(after) => rest = after,
                None => return rest.is_empty().then_some(path),
            }
        }
    }

    fn push_key(&mut self, key: &str, quoted: bool) -> Option<()> {
        let step = match key.strip_suffix('*') {
            _ if key.is_empty() => return None,
            Some("") if !quoted => Step::AnyKey,
            Some(prefix) if !quoted => Step::Prefix(prefix.to_owned()),
            _ => Step::Key(key.to_owned()),
        };
        match step {
            Step::Key(key) if self.inner.is_empty() => self.keys.push(key),
            _ if self.keys.is_empty() => return None,
            step => self.inner.push(step),
        }
        Some(())
    }

    /// The keys as records may have them: nested, and in flat records as one key with dots.
    pub fn spellings(&self) -> impl Iterator<Item = Vec<String>> {
        let flat = (self.keys.len() > 1).then(|| vec![self.keys.join(".")]);
        std::iter::once(self.keys.clone()).chain(flat)
    }
}

/// As it is written in a profile.
impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = |f: &mut fmt::Formatter<'_>, key: &str| match key.contains(['.', '[', '"', '*']) {
            true => write!(f, "\"{key}\""),
            false => f.write_str(key),
        };
        for (at, name) in self.keys.iter().enumerate() {
            f.write_str(if at > 0 { "." } else { "" })?;
            key(f, name)?;
        }
        for step in &self.inner {
            match step {
                Step::Key(name) => {
                    f.write_str(".")?;
                    key(f, name)?;
                }
                Step::Prefix(prefix) => write!(f, ".{prefix}*")?,
                Step::AnyKey => f.write_str(".*")?,
                Step::Item(item) => write!(f, "[{item}]")?,
                Step::AnyItem => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn a_path_is_keys_and_then_steps_into_what_is_not_known_by_name() {
        let path = |text| ValuePath::parse(text).unwrap();
        assert_eq!(path("usage.prompt_tokens").keys, keys(&["usage", "prompt_tokens"]));
        assert_eq!(path("attributes.\"gen_ai.usage\"").keys, keys(&["attributes", "gen_ai.usage"]));
        assert_eq!(path("Request tokens").keys, keys(&["Request tokens"]));
        assert_eq!(path("choices[0].x").inner, [Step::Item(0), Step::Key("x".into())]);
        assert_eq!(path("a[-1]").inner, [Step::Item(-1)]);
        assert_eq!(path("ai.*.usage").inner, [Step::AnyKey, Step::Key("usage".into())]);
        assert_eq!(path("usage.input*").inner, [Step::Prefix("input".into())]);
        assert_eq!(path("list[*].x").inner, [Step::AnyItem, Step::Key("x".into())]);
    }

    #[test]
    fn a_path_is_shown_as_it_is_written() {
        for text in ["a.b", "a.\"b.c\"", "choices[0].x", "list[*].x", "ai.*.usage", "usage.input*", "a[-1]"] {
            assert_eq!(ValuePath::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", ".", "a.", "a..b", "*", "a[", "a[x]", "\"a", "a]b.", "*.a"] {
            assert_eq!(ValuePath::parse(text), None, "{text}");
        }
    }

    #[test]
    fn nested_keys_are_also_looked_for_as_one_key_with_dots() {
        let spellings: Vec<_> = ValuePath::parse("a.b.c").unwrap().spellings().collect();
        assert_eq!(spellings, [keys(&["a", "b", "c"]), keys(&["a.b.c"])]);
    }
}
