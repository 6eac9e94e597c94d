//! What requests cost: a price book, and what it makes of the tokens of one upstream call.
//!
//! ```text
//! prices.toml -> book (models, prices by date, tiers, rates, pools) -> offer (the price that holds for a call)
//!   -> charge (classes of tokens that never overlap, each with its cost)
//! ```
//!
//! Money is whole numbers of 10^-18 of its currency: a price per million tokens with twelve decimals is exact for one token,
//! and no sum depends on the order of its parts.

pub mod bill;
pub mod book;
pub mod charge;
pub mod lock;
pub mod offer;
pub mod price;
pub mod rounding;
pub mod sanity;
pub mod tables;

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Money in units of 10^-18 of a currency.
pub type Money = i128;

/// Decimals of [`Money`].
pub const MONEY_SCALE: i8 = 18;

/// Decimals of a factor, a rate, and a price per million tokens. The last are [`Money`] for one token as they stand.
pub const FACTOR_SCALE: i32 = 12;

/// One, in units of [`FACTOR_SCALE`].
pub const ONE: i128 = 10i128.pow(FACTOR_SCALE as u32);

/// When a day begins in a zone, nanoseconds since 1970; None beyond the years that a time can have.
pub(crate) fn first_moment(day: Date, zone: &TimeZone) -> Option<i64> {
    let midnight = day.to_zoned_datetime(zone.clone()).ok()?;
    i64::try_from(midnight.timestamp().as_nanosecond()).ok()
}

/// `amount` times a factor of [`FACTOR_SCALE`] decimals, rounded half to even; None where it is beyond all money.
pub fn times(amount: Money, factor: i128) -> Option<Money> {
    // whole and fraction of the factor apart, so that large amounts still fit
    let (whole, fraction) = (factor.div_euclid(ONE), factor.rem_euclid(ONE));
    let (high, low) = (amount.div_euclid(ONE), amount.rem_euclid(ONE));
    let product = low * fraction;
    let (quotient, rest) = (product.div_euclid(ONE), product.rem_euclid(ONE));
    let up = rest * 2 > ONE || (rest * 2 == ONE && (quotient + high * fraction) % 2 != 0);
    amount.checked_mul(whole)?.checked_add(high.checked_mul(fraction)?)?.checked_add(quotient + i128::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_applied_exactly_and_rounded_half_to_even() {
        assert_eq!(times(1_000, ONE / 2), Some(500));
        assert_eq!((times(1, ONE / 2), times(3, ONE / 2), times(5, ONE / 2)), (Some(0), Some(2), Some(2)));
        assert_eq!((times(-1, ONE / 2), times(-3, ONE / 2)), (Some(0), Some(-2)));
        assert_eq!(times(7 * ONE * ONE, 139_100_000_000), Some(973_700_000_000_000_000_000_000));
        assert_eq!(times(i128::MAX, 2 * ONE), None);
    }
}
