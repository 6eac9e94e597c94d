//! Did the request fail? The first thing in a record that says so decides; a record that says nothing is unknown.

/// The fields of a record that can tell, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clue {
    /// A field that is `failed` already, in records that this program wrote.
    Failed,
    Status,
    ErrorCode,
    HttpStatus,
    Error,
    FinishReason,
}

impl Clue {
    pub const ALL: [Clue; 6] =
        [Clue::Failed, Clue::Status, Clue::ErrorCode, Clue::HttpStatus, Clue::Error, Clue::FinishReason];
}

/// What stands in such a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said<'a> {
    Absent,
    Null,
    Flag(bool),
    Number(i64),
    /// Text, or a number as written.
    Text(&'a [u8]),
    Nested {
        empty: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Failed,
    Succeeded,
    /// The field is there and names no failure (`"error_code": null`): decides only if nothing after it does.
    NoFailure,
    /// The field is absent, empty, or a word that tells nothing.
    Silent,
}

/// `failed`: the first field that speaks decides; null where none does.
///
/// A field that is present but null is no failure and gives way to any later field that speaks.
pub fn failed<'a>(mut says: impl FnMut(Clue) -> Said<'a>) -> Option<bool> {
    let mut fallback = None;
    for clue in Clue::ALL {
        match verdict(clue, says(clue)) {
            Verdict::Failed => return Some(true),
            Verdict::Succeeded => return Some(false),
            Verdict::NoFailure => fallback = Some(false),
            Verdict::Silent => {}
        }
    }
    fallback
}

/// `failed`, if what the first field of a record that is there says is enough to decide.
#[inline]
pub fn alone(clue: Clue, said: Said<'_>) -> Option<bool> {
    match verdict(clue, said) {
        Verdict::Failed => Some(true),
        Verdict::Succeeded => Some(false),
        Verdict::NoFailure | Verdict::Silent => None,
    }
}

#[inline]
fn verdict(clue: Clue, said: Said<'_>) -> Verdict {
    let failed_if = |failed| if failed { Verdict::Failed } else { Verdict::Succeeded };
    match (clue, said) {
        (_, Said::Absent) => Verdict::Silent,
        (Clue::Failed | Clue::ErrorCode | Clue::Error, Said::Flag(failed)) => failed_if(failed),
        (Clue::Failed, _) => Verdict::Silent,
        (Clue::Status, Said::Flag(succeeded)) => failed_if(!succeeded),
        (Clue::Status, Said::Text(text)) => status(text),
        (Clue::Status | Clue::HttpStatus, Said::Number(code)) => http_status(code),
        (Clue::HttpStatus, Said::Text(text)) => super::number::count(text).map_or(Verdict::Silent, http_status),
        (Clue::ErrorCode | Clue::Error, Said::Null | Said::Nested { empty: true }) => Verdict::NoFailure,
        (Clue::ErrorCode | Clue::Error, Said::Nested { empty: false }) => Verdict::Failed,
        (Clue::ErrorCode | Clue::Error, Said::Number(code)) => failed_if(code != 0),
        (Clue::ErrorCode, Said::Text(text)) => error_code(text),
        (Clue::Error, Said::Text(text)) => error(text),
        (Clue::FinishReason, Said::Text(text)) => finish_reason(text),
        (Clue::Status | Clue::HttpStatus | Clue::FinishReason, _) => Verdict::Silent,
    }
}

/// A status word; a number is taken as an HTTP status.
fn status(text: &[u8]) -> Verdict {
    const GOOD: [&str; 10] =
        ["success", "succeeded", "successful", "ok", "completed", "complete", "finished", "done", "passed", "finish"];
    const BAD: [&str; 16] = [
        "error",
        "failure",
        "failed",
        "fail",
        "timeout",
        "timed_out",
        "cancelled",
        "canceled",
        "aborted",
        "abort",
        "rejected",
        "exception",
        "oom",
        "incomplete",
        "dropped",
        "unavailable",
    ];
    // what nearly every log writes
    if text == b"success" {
        return Verdict::Succeeded;
    }
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is(&GOOD) {
        Verdict::Succeeded
    } else if is(&BAD) {
        Verdict::Failed
    } else {
        match super::number::count(text) {
            Ok(code) => http_status(code),
            Err(_) => Verdict::Silent,
        }
    }
}

/// An error code: empty, `0` and the words for nothing are no error.
fn error_code(text: &[u8]) -> Verdict {
    const NONE: [&str; 6] = ["", "0", "none", "null", "-", "ok"];
    // the usual word for no error, before all others
    if text == b"0" {
        return Verdict::Succeeded;
    }
    let text = text.trim_ascii();
    let is_none =
        NONE.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes())) || super::number::count(text) == Ok(0);
    if is_none { Verdict::Succeeded } else { Verdict::Failed }
}

/// 4xx and 5xx are failures, 499 (the client left) among them; 0 and what is no HTTP status tell nothing. A stream that
/// breaks off keeps its 200, so that what comes later may still tell of a failure.
fn http_status(code: i64) -> Verdict {
    match code {
        100..400 => Verdict::NoFailure,
        400..600 => Verdict::Failed,
        _ => Verdict::Silent,
    }
}

