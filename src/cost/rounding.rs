//! Amounts in coarser units that still add up.

/// The amounts in units; where they are the total, so that they still are, the largest remainders rounded up.
pub fn rounded(values: &[Option<i128>], total: Option<i128>, unit: i128) -> Vec<Option<i128>> {
    let sum = values.iter().flatten().sum::<i128>();
    if total != Some(sum) {
        return values.iter().map(|value| value.map(|value| nearest(value, unit))).collect();
    }
    let mut parts: Vec<Option<i128>> = values.iter().map(|value| value.map(|value| value.div_euclid(unit))).collect();
    let left = nearest(sum, unit) - parts.iter().flatten().sum::<i128>();
    let remainder = |row: usize| values[row].map_or(0, |value| value.rem_euclid(unit));
    let mut order: Vec<usize> = (0..values.len()).filter(|row| values[*row].is_some()).collect();
    order.sort_by_key(|row| (std::cmp::Reverse(remainder(*row)), *row));
    for row in order.into_iter().take(usize::try_from(left).unwrap_or_default()) {
        parts[row] = parts[row].map(|part| part + 1);
    }
    parts
}

/// A value in units, halves away from zero, as the engine casts decimals.
pub fn nearest(value: i128, unit: i128) -> i128 {
    let (whole, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && value > 0);
    whole + i128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENT: i128 = 10_000_000_000;

    #[test]
    fn amounts_that_add_up_still_do_when_they_are_rounded() {
        let third = 100 * 100 * CENT / 3;
        let values = [Some(third + 1), Some(third), None, Some(third)];
        let total = values.iter().flatten().sum();
        assert_eq!(rounded(&values, Some(total), CENT), [Some(3334), Some(3333), None, Some(3333)]);
        assert_eq!(rounded(&values, None, CENT), [Some(3333), Some(3333), None, Some(3333)]);
    }

    #[test]
    fn credits_are_rounded_like_costs() {
        let values = [Some(-CENT / 2), Some(-CENT / 2), Some(3 * CENT)];
        assert_eq!(rounded(&values, Some(2 * CENT), CENT), [Some(0), Some(-1), Some(3)]);
    }
}
