//! `--pivot DOWN,ACROSS[,MEASURE]`: the answer as a heat table.

use super::{Dimension, Mistake};

/// The dimensions of a heat table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pivot {
    pub down: Dimension,
    pub across: Dimension,
    /// A column of the answer; None: what the report shows by itself.
    pub measure: Option<String>,
}

impl Pivot {
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
        let (down, across, measure) = match words.as_slice() {
            [down, across] => (down, across, None),
            [down, across, measure] => (down, across, Some(measure.replace('-', "_"))),
            _ => return Err(Mistake::NotAPivot { text: text.to_owned() }),
        };
        let (down, across) = (Dimension::parse(down)?, Dimension::parse(across)?);
        if down.name == across.name {
            return Err(Mistake::DimensionTwice { name: down.name });
        }
        Ok(Self { down, across, measure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dimensions_and_perhaps_a_measure() {
        let pivot = Pivot::parse("hour-of-day, input-bucket,p99-ms").unwrap();
        assert_eq!((pivot.down.name.as_str(), pivot.across.name.as_str()), ("hour_of_day", "input_bucket"));
        assert_eq!(pivot.measure.as_deref(), Some("p99_ms"));
        assert_eq!(Pivot::parse("model,gpu").unwrap().measure, None);
        for wrong in ["model", "model,gpu,a,b", "", "model,model"] {
            assert!(Pivot::parse(wrong).is_err(), "{wrong}");
        }
    }
}
