//! A distribution given by its quantiles, straight lines between them.
//!
//! Drawing from a formula (a log-normal, say) needs logarithms, whose last digit differs between
//! platforms, and its percentiles are known only roughly. Here the percentiles are the definition:
//! the table's P50, P95 and P99 are the truth that a report over enough rows must come near, and
//! whole-number arithmetic gives the same draw on every machine.

/// The shares, in thousandths, at which a table gives its values.
pub const SHARES: [u64; 9] = [0, 250, 500, 750, 900, 950, 990, 999, 1000];

/// The values at [`SHARES`]: lowest, P25, P50, P75, P90, P95, P99, P99.9 and highest.
pub struct Quantiles(pub [u32; SHARES.len()]);

impl Quantiles {
    /// The value at `unit`, which counts [0, 1) in steps of 2^-32, rounded to a whole number.
    pub fn at(&self, unit: u32) -> u64 {
        const ONE: u64 = 1 << 32;
        let place = u64::from(unit) * 1000;
        let upper = (1..SHARES.len() - 1).find(|&i| place < SHARES[i] * ONE).unwrap_or(SHARES.len() - 1);
        let (from, to) = (SHARES[upper - 1] * ONE, SHARES[upper] * ONE);
        let (low, high) = (u64::from(self.0[upper - 1]), u64::from(self.0[upper]));
        let climb = u128::from(high - low) * u128::from(place - from);
        let width = u128::from(to - from);
        low + ((climb + width / 2) / width) as u64
    }
}

#[cfg(test)]
impl Quantiles {
    /// The true value at `share` (0 to 1), not rounded: what percentiles of drawn values are
    /// compared with.
    pub fn truth(&self, share: f64) -> f64 {
        let upper = (1..SHARES.len()).find(|&i| share * 1000.0 <= SHARES[i] as f64).unwrap_or(SHARES.len() - 1);
        let (from, to) = (SHARES[upper - 1] as f64, SHARES[upper] as f64);
        let (low, high) = (f64::from(self.0[upper - 1]), f64::from(self.0[upper]));
        low + (high - low) * (share * 1000.0 - from) / (to - from)
    }

    /// The true share (0 to 1) of draws up to `value`: the inverse of [`Quantiles::truth`].
    pub fn share_up_to(&self, value: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.truth(middle) < value { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Quantiles = Quantiles([10, 20, 40, 80, 100, 200, 1_000, 5_000, 9_000]);

    #[test]
    fn a_table_gives_its_own_values_at_its_own_shares() {
        assert_eq!(TABLE.at(0), 10);
        assert_eq!(TABLE.at(1 << 30), 20);
        assert_eq!(TABLE.at(1 << 31), 40);
        assert_eq!(TABLE.at(3 << 30), 80);
        assert_eq!(TABLE.at(u32::MAX), 9_000);
    }

    #[test]
    fn between_two_shares_the_value_follows_the_straight_line() {
        assert_eq!(TABLE.at(3 << 29), 30);
        let unit = (0.97 * 2f64.powi(32)) as u32;
        assert_eq!(TABLE.at(unit), 600);
    }

    #[test]
    fn values_never_fall_as_the_share_rises() {
        let values: Vec<u64> = (0..=65_535u32).map(|step| TABLE.at(step << 16)).collect();
        assert!(values.is_sorted());
    }

    #[test]
    fn the_truth_agrees_with_the_draws_and_with_its_own_inverse() {
        for share in [0.1, 0.25, 0.6, 0.93, 0.995] {
            let drawn = TABLE.at((share * 2f64.powi(32)) as u32) as f64;
            assert!((TABLE.truth(share) - drawn).abs() <= 0.5 + 1e-6);
            assert!((TABLE.share_up_to(TABLE.truth(share)) - share).abs() < 1e-9);
        }
    }
}
