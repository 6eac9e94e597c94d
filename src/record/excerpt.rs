//! A value as a part of the text that it stands in.

/// A value and the text around it: what is around it may be read, which makes reading the value quicker.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    pub text: &'a [u8],
    pub start: usize,
    pub end: usize,
}

impl<'a> Excerpt<'a> {
    /// The value without its first and last byte, which are its quotes if it is a string.
    #[inline(always)]
    pub fn inside(self) -> &'a [u8] {
        self.text.get(self.start + 1..self.end.wrapping_sub(1)).unwrap_or_default()
    }
}
