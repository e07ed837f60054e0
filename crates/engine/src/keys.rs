//! Where a command's keys stand among its arguments and what is done to them, in Redis's terms
//! (<https://redis.io/docs/latest/develop/reference/key-specs/>). Knows no command.

use crate::args::Args;
use crate::command::{Command, Flags};
use crate::snapshot::CHANGES;

/// Which arguments are keys.
///
/// The short forms (`ONE` to `Counted`) say only where the keys stand; what is done to them follows from the command:
/// one that writes reads and updates each, any other reads each. Commands that do something else to a key, or not the
/// same to all, name their rows.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// None.
    None,
    /// Arguments `first`, `first + step`, ... up to `last`; a negative `last` counts from the end, -1 being the last.
    Range {
        /// Index of the first key.
        first: usize,
        /// Index of the last key.
        last: isize,
        /// Distance from one key to the next.
        step: usize,
    },
    /// Argument `count` says how many keys follow it, `step` arguments apart (`MSETEX numkeys key value ...`).
    Counted {
        /// Index of the argument that says how many.
        count: usize,
        /// Distance from one key to the next.
        step: usize,
    },
    /// Rows of keys, each with what is done to them.
    Specs(&'static [KeySpec]),
    /// Rows as far as they can be described, and a function that knows the keys of given arguments for sure: where a
    /// key's place (SORT's STORE) or what is done to it (SET with GET) depends on other arguments.
    Found {
        /// What COMMAND INFO says.
        specs: &'static [KeySpec],
        /// Gives the index of each key and what is done to it; the arguments are as many as the command takes.
        find: fn(&Args<'_>) -> Vec<(usize, KeyFlags)>,
    },
    /// No keys, but channels of pub/sub, which an access control list guards too.
    Channels {
        /// Index of the first channel.
        first: usize,
        /// Index of the last channel; a negative one counts from the end.
        last: isize,
        /// What the arguments are.
        kind: ChannelKind,
        /// What COMMAND INFO says: rows with `KeyFlags::NOT_KEY`, if channels go to cluster nodes as keys do.
        specs: &'static [KeySpec],
    },
}

/// What an argument that stands for channels is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// The name of one channel.
    Literal,
    /// A glob that many names may match.
    Pattern,
}

/// A row of keys: where it begins, how far it goes, and what is done to its keys.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// What Redis says of the row beside it; empty for nothing.
    pub notes: &'static str,
    /// What is done to the keys.
    pub flags: KeyFlags,
    /// Where the row begins.
    pub begin: Begin,
    /// How far it goes.
    pub find: Find,
}

/// Where a row of keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(usize),
    /// Behind this word, in any case. The search starts at argument `from` and goes on; at a negative one, counted from
    /// the end, and goes back. Without the word there is no such row.
    Keyword {
        /// The word.
        word: &'static str,
        /// Where the search starts.
        from: isize,
    },
    /// Nobody but `Keys::Found::find` can tell.
    Unknown,
}

/// How far a row of keys goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to a certain argument.
    Range {
        /// The last key, counted from the first; a negative one counts from the end of the arguments.
        last: isize,
        /// Distance from one key to the next.
        step: usize,
        /// With a negative `last`: only the first of so many parts of the arguments are keys (XREAD's half); 0 and 1
        /// for all of them.
        limit: usize,
    },
    /// As many as an argument says.
    Count {
        /// Index of that argument, counted from the beginning.
        count: usize,
        /// Index of the first key, counted from the beginning.
        first: usize,
        /// Distance from one key to the next.
        step: usize,
    },
    /// Nobody but `Keys::Found::find` can tell.
    Unknown,
}

