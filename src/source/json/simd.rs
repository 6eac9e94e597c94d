//! The few vector operations that the index and the shapes are built on, and the choice of
//! instructions.
//!
//! All `unsafe` of the JSON reader is here, and nearly all of it rests on one fact: a value of [`Avx2`]
//! exists only if the processor has the instructions. Code that is to run on them takes `lanes:
//! impl Lanes`, is `#[inline(always)]`, and is started through [`Instructions::run`], so that the
//! compiler builds the whole of it once per instruction set.

/// Bytes per step of the index: one bit of a `u64` each.
pub(super) const WORD: usize = 64;
/// Bytes per comparison in a shape.
pub(super) const WINDOW: usize = 32;

/// What 64 bytes hold, one bit per byte, lowest bit first.
#[derive(Clone, Copy)]
pub(super) struct Masks {
    pub newlines: u64,
    /// Bytes below 0x20, newlines included.
    pub control: u64,
    /// Not zero if any byte is 0x80 or above.
    pub non_ascii: u32,
}

/// Vector operations, by whatever instructions do them. Masks have a bit for each byte, the lowest for the first.
pub(super) trait Lanes: Copy {
    fn masks(self, bytes: &[u8; WORD]) -> Masks;
    /// The bytes in which the windows agree.
    fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32;
    /// The quotes and backslashes.
    fn string_stops(self, window: &[u8; WINDOW]) -> u32;
    /// The same apart.
    fn quotes_and_backslashes(self, window: &[u8; WINDOW]) -> (u32, u32);
    /// What can be wrong with a number: a bit for each byte that is no decimal digit; and a bit for
    /// each full stop behind the first byte, the first bit being set if the first byte is `0`.
    fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32);

    /// The backslashes, and the bytes behind which an escape of another character may begin: those from 0x60 to 0x7f.
    fn backslashes_and_letters(self, window: &[u8; WINDOW]) -> (u32, u32);
    /// The bytes without those that `dropped` has a bit for, and then any bytes.
    fn without(self, word: &[u8; 8], dropped: u8) -> [u8; 8];

    /// Starts work that is built for these instructions, as a function of its own.
    fn run<T: Task>(self, task: T) -> T::Output;
}

/// Work that is built once per instruction set.
pub(super) trait Task {
    type Output;

    /// Must be `#[inline(always)]`, as must all hot code below it, else it is built without the
    /// instructions.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// The instructions this processor has.
#[derive(Clone, Copy)]
pub(super) enum Instructions {
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable,
}

impl Instructions {
    pub fn detect() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            return Instructions::Avx2(avx2);
        }
        Instructions::Portable
    }

    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(avx2) => avx2.run(task),
            Instructions::Portable => task.run(Portable),
        }
    }
}

/// A text to take windows from.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    /// Where its last window starts.
    last: u32,
}

impl<'a> Text<'a> {
    /// None if the text is shorter than a window, or so long that places in it are no u32.
    pub fn new(bytes: &'a [u8]) -> Option<Text<'a>> {
        let last = u32::try_from(bytes.len().checked_sub(WINDOW)?).ok()?;
        (last < u32::MAX / 2).then_some(Text { bytes, last })
    }

    /// The window from `at` on, or the last one if it lies before that.
    #[inline(always)]
    pub fn window(self, at: u32) -> &'a [u8; WINDOW] {
        let at = at.min(self.last) as usize;
        // SAFETY: all bytes of the last window are in the text, and no window starts behind that. A check at each window
        // takes a tenth of the time of following lines.
        unsafe { &*self.bytes.as_ptr().add(at).cast::<[u8; WINDOW]>() }
    }

    /// The byte at `at`, any byte if that is not before the last window.
    #[inline(always)]
    pub fn byte(self, at: u32) -> u8 {
        self.window(at)[0]
    }

    /// A place at which no line ends that a window follows.
    #[inline(always)]
    pub fn nowhere(self) -> u32 {
        self.last + WINDOW as u32
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// Plain Rust, for every other processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Lanes for Portable {
    fn masks(self, bytes: &[u8; WORD]) -> Masks {
        let mask = |is: fn(u8) -> bool| {
            bytes.iter().enumerate().fold(0, |mask, (bit, &byte)| mask | u64::from(is(byte)) << bit)
        };
        Masks {
            newlines: mask(|byte| byte == b'\n'),
            control: mask(|byte| byte < 0x20),
            non_ascii: u32::from(!bytes.is_ascii()),
        }
    }

    fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
        (0..WINDOW).fold(0, |mask, bit| mask | u32::from(left[bit] == right[bit]) << bit)
    }

