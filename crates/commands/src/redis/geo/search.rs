//! GEOSEARCH, GEOSEARCHSTORE and the GEORADIUS family: members around a place.

use super::query::{Destination, Form, Found, Query, Stored};
use super::unit::{reply_distance, reply_place};
use crate::redis::reply_item::bulk_item;
use std::cell::Cell;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{KeysCx, view_of};
use tenon_engine::ds::packed::IntText;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::store::entry::ValueRef;
use tenon_engine::store::types::{Collection, Zset, ZsetLimits};
use tenon_engine::wire::resp::Reply;

/// Gives the members in an area.
pub static GEOSEARCH: Command = Command {
    name: "GEOSEARCH",
    group: Group::Geo,
    syntax: "key [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON num-vertices longitude latitude [longitude latitude ...]> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
    summary: "Queries a geospatial index for members inside an area of a box, a circle or a polygon.",
    complexity: "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape provided as the filter and M is the number of items inside the shape",
    since: "6.2.0",
    arity: Arity::AtLeast(7),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Keys(geosearch),
};

/// Keeps the members in an area under another key.
pub static GEOSEARCHSTORE: Command = Command {
    name: "GEOSEARCHSTORE",
    group: Group::Geo,
    syntax: "destination source [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON num-vertices longitude latitude [longitude latitude ...]> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
    summary: "Queries a geospatial index for members inside an area of a box, a circle or a polygon, optionally stores the result.",
    complexity: "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape provided as the filter and M is the number of items inside the shape",
    since: "6.2.0",
    arity: Arity::AtLeast(8),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::at(2, KeyFlags::READ)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(geosearchstore),
};

/// Gives or keeps the members around a place.
pub static GEORADIUS: Command = Command {
    name: "GEORADIUS",
    group: Group::Geo,
    syntax: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
    summary: "Queries a geospatial index for members within a distance from a coordinate, optionally stores the result.",
    complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
    since: "3.2.0",
    arity: Arity::AtLeast(6),
    keys: Keys::Found {
        specs: &[
            KeySpec::at(1, KeyFlags::READ),
            KeySpec::behind("STORE", 6, KeyFlags::OVERWRITE),
            KeySpec::behind("STOREDIST", 6, KeyFlags::OVERWRITE),
        ],
        find: |args| radius_keys(args, 6),
    },
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(georadius),
};

/// Gives the members around a place.
pub static GEORADIUS_RO: Command = Command {
    name: "GEORADIUS_RO",
    group: Group::Geo,
    syntax: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
    summary: "Returns members from a geospatial index that are within a distance from a coordinate.",
    complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
    since: "3.2.10",
    arity: Arity::AtLeast(6),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Keys(georadius_ro),
};

/// Gives or keeps the members around another.
pub static GEORADIUSBYMEMBER: Command = Command {
    name: "GEORADIUSBYMEMBER",
    group: Group::Geo,
    syntax: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
    summary: "Queries a geospatial index for members within a distance from a member, optionally stores the result.",
    complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
    since: "3.2.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Found {
        specs: &[
            KeySpec::at(1, KeyFlags::READ),
            KeySpec::behind("STORE", 5, KeyFlags::OVERWRITE),
            KeySpec::behind("STOREDIST", 5, KeyFlags::OVERWRITE),
        ],
        find: |args| radius_keys(args, 5),
    },
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Keys(georadiusbymember),
};

/// Gives the members around another.
pub static GEORADIUSBYMEMBER_RO: Command = Command {
    name: "GEORADIUSBYMEMBER_RO",
    group: Group::Geo,
    syntax: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
    summary: "Returns members from a geospatial index that are within a distance from a member.",
    complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
    since: "3.2.10",
    arity: Arity::AtLeast(5),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Keys(georadiusbymember_ro),
};

