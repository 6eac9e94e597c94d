//! Where the structure of some lines is: found 64 bytes at a time, with no decision that depends on the data but for rare ones.
//!
//! The index holds the position of each `{ } [ ] ,` outside strings and of each newline, about one entry per field, and enough on the side
//! to judge the rest later without reading the text again: quotes counted, escapes and non-ASCII stretches listed. What it cannot judge it
//! lists as suspect, and lines that hold a suspect byte are left to the general parser.
//!
//! A newline ends a line whatever came before it, so that a damaged line costs only itself.

use super::simd::{Lanes, Masks, WORD};

/// The structure of a text of whole lines.
#[derive(Default)]
pub(super) struct Index {
    entries: Vec<u32>,
    entry_count: usize,
    words: Vec<Word>,
    /// Words with non-ASCII bytes.
    wide: Vec<u32>,
    wide_count: usize,
    escapes: Vec<Escapes>,
    escapes_count: usize,
    suspects: Vec<u32>,
    /// Copies of the wide words, to be validated in one go.
    gathered: Vec<u8>,
}

/// Running counts at the start of 64 bytes of the text.
#[derive(Clone, Copy, Default)]
struct Word {
    /// Unescaped quotes in this word.
    quotes: u64,
    quotes_before: u32,
    /// Words before this one that hold escapes.
    escapes_before: u32,
}

/// The bytes of one word that stand behind a backslash.
#[derive(Clone, Copy, Default)]
struct Escapes {
    word: u32,
    escaped: u64,
}

/// What one word hands to the next.
#[derive(Clone, Copy, Default)]
struct Carry {
    /// All ones between quotes.
    inside: u64,
    /// 1 if the first byte is escaped.
    escape: u64,
}

/// A word's masks, seen in the light of what came before.
struct Reading {
    quotes: u64,
    escaped: u64,
    /// Between quotes, the opening one included.
    inside: u64,
    carry: Carry,
}

impl Carry {
    #[inline(always)]
    fn read<L: Lanes>(self, lanes: L, masks: &Masks) -> Reading {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        // A run of backslashes escapes every second byte from its second on: the subtraction carries through each run and flips
        // the odd bits behind runs that start at one parity, the xor puts the other parity right.
        let openers = masks.backslashes & !self.escape;
        let behind = openers << 1;
        let flipped = ((behind | ODD).wrapping_sub(openers)) ^ ODD;
        let escaped = flipped ^ (masks.backslashes | self.escape);
        let escape = (flipped & masks.backslashes) >> 63;

        let quotes = masks.quotes & !escaped;
        let inside = lanes.prefix_xor(quotes) ^ self.inside;
        let still_inside = (inside.cast_signed() >> 63).cast_unsigned();
        Reading { quotes, escaped, inside, carry: Carry { inside: still_inside, escape } }
    }
}

impl Index {
    /// Positions in order; the last entry is a newline or the length of the text.
    pub fn entries(&self) -> &[u32] {
        &self.entries[..self.entry_count]
    }

    /// Bytes that only the general parser can judge, in order, then `u32::MAX`.
    pub fn suspects(&self) -> &[u32] {
        &self.suspects
    }

    /// How many unescaped quotes come before the position.
    #[inline(always)]
    pub fn quotes_before(&self, at: usize) -> u32 {
        let word = self.words[at / WORD];
        let below = word.quotes & !(u64::MAX << (at % WORD));
        word.quotes_before + below.count_ones()
    }

    /// Whether the bytes from `start` to `end` may hold escapes; false is sure.
    #[inline(always)]
    pub fn may_hold_escapes(&self, start: usize, end: usize) -> bool {
        self.words[start / WORD].escapes_before != self.words[end / WORD + 1].escapes_before
    }

    /// Reads a text of whole lines, shorter than 4 GiB.
    #[inline(always)]
    pub fn read<L: Lanes>(&mut self, lanes: L, text: &[u8]) {
        self.clear(text.len().div_ceil(WORD));
        let mut carry = Carry::default();
        let mut quotes_before = 0;
        let (words, rest) = text.as_chunks::<WORD>();
        for (word, bytes) in words.iter().enumerate() {
            self.read_word(lanes, word, bytes, &mut carry, &mut quotes_before);
        }
        if !rest.is_empty() {
            let mut padded = [b' '; WORD];
            padded[..rest.len()].copy_from_slice(rest);
            self.read_word(lanes, words.len(), &padded, &mut carry, &mut quotes_before);
        }
        self.finish(text, carry, quotes_before);
    }

    fn clear(&mut self, words: usize) {
        // Two words more than the text has: for a position at its end, and for the counts behind that.
        self.words.resize(words + 2, Word::default());
        self.wide.resize(words, 0);
        self.wide_count = 0;
        self.escapes.resize(words, Escapes::default());
        self.escapes_count = 0;
        self.entry_count = 0;
        self.suspects.clear();
    }

