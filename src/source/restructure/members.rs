//! The members of a record that is put together from others: keys with the JSON text of their values.

use crate::source::json::ObjectWriter;

/// In the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Members(Vec<(String, Vec<u8>)>);

impl Members {
    /// The JSON text of a value.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &value[..])
    }

    pub fn set(&mut self, key: &str, value: &[u8]) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) => *known = value.to_vec(),
            None => self.0.push((key.to_owned(), value.to_vec())),
        }
    }

    /// Sets what is not known yet; null is not known.
    pub fn set_first(&mut self, key: &str, value: &[u8]) {
        if self.get(key).is_none_or(|known| known == b"null") {
            self.set(key, value);
        }
    }

    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// The record as JSON.
    pub fn json(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut object = ObjectWriter::new(&mut text);
        for (key, value) in &self.0 {
            object.key(key).extend_from_slice(value);
        }
        object.end();
        text
    }
}
