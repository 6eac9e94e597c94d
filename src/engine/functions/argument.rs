//! What the arguments of our functions may be: the types they take, and constants read out of expressions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, ListArray, RecordBatch};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Field, Float64Type, Schema};
use datafusion::common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::function::AccumulatorArgs;

/// The type a measured value is converted to: any number becomes Float64.
pub fn measured(function: &str, argument: &DataType) -> Result<DataType> {
    match argument {
        number if number.is_numeric() || number.is_null() => Ok(DataType::Float64),
        other => plan_err!("{function} takes numbers, not {other}"),
    }
}

/// The type a list of constants is converted to. `Null` is a placeholder that has no value yet.
pub fn constants(function: &str, argument: &DataType, item: DataType) -> Result<DataType> {
    let fits = |given: &DataType| match item {
        // 1.5 would be cut to 1 in silence.
        DataType::Int64 => given.is_integer() || given.is_null(),
        _ => given.is_numeric() || given.is_null(),
    };
    let list = list_of(item.clone());
    match argument {
        DataType::Null => Ok(list),
        DataType::List(given) | DataType::LargeList(given) | DataType::FixedSizeList(given, _)
            if fits(given.data_type()) =>
        {
            Ok(list)
        }
        // One shared list for all rows, as `Percentiles` makes it.
        DataType::Dictionary(_, values) if values.as_ref() == &list => Ok(argument.clone()),
        other => {
            let example = match item {
                DataType::Int64 => "whole numbers second, such as [1024, 2048]",
                _ => "numbers second, such as [0.5, 0.95]",
            };
            plan_err!("{function} takes a list of {example}, not {other}")
        }
    }
}

/// The list type of our constants and answers.
pub fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The second argument of an aggregate, which must be one number for all rows.
pub fn fraction(function: &str, args: &AccumulatorArgs) -> Result<f64> {
    match constant(function, args)? {
        ScalarValue::Float64(Some(fraction)) => Ok(fraction),
        other => plan_err!("{function}: the percentile must be a number, not {other}"),
    }
}

/// The second argument of an aggregate, which must be one list of numbers for all rows.
pub fn fractions(function: &str, args: &AccumulatorArgs) -> Result<Vec<f64>> {
    let list = match constant(function, args)? {
        ScalarValue::Dictionary(_, list) => *list,
        other => other,
    };
    let ScalarValue::List(list) = &list else {
        return plan_err!("{function}: the percentiles must be a list of numbers, not {list}");
    };
    items::<Float64Type>(list)
        .ok_or_else(|| plan_datafusion_err!("{function}: the percentiles must be numbers, and one of them is null"))
}

/// The items of a constant list; `None` if the list or one of them is null.
pub fn items<T: ArrowPrimitiveType>(list: &ListArray) -> Option<Vec<T::Native>> {
    let items = (!list.is_null(0)).then(|| list.value(0))?;
    let numbers = items.as_primitive_opt::<T>()?;
    (numbers.null_count() == 0).then(|| numbers.values().to_vec())
}

/// `DISTINCT` would need another state; a percentile of distinct values is hardly ever meant.
pub fn refuse_distinct(function: &str, args: &AccumulatorArgs) -> Result<()> {
    if args.is_distinct {
        return plan_err!("{function} does not take DISTINCT; select the distinct values in a subquery first");
    }
    Ok(())
}

fn constant(function: &str, args: &AccumulatorArgs) -> Result<ScalarValue> {
    let Some(argument) = args.exprs.get(1) else {
        return plan_err!("{function} takes two arguments, and the second is missing");
    };
    // An expression that has a value without any column is a constant.
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    match argument.evaluate(&nothing) {
        Ok(ColumnarValue::Scalar(value)) => Ok(value),
        _ => Err(plan_datafusion_err!(
            "{function}: the second argument must be the same for all rows, and {argument} is not a constant"
        )),
    }
}