    #[inline(always)]
    fn read_word<L: Lanes>(
        &mut self,
        lanes: L,
        word: usize,
        bytes: &[u8; WORD],
        carry: &mut Carry,
        quotes_before: &mut u32,
    ) {
        let masks = lanes.masks(bytes);
        let mut reading = carry.read(lanes, &masks);
        let mut structure = masks.structure & !reading.inside;
        let wrong = (masks.control & reading.inside) | (masks.backslashes & !reading.inside);
        if wrong != 0 {
            (reading, structure) = self.read_damaged(lanes, word, bytes, masks, *carry);
        }
        *carry = reading.carry;

        self.words[word] =
            Word { quotes: reading.quotes, quotes_before: *quotes_before, escapes_before: self.escapes_count as u32 };
        *quotes_before += reading.quotes.count_ones();
        // Written always, kept only if there is something: no branch for the processor to guess wrong.
        self.wide[self.wide_count] = word as u32;
        self.wide_count += usize::from(masks.non_ascii);
        self.escapes[self.escapes_count] = Escapes { word: word as u32, escaped: reading.escaped };
        self.escapes_count += usize::from(reading.escaped != 0);
        self.push_entries((word * WORD) as u32, structure);
    }

    #[inline(always)]
    fn push_entries(&mut self, base: u32, mut bits: u64) {
        const USUAL: usize = 8;
        if self.entries.len() < self.entry_count + WORD {
            self.grow();
        }
        let room = &mut self.entries[self.entry_count..][..WORD];
        let count = bits.count_ones() as usize;
        let (usual, more) = room.split_at_mut(USUAL);
        for entry in usual {
            *entry = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        if count > USUAL {
            for entry in &mut more[..count - USUAL] {
                *entry = base + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
        }
        self.entry_count += count;
    }

    #[cold]
    fn grow(&mut self) {
        self.entries.resize((2 * self.entries.len()).max(64 * WORD), 0);
    }

    /// Reads a word in which a control character stands inside a string or a backslash outside: as far as a newline inside a string, where
    /// the line it belongs to ends, and then on from there as if nothing had been.
    #[cold]
    #[inline(never)]
    fn read_damaged<L: Lanes>(
        &mut self,
        lanes: L,
        word: usize,
        bytes: &[u8; WORD],
        mut masks: Masks,
        mut carry: Carry,
    ) -> (Reading, u64) {
        let (mut structure, mut quotes, mut escaped) = (0, 0, 0);
        loop {
            let reading = carry.read(lanes, &masks);
            let controls = masks.control & reading.inside;
            let line_end = bits_of(controls).find(|&bit| bytes[bit as usize] == b'\n');
            let taken = line_end.map_or(u64::MAX, |bit| u64::MAX >> (63 - bit));

            let wrong = (controls | (masks.backslashes & !reading.inside)) & taken;
            self.suspects.extend(bits_of(wrong).map(|bit| (word * WORD) as u32 + bit));
            structure |= masks.structure & !reading.inside & taken;
            quotes |= reading.quotes & taken;
            escaped |= reading.escaped & taken;
            let Some(line_end) = line_end else {
                return (Reading { quotes, escaped, ..reading }, structure);
            };
            structure |= 1 << line_end;
            carry = Carry::default();
            masks.quotes &= !taken;
            masks.backslashes &= !taken;
            masks.structure &= !taken;
            masks.control &= !taken;
        }
    }

    fn finish(&mut self, text: &[u8], carry: Carry, quotes_before: u32) {
        let escapes_before = self.escapes_count as u32;
        let end = Word { quotes: 0, quotes_before, escapes_before };
        let read = text.len().div_ceil(WORD);
        self.words[read..].fill(end);
        if text.last() != Some(&b'\n') {
            self.push_entries(text.len() as u32, 1);
        }
        if carry.inside != 0 {
            self.suspects.push(text.len() as u32);
        }
        self.check_escapes(text);
        self.check_utf8(text);
        self.suspects.sort_unstable();
        self.suspects.push(u32::MAX);
    }

    fn check_escapes(&mut self, text: &[u8]) {
        for escapes in &self.escapes[..self.escapes_count] {
            for bit in bits_of(escapes.escaped) {
                let at = escapes.word as usize * WORD + bit as usize;
                let valid = match text.get(at) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
                    Some(b'u') => {
                        text.get(at + 1..at + 5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
                    }
                    _ => false,
                };
                if !valid {
                    self.suspects.push(at as u32);
                }
            }
        }
    }

    /// Validates the words that hold non-ASCII bytes, all in one call since each call has its price.
    fn check_utf8(&mut self, text: &[u8]) {
        self.gathered.clear();
        let mut next = 0;
        for &word in &self.wide[..self.wide_count] {
            if word != next {
                // Words that follow each other share characters; others must not seem to.
                self.gathered.push(b' ');
            }
            next = word + 1;
            let start = word as usize * WORD;
            match text[start..].first_chunk::<WORD>() {
                Some(bytes) => self.gathered.extend_from_slice(bytes),
                None => self.gathered.extend_from_slice(&text[start..]),
            }
        }
        if simdutf8::basic::from_utf8(&self.gathered).is_err() {
            self.find_bad_utf8(text);
        }
    }

    /// Lists the first byte of what each line has of a stretch of non-ASCII words, where that is not valid UTF-8.
    #[cold]
    fn find_bad_utf8(&mut self, text: &[u8]) {
        for stretch in self.wide[..self.wide_count].chunk_by(|word, next| word + 1 == *next) {
            let mut start = stretch[0] as usize * WORD;
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
