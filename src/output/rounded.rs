//! Money as people read it: as few decimals as show every amount, and where amounts add up to a total, rounded so that they
//! still do.
//!
//! Formats for machines keep all decimals; here a column is rounded as a whole, by largest remainder.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, Schema};

use crate::cost::rounding::{nearest, rounded};
use crate::report::{Report, Rows};

/// Decimals from which on an amount is exact rather than one that people wrote.
const EXACT: i8 = 7;

/// Rounds the money of a report for people.
pub fn round_money(report: &mut Report) -> anyhow::Result<()> {
    // prices, which no log tells, have the decimals that they have
    if !report.reads_logs {
        return Ok(());
    }
    let schema = report.rows.schema().clone();
    let exact: Vec<(usize, i8)> = schema
        .fields()
        .iter()
        .enumerate()
        .filter_map(|(index, field)| match field.data_type() {
            DataType::Decimal128(_, scale) if *scale >= EXACT => Some((index, *scale)),
            _ => None,
        })
        .collect();
    if exact.is_empty() {
        return Ok(());
    }
    let batches = report.rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?;
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    let mut columns: Vec<Vec<ArrayRef>> = batches.iter().map(|batch| batch.columns().to_vec()).collect();
    let mut totals = report.totals.clone();
    for (index, scale) in exact {
        let amounts = |array: &ArrayRef| array.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>();
        let values: Vec<Option<i128>> = batches.iter().flat_map(|batch| amounts(batch.column(index))).collect();
        let total = totals.as_ref().and_then(|totals| {
            let column = totals.column_by_name(schema.field(index).name())?;
            column
                .as_primitive_opt::<Decimal128Type>()
                .filter(|column| column.is_valid(0))
                .map(|column| column.value(0))
        });
        let places = places(values.iter().flatten().copied(), scale);
        let unit = 10i128.pow((scale - places).unsigned_abs().into());
        let rounded = rounded(&values, total, unit);
        let of_kind = |amounts: Vec<Option<i128>>| -> anyhow::Result<ArrayRef> {
            Ok(Arc::new(Decimal128Array::from(amounts).with_precision_and_scale(38, places)?))
        };
        let mut rest = rounded.into_iter();
        for (batch, columns) in batches.iter().zip(&mut columns) {
            columns[index] = of_kind(rest.by_ref().take(batch.num_rows()).collect())?;
        }
        let field = |field: &Field| Arc::new(field.clone().with_data_type(DataType::Decimal128(38, places)));
        fields[index] = field(&fields[index]);
        if let (Some(batch), Some(total)) = (&totals, total) {
            let mut row = batch.columns().to_vec();
            let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
            row[index] = of_kind(vec![Some(nearest(total, unit))])?;
            fields[index] = field(&fields[index]);
            totals = Some(RecordBatch::try_new(Arc::new(Schema::new(fields)), row)?);
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let mut rows = Rows::new(schema.clone());
    for columns in columns {
        rows.push(RecordBatch::try_new(schema.clone(), columns)?)?;
    }
    report.rows = rows;
    report.totals = totals;
    Ok(())
}

/// As many decimals as the least amount needs to be seen: two, more below a cent. Beside whole units of money no more than
/// six are read.
fn places(amounts: impl Iterator<Item = i128>, scale: i8) -> i8 {
    let sizes: Vec<u128> = amounts.filter(|amount| *amount != 0).map(i128::unsigned_abs).collect();
    let (Some(least), Some(largest)) = (sizes.iter().min(), sizes.iter().max()) else { return 2 };
    let digits = |size: u128| size.checked_ilog10().map_or(0, |log| log as i8 + 1);
    // decimals before the first digit of the least amount, and one more
    let needed = scale - digits(*least) + 2;
    let most = if digits(*largest) > scale { 6 } else { 12 };
    needed.clamp(2, most.min(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_below_a_cent_is_not_shown_as_nothing() {
        let dollars = |amount: f64| (amount * 1e12) as i128;
        assert_eq!(places([dollars(12.5), dollars(0.25)].into_iter(), 12), 2);
        assert_eq!(places([dollars(0.000_017_1)].into_iter(), 12), 6);
        assert_eq!(places([dollars(1200.0), dollars(0.000_017_1)].into_iter(), 12), 6);
        assert_eq!(places([1].into_iter(), 12), 12);
        assert_eq!(places([0].into_iter(), 12), 2);
    }
}
