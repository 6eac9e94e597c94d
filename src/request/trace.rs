//! Which requests a trace is of, and what is told of them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{fs, io};

use super::{Format, Mistake, Place, Role, milliseconds};
use crate::cli::TraceArgs;

/// The question of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// As typed, each once; at least one.
    pub ids: Vec<String>,
    /// The file that they come from.
    pub ids_file: Option<PathBuf>,
    /// Nothing but the request itself.
    pub alone: bool,
    /// Every step of its tokens is printed.
    pub steps: bool,
    /// How long before and after it others on its GPU are looked for, nanoseconds.
    pub context_ns: i64,
    /// Roles that must have a record of it.
    pub required: Vec<Role>,
}

/// The id of the trace in a W3C traceparent, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.
fn trace_of_header(id: &str) -> Option<&str> {
    let parts: Vec<&str> = id.split('-').collect();
    let is_hex = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    match parts[..] {
        [version, trace, span, flags]
            if is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2) =>
        {
            Some(trace)
        }
        _ => None,
    }
}

impl Trace {
    /// What was typed; the paths of logs are taken out of it where the ids stand in a file.
    ///
    /// # Errors
    /// A [`Mistake`]: no id, a file that cannot be read, flags that say nothing here.
    pub fn resolve(typed: &mut TraceArgs, place: &Place) -> Result<Self, Mistake> {
        let mut texts = Vec::new();
        match &typed.ids_from {
            Some(path) => {
                let unreadable = |reason| Mistake::UnreadableIds { path: path.clone(), reason };
                let text = match path.as_os_str() == "-" {
                    true => io::read_to_string(io::stdin()),
                    false => fs::read_to_string(place.folder.join(path)),
                };
                let text = text.map_err(unreadable)?;
                texts.extend(text.lines().map(str::to_owned));
                typed.report.input.logs.splice(0..0, typed.id.take().map(Into::into));
            }
            None => texts.extend(typed.id.iter().flat_map(|ids| ids.split(',')).map(str::to_owned)),
        }
        let mut seen = BTreeSet::new();
        let ids = texts.iter().map(|id| id.trim()).filter(|id| !id.is_empty() && !id.starts_with("# "));
        let ids = ids.map(|id| trace_of_header(id).unwrap_or(id).to_owned());
        let ids: Vec<String> = ids.filter(|id| seen.insert(id.clone())).collect();
        if ids.is_empty() {
            return Err(Mistake::NoId);
        }
        let context_ms = match &typed.context {
            Some(text) => milliseconds(text)
                .ok_or_else(|| Mistake::NotASpan { flag: "context".to_owned(), text: text.clone() })?,
            None => 0,
        };
        let (input, output) = (&typed.report.input, &typed.report.output);
        let of_reports = [
            (input.requests, "--requests"),
            (input.fix_skew, "--fix-skew"),
            (output.top.is_some(), "--top"),
            (output.sort.is_some(), "--sort"),
            (output.pivot.is_some(), "--pivot"),
            (output.explode.is_some(), "--explode"),
            (matches!(output.format, Format::Junit | Format::Github), "--format junit and github"),
        ];
        if let Some((_, flag)) = of_reports.into_iter().find(|(given, _)| *given) {
            return Err(Mistake::NotOfATrace { flag });
        }
        Ok(Self {
            ids,
            ids_file: typed.ids_from.clone(),
            alone: typed.alone,
            steps: typed.tokens,
            context_ns: context_ms.saturating_mul(1_000_000),
            required: typed.require.clone(),
        })
    }
}