/// What is done to a key, in Redis's terms; a set. Access control asks for the right to read where it has `ACCESS`, and
/// for the right to write where it has `UPDATE`, `INSERT` or `DELETE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    /// The value is read and written.
    pub const RW: KeyFlags = KeyFlags(1);
    /// The value is read, or something about it.
    pub const RO: KeyFlags = KeyFlags(1 << 1);
    /// The value is overwritten, whatever it was.
    pub const OW: KeyFlags = KeyFlags(1 << 2);
    /// The key is removed.
    pub const RM: KeyFlags = KeyFlags(1 << 3);
    /// The user's data is returned, copied or used.
    pub const ACCESS: KeyFlags = KeyFlags(1 << 4);
    /// Data is changed.
    pub const UPDATE: KeyFlags = KeyFlags(1 << 5);
    /// Data is added, and none is changed or removed.
    pub const INSERT: KeyFlags = KeyFlags(1 << 6);
    /// Data is removed on purpose.
    pub const DELETE: KeyFlags = KeyFlags(1 << 7);
    /// It is no key, but goes to a cluster node as if it were.
    pub const NOT_KEY: KeyFlags = KeyFlags(1 << 8);
    /// The row may lack keys: only `Keys::Found::find` knows all.
    pub const INCOMPLETE: KeyFlags = KeyFlags(1 << 9);
    /// What is done depends on other arguments: `Keys::Found::find` knows.
    pub const VARIABLE_FLAGS: KeyFlags = KeyFlags(1 << 10);

    /// Looks at the key, not at the data in it: EXISTS, STRLEN.
    pub const LOOK: KeyFlags = KeyFlags::RO;
    /// Reads the data: GET.
    pub const READ: KeyFlags = KeyFlags::RO.or(KeyFlags::ACCESS);
    /// Adds data: LPUSH.
    pub const ADD: KeyFlags = KeyFlags::RW.or(KeyFlags::INSERT);
    /// Changes data without giving it away: HSET.
    pub const CHANGE: KeyFlags = KeyFlags::RW.or(KeyFlags::UPDATE);
    /// Takes data away without giving it away: HDEL.
    pub const SHRINK: KeyFlags = KeyFlags::RW.or(KeyFlags::DELETE);
    /// Reads data and changes it: INCR.
    pub const READ_AND_CHANGE: KeyFlags = KeyFlags::RW.or(KeyFlags::ACCESS).or(KeyFlags::UPDATE);
    /// Reads data and takes it away: LPOP.
    pub const READ_AND_DELETE: KeyFlags = KeyFlags::RW.or(KeyFlags::ACCESS).or(KeyFlags::DELETE);
    /// Puts new data in the place of whatever there was: SETEX.
    pub const OVERWRITE: KeyFlags = KeyFlags::OW.or(KeyFlags::UPDATE);
    /// Puts data where there was none: SETNX.
    pub const CREATE: KeyFlags = KeyFlags::OW.or(KeyFlags::INSERT);
    /// Removes the key: DEL.
    pub const REMOVE: KeyFlags = KeyFlags::RM.or(KeyFlags::DELETE);

    /// Both sets together.
    pub const fn or(self, other: KeyFlags) -> KeyFlags {
        KeyFlags(self.0 | other.0)
    }

    /// Whether any of `other` is in the set.
    pub const fn any(self, other: KeyFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// The names that COMMAND INFO gives, in Redis's order.
    pub fn names(self) -> impl ExactSizeIterator<Item = &'static str> {
        const NAMES: [(KeyFlags, &str); 11] = [
            (KeyFlags::RO, "RO"),
            (KeyFlags::RW, "RW"),
            (KeyFlags::OW, "OW"),
            (KeyFlags::RM, "RM"),
            (KeyFlags::ACCESS, "access"),
            (KeyFlags::UPDATE, "update"),
            (KeyFlags::INSERT, "insert"),
            (KeyFlags::DELETE, "delete"),
            (KeyFlags::NOT_KEY, "not_key"),
            (KeyFlags::INCOMPLETE, "incomplete"),
            (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
        ];
        let names: Vec<_> = NAMES.iter().filter(|(flag, _)| self.any(*flag)).map(|(_, name)| *name).collect();
        names.into_iter()
    }
}

