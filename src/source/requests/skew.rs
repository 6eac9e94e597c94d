//! How far the clocks of two roles are apart, measured where both saw the same request.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::request::{Role, Word};

/// Differences that are kept of two clocks. Which ones does not depend on the order in which they come.
const SAMPLES: usize = 4096;

/// Nanoseconds below which clocks agree: a request needs some time from one to the other.
const NOTICEABLE: i64 = 2_000_000_000;

const QUARTER: i64 = 900_000_000_000;

/// The clocks of two roles, the second on one host.
type Clocks = (Role, Role, String);

/// Differences of arrival times, collected by all threads of a scan.
#[derive(Debug, Default)]
pub struct Skews {
    /// What was measured before, and is set right.
    corrected: Mutex<Vec<Skew>>,
    seen: Mutex<BTreeMap<(u8, u8, String), Differences>>,
}

#[derive(Debug, Default)]
struct Differences {
    /// By a hash of the id.
    samples: BTreeMap<u64, i64>,
    count: u64,
}

/// What was measured of two clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Skew {
    pub clocks: Clocks,
    /// Requests that both saw.
    pub requests: u64,
    /// Median of the arrival by the second clock minus that by the first, nanoseconds.
    pub median: i64,
}

impl Skews {
    /// A request arrived at `there` by the clock of `role` on `host`, and at `here` by that of `base`.
    pub fn add(&self, base: (Role, i64), other: (Role, i64), host: &str, hash: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let differences = seen.entry((base.0 as u8, other.0 as u8, host.to_owned())).or_default();
        differences.count += 1;
        differences.samples.insert(hash, other.1.saturating_sub(base.1));
        if differences.samples.len() > SAMPLES {
            differences.samples.pop_last();
        }
    }

    /// From now on what was measured is set right, and measured again.
    pub fn correct(&self) {
        let measured = self.measured();
        *self.corrected.lock().unwrap_or_else(PoisonError::into_inner) = measured;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What is set right.
    pub fn corrected(&self) -> Vec<Skew> {
        self.corrected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Clocks that are noticeably apart.
    pub fn measured(&self) -> Vec<Skew> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let role = |number: u8| [Role::Gateway, Role::Engine, Role::App].into_iter().find(|role| *role as u8 == number);
        let skew = |((base, other, host), differences): (&(u8, u8, String), &Differences)| {
            let mut values: Vec<i64> = differences.samples.values().copied().collect();
            values.sort_unstable();
            let median = *values.get(values.len() / 2)?;
            let clocks = (role(*base)?, role(*other)?, host.clone());
            Some(Skew { clocks, requests: differences.count, median })
        };
        seen.iter().filter_map(skew).filter(|skew| skew.median.abs() >= NOTICEABLE).collect()
    }
}

impl Skew {
    /// Nanoseconds to take off the times of the second clock: a zone mistake is set right to the quarter of an hour, so
    /// that what a request takes from one to the other stays.
    pub fn correction(&self) -> i64 {
        self.whole_quarters().map_or(self.median, |quarters| quarters * QUARTER)
    }

    /// What to take off the times of a role on a host; 0 where its clock is right.
    pub fn correction_of(skews: &[Skew], role: Option<Role>, host: &str) -> i64 {
        skews.iter().find(|skew| skew.is_of(role, host)).map_or(0, Skew::correction)
    }

    /// Whether it is that of the records of a role on a host.
    fn is_of(&self, role: Option<Role>, host: &str) -> bool {
        Some(self.clocks.1) == role && self.clocks.2 == host
    }

    /// The difference as a zone mistake makes it: a whole number of quarters of an hour, near enough.
    pub fn whole_quarters(&self) -> Option<i64> {
        let quarters = (self.median as f64 / QUARTER as f64).round() as i64;
        let rest = self.median - quarters * QUARTER;
        (quarters != 0 && quarters.abs() <= 14 * 4 && rest.abs() < NOTICEABLE * 5).then_some(quarters)
    }

    /// A sentence about it.
    pub fn sentence(&self) -> String {
        let (base, other, host) = (self.clocks.0.word(), self.clocks.1.word(), &self.clocks.2);
        let of_host = if host.is_empty() { String::new() } else { format!(" on {host}") };
        let way = if self.median > 0 { "later" } else { "earlier" };
        let apart = duration(self.median.unsigned_abs());
        let start = format!(
            "the {other}'s clock{of_host} shows {apart} {way} than the {base}'s, by the median of the requests that both saw"
        );
        match self.whole_quarters() {
            Some(quarters) => {
                let offset = format!(
                    "{}{:02}:{:02}",
                    if quarters > 0 { '+' } else { '-' },
                    quarters.abs() / 4,
                    quarters.abs() % 4 * 15
                );
                format!(
                    "{start}: its times are most likely local times of a zone {offset} that are read as UTC; give its source that source_tz"
                )
            }
            None => start,
        }
    }
}

fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(differences: &[i64]) -> Vec<Skew> {
        let skews = Skews::default();
        for (hash, difference) in (0..).zip(differences) {
            skews.add((Role::Gateway, 0), (Role::Engine, *difference), "gpu-1", hash);
        }
        skews.measured()
    }

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn clocks_that_agree_are_not_told() {
        assert_eq!(measured(&[SECOND, SECOND / 2, -SECOND]), []);
    }

    #[test]
    fn a_difference_of_whole_hours_is_a_zone_mistake() {
        let skew = &measured(&[8 * 3600 * SECOND + SECOND; 9])[0];
        assert_eq!((skew.whole_quarters(), skew.requests), (Some(32), 9));
        assert!(skew.sentence().contains("+08:00"), "{}", skew.sentence());
        let other = &measured(&[-47 * SECOND])[0];
        assert_eq!(other.whole_quarters(), None);
        assert!(other.sentence().starts_with("the engine's clock on gpu-1 shows 47 s earlier"), "{}", other.sentence());
    }
}