    fn string_stops(self, window: &[u8; WINDOW]) -> u32 {
        (0..WINDOW).fold(0, |mask, bit| mask | u32::from(matches!(window[bit], b'"' | b'\\')) << bit)
    }

    fn quotes_and_backslashes(self, window: &[u8; WINDOW]) -> (u32, u32) {
        let mask = |is: u8| (0..WINDOW).fold(0, |mask, bit| mask | u32::from(window[bit] == is) << bit);
        (mask(b'"'), mask(b'\\'))
    }

    fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32) {
        let mask = |is: fn(u8) -> bool| (0..WINDOW).fold(0, |mask, bit| mask | u32::from(is(window[bit])) << bit);
        let stops = mask(|byte| byte == b'.') & !1;
        (mask(|byte| !byte.is_ascii_digit()), stops | u32::from(window[0] == b'0'))
    }

    fn backslashes_and_letters(self, window: &[u8; WINDOW]) -> (u32, u32) {
        let mask = |is: fn(u8) -> bool| (0..WINDOW).fold(0, |mask, bit| mask | u32::from(is(window[bit])) << bit);
        (mask(|byte| byte == b'\\'), mask(|byte| (0x60..0x80).contains(&byte)))
    }

    fn without(self, word: &[u8; 8], dropped: u8) -> [u8; 8] {
        KEPT[usize::from(dropped)].map(|place| word[usize::from(place)])
    }

    fn run<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

/// For each set of eight bytes that are dropped, where the others stand.
static KEPT: [[u8; 8]; 256] = {
    let mut kept = [[0; 8]; 256];
    let mut dropped = 0;
    while dropped < 256 {
        let (mut place, mut next) = (0, 0);
        while place < 8 {
            if dropped >> place & 1 == 0 {
                kept[dropped][next] = place as u8;
                next += 1;
            }
            place += 1;
        }
        dropped += 1;
    }
    kept
};

