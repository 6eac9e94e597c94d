//! `charge(at, model, provider, tier, input, output, cached, cache_write, cache_write_1h, reasoning, total, max_tokens,
//! answered_from_cache, exemption, currency)`: what one upstream call costs by the price book, as a struct.
//!
//! `at` is the time whose prices hold. `exemption` is why the call is not billed, or null. With a `currency` all costs are in
//! it, by the book's rate of `at`.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Builder, Int64Array, Int64Builder, StringViewArray,
    StringViewBuilder, StructArray, TimestampNanosecondArray,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int64Type, TimestampNanosecondType};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::cost::book::Book;
use crate::cost::charge::{Costs, Tokens, Unknown, Usage, charge};
use crate::cost::price::{Classes, Rates};
use crate::cost::{MONEY_SCALE, Money};
use crate::record::Kind;

/// Prices of models, times and lengths that are remembered.
const MOST_HELD: usize = 256;

/// How many arguments there are.
const ARGUMENTS: usize = 15;

const TEXTS: [&str; 4] = ["state", "reason", "rule", "currency"];
const COUNTS: [&str; 6] =
    ["uncached_tokens", "cached_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens", "reasoning_tokens"];
const COSTS: [&str; 8] =
    ["input_cost", "cached_cost", "write_cost", "output_cost", "request_cost", "cost", "low", "high"];

/// All money is of this type.
const MONEY: DataType = DataType::Decimal128(38, MONEY_SCALE);

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let field = |kind: DataType| move |name: &&str| Field::new(*name, kind.clone(), true);
    let texts = TEXTS.iter().map(field(DataType::Utf8View));
    texts.chain(COUNTS.iter().map(field(DataType::Int64))).chain(COSTS.iter().map(field(MONEY))).collect()
});

/// The scalar function, with the book that it prices by.
#[derive(Debug)]
pub struct ChargeCall {
    book: Arc<Book>,
    signature: Signature,
}

impl ChargeCall {
    pub fn new(book: Arc<Book>) -> Self {
        Self { book, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl PartialEq for ChargeCall {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.book, &other.book)
    }
}

impl Eq for ChargeCall {}

impl Hash for ChargeCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.book.digest.hash(state);
    }
}

impl ScalarUDFImpl for ChargeCall {
    fn name(&self) -> &str {
        "charge"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.len() != ARGUMENTS {
            return plan_err!("charge takes {ARGUMENTS} arguments");
        }
        let text = || DataType::Utf8View;
        let mut types = vec![Kind::Time.data_type(), text(), text(), text()];
        types.extend(std::iter::repeat_n(DataType::Int64, 8));
        types.extend([DataType::Boolean, text(), text()]);
        Ok(types)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(FIELDS.clone()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let calls = Calls {
            at: arrays[0].as_primitive::<TimestampNanosecondType>(),
            texts: [1, 2, 3, 13, 14].map(|index| arrays[index].as_string_view()),
            counts: [4, 5, 6, 7, 8, 9, 10, 11].map(|index| arrays[index].as_primitive::<Int64Type>()),
            from_cache: arrays[12].as_boolean(),
        };
        let mut priced = Priced::with_capacity(args.number_rows);
        let mut pricing = Pricing { book: &self.book, extremes: self.book.extremes(), held: Vec::new() };
        for row in 0..args.number_rows {
            pricing.price(&calls, row, &mut priced)?;
        }
        Ok(ColumnarValue::Array(priced.finish()?))
    }
}

/// The calls of a batch.
struct Calls<'a> {
    at: &'a TimestampNanosecondArray,
    /// Model, provider, tier, exemption, currency.
    texts: [&'a StringViewArray; 5],
    /// Input, output, cached, written, written for an hour, reasoning, total, limit.
    counts: [&'a Int64Array; 8],
    from_cache: &'a BooleanArray,
}

impl<'a> Calls<'a> {
    fn text(&self, index: usize, row: usize) -> Option<&'a str> {
        let array = self.texts[index];
        array.is_valid(row).then(|| array.value(row))
    }

    fn usage(&self, row: usize) -> Usage {
        let [input, output, cached, cache_write, cache_write_1h, reasoning, total, max_tokens] =
            self.counts.map(|counts| counts.is_valid(row).then(|| counts.value(row)));
        Usage { input, output, cached, cache_write, cache_write_1h, reasoning, total, max_tokens }
    }
}

/// What decides which price holds, besides the time and the length of the prompt: model, provider, tier.
type Key<'a> = [Option<&'a str>; 3];

