//! ZRANK and ZREVRANK: where a member stands.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Zset;
use tenon_engine::store::types::zset::Direction;
use tenon_engine::wire::resp::Reply;

/// Gives a member's place from the lowest score on.
pub static ZRANK: Command = Command {
    name: "ZRANK",
    group: Group::SortedSet,
    syntax: "key member [WITHSCORE]",
    summary: "Returns the index of a member in a sorted set ordered by ascending scores.",
    complexity: "O(log(N))",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zrank),
};

/// Gives a member's place from the highest score on.
pub static ZREVRANK: Command = Command {
    name: "ZREVRANK",
    group: Group::SortedSet,
    syntax: "key member [WITHSCORE]",
    summary: "Returns the index of a member in a sorted set ordered by descending scores.",
    complexity: "O(log(N))",
    since: "2.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Key(zrevrank),
};

fn zrank(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_rank(cx, args, Direction::Ascending, reply)
}

fn zrevrank(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    give_rank(cx, args, Direction::Descending, reply)
}

fn give_rank(
    cx: &mut KeyCx<'_>,
    args: &Args<'_>,
    direction: Direction,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let with_score = match args.len() {
        3 => false,
        4 if args.is(3, "WITHSCORE") => true,
        4 => return Err(CmdError::Syntax),
        _ => {
            let name = if direction == Direction::Ascending { "zrank" } else { "zrevrank" };
            return Err(CmdError::Arity(name.to_owned()));
        }
    };
    let zset = cx.read_collection::<Zset>()?;
    match zset.and_then(|zset| Some((zset.rank(args.get(2))?, zset.len()))) {
        Some(((rank, score), len)) => {
            if with_score {
                reply.array(2);
            }
            reply.int(match direction {
                Direction::Ascending => rank,
                Direction::Descending => len - 1 - rank,
            } as i64);
            if with_score {
                reply.double(score);
            }
        }
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(Effect::Unchanged)
}
