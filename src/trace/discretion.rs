//! What of a line of a log may be shown: no prompt, no answer, no key and nobody's address.

use std::sync::LazyLock;

use regex::Regex;

/// Letters of a line that are shown.
const LONGEST: usize = 200;

/// Words behind which a logger writes what people or models wrote.
const PRIVATE: &str = r#"(?xi)
    \b(?:prompts?|prompt_text|contents?|messages?|inputs?|outputs?|completions?|responses?|query|question|answer|generated_text|text|user)
    ["']?\s*(?:[:=：\[]|->|['"])
    | 提示词"#;

/// Keys of providers and repositories, what stands behind the name of a secret, bearer tokens, passwords in addresses,
/// addresses, numbers of telephones and of identity cards.
const SECRETS: &str = r#"(?x)
    \b(?:sk|pk|rk|ghp|gho|ghs|glpat|hf|npm|github_pat|xox[abprs])[-_][A-Za-z0-9_-]{12,}
    | \bAKIA[0-9A-Z]{16}\b | \bAIza[A-Za-z0-9_-]{20,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*
    | (?i:bearer|basic)\s+[A-Za-z0-9._~+/-]{8,}=*
    | (?i:[a-z0-9_-]*(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?key|auth[_-]?token)[a-z0-9_-]*)["']?\s*[:=]\s*["']?[^\s"',;]+
    | (?i:[?&](?:token|key|signature|sig)=)[^\s&]+
    | ://[^/\s:@]+:[^@\s]+@
    | [A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+
    | \b[1-9][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])[0-3][0-9]{4}[0-9Xx]\b
    | \b1[3-9][0-9]{9}\b
    | \b[0-9]{3}-[0-9]{3}-[0-9]{4}\b
    | \+[0-9][0-9\x20-]{8,16}[0-9]\b"#;

/// The front part of a line, up to where what was written for or by a model begins.
pub fn public(text: &str) -> &str {
    static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PRIVATE).ok());
    match WORDS.as_ref().and_then(|words| words.find(text)) {
        // the word itself says what was left out
        Some(found) => text[..found.end()].trim_end_matches([':', '=', '：', '[', '>', '-', '\'', '"', ' ']),
        None => text,
    }
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
            ("asked, prompts=['secret']", "asked, prompts …"),
            ("question -> secret", "question …"),
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
        for secret in [
            "Authorization Bearer abcdefghijkl",
            "api_key=abcdefghijkl",
            "password: abcdefghijkl",
            "https://someone:abcdefghijkl@host/",
            "call +86 138 1234 5678 abcdefghijkl".trim_end_matches(" abcdefghijkl"),
            "https://host/?token=abcdefghijkl",
        ] {
            let shown = shown(secret);
            assert!(!shown.contains("efghijkl") && !shown.contains("1234 5678"), "{shown}");
        }
        assert_eq!(shown("evicted req-0197a3f2c1d0-07-00042 on GPU 3"), "evicted req-0197a3f2c1d0-07-00042 on GPU 3");
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(shown(&"x ".repeat(500)).chars().count(), LONGEST + 1);
    }
}
