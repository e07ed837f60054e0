//! GEOADD: members and their places.

use super::unit::parse_place;
use crate::redis::zset::add::{Counted, Options, Touch, add};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Adds members with their places.
pub static GEOADD: Command = Command {
    name: "GEOADD",
    group: Group::Geo,
    syntax: "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
    summary: "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
    complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    since: "3.2.0",
    arity: Arity::AtLeast(5),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM),
    run: Run::Key(geoadd),
};

fn geoadd(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let (mut new, mut existing) = (false, false);
    let mut counted = Counted::Added;
    let mut first = 2;
    while first < args.len() {
        match () {
            () if args.is(first, "NX") => new = true,
            () if args.is(first, "XX") => existing = true,
            () if args.is(first, "CH") => counted = Counted::Changed,
            () => break,
        }
        first += 1;
    }
    let places = first..args.len();
    if places.is_empty() || places.len() % 3 != 0 || (new && existing) {
        return Err(CmdError::Syntax);
    }
    let touch = match (new, existing) {
        (true, _) => Touch::New,
        (_, true) => Touch::Existing,
        _ => Touch::All,
    };
    let mut pairs = Vec::with_capacity(places.len() / 3);
    for at in places.step_by(3) {
        pairs.push((parse_place(args.get(at), args.get(at + 1))?.score(), args.get(at + 2)));
    }
    add(cx, pairs.into_iter(), &Options::of_places(touch, counted), reply)
}
