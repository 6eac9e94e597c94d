//! Where a value stands in a record: `usage.prompt_tokens`, or `"gen_ai.usage".input_tokens` where a key holds a dot.

use std::fmt;

use super::Mistake;

/// The keys from the top of the record down to a value; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The path to a key of the record itself.
    pub fn of(key: &str) -> Self {
        KeyPath(vec![key.to_owned()])
    }

    /// The keys, outermost first.
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// Reads `path` or `path:suffix`, the form of `--map` and `--column`. Quotes keep dots and colons inside a key.
    pub(super) fn parse_with_suffix(text: &str) -> Result<(Self, Option<&str>), Mistake> {
        let not_a_path = || Mistake::NotAPath { path: text.to_owned() };
        let mut keys = Vec::new();
        let mut rest = text;
        loop {
            let (key, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or_else(not_a_path)?,
                None => rest.split_at(rest.find(['.', ':', '"']).unwrap_or(rest.len())),
            };
            if key.is_empty() {
                return Err(not_a_path());
            }
            keys.push(key.to_owned());
            if after.is_empty() {
                return Ok((KeyPath(keys), None));
            } else if let Some(suffix) = after.strip_prefix(':') {
                return Ok((KeyPath(keys), Some(suffix)));
            }
            rest = after.strip_prefix('.').ok_or_else(not_a_path)?;
        }
    }
}

/// As it would be typed again.
impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, key) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            if key.contains(['.', ':']) {
                write!(f, "\"{key}\"")?;
            } else {
                f.write_str(key)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<String>, Option<&str>) {
        let (path, suffix) = KeyPath::parse_with_suffix(text).unwrap();
        assert!(text.starts_with(&path.to_string()), "{text} shown as {path}");
        (path.0, suffix)
    }

    #[test]
    fn dots_lead_into_nested_objects_and_quotes_keep_a_key_whole() {
        assert_eq!(parse("ttft"), (vec!["ttft".into()], None));
        assert_eq!(parse("usage.prompt_tokens:s"), (vec!["usage".into(), "prompt_tokens".into()], Some("s")));
        assert_eq!(parse("\"gen_ai.usage\".input_tokens"), (vec!["gen_ai.usage".into(), "input_tokens".into()], None));
        assert_eq!(parse("\"a:b\":ms"), (vec!["a:b".into()], Some("ms")));
        assert_eq!(parse("输入 tokens"), (vec!["输入 tokens".into()], None));
    }

    #[test]
    fn a_path_with_an_empty_key_or_an_open_quote_is_a_mistake() {
        for text in ["", ".", "a.", ".a", "a..b", ":s", "\"a", "\"\"", "\"a\"b", "a\"b\""] {
            let mistake = KeyPath::parse_with_suffix(text).unwrap_err();
            assert!(matches!(mistake, Mistake::NotAPath { .. }), "{text}");
        }
    }
}