/// What holds for the calls of a key in a stretch of time, for prompts of some lengths. Looked up once, not for each call.
struct Held<'a> {
    /// From, and until before; None: for calls without a time.
    times: Option<(i64, i64)>,
    /// Above, and up to; None: for calls whose prompt is not known.
    lengths: Option<(i64, i64)>,
    /// The currency of the price, or of the book where it has none.
    currency: &'a str,
    rates: Result<(Rates, String), String>,
}

struct Pricing<'a> {
    book: &'a Book,
    extremes: Option<(Classes, Classes)>,
    /// Few models answer most calls: looking through them is faster than a hash of their names.
    held: Vec<(Key<'a>, Held<'a>)>,
}

/// One call, priced or not.
struct Outcome<'t> {
    state: &'static str,
    reason: Option<&'t str>,
    rule: Option<&'t str>,
    currency: Option<&'t str>,
    tokens: Tokens,
    costs: Costs,
}

impl Held<'_> {
    fn fits(&self, at: Option<i64>, length: Option<i64>) -> bool {
        let within = |stretch: Option<(i64, i64)>, value: Option<i64>, holds: fn(i64, i64, i64) -> bool| match (
            stretch, value,
        ) {
            (Some((low, high)), Some(value)) => holds(low, high, value),
            (None, None) => true,
            _ => false,
        };
        within(self.times, at, |since, until, at| (since..until).contains(&at))
            && within(self.lengths, length, |above, up_to, length| above < length && length <= up_to)
    }
}

impl<'a> Pricing<'a> {
    /// Looks up what holds for a call.
    fn look_up(&self, [model, provider, tier]: Key<'a>, at: Option<i64>, length: Option<i64>) -> Held<'a> {
        let offer = match self.book.offer(model, provider, at) {
            Ok(offer) => offer,
            Err(none) => {
                let times = at.map(|_| (i64::MIN, none.until));
                let lengths = length.map(|_| (i64::MIN, i64::MAX));
                return Held { times, lengths, currency: &self.book.currency, rates: Err(none.reason) };
            }
        };
        let since = offer.price.since.unwrap_or(i64::MIN);
        let later = offer.model.prices.iter().filter_map(|price| price.since).find(|other| *other > since);
        let thresholds = || offer.price.thresholds();
        let lengths = length.map(|length| {
            let above = thresholds().filter(|above| *above < length).max();
            let up_to = thresholds().filter(|above| *above >= length).min();
            (above.unwrap_or(i64::MIN), up_to.unwrap_or(i64::MAX))
        });
        let rates = offer.price.rates(tier, length).map(|(rates, label)| (rates, format!("{offer}{label}")));
        Held { times: at.map(|_| (since, later.unwrap_or(i64::MAX))), lengths, currency: &offer.price.currency, rates }
    }

    fn price(&mut self, calls: &Calls<'a>, row: usize, out: &mut Priced) -> Result<()> {
        let usage = calls.usage(row);
        let [model, provider, tier, exemption, currency] = [0, 1, 2, 3, 4].map(|index| calls.text(index, row));
        let at = calls.at.is_valid(row).then(|| calls.at.value(row));
        let key = [model, provider, tier];
        let hopeless = usage.hopeless();
        let mut tokens = if hopeless.is_some() { Tokens::default() } else { usage.tokens() };
        let length = tokens.prompt_length();
        let fits = |(known, held): &(Key<'a>, Held<'a>)| *known == key && held.fits(at, length);
        let position = match self.held.iter().position(fits) {
            Some(position) => position,
            None => {
                let held = self.look_up(key, at, length);
                if self.held.len() >= MOST_HELD {
                    self.held.clear();
                }
                self.held.push((key, held));
                self.held.len() - 1
            }
        };
        let (_, Held { currency: own, rates, .. }) = &self.held[position];
        let rule = rates.as_ref().ok().map(|(_, rule)| rule.as_str());
        let common = Outcome {
            state: "free",
            reason: None,
            rule,
            currency: currency.or(Some(own)),
            tokens,
            costs: Costs::free(),
        };
        if calls.from_cache.is_valid(row) && calls.from_cache.value(row) {
            return out.push(Outcome { reason: Some("answered from the response cache"), ..common });
        }
        if let Some(exemption) = exemption {
            return out.push(Outcome { reason: Some(exemption), ..common });
        }
        let nothing = Costs { low: Some(0), ..Costs::default() };
        if let Some(unknown) = hopeless {
            return out.push(Outcome { state: "unknown", reason: Some(unknown.reason()), costs: nothing, ..common });
        }
        let exchanged = |costs: Costs| match currency {
            Some(to) => costs.each(|amount| self.book.exchange(amount, own, to, at)),
            None => Ok(costs),
        };
        match rates {
            Ok((rates, _)) => {
                let (costs, unknown) = charge(&usage, &mut tokens, rates);
                match exchanged(costs) {
                    Ok(costs) => {
                        let state = match unknown {
                            None => "priced",
                            Some(Unknown::NoOutputPrice) => "unpriced",
                            Some(_) => "unknown",
                        };
                        let reason = unknown.map(|unknown| unknown.reason());
                        out.push(Outcome { state, reason, tokens, costs, ..common })
                    }
                    Err(reason) => {
                        let reason = Some(reason.as_str());
                        out.push(Outcome { state: "unpriced", reason, tokens, costs: nothing, ..common })
                    }
                }
            }
            Err(reason) => {
                let costs = self.bounds(&usage, own, currency, at);
                out.push(Outcome { state: "unpriced", reason: Some(reason), costs, ..common })
            }
        }
    }

    /// What such tokens cost at least and at most, by all prices of the book.
    fn bounds(&self, usage: &Usage, own: &str, currency: Option<&str>, at: Option<i64>) -> Costs {
        let of = |classes: &Classes| charge(usage, &mut usage.tokens(), &Rates { classes: *classes, above: None }).0;
        let exchanged = |amount: Money| match currency {
            Some(to) => self.book.exchange(amount, own, to, at).ok(),
            None => Some(amount),
        };
        let (low, high) = match &self.extremes {
            Some((cheapest, dearest)) => (of(cheapest).low, of(dearest).high),
            None => (Some(0), None),
        };
        Costs { low: low.and_then(exchanged), high: high.and_then(exchanged), ..Costs::default() }
    }
}

/// A column of a few texts that come again and again: each is kept once.
struct Texts {
    views: StringViewBuilder,
    /// Those that are too long for a view, with the block that holds them.
    known: Vec<(String, u32)>,
}

/// A text up to this length stands in its view itself.
const INLINE: usize = 12;

/// Texts that are looked through for one that is known.
const MOST_KNOWN: usize = 32;

impl Texts {
    fn with_capacity(rows: usize) -> Self {
        Self { views: StringViewBuilder::with_capacity(rows), known: Vec::new() }
    }

