//! Ids of traces and spans: those that were logged where they are valid, else hashes, so that a request has the same in
//! every export.

use crate::trace::life::Life;

/// The ids of a life's spans.
pub(super) struct Ids<'l> {
    pub trace: String,
    id: &'l str,
}

impl<'l> Ids<'l> {
    pub fn of(life: &'l Life) -> Self {
        Self { trace: trace(life), id: &life.id }
    }

    pub fn request(&self) -> String {
        request(self.id)
    }

    pub fn record(&self, at: usize) -> String {
        hash(&["record", self.id, &at.to_string()], 8)
    }

    pub fn stage(&self, at: usize) -> String {
        hash(&["stage", self.id, &at.to_string()], 8)
    }
}

/// The trace of a life.
pub(super) fn trace(life: &Life) -> String {
    life.trace_id.as_deref().filter(|id| !id.is_empty()).map_or_else(|| trace_of(&life.id), trace_of)
}

/// The trace of an id: the id itself if it is one, alone, with the hyphens of a UUID or inside a W3C traceparent.
pub(super) fn trace_of(id: &str) -> String {
    let part = |from: usize, to: usize| id.get(from..to).unwrap_or_default();
    let id_of_trace = match id.len() {
        36 => [part(0, 8), part(9, 13), part(14, 18), part(19, 23), part(24, 36)].concat(),
        // version 00; later ones may be longer
        55.. if part(2, 3) == "-" && part(35, 36) == "-" => part(3, 35).to_owned(),
        _ => id.to_owned(),
    };
    let hyphens = || id.match_indices('-').map(|(at, _)| at);
    let is_uuid = id.len() != 36 || hyphens().eq([8, 13, 18, 23]);
    let is_hex = id_of_trace.len() == 32 && id_of_trace.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_uuid && is_hex && id_of_trace.bytes().any(|byte| byte != b'0') {
        true => id_of_trace.to_ascii_lowercase(),
        false => hash(&["trace", id], 16),
    }
}

/// The span of a request.
pub(super) fn request(id: &str) -> String {
    hash(&["request", id], 8)
}

/// So many bytes in hex, never all zero, which the protocol takes for no id.
fn hash(parts: &[&str], bytes: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // with its length, so that no two lists of parts read alike
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut id = hasher.finalize().to_hex()[..2 * bytes].to_owned();
    if id.bytes().all(|byte| byte == b'0') {
        id.replace_range(..1, "1");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_trace_id_is_kept_however_it_was_written() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(trace_of(id), id);
        assert_eq!(trace_of("0AF7651916CD43DD8448EB211C80319C"), id);
        assert_eq!(trace_of("0af76519-16cd-43dd-8448-eb211c80319c"), id);
        assert_eq!(trace_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), id);
    }

    #[test]
    fn what_is_no_trace_id_is_hashed_alike_each_time() {
        let no_ids = ["", "req-1", "00000000000000000000000000000000", "0af7651916cd43dd8448eb211c80319", "äöü"];
        for no_id in no_ids.into_iter().chain(["0af7651-916cd-43dd-8448-eb211c80319c", "x\u{1F600}"]) {
            let trace = trace_of(no_id);
            assert_eq!((trace.len(), &trace), (32, &trace_of(no_id)), "{no_id}");
            assert!(trace != no_id && trace.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{trace}");
        }
        assert_ne!(trace_of("req-1"), trace_of("req-2"));
        assert_ne!(request("req-1"), hash(&["record", "req-1", "0"], 8));
    }
}
