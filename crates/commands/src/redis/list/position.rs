//! LPOS: where in a list elements are that are equal to another.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeyCx;
use tenon_engine::ds::packed::Item;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::List;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Finds elements.
pub static LPOS: Command = Command {
    name: "LPOS",
    group: Group::List,
    syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
    summary: "Returns the index of matching elements in a list.",
    complexity: "O(N) where N is the number of elements in the list, for the average case. When searching for elements \
                 near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in \
                 constant time.",
    since: "6.0.6",
    arity: Arity::AtLeast(3),
    keys: Keys::ONE,
    flags: Flags::READONLY,
    run: Run::Key(lpos),
};

/// What is looked for: not the element, but which of those that are equal to it, and where.
struct Search {
    /// Matches that are passed over.
    skipped: u64,
    /// Whether the search goes from the last element to the first.
    backward: bool,
    /// The most matches wanted, as an array; without it one is wanted, alone.
    count: Option<usize>,
    /// The most elements that are compared.
    compared_max: usize,
}

impl Search {
    fn parse(args: &Args<'_>) -> Result<Search, CmdError> {
        let mut search = Search { skipped: 0, backward: false, count: None, compared_max: usize::MAX };
        let natural = |index: usize, error: &'static str| {
            let number = parse_i64(args.get(index)).and_then(|number| usize::try_from(number).ok());
            let all = |number: usize| if number == 0 { usize::MAX } else { number };
            number.map(all).ok_or(CmdError::text(error))
        };
        for at in (3..args.len()).step_by(2) {
            if at + 1 == args.len() {
                return Err(CmdError::Syntax);
            }
            if args.is(at, "RANK") {
                let rank = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                match rank {
                    i64::MIN => return Err(RANK_OUT_OF_RANGE),
                    0 => return Err(RANK_ZERO),
                    _ => {}
                }
                search.backward = rank < 0;
                search.skipped = rank.unsigned_abs() - 1;
            } else if args.is(at, "COUNT") {
                search.count = Some(natural(at + 1, "ERR COUNT can't be negative")?);
            } else if args.is(at, "MAXLEN") {
                search.compared_max = natural(at + 1, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CmdError::Syntax);
            }
        }
        Ok(search)
    }
}

const RANK_OUT_OF_RANGE: CmdError =
    CmdError::text("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
const RANK_ZERO: CmdError = CmdError::text(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
);

fn lpos(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let wanted = Item::of(args.get(2));
    let search = Search::parse(args)?;
    let Some(list) = cx.read_collection::<List>()? else {
        match search.count {
            Some(_) => reply.array(0),
            None => reply.null(),
        }
        return Ok(Effect::Unchanged);
    };
    let len = list.len();
    let mut items = if search.backward { list.iter_back_from(len) } else { list.iter_from(0) };
    let mut compared = 0;
    let matches = std::iter::from_fn(|| {
        let at = compared + items.find_next(wanted, search.compared_max - compared)?;
        compared = at + 1;
        Some(if search.backward { len - 1 - at } else { at })
    });
    let mut matches = matches.skip(usize::try_from(search.skipped).unwrap_or(usize::MAX));
    match search.count {
        Some(count) => {
            let array = reply.array_deferred();
            let mut found = 0;
            for index in matches.take(count) {
                reply.int(index as i64);
                found += 1;
            }
            reply.finish(array, found);
        }
        None => match matches.next() {
            Some(index) => reply.int(index as i64),
            None => reply.null(),
        },
    }
    Ok(Effect::Unchanged)
}
