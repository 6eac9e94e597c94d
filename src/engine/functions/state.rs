//! A state on its way from one stage of a query to the next, or to disk: one BinaryView column, a row per group.
//!
//! Why BinaryView and not a list of floats: between the stages rows are shuffled by the hash of their group, taken,
//! sliced and coalesced. A list copies its values each time. A view array moves 16 bytes a row and shares the bytes
//! behind it; they are copied only where most of what is shared belongs to others. The lone value of a group of one
//! row (8 bytes) sits in the view itself. A spilled batch does not take along what only other batches use: DataFusion
//! compacts view arrays before it writes them.
//!
//! Numbers are in the machine's byte order, as all Arrow buffers are.

use datafusion::arrow::array::{BinaryViewArray, Float64Array, make_view};
use datafusion::arrow::buffer::{Buffer, NullBuffer};
use datafusion::common::{Result, exec_err};

/// From this many bytes on a state travels in a block of its own, and is kept where it arrives without a copy.
pub const LARGE: usize = 64 << 10;

/// Smaller states are packed together into blocks of about this many bytes.
const PACK: usize = 16 << 20;

/// The most bytes all large states of one column may have together. The engine's coalescing may copy them into one
/// block, and an offset in a block has 32 bits: past that it would be wrong in silence.
const LARGE_TOTAL: usize = i32::MAX as usize;

/// Builds the column, group by group.
pub struct StateColumn {
    views: Vec<u128>,
    blocks: Vec<Buffer>,
    pack: Vec<u8>,
    /// Where in `blocks` the pack goes when it is full.
    pack_block: usize,
    large_bytes: usize,
}

impl StateColumn {
    pub fn with_capacity(groups: usize) -> Self {
        Self { views: Vec::with_capacity(groups), blocks: vec![], pack: vec![], pack_block: 0, large_bytes: 0 }
    }

    /// Appends a small state by copying it.
    pub fn push(&mut self, state: &[u8]) {
        if state.is_empty() || is_inline(state.len()) {
            self.views.push(make_view(state, 0, 0));
            return;
        }
        if self.pack.len() + state.len() > PACK {
            self.close_pack();
        }
        if self.pack.is_empty() {
            self.pack_block = self.blocks.len();
            self.blocks.push(Buffer::default());
        }
        let offset = self.pack.len() as u32;
        self.views.push(make_view(state, self.pack_block as u32, offset));
        self.pack.extend_from_slice(state);
    }

    /// Appends a [`LARGE`] state without copying it.
    ///
    /// # Errors
    /// If the large states of this column come to more bytes than can be handed on.
    pub fn push_block(&mut self, state: Buffer) -> Result<()> {
        self.large_bytes += state.len();
        if self.large_bytes > LARGE_TOTAL {
            return exec_err!(
                "too many values for one thread's share of a percentile ({} at most): \
                 use more --threads, a lower --memory, or a shorter time range",
                LARGE_TOTAL / size_of::<f64>()
            );
        }
        self.views.push(make_view(&state, self.blocks.len() as u32, 0));
        self.blocks.push(state);
        Ok(())
    }

    pub fn finish(mut self) -> Result<BinaryViewArray> {
        self.close_pack();
        Ok(BinaryViewArray::try_new(self.views.into(), self.blocks, None)?)
    }

    fn close_pack(&mut self) {
        if !self.pack.is_empty() {
            let mut pack = std::mem::take(&mut self.pack);
            // The engine compares the bytes in use with the bytes allocated to decide on copying.
            pack.shrink_to_fit();
            self.blocks[self.pack_block] = Buffer::from_vec(pack);
        }
    }
}

/// The state of one row per group: the value itself, or nothing where the row does not count or is NaN.
pub fn lone_values(values: &Float64Array, counted: Option<&NullBuffer>) -> Result<BinaryViewArray> {
    let views = values.values().iter().enumerate().map(|(row, value)| {
        if value.is_nan() || counted.is_some_and(|rows| rows.is_null(row)) {
            make_view(&[], 0, 0)
        } else {
            make_view(&value.to_ne_bytes(), 0, 0)
        }
    });
    let views: Vec<u128> = views.collect();
    Ok(BinaryViewArray::try_new(views.into(), vec![], None)?)
}

/// The block, offset and length in bytes behind a view, if it is not inline.
pub fn block_of(view: u128) -> Option<(usize, usize, usize)> {
    let length = view as u32 as usize;
    let block = (view >> 64) as u32 as usize;
    let offset = (view >> 96) as u32 as usize;
    (!is_inline(length)).then_some((block, offset, length))
}

/// Arrow keeps up to 12 bytes in the view.
fn is_inline(length: usize) -> bool {
    length <= 12
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Array;

    #[test]
    fn small_and_large_states_come_back_in_order() {
        let states: Vec<Vec<u8>> = [0, 8, 16, LARGE, 24, PACK / 2, PACK / 2, 40]
            .iter()
            .enumerate()
            .map(|(i, &length)| vec![i as u8; length])
            .collect();

        let mut column = StateColumn::with_capacity(states.len());
        for state in &states {
            if state.len() == LARGE {
                column.push_block(Buffer::from_vec(state.clone())).unwrap();
            } else {
                column.push(state);
            }
        }
        let column = column.finish().unwrap();

        let back: Vec<Vec<u8>> = column.iter().flatten().map(<[u8]>::to_vec).collect();
        assert_eq!(back, states);
        let used: usize = states[2..].iter().map(Vec::len).sum();
        let held: usize = column.data_buffers().iter().map(Buffer::capacity).sum();
        assert_eq!(held, used, "blocks hold nothing but states");
    }

    #[test]
    fn more_large_states_than_offsets_can_reach_are_refused() {
        let mut column = StateColumn::with_capacity(0);
        column.large_bytes = LARGE_TOTAL;

        let error = column.push_block(Buffer::from_vec(vec![0_u8; LARGE]));

        let error = error.unwrap_err().to_string();
        assert!(error.contains("use more --threads"), "{error}");
    }

    #[test]
    fn lone_values_need_no_block() {
        let values = Float64Array::from(vec![1.5, f64::NAN, 2.5]);
        let counted = NullBuffer::from(vec![true, true, false]);

        let column = lone_values(&values, Some(&counted)).unwrap();

        assert_eq!(column.value(0), 1.5_f64.to_ne_bytes());
        assert!(column.value(1).is_empty() && column.value(2).is_empty());
        assert!(column.data_buffers().is_empty());
        assert_eq!(column.null_count(), 0);
    }
}
