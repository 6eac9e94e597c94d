//! A table of a TOML file that knows its lines, so that every mistake in it can be named by `path:line`.
//!
//! Keys are taken one by one, and what is left at the end is unknown: the keys that were asked for are the list of
//! those that exist. A derived deserializer would report Rust's types and lose the line of values that are wrong in
//! meaning only.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::suggestion;
use crate::record::number::scaled;
use crate::request::Mistake;

/// The text of a config and the name that mistakes in it are reported under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

/// A table whose keys have not all been taken yet.
pub(crate) struct Table<'a> {
    document: Document<'a>,
    span: Range<usize>,
    entries: DeTable<'a>,
    taken: Vec<String>,
}

/// A value with its place in the file.
pub(crate) struct Value<'a> {
    document: Document<'a>,
    key: String,
    inner: Spanned<DeValue<'a>>,
}

impl<'a> Document<'a> {
    /// The top table, or a mistake where the text is no TOML.
    pub fn parse(self) -> Result<Table<'a>, Mistake> {
        match DeTable::parse(self.text) {
            Ok(entries) => {
                Ok(Table { document: self, span: entries.span(), entries: entries.into_inner(), taken: Vec::new() })
            }
            Err(error) => Err(self.mistake(error.span().unwrap_or_default(), error.message())),
        }
    }

    fn mistake(self, span: Range<usize>, what: impl Into<String>) -> Mistake {
        Mistake::BadConfig { place: self.place(&span), what: what.into() }
    }

    fn place(self, span: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.path)
    }
}

impl<'a> Table<'a> {
    /// The keys that have not been taken, for tables whose keys are the user's own.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.entries.keys();
        keys.map(|key| key.get_ref().to_string()).collect()
    }

    /// The value of a key, which is known from now on.
    pub fn take(&mut self, key: &str) -> Option<Value<'a>> {
        self.taken.push(key.to_owned());
        let inner = self.entries.remove(key)?;
        Some(Value { document: self.document, key: key.to_owned(), inner })
    }

    /// A text that `read` makes sense of; its mistake is given the place of the value.
    pub fn read<T>(&mut self, key: &str, read: impl FnOnce(&str) -> Result<T, Mistake>) -> Result<Option<T>, Mistake> {
        self.take(key).map(|value| value.read(read)).transpose()
    }

    pub fn text(&mut self, key: &str) -> Result<Option<String>, Mistake> {
        self.read(key, |text| Ok(text.to_owned()))
    }

    /// A list of texts that `read` makes sense of; empty where the key is missing.
    pub fn list<T>(&mut self, key: &str, read: impl Fn(&str) -> Result<T, Mistake>) -> Result<Vec<T>, Mistake> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        value.list()?.iter().map(|item| item.read(&read)).collect()
    }

    /// A list of paths; empty where the key is missing.
    pub fn paths(&mut self, key: &str) -> Result<Vec<PathBuf>, Mistake> {
        self.list(key, |path| Ok(PathBuf::from(path)))
    }

    /// A table within this one.
    pub fn table(&mut self, key: &str) -> Result<Option<Table<'a>>, Mistake> {
        self.take(key).as_ref().map(Value::table).transpose()
    }

    /// A list of tables, as `[[key]]` writes them; empty where the key is missing.
    pub fn tables(&mut self, key: &str) -> Result<Vec<Table<'a>>, Mistake> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        value.list()?.iter().map(Value::table).collect()
    }

    /// A table, or a list of them; empty where the key is missing.
    pub fn table_or_tables(&mut self, key: &str) -> Result<Vec<Table<'a>>, Mistake> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        match value.list() {
            Ok(items) => items.iter().map(Value::table).collect(),
            Err(_) => Ok(vec![value.table()?]),
        }
    }

    /// A mistake in the table as a whole.
    pub fn mistake(&self, what: &str) -> Mistake {
        self.document.mistake(self.span.clone(), what)
    }

    /// Done with this table: a key that nobody asked for is a mistake.
    pub fn finish(&self) -> Result<(), Mistake> {
        let known = || self.taken.iter().map(String::as_str);
        match self.entries.keys().next() {
            Some(key) => Err(self.document.mistake(
                key.span(),
                format!(
                    "unknown key `{}`{} (known here: {})",
                    key.get_ref(),
                    suggestion(key.get_ref(), known()),
                    known().collect::<Vec<_>>().join(", ")
                ),
            )),
            None => Ok(()),
        }
    }
}

