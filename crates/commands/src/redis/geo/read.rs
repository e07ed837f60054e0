//! GEODIST, GEOHASH and GEOPOS: where members are.

use super::unit::{parse_unit, reply_distance, reply_place};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::geo::Place;
use tenon_engine::store::types::{Zset, ZsetRef};
use tenon_engine::wire::resp::Reply;

/// Tells how far apart two members are.
pub static GEODIST: Command = Command {
    name: "GEODIST",
    group: Group::Geo,
    syntax: "key member1 member2 [M | KM | FT | MI]",
    summary: "Returns the distance between two members of a geospatial index.",
    complexity: "O(1)",
    since: "3.2.0",
    arity: Arity::AtLeast(4),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(geodist),
};

/// Gives the geohashes of members, as others know them.
pub static GEOHASH: Command = Command {
    name: "GEOHASH",
    group: Group::Geo,
    syntax: "key [member [member ...]]",
    summary: "Returns members from a geospatial index as geohash strings.",
    complexity: "O(1) for each member requested.",
    since: "3.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(geohash),
};

/// Gives the longitudes and latitudes of members.
pub static GEOPOS: Command = Command {
    name: "GEOPOS",
    group: Group::Geo,
    syntax: "key [member [member ...]]",
    summary: "Returns the longitude and latitude of members from a geospatial index.",
    complexity: "O(1) for each member requested.",
    since: "3.2.0",
    arity: Arity::AtLeast(2),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(geopos),
};

/// Where a member is.
pub(super) fn place_of(zset: ZsetRef<'_>, member: &[u8]) -> Option<Place> {
    zset.score(member).map(Place::of_score)
}

fn geodist(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let metres = match args.len() {
        4 => 1.0,
        5 => parse_unit(args.get(4))?,
        _ => return Err(CmdError::Syntax),
    };
    let places = cx
        .read_collection::<Zset>()?
        .and_then(|zset| Some((place_of(zset, args.get(2))?, place_of(zset, args.get(3))?)));
    match places {
        Some((one, other)) => reply_distance(reply, one.distance(other) / metres),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}

fn geohash(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let zset = cx.read_collection::<Zset>()?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        match zset.and_then(|zset| place_of(zset, member)) {
            Some(place) => reply.bulk(&place.geohash()),
            None => reply.null(),
        }
    }
    Ok(Effect::Unchanged)
}

fn geopos(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let zset = cx.read_collection::<Zset>()?;
    reply.array(args.len() - 2);
    for member in args.from(2) {
        match zset.and_then(|zset| place_of(zset, member)) {
            Some(place) => reply_place(reply, place),
            None => reply.null_array(),
        }
    }
    Ok(Effect::Unchanged)
}
