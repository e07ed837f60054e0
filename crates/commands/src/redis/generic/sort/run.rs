//! SORT and SORT_RO: the elements of a collection in order, or what they name.

use super::elements::{Elements, Part, Sortable};
use super::options::{By, Caller, Options, Storing};
use super::order::{Weights, number};
use super::pattern::Pattern;
use super::texts::Texts;
use crate::redis::answer_limit::AnswerLimit;
use crate::redis::reply_item::bulk_item;
use crate::redis::string::value::reply_string;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{FollowingCx, KeyCx, KeysCx};
use tenon_engine::ds::listpack::End;
use tenon_engine::ds::packed::{IntText, Item};
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::Slot;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::store::types::{Hash, List, ListLimits, Object, Rope, ValueType};
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;

const BY_AND_GET: KeySpec = KeySpec::unknown(KeyFlags::READ).notes(
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort",
);
const STORE: KeySpec = KeySpec::unknown(KeyFlags::OVERWRITE).notes(
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array",
);

/// Sorts, and stores the result if that is wanted.
pub static SORT: Command = Command {
    name: "SORT",
    group: Group::Generic,
    syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
    summary: "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
    complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
    since: "1.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Found { specs: &[KeySpec::at(1, KeyFlags::READ), BY_AND_GET, STORE], find: keys_of_sort },
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::OF_COLLECTIONS).or(Flags::DANGEROUS),
    run: Run::Following { further: further_of_sort, run: sort },
};

/// Sorts and changes nothing.
pub static SORT_RO: Command = Command {
    name: "SORT_RO",
    group: Group::Generic,
    syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
    summary: "Returns the sorted elements of a list, a set, or a sorted set.",
    complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
    since: "7.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::Found { specs: &[KeySpec::at(1, KeyFlags::READ), BY_AND_GET], find: keys_of_sort_ro },
    flags: Flags::READONLY.or(Flags::OF_COLLECTIONS).or(Flags::DANGEROUS),
    run: Run::Following { further: further_of_sort_ro, run: sort_ro },
};

/// The key that is sorted, and the last one that is named to store the result.
fn keys_of_sort(args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut store = None;
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "LIMIT") {
            at += 2;
        } else if args.is(at, "GET") || args.is(at, "BY") {
            at += 1;
        } else if args.is(at, "STORE") && at + 1 < args.len() {
            at += 1;
            store = Some((at, KeyFlags::OVERWRITE));
        }
        at += 1;
    }
    std::iter::once((1, KeyFlags::READ)).chain(store).collect()
}

fn keys_of_sort_ro(_args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
    vec![(1, KeyFlags::READ)]
}

fn further_of_sort(cx: &FollowingCx<'_>, args: &Args<'_>) -> Vec<usize> {
    further(cx, args, Storing::Allowed)
}

fn further_of_sort_ro(cx: &FollowingCx<'_>, args: &Args<'_>) -> Vec<usize> {
    further(cx, args, Storing::Refused)
}

fn options_of<'a>(cx: &FollowingCx<'_>, args: &Args<'a>, storing: Storing) -> Result<Options<'a>, CmdError> {
    let caller = if cx.keys.is_in_script() { Caller::Script } else { Caller::Client };
    Options::parse(args, storing, caller, cx.may_read_all_keys)
}

/// The shards of the keys that the elements name.
fn further(cx: &FollowingCx<'_>, args: &Args<'_>, storing: Storing) -> Vec<usize> {
    let Ok(options) = options_of(cx, args, storing) else { return Vec::new() };
    let named = options.named_keys();
    if named.is_empty() {
        return Vec::new();
    }
    let Some(entry) = cx.keys.peek(args.get(1)) else { return Vec::new() };
    let Ok(sortable) = Sortable::of(entry.value()) else { return Vec::new() };
    // Where single members expire, others may have come into their places when the command runs.
    let keeps_places = entry.due_ms() == entry.deadline_ms();
    let part = unsorted(sortable, &options).filter(|_| keeps_places).unwrap_or_else(|| sortable.whole());
    // So many keys lie nearly everywhere.
    if part.places.len().saturating_mul(named.len()) >= cx.shards() {
        return cx.lacks_of_all();
    }
    let (mut shards, mut room) = (Vec::new(), Vec::new());
    sortable.for_each(&part, |element| {
        shards.extend(named.iter().filter_map(|keys| cx.lacks(keys.key(element, &mut room))));
    });
    shards
}

