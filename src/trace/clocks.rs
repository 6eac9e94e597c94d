//! Clocks of roles that cannot both be right.

use super::calls::callers;
use super::entry::Entry;
use super::findings::ms;
use super::life::Skew;

/// A clock is called wrong where it is by more than this; messages take time, and logs round.
const TOLERANCE_MS: f64 = 5.0;

/// What an inner role did must lie within the time that the outer one waited for it. Where it does not, and would fit, one of
/// the clocks is wrong by at least as much.
pub fn skews(records: &[&Entry]) -> Vec<Skew> {
    let mut skews: Vec<Skew> = Vec::new();
    for (inner, caller) in records.iter().zip(callers(records)) {
        let Some(outer) = caller.map(|caller| records[caller]) else { continue };
        let (Some(outer_role), Some(inner_role)) = (outer.role(), inner.role()) else { continue };
        let is_known = skews.iter().any(|skew| skew.role == inner_role);
        let Some(ahead_ms) = ahead(outer, inner).filter(|_| !is_known) else { continue };
        let (word, by) = (if ahead_ms > 0.0 { "ahead of" } else { "behind" }, ahead_ms.abs());
        let text = format!(
            "the clock of {inner_role} is at least {} {word} that of {outer_role}: what {inner_role} did is drawn where \
             its own clock puts it",
            ms(by)
        );
        skews.push(Skew { role: inner_role.to_owned(), against: outer_role.to_owned(), ahead_ms, text });
    }
    skews
}

/// By how much the inner clock must be ahead of the outer one, negative where it is behind.
fn ahead(outer: &Entry, inner: &Entry) -> Option<f64> {
    let (outer_start, outer_end) = (outer.start()?, outer.end()?);
    let (inner_start, inner_end) = (inner.start()?, inner.end()?);
    let in_ms = |ns: i64| ns as f64 / 1e6;
    // what took longer than the time that was waited for it does not fit, whatever the clocks say
    let fits = inner_end - inner_start <= outer_end - outer_start;
    // a call whose caller had given up goes on behind its end
    let (late, early) = (in_ms(inner_end - outer_end), in_ms(outer_start - inner_start));
    match () {
        () if !fits => None,
        () if early > TOLERANCE_MS => Some(-early),
        () if late > TOLERANCE_MS && outer.outcome() != "failed" => Some(late),
        () => None,
    }
}
