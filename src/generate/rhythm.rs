//! When requests arrive: by the hour of the day and the day of the week, in order, without holding
//! them all.
//!
//! The period is cut into hours, each with a weight. Request `i` of `n` belongs to the share `i/n`
//! of the whole weight, so the stretch of time that a block of requests falls in is known without
//! drawing the ones before it. Within its stretch a block falls at random, which leaves the short
//! rushes and lulls of real traffic.

use anyhow::{Context, Result, ensure};
use jiff::civil::Weekday;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::draw::{Draws, Purpose};

/// The weight of each UTC hour on a working day, in percent of a busy hour.
#[rustfmt::skip]
const HOURS: [u64; 24] = [
    20, 14, 10, 8, 8, 12, 22, 40, 70, 100, 115, 110,
    85, 95, 115, 120, 112, 95, 75, 65, 60, 52, 42, 30,
];

/// What is left of an hour's weight on a Saturday or Sunday, in percent.
const WEEKEND: u64 = 45;

/// Requests that fall at random within one stretch.
const BLOCK: u64 = 64;

const HOUR_US: u64 = 3_600_000_000;

/// How busy the service is in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Below half of a busy hour's weight.
    Calm,
    Busy,
    /// A busy hour's weight or more.
    Peak,
}

/// The moment a request is sent, and what the service is like then.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// Microseconds since 1970, UTC.
    pub at_us: i64,
    pub load: Load,
    /// The quarter of the generated period, 0 to 3.
    pub quarter: usize,
}

/// The weight of every hour of the period.
pub struct Rhythm {
    start_us: i64,
    hours: Vec<Hour>,
    total: u64,
}

struct Hour {
    weight: u64,
    /// The weight of all hours before this one.
    before: u64,
}

impl Rhythm {
    /// The rhythm of `days` times 24 hours from `start`. An error where there are no days, or the
    /// calendar ends before them.
    pub fn new(start: Timestamp, days: u32) -> Result<Self> {
        ensure!((1..=3_660).contains(&days), "cannot generate {days} days of logs: give 1 to 3660 days");
        let mut hours = Vec::with_capacity(days as usize * 24);
        let mut total = 0;
        for hour in 0..i64::from(days) * 24 {
            let instant = start
                .checked_add(SignedDuration::from_hours(hour))
                .with_context(|| format!("cannot generate {days} days of logs from {start}: give an earlier start"))?;
            let time = TimeZone::UTC.to_datetime(instant);
            let of_day = HOURS[time.hour() as usize];
            let of_week = if matches!(time.weekday(), Weekday::Saturday | Weekday::Sunday) { WEEKEND } else { 100 };
            let weight = of_day * of_week;
            hours.push(Hour { weight, before: total });
            total += weight;
        }
        Ok(Rhythm { start_us: start.as_microsecond(), hours, total })
    }

    /// The arrivals of `rows` requests, earliest first.
    pub fn arrivals(&self, seed: u64, rows: u64) -> impl Iterator<Item = Arrival> {
        let mut hour = 0;
        (0..rows.div_ceil(BLOCK)).flat_map(move |block| self.shares_of_block(seed, rows, block)).map(move |share| {
            while hour + 1 < self.hours.len() && share >= u128::from(self.hours[hour + 1].before) << 32 {
                hour += 1;
            }
            self.arrival(hour, share)
        })
    }

    /// How much weight lies before each arrival of a block, in steps of 2^-32, least first.
    fn shares_of_block(&self, seed: u64, rows: u64, block: u64) -> impl Iterator<Item = u128> + use<> {
        let first = block * BLOCK;
        let size = BLOCK.min(rows - first);
        let mut units: Vec<u32> =
            (first..first + size).map(|row| Draws::of_request(seed, row).unit(Purpose::Arrival)).collect();
        units.sort_unstable();
        let (total, rows) = (u128::from(self.total), u128::from(rows));
        units
            .into_iter()
            .map(move |unit| total * ((u128::from(first) << 32) + u128::from(size) * u128::from(unit)) / rows)
    }

