//! What is left of an id behind a prefix.

/// Between the parts of an id.
pub fn is_separator(letter: char) -> bool {
    matches!(letter, '-' | '_' | ':' | '.' | '=' | '/' | ' ')
}

/// An id's end, and what stands before it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub prefix: &'a str,
    pub text: &'a str,
}

impl<'a> Part<'a> {
    /// The whole id, then what follows each separator, each letter before a digit, and the last 36 characters, which may
    /// be a UUID behind anything.
    pub fn all(id: &'a str) -> impl Iterator<Item = Part<'a>> {
        let bytes = id.as_bytes();
        let begins =
            move |start: usize| match (start.checked_sub(1).and_then(|before| bytes.get(before)), bytes.get(start)) {
                (None, _) => true,
                (Some(before), Some(first)) => {
                    is_separator(char::from(*before))
                        || before.is_ascii_alphabetic() && first.is_ascii_digit()
                        || start + 36 == bytes.len() && id.is_char_boundary(start)
                }
                (Some(_), None) => false,
            };
        (0..bytes.len()).filter(move |start| begins(*start)).map(|start| {
            let (prefix, text) = id.split_at(start);
            Part { prefix, text }
        })
    }

    /// Whether nothing or a separator stands before it.
    pub fn is_apart(&self) -> bool {
        self.prefix.is_empty() || self.prefix.ends_with(is_separator)
    }

    /// Whether it stands apart, or behind letters alone as in `req20250601-1`: what stands in the middle of digits and
    /// letters is no number.
    pub fn is_behind_a_word(&self) -> bool {
        let word = self.prefix.rsplit(is_separator).next().unwrap_or_default();
        word.bytes().all(|byte| byte.is_ascii_alphabetic())
    }
}
