//! The cells of a table shaded by their size.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};

/// From light to dark.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The least and the largest of all cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    least: f64,
    largest: f64,
}

impl Heat {
    /// Of all numbers of these columns; None where there is none.
    ///
    /// # Errors
    /// A column holds no numbers.
    pub fn of(columns: &[ArrayRef]) -> anyhow::Result<Option<Self>> {
        let mut heat: Option<Heat> = None;
        for column in columns {
            let numbers = cast(column, &DataType::Float64)?;
            for number in numbers.as_primitive::<Float64Type>().iter().flatten().filter(|number| number.is_finite()) {
                let all = heat.get_or_insert(Heat { least: number, largest: number });
                *all = Heat { least: all.least.min(number), largest: all.largest.max(number) };
            }
        }
        Ok(heat)
    }

    /// The shade of a cell; a blank for one that is not known.
    pub fn shade(&self, column: &dyn Array, row: usize) -> char {
        let number = cast(&column.slice(row, 1), &DataType::Float64).ok();
        let number =
            number.filter(|number| number.is_valid(0)).map(|number| number.as_primitive::<Float64Type>().value(0));
        let Some(number) = number.filter(|number| number.is_finite()) else { return ' ' };
        let spread = self.largest - self.least;
        let part = if spread > 0.0 { (number - self.least) / spread } else { 0.0 };
        SHADES[((part * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Float64Array;

    use super::*;

    #[test]
    fn the_largest_is_dark_the_least_light_and_the_unknown_blank() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![Some(10.0), Some(60.0), Some(110.0), None]));
        let heat = Heat::of(std::slice::from_ref(&column)).unwrap().unwrap();
        let shades: String = (0..4).map(|row| heat.shade(&column, row)).collect();
        assert_eq!(shades, "·▒█ ");
    }
}
