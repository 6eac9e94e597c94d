//! What all our aggregates have in common: a number in, one state per group, one [`state`](super::state) column
//! between the stages.
//!
//! DataFusion asks for two traits, one for `GROUP BY` and one without. An aggregate here implements [`GroupStates`]
//! only; [`Grouped`] and [`Ungrouped`] are the two faces of it, so that rules such as "NaN is not a value" and
//! "filtered rows do not count" stand in one place.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryViewArray, BooleanArray, Float64Array, downcast_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::state;

/// The states of all groups of one aggregate, group `0..n` by index.
pub trait GroupStates: Debug + Send + Sync + 'static {
    /// Makes sure that groups `0..groups` exist.
    fn resize(&mut self, groups: usize);

    /// Adds one value, never NaN, to a group that exists.
    fn add(&mut self, group: usize, value: f64);

    /// Adds many values, none of them NaN, to a group that exists.
    fn add_all(&mut self, group: usize, values: impl Iterator<Item = f64>) {
        values.for_each(|value| self.add(group, value));
    }

    /// Merges `states[i]`, made by [`Self::state`] or [`state::lone_values`], into group `groups[i]`.
    fn merge(&mut self, states: &BinaryViewArray, groups: &[usize]) -> Result<()>;

    /// Hands out the states of the first groups and forgets them.
    fn state(&mut self, emit_to: EmitTo) -> Result<BinaryViewArray>;

    /// Answers for the first groups and forgets them.
    fn answers(&mut self, emit_to: EmitTo) -> Result<ArrayRef>;

    /// Answers for the only group and keeps it, since a window asks again after more rows.
    fn answer(&mut self) -> Result<ArrayRef>;

    /// Bytes held. Called after every batch, so it must not walk the groups.
    fn size(&self) -> usize;
}

/// The state column every aggregate here declares.
pub fn state_fields(args: &StateFieldsArgs, function: &str) -> Vec<FieldRef> {
    let name = format_state_name(args.name, function);
    vec![Arc::new(Field::new(name, DataType::BinaryView, true))]
}

/// [`GroupStates`] under `GROUP BY`.
pub struct Grouped<S>(pub S);

impl<S: GroupStates> GroupsAccumulator for Grouped<S> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.resize(total_num_groups);
        let values = numbers(values)?;
        match counted_rows(&values, opt_filter) {
            None => {
                for (&group, &value) in group_indices.iter().zip(values.values()) {
                    if !value.is_nan() {
                        self.0.add(group, value);
                    }
                }
            }
            Some(rows) => {
                for row in rows.valid_indices() {
                    let value = values.value(row);
                    if !value.is_nan() {
                        self.0.add(group_indices[row], value);
                    }
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.0.resize(total_num_groups);
        self.0.merge(&states(values)?, group_indices)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.0.state(emit_to)?)])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.0.answers(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = numbers(values)?;
        let counted = counted_rows(&values, opt_filter);
        Ok(vec![Arc::new(state::lone_values(&values, counted.as_ref())?)])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

/// [`GroupStates`] without `GROUP BY`, and in windows: everything is group 0.
#[derive(Debug)]
pub struct Ungrouped<S>(S);

impl<S: GroupStates> Ungrouped<S> {
    pub fn new(mut states: S) -> Self {
        states.resize(1);
        Self(states)
    }
}

impl<S: GroupStates> Accumulator for Ungrouped<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = numbers(values)?;
        let known = |value: &f64| !value.is_nan();
        if values.null_count() == 0 {
            let values = values.values().iter().copied().filter(known);
            self.0.add_all(0, values);
        } else {
            self.0.add_all(0, values.iter().flatten().filter(known));
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let states = states(columns)?;
        self.0.merge(&states, &vec![0; states.len()])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.0.state(EmitTo::All)?;
        self.0.resize(1);
        Ok(vec![ScalarValue::try_from_array(&state, 0)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.answer()?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

/// Takes what belongs to the emitted groups out of a map that has an entry for a few groups only, and renumbers
/// the rest as [`EmitTo::First`] asks.
pub fn take_groups<T>(map: &mut BTreeMap<usize, T>, emit_to: EmitTo) -> BTreeMap<usize, T> {
    match emit_to {
        EmitTo::All => std::mem::take(map),
        EmitTo::First(emitted) => {
            let kept = map.split_off(&emitted);
            let kept = kept.into_iter().map(|(group, value)| (group - emitted, value));
            std::mem::replace(map, kept.collect())
        }
    }
}

/// The rows that are neither null nor filtered away; `None` if all count.
fn counted_rows(values: &Float64Array, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let passed = filter.map(|filter| match filter.nulls() {
        None => NullBuffer::new(filter.values().clone()),
        Some(known) => NullBuffer::new(filter.values() & known.inner()),
    });
    NullBuffer::union(values.nulls(), passed.as_ref()).filter(|rows| rows.null_count() > 0)
}

fn numbers(columns: &[ArrayRef]) -> Result<Float64Array> {
    match columns.first() {
        Some(column) if column.data_type() == &DataType::Float64 => Ok(downcast_array(column)),
        _ => internal_err!("our aggregates take one Float64 column first"),
    }
}

fn states(columns: &[ArrayRef]) -> Result<BinaryViewArray> {
    match columns.first() {
        Some(column) if column.data_type() == &DataType::BinaryView => Ok(downcast_array(column)),
        _ => internal_err!("our aggregates merge one BinaryView column"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_if_its_value_is_known_and_its_filter_is_true() {
        let values = Float64Array::from(vec![Some(1.0), None, Some(3.0), Some(4.0)]);
        let filter = BooleanArray::from(vec![Some(true), Some(true), None, Some(false)]);

        let counted = |filter| counted_rows(&values, filter).map(|rows| rows.valid_indices().collect::<Vec<_>>());

        assert_eq!(counted(None), Some(vec![0, 2, 3]));
        assert_eq!(counted(Some(&filter)), Some(vec![0]));
        assert_eq!(counted_rows(&Float64Array::from(vec![1.0]), None), None);
    }

    #[test]
    fn groups_after_the_emitted_ones_move_down() {
        let mut map = BTreeMap::from([(1, 'a'), (4, 'b'), (6, 'c')]);

        assert_eq!(take_groups(&mut map, EmitTo::First(4)), BTreeMap::from([(1, 'a')]));
        assert_eq!(map, BTreeMap::from([(0, 'b'), (2, 'c')]));
        assert_eq!(take_groups(&mut map, EmitTo::All).len(), 2);
        assert!(map.is_empty());
    }
}
