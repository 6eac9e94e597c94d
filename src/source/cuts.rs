//! Where a long log may be cut, so that several threads read it at once.
//!
//! Most logs can be cut at any line. Not so where one record depends on others: spans and their parents are read in one
//! piece, and lines that a container runtime cut into pieces only where the line before ends and a record begins.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memchr;

use crate::profile::{Carries, Envelope, Profile};
use crate::source::json::{RecordParser, Tree};
use crate::source::plan::ReadPlan;
use crate::source::reader::recognise;

/// Bytes of one piece: small enough that the last pieces of a scan end together, large enough that opening one costs
/// nothing beside reading it.
pub const PIECE: u64 = 16 << 20;

/// Bytes at the start of a log that tell what it holds, and bytes behind a place in which a cut is looked for.
const LOOK: usize = 1 << 20;

/// Lines at the start that are looked at.
const LINES: usize = 200;

/// Where the pieces of a plain file of lines start, the first at 0.
///
/// # Errors
/// The file cannot be read.
pub fn cuts(path: &Path, size: u64, plan: &ReadPlan) -> io::Result<Vec<u64>> {
    if size <= PIECE {
        return Ok(vec![0]);
    }
    let file = File::open(path)?;
    let head = window(&file, 0, size)?;
    let profiles = profiles(&head, plan);
    if profiles.iter().any(|profile| profile.restructure.is_some_and(|step| step.spans_records())) {
        return Ok(vec![0]);
    }
    let even = (0..size).step_by(PIECE as usize);
    let in_pieces: Vec<&Profile> = profiles.into_iter().filter(|profile| comes_in_pieces(profile)).collect();
    if in_pieces.is_empty() {
        return Ok(even.collect());
    }
    let mut cuts = vec![0];
    for place in even.skip(1) {
        let window = window(&file, place, size)?;
        // a place without a cut near it leaves two pieces in one
        cuts.extend(cut_in(&window, &in_pieces).map(|at| place + at as u64));
    }
    Ok(cuts)
}

fn window(file: &File, from: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut window = vec![0; LOOK.min(size.saturating_sub(from) as usize)];
    file.read_exact_at(&mut window, from)?;
    Ok(window)
}

/// The profiles of the first lines.
fn profiles<'p>(head: &[u8], plan: &'p ReadPlan) -> Vec<&'p Profile> {
    let mut parser = RecordParser::new(plan.wanted.clone());
    let mut found: Vec<&Profile> = Vec::new();
    for line in head.split(|&byte| byte == b'\n').take(LINES) {
        let dialect = match parser.parse(line) {
            Ok(record) => Some(recognise(plan, &record, None).0),
            Err(_) => std::str::from_utf8(line).ok().and_then(|text| plan.dialect_of_text(text)),
        };
        let profile = dialect.and_then(|dialect| plan.dialects[dialect].profile.as_deref());
        found.extend(profile.filter(|profile| found.iter().all(|known| known.name != profile.name)));
    }
    found
}

fn comes_in_pieces(profile: &Profile) -> bool {
    matches!(&profile.carries, Carries::Payload(envelope) if envelope.until_newline || envelope.partial.is_some())
}

/// The start of the first line that begins a record behind one that ends another.
fn cut_in(window: &[u8], profiles: &[&Profile]) -> Option<usize> {
    // the first line begins somewhere before
    let mut start = memchr(b'\n', window)? + 1;
    let mut ended = false;
    while let Some(length) = memchr(b'\n', &window[start..]) {
        let line = &window[start..start + length];
        let piece = profiles.iter().find_map(|profile| piece(line, profile));
        if ended && piece.as_ref().is_none_or(|piece| piece.begins) {
            return Some(start);
        }
        ended = piece.is_some_and(|piece| piece.ends);
        start += length + 1;
    }
    None
}

/// What a line of an envelope carries.
struct Piece {
    /// It begins a record.
    begins: bool,
    /// Nothing of its line follows.
    ends: bool,
}

fn piece(line: &[u8], profile: &Profile) -> Option<Piece> {
    let Carries::Payload(envelope) = &profile.carries else { return None };
    match &profile.pattern {
        Some(pattern) => {
            let parts = pattern.captures(std::str::from_utf8(line).ok()?)?;
            let part = |keys: &[String]| Some(parts.name(keys.first()?)?.as_str().to_owned());
            Some(seen(&envelope.payload.iter().find_map(|path| part(&path.keys))?, &part, envelope))
        }
        None => {
            let tree = Tree::parse(line).ok()?;
            let value = |keys: &[String]| {
                let found = keys.iter().try_fold(&tree, |tree, key| tree.get(key))?;
                Some(found.scalar()?.into_owned())
            };
            Some(seen(&envelope.payload.iter().find_map(|path| value(&path.keys))?, &value, envelope))
        }
    }
}

fn seen(payload: &str, value: &dyn Fn(&[String]) -> Option<String>, envelope: &Envelope) -> Piece {
    let ends = match &envelope.partial {
        Some((path, marks)) => {
            value(&path.keys).is_none_or(|mark| !marks.iter().any(|partial| mark.starts_with(partial)))
        }
        None => payload.ends_with('\n'),
    };
    Piece { begins: payload.starts_with('{'), ends }
}
