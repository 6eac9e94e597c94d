//! `text_features(a, b, ...)`: what there is in texts that breaks what reads them, or should not be in a log; null where there
//! is nothing of the kind, which is usual. The names of what was found, in one text: `control characters, phone number`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use regex::Regex;

/// What a text may hold, each a bit.
const FEATURES: [(&str, u16); 9] = [
    ("control characters", CONTROL),
    ("direction marks", DIRECTION),
    ("right-to-left letters", RIGHT_TO_LEFT),
    ("other letters", OTHER),
    ("e-mail address", EMAIL),
    ("key or token", KEY),
    ("phone number", PHONE),
    ("card number", CARD),
    ("identity number", IDENTITY),
];
const CONTROL: u16 = 1 << 0;
const DIRECTION: u16 = 1 << 1;
const RIGHT_TO_LEFT: u16 = 1 << 2;
const OTHER: u16 = 1 << 3;
const EMAIL: u16 = 1 << 4;
const KEY: u16 = 1 << 5;
const PHONE: u16 = 1 << 6;
const CARD: u16 = 1 << 7;
const IDENTITY: u16 = 1 << 8;

/// Shorter texts hold no key.
const SHORTEST_KEY: usize = 20;
/// Fewer digits are no number of a phone, a card or a person.
const FEWEST_DIGITS: usize = 10;

static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| constant(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"));
/// Of OpenAI and Anthropic, GitHub, Slack, AWS and Google, and signed tokens.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    constant(
        r"\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|eyJ[A-Za-z0-9_-]{10,}\.eyJ)",
    )
});

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern that the tests compile")
}

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TextFeatures {
    signature: Signature,
}