/// The elements that are wanted, where they are wanted as they lie; `None` where they are to be sorted.
fn unsorted(sortable: Sortable<'_>, options: &Options<'_>) -> Option<Part> {
    if options.by != By::Nothing {
        return None;
    }
    let len = sortable.len();
    let wanted = options.range(len);
    match sortable.value_type() {
        // A set has no order of its own that would be the same elsewhere: as in Redis what is kept and what a script
        // goes by is sorted all the same, and what a client reads has the order of the table in either direction.
        ValueType::Set if options.store.is_some() || options.caller == Caller::Script => None,
        ValueType::Set => Some(Part { places: wanted, direction: Direction::Ascending }),
        _ if options.descending => {
            Some(Part { places: len - wanted.end..len - wanted.start, direction: Direction::Descending })
        }
        _ => Some(Part { places: wanted, direction: Direction::Ascending }),
    }
}

fn sort(cx: &mut FollowingCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = options_of(cx, args, Storing::Allowed)?;
    run(cx, args, &options, reply)
}

fn sort_ro(cx: &mut FollowingCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = options_of(cx, args, Storing::Refused)?;
    run(cx, args, &options, reply)
}

fn run(
    cx: &mut FollowingCx<'_>,
    args: &Args<'_>,
    options: &Options<'_>,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let may_read_all_keys = cx.may_read_all_keys;
    let cx = &mut cx.keys;
    let mut key = cx.key(args.get(1));
    let value = key.read().map(|entry| entry.value());
    if options.named_keys().is_empty() {
        value.map(Sortable::of).transpose()?;
        return sort_alone(cx, args, options, may_read_all_keys, reply);
    }
    let taken = Taken::of(value, options)?;
    let indexes = taken.in_order(options, |elements| {
        let weights = weights(cx, elements, options)?;
        if options.is_done_with_keys() {
            cx.let_go();
        }
        Ok(weights)
    })?;
    let Some(target) = options.store else {
        answer(cx, &taken.elements, &indexes, options, reply)?;
        return Ok(Effect::Unchanged);
    };
    let (limits, mut room) = (cx.engine().list_limits(), Vec::new());
    let list = result(&taken.elements, &indexes, options, limits, |pattern, element, stored| {
        with_named(cx, pattern, element, &mut room, |named| match named {
            Some(named) => named.with_text(|text| stored.push(text)),
            None => stored.push(b""),
        });
    });
    Ok(store(cx, target, list, reply))
}

