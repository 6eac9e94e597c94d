//! Who calls whom: what the roles of records tell of their order.

use crate::trace::life::Record;

/// Roles in the order in which a request passes them.
const ORDER: [&str; 3] = ["gateway", "app", "engine"];

/// The place of a role in that order; None where it is not known.
pub(super) fn rank(role: Option<&str>) -> Option<usize> {
    ORDER.iter().position(|known| Some(*known) == role)
}

/// For each record the one that it was called from: of the nearest role above it that of the same attempt, else the
/// last that had begun by then, else the first.
pub(super) fn parents(records: &[Record]) -> Vec<Option<usize>> {
    let of = |record: &Record| rank(record.role.as_deref());
    let parent = |record: &Record| {
        let own = of(record)?;
        let above = records.iter().filter_map(of).filter(|other| *other < own).max()?;
        let callers = || records.iter().enumerate().filter(|(_, caller)| of(caller) == Some(above));
        let same_attempt = |caller: &Record| caller.attempt.is_some() && caller.attempt == record.attempt;
        let had_begun = |caller: &Record| caller.start_ms.zip(record.start_ms).is_some_and(|(from, to)| from <= to);
        let attempt = callers().find(|(_, caller)| same_attempt(caller));
        let last = || callers().rfind(|(_, caller)| had_begun(caller));
        attempt.or_else(last).or_else(|| callers().next()).map(|(at, _)| at)
    };
    records.iter().map(parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(role: &str, attempt: Option<i64>, start_ms: f64) -> Record {
        let role = (!role.is_empty()).then(|| role.to_owned());
        Record { role, attempt, start_ms: Some(start_ms), ..Record::default() }
    }

    #[test]
    fn an_attempt_of_the_engine_was_called_by_that_of_the_gateway() {
        let (first, second) = (Some(1), Some(2));
        let records = [
            record("gateway", first, 0.0),
            record("engine", first, 1.0),
            record("gateway", second, 10.0),
            record("engine", second, 11.0),
        ];
        assert_eq!(parents(&records), [None, Some(0), None, Some(2)]);
    }

    #[test]
    fn without_attempts_the_last_caller_that_had_begun_counts_and_with_a_clock_ahead_the_first() {
        let records = [record("engine", None, -5.0), record("gateway", None, 0.0), record("gateway", None, 10.0)];
        assert_eq!(parents(&records), [Some(1), None, None]);
        let records = [record("gateway", None, 0.0), record("gateway", None, 10.0), record("engine", None, 11.0)];
        assert_eq!(parents(&records), [None, None, Some(1)]);
    }

    #[test]
    fn a_role_that_is_missing_is_passed_over_and_unknown_ones_are_called_by_none() {
        let records = [record("gateway", None, 0.0), record("engine", None, 1.0), record("", None, 2.0)];
        assert_eq!(parents(&records), [None, Some(0), None]);
        let records = [record("app", None, 0.0), record("engine", None, 1.0), record("router", None, 2.0)];
        assert_eq!(parents(&records), [None, Some(0), None]);
    }
}
