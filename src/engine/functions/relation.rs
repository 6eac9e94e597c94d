//! `relation(x, y)`: how y goes with x over the rows that know both: `{n, pearson, spearman, slope}`.
//!
//! `pearson` is the linear correlation, `spearman` that of the ranks, with mean ranks for equal values, and `slope` how much y
//! goes up for each 1 of x on the line of least squares. All three are null where x or y is the same in all rows; those that
//! are no finite number are null too. Nulls and NaN are no values.
//!
//! All pairs are kept, as percentiles keep their values, and sorted before any sum: the bits of the answer do not depend on the
//! order of rows, threads or files.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Float64Array, Float64Builder, Int64Builder, StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, ToByteSlice};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};

use super::accumulator::state_fields;
use super::argument::{measured, refuse_distinct};
use super::samples::{Group, Samples};
use super::state::StateColumn;

/// The aggregate function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Relation {
    signature: Signature,
}

impl Relation {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn fields() -> Fields {
    let number = |name| Field::new(name, DataType::Float64, true);
    let fields = vec![Field::new("n", DataType::Int64, false), number("pearson"), number("spearman"), number("slope")];
    Fields::from(fields)
}

impl AggregateUDFImpl for Relation {
    fn name(&self) -> &str {
        "relation"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [x, y] = arg_types else {
            return plan_err!("relation takes two numbers, as in relation(input_tokens, ttft_ms)");
        };
        Ok(vec![measured(self.name(), x)?, measured(self.name(), y)?])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(&args, self.name()))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        refuse_distinct(self.name(), &args)?;
        let mut pairs = Pairs::default();
        pairs.0.resize(1);
        Ok(Box::new(pairs))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        refuse_distinct(self.name(), &args)?;
        Ok(Box::new(Pairs::default()))
    }
}

/// The pairs of every group: an x, then its y.
#[derive(Debug, Default)]
struct Pairs(Samples);

