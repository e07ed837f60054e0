//! ZADD and ZINCRBY: members and their scores.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeyCx};
use tenon_engine::double::parse_double;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::Zset;
use tenon_engine::wire::resp::Reply;

const NOT_A_NUMBER: CmdError = CmdError::text("ERR resulting score is not a number (NaN)");

/// Adds members or changes their scores.
pub static ZADD: Command = Command {
    name: "ZADD",
    group: Group::SortedSet,
    syntax: "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
    summary: "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
    complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    since: "1.2.0",
    arity: Arity::AtLeast(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(zadd),
};

/// Adds to a member's score.
pub static ZINCRBY: Command = Command {
    name: "ZINCRBY",
    group: Group::SortedSet,
    syntax: "key increment member",
    summary: "Increments the score of a member in a sorted set.",
    complexity: "O(log(N)) where N is the number of elements in the sorted set.",
    since: "1.2.0",
    arity: Arity::Exactly(4),
    keys: Keys::Specs(&[KeySpec::at(1, KeyFlags::READ_AND_CHANGE)]),
    flags: Flags::WRITE.or(Flags::DENY_OOM).or(Flags::FAST),
    run: Run::Key(zincrby),
};

/// Which members are touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum Touch {
    All,
    /// Those that are not there: NX.
    New,
    /// Those that are there: XX.
    Existing,
}

/// Which new scores take the place of others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replace {
    Always,
    /// Higher ones: GT.
    WithHigher,
    /// Lower ones: LT.
    WithLower,
}

/// How a member's score comes about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Set,
    /// INCR: it is added to the one before.
    Add,
}

/// What the reply counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum Counted {
    Added,
    /// CH.
    Changed,
}

pub(in crate::redis) struct Options {
    touch: Touch,
    replace: Replace,
    arithmetic: Arithmetic,
    counted: Counted,
    /// Where scores and members begin.
    pairs: usize,
}

impl Options {
    /// The options of GEOADD, which sets scores.
    pub(in crate::redis) fn of_places(touch: Touch, counted: Counted) -> Options {
        Options { touch, replace: Replace::Always, arithmetic: Arithmetic::Set, counted, pairs: 0 }
    }

    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let (mut new, mut existing, mut higher, mut lower) = (false, false, false, false);
        let (mut arithmetic, mut counted) = (Arithmetic::Set, Counted::Added);
        let mut at = 2;
        while at < args.len() {
            match () {
                () if args.is(at, "NX") => new = true,
                () if args.is(at, "XX") => existing = true,
                () if args.is(at, "GT") => higher = true,
                () if args.is(at, "LT") => lower = true,
                () if args.is(at, "CH") => counted = Counted::Changed,
                () if args.is(at, "INCR") => arithmetic = Arithmetic::Add,
                () => break,
            }
            at += 1;
        }
        let pairs = args.len() - at;
        if pairs == 0 || pairs % 2 == 1 {
            return Err(CmdError::Syntax);
        }
        let touch = match (new, existing) {
            (true, true) => {
                return Err(CmdError::text("ERR XX and NX options at the same time are not compatible"));
            }
            (true, false) => Touch::New,
            (false, true) => Touch::Existing,
            (false, false) => Touch::All,
        };
        let replace = match (higher, lower) {
            (false, false) => Replace::Always,
            (true, false) if !new => Replace::WithHigher,
            (false, true) if !new => Replace::WithLower,
            _ => {
                return Err(CmdError::text("ERR GT, LT, and/or NX options at the same time are not compatible"));
            }
        };
        if arithmetic == Arithmetic::Add && pairs > 2 {
            return Err(CmdError::text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(Options { touch, replace, arithmetic, counted, pairs: at })
    }
}

/// What became of a member.
#[derive(Clone, Copy)]
enum Outcome {
    /// The options kept it as it was.
    Untouched,
    Added(f64),
    Changed(f64),
    /// It has this score as before.
    Same(f64),
}

impl Options {
    /// What a member comes to that has a score before, perhaps, and is given another.
    fn outcome(&self, before: Option<f64>, given: f64) -> Result<Outcome, CmdError> {
        let Some(before) = before else {
            return Ok(if self.touch == Touch::Existing { Outcome::Untouched } else { Outcome::Added(given) });
        };
        if self.touch == Touch::New {
            return Ok(Outcome::Untouched);
        }
        let score = match self.arithmetic {
            Arithmetic::Set => given,
            Arithmetic::Add => before + given,
        };
        if score.is_nan() {
            return Err(NOT_A_NUMBER);
        }
        let is_kept = match self.replace {
            Replace::Always => false,
            Replace::WithHigher => score <= before,
            Replace::WithLower => score >= before,
        };
        Ok(match () {
            () if is_kept => Outcome::Untouched,
            () if score == before => Outcome::Same(score),
            () => Outcome::Changed(score),
        })
    }
}

fn zadd(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options::parse(args)?;
    for at in (options.pairs..args.len()).step_by(2) {
        // Read once more below: keeping them would cost an allocation.
        parse_double(args.get(at)).ok_or(CmdError::NotFloat)?;
    }
    add(cx, pairs(args, options.pairs), &options, reply)
}

/// Scores, which are known to be numbers, and members from an argument on.
fn pairs<'a>(args: &Args<'a>, first: usize) -> impl Iterator<Item = (f64, &'a [u8])> {
    (first..args.len()).step_by(2).map(|at| {
        let score = parse_double(args.get(at)).expect("it was read before");
        (score, args.get(at + 1))
    })
}

fn zincrby(cx: &mut KeyCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    let options = Options {
        touch: Touch::All,
        replace: Replace::Always,
        arithmetic: Arithmetic::Add,
        counted: Counted::Added,
        pairs: 2,
    };
    parse_double(args.get(2)).ok_or(CmdError::NotFloat)?;
    add(cx, pairs(args, 2), &options, reply)
}

/// Adds scores and members as the options say.
pub(in crate::redis) fn add<'a>(
    cx: &mut KeyCx<'_>,
    pairs: impl Iterator<Item = (f64, &'a [u8])>,
    options: &Options,
    reply: &mut Reply<'_>,
) -> Result<Effect, CmdError> {
    let limits = cx.engine().config.zset_limits();
    let event = match options.arithmetic {
        Arithmetic::Set => "zadd",
        Arithmetic::Add => "zincr",
    };
    let (mut added, mut changed, mut last) = (0, 0, None);
    let ((), effect) = cx.update(|zset: &mut Zset| {
        for (given, member) in pairs {
            let mut error = None;
            zset.update(member, limits, |before| {
                let outcome = options.outcome(before, given).unwrap_or_else(|nan| {
                    error = Some(nan);
                    Outcome::Untouched
                });
                last = match outcome {
                    Outcome::Untouched => None,
                    Outcome::Added(score) | Outcome::Changed(score) | Outcome::Same(score) => Some(score),
                };
                added += i64::from(matches!(outcome, Outcome::Added(_)));
                changed += i64::from(matches!(outcome, Outcome::Changed(_)));
                if let Outcome::Same(_) = outcome { None } else { last }
            });
            // Only with INCR, which takes one member, so nothing has changed.
            if let Some(error) = error {
                return Err(error);
            }
        }
        Ok(Change::when(added + changed > 0, event, ()).times((added + changed) as usize))
    })?;
    match (options.arithmetic, last) {
        (Arithmetic::Set, _) => reply.int(if options.counted == Counted::Changed { added + changed } else { added }),
        (Arithmetic::Add, Some(score)) => reply.double(score),
        (Arithmetic::Add, None) => reply.null(),
    }
    Ok(effect)
}
