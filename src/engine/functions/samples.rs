//! The values of every group, kept until all are known, since an exact percentile needs them all.
//!
//! Memory is the point of this file: 24 bytes for a group of up to two values, about 8 bytes a value for large
//! groups, and no second copy of a large group while its state goes from one stage to the next.

use std::collections::BTreeMap;

use datafusion::arrow::array::BinaryViewArray;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::ToByteSlice;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::EmitTo;
use smallvec::SmallVec;

use super::accumulator::take_groups;
use super::selection::WORTHWHILE;
use super::state::{LARGE, StateColumn, block_of};

/// The values of one group; two fit without an allocation.
type Values = SmallVec<[f64; 2]>;

/// From this many values on a group grows by a quarter, not by doubling.
const GROW_SLOWLY: usize = 4096;

/// The values of a group that is complete.
pub enum Group<'a> {
    /// To be put in another order at will.
    Few(&'a mut [f64]),
    /// [Very many](WORTHWHILE) values, where they are, each by its bytes.
    Parts(&'a [&'a [[u8; 8]]]),
}

/// All values of all groups.
#[derive(Debug, Default)]
pub struct Samples {
    own: Vec<Values>,
    /// Large states as they arrived. They are copied once, when the group is evaluated.
    arrived: BTreeMap<usize, Vec<Buffer>>,
    /// Bytes on the heap behind `own` and `arrived`.
    heap: usize,
}

impl Samples {
    pub fn resize(&mut self, groups: usize) {
        if self.own.len() < groups {
            self.own.resize_with(groups, Values::new);
        }
    }

    pub fn add(&mut self, group: usize, value: f64) {
        let values = &mut self.own[group];
        if values.len() == values.capacity() {
            self.heap += make_room(values, 1);
        }
        values.push(value);
    }

    pub fn add_all(&mut self, group: usize, new: impl Iterator<Item = f64>) {
        let values = &mut self.own[group];
        let count = new.size_hint().1.unwrap_or(0);
        if values.len() + count > values.capacity() {
            self.heap += make_room(values, count);
        }
        let before = heap_bytes(values);
        values.extend(new);
        self.heap += heap_bytes(values) - before;
    }

    /// Merges states made by [`Self::state`], or lone values.
    pub fn merge(&mut self, states: &BinaryViewArray, groups: &[usize]) -> Result<()> {
        let worth_keeping = worth_keeping(states);
        for (row, (&group, &view)) in groups.iter().zip(states.views()).enumerate() {
            match block_of(view) {
                Some((block, offset, length)) if length >= LARGE && worth_keeping[block] => {
                    let state = states.data_buffers()[block].slice_with_length(offset, length);
                    self.arrived.entry(group).or_default().push(state);
                    self.heap += length;
                }
                _ => {
                    let state = states.value(row);
                    let values = &mut self.own[group];
                    let count = state.len() / size_of::<f64>();
                    if values.len() + count > values.capacity() {
                        self.heap += make_room(values, count);
                    }
                    extend(values, state)?;
                }
            }
        }
        Ok(())
    }

    /// Hands out the values of the first groups as a state column. Each group's memory is passed on or freed as the
    /// column grows, so that the peak is one copy.
    pub fn state(&mut self, emit_to: EmitTo) -> Result<BinaryViewArray> {
        let (own, mut arrived) = self.take(emit_to);
        let mut column = StateColumn::with_capacity(own.len());
        for (group, mut values) in own.into_iter().enumerate() {
            let mut buffers = arrived.remove(&group).unwrap_or_default();
            if values.is_empty() && buffers.len() == 1 {
                column.push_block(buffers.remove(0))?;
                continue;
            }
            gather(&mut values, buffers)?;
            if values.len() * size_of::<f64>() >= LARGE {
                let mut values = values.into_vec();
                values.shrink_to_fit();
                column.push_block(Buffer::from_vec(values))?;
            } else {
                column.push(values.to_byte_slice());
            }
        }
        column.finish()
    }