/// Sorts a collection whose elements name no key: where it is large, others may use it meanwhile.
fn sort_alone(
    cx: &mut KeysCx<'_>,
    args: &Args<'_>,
    options: &Options<'_>,
    may_read_all_keys: bool,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let steps = |values: &[Option<ValueRef<'_>>]| steps(values[0], options);
    if options.store.is_none() {
        let taken = cx.with_values(std::iter::once(args.get(1)), steps, |values| Taken::of(values[0], options))?;
        cx.let_go();
        let indexes = taken.in_order(options, |elements| own_weights(elements, options))?;
        answer(cx, &taken.elements, &indexes, options, reply)?;
        return Ok(Effect::Unchanged);
    }
    let (caller, limits) = (options.caller, cx.engine().list_limits());
    let make = move |args: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| {
        let options = Options::parse(args, Storing::Allowed, caller, may_read_all_keys)?;
        let taken = Taken::of(values[0], &options)?;
        let indexes = taken.in_order(&options, |elements| own_weights(elements, &options))?;
        Ok(result(&taken.elements, &indexes, &options, limits, |pattern, element, stored| {
            stored.push(pattern.of_itself(element).unwrap_or_default());
        }))
    };
    cx.make_and_store(args, 1..2, reply, steps, make, |cx, args, reply, list| {
        let (target, _) = keys_of_sort(args).pop().expect("the destination is the last of them");
        Ok(store(cx, args.get(target), list, reply))
    })
}

/// How many elements of a collection are read.
fn steps(value: Option<ValueRef<'_>>, options: &Options<'_>) -> usize {
    let Some(Ok(sortable)) = value.map(Sortable::of) else { return 0 };
    unsorted(sortable, options).map_or(sortable.len(), |part| part.places.len())
}

/// The elements of a collection that are wanted, if `is_arranged` as they are wanted, otherwise all.
#[derive(Debug)]
struct Taken {
    elements: Elements,
    is_arranged: bool,
}

impl Taken {
    fn of(value: Option<ValueRef<'_>>, options: &Options<'_>) -> Result<Taken, CmdError> {
        let Some(value) = value else { return Ok(Taken { elements: Elements::default(), is_arranged: true }) };
        let sortable = Sortable::of(value)?;
        let part = unsorted(sortable, options);
        let is_arranged = part.is_some();
        let elements = Elements::of(sortable, &part.unwrap_or_else(|| sortable.whole()));
        // Equal texts keep the order that elements have, and a set has none that would be the same elsewhere.
        let is_open = matches!(options.by, By::Pattern(_)) && options.alpha;
        let lacks_order = is_open && sortable.value_type() == ValueType::Set;
        Ok(Taken { elements: if lacks_order { in_order(&elements) } else { elements }, is_arranged })
    }

    /// The indexes of those that are wanted, in the order of their weights.
    fn in_order(
        &self,
        options: &Options<'_>,
        weights: impl FnOnce(&Elements) -> Result<Weights, CmdError>,
    ) -> Result<Vec<usize>, CmdError> {
        let len = self.elements.len();
        if self.is_arranged {
            return Ok((0..len).inspect(|_| progress::count(1)).collect());
        }
        Ok(weights(&self.elements)?.sorted(&self.elements, options.descending, options.range(len)))
    }
}

/// The elements in their own order.
fn in_order(elements: &Elements) -> Elements {
    let mut ordered = Elements::with_room(elements.len());
    let indexes = Weights::Themselves.sorted(elements, false, 0..elements.len());
    for index in indexes {
        progress::count(1);
        ordered.push(elements.get(index));
    }
    ordered
}

/// What the elements are sorted by if that needs no key.
fn own_weights(elements: &Elements, options: &Options<'_>) -> Result<Weights, CmdError> {
    if options.by == By::Nothing || options.alpha {
        return Ok(Weights::Themselves);
    }
    let mut numbers = Vec::with_capacity(elements.len());
    for index in 0..elements.len() {
        progress::count(1);
        numbers.push(number(elements.get(index))?);
    }
    Ok(Weights::Numbers(numbers))
}

/// What the elements are sorted by.
fn weights(cx: &mut KeysCx<'_>, elements: &Elements, options: &Options<'_>) -> Result<Weights, CmdError> {
    let By::Pattern(pattern) = options.by else { return own_weights(elements, options) };
    let mut room = Vec::new();
    if options.alpha {
        let mut texts = Texts::with_room(elements.len());
        for index in 0..elements.len() {
            progress::count(1);
            with_named(cx, &pattern, elements.get(index), &mut room, |named| match named {
                Some(named) => named.weigh(&mut texts),
                None => texts.push_absent(),
            });
        }
        return Ok(Weights::Texts(texts));
    }
    let (mut numbers, mut wrong) = (Vec::with_capacity(elements.len()), None);
    for index in 0..elements.len() {
        progress::count(1);
        // What is not there counts as 0.
        let weight = |named: Option<Named<'_>>| named.map_or(Ok(0.0), Named::number);
        match with_named(cx, &pattern, elements.get(index), &mut room, weight) {
            Ok(number) => numbers.push(number),
            // All are looked up, as in Redis.
            Err(error) => wrong = Some(error),
        }
    }
    wrong.map_or(Ok(Weights::Numbers(numbers)), Err)
}

/// What a pattern names for an element.
enum Named<'a> {
    /// The string under a key.
    String(&'a KeyCx<'a>, Slot),
    /// The value of a hash's field.
    Field(Item<'a>),
    /// The element.
    Element(&'a [u8]),
}

impl Named<'_> {
    fn with_text<R>(self, visit: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Named::String(cx, slot) => match cx.entry(slot).value() {
                ValueRef::Bytes(bytes) => visit(bytes),
                ValueRef::Int(int) => visit(Item::Int(int).as_bytes(&mut IntText::new())),
                value => visit(&string::to_vec(value)),
            },
            Named::Field(item) => visit(item.as_bytes(&mut IntText::new())),
            Named::Element(element) => visit(element),
        }
    }

    /// Adds the text to those that elements are sorted by.
    fn weigh(self, texts: &mut Texts) {
        match self {
            Named::String(cx, slot) => texts.push_string(cx.entry(slot).value()),
            Named::Field(Item::Int(int)) => texts.push_string(ValueRef::Int(int)),
            Named::Field(Item::Bytes(text)) | Named::Element(text) => texts.push_bytes(text),
        }
    }

    fn number(self) -> Result<f64, CmdError> {
        match self {
            Named::String(cx, slot) => match cx.entry(slot).value() {
                ValueRef::Int(int) => Ok(int as f64),
                ValueRef::Object(Object::Rope(rope)) => number(first_text(rope)),
                ValueRef::Object(Object::Shared(text)) => number(text),
                ValueRef::Bytes(text) => number(text),
                ValueRef::Object(_) | ValueRef::Packed(..) => string::no_string(),
            },
            Named::Field(Item::Int(int)) => Ok(int as f64),
            Named::Field(Item::Bytes(text)) | Named::Element(text) => number(text),
        }
    }

    fn reply(self, reply: &mut Reply<'_>) {
        match self {
            Named::String(cx, slot) => reply_string(cx.entry(slot).value(), reply),
            Named::Field(item) => bulk_item(reply, item),
            Named::Element(element) => reply.bulk(element),
        }
    }
}