    fn append(&mut self, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) if text.len() > INLINE => {
                let known = self.known.iter().find(|(known, _)| known == text).map(|(_, block)| *block);
                let block = match known {
                    Some(block) => block,
                    None if self.known.len() >= MOST_KNOWN => {
                        self.views.append_value(text);
                        return Ok(());
                    }
                    None => {
                        let block = self.views.append_block(Buffer::from(text.as_bytes().to_vec()));
                        self.known.push((text.to_owned(), block));
                        block
                    }
                };
                Ok(self.views.try_append_view(block, 0, text.len() as u32)?)
            }
            short => {
                self.views.append_option(short);
                Ok(())
            }
        }
    }
}

/// The answers of a batch, column by column.
struct Priced {
    texts: [Texts; 4],
    counts: [Int64Builder; 6],
    costs: [Decimal128Builder; 8],
}

impl Priced {
    fn with_capacity(rows: usize) -> Self {
        Self {
            texts: std::array::from_fn(|_| Texts::with_capacity(rows)),
            counts: std::array::from_fn(|_| Int64Builder::with_capacity(rows)),
            costs: std::array::from_fn(|_| Decimal128Builder::with_capacity(rows).with_data_type(MONEY)),
        }
    }

    fn push(&mut self, call: Outcome<'_>) -> Result<()> {
        let texts = [Some(call.state), call.reason, call.rule, call.currency];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.append(text)?;
        }
        let Tokens { uncached, cached, write_5m, write_1h, output, reasoning } = call.tokens;
        let counts = [uncached, cached, write_5m, write_1h, output, reasoning];
        self.counts.iter_mut().zip(counts).for_each(|(column, count)| column.append_option(count));
        let Costs { input, cached, write, output, request, cost, low, high } = call.costs;
        let costs = [input, cached, write, output, request, cost, low, high];
        self.costs.iter_mut().zip(costs).for_each(|(column, amount)| column.append_option(amount));
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let texts = self.texts.iter_mut().map(|column| Arc::new(column.views.finish()) as ArrayRef);
        let counts = self.counts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let costs = self.costs.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let columns = texts.chain(counts).chain(costs).collect();
        Ok(Arc::new(StructArray::try_new(FIELDS.clone(), columns, None)?))
    }
}
