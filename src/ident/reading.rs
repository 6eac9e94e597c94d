//! What a form makes of an id, before anyone asks whether its time can be meant.

use jiff::Timestamp;

/// How much speaks for a form, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Told only beside another, or where nothing else fits.
    Unlikely,
    /// Other texts of this length look so too.
    Possible,
    Likely,
    /// Nothing else is written so.
    Certain,
}

/// When an id says that it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970; ids can hold more than any calendar.
    pub nanoseconds: i128,
    pub resolution: &'static str,
}

impl Moment {
    pub fn of_milliseconds(milliseconds: impl Into<i128>) -> Self {
        Moment { nanoseconds: milliseconds.into() * 1_000_000, resolution: "ms" }
    }

    pub fn of_seconds(seconds: impl Into<i128>) -> Self {
        Moment { nanoseconds: seconds.into() * 1_000_000_000, resolution: "s" }
    }

    /// As long after an epoch as this is after 1970.
    pub fn after(self, epoch: Timestamp) -> Self {
        Moment { nanoseconds: self.nanoseconds + epoch.as_nanosecond(), ..self }
    }
}

/// An id as one form reads it.
#[derive(Debug, Clone)]
pub struct Reading {
    pub form: &'static str,
    pub title: &'static str,
    pub certainty: Certainty,
    pub moment: Option<Moment>,
    pub instance: Option<String>,
    pub sequence: Option<String>,
    pub random_bits: Option<u32>,
    pub notes: Vec<String>,
}

impl Reading {
    /// An id that has a form and says nothing.
    pub fn new(form: &'static str, title: &'static str, certainty: Certainty) -> Self {
        Reading {
            form,
            title,
            certainty,
            moment: None,
            instance: None,
            sequence: None,
            random_bits: None,
            notes: Vec::new(),
        }
    }

    /// The reading where its time cannot be meant: only what nothing else looks like still has its form.
    pub fn doubted(self) -> Self {
        match self.certainty {
            Certainty::Certain => self,
            _ => Reading { certainty: Certainty::Unlikely, ..self },
        }
    }

    /// Which of time, instance and sequence are not in the id.
    pub fn not_encoded(&self) -> String {
        let time = match self.moment {
            None => Some("time"),
            Some(Moment { resolution: "day", .. }) => Some("time of day"),
            Some(_) => None,
        };
        let instance = self.instance.is_none().then_some("instance");
        let sequence = self.sequence.is_none().then_some("sequence");
        let missing: Vec<&str> = [time, instance, sequence].into_iter().flatten().collect();
        if missing.is_empty() { "nothing".to_owned() } else { missing.join(", ") }
    }
}
