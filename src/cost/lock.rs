//! `prices.lock`: the digest of a price book, so that a closed month is never priced by another one in silence.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::request::Mistake;

/// Where the lock of a book lies.
pub fn path(book: &Path) -> PathBuf {
    book.with_extension("lock")
}

/// The digest of a book's text.
pub fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Writes down which text the book has.
///
/// # Errors
/// The book cannot be read, or the lock not be written.
pub fn lock(book: &Path) -> anyhow::Result<PathBuf> {
    let text = fs::read_to_string(book).with_context(|| format!("could not read {}", book.display()))?;
    let lock = path(book);
    let line = format!("digest = \"{}\"\n", digest(&text));
    fs::write(&lock, line).with_context(|| format!("could not write {}", lock.display()))?;
    Ok(lock)
}

/// A book with a lock must have the text that was locked.
///
/// # Errors
/// [`Mistake::PricesChanged`].
pub fn check(book: &Path, text: &str) -> Result<(), Mistake> {
    let lock = path(book);
    let locked = match fs::read_to_string(&lock) {
        Ok(locked) => locked,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        // what cannot be read locks nothing that can be trusted
        Err(_) => String::new(),
    };
    if locked.trim() == format!("digest = \"{}\"", digest(text)) {
        return Ok(());
    }
    Err(Mistake::PricesChanged { book: book.to_owned(), lock })
}
