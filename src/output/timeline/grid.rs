//! A table without lines, as wide as its values; where the terminal is narrower the least important columns go.

use super::ink::{Ink, Line};
use super::room;

/// Text is not cut below this: rather a column goes that matters less.
const LEAST_ID: usize = 14;
/// Of the whole line.
const LEAST_SENTENCE: f64 = 0.4;
const INDENT: usize = 2;
const BETWEEN: usize = 2;

/// How a column may be made narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the right, never cut.
    Number,
    /// Its ends tell it from others.
    Id,
    /// Its beginning says most.
    Sentence,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Those with the least go first.
    pub weight: u8,
}

/// Rows of values as people read them.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    /// Rows that were left out.
    pub left_out: usize,
}

impl Grid {
    /// With these columns: name, kind and weight.
    pub fn of(columns: &[(&'static str, Kind, u8)]) -> Self {
        let columns = columns.iter().map(|&(name, kind, weight)| Column { name, kind, weight }).collect();
        Grid { columns, ..Grid::default() }
    }

    /// At most so many rows.
    pub fn filled(mut self, rows: impl ExactSizeIterator<Item = Vec<String>>, most: usize) -> Self {
        self.left_out = rows.len().saturating_sub(most);
        self.rows = rows.take(most).collect();
        self
    }

    /// Without the columns that no row knows anything of.
    pub fn known(mut self) -> Self {
        let blank = |value: &String| value == "-" || value == "unknown" || value.is_empty();
        let known: Vec<bool> =
            (0..self.columns.len()).map(|column| !self.rows.iter().all(|row| blank(&row[column]))).collect();
        keep(&mut self.columns, &known);
        self.rows.iter_mut().for_each(|row| keep(row, &known));
        self
    }

    /// The names of the columns that do not fit; a drawing beside its number has none.
    pub fn dropped(&self, width: usize) -> Vec<&'static str> {
        let shown = self.shown(width);
        let dropped = |place: &usize| shown.iter().all(|(column, _)| column != place);
        let names = (0..self.columns.len()).filter(dropped).map(|column| self.columns[column].name);
        names.filter(|name| !name.is_empty()).collect()
    }

    /// The lines: names, then rows.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let shown = self.shown(width);
        let names = shown.iter().fold(Line::indented(INDENT), |line, &(column, width)| {
            cell(line, Ink::Quiet, self.columns[column].name, self.columns[column].kind, width)
        });
        let rows = self.rows.iter().map(|row| {
            shown.iter().fold(Line::indented(INDENT), |line, &(column, width)| {
                cell(line, Ink::Plain, &row[column], self.columns[column].kind, width)
            })
        });
        std::iter::once(names).chain(rows).collect()
    }

    /// The columns that fit, each with its width.
    fn shown(&self, width: usize) -> Vec<(usize, usize)> {
        let natural = |column: usize| {
            let values = self.rows.iter().map(|row| room::width(&row[column]));
            values.fold(room::width(self.columns[column].name), usize::max)
        };
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        loop {
            let mut shown: Vec<_> = kept.iter().map(|&column| (column, natural(column))).collect();
            let gaps = BETWEEN * shown.len().saturating_sub(1);
            let mut excess = (INDENT + gaps + shown.iter().map(|(_, wide)| wide).sum::<usize>()).saturating_sub(width);
            let least = |column: usize| match self.columns[column].kind {
                Kind::Number => usize::MAX,
                Kind::Id => LEAST_ID,
                Kind::Sentence => (width as f64 * LEAST_SENTENCE) as usize,
            };
            let cuttable = |(column, wide): &&mut (usize, usize)| *wide > least(*column);
            while excess > 0 {
                let widest = shown.iter_mut().filter(cuttable).max_by_key(|(_, wide)| *wide);
                let Some((column, widest)) = widest else { break };
                let narrower = widest.saturating_sub(excess).max(least(*column));
                excess -= *widest - narrower;
                *widest = narrower;
            }
            let lightest = kept.iter().enumerate().min_by_key(|(_, column)| self.columns[**column].weight);
            match lightest {
                Some((place, _)) if excess > 0 && kept.len() > 1 => _ = kept.remove(place),
                _ if excess > 0 => return kept.iter().map(|&column| (column, width.saturating_sub(INDENT))).collect(),
                _ => return shown,
            }
        }
    }
}

fn keep<T>(items: &mut Vec<T>, known: &[bool]) {
    let mut known = known.iter();
    items.retain(|_| known.next() == Some(&true));
}

fn cell(line: Line, ink: Ink, text: &str, kind: Kind, width: usize) -> Line {
    let line = if line.width() > INDENT { line.with(Ink::Plain, " ".repeat(BETWEEN)) } else { line };
    match kind {
        Kind::Number => line.right(ink, room::without_end(text, width), width),
        Kind::Id => line.left(ink, room::without_middle(text, width), width),
        Kind::Sentence => line.left(ink, room::without_end(text, width), width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(width: usize) -> Vec<String> {
        let grid = Grid::of(&[("id", Kind::Id, 3), ("ms", Kind::Number, 2), ("place", Kind::Id, 1)]);
        let row = ["req-0123456789-77", "2,900", "engine.ndjson"].map(str::to_owned);
        let grid = grid.filled(std::iter::once(row.to_vec()), 1);
        let mut out = Vec::new();
        grid.lines(width).iter().for_each(|line| line.write(false, &mut out).unwrap());
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn ids_are_cut_first_and_then_the_least_important_column_goes() {
        assert_eq!(lines(41)[1], "  req-0123456789-77  2,900  engine.ndjson");
        assert_eq!(lines(38)[1], "  req-012…789-77  2,900  engine.ndjson");
        assert_eq!(lines(37)[1], "  req-0123456789-77  2,900");
        assert_eq!(lines(10)[1], "  req-…-77");
    }

    #[test]
    fn a_column_that_no_row_knows_is_left_out() {
        let grid = Grid::of(&[("id", Kind::Id, 2), ("ms", Kind::Number, 1)]);
        let rows = [["req-1", "-"], ["unknown", "-"]].map(|row| row.map(str::to_owned).to_vec());
        let grid = grid.filled(rows.into_iter(), 9).known();
        assert_eq!((grid.columns.len(), grid.rows), (1, vec![vec!["req-1".to_owned()], vec!["unknown".to_owned()]]));
    }
}