    fn arrival(&self, hour: usize, share: u128) -> Arrival {
        let Hour { weight, before } = self.hours[hour];
        let within_us = ((share - (u128::from(before) << 32)) * u128::from(HOUR_US) / u128::from(weight)) >> 32;
        Arrival {
            at_us: self.start_us + hour as i64 * HOUR_US as i64 + within_us as i64,
            load: Load::of_weight(weight),
            quarter: hour * 4 / self.hours.len(),
        }
    }
}

impl Load {
    fn of_weight(weight: u64) -> Self {
        match weight {
            0..5_000 => Load::Calm,
            5_000..10_000 => Load::Busy,
            _ => Load::Peak,
        }
    }
}

#[cfg(test)]
impl Rhythm {
    /// The true share (0 to 1) of requests that arrive under `load`.
    pub fn share_under(&self, load: Load) -> f64 {
        let weight: u64 = self.hours.iter().map(|hour| hour.weight).filter(|&w| Load::of_weight(w) == load).sum();
        weight as f64 / self.total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday, 1 June 2025.
    fn start() -> Timestamp {
        "2025-06-01T00:00:00Z".parse().unwrap()
    }

    fn requests_by_hour(days: u32, rows: u64) -> Vec<u64> {
        let mut counts = vec![0; days as usize * 24];
        for arrival in Rhythm::new(start(), days).unwrap().arrivals(5, rows) {
            counts[((arrival.at_us - start().as_microsecond()) / HOUR_US as i64) as usize] += 1;
        }
        counts
    }

    #[test]
    fn arrivals_are_in_order_within_the_period_and_as_many_as_asked() {
        let rhythm = Rhythm::new(start(), 3).unwrap();
        for rows in [1, 63, 64, 65, 10_000] {
            let times: Vec<i64> = rhythm.arrivals(1, rows).map(|arrival| arrival.at_us).collect();
            assert_eq!(times.len() as u64, rows);
            assert!(times.is_sorted());
            let end = start().as_microsecond() + 3 * 24 * HOUR_US as i64;
            assert!(times[0] >= start().as_microsecond() && *times.last().unwrap() < end);
        }
    }

    #[test]
    fn an_hour_gets_its_weight_of_the_requests() {
        let rows = 200_000;
        let counts = requests_by_hour(7, rows);
        let week: u64 = HOURS.iter().sum::<u64>() * (5 * 100 + 2 * WEEKEND);
        for (hour, &count) in counts.iter().enumerate() {
            let of_week = if matches!(hour / 24, 0 | 6) { WEEKEND } else { 100 };
            let expected = rows as f64 * (HOURS[hour % 24] * of_week) as f64 / week as f64;
            assert!((count as f64 - expected).abs() < 2.0 * BLOCK as f64, "hour {hour}: {count} for {expected}");
        }
    }

    #[test]
    fn load_follows_the_weight_and_weekends_have_no_peak() {
        let rhythm = Rhythm::new(start(), 1).unwrap();
        assert_eq!(rhythm.share_under(Load::Peak), 0.0);
        assert!(rhythm.arrivals(1, 1_000).all(|arrival| arrival.load != Load::Peak));
        let monday = Rhythm::new("2025-06-02T00:00:00Z".parse().unwrap(), 1).unwrap();
        let peak: u64 = HOURS.iter().filter(|&&weight| weight >= 100).sum();
        assert_eq!(monday.share_under(Load::Peak), peak as f64 / HOURS.iter().sum::<u64>() as f64);
    }

    #[test]
    fn the_longest_period_and_the_most_rows_do_not_overflow() {
        let rhythm = Rhythm::new(start(), 3_660).unwrap();
        assert!(
            rhythm.shares_of_block(1, u64::MAX, u64::MAX / BLOCK).all(|share| share >> 32 < u128::from(rhythm.total))
        );
    }

    #[test]
    fn periods_that_cannot_be_are_refused_with_a_sentence() {
        let none = Rhythm::new(start(), 0).err().unwrap().to_string();
        assert_eq!(none, "cannot generate 0 days of logs: give 1 to 3660 days");
        let late = Rhythm::new("9999-12-30T00:00:00Z".parse().unwrap(), 30).err().unwrap().to_string();
        assert!(late.ends_with("give an earlier start"), "{late}");
    }
}
