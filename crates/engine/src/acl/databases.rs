//! Which databases a command is about, for users who may not use all of them. Knows no user.

use crate::args::Args;
use crate::command::Command;
use tenon_wire::resp::number::parse_i64;

/// The database that a client has selected, and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Databases {
    /// The selected one.
    pub selected: usize,
    /// How many there are.
    pub count: usize,
}

/// The databases that a command is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Whether the selected one is among them.
    pub(super) selected: bool,
    /// Whether all there are.
    pub(super) all: bool,
    /// Those that arguments name, with the argument of each.
    pub(super) named: Vec<(usize, usize)>,
}

impl Touched {
    /// The databases that a command is about with these arguments. Where one is named that there is not, or the arguments
    /// are wrong, none is: the command itself refuses that.
    pub(super) fn by(command: &Command, args: &Args<'_>, count: usize) -> Touched {
        let database = |at: usize| usize::try_from(args.try_get(at).and_then(parse_i64)?).ok();
        let named = |places: &[usize]| -> Vec<(usize, usize)> {
            let known = places.iter().map(|&at| Some((at, database(at).filter(|&database| database < count)?)));
            known.collect::<Option<_>>().unwrap_or_default()
        };
        match command.name {
            "SELECT" => Touched { named: named(&[1]), ..Touched::default() },
            "SWAPDB" => Touched { named: named(&[1, 2]), ..Touched::default() },
            "MOVE" => Touched { selected: true, named: named(&[2]), ..Touched::default() },
            "COPY" => Touched { selected: true, named: named(&copied_to(args)), ..Touched::default() },
            // They empty all databases, tell the names of keys, whatever database those are in, and reload all of them.
            "FLUSHALL" | "MEMORY LARGEST" | "HOTKEYS GET" | "DEBUG" => Touched { all: true, ..Touched::default() },
            _ => Touched { selected: command.touches_keyspace(), ..Touched::default() },
        }
    }
}

/// The arguments of COPY that are databases.
fn copied_to(args: &Args<'_>) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "DB") {
            places.push(at + 1);
            at += 2;
        } else if args.is(at, "REPLACE") {
            at += 1;
        } else {
            return Vec::new();
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;

    #[test]
    fn copy_names_databases_among_its_options() {
        for (words, places) in [
            ("COPY a b", vec![]),
            ("COPY a b DB 2", vec![4]),
            ("COPY a b replace db 2", vec![5]),
            ("COPY DB 1 DB 2 DB 3", vec![4, 6]),
            ("COPY a b x DB 2", vec![]),
            ("COPY a b DB", vec![4]),
        ] {
            assert_eq!(copied_to(&OwnedArgs::new(words.split(' ')).view()), places, "{words}");
        }
    }
}
