//! Numbers as ids write them: digits alone, where the parsers of the language would take a sign.

/// The number of exactly `count` hexadecimal digits of either case.
pub fn hex(text: &str, count: usize) -> Option<u128> {
    let is_hex = text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// The number of decimal digits, however many.
pub fn decimal(text: &str) -> Option<u64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// The number of digits from `alphabet`, the least first; None beyond 128 bits.
pub fn in_alphabet(text: &str, alphabet: &[u8]) -> Option<u128> {
    let base = alphabet.len() as u128;
    text.bytes().try_fold(0_u128, |number, byte| {
        let digit = alphabet.iter().position(|letter| *letter == byte)?;
        number.checked_mul(base)?.checked_add(digit as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_no_digit() {
        assert_eq!(hex("+f", 2), None);
        assert_eq!(decimal("+1"), None);
        assert_eq!(decimal("-1"), None);
        assert_eq!(decimal(""), None);
    }

    #[test]
    fn numbers_beyond_their_room_are_none() {
        assert_eq!(hex(&"f".repeat(32), 32), Some(u128::MAX));
        assert_eq!(hex(&"f".repeat(33), 33), None);
        assert_eq!(decimal("18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal("18446744073709551616"), None);
        assert_eq!(in_alphabet(&"1".repeat(129), b"01"), None);
    }
}