impl<'a> Value<'a> {
    pub fn read<T>(&self, read: impl FnOnce(&str) -> Result<T, Mistake>) -> Result<T, Mistake> {
        match self.inner.get_ref() {
            DeValue::String(text) => read(text).map_err(|mistake| mistake.at(self.place())),
            _ => Err(self.wrong("a text in quotes")),
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(self.inner.get_ref(), DeValue::String(_))
    }

    pub fn integer(&self) -> Result<i64, Mistake> {
        let DeValue::Integer(integer) = self.inner.get_ref() else {
            return Err(self.wrong("a whole number"));
        };
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Ok(number),
            Err(_) => Err(self.mistake(&format!("`{}` is out of range: {integer}", self.key))),
        }
    }

    pub fn boolean(&self) -> Result<bool, Mistake> {
        match self.inner.get_ref() {
            DeValue::Boolean(boolean) => Ok(*boolean),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A finite number, with or without a point.
    pub fn number(&self) -> Result<f64, Mistake> {
        let float = match self.inner.get_ref() {
            DeValue::Float(float) => float,
            DeValue::Integer(_) => return Ok(self.integer()? as f64),
            _ => return Err(self.wrong("a number")),
        };
        match float.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.mistake(&format!("`{}` is out of range: {float}", self.key))),
        }
    }

    /// A decimal number times 10^`scale`, from its digits and never through a float; as a text in quotes too.
    pub fn decimal(&self, scale: i32) -> Result<i128, Mistake> {
        let text = match self.inner.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            _ => return Err(self.wrong("a decimal number")),
        };
        let text = text.trim();
        let number = scaled(text.as_bytes(), scale);
        let finer = scaled(text.as_bytes(), scale + 6).ok();
        if number.is_ok_and(|number| finer.is_some_and(|finer| number.checked_mul(1_000_000) != Some(finer))) {
            return Err(self.mistake(&format!("`{}` has more than {scale} decimals: {text}", self.key)));
        }
        number.or(Err(
            self.mistake(&format!("`{}` must be a decimal number, as in \"2.50\", but it is {text}", self.key))
        ))
    }

    /// A text, number, or true or false, as it is written.
    pub fn plain_text(&self) -> Result<String, Mistake> {
        match self.inner.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(_) => Ok(self.integer()?.to_string()),
            DeValue::Float(float) => Ok(float.as_str().to_owned()),
            DeValue::Boolean(boolean) => Ok(boolean.to_string()),
            DeValue::Datetime(date) => Ok(date.to_string()),
            DeValue::Array(_) | DeValue::Table(_) => Err(self.wrong("a text, a number, or true or false")),
        }
    }

    /// A date as it is written, in quotes or bare.
    pub fn date_text(&self) -> Result<String, Mistake> {
        match self.inner.get_ref() {
            DeValue::String(text) => Ok(text.trim().to_owned()),
            DeValue::Datetime(date) => Ok(date.to_string()),
            _ => Err(self.wrong("a date")),
        }
    }

    pub fn list(&self) -> Result<Vec<Value<'a>>, Mistake> {
        let DeValue::Array(items) = self.inner.get_ref() else {
            return Err(self.wrong("a list in [ ]"));
        };
        let items =
            items.iter().map(|inner| Value { document: self.document, key: self.key.clone(), inner: inner.clone() });
        Ok(items.collect())
    }

    pub fn table(&self) -> Result<Table<'a>, Mistake> {
        let DeValue::Table(entries) = self.inner.get_ref() else {
            return Err(self.wrong("a table"));
        };
        Ok(Table { document: self.document, span: self.inner.span(), entries: entries.clone(), taken: Vec::new() })
    }

    /// A mistake in this value.
    pub fn mistake(&self, what: &str) -> Mistake {
        self.document.mistake(self.inner.span(), what)
    }

    fn place(&self) -> String {
        self.document.place(&self.inner.span())
    }

    fn wrong(&self, expected: &str) -> Mistake {
        let found = match self.inner.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a decimal number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.mistake(&format!("`{}` must be {expected}, but it is {found}", self.key))
    }
}