/// The keys of GEORADIUS and GEORADIUSBYMEMBER, whose options begin at argument `at`: what the first STORE and the first
/// STOREDIST name, as Redis tells them, and of several destinations the last, which is the one that is written.
fn radius_keys(args: &Args<'_>, mut at: usize) -> Vec<(usize, KeyFlags)> {
    let first = |word| (at..args.len().saturating_sub(1)).find(|&at| args.is(at, word)).map(|at| at + 1);
    let mut keys: Vec<usize> = [Some(1), first("STORE"), first("STOREDIST")].into_iter().flatten().collect();
    let mut destination = None;
    while at + 1 < args.len() {
        if args.is(at, "STORE") || args.is(at, "STOREDIST") {
            destination = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    keys.extend(destination.filter(|destination| !keys.contains(destination)));
    keys.into_iter().map(|key| (key, if key == 1 { KeyFlags::READ } else { KeyFlags::OVERWRITE })).collect()
}

fn geosearch(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::Search, reply)
}

fn geosearchstore(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::SearchStore, reply)
}

fn georadius(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::RadiusOfPlace(Destination::Allowed), reply)
}

fn georadius_ro(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::RadiusOfPlace(Destination::None), reply)
}

fn georadiusbymember(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::RadiusOfMember(Destination::Allowed), reply)
}

fn georadiusbymember_ro(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    search(cx, args, Form::RadiusOfMember(Destination::None), reply)
}

fn search(cx: &mut KeysCx<'_>, args: &Args<'_>, form: Form, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.zset_limits();
    let source = form.source();
    let query = Query::parse(args, form, cx.key(args.get(source)).read_collection::<Zset>()?)?;
    let Some((destination, stored)) = query.store else {
        let places = Cell::new(Vec::new());
        let steps = |values: &[Option<ValueRef<'_>>]| {
            let zset = values[0].and_then(|value| value.collection::<Zset>());
            let found = zset.map(|zset| query.first_of(zset, query.places(zset))).unwrap_or_default();
            let steps = query.steps(&found);
            places.set(found);
            steps
        };
        let give_found = |values: Vec<Option<ValueRef<'_>>>| {
            let zset = values[0].map(view_of::<Zset>).transpose()?;
            // They are those of the same value, also when that is lent.
            let found = zset.map(|zset| query.find(zset, places.take())).unwrap_or_default();
            give(&query, &found, reply);
            Ok(Effect::Unchanged)
        };
        return cx.with_values(std::iter::once(args.get(source)), steps, give_found);
    };
    let make = move |args: &Args<'_>, values: Vec<Option<ValueRef<'_>>>| {
        let zset = values[0].map(view_of::<Zset>).transpose()?;
        let query = Query::parse(args, form, zset)?;
        let found = zset.map(|zset| query.find(zset, query.places(zset))).unwrap_or_default();
        Ok(to_keep(&query, &found, stored, limits))
    };
    // A packed one is small.
    let is_small = |values: &[Option<ValueRef<'_>>]| matches!(values[0], Some(ValueRef::Packed(..)));
    let steps = |values: &[Option<ValueRef<'_>>]| match values[0].and_then(|value| value.collection::<Zset>()) {
        Some(zset) if !is_small(values) => query.steps(&query.places(zset)),
        _ => 0,
    };
    cx.make_and_store(args, source..source + 1, reply, steps, make, move |cx, args, reply, kept: Zset| {
        let len = kept.view().len() as i64;
        reply.int(len);
        let event = if form == Form::SearchStore { "geosearchstore" } else { "georadiusstore" };
        let effect = cx.key(args.get(destination)).replace_with(event, kept);
        cx.key(args.get(destination)).count_changes((len - 1).max(0));
        Ok(effect)
    })
}

fn give(query: &Query, found: &[Found<'_>], reply: &mut Reply<'_>) {
    let details = query.details;
    reply.array(found.len());
    for one in found {
        progress::count(1);
        if details.count() > 0 {
            reply.array(1 + details.count());
        }
        bulk_item(reply, one.member);
        if details.distance {
            reply_distance(reply, one.distance / query.unit);
        }
        if details.score {
            reply.int(one.score as i64);
        }
        if details.place {
            reply_place(reply, one.place);
        }
    }
}

fn to_keep(query: &Query, found: &[Found<'_>], stored: Stored, limits: ZsetLimits) -> Zset {
    let mut kept = Zset::default();
    let mut room: IntText = IntText::new();
    for one in found {
        progress::count(1);
        let score = match stored {
            Stored::Places => one.score,
            Stored::Distances => one.distance / query.unit,
        };
        kept.set(one.member.as_bytes(&mut room), score, limits);
    }
    kept
}