/// What of a long string can be a number, which ends at a NUL: it is not copied to learn that it is none. One that fills a
/// chunk, half a megabyte of digits, is none here.
fn first_text(rope: &Rope) -> &[u8] {
    const NO_NUMBER: &[u8] = b"x";
    let first = rope.first_chunk();
    if first.len() == rope.len() || first.contains(&0) { first } else { NO_NUMBER }
}

/// Calls `visit` with what a pattern names for an element, if that is there and of the right type. `room` is for the key.
fn with_named<R>(
    cx: &mut KeysCx<'_>,
    pattern: &Pattern<'_>,
    element: &[u8],
    room: &mut Vec<u8>,
    visit: impl FnOnce(Option<Named<'_>>) -> R,
) -> R {
    let (keys, field) = match pattern {
        Pattern::Element => return visit(Some(Named::Element(element))),
        Pattern::Nothing => return visit(None),
        Pattern::Key { keys, field } => (keys, field),
    };
    let mut cx = cx.key(keys.key(element, room));
    let Some(slot) = cx.find_for_read() else { return visit(None) };
    match field {
        Some(field) => {
            let value = cx.collection::<Hash>(slot).ok().and_then(|hash| hash.get(field));
            visit(value.map(Named::Field))
        }
        None if cx.string(slot).is_ok() => visit(Some(Named::String(&cx, slot))),
        None => visit(None),
    }
}

fn answer(
    cx: &mut KeysCx<'_>,
    elements: &Elements,
    indexes: &[usize],
    options: &Options<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), CmdError> {
    let (limit, mut room) = (AnswerLimit::of_output(cx.engine(), reply), Vec::new());
    reply.array(indexes.len() * options.gets.len().max(1));
    for &index in indexes {
        progress::count(1 + options.gets.len());
        let element = elements.get(index);
        if options.gets.is_empty() {
            reply.bulk(element);
        }
        for pattern in &options.gets {
            with_named(cx, pattern, element, &mut room, |named| match named {
                Some(named) => named.reply(reply),
                None => reply.null(),
            });
        }
        // Its own elements are no more than it has.
        if !options.gets.is_empty() {
            limit.check(reply)?;
        }
    }
    Ok(())
}

/// The result as it is stored.
struct Stored {
    list: List,
    limits: ListLimits,
}

impl Stored {
    fn push(&mut self, text: &[u8]) {
        self.list.prepare(std::iter::once(text), &self.limits);
        self.list.push(End::Back, Item::of(text), &self.limits);
    }
}

/// The result as a list. `push_named` puts what a pattern names for an element at its end, and an empty string for what is not
/// there.
fn result(
    elements: &Elements,
    indexes: &[usize],
    options: &Options<'_>,
    limits: ListLimits,
    mut push_named: impl FnMut(&Pattern<'_>, &[u8], &mut Stored),
) -> List {
    let mut stored = Stored { list: List::default(), limits };
    for &index in indexes {
        progress::count(1 + options.gets.len());
        let element = elements.get(index);
        if options.gets.is_empty() {
            stored.push(element);
        }
        options.gets.iter().for_each(|pattern| push_named(pattern, element, &mut stored));
    }
    stored.list
}

/// Puts the result in the place of whatever the destination holds, and answers how long it is.
fn store(cx: &mut KeysCx<'_>, target: &[u8], list: List, reply: &mut Reply<'_>) -> Effect {
    let len = list.len() as i64;
    reply.int(len);
    let effect = cx.key(target).replace_with("sortstore", list);
    cx.key(target).count_changes((len - 1).max(0));
    effect
}
