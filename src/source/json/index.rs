//! Where the structure of some lines is: found 64 bytes at a time, with no decision that depends on
//! the data but for rare ones.
//!
//! The index holds the position of each `{ } [ ] ,` outside strings and of each newline, about one
//! entry per field, and enough on the side to judge the rest later without reading the text again:
//! quotes counted, escapes and non-ASCII stretches listed. What it cannot judge it lists as
//! suspect, and lines that hold a suspect byte are left to the general parser.
//!
//! A newline ends a line whatever came before it, so that a damaged line costs only itself.

use super::record::Escapes;
use super::simd::{Lanes, Masks, Task, WORD};

/// The entry before the text: adding one to it wraps around to the first byte.
const BEFORE: u32 = u32::MAX;

/// The structure of a text of whole lines.
#[derive(Default)]
pub(super) struct Index {
    entries: Vec<u32>,
    entry_count: usize,
    words: Vec<Word>,
    /// Where the special words start: those with escapes or with bytes that are not ASCII.
    special: Vec<u32>,
    suspects: Vec<u32>,
    /// Copies of the words that are not ASCII, to be validated in one go.
    gathered: Vec<u8>,
}

/// 64 bytes of the text.
#[derive(Clone, Copy, Default)]
struct Word {
    /// Bytes that are entries.
    structure: u64,
    /// Unescaped quotes.
    quotes: u64,
    /// Bytes behind a backslash.
    escaped: u64,
    /// Unescaped quotes in the words before.
    quotes_before: u32,
    /// Special words before.
    special_before: u32,
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
struct Marks {
    quotes: u64,
    escaped: u64,
    /// Between quotes, the opening one included.
    inside: u64,
    carry: Carry,
}

impl Carry {
    #[inline(always)]
    fn read<L: Lanes>(self, lanes: L, masks: &Masks) -> Marks {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        // A run of backslashes escapes every second byte from its second on: the subtraction
        // carries through each run and flips the odd bits behind runs that start at one parity, the
        // xor puts the other parity right.
        let openers = masks.backslashes & !self.escape;
        let behind = openers << 1;
        let flipped = ((behind | ODD).wrapping_sub(openers)) ^ ODD;
        let escaped = flipped ^ (masks.backslashes | self.escape);
        let escape = (flipped & masks.backslashes) >> 63;

        let quotes = masks.quotes & !escaped;
        let inside = lanes.prefix_xor(quotes) ^ self.inside;
        let still_inside = (inside.cast_signed() >> 63).cast_unsigned();
        Marks { quotes, escaped, inside, carry: Carry { inside: still_inside, escape } }
    }
}

impl Index {
    /// Positions in order. The first is one before the text, as if a newline were there; the last is
    /// a newline.
    #[inline(always)]
    pub fn entries(&self) -> &[u32] {
        &self.entries[..self.entry_count]
    }

    /// Bytes that only the general parser can judge, in order, then `u32::MAX`.
    #[inline(always)]
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
        self.words[start / WORD].special_before != self.words[end / WORD + 1].special_before
    }

