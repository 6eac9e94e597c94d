//! What of a line of a log may be shown: no prompt, no answer, no key and nobody's address.

use std::sync::LazyLock;

use regex::Regex;

/// Letters of a line that are shown.
const LONGEST: usize = 200;

/// Words behind which a logger writes what people or models wrote.
const PRIVATE: [&str; 7] = ["prompt", "content", "messages", "output", "completion", "response", "input"];

/// Keys of providers and repositories, bearer tokens, addresses, telephone numbers.
const SECRETS: &str = r"(?x)
    \b(?:sk|pk|rk|ghp|gho|ghs|glpat|hf|xox[abprs])[-_][A-Za-z0-9_-]{12,}
    | \bAKIA[0-9A-Z]{16}\b
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*
    | (?-u:\b)(?i:bearer)\s+[A-Za-z0-9._~+/-]{8,}=*
    | [A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+
    | \b1[3-9][0-9]{9}\b
    | \+[0-9][0-9 -]{8,16}[0-9]\b";

/// The front part of a line, up to where what was written for or by a model begins.
pub fn public(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let begins = |word: &&str| {
        lower.match_indices(*word).map(|(at, word)| at + word.len()).find(|end| {
            let rest = lower[*end..].trim_start_matches(['"', '\'']).trim_start();
            rest.starts_with([':', '='])
        })
    };
    let end = PRIVATE.iter().filter_map(begins).min();
    end.map_or(text, |end| &text[..end])
}

/// A line as it may be shown.
pub fn shown(text: &str) -> String {
    static REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SECRETS).ok());
    let kept = public(text);
    let masked = match REGEX.as_ref() {
        Some(secrets) => secrets.replace_all(kept, |found: &regex::Captures<'_>| mask(&found[0])).into_owned(),
        None => kept.to_owned(),
    };
    let cut: String = masked.chars().take(LONGEST).collect();
    if cut.len() < masked.len() || kept.len() < text.len() { format!("{} …", cut.trim_end()) } else { cut }
}

/// The beginning of a secret, and a mark that is the same for the same one.
fn mask(secret: &str) -> String {
    const SHOWN: usize = 3;
    let key = blake3::derive_key("infer-stats mask of secrets in lines of logs", &[]);
    let hash = blake3::keyed_hash(&key, secret.as_bytes()).to_hex();
    format!("{}…#{}", secret.chars().take(SHOWN).collect::<String>(), &hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_a_prompt_or_an_answer_begins() {
        for (line, kept) in [
            ("Received request cmpl-1: prompt: 'secret', params", "Received request cmpl-1: prompt …"),
            (r#"{"id":"a","content": "secret"}"#, r#"{"id":"a","content …"#),
            ("Generated response cmpl-1: output='secret'", "Generated response cmpl-1: output …"),
            ("request a waits, 3 prompts ahead", "request a waits, 3 prompts ahead"),
        ] {
            assert_eq!(shown(line), kept);
        }
    }

    #[test]
    fn secrets_are_masked_and_stay_distinct() {
        let one = shown("key sk-abcdefghijklmnopqrstuvwxyz0123 of jane.doe@example.com");
        assert!(!one.contains("ijklmnop") && !one.contains("doe@"), "{one}");
        assert_eq!(one, shown("key sk-abcdefghijklmnopqrstuvwxyz0123 of jane.doe@example.com"));
        assert_ne!(one, shown("key sk-abcdefghijklmnopqrstuvwxyz0124 of jane.doe@example.com"));
        assert_eq!(shown("Bearer abcdefghijkl"), shown("Bearer abcdefghijkl"));
        assert!(!shown("Authorization Bearer abcdefghijkl").contains("efghijkl"));
        assert_eq!(shown("evicted req-0197a3f2c1d0-07-00042 on GPU 3"), "evicted req-0197a3f2c1d0-07-00042 on GPU 3");
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(shown(&"x ".repeat(500)).chars().count(), LONGEST + 1);
    }
}
