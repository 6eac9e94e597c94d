//! The few vector operations that the index and the shapes are built on, and the choice of
//! instructions.
//!
//! All `unsafe` of the JSON reader is here, and all of it rests on one fact: a value of [`Avx2`]
//! exists only if the processor has the instructions. Code that is to run on them takes `lanes:
//! impl Lanes`, is `#[inline(always)]`, and is started through [`Instructions::run`], so that the
//! compiler builds the whole of it once per instruction set.

/// Bytes per step of the index: one bit of a `u64` each.
pub(super) const WORD: usize = 64;
/// Bytes per comparison in a shape.
pub(super) const WINDOW: usize = 32;
/// Bytes of each of two things that are looked at together.
pub(super) const HALF: usize = WINDOW / 2;

/// What 64 bytes hold, one bit per byte, lowest bit first.
#[derive(Clone, Copy)]
pub(super) struct Masks {
    pub quotes: u64,
    pub backslashes: u64,
    /// `{ } [ ] ,` and newline. `*` and form feed are set too, since telling them apart costs an
    /// instruction and no valid line holds them outside strings.
    pub structure: u64,
    /// Bytes below 0x20, newlines included.
    pub control: u64,
    /// Not zero if any byte is 0x80 or above.
    pub non_ascii: u64,
}

/// Vector operations, by whatever instructions do them.
pub(super) trait Lanes: Copy {
    fn masks(self, bytes: &[u8; WORD]) -> Masks;
    /// Each bit is the parity of the bits up to and including it: turns quotes into "between
    /// quotes".
    fn prefix_xor(self, bits: u64) -> u64;
    /// A bit for each byte in which the windows agree.
    fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32;
    /// What can be wrong with a number: a bit for each byte that is no decimal digit; and a bit for
    /// each full stop behind the first byte, the first bit being set if the first byte is `0`.
    fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32);
    /// The same for two short numbers at once, the bits of the second above those of the first.
    fn non_digits_and_stops_of_two(self, first: &[u8; HALF], second: &[u8; HALF]) -> (u32, u32);

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