#[cfg(target_arch = "x86_64")]
pub(super) use x86::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Lanes, Masks, Task, WINDOW, WORD};

    /// Proof that the processor has AVX2 and the bit manipulation instructions: [`Avx2::detect`] is the only way to
    /// get one.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        pub fn detect() -> Option<Avx2> {
            let present = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            present.then_some(Avx2(()))
        }
    }

    /// Never inlined, so that each task has the registers for itself.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn run<T: Task>(avx2: Avx2, task: T) -> T::Output {
        task.run(avx2)
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn masks(self, bytes: &[u8; WORD]) -> Masks {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { masks(bytes) }
        }

        #[inline(always)]
        fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { equal(left, right) }
        }

        #[inline(always)]
        fn string_stops(self, window: &[u8; WINDOW]) -> u32 {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { string_stops(window) }
        }

        #[inline(always)]
        fn quotes_and_backslashes(self, window: &[u8; WINDOW]) -> (u32, u32) {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { quotes_and_backslashes(window) }
        }

        #[inline(always)]
        fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32) {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { non_digits_and_stops(window) }
        }

        #[inline(always)]
        fn backslashes_and_letters(self, window: &[u8; WINDOW]) -> (u32, u32) {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { backslashes_and_letters(window) }
        }

        #[inline(always)]
        fn without(self, word: &[u8; 8], dropped: u8) -> [u8; 8] {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { without(word, dropped) }
        }

        #[inline(always)]
        fn run<T: Task>(self, task: T) -> T::Output {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { run(self, task) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; WINDOW]) -> __m256i {
        // SAFETY: the reference is to 32 readable bytes, and `loadu` asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits(bytes: __m256i) -> u32 {
        _mm256_movemask_epi8(bytes).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equals(bytes: __m256i, byte: u8) -> __m256i {
        _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn masks(bytes: &[u8; WORD]) -> Masks {
        let (halves, _) = bytes.as_chunks::<WINDOW>();
        let (low, high) = (load(&halves[0]), load(&halves[1]));
        let wide = |low, high| u64::from(bits(low)) | u64::from(bits(high)) << 32;
        let control = |bytes| _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
        Masks {
            newlines: wide(equals(low, b'\n'), equals(high, b'\n')),
            control: wide(control(low), control(high)),
            non_ascii: bits(_mm256_or_si256(low, high)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
        bits(_mm256_cmpeq_epi8(load(left), load(right)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn string_stops(window: &[u8; WINDOW]) -> u32 {
        let bytes = load(window);
        bits(_mm256_or_si256(equals(bytes, b'"'), equals(bytes, b'\\')))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn backslashes_and_letters(window: &[u8; WINDOW]) -> (u32, u32) {
        let bytes = load(window);
        let letters = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(0x5f));
        (bits(equals(bytes, b'\\')), bits(letters))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn without(word: &[u8; 8], dropped: u8) -> [u8; 8] {
        let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*word));
        let places = _mm_cvtsi64_si128(i64::from_le_bytes(super::KEPT[usize::from(dropped)]));
        _mm_cvtsi128_si64(_mm_shuffle_epi8(bytes, places)).to_le_bytes()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotes_and_backslashes(window: &[u8; WINDOW]) -> (u32, u32) {
        let bytes = load(window);
        (bits(equals(bytes, b'"')), bits(equals(bytes, b'\\')))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn non_digits_and_stops(window: &[u8; WINDOW]) -> (u32, u32) {
        let bytes = load(window);
        // Moved so that the digits are the ten lowest of the signed bytes.
        let moved = _mm256_add_epi8(bytes, _mm256_set1_epi8(i8::MIN.wrapping_sub(b'0' as i8)));
        let non_digits = _mm256_cmpgt_epi8(moved, _mm256_set1_epi8(i8::MIN + 9));
        let sought = _mm256_insert_epi8(_mm256_set1_epi8(b'.' as i8), b'0' as i8, 0);
        let stops = _mm256_cmpeq_epi8(bytes, sought);
        (bits(non_digits), bits(stops))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        #[cfg(target_arch = "x86_64")]
        fn avx2_and_plain_rust_give_the_same_masks(bytes: [u8; WORD], left: [u8; WINDOW], right: [u8; WINDOW]) {
            let Some(avx2) = Avx2::detect() else { return Ok(()) };
            let (fast, plain) = (avx2.masks(&bytes), Portable.masks(&bytes));
            prop_assert_eq!(fast.newlines, plain.newlines);
            prop_assert_eq!(fast.control, plain.control);
            prop_assert_eq!(fast.non_ascii != 0, plain.non_ascii != 0);
            prop_assert_eq!(avx2.equal(&left, &right), Portable.equal(&left, &right));
            prop_assert_eq!(avx2.string_stops(&left), Portable.string_stops(&left));
            prop_assert_eq!(avx2.quotes_and_backslashes(&left), Portable.quotes_and_backslashes(&left));
            prop_assert_eq!(avx2.non_digits_and_stops(&left), Portable.non_digits_and_stops(&left));
            prop_assert_eq!(avx2.backslashes_and_letters(&left), Portable.backslashes_and_letters(&left));
            let (word, dropped) = (left.first_chunk().unwrap(), right[0]);
            prop_assert_eq!(avx2.without(word, dropped), Portable.without(word, dropped));
        }
    }

    #[test]
    fn windows_are_never_taken_from_behind_the_text() {
        let bytes: Vec<u8> = (0..WINDOW as u8 + 3).collect();
        for length in 0..WINDOW {
            assert!(Text::new(&bytes[..length]).is_none());
        }
        for length in WINDOW..bytes.len() {
            let text = Text::new(&bytes[..length]).expect("long enough");
            for at in (0..length as u32 + 2).chain([u32::MAX - 1, u32::MAX]) {
                let first = (at as usize).min(length - WINDOW);
                assert_eq!(text.window(at)[..], bytes[first..first + WINDOW]);
            }
        }
    }

    #[test]
    fn every_byte_gets_its_marks() {
        for byte in 0..=u8::MAX {
            let (mut word, mut window) = ([b'x'; WORD], [b'x'; WINDOW]);
            (word[37], window[21]) = (byte, byte);
            let masks = Portable.masks(&word);
            let bit = |is: bool| u64::from(is) << 37;
            assert_eq!(masks.newlines, bit(byte == b'\n'));
            assert_eq!(masks.control, bit(byte < 0x20));
            assert_eq!(masks.non_ascii != 0, byte >= 0x80);
            assert_eq!(Portable.string_stops(&window), u32::from(byte == b'"' || byte == b'\\') << 21);
        }
    }
}