    /// Calls `evaluate` with the values of each of the first groups, in order, and frees them one by one.
    pub fn drain(&mut self, emit_to: EmitTo, mut evaluate: impl FnMut(Group<'_>)) -> Result<()> {
        let (own, mut arrived) = self.take(emit_to);
        for (group, mut values) in own.into_iter().enumerate() {
            let buffers = arrived.remove(&group).unwrap_or_default();
            let bytes: usize = buffers.iter().map(Buffer::len).sum();
            if values.len() + bytes / size_of::<f64>() >= WORTHWHILE {
                let parts = buffers.iter().map(|buffer| numbers(buffer)).chain([numbers(values.to_byte_slice())]);
                evaluate(Group::Parts(&parts.collect::<Result<Vec<_>>>()?));
            } else {
                gather(&mut values, buffers)?;
                evaluate(Group::Few(&mut values));
            }
        }
        Ok(())
    }

    /// The values of the only group, to be reordered at will.
    pub fn only(&mut self) -> Result<&mut [f64]> {
        self.resize(1);
        let values = &mut self.own[0];
        gather(values, self.arrived.remove(&0).unwrap_or_default())?;
        self.heap = heap_bytes(values);
        Ok(values)
    }

    pub fn size(&self) -> usize {
        self.own.capacity() * size_of::<Values>() + self.heap
    }

    /// How many groups [`Self::state`] or [`Self::drain`] will emit.
    pub fn emitted(&self, emit_to: EmitTo) -> usize {
        match emit_to {
            EmitTo::All => self.own.len(),
            EmitTo::First(groups) => groups,
        }
    }

    fn take(&mut self, emit_to: EmitTo) -> (Vec<Values>, BTreeMap<usize, Vec<Buffer>>) {
        let own = emit_to.take_needed(&mut self.own);
        let arrived = take_groups(&mut self.arrived, emit_to);
        let arrived_bytes: usize = arrived.values().flatten().map(Buffer::len).sum();
        self.heap -= own.iter().map(heap_bytes).sum::<usize>() + arrived_bytes;
        (own, arrived)
    }
}

/// For each block of the column: is at least half of it large states? To keep a slice is to keep all of its block,
/// so that a slice of a block with much else in it is better copied.
fn worth_keeping(states: &BinaryViewArray) -> Vec<bool> {
    let blocks = states.data_buffers();
    let mut large_bytes = vec![0; blocks.len()];
    for (block, _, length) in states.views().iter().filter_map(|&view| block_of(view)) {
        if length >= LARGE {
            large_bytes[block] += length;
        }
    }
    let enough = |(large, block): (usize, &Buffer)| large >= block.capacity() / 2;
    large_bytes.into_iter().zip(blocks).map(enough).collect()
}

/// Moves the values of `buffers` to `values`; each buffer is released as soon as it is copied.
fn gather(values: &mut Values, buffers: Vec<Buffer>) -> Result<()> {
    let bytes: usize = buffers.iter().map(Buffer::len).sum();
    values.reserve_exact(bytes / size_of::<f64>());
    for buffer in buffers {
        extend(values, &buffer)?;
    }
    Ok(())
}

fn extend(values: &mut Values, state: &[u8]) -> Result<()> {
    values.extend(numbers(state)?.iter().map(|&bytes| f64::from_ne_bytes(bytes)));
    Ok(())
}

/// The values of a state, each by its bytes, since a state may stand anywhere in memory.
fn numbers(state: &[u8]) -> Result<&[[u8; 8]]> {
    match state.as_chunks() {
        (numbers, []) => Ok(numbers),
        _ => Err(internal_datafusion_err!("a percentile's state of {} bytes is no list of numbers", state.len())),
    }
}

/// Makes room for at least `extra` more values; returns the bytes of heap this took.
fn make_room(values: &mut Values, extra: usize) -> usize {
    let before = heap_bytes(values);
    let step = if values.len() < GROW_SLOWLY { values.len() } else { values.len() / 4 };
    values.reserve_exact(extra.max(step));
    heap_bytes(values) - before
}

fn heap_bytes(values: &Values) -> usize {
    if values.spilled() { values.capacity() * size_of::<f64>() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Array;
    use proptest::prelude::*;

    /// One state column as the engine may hand it on: with rows in another order and bytes shared.
    fn reversed(states: &BinaryViewArray) -> BinaryViewArray {
        let views: Vec<u128> = states.views().iter().rev().copied().collect();
        BinaryViewArray::try_new(views.into(), states.data_buffers().to_vec(), None).unwrap()
    }

    fn filled(groups: &[Vec<f64>]) -> Samples {
        let mut samples = Samples::default();
        samples.resize(groups.len());
        for (group, values) in groups.iter().enumerate() {
            values.iter().for_each(|&value| samples.add(group, value));
        }
        samples
    }

    fn drained(samples: &mut Samples, emit_to: EmitTo) -> Vec<Vec<f64>> {
        let mut groups = vec![];
        samples
            .drain(emit_to, |group| {
                let mut values = match group {
                    Group::Few(values) => values.to_vec(),
                    Group::Parts(parts) => parts.concat().into_iter().map(f64::from_ne_bytes).collect(),
                };
                values.sort_by(f64::total_cmp);
                groups.push(values);
            })
            .unwrap();
        groups
    }

    fn ramp(length: usize) -> Vec<f64> {
        (0..length).map(|i| i as f64).collect()
    }

    #[test]
    fn a_large_group_travels_without_a_copy() {
        let large = ramp(LARGE);
        let mut samples = filled(std::slice::from_ref(&large));

        let state = samples.state(EmitTo::All).unwrap();
        let mut merged = Samples::default();
        merged.resize(1);
        merged.merge(&state, &[0]).unwrap();
        let again = merged.state(EmitTo::All).unwrap();

        let first_byte = |state: &BinaryViewArray| state.data_buffers()[0].as_ptr();
        assert_eq!(first_byte(&again), first_byte(&state));
        assert_eq!(state.data_buffers()[0].capacity(), LARGE * 8);
    }

    #[test]
    fn a_large_group_in_a_block_of_others_is_copied_so_that_the_block_is_freed() {
        let values = ramp(LARGE / 8);
        let mut block = vec![0.0; LARGE];
        block.splice(..values.len(), values.iter().copied());
        let view = datafusion::arrow::array::make_view(values.to_byte_slice(), 0, 0);
        let state = BinaryViewArray::try_new(vec![view].into(), vec![Buffer::from_vec(block)], None).unwrap();

        let mut samples = Samples::default();
        samples.resize(1);
        samples.merge(&state, &[0]).unwrap();

        assert!(samples.arrived.is_empty());
        assert_eq!(drained(&mut samples, EmitTo::All), [values]);
    }

    #[test]
    fn the_size_follows_every_change_and_returns_to_nothing() {
        let groups = [ramp(3), ramp(1), ramp(100_000), vec![], ramp(2)];
        let mut samples = filled(&groups);
        let values = samples.own.iter().filter(|values| values.spilled());
        let heap: usize = values.map(|values| values.capacity() * 8).sum();
        assert_eq!(samples.heap, heap);
        assert!(samples.size() < 100_000 * 8 * 5 / 4 + 1024, "{}", samples.size());

        let state = samples.state(EmitTo::First(2)).unwrap();
        samples.resize(5);
        samples.merge(&state, &[3, 4]).unwrap();
        let state = samples.state(EmitTo::All).unwrap();
        assert_eq!(samples.size(), 0);

        samples.resize(5);
        samples.merge(&state, &[0, 1, 2, 3, 4]).unwrap();
        assert!(!samples.arrived.is_empty());
        drained(&mut samples, EmitTo::All);
        assert_eq!(samples.size(), 0);
    }

    #[test]
    fn the_only_group_can_be_asked_again_after_more_values() {
        let mut partial = filled(&[ramp(LARGE)]);
        let mut samples = filled(&[vec![7.0]]);
        samples.merge(&partial.state(EmitTo::All).unwrap(), &[0]).unwrap();

        assert_eq!(samples.only().unwrap().len(), LARGE + 1);
        samples.add(0, 8.0);
        assert_eq!(samples.only().unwrap().len(), LARGE + 2);
        assert_eq!(samples.heap, samples.own[0].capacity() * 8);
    }

    #[test]
    fn bytes_that_are_no_numbers_are_an_error() {
        let state = BinaryViewArray::from_iter_values([b"seven b"]);
        let mut samples = filled(&[vec![]]);

        assert!(samples.merge(&state, &[0]).is_err());
        assert_eq!(state.len(), 1);
    }

    proptest! {
        #[test]
        fn no_value_is_lost_on_any_way_through_the_stages(
            lengths in prop::collection::vec(0..20_usize, 1..20),
            large in 0..20_usize,
            emitted in 0..20_usize,
        ) {
            let mut groups: Vec<Vec<f64>> = lengths.into_iter().map(ramp).collect();
            let large = large % groups.len();
            groups[large] = ramp(LARGE / 8 + large);
            let emitted = emitted % (groups.len() + 1);

            // partial stage: some groups leave early, twice the values in total
            let mut partial = filled(&groups);
            let early = partial.state(EmitTo::First(emitted)).unwrap();
            let late = partial.state(EmitTo::All).unwrap();
            let whole = filled(&groups).state(EmitTo::All).unwrap();

            // final stage: states arrive in another order, and are handed on once more
            let mut last = Samples::default();
            last.resize(groups.len());
            let ascending: Vec<usize> = (0..groups.len()).collect();
            let descending: Vec<usize> = ascending.iter().rev().copied().collect();
            last.merge(&reversed(&whole), &descending).unwrap();
            last.merge(&early, &ascending[..emitted]).unwrap();
            last.merge(&late, &ascending[emitted..]).unwrap();
            let handed_on = last.state(EmitTo::All).unwrap();
            last.resize(groups.len());
            last.merge(&handed_on, &ascending).unwrap();

            let mut expected = groups;
            for values in &mut expected {
                values.extend(values.clone());
                values.sort_by(f64::total_cmp);
            }
            let mut found = drained(&mut last, EmitTo::First(emitted));
            found.extend(drained(&mut last, EmitTo::All));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(last.size(), 0);
        }
    }
}
