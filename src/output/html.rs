//! A trace as one page that needs nothing but itself: no network, no other file.

use std::io::Write;

use serde_json::json;

use super::json::lives;
use crate::report::Report;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");

/// In the order in which one builds on the other.
const SCRIPTS: [&str; 10] = [
    include_str!("page/numbers.js"),
    include_str!("page/elements.js"),
    include_str!("page/window.js"),
    include_str!("page/stages.js"),
    include_str!("page/tokens.js"),
    include_str!("page/tables.js"),
    include_str!("page/head.js"),
    include_str!("page/pair.js"),
    include_str!("page/page.js"),
    include_str!("page/check.js"),
];

pub fn write<W: Write>(report: &Report, out: &mut W) -> anyhow::Result<()> {
    let ids: Vec<&str> = report.lives.iter().map(|life| life.asked.as_str()).collect();
    let title = match &report.lives[..] {
        [] => "Trace".to_owned(),
        [life] => format!("Trace of {}", life.id),
        several => format!("Trace of {} requests", several.len()),
    };
    let zone = report.zone.iana_name().unwrap_or("UTC");
    let data = json!({ "title": title, "zone": zone, "generated_for": ids, "lives": lives(report)? });
    let parts =
        [("{{style}}", STYLE.to_owned()), ("{{script}}", SCRIPTS.join("\n")), ("{{data}}", inert(&data.to_string()))];
    let mut rest = PAGE;
    // in the order in which they stand, so that nothing that was put in is looked at again
    while let Some((at, (mark, text))) =
        parts.iter().filter_map(|part| Some((rest.find(part.0)?, part))).min_by_key(|(at, _)| *at)
    {
        out.write_all(&rest.as_bytes()[..at])?;
        out.write_all(text.as_bytes())?;
        rest = &rest[at + mark.len()..];
    }
    Ok(out.write_all(rest.as_bytes())?)
}

/// JSON that no reader of HTML takes for anything else.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => inert.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => inert.push(letter),
        }
    }
    inert
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_the_script_that_holds_it() {
        let data = json!({ "id": "</script><script>alert(1)</script>", "line": "a\u{2028}b & <!--" });
        let text = inert(&data.to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), data);
    }

    #[test]
    fn the_page_names_nothing_outside_itself() {
        let page = [PAGE, STYLE].into_iter().chain(SCRIPTS).collect::<String>();
        let names = page.match_indices("://").map(|(at, _)| &page[at.saturating_sub(8)..page.len().min(at + 30)]);
        let outside: Vec<&str> = names.filter(|name| !name.contains("www.w3.org")).collect();
        assert_eq!(outside, Vec::<&str>::new());
    }
}
