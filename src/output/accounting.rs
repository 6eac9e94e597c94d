//! Where the records went, as one line that stands beside every answer.

use indicatif::{DecimalBytes, HumanCount};
use jiff::tz::TimeZone;

use crate::report::Accounting;

use super::legible;

/// For example `3 files, 1.02 GB, 2,000,000 records: 1,999,998 used, 2 rejected; 2025-06-01T00:00:00Z to
/// 2025-06-30T23:59:59Z`. Names every count that is not zero.
pub fn accounting_line(accounting: &Accounting, zone: &TimeZone) -> String {
    let damaged = aside(accounting.damaged_files, "damaged");
    let undated = aside(accounting.undated, "undated");
    let mut line = format!(
        "{}{damaged}, {}, {}{undated}: {} used",
        counted(accounting.files, "file"),
        DecimalBytes(accounting.bytes),
        counted(accounting.records, "record"),
        HumanCount(accounting.used),
    );
    for (count, what) in [
        (accounting.rejected, "rejected"),
        (accounting.skipped, "skipped"),
        (accounting.duplicates, if accounting.duplicates == 1 { "duplicate" } else { "duplicates" }),
        (accounting.filtered, "filtered out"),
    ] {
        if count > 0 {
            line += &format!(", {} {what}", HumanCount(count));
        }
    }
    if let (Some(first), Some(last)) = (accounting.first, accounting.last) {
        line += &format!("; {} to {}", legible::time(first, zone), legible::time(last, zone));
    }
    line
}

/// ` (3 damaged)`, or nothing where there is none.
fn aside(count: u64, what: &str) -> String {
    if count == 0 { String::new() } else { format!(" ({} {what})", HumanCount(count)) }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_only_what_happened() {
        let clean = Accounting {
            files: 3,
            bytes: 1_020_000_000,
            records: 2_000_000,
            rejected: 2,
            used: 1_999_998,
            first: Some("2025-06-01T00:00:00Z".parse().unwrap()),
            last: Some("2025-06-30T23:59:59.5Z".parse().unwrap()),
            ..Accounting::default()
        };
        assert_eq!(
            accounting_line(&clean, &TimeZone::UTC),
            "3 files, 1.02 GB, 2,000,000 records: 1,999,998 used, 2 rejected; \
             2025-06-01T00:00:00Z to 2025-06-30T23:59:59.500Z"
        );
    }

    #[test]
    fn names_every_count_that_is_not_zero() {
        let troubled = Accounting {
            files: 1,
            bytes: 512,
            damaged_files: 1,
            records: 10,
            rejected: 1,
            skipped: 2,
            duplicates: 1,
            filtered: 3,
            used: 3,
            undated: 2,
            first: Some("2025-06-01T00:00:00Z".parse().unwrap()),
            last: Some("2025-06-01T00:00:00Z".parse().unwrap()),
        };
        assert_eq!(
            accounting_line(&troubled, &TimeZone::get("Asia/Shanghai").unwrap()),
            "1 file (1 damaged), 512 B, 10 records (2 undated): 3 used, 1 rejected, 2 skipped, 1 duplicate, \
             3 filtered out; 2025-06-01T08:00:00+08:00 to 2025-06-01T08:00:00+08:00"
        );
    }

    #[test]
    fn no_input_is_a_line_too() {
        let line = accounting_line(&Accounting::default(), &TimeZone::UTC);
        assert_eq!(line, "0 files, 0 B, 0 records: 0 used");
    }
}