impl KeySpec {
    const fn new(flags: KeyFlags, begin: Begin, find: Find) -> KeySpec {
        KeySpec { notes: "", flags, begin, find }
    }

    /// The one key at argument `index`.
    pub const fn at(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Index(index), Find::Range { last: 0, step: 1, limit: 0 })
    }

    /// All arguments from `index` on.
    pub const fn rest(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Index(index), Find::Range { last: -1, step: 1, limit: 0 })
    }

    /// All arguments from `index` on but the last: BLPOP.
    pub const fn all_but_last(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Index(index), Find::Range { last: -2, step: 1, limit: 0 })
    }

    /// Every other argument from `index` on: MSET.
    pub const fn pairs(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Index(index), Find::Range { last: -1, step: 2, limit: 0 })
    }

    /// As many keys as argument `index` says, right behind it: ZUNION.
    pub const fn counted(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Index(index), Find::Count { count: 0, first: 1, step: 1 })
    }

    /// The one key behind a word, which is looked for from argument `from` on: GEORADIUS's STORE.
    pub const fn behind(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Keyword { word, from }, Find::Range { last: 0, step: 1, limit: 0 })
    }

    /// All arguments behind a word, which is looked for from argument `from` on: MIGRATE.
    pub const fn behind_to_end(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Keyword { word, from }, Find::Range { last: -1, step: 1, limit: 0 })
    }

    /// Of the arguments behind a word, which is looked for from argument `from` on, the first half: XREAD.
    pub const fn half_behind(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Keyword { word, from }, Find::Range { last: -1, step: 1, limit: 2 })
    }

    /// A row that only `Keys::Found::find` can find.
    pub const fn unknown(flags: KeyFlags) -> KeySpec {
        KeySpec::new(flags, Begin::Unknown, Find::Unknown)
    }

    /// The same row with Redis's remark on it.
    pub const fn notes(self, notes: &'static str) -> KeySpec {
        KeySpec { notes, ..self }
    }

    /// Whether the row begins and ends at fixed places.
    const fn is_fixed(&self) -> bool {
        matches!((self.begin, self.find), (Begin::Index(_), Find::Range { .. }))
    }

    /// Where the row is, if it is one key in a fixed place and the next row another one right behind it.
    fn right_before(&self, next: &KeySpec) -> Option<usize> {
        let (Begin::Index(this), Begin::Index(other)) = (self.begin, next.begin) else { return None };
        let (Find::Range { last: 0, .. }, Find::Range { last: 0, .. }) = (self.find, next.find) else { return None };
        let are_keys = !self.flags.any(KeyFlags::NOT_KEY) && !next.flags.any(KeyFlags::NOT_KEY);
        (this + 1 == other && are_keys).then_some(this)
    }

    /// The keys' indexes; `None` where the arguments do not say.
    fn row(&self, args: &Args<'_>) -> Option<Row> {
        let first = match self.begin {
            Begin::Index(index) => index,
            Begin::Keyword { word, from } => match behind_word(args, word, from) {
                Some(index) => index,
                None => return Some(Row::EMPTY),
            },
            Begin::Unknown => return None,
        };
        match self.find {
            Find::Range { last, step, limit } => {
                let last = match (last, limit) {
                    (0.., _) => first as isize + last,
                    (_, 0 | 1) => args.len() as isize + last,
                    _ => first as isize + (args.len().saturating_sub(first) / limit) as isize + last,
                };
                Some(Row { first, end: (last + 1).clamp(0, args.len() as isize) as usize, step })
            }
            Find::Count { count, first: behind, step } => {
                let text = args.try_get(first + count)?;
                let keys = std::str::from_utf8(text).ok()?.parse::<usize>().ok()?;
                let first = first + behind;
                let end = first.checked_add(keys.checked_mul(step)?)?;
                (end <= args.len()).then_some(Row { first, end, step })
            }
            Find::Unknown => None,
        }
    }
}