/// The window from `from` on, if the text is long enough.
#[inline(always)]
pub(super) fn window(text: &[u8], from: usize) -> Option<&[u8; WINDOW]> {
    text.get(from..from + WINDOW)?.first_chunk()
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
            quotes: mask(|byte| byte == b'"'),
            backslashes: mask(|byte| byte == b'\\'),
            structure: mask(|byte| matches!(byte | 0x20, b'{' | b'}' | b',' | b'*')),
            control: mask(|byte| byte < 0x20),
            non_ascii: u64::from(!bytes.is_ascii()),
        }
    }

    fn prefix_xor(self, mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }

    fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
        (0..WINDOW).fold(0, |mask, bit| mask | u32::from(left[bit] == right[bit]) << bit)
    }

    fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32) {
        let mask = |is: fn(u8) -> bool| (0..WINDOW).fold(0, |mask, bit| mask | u32::from(is(window[bit])) << bit);
        let stops = mask(|byte| byte == b'.') & !1;
        (mask(|byte| !byte.is_ascii_digit()), stops | u32::from(window[0] == b'0'))
    }

    fn non_digits_and_stops_of_two(self, first: &[u8; HALF], second: &[u8; HALF]) -> (u32, u32) {
        let of_one = |half: &[u8; HALF]| {
            let mut window = [0; WINDOW];
            window[..HALF].copy_from_slice(half);
            self.non_digits_and_stops(&window)
        };
        let ((first, first_stops), (second, second_stops)) = (of_one(first), of_one(second));
        let low = u32::from(u16::MAX);
        (first & low | second << HALF, first_stops & low | second_stops << HALF)
    }

    fn run<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{HALF, Lanes, Masks, Task, WINDOW, WORD};

    /// Proof that the processor has AVX2, carry-less multiplication and the bit manipulation
    /// instructions: [`Avx2::detect`] is the only way to get one.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        pub fn detect() -> Option<Avx2> {
            let present = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("pclmulqdq")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            present.then_some(Avx2(()))
        }
    }

    /// Never inlined, so that each task has the registers for itself.
    #[inline(never)]
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,popcnt")]
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
        fn prefix_xor(self, bits: u64) -> u64 {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { prefix_xor(bits) }
        }

        #[inline(always)]
        fn equal(self, left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { equal(left, right) }
        }

        #[inline(always)]
        fn non_digits_and_stops(self, window: &[u8; WINDOW]) -> (u32, u32) {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { non_digits_and_stops(window) }
        }

        #[inline(always)]
        fn non_digits_and_stops_of_two(self, first: &[u8; HALF], second: &[u8; HALF]) -> (u32, u32) {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { non_digits_and_stops_of_two(first, second) }
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
    fn load_half(bytes: &[u8; HALF]) -> __m128i {
        // SAFETY: the reference is to 16 readable bytes, and `loadu` asks for no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits(bytes: __m256i) -> u32 {
        _mm256_movemask_epi8(bytes).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn masks(bytes: &[u8; WORD]) -> Masks {
        let (halves, _) = bytes.as_chunks::<WINDOW>();
        let (low, high) = (load(&halves[0]), load(&halves[1]));
        let wide = |low, high| u64::from(bits(low)) | u64::from(bits(high)) << 32;

        let equal = |byte| wide(_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte));
        // By its low half a byte picks the only structural byte it can be; with 0x20 set, `[` and
        // `{` are one, and newline has an image.
        let candidates = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'*' as i8, b'{' as i8, b',' as i8, b'}' as i8, 0, 0,
        ));
        let structural = |bytes| {
            _mm256_cmpeq_epi8(_mm256_shuffle_epi8(candidates, bytes), _mm256_or_si256(bytes, _mm256_set1_epi8(0x20)))
        };
        let control = |bytes| _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);

        Masks {
            quotes: equal(_mm256_set1_epi8(b'"' as i8)),
            backslashes: equal(_mm256_set1_epi8(b'\\' as i8)),
            structure: wide(structural(low), structural(high)),
            control: wide(control(low), control(high)),
            non_ascii: u64::from(bits(_mm256_or_si256(low, high))),
        }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse2")]
    fn prefix_xor(bits: u64) -> u64 {
        // Multiplying by all ones without carries adds up every lower bit.
        let product = _mm_clmulepi64_si128(_mm_set_epi64x(0, bits.cast_signed()), _mm_set1_epi8(-1), 0);
        _mm_cvtsi128_si64(product).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(left: &[u8; WINDOW], right: &[u8; WINDOW]) -> u32 {
        bits(_mm256_cmpeq_epi8(load(left), load(right)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn non_digits(bytes: __m256i) -> u32 {
        // Moved so that the digits are the ten lowest of the signed bytes.
        let moved = _mm256_add_epi8(bytes, _mm256_set1_epi8(i8::MIN.wrapping_sub(b'0' as i8)));
        bits(_mm256_cmpgt_epi8(moved, _mm256_set1_epi8(i8::MIN + 9)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn non_digits_and_stops(window: &[u8; WINDOW]) -> (u32, u32) {
        let bytes = load(window);
        let sought = _mm256_insert_epi8(_mm256_set1_epi8(b'.' as i8), b'0' as i8, 0);
        (non_digits(bytes), bits(_mm256_cmpeq_epi8(bytes, sought)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn non_digits_and_stops_of_two(first: &[u8; HALF], second: &[u8; HALF]) -> (u32, u32) {
        let bytes = _mm256_set_m128i(load_half(second), load_half(first));
        let sought = _mm_insert_epi8(_mm_set1_epi8(b'.' as i8), b'0' as i8 as i32, 0);
        (non_digits(bytes), bits(_mm256_cmpeq_epi8(bytes, _mm256_set_m128i(sought, sought))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        #[cfg(target_arch = "x86_64")]
        fn avx2_and_plain_rust_give_the_same_masks(bytes: [u8; WORD], left: [u8; WINDOW], right: [u8; WINDOW], bits: u64) {
            let Some(avx2) = Avx2::detect() else { return Ok(()) };
            let (fast, plain) = (avx2.masks(&bytes), Portable.masks(&bytes));
            prop_assert_eq!(fast.quotes, plain.quotes);
            prop_assert_eq!(fast.backslashes, plain.backslashes);
            prop_assert_eq!(fast.structure, plain.structure);
            prop_assert_eq!(fast.control, plain.control);
            prop_assert_eq!(fast.non_ascii != 0, plain.non_ascii != 0);
            prop_assert_eq!(avx2.prefix_xor(bits), Portable.prefix_xor(bits));
            prop_assert_eq!(avx2.equal(&left, &right), Portable.equal(&left, &right));
            prop_assert_eq!(avx2.non_digits_and_stops(&left), Portable.non_digits_and_stops(&left));
            let (halves, _) = left.as_chunks::<HALF>();
            prop_assert_eq!(
                avx2.non_digits_and_stops_of_two(&halves[0], &halves[1]),
                Portable.non_digits_and_stops_of_two(&halves[0], &halves[1])
            );
        }
    }

    #[test]
    fn every_byte_gets_its_marks() {
        for byte in 0..=u8::MAX {
            let mut bytes = [b'x'; WORD];
            bytes[37] = byte;
            let masks = Portable.masks(&bytes);
            let bit = |is: bool| u64::from(is) << 37;
            assert_eq!(masks.quotes, bit(byte == b'"'));
            assert_eq!(masks.backslashes, bit(byte == b'\\'));
            assert_eq!(masks.structure, bit(b"{}[],\n*\x0c".contains(&byte)));
            assert_eq!(masks.control, bit(byte < 0x20));
            assert_eq!(masks.non_ascii != 0, byte >= 0x80);
        }
    }
}
