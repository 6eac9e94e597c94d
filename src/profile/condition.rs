//! What must be true of a record: which keys are there, and what some of them say.

use super::path::ValuePath;

/// All parts must hold. One without parts holds for every record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Each of these is there, null or not.
    pub keys: Vec<ValuePath>,
    /// At least one of these is there, if any is named.
    pub any: Vec<ValuePath>,
    /// None of these is there.
    pub without: Vec<ValuePath>,
    /// No well-known key of what is measured of requests is there: only what is inside can be one.
    pub bare: bool,
    /// The value is one of these texts, compared as written.
    pub is: Vec<(ValuePath, Vec<String>)>,
    /// The value is none of these; one that is missing is none.
    pub not: Vec<(ValuePath, Vec<String>)>,
    /// The value begins with one of these.
    pub starts: Vec<(ValuePath, Vec<String>)>,
}

impl Condition {
    /// How much it asks for: of two that hold, the one that asks for more says more.
    pub fn weight(&self) -> usize {
        self.keys.len()
            + usize::from(!self.any.is_empty())
            + self.without.len()
            + 2 * (self.is.len() + self.starts.len())
            + self.not.len()
            + usize::from(self.bare)
    }

    /// Every path it looks at.
    pub fn paths(&self) -> impl Iterator<Item = &ValuePath> {
        let valued = [&self.is, &self.not, &self.starts].into_iter().flatten().map(|(path, _)| path);
        self.keys.iter().chain(&self.any).chain(&self.without).chain(valued)
    }

    /// Whether it asks what values say, beyond which keys are there.
    pub fn reads_values(&self) -> bool {
        !self.is.is_empty() || !self.not.is_empty() || !self.starts.is_empty()
    }

    /// The paths that made it hold, as `inspect` names them.
    pub fn deciding(&self) -> Vec<String> {
        let valued = |values: &[(ValuePath, Vec<String>)]| {
            values.iter().map(|(path, texts)| format!("{path}={}", texts.join("|"))).collect::<Vec<_>>()
        };
        let mut deciding: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        if !self.any.is_empty() {
            deciding.push(self.any.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"));
        }
        deciding.extend(valued(&self.is));
        deciding.extend(valued(&self.starts));
        deciding
    }
}