/// The text of an error: any is a failure.
fn error(text: &[u8]) -> Verdict {
    const NONE: [&str; 4] = ["", "none", "null", "-"];
    let text = text.trim_ascii();
    let is_none = NONE.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is_none { Verdict::NoFailure } else { Verdict::Failed }
}

/// Why generation ended, in one of a few words: `content_filter`, `length`, `tool`, `abort`, `error`, `stop`, `other`.
///
/// Producers call the same thing by many names: OpenAI, Anthropic, Gemini (`MAX_TOKENS`, `PROHIBITED_CONTENT`, `SPII`), Bedrock
/// (`guardrail_intervened`), GLM (`sensitive`) and the engines.
pub fn normal_reason(reason: &str) -> &'static str {
    const WORDS: [(&str, &[&str]); 6] = [
        (
            "content_filter",
            &[
                "content_filter",
                "content-filter",
                "contentfilter",
                "safety",
                "refusal",
                "recitation",
                "blocklist",
                "prohibited",
                "spii",
                "guardrail",
                "sensitive",
                "moderation",
            ],
        ),
        ("length", &["length", "max_tokens", "max_new_tokens", "max_output", "maxtokens", "context_window"]),
        ("tool", &["tool", "function"]),
        ("abort", &["abort", "cancel", "disconnect"]),
        ("error", &["error", "fail", "timeout", "timed_out", "time_out", "insufficient"]),
        ("stop", &["stop", "end", "eos", "complete", "success"]),
    ];
    let reason = reason.to_ascii_lowercase().replace(' ', "_");
    let told = WORDS.iter().find(|(_, words)| words.iter().any(|word| reason.contains(word)));
    told.map_or("other", |(normal, _)| normal)
}

/// Why generation ended. `length` and `content_filter` are hidden failures, not failed.
fn finish_reason(text: &[u8]) -> Verdict {
    const GOOD: [&str; 12] =
        ["stop", "length", "eos", "end", "turn", "max", "tool", "function", "content", "finish", "complete", "success"];
    const BAD: [&str; 8] = ["abort", "error", "cancel", "fail", "timeout", "timed", "disconnect", "insufficient"];
    let text = text.to_ascii_lowercase();
    let tells = |words: &[&str]| words.iter().any(|word| memchr::memmem::find(&text, word.as_bytes()).is_some());
    match () {
        () if tells(&BAD) => Verdict::Failed,
        () if tells(&GOOD) => Verdict::Succeeded,
        // a word that nobody knows tells nothing
        () => Verdict::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::*;
    use super::*;

    fn of(fields: &[(Clue, Said<'static>)]) -> Option<bool> {
        failed(|clue| fields.iter().find(|(field, _)| *field == clue).map_or(Said::Absent, |(_, said)| *said))
    }

    #[test]
    fn the_first_field_that_speaks_decides() {
        use Clue::*;
        assert_eq!(of(&[(Status, Said::Text(b"success")), (ErrorCode, Said::Text(b"500"))]), Some(false));
        assert_eq!(of(&[(ErrorCode, Said::Text(b"0")), (HttpStatus, Said::Number(500))]), Some(false));
        assert_eq!(of(&[(Status, Said::Text(b"running")), (FinishReason, Said::Text(b"abort"))]), Some(true));
        assert_eq!(of(&[(ErrorCode, Said::Number(-1))]), Some(true));
        assert_eq!(of(&[(Status, Said::Text(b"200"))]), Some(false));
    }

    #[test]
    fn a_null_error_is_no_failure_but_gives_way_to_what_speaks() {
        use Clue::*;
        assert_eq!(of(&[(ErrorCode, Said::Null)]), Some(false));
        assert_eq!(of(&[(ErrorCode, Said::Null), (HttpStatus, Said::Number(500))]), Some(true));
        assert_eq!(of(&[(Error, Said::Nested { empty: false })]), Some(true));
        assert_eq!(of(&[(HttpStatus, Said::Number(200)), (Error, Said::Nested { empty: false })]), Some(true));
        assert_eq!(of(&[(HttpStatus, Said::Number(200))]), Some(false));
    }

    #[test]
    fn a_record_that_says_nothing_is_unknown() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(Clue::Status, Said::Null), (Clue::FinishReason, Said::Null)]), None);
    }

    #[test]
    fn error_codes_zero_and_empty_are_no_error_and_minus_one_is_one() {
        for none in ["", "0", "0.0", "none", "None", "-"] {
            assert_eq!(error_code(none.as_bytes()), Succeeded, "{none}");
        }
        for some in ["-1", "500", "E1", "oom"] {
            assert_eq!(error_code(some.as_bytes()), Failed, "{some}");
        }
    }

    #[test]
    fn http_client_and_server_errors_fail_and_zero_tells_nothing() {
        assert_eq!(
            [200, 204, 302, 400, 429, 499, 500, 0].map(http_status),
            [NoFailure, NoFailure, NoFailure, Failed, Failed, Failed, Failed, Silent]
        );
    }

    #[test]
    fn truncation_and_filtering_are_hidden_failures_not_failures() {
        assert_eq!(
            ["stop", "length", "content_filter", "abort", "error", "cancelled", ""]
                .map(|r| finish_reason(r.as_bytes())),
            [Succeeded, Succeeded, Succeeded, Failed, Failed, Failed, Silent]
        );
    }
}