impl GroupsAccumulator for Pairs {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.resize(total_num_groups);
        for (pair, &group) in known_pairs(columns, opt_filter).zip(group_indices) {
            if let Some(pair) = pair {
                self.0.add_all(group, pair.into_iter());
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.0.resize(total_num_groups);
        self.0.merge(states[0].as_binary_view(), group_indices)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.0.state(emit_to)?)])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut answers = Answers::default();
        self.0.drain(emit_to, |group| match group {
            Group::Few(values) => answers.push(related(values.as_chunks_mut().0)),
            Group::Parts(parts) => {
                let pairs = parts.iter().flat_map(|part| part.as_chunks::<2>().0);
                let mut pairs: Vec<[f64; 2]> = pairs.map(|pair| pair.map(f64::from_ne_bytes)).collect();
                answers.push(related(&mut pairs));
            }
        })?;
        answers.column()
    }

    fn convert_to_state(&self, columns: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut states = StateColumn::with_capacity(columns[0].len());
        for pair in known_pairs(columns, opt_filter) {
            states.push(pair.as_ref().map_or(&[], |pair| pair.as_slice().to_byte_slice()));
        }
        let states: BinaryViewArray = states.finish()?;
        Ok(vec![Arc::new(states)])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

/// Without `GROUP BY` everything is group 0.
impl Accumulator for Pairs {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.add_all(0, known_pairs(columns, None).flatten().flatten());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge(states[0].as_binary_view(), &vec![0; states[0].len()])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.0.state(EmitTo::All)?;
        self.0.resize(1);
        Ok(vec![ScalarValue::try_from_array(&state, 0)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // a window asks again after more rows
        let mut values = self.0.only()?.to_vec();
        let mut answers = Answers::default();
        answers.push(related(values.as_chunks_mut().0));
        ScalarValue::try_from_array(&answers.column()?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(self)
    }
}

/// The pair of each row that counts and knows both. Zero has no sign, so that equal values have equal bits.
fn known_pairs(columns: &[ArrayRef], filter: Option<&BooleanArray>) -> impl Iterator<Item = Option<[f64; 2]>> {
    let (xs, ys) = (columns[0].as_primitive::<Float64Type>(), columns[1].as_primitive::<Float64Type>());
    let counts = move |row: &usize| filter.is_none_or(|filter| filter.is_valid(*row) && filter.value(*row));
    let known = |numbers: &Float64Array, row: usize| {
        let number = numbers.is_valid(row).then(|| numbers.value(row) + 0.0);
        number.filter(|number| !number.is_nan())
    };
    (0..xs.len()).map(move |row| Some(row).filter(counts).and_then(|row| Some([known(xs, row)?, known(ys, row)?])))
}

/// The answers, group by group.
#[derive(Debug, Default)]
struct Answers {
    n: Int64Builder,
    pearson: Float64Builder,
    spearman: Float64Builder,
    slope: Float64Builder,
}

impl Answers {
    fn push(&mut self, related: Related) {
        self.n.append_value(related.n as i64);
        self.pearson.append_option(related.pearson);
        self.spearman.append_option(related.spearman);
        self.slope.append_option(related.slope);
    }

    fn column(mut self) -> Result<ArrayRef> {
        let numbers = [&mut self.pearson, &mut self.spearman, &mut self.slope];
        let numbers = numbers.map(|numbers| Arc::new(numbers.finish()) as ArrayRef);
        let columns = std::iter::once(Arc::new(self.n.finish()) as ArrayRef).chain(numbers).collect();
        Ok(Arc::new(StructArray::try_new(fields(), columns, None)?))
    }
}

#[derive(Debug, PartialEq)]
struct Related {
    n: usize,
    pearson: Option<f64>,
    spearman: Option<f64>,
    slope: Option<f64>,
}

/// Leaves ranks in place of the pairs, since a copy of all of them is too much.
fn related(pairs: &mut [[f64; 2]]) -> Related {
    sort(pairs, 0);
    let line = Line::of(pairs);
    rank(pairs, 0);
    sort(pairs, 1);
    rank(pairs, 1);
    let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
    Related {
        n: pairs.len(),
        pearson: finite(line.as_ref().map(|line| line.correlation)),
        spearman: finite(Line::of(pairs).map(|line| line.correlation)),
        slope: finite(line.map(|line| line.slope)),
    }
}

/// Sorts by one side, then the other, so that the order is that of the values alone.
fn sort(pairs: &mut [[f64; 2]], side: usize) {
    pairs.sort_unstable_by(|a, b| a[side].total_cmp(&b[side]).then(a[1 - side].total_cmp(&b[1 - side])));
}

/// Puts twice the mean rank, which is whole, in place of one side, by which the pairs are sorted.
fn rank(pairs: &mut [[f64; 2]], side: usize) {
    let mut before = 0;
    for equal in pairs.chunk_by_mut(|a, b| a[side] == b[side]) {
        let rank = (2 * before + equal.len() + 1) as f64;
        equal.iter_mut().for_each(|pair| pair[side] = rank);
        before += equal.len();
    }
}

/// The line of least squares through some points.
struct Line {
    slope: f64,
    correlation: f64,
}

impl Line {
    /// None where one side does not vary.
    fn of(pairs: &[[f64; 2]]) -> Option<Self> {
        let varies = |side: usize| pairs.iter().any(|pair| pair[side] != pairs[0][side]);
        if !varies(0) || !varies(1) {
            return None;
        }
        let n = pairs.len() as f64;
        let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / n;
        let (mean_x, mean_y) = (mean(0), mean(1));
        let (mut x, mut y, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for pair in pairs {
            let (dx, dy) = (pair[0] - mean_x, pair[1] - mean_y);
            x += dx;
            y += dy;
            xx += dx * dx;
            yy += dy * dy;
            xy += dx * dy;
        }
        // as the means are rounded, the differences do not quite add up to zero
        let (xx, yy, xy) = (xx - x * x / n, yy - y * y / n, xy - x * y / n);
        let slope = xy / xx;
        Some(Self { slope, correlation: (slope * (xx / yy).sqrt()).clamp(-1.0, 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pairs: &[[f64; 2]]) -> Related {
        related(&mut pairs.to_vec())
    }

    fn columns(pairs: &[[f64; 2]]) -> Vec<ArrayRef> {
        let side = |side: usize| Arc::new(pairs.iter().map(|pair| Some(pair[side])).collect::<Float64Array>());
        vec![side(0), side(1)]
    }

    /// The one answer of some pairs, each part of them in a state of its own.
    fn merged(parts: &[&[[f64; 2]]]) -> ScalarValue {
        let mut all = Pairs::default();
        all.0.resize(1);
        for part in parts {
            let mut pairs = Pairs::default();
            pairs.0.resize(1);
            Accumulator::update_batch(&mut pairs, &columns(part)).unwrap();
            let state = GroupsAccumulator::state(&mut pairs, EmitTo::All).unwrap();
            Accumulator::merge_batch(&mut all, &state).unwrap();
        }
        Accumulator::evaluate(&mut all).unwrap()
    }

    #[test]
    fn points_on_a_line_have_its_slope_and_a_correlation_of_one() {
        let up: Vec<[f64; 2]> = (0..50).map(|x| [f64::from(x), f64::from(3 * x + 7)]).collect();
        assert_eq!(of(&up), Related { n: 50, pearson: Some(1.0), spearman: Some(1.0), slope: Some(3.0) });
        let down: Vec<[f64; 2]> = up.iter().map(|[x, y]| [*x, -y]).collect();
        assert_eq!(of(&down), Related { n: 50, pearson: Some(-1.0), spearman: Some(-1.0), slope: Some(-3.0) });
    }

    #[test]
    fn a_permutation_has_the_rank_correlation_of_the_formula_without_ties() {
        // 1 - 6 x sum of squared differences / (n (n² - 1)): differences are 1, -1, 2, -1, -1
        let found = of(&[[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 3.0], [5.0, 4.0]]);
        let expected = 1.0 - 6.0 * 8.0 / (5.0 * 24.0);
        assert!((found.spearman.unwrap() - expected).abs() < 1e-12, "{found:?}");
        // of whole numbers that are their own ranks both are the same
        assert_eq!(found.pearson, found.spearman);
    }

    #[test]
    fn equal_values_share_their_mean_rank() {
        // ranks of x: 1.5, 1.5, 3, 4; of y: 1, 2.5, 2.5, 4; centred: (-1, -1.5), (-1, 0), (0.5, 0), (1.5, 1.5)
        let found = of(&[[10.0, 1.0], [10.0, 2.0], [20.0, 2.0], [90.0, 3.0]]);
        let expected = (1.5 + 2.25) / (4.5_f64 * 4.5).sqrt();
        assert!((found.spearman.unwrap() - expected).abs() < 1e-12, "{found:?}");
        assert_eq!(of(&[[0.0, 1.0], [-0.0, 1.0], [1.0, 2.0]]).n, 3);
    }

    #[test]
    fn what_bends_upwards_has_perfect_ranks_all_the_same() {
        let bent: Vec<[f64; 2]> = (0..30).map(|x| [f64::from(x), f64::from(x).exp()]).collect();
        let found = of(&bent);
        assert_eq!(found.spearman, Some(1.0));
        assert!(found.pearson.unwrap() < 0.7, "{found:?}");
    }

    #[test]
    fn nothing_goes_with_what_is_the_same_everywhere() {
        // ten times 0.1 add up to less than one
        let same: Vec<[f64; 2]> = (0..10).map(|y| [0.1, f64::from(y)]).collect();
        let unknown = |n| Related { n, pearson: None, spearman: None, slope: None };
        assert_eq!(of(&same), unknown(10));
        assert_eq!(of(&same.iter().map(|[x, y]| [*y, *x]).collect::<Vec<_>>()), unknown(10));
        assert_eq!(of(&[[1.0, 2.0]]), unknown(1));
        assert_eq!(of(&[]), unknown(0));
    }

    #[test]
    fn small_changes_of_large_numbers_are_seen() {
        let pairs: Vec<[f64; 2]> = (0..100).map(|x| [1e9 + f64::from(x), 1e9 - 2.0 * f64::from(x)]).collect();
        let found = of(&pairs);
        assert!((found.slope.unwrap() + 2.0).abs() < 1e-9 && (found.pearson.unwrap() + 1.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn an_infinite_value_has_a_rank_and_nothing_else() {
        let found = of(&[[1.0, 1.0], [2.0, 2.0], [f64::INFINITY, 3.0]]);
        assert_eq!(found, Related { n: 3, pearson: None, spearman: Some(1.0), slope: None });
    }

    #[test]
    fn a_row_counts_where_its_filter_holds_and_both_values_are_known() {
        let xs = Float64Array::from(vec![Some(1.0), None, Some(3.0), Some(f64::NAN), Some(5.0), Some(-0.0)]);
        let ys = Float64Array::from(vec![Some(1.0), Some(2.0), None, Some(4.0), Some(5.0), Some(6.0)]);
        let filter = BooleanArray::from(vec![Some(true), Some(true), Some(true), Some(true), None, Some(true)]);
        let columns: Vec<ArrayRef> = vec![Arc::new(xs), Arc::new(ys)];
        let found: Vec<[f64; 2]> = known_pairs(&columns, Some(&filter)).flatten().collect();
        assert_eq!(found, [[1.0, 1.0], [0.0, 6.0]]);
        assert!(found[1][0].is_sign_positive());
        let states = Pairs::default().convert_to_state(&columns, Some(&filter)).unwrap();
        let lengths: Vec<usize> = states[0].as_binary_view().iter().flatten().map(<[u8]>::len).collect();
        assert_eq!(lengths, [16, 0, 0, 0, 0, 16]);
    }

    #[test]
    fn very_many_pairs_are_as_good_as_few() {
        let many: Vec<[f64; 2]> = (0..200_000).map(|x| [f64::from(x % 1000), f64::from(x % 1000) * 2.0]).collect();
        let mut pairs = Pairs::default();
        let half = many.len() / 2;
        for part in [&many[..half], &many[half..]] {
            let mut partial = Pairs::default();
            GroupsAccumulator::update_batch(&mut partial, &columns(part), &vec![0; part.len()], None, 1).unwrap();
            let state = GroupsAccumulator::state(&mut partial, EmitTo::All).unwrap();
            GroupsAccumulator::merge_batch(&mut pairs, &state, &[0], 1).unwrap();
        }
        let column = GroupsAccumulator::evaluate(&mut pairs, EmitTo::All).unwrap();
        let number = |part: usize| column.as_struct().column(part).as_primitive::<Float64Type>().value(0);
        assert_eq!([number(1), number(2), number(3)], [1.0, 1.0, 2.0]);
    }

    /// The mean place of a value among all, counted one by one.
    fn mean_rank(value: f64, all: &[f64]) -> f64 {
        let below = all.iter().filter(|other| **other < value).count();
        let equal = all.iter().filter(|other| **other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    }

    proptest! {
        #[test]
        fn the_rank_correlation_is_the_linear_one_of_mean_ranks(
            pairs in prop::collection::vec((0..12_u8, -9..9_i8), 0..40),
        ) {
            let pairs: Vec<[f64; 2]> = pairs.into_iter().map(|(x, y)| [f64::from(x), f64::from(y)]).collect();
            let side = |side: usize| pairs.iter().map(|pair| pair[side]).collect::<Vec<f64>>();
            let (xs, ys) = (side(0), side(1));
            let ranks: Vec<[f64; 2]> = pairs.iter().map(|[x, y]| [mean_rank(*x, &xs), mean_rank(*y, &ys)]).collect();
            match (of(&pairs).spearman, of(&ranks).pearson) {
                (Some(found), Some(expected)) => prop_assert!((found - expected).abs() < 1e-12, "{found} for {expected}"),
                (found, expected) => prop_assert_eq!(found, expected),
            }
        }

        #[test]
        fn the_bits_do_not_depend_on_the_order_of_the_pairs_nor_on_their_parts(
            pairs in prop::collection::vec((-1e6..1e6_f64, 0..20_u8), 0..60),
            cut in 0..60_usize,
        ) {
            let pairs: Vec<[f64; 2]> = pairs.into_iter().map(|(x, y)| [x, f64::from(y) / 3.0]).collect();
            let reversed: Vec<[f64; 2]> = pairs.iter().rev().copied().collect();
            let (first, second) = pairs.split_at(cut.min(pairs.len()));
            prop_assert_eq!(of(&pairs), of(&reversed));
            prop_assert_eq!(merged(&[&pairs]), merged(&[second, first]));
        }
    }
}
