//! Arrays inside a shape, which have any number of items.

use super::index::Index;
use super::parse::nested_end;
use super::scalar::scalar_quotes;
use super::simd::Lanes;

/// Where an array ends.
pub(super) struct ArrayEnd<'a> {
    /// Its closing bracket.
    pub at: usize,
    /// Quotes inside it.
    pub quotes: u32,
    /// The entries of the index behind it.
    pub entries: &'a [u32],
}

/// Checks the array whose bracket should be at `open`, below `depth` objects; `entries` are those behind
/// the bracket.
#[inline(always)]
pub(super) fn fit_array<'a, L: Lanes>(
    lanes: L,
    text: &[u8],
    index: &Index,
    entries: &'a [u32],
    open: usize,
    depth: u8,
) -> Option<ArrayEnd<'a>> {
    if text.get(open) != Some(&b'[') {
        return None;
    }
    let mut rest = entries;
    let mut from = open + 1;
    let mut quotes = 0;
    loop {
        let (&entry, behind) = rest.split_first()?;
        let at = entry as usize;
        rest = behind;
        let structural = *text.get(at)?;
        if !matches!(structural, b',' | b']') {
            return fit_nested_array(text, index, entries, open, depth);
        }
        let start = from + usize::from(text.get(from) == Some(&b' '));
        let is_empty = start == at && structural == b']' && from == open + 1;
        if !is_empty {
            quotes += scalar_quotes(lanes, text, start, at)?;
        }
        if structural == b']' {
            return Some(ArrayEnd { at, quotes, entries: rest });
        }
        from = at + 1;
    }
}

/// The same for an array that holds arrays or objects: the general parser checks it, within its
/// line.
#[inline(never)]
fn fit_nested_array<'a>(
    text: &[u8],
    index: &Index,
    entries: &'a [u32],
    open: usize,
    depth: u8,
) -> Option<ArrayEnd<'a>> {
    let newline = entries.iter().find(|&&entry| text.get(entry as usize) == Some(&b'\n'))?;
    let line = text.get(..*newline as usize)?;
    let at = nested_end(line, open, u32::from(depth))? - 1;
    let inside = entries.iter().take_while(|&&entry| entry as usize <= at).count();
    let quotes = index.quotes_before(at) - index.quotes_before(open);
    Some(ArrayEnd { at, quotes, entries: &entries[inside..] })
}