    /// What is known of escapes in the line from `start` to `end`.
    #[inline(always)]
    pub fn escapes(&self, start: usize, end: usize) -> Escapes<'_> {
        if self.may_hold_escapes(start, end) { Escapes::Indexed(self) } else { Escapes::Nowhere }
    }

    /// Reads a text of whole lines, each with its newline, shorter than 4 GiB.
    #[inline(always)]
    fn read<L: Lanes>(&mut self, lanes: L, text: &[u8]) {
        self.make_room(text.len().div_ceil(WORD));
        let mut pass = Pass {
            special: &mut self.special,
            special_count: 0,
            suspects: &mut self.suspects,
            carry: Carry::default(),
            quotes: 0,
        };
        let (whole, rest) = text.as_chunks::<WORD>();
        let mut base = 0;
        for (bytes, word) in whole.iter().zip(&mut self.words) {
            *word = pass.read(lanes, base, bytes);
            base += WORD as u32;
        }
        if !rest.is_empty() {
            let mut padded = [b' '; WORD];
            padded[..rest.len()].copy_from_slice(rest);
            self.words[whole.len()] = pass.read(lanes, base, &padded);
        }

        let Pass { special_count, quotes, .. } = pass;
        let behind = Word { quotes_before: quotes, special_before: special_count as u32, ..Word::default() };
        self.words[text.len().div_ceil(WORD)..].fill(behind);
        self.list_entries();
        self.special.truncate(special_count);
        self.check_special_words(text);
        self.suspects.sort_unstable();
        self.suspects.push(u32::MAX);
    }

    fn make_room(&mut self, words: usize) {
        if self.entries.len() < (words + 3) * WORD {
            // A word more for the entry before the text. Made anew, since zeros that are allocated
            // cost nothing until they are touched.
            self.entries = vec![0; (words + 3) * WORD];
        }
        self.special.resize(words, 0);
        // Two more than the text has: for a position at its end, and for the counts behind that.
        self.words.resize(words + 2, Word::default());
        self.suspects.clear();
    }

    /// Lists the entries in a pass of its own: each of the two loops has enough to keep in
    /// registers.
    #[inline(always)]
    fn list_entries(&mut self) {
        const USUAL: usize = 4;
        self.entries[0] = BEFORE;
        let mut room = &mut self.entries[1..];
        let all = room.len();
        let mut base = 0;
        for word in &self.words {
            let mut bits = word.structure;
            let count = bits.count_ones() as usize;
            for entry in &mut room[..USUAL] {
                *entry = base + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
            if count > USUAL {
                for entry in &mut room[USUAL..count] {
                    *entry = base + bits.trailing_zeros();
                    bits &= bits.wrapping_sub(1);
                }
            }
            room = &mut room[count..];
            base += WORD as u32;
        }
        self.entry_count = 1 + all - room.len();
    }

    /// Checks escapes, and gathers what is not ASCII to validate it in one call, since each call
    /// has its price.
    fn check_special_words(&mut self, text: &[u8]) {
        self.gathered.clear();
        let mut next = 0;
        for &base in &self.special {
            let start = base as usize;
            let escaped = bits_of(self.words[start / WORD].escaped).map(|bit| base + bit);
            self.suspects.extend(escaped.filter(|&at| !is_escape(&text[(at as usize).min(text.len())..])));
            let bytes = text[start..].first_chunk::<WORD>().map_or(&text[start..], |word| word);
            if !bytes.is_ascii() {
                if base != next {
                    // Words that follow each other share characters; others must not seem to.
                    self.gathered.push(b' ');
                }
                next = base + WORD as u32;
                self.gathered.extend_from_slice(bytes);
            }
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

/// Whether what follows a backslash makes an escape.
fn is_escape(text: &[u8]) -> bool {
    match text {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'u', digits @ ..] => digits.get(..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    }
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

/// One pass over a text. Its parts are borrowed apart, so that the counters stay in registers.
struct Pass<'a> {
    special: &'a mut [u32],
    special_count: usize,
    suspects: &'a mut Vec<u32>,
    carry: Carry,
    quotes: u32,
}

impl Pass<'_> {
    #[inline(always)]
    fn read<L: Lanes>(&mut self, lanes: L, base: u32, bytes: &[u8; WORD]) -> Word {
        let masks = lanes.masks(bytes);
        let mut marks = self.carry.read(lanes, &masks);
        let mut structure = masks.structure & !marks.inside;
        let wrong = (masks.control & marks.inside) | (masks.backslashes & !marks.inside);
        if wrong != 0 {
            (marks, structure) = read_damaged(lanes, base, bytes, self.carry, self.suspects);
        }
        self.carry = marks.carry;

        let word = Word {
            structure,
            quotes: marks.quotes,
            escaped: marks.escaped,
            quotes_before: self.quotes,
            special_before: self.special_count as u32,
        };
        self.quotes += marks.quotes.count_ones();
        // Written always, kept only if it is special: no branch for the processor to guess wrong.
        self.special[self.special_count] = base;
        self.special_count += usize::from((marks.escaped | masks.non_ascii) != 0);
        word
    }
}

/// Reads a word in which a control character stands inside a string or a backslash outside: as far
/// as a newline inside a string, where the line it belongs to ends, and then on from there as if
/// nothing had been.
#[cold]
#[inline(never)]
fn read_damaged<L: Lanes>(
    lanes: L,
    base: u32,
    bytes: &[u8; WORD],
    mut carry: Carry,
    suspects: &mut Vec<u32>,
) -> (Marks, u64) {
    let mut masks = lanes.masks(bytes);
    let (mut structure, mut quotes, mut escaped) = (0, 0, 0);
    loop {
        let marks = carry.read(lanes, &masks);
        let controls = masks.control & marks.inside;
        let line_end = bits_of(controls).find(|&bit| bytes[bit as usize] == b'\n');
        let taken = line_end.map_or(u64::MAX, |bit| u64::MAX >> (63 - bit));

        let wrong = (controls | (masks.backslashes & !marks.inside)) & taken;
        suspects.extend(bits_of(wrong).map(|bit| base + bit));
        structure |= masks.structure & !marks.inside & taken;
        quotes |= marks.quotes & taken;
        escaped |= marks.escaped & taken;
        let Some(line_end) = line_end else {
            return (Marks { quotes, escaped, ..marks }, structure);
        };
        structure |= 1 << line_end;
        carry = Carry::default();
        masks.quotes &= !taken;
        masks.backslashes &= !taken;
        masks.structure &= !taken;
        masks.control &= !taken;
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
