//! How sure a change of a percentile is: the bootstrap, without drawing the samples.
//!
//! The percentile of a sample drawn with replacement from n values is one of the n: that at rank ceil(n U), where U is the
//! r-th smallest of n even draws, which follows the beta distribution of r and n + 1 - r (Efron and Tibshirani, An
//! Introduction to the Bootstrap, 1993, on the bootstrap of quantiles). So each draw costs the same for any n.

use fastrand::Rng;

/// Draws of each change.
const DRAWS: usize = 2000;

/// A percentile of the values of two sides, and how it changed from one to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub a: f64,
    pub b: f64,
    /// Bounds of b / a - 1.
    pub low: f64,
    pub high: f64,
}

/// The values of one part of the traffic, on both sides.
pub struct Part {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Part {
    /// NaN is no value.
    pub fn new(a: Vec<f64>, b: Vec<f64>) -> Self {
        let sorted = |mut values: Vec<f64>| {
            values.retain(|value| !value.is_nan());
            values.sort_by(f64::total_cmp);
            values
        };
        Self { a: sorted(a), b: sorted(b) }
    }

    fn weight(&self) -> f64 {
        (self.a.len() + self.b.len()) as f64
    }

    fn is_measured(&self) -> bool {
        let is_positive = |values: &[f64]| values.first().is_some_and(|first| *first > 0.0);
        is_positive(&self.a) && is_positive(&self.b)
    }
}

/// The change of the percentile `p` between the sides, for the same mix of parts on both: the geometric mean of what the
/// parts say, weighted by their values on both sides together. None without values above zero on both sides of a part.
pub fn change(parts: &[Part], p: f64, confidence: f64, seed: u64) -> Option<Change> {
    let parts: Vec<&Part> = parts.iter().filter(|part| part.is_measured()).collect();
    let total: f64 = parts.iter().map(|part| part.weight()).sum();
    if parts.is_empty() || !(0.0..1.0).contains(&p) {
        return None;
    }
    let mean = |of: &mut dyn FnMut(&Part) -> f64| {
        parts.iter().map(|part| part.weight() / total * of(part).ln()).sum::<f64>().exp()
    };
    let a = mean(&mut |part| percentile(&part.a, p));
    let b = mean(&mut |part| percentile(&part.b, p));
    let mut rng = Rng::with_seed(seed);
    let mut draws: Vec<f64> =
        (0..DRAWS).map(|_| mean(&mut |part| drawn(&part.b, p, &mut rng) / drawn(&part.a, p, &mut rng)) - 1.0).collect();
    draws.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Change { a, b, low: percentile(&draws, tail), high: percentile(&draws, 1.0 - tail) })
}

/// Of sorted values, by linear interpolation at rank p (n - 1).
fn percentile(sorted: &[f64], p: f64) -> f64 {
    let rank = p * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// The percentile of a sample with replacement of as many values.
fn drawn(sorted: &[f64], p: f64, rng: &mut Rng) -> f64 {
    let n = sorted.len() as f64;
    // the rank among the sample, with the fraction that interpolation would take, by chance
    let rank = p * (n - 1.0);
    let r = rank.floor() + 1.0 + f64::from(rng.f64() < rank.fract());
    let at = beta(r, n + 1.0 - r, rng) * n;
    sorted[(at.ceil() as usize).clamp(1, sorted.len()) - 1]
}

/// A draw from the beta distribution.
fn beta(a: f64, b: f64, rng: &mut Rng) -> f64 {
    let x = gamma(a, rng);
    x / (x + gamma(b, rng))
}

/// A draw from the gamma distribution of a shape of at least 1 (Marsaglia and Tsang, ACM Transactions on Mathematical
/// Software 26, 2000).
fn gamma(shape: f64, rng: &mut Rng) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(rng);
        let v = (1.0 + c * normal).powi(3);
        if v > 0.0 && (1.0 - rng.f64()).ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// A draw from the normal distribution (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that look like latencies.
    fn latencies(count: usize, scale: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::with_seed(seed);
        (0..count).map(|_| scale * (0.5 * normal(&mut rng)).exp()).collect()
    }

    #[test]
    fn the_bounds_are_those_of_samples_really_drawn() {
        let values = Part::new(latencies(300, 100.0, 1), Vec::new()).a;
        let mut rng = Rng::with_seed(2);
        for p in [0.5, 0.95] {
            let bounds = |mut draws: Vec<f64>| {
                draws.sort_by(f64::total_cmp);
                [percentile(&draws, 0.05), percentile(&draws, 0.95)]
            };
            let slowly = bounds(
                (0..4000)
                    .map(|_| {
                        let sample = (0..values.len()).map(|_| values[rng.usize(..values.len())]).collect();
                        percentile(&Part::new(sample, Vec::new()).a, p)
                    })
                    .collect(),
            );
            let fast = bounds((0..4000).map(|_| drawn(&values, p, &mut rng)).collect());
            for (slow, fast) in slowly.iter().zip(fast) {
                assert!((slow / fast - 1.0).abs() < 0.02, "{p}: {slowly:?} {fast}");
            }
        }
    }

    #[test]
    fn equal_sides_keep_zero_within_the_bounds_as_often_as_the_confidence_says() {
        let misses = (0..400).filter(|&run| {
            let part = Part::new(latencies(200, 100.0, 1000 + run), latencies(200, 100.0, 5000 + run));
            let change = change(&[part], 0.5, 0.9, 7).unwrap();
            change.low > 0.0 || change.high < 0.0
        });
        let misses = misses.count();
        assert!((20..=60).contains(&misses), "{misses}");
    }

    #[test]
    fn a_change_is_that_of_the_same_mix() {
        // both parts are twice as slow on side b, which has more of the slow part
        let fast = Part::new(vec![1.0; 90], vec![2.0; 10]);
        let slow = Part::new(vec![100.0; 10], vec![200.0; 90]);
        let change = change(&[fast, slow], 0.5, 0.95, 1).unwrap();
        assert!((change.b / change.a - 2.0).abs() < 1e-9 && (change.low - 1.0).abs() < 1e-9, "{change:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bounds_and_nothing_measured_none() {
        let part = || [Part::new(latencies(50, 1.0, 1), latencies(50, 1.0, 2))];
        assert_eq!(change(&part(), 0.95, 0.95, 3), change(&part(), 0.95, 0.95, 3));
        assert_eq!(change(&[], 0.5, 0.95, 1), None);
        assert_eq!(change(&[Part::new(vec![1.0], Vec::new())], 0.5, 0.95, 1), None);
    }
}