/// The index behind `word`, as Redis searches it: not in the first argument, nor in the last.
fn behind_word(args: &Args<'_>, word: &str, from: isize) -> Option<usize> {
    let is_word = |at: &usize| args.is(*at, word);
    let found = if from >= 0 {
        (from as usize..args.len().saturating_sub(1)).find(is_word)
    } else {
        (2..=args.len().checked_sub(from.unsigned_abs())?).rev().find(is_word)
    };
    found.map(|at| at + 1)
}

/// A row of keys in given arguments.
#[derive(Clone, Copy)]
struct Row {
    first: usize,
    end: usize,
    step: usize,
}

impl Row {
    const EMPTY: Row = Row { first: 0, end: 0, step: 1 };

    fn indexes(self) -> std::iter::StepBy<std::ops::Range<usize>> {
        (self.first..self.end).step_by(self.step)
    }
}

impl Keys {
    /// The first argument.
    pub const ONE: Keys = Keys::Range { first: 1, last: 1, step: 1 };
    /// The first two arguments.
    pub const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };
    /// All arguments.
    pub const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
    /// Every other argument.
    pub const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };
    /// The argument behind a subcommand's name.
    pub const SUBCOMMAND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

    /// Which argument is the key, where there is one in a fixed place.
    pub const fn single(&self) -> Option<usize> {
        match *self {
            Keys::Range { first, last, .. } if first as isize == last => Some(first),
            Keys::Specs([spec]) | Keys::Found { specs: [spec], .. } => match (spec.begin, spec.find) {
                (Begin::Index(index), Find::Range { last: 0, .. }) => Some(index),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a command with such keys has any.
    pub fn is_none(&self) -> bool {
        match self {
            Keys::None | Keys::Channels { .. } => true,
            Keys::Specs(specs) => specs.iter().all(|spec| spec.flags.any(KeyFlags::NOT_KEY)),
            Keys::Range { .. } | Keys::Counted { .. } | Keys::Found { .. } => false,
        }
    }

    /// The row of a short form.
    fn short(&self, flags: KeyFlags) -> Option<KeySpec> {
        match *self {
            Keys::Range { first, last, step } => {
                let last = if last < 0 { last } else { last - first as isize };
                Some(KeySpec::new(flags, Begin::Index(first), Find::Range { last, step, limit: 0 }))
            }
            Keys::Counted { count, step } => {
                Some(KeySpec::new(flags, Begin::Index(count), Find::Count { count: 0, first: 1, step }))
            }
            _ => None,
        }
    }

    /// The indexes of the keys among `args`. Arguments that do not say which are keys, by a count that is no sensible
    /// number say, have none: the handler refuses them.
    pub fn indexes<'a>(&self, args: &Args<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let args = *args;
        let (row, specs, found): (_, &[KeySpec], _) = match (*self, self.single()) {
            (_, Some(first)) => (Row { first, end: (first + 1).min(args.len()), step: 1 }, &[], Vec::new()),
            // One row that goes to the end, as DEL's, is no more than a short form.
            (Keys::Specs([spec]), _) if !spec.flags.any(KeyFlags::NOT_KEY) => {
                (spec.row(&args).unwrap_or(Row::EMPTY), &[], Vec::new())
            }
            // Nor are two keys one behind the other, as RENAME's.
            (Keys::Specs([one, other]), _) if let Some(first) = one.right_before(other) => {
                (Row { first, end: (first + 2).min(args.len()), step: 1 }, &[], Vec::new())
            }
            (Keys::Specs(specs), _) => match specs.iter().any(|spec| spec.row(&args).is_none()) {
                true => (Row::EMPTY, &[], Vec::new()),
                false => (Row::EMPTY, specs, Vec::new()),
            },
            (Keys::Found { find, .. }, _) => (Row::EMPTY, &[], find(&args)),
            (Keys::None | Keys::Channels { .. }, _) => (Row::EMPTY, &[], Vec::new()),
            (short @ (Keys::Range { .. } | Keys::Counted { .. }), _) => {
                let spec = short.short(KeyFlags::default());
                (spec.and_then(|spec| spec.row(&args)).unwrap_or(Row::EMPTY), &[], Vec::new())
            }
        };
        let keys = specs.iter().filter(|spec| !spec.flags.any(KeyFlags::NOT_KEY));
        let rows = keys.filter_map(move |spec| spec.row(&args)).flat_map(Row::indexes);
        row.indexes().chain(rows).chain(found.into_iter().map(|(index, _)| index))
    }

    /// The indexes of the channels among `args` and what they are, if there are any.
    pub fn channels(&self, args: &Args<'_>) -> Option<(impl Iterator<Item = usize> + use<>, ChannelKind)> {
        let Keys::Channels { first, last, kind, .. } = *self else { return None };
        let last = if last < 0 { args.len() as isize + last } else { last };
        Some((first..(last + 1).clamp(0, args.len() as isize) as usize, kind))
    }

    /// First key, last key and step as COMMAND INFO says them: of the rows in fixed places, as far as they follow one
    /// another.
    pub fn triple(&self) -> (i64, i64, i64) {
        let short;
        let specs = match self {
            Keys::None => return (0, 0, 0),
            Keys::Specs(specs) | Keys::Found { specs, .. } | Keys::Channels { specs, .. } => *specs,
            Keys::Range { .. } | Keys::Counted { .. } => {
                short = self.short(KeyFlags::default());
                short.as_slice()
            }
        };
        let mut triple: Option<(i64, i64, i64)> = None;
        for spec in specs {
            let (Begin::Index(first), Find::Range { last, step, .. }) = (spec.begin, spec.find) else { continue };
            let (first, step) = (first as i64, step as i64);
            let last = if last < 0 { last as i64 } else { last as i64 + first };
            triple = match triple {
                None => Some((first, last, step)),
                Some((start, before, 1)) if step == 1 && before == first - 1 => Some((start, last, 1)),
                Some(as_before) => return as_before,
            };
        }
        triple.unwrap_or((0, 0, 0))
    }
}

impl Command {
    /// What is done to the keys where the declaration does not say.
    fn usual_key_flags(&self) -> KeyFlags {
        if self.flags.any(Flags::WRITE) { KeyFlags::READ_AND_CHANGE } else { KeyFlags::READ }
    }

    /// The rows of keys, as COMMAND INFO describes them.
    pub fn key_specs(&self) -> Vec<KeySpec> {
        match self.keys {
            Keys::Specs(specs) | Keys::Found { specs, .. } | Keys::Channels { specs, .. } => specs.to_vec(),
            Keys::None | Keys::Range { .. } | Keys::Counted { .. } => {
                self.keys.short(self.usual_key_flags()).into_iter().collect()
            }
        }
    }

    /// Whether keys stand in places that the first key, last key and step of COMMAND INFO cannot tell.
    pub fn has_movable_keys(&self) -> bool {
        self.key_specs().iter().any(|spec| !spec.is_fixed())
    }

    /// The index of each key among `args` and what is done to it.
    pub fn keys_of(&self, args: &Args<'_>) -> Vec<(usize, KeyFlags)> {
        if let Keys::Found { find, .. } = self.keys {
            return find(args);
        }
        let mut keys = Vec::new();
        for spec in self.key_specs() {
            let Some(row) = spec.row(args) else { return Vec::new() };
            if !spec.flags.any(KeyFlags::NOT_KEY) {
                keys.extend(row.indexes().map(|index| (index, spec.flags)));
            }
        }
        keys
    }

    /// The index of each key among `args` and what may become of its value.
    pub(crate) fn fates_of(&self, args: &Args<'_>) -> Vec<(usize, Fate)> {
        let keys = self.keys_of(args);
        let writes = self.flags.any(CHANGES);
        // Where it can write to no other key, it changes what it reads: XREADGROUP.
        let is_written = |flags: KeyFlags| flags.any(KeyFlags::RW.or(KeyFlags::OW).or(KeyFlags::RM));
        let writes_elsewhere = self.key_specs().iter().any(|spec| is_written(spec.flags));
        let fate = |flags: KeyFlags| match () {
            () if !writes => Fate::Stays,
            () if flags.any(KeyFlags::RW) => Fate::Changes,
            () if is_written(flags) => Fate::Goes,
            () if writes_elsewhere => Fate::Stays,
            () => Fate::Changes,
        };
        keys.into_iter().map(|(index, flags)| (index, fate(flags))).collect()
    }
}

/// What may become of a key's value by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is read at most, but for members that are due.
    Stays,
    /// It is taken away, or another one put in its place.
    Goes,
    /// It is changed where it is.
    Changes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;

    fn indexes(keys: Keys, words: &str) -> Vec<usize> {
        let args = OwnedArgs::new(words.split(' '));
        keys.indexes(&args.view()).collect()
    }

    fn specs(specs: &'static [KeySpec], words: &str) -> Vec<usize> {
        indexes(Keys::Specs(specs), words)
    }

    #[test]
    fn short_forms_name_their_keys() {
        assert_eq!(indexes(Keys::ONE, "GET a b"), [1]);
        assert_eq!(indexes(Keys::TWO, "COPY a b c"), [1, 2]);
        assert_eq!(indexes(Keys::ALL, "DEL a b c"), [1, 2, 3]);
        assert_eq!(indexes(Keys::PAIRS, "MSET a 1 b 2"), [1, 3]);
        assert_eq!(indexes(Keys::SUBCOMMAND, "OBJECT FREQ a"), [2]);
        assert_eq!(indexes(Keys::ONE, "GET"), []);
        for (words, expected) in [
            ("MSETEX 2 a 1 b 2", vec![2, 4]),
            ("MSETEX 1 a 1 b 2", vec![2]),
            ("MSETEX 3 a 1 b 2", vec![]),
            ("MSETEX -1 a 1", vec![]),
            ("MSETEX x a 1", vec![]),
            ("MSETEX 18446744073709551615 a 1", vec![]),
        ] {
            assert_eq!(indexes(Keys::Counted { count: 1, step: 2 }, words), expected, "{words}");
        }
    }

    #[test]
    fn rows_name_their_keys() {
        static STORE: [KeySpec; 2] = [KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::counted(2, KeyFlags::READ)];
        assert_eq!(specs(&STORE, "ZUNIONSTORE d 2 a b WEIGHTS 1 2"), [1, 3, 4]);
        assert_eq!(specs(&STORE, "ZUNIONSTORE d 3 a b"), [], "a count too large leaves nothing certain");
        static MOVE: [KeySpec; 2] = [KeySpec::at(1, KeyFlags::READ_AND_DELETE), KeySpec::at(2, KeyFlags::ADD)];
        assert_eq!(specs(&MOVE, "SMOVE a b c"), [1, 2]);
        assert_eq!((specs(&MOVE, "SMOVE a"), specs(&MOVE, "SMOVE")), (vec![1], vec![]));
        static APART: [KeySpec; 2] = [KeySpec::at(1, KeyFlags::READ), KeySpec::at(3, KeyFlags::READ)];
        assert_eq!(specs(&APART, "X a b c"), [1, 3]);
        static SHARD: [KeySpec; 2] = [KeySpec::at(1, KeyFlags::NOT_KEY), KeySpec::at(2, KeyFlags::READ)];
        assert_eq!(specs(&SHARD, "X a b c"), [2]);
        static POP: [KeySpec; 1] = [KeySpec::all_but_last(1, KeyFlags::READ_AND_DELETE)];
        assert_eq!(specs(&POP, "BLPOP a b c 0"), [1, 2, 3]);
        static READ: [KeySpec; 1] = [KeySpec::half_behind("STREAMS", 1, KeyFlags::READ)];
        assert_eq!(specs(&READ, "XREAD COUNT 1 streams a b 0 0"), [4, 5]);
        assert_eq!(specs(&READ, "XREAD COUNT 1 streams a b 0"), [4]);
        assert_eq!(specs(&READ, "XREAD COUNT 1 a"), []);
        assert_eq!(specs(&READ, "XREAD COUNT STREAMS"), []);
        static RADIUS: [KeySpec; 3] = [
            KeySpec::at(1, KeyFlags::READ),
            KeySpec::behind("STORE", 6, KeyFlags::OVERWRITE),
            KeySpec::behind("STOREDIST", 6, KeyFlags::OVERWRITE),
        ];
        assert_eq!(specs(&RADIUS, "GEORADIUS k 0 0 1 m STOREDIST d ASC"), [1, 7]);
        assert_eq!(specs(&RADIUS, "GEORADIUS k 0 0 1 m"), [1]);
        static BACK: [KeySpec; 1] = [KeySpec::new(
            KeyFlags::RM,
            Begin::Keyword { word: "KEYS", from: -2 },
            Find::Range { last: -1, step: 1, limit: 0 },
        )];
        assert_eq!(specs(&BACK, "MIGRATE h p KEYS 0 1 keys a b"), [7, 8]);
        assert_eq!(specs(&BACK, "KEYS"), []);
        static CHANNEL: [KeySpec; 1] = [KeySpec::rest(1, KeyFlags::NOT_KEY)];
        assert_eq!(specs(&CHANNEL, "SUNSUBSCRIBE a"), []);
        static NOBODY: [KeySpec; 2] = [KeySpec::at(1, KeyFlags::READ), KeySpec::unknown(KeyFlags::READ)];
        assert_eq!(specs(&NOBODY, "SORT a"), []);
    }

    #[test]
    fn a_function_has_the_last_word() {
        let keys =
            Keys::Found { specs: const { &[KeySpec::unknown(KeyFlags::READ)] }, find: |_| vec![(2, KeyFlags::READ)] };
        assert_eq!((indexes(keys, "X a b c"), keys.single()), (vec![2], None));
        let keys =
            Keys::Found { specs: const { &[KeySpec::at(1, KeyFlags::READ)] }, find: |_| panic!("the place is fixed") };
        assert_eq!((indexes(keys, "X a b c"), keys.single()), (vec![1], Some(1)));
    }

    #[test]
    fn triples_are_those_of_redis() {
        assert_eq!(Keys::None.triple(), (0, 0, 0));
        assert_eq!(Keys::ONE.triple(), (1, 1, 1));
        assert_eq!(Keys::PAIRS.triple(), (1, -1, 2));
        assert_eq!(Keys::Counted { count: 1, step: 1 }.triple(), (0, 0, 0));
        let of = |specs: &'static [KeySpec]| Keys::Specs(specs).triple();
        assert_eq!(of(const { &[KeySpec::at(1, KeyFlags::READ), KeySpec::at(2, KeyFlags::ADD)] }), (1, 2, 1));
        assert_eq!(of(const { &[KeySpec::at(2, KeyFlags::OVERWRITE), KeySpec::rest(3, KeyFlags::READ)] }), (2, -1, 1));
        assert_eq!(
            of(const { &[KeySpec::at(1, KeyFlags::OVERWRITE), KeySpec::counted(2, KeyFlags::READ)] }),
            (1, 1, 1)
        );
        assert_eq!(of(const { &[KeySpec::half_behind("STREAMS", 1, KeyFlags::READ)] }), (0, 0, 0));
    }
}
