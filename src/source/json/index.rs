//! Where the lines of a text end, and which bytes only the general parser can judge: found 64 bytes at a time, with no
//! decision that depends on the data but for rare ones.
//!
//! Control characters and what is not valid UTF-8 are listed as suspect, and lines that hold a suspect byte are left to
//! the general parser. A newline ends a line whatever came before it, so that a damaged line costs only itself.

use super::simd::{Lanes, Task, WORD};

/// The lines of a text.
#[derive(Default)]
pub(super) struct Index {
    newlines: Vec<u32>,
    newline_count: usize,
    /// Where the words start that are not ASCII.
    special: Vec<u32>,
    suspects: Vec<u32>,
    /// Copies of the words that are not ASCII, to be validated in one go.
    gathered: Vec<u8>,
}

impl Index {
    /// The positions of the newlines, in order.
    #[inline(always)]
    pub fn newlines(&self) -> &[u32] {
        &self.newlines[..self.newline_count]
    }

    /// Bytes that only the general parser can judge, in order, then `u32::MAX`.
    #[inline(always)]
    pub fn suspects(&self) -> &[u32] {
        &self.suspects
    }

    /// Takes the newlines of a text that needs not be read.
    pub fn take(&mut self, newlines: impl Iterator<Item = u32>) {
        self.newlines.clear();
        self.newlines.extend(newlines);
        self.newline_count = self.newlines.len();
        self.suspects.clear();
        self.suspects.push(u32::MAX);
    }

    /// Reads a text of whole lines, each with its newline, shorter than 4 GiB.
    #[inline(always)]
    fn read<L: Lanes>(&mut self, lanes: L, text: &[u8]) {
        self.make_room(text.len().div_ceil(WORD));
        // Borrowed apart, so that the counters stay in registers.
        let Index { newlines, special, suspects, .. } = self;
        let (mut newline_count, mut special_count, mut base) = (0, 0, 0);
        let (whole, rest) = text.as_chunks::<WORD>();
        let mut padded = [b' '; WORD];
        padded[..rest.len()].copy_from_slice(rest);
        for bytes in whole.iter().chain([&padded]) {
            let masks = lanes.masks(bytes);
            let odd = masks.control & !masks.newlines;
            if odd != 0 {
                list_suspects(text, base, odd, suspects);
            }
            // Written always, kept only if there is one: no branch for the processor to guess wrong.
            let count = masks.newlines.count_ones() as usize;
            newlines[newline_count] = base + masks.newlines.trailing_zeros();
            if count > 1 {
                let places = bits_of(masks.newlines).map(|bit| base + bit);
                newlines[newline_count..].iter_mut().zip(places).for_each(|(entry, place)| *entry = place);
            }
            newline_count += count;
            special[special_count] = base;
            special_count += usize::from(masks.non_ascii != 0);
            base += WORD as u32;
        }
        self.newline_count = newline_count;
        self.special.truncate(special_count);
        self.check_special_words(text);
        self.suspects.sort_unstable();
        self.suspects.push(u32::MAX);
    }

    fn make_room(&mut self, words: usize) {
        if self.newlines.len() < (words + 2) * WORD {
            // Made anew, since zeros that are allocated cost nothing until they are touched.
            self.newlines = vec![0; (words + 2) * WORD];
        }
        self.special.resize(words + 2, 0);
        self.suspects.clear();
    }

    /// Gathers what is not ASCII to validate it in one call, since each call has its price.
    fn check_special_words(&mut self, text: &[u8]) {
        self.gathered.clear();
        let mut next = 0;
        for &base in &self.special {
            let start = base as usize;
            if base != next {
                // Words that follow each other share characters; others must not seem to.
                self.gathered.push(b' ');
            }
            next = base + WORD as u32;
            self.gathered.extend_from_slice(text[start..].first_chunk::<WORD>().map_or(&text[start..], |word| word));
        }
        if simdutf8::basic::from_utf8(&self.gathered).is_err() {
            self.find_bad_utf8(text);
        }
    }

    /// Lists the first byte of what each line has of a stretch of special words, where that is not
    /// valid UTF-8.
    #[cold]
    fn find_bad_utf8(&mut self, text: &[u8]) {
        for stretch in self.special.chunk_by(|base, next| base + WORD as u32 == *next) {
            let mut start = stretch[0] as usize;
            let end = text.len().min(start + stretch.len() * WORD);
            for piece in text[start..end].split(|&byte| byte == b'\n') {
                if simdutf8::basic::from_utf8(piece).is_err() {
                    self.suspects.push(start as u32);
                }
                start += piece.len() + 1;
            }
        }
    }
}

/// Lists control characters of a word, but not the carriage return that goes with a newline.
#[cold]
#[inline(never)]
fn list_suspects(text: &[u8], base: u32, odd: u64, suspects: &mut Vec<u32>) {
    let ends_line = |at: &u32| text[*at as usize..].starts_with(b"\r\n");
    suspects.extend(bits_of(odd).map(|bit| base + bit).filter(|at| !ends_line(at)));
}

/// The positions of the set bits, lowest first.
fn bits_of(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            bit
        })
    })
}

/// The reading of a text, as work for the vector instructions.
pub(super) struct Reading<'a> {
    pub index: &'a mut Index,
    pub text: &'a [u8],
}

impl Task for Reading<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.index.read(lanes, self.text);
    }
}
