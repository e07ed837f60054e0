//! SORT and SORT_RO: the elements of a collection in order, or what they name.

use super::elements::{Elements, Sortable};
use super::options::{By, Options, Storing};
use super::order::{Weights, number};
use super::pattern::Pattern;
use crate::redis::reply_item::bulk_item;
use crate::redis::string::value::reply_string;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{FollowingCx, KeyCx, KeysCx};
use tenon_engine::ds::listpack::End;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::Slot;
use tenon_engine::store::types::{Hash, List, ValueType};
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

/// The shards of the keys that the elements name.
fn further(cx: &FollowingCx<'_>, args: &Args<'_>, storing: Storing) -> Vec<usize> {
    let Ok(options) = Options::parse(args, storing, cx.may_read_all_keys) else { return Vec::new() };
    let patterns = options.patterns().count();
    if patterns == 0 {
        return Vec::new();
    }
    let Some(Ok(sortable)) = cx.keys.peek(args.get(1)).map(|entry| Sortable::of(entry.value())) else {
        return Vec::new();
    };
    // So many keys lie nearly everywhere.
    if sortable.len().saturating_mul(patterns) >= cx.shards() {
        return cx.lacks_of_all();
    }
    let (mut shards, mut room) = (Vec::new(), Vec::new());
    sortable.for_each(|element| {
        let keys = options.patterns();
        keys.for_each(|pattern| shards.extend(pattern.key(element, &mut room).and_then(|key| cx.lacks(key))));
    });
    shards
}

fn sort(cx: &mut FollowingCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, Storing::Allowed, cx.may_read_all_keys)?;
    run(&mut cx.keys, args.get(1), &options, reply)
}

fn sort_ro(cx: &mut FollowingCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args, Storing::Refused, cx.may_read_all_keys)?;
    run(&mut cx.keys, args.get(1), &options, reply)
}

fn run(cx: &mut KeysCx<'_>, key: &[u8], options: &Options<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (elements, value_type) = match cx.key(key).read() {
        Some(entry) => {
            let sortable = Sortable::of(entry.value())?;
            (Elements::of(sortable), Some(sortable.value_type()))
        }
        None => (Elements::default(), None),
    };
    let wanted = options.range(elements.len());
    let indexes = match options.by {
        // A set has no order of its own that would be the same the next time.
        By::Nothing if value_type == Some(ValueType::Set) => {
            Weights::Themselves.sorted(&elements, options.descending, wanted)
        }
        By::Nothing if options.descending => wanted.map(|index| elements.len() - 1 - index).collect(),
        By::Nothing => wanted.collect(),
        By::Themselves | By::Pattern(_) => {
            weights(cx, &elements, options)?.sorted(&elements, options.descending, wanted)
        }
    };
    match options.store {
        Some(target) => store(cx, target, &elements, &indexes, options, reply),
        None => {
            answer(cx, &elements, &indexes, options, reply);
            Ok(Effect::Unchanged)
        }
    }
}

/// What the elements are sorted by.
fn weights(cx: &mut KeysCx<'_>, elements: &Elements, options: &Options<'_>) -> Result<Weights, CmdError> {
    let pattern = match options.by {
        By::Pattern(pattern) => pattern,
        _ if options.alpha => return Ok(Weights::Themselves),
        _ => {
            let numbers: Result<_, _> = (0..elements.len()).map(|index| number(elements.get(index))).collect();
            return numbers.map(Weights::Numbers);
        }
    };
    let (mut texts, mut is_there, mut numbers) = (Elements::default(), Vec::new(), Vec::new());
    for index in 0..elements.len() {
        with_named(cx, &pattern, elements.get(index), |named| {
            let text = named.map(Named::into_vec);
            if options.alpha {
                is_there.push(text.is_some());
                texts.push(text.as_deref().unwrap_or_default());
            } else {
                // Without a text it counts as 0.
                numbers.push(text.map_or(Ok(0.0), |text| number(&text))?);
            }
            Ok(())
        })?;
    }
    Ok(if options.alpha { Weights::Texts { texts, is_there } } else { Weights::Numbers(numbers) })
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
    fn into_vec(self) -> Vec<u8> {
        match self {
            Named::String(cx, slot) => string::to_vec(cx.entry(slot).value()),
            Named::Field(item) => item.to_vec(),
            Named::Element(element) => element.to_vec(),
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

/// Calls `visit` with what a pattern names for an element, if that is there and of the right type.
fn with_named<R>(
    cx: &mut KeysCx<'_>,
    pattern: &Pattern<'_>,
    element: &[u8],
    visit: impl FnOnce(Option<Named<'_>>) -> R,
) -> R {
    let mut room = Vec::new();
    let field = match pattern {
        Pattern::Element => return visit(Some(Named::Element(element))),
        Pattern::Nothing => return visit(None),
        Pattern::Key { field, .. } => field,
    };
    let key = pattern.key(element, &mut room).expect("the pattern names keys");
    let mut cx = cx.key(key);
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

fn answer(cx: &mut KeysCx<'_>, elements: &Elements, indexes: &[usize], options: &Options<'_>, reply: &mut Reply<'_>) {
    reply.array(indexes.len() * options.gets.len().max(1));
    for &index in indexes {
        let element = elements.get(index);
        if options.gets.is_empty() {
            reply.bulk(element);
        }
        for pattern in &options.gets {
            with_named(cx, pattern, element, |named| match named {
                Some(named) => named.reply(reply),
                None => reply.null(),
            });
        }
    }
}

/// Stores the result as a list; what is not there becomes an empty string in it.
fn store(
    cx: &mut KeysCx<'_>,
    target: &[u8],
    elements: &Elements,
    indexes: &[usize],
    options: &Options<'_>,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let limits = cx.engine().list_limits();
    let mut list = List::default();
    let mut push = |text: &[u8]| {
        list.prepare(std::iter::once(text), &limits);
        list.push(End::Back, Item::of(text), &limits);
    };
    for &index in indexes {
        let element = elements.get(index);
        if options.gets.is_empty() {
            push(element);
        }
        for pattern in &options.gets {
            with_named(cx, pattern, element, |named| push(&named.map(Named::into_vec).unwrap_or_default()));
        }
    }
    let len = list.len() as i64;
    reply.int(len);
    let effect = cx.key(target).replace_with("sortstore", list);
    cx.key(target).count_changes((len - 1).max(0));
    Ok(effect)
}
