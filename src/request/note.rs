//! What the reader of a report must know about how the request was understood.

/// A remark that goes into the notes of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable and machine readable.
    pub code: &'static str,
    /// A sentence.
    pub text: String,
}

impl Note {
    /// A remark with a fixed code.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Note { code, text: text.into() }
    }
}