impl TextFeatures {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TextFeatures {
    fn name(&self) -> &str {
        "text_features"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        if arg_types.is_empty() {
            return plan_err!("text_features takes one text or more, as in text_features(user_tag)");
        }
        Ok(vec![DataType::Utf8View; arg_types.len()])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut found = vec![0_u16; args.number_rows];
        for texts in arrays.iter().map(|array| array.as_string_view()) {
            // rows one after the other often have the same text
            let mut last: (&str, u16) = ("", 0);
            for (row, found) in found.iter_mut().enumerate().filter(|(row, _)| texts.is_valid(*row)) {
                let text = texts.value(row);
                if text != last.0 {
                    last = (text, features(text));
                }
                *found |= last.1;
            }
        }
        let mut named = StringViewBuilder::with_capacity(found.len());
        for features in found {
            let names = || FEATURES.iter().filter(|feature| features & feature.1 != 0).map(|feature| feature.0);
            named.append_option((features != 0).then(|| names().collect::<Vec<_>>().join(", ")));
        }
        let named: ArrayRef = Arc::new(named.finish());
        Ok(ColumnarValue::Array(named))
    }
}

fn features(text: &str) -> u16 {
    let (mut control, mut high, mut at, mut digits) = (false, false, false, 0);
    for &byte in text.as_bytes() {
        control |= byte < b' ' && !matches!(byte, b'\t' | b'\n') || byte == 0x7f;
        high |= byte >= 0x80;
        at |= byte == b'@';
        digits += usize::from(byte.is_ascii_digit());
    }
    let mut found = if control { CONTROL } else { 0 };
    if high {
        found |= text.chars().map(of_char).fold(0, |all, one| all | one);
    }
    if at && ADDRESS.is_match(text) {
        found |= EMAIL;
    }
    if text.len() >= SHORTEST_KEY && SECRET.is_match(text) {
        found |= KEY;
    }
    if digits >= FEWEST_DIGITS {
        found |= numbers(text.as_bytes());
    }
    found
}

fn of_char(letter: char) -> u16 {
    match letter {
        '\u{80}'..='\u{9f}' => CONTROL,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => DIRECTION,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => RIGHT_TO_LEFT,
        '\u{a0}'.. => OTHER,
        _ => 0,
    }
}

/// What the numbers of a text are: a run of digits, or of several with single blanks or dashes in between, that no letter
/// touches. A number may follow another, as in `user 0156 4111 1111 1111 1111`.
fn numbers(text: &[u8]) -> u16 {
    /// A card has the most parts: 4 of 4 digits; a phone number may have one more.
    const MOST_PARTS: usize = 5;
    let runs = runs(text);
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let before = |start: usize| start.checked_sub(1).and_then(|before| text.get(before));
    let mut found = 0;
    for (first, &(start, _)) in runs.iter().enumerate().filter(|(_, run)| !is_letter(before(run.0))) {
        let mut digits: Vec<u8> = Vec::with_capacity(20);
        let mut parts: Vec<usize> = Vec::with_capacity(MOST_PARTS);
        for (place, &(from, to)) in runs.iter().enumerate().skip(first).take(MOST_PARTS) {
            let is_apart = place > first && (from != runs[place - 1].1 + 1 || !matches!(text[from - 1], b' ' | b'-'));
            if is_apart {
                break;
            }
            digits.extend(text[from..to].iter().map(|byte| byte - b'0'));
            parts.push(to - from);
            let has_check_letter = matches!(text.get(to), Some(b'X' | b'x')) && !is_letter(text.get(to + 1));
            if has_check_letter && parts == [17] {
                found |= number(&[&digits[..], &[10]].concat(), &[18], false);
            }
            if !is_letter(text.get(to)) {
                found |= number(&digits, &parts, before(start) == Some(&b'+'));
            }
        }
    }
    found
}

/// Where digits follow each other.
fn runs(text: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in (0..text.len()).filter(|&at| text[at].is_ascii_digit()) {
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

/// What a number is, by its digits and the lengths of the parts that it is written in.
fn number(digits: &[u8], parts: &[usize], has_plus: bool) -> u16 {
    match parts {
        [18] if is_identity_number(digits) => IDENTITY,
        [_] | [4, 4, 4, 4] | [4, 6, 5] if is_card_number(digits) => CARD,
        _ if has_plus && (10..=14).contains(&digits.len()) && digits[0] > 0 => PHONE,
        // a mobile phone in China
        [11] | [3, 4, 4] if digits[0] == 1 && digits[1] >= 3 => PHONE,
        _ => 0,
    }
}

/// Of a bank card: a length and first digits that issuers use (ISO/IEC 7812), and the check digit of Luhn.
fn is_card_number(digits: &[u8]) -> bool {
    let starts = |first: &[u8]| digits.starts_with(first);
    let is_issued = match digits.len() {
        15 => starts(&[3, 4]) || starts(&[3, 7]),
        16 => {
            let first_two = digits[0] * 10 + digits[1];
            digits[0] == 4
                || (51..=55).contains(&first_two)
                || (22..=27).contains(&first_two)
                || [35, 62, 65].contains(&first_two)
                || starts(&[6, 0, 1, 1])
        }
        19 => starts(&[6, 2]),
        _ => false,
    };
    let luhn = || -> u32 {
        let doubled = |digit: u8| u32::from(if digit > 4 { digit * 2 - 9 } else { digit * 2 });
        digits
            .iter()
            .rev()
            .enumerate()
            .map(|(place, &digit)| if place % 2 == 1 { doubled(digit) } else { digit.into() })
            .sum()
    };
    is_issued && luhn() % 10 == 0
}

/// Of a person in China: 17 digits with the day of birth in them, and a check character (GB 11643-1999, ISO 7064 MOD 11-2).
fn is_identity_number(digits: &[u8]) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    if digits.len() != 18 {
        return false;
    }
    let two = |at: usize| u32::from(digits[at]) * 10 + u32::from(digits[at + 1]);
    let is_a_day = matches!(two(6), 19 | 20) && (1..=12).contains(&two(10)) && (1..=31).contains(&two(12));
    let sum: u32 = WEIGHTS.iter().zip(digits).map(|(weight, &digit)| weight * u32::from(digit)).sum();
    is_a_day && (12 - sum % 11) % 11 == u32::from(digits[17])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<&'static str> {
        let found = features(text);
        FEATURES.iter().filter(|feature| found & feature.1 != 0).map(|feature| feature.0).collect()
    }

    #[test]
    fn numbers_of_cards_and_persons_are_told_by_their_check_digits() {
        // public test numbers of card issuers
        for card in ["4111111111111111", "5555-5555-5555-4444", "3782 822463 10005", "6011111111111117"] {
            assert_eq!(named(card), ["card number"], "{card}");
        }
        for other in
            ["4111111111111112", "x4111111111111111", "4111111111111111a", "1750000000000000000", "0000000000000000"]
        {
            assert_eq!(named(other), [""; 0], "{other}");
        }
        // the example of the standard
        assert_eq!(named("id 11010519491231002X"), ["identity number"]);
        assert_eq!(named("110105194912310021"), [""; 0]);
    }

    #[test]
    fn what_breaks_readers_and_what_is_personal_is_named() {
        assert_eq!(named("a\u{1b}[31m"), ["control characters"]);
        assert_eq!(named("line\tand\nline"), [""; 0]);
        assert_eq!(named("abc\u{202e}def"), ["direction marks"]);
        assert_eq!(named("שלום"), ["right-to-left letters"]);
        assert_eq!(named("路径"), ["other letters"]);
        assert_eq!(named("mail me: a.b@mail.example.org"), ["e-mail address"]);
        assert_eq!(named("13812345678"), ["phone number"]);
        assert_eq!(named("chat-widget-user-0156 138 1234 5678"), ["phone number"]);
        assert_eq!(named("report-writer-user-0156 4111 1111 1111 1111"), ["card number"]);
        assert_eq!(named("+49 170 1234567"), ["phone number"]);
        assert_eq!(named("sk-abcdefghijklmnop1234"), ["key or token"]);
        assert_eq!(named("key=AKIAABCDEFGHIJKLMNOP"), ["key or token"]);
    }

    #[test]
    fn ids_and_times_are_neither() {
        for id in [
            "req_20250601_13812345678",
            "550e8400-e29b-41d4-a716-446655440000",
            "1749600000123",
            "chatcmpl-1234567890123",
            "2025-06-01T10:00:00.123456789Z",
        ] {
            assert_eq!(named(id), [""; 0], "{id}");
        }
    }
}
