//! A line of the screen, made of pieces that may be coloured.

use std::io::{self, Write};

use super::room;

/// How a piece looks where colours are wanted. What it means is also in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Strong,
    Quiet,
    Error,
    Warning,
    Good,
    /// Time in which nothing was computed.
    Waiting,
    Reading,
    Writing,
}

impl Ink {
    fn code(self) -> Option<&'static str> {
        match self {
            Ink::Plain => None,
            Ink::Strong => Some("1"),
            Ink::Quiet => Some("2"),
            Ink::Error => Some("1;31"),
            Ink::Warning | Ink::Waiting => Some("33"),
            Ink::Good | Ink::Writing => Some("32"),
            Ink::Reading => Some("36"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pieces: Vec<(Ink, String)>,
    width: usize,
}

impl Line {
    /// A line of one piece.
    pub fn of(ink: Ink, text: impl Into<String>) -> Self {
        Line::default().with(ink, text)
    }

    /// A blank of `width` columns.
    pub fn indented(width: usize) -> Self {
        Line::of(Ink::Plain, " ".repeat(width))
    }

    /// This line and one piece more.
    pub fn with(mut self, ink: Ink, text: impl Into<String>) -> Self {
        let text = text.into();
        self.width += room::width(&text);
        self.pieces.push((ink, text));
        self
    }

    /// This line and a piece that fills `width` columns from the left.
    pub fn left(self, ink: Ink, text: impl Into<String>, width: usize) -> Self {
        let text = text.into();
        let blank = width.saturating_sub(room::width(&text));
        self.with(ink, text).with(Ink::Plain, " ".repeat(blank))
    }

    /// This line and a piece that fills `width` columns up to the right.
    pub fn right(self, ink: Ink, text: impl Into<String>, width: usize) -> Self {
        let text = text.into();
        let blank = width.saturating_sub(room::width(&text));
        self.with(Ink::Plain, " ".repeat(blank)).with(ink, text)
    }

    /// Columns it takes, with the blanks at its end.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes it without blanks at its end.
    pub fn write<W: Write>(&self, color: bool, out: &mut W) -> io::Result<()> {
        let seen = self.pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        let last = seen.map_or(0, |last| last + 1);
        for (place, (ink, text)) in self.pieces[..last].iter().enumerate() {
            let text = if place + 1 == last { text.trim_end() } else { text };
            match ink.code().filter(|_| color && !text.trim().is_empty()) {
                Some(code) => write!(out, "\x1b[{code}m{text}\x1b[0m")?,
                None => out.write_all(text.as_bytes())?,
            }
        }
        writeln!(out)
    }
}

/// Pieces one after the other, in as many lines as they need; one that is wider than a line loses its middle.
pub fn flowed(pieces: Vec<(Ink, String)>, between: &str, width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (ink, text) in pieces {
        let text = room::without_middle(&text, width);
        match lines.pop() {
            Some(line) if line.width() + room::width(between) + room::width(&text) <= width => {
                lines.push(line.with(Ink::Quiet, between).with(ink, text));
            }
            before => {
                lines.extend(before);
                lines.push(Line::of(ink, text));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &Line, color: bool) -> String {
        let mut out = Vec::new();
        line.write(color, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colours_take_no_room_and_blanks_at_the_end_are_left_out() {
        let line = Line::default().left(Ink::Error, "no", 4).right(Ink::Strong, "12", 4).left(Ink::Plain, "", 3);
        assert_eq!(line.width(), 11);
        assert_eq!(written(&line, false), "no    12\n");
        assert_eq!(written(&line, true), "\x1b[1;31mno\x1b[0m    \x1b[1m12\x1b[0m\n");
        assert_eq!(written(&Line::indented(3), true), "\n");
    }

    #[test]
    fn pieces_flow_into_the_next_line_whole() {
        let pieces = ["req-1", "failed", "12 ms"].map(|text| (Ink::Plain, text.to_owned())).into();
        let lines: Vec<_> = flowed(pieces, " · ", 14).iter().map(|line| written(line, false)).collect();
        assert_eq!(lines, ["req-1 · failed\n", "12 ms\n"]);
    }
}
