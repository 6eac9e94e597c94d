//! Ids of OpenAI's responses: `resp_` or `msg_` and hexadecimal digits, among them the seconds of its `created_at`.
//!
//! Nobody promises that; published answers agree with it to within seconds.

use super::digits::hex;
use super::part::Part;
use super::reading::{Certainty, Moment, Reading};

pub fn read(part: &Part) -> Option<Reading> {
    let text = part.text.is_ascii().then_some(part.text).filter(|_| part.prefix.ends_with('_'))?;
    let seconds = match text.len() {
        48 => hex(&text[..8], 8)?,
        // 64 bits that the ids of one response share come first
        50 if &text[16..18] == "00" => hex(&text[18..26], 8)?,
        _ => return None,
    };
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| Reading {
        moment: Some(Moment::of_seconds(seconds as u32)),
        notes: vec!["its maker does not document it".to_owned()],
        ..Reading::new("openai", "id of an OpenAI response", Certainty::Likely)
    })
}
