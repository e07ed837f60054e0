//! The table of commands and the search for a name in it.

use crate::args::Args;
use crate::command::{Arity, Command, Flags, Run};
use bytes::Bytes;
use std::fmt;
use std::sync::OnceLock;
use tenon_wire::resp::Proto;

/// A command found in the table.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// The command.
    pub command: &'static Command,
    /// Its number, by which statistics are kept.
    pub number: u16,
    /// Which argument is the key, where it is a command on one key, or a call with one.
    pub key: u16,
    /// Whether a call takes so little time that it shares a reading of the clock with its neighbours.
    pub(crate) is_quick: bool,
    /// Where it names a member.
    pub(crate) member: Member,
}

/// Which argument of a command on one key names a member or field of the collection, the first or the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// None.
    Nowhere,
    /// The one behind the key.
    Second,
    /// The last.
    Last,
}

impl Member {
    /// As the declared syntax has it.
    fn of(command: &Command) -> Member {
        let (Run::Key(_), Some(behind)) = (command.run, command.syntax.strip_prefix("key ")) else {
            return Member::Nowhere;
        };
        if behind.starts_with("member") || behind.starts_with("field") {
            return Member::Second;
        }
        let repeated = behind.strip_suffix(" ...]").unwrap_or(behind);
        if repeated.ends_with(" member") { Member::Last } else { Member::Nowhere }
    }

    /// The member among the arguments, if there is one.
    #[inline]
    pub(crate) fn among<'a>(self, args: &Args<'a>) -> Option<&'a [u8]> {
        match self {
            Member::Nowhere => None,
            Member::Second => args.try_get(2),
            Member::Last => args.try_get(args.len() - 1),
        }
    }
}

/// Slots of the name index: a power of two, several times the number of commands.
const SLOTS: usize = 1024;

/// The first eight letters of a name, and its length: nearly always all there is to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Folded {
    letters: u64,
    len: u8,
}

impl Folded {
    /// A name as it is compared; one too long to be a command's is like none of them.
    #[inline(always)]
    fn of(name: &[u8]) -> Folded {
        let two = |at: usize| u64::from(u16::from_le_bytes([name[at], name[at + 1]]));
        let four = |at: usize| u64::from(u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]));
        // Two parts that overlap where the name is shorter than both together.
        let letters = match name.len() {
            0 => 0,
            1 => u64::from(name[0]),
            len @ 2..4 => two(0) | two(len - 2) << (8 * (len - 2)),
            len @ 4..8 => four(0) | four(len - 4) << (8 * (len - 4)),
            _ => four(0) | four(4) << 32,
        };
        Folded { letters, len: name.len().min(u8::MAX as usize) as u8 }
    }

    /// The letters in lower case. Some bytes that are no letters become alike.
    #[inline(always)]
    fn lower(self) -> u64 {
        self.letters | 0x2020_2020_2020_2020
    }

    #[inline(always)]
    fn slot(self) -> usize {
        let mixed = (self.lower() ^ u64::from(self.len)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 54) as usize % SLOTS
    }
}

/// A slot of the name index, with what is to be known of a command before it is called.
#[derive(Clone, Copy, Debug, Default)]
struct Indexed {
    folded: Folded,
    /// The letters when all are small.
    small: u64,
    /// `None`: the slot is empty.
    found: Option<Resolved>,
    single: SingleKey,
}

/// The commands, subcommands included, each with a number.
pub struct CommandTable {
    all: Vec<&'static Command>,
    /// How many of `all` are no subcommands; they come first.
    top: usize,
    /// What clients call each of those by, if they can.
    names: Vec<Option<Box<str>>>,
    /// Whether any is called by another name than it was declared with.
    is_renamed: bool,
    index: Box<[Indexed; SLOTS]>,
    /// The index of the names that they were declared with, if any has been changed.
    declared: Option<Box<[Indexed; SLOTS]>>,
    /// What COMMAND answers, by protocol.
    descriptions: [OnceLock<Bytes>; 2],
}

/// Why a command cannot have another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// There is none of the old name.
    NoSuchCommand,
    /// There is one of the new name, or was.
    NameTaken,
}

impl fmt::Display for RenameError {
    /// In Redis's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RenameError::NoSuchCommand => "No such command in rename-command",
            RenameError::NameTaken => "Target command name already exists",
        })
    }
}

/// Where the keys begin of a command on each of them, behind which there is nothing else.
const EACH_KEY: usize = 1;

/// How many arguments a command on one key takes.
#[derive(Clone, Copy, Debug, Default)]
struct SingleKey {
    /// Fewest and most arguments; none at all for a command of another kind.
    least: u32,
    most: u32,
}

impl SingleKey {
    fn of(command: &Command) -> SingleKey {
        match (command.run, command.arity) {
            (Run::Key(_), Arity::Exactly(count)) => SingleKey { least: count as u32, most: count as u32 },
            (Run::Key(_), Arity::AtLeast(count)) => SingleKey { least: count as u32, most: u32::MAX },
            (Run::Each(_), _) => SingleKey { least: EACH_KEY as u32 + 1, most: EACH_KEY as u32 + 1 },
            _ => SingleKey { least: u32::MAX, most: 0 },
        }
    }

    #[inline(always)]
    fn takes(self, args: usize) -> bool {
        self.least as usize <= args && args <= self.most as usize
    }
}

impl Resolved {
    fn of(command: &'static Command, number: usize) -> Resolved {
        let key = match command.run {
            Run::Key(_) => command.keys.single().expect("a command on one key has it in a fixed place"),
            Run::Each(_) => EACH_KEY,
            _ => 0,
        };
        // What takes passwords is noted by itself, so that it is known which arguments the slow log must not show.
        let is_quick = command.flags.any(Flags::FAST.or(Flags::BRIEF)) && !command.flags.any(Flags::NO_AUTH);
        Resolved { command, number: number as u16, key: key as u16, is_quick, member: Member::of(command) }
    }

    /// Which argument is the key, when the command is one on one key and takes so many arguments.
    #[inline]
    pub(crate) fn single_key(&self, args: usize) -> Option<usize> {
        SingleKey::of(self.command).takes(args).then_some(usize::from(self.key))
    }
}

impl CommandTable {
    /// The table of these commands and their subcommands.
    ///
    /// # Panics
    /// When a name is there twice, or a command on one key does not say where that stands.
    pub fn new(commands: &[&'static Command]) -> CommandTable {
        let mut all: Vec<&'static Command> = commands.to_vec();
        for command in commands {
            all.extend(command.subcommands());
        }
        let names = commands.iter().map(|command| Some(Box::from(command.name))).collect();
        let index = Box::new([Indexed::default(); SLOTS]);
        let mut table = CommandTable {
            all,
            top: commands.len(),
            names,
            is_renamed: false,
            index,
            declared: None,
            descriptions: Default::default(),
        };
        for number in 0..table.top {
            let name = table.all[number].name;
            assert!(table.find(name.as_bytes()).is_none(), "{name} is declared twice");
            table.add_to_index(number);
        }
        table
    }

    /// Adds the name that a command has now.
    fn add_to_index(&mut self, number: usize) {
        let Some(name) = &self.names[number] else { return };
        let folded = Folded::of(name.to_ascii_uppercase().as_bytes());
        let small = Folded::of(name.to_ascii_lowercase().as_bytes()).letters;
        let mut slot = folded.slot();
        while self.index[slot].found.is_some() {
            slot = (slot + 1) % SLOTS;
        }
        let command = self.all[number];
        let found = Some(Resolved::of(command, number));
        self.index[slot] = Indexed { folded, small, found, single: SingleKey::of(command) };
    }

    /// Has clients call a command by another name, or by none where that is empty, as Redis's `rename-command` does.
    ///
    /// A name that a command was declared with is never another's, to which Redis would give it: logs say commands by these
    /// names, and mean the same under each configuration.
    ///
    /// # Errors
    /// When there is no such command, or one of the new name. Nothing has changed then.
    pub fn rename(&mut self, old: &str, new: &str) -> Result<(), RenameError> {
        let found = self.find(old.as_bytes()).ok_or(RenameError::NoSuchCommand)?;
        let is_anothers = |taken: Option<Resolved>| taken.is_some_and(|taken| taken.number != found.number);
        if is_anothers(self.find(new.as_bytes())) || is_anothers(self.find_declared(new.as_bytes())) {
            return Err(RenameError::NameTaken);
        }
        self.names[usize::from(found.number)] = (!new.is_empty()).then(|| new.into());
        let named = self.top_commands().iter().zip(&self.names);
        self.is_renamed = named
            .into_iter()
            .any(|(command, name)| name.as_ref().is_some_and(|name| !name.eq_ignore_ascii_case(command.name)));
        self.declared.get_or_insert_with(|| self.index.clone());
        self.index.fill(Indexed::default());
        (0..self.top).for_each(|number| self.add_to_index(number));
        Ok(())
    }

    /// Whether clients call any command by another name than it was declared with.
    #[inline]
    pub(crate) fn is_renamed(&self) -> bool {
        self.is_renamed
    }

    /// The command that was declared with a name, in any case, whatever clients call it by.
    pub fn find_declared(&self, name: &[u8]) -> Option<Resolved> {
        find_in(self.declared.as_ref().unwrap_or(&self.index), name, |found| Some(found.command.name))
    }

    fn top_commands(&self) -> &[&'static Command] {
        &self.all[..self.top]
    }

    /// The command that clients call by a name, in any case; a container for its subcommands.
    pub fn find(&self, name: &[u8]) -> Option<Resolved> {
        find_in(&self.index, name, |found| self.names[usize::from(found.number)].as_deref())
    }

    /// The command on one key that has a name of these one to eight letters and takes so many arguments, if it is found
    /// at first sight. What is not may be anything: `find` tells.
    #[inline(always)]
    pub(crate) fn find_single(&self, letters: u64, len: usize, args: usize) -> Option<&Resolved> {
        let name = Folded { letters, len: len as u8 };
        let mut slot = name.slot();
        loop {
            let indexed = &self.index[slot];
            // Clients write names in capitals, as they are declared, or in small letters.
            if (name.letters == indexed.folded.letters || name.letters == indexed.small)
                && name.len == indexed.folded.len
            {
                return indexed.found.as_ref().filter(|_| indexed.single.takes(args));
            }
            indexed.found?;
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The subcommand of a container, in any case.
    pub fn find_subcommand(&self, container: &'static Command, name: &[u8]) -> Option<Resolved> {
        let behind = container.name.len() + 1;
        let command =
            container.subcommands().iter().find(|sub| sub.name.as_bytes()[behind..].eq_ignore_ascii_case(name))?;
        let number = self.number_of(command)?;
        Some(Resolved::of(command, usize::from(number)))
    }

    /// The number of a command or subcommand of this table.
    pub fn number_of(&self, command: &'static Command) -> Option<u16> {
        self.all.iter().position(|other| std::ptr::eq(*other, command)).map(|number| number as u16)
    }

    /// Every command that clients can call and that is no subcommand.
    pub fn top(&self) -> Vec<&'static Command> {
        self.top_named().collect()
    }

    /// How many those are.
    pub fn top_len(&self) -> usize {
        self.top_named().count()
    }

    fn top_named(&self) -> impl Iterator<Item = &'static Command> {
        let named = self.top_commands().iter().zip(&self.names).filter(|(_, name)| name.is_some());
        named.map(|(command, _)| *command)
    }

    /// What COMMAND answers in this protocol, which `describe` writes when it is first asked for: nothing in it changes.
    pub fn description(&self, proto: Proto, describe: impl FnOnce() -> Bytes) -> Bytes {
        let index = match proto {
            Proto::Resp2 => 0,
            Proto::Resp3 => 1,
        };
        self.descriptions[index].get_or_init(describe).clone()
    }

    /// Every command and subcommand, by number.
    pub fn all(&self) -> &[&'static Command] {
        &self.all
    }
}

/// The command that an index has for a name, in any case; `name_of` gives the name that it stands there with.
fn find_in<'a>(
    index: &[Indexed; SLOTS],
    name: &[u8],
    name_of: impl Fn(&Resolved) -> Option<&'a str>,
) -> Option<Resolved> {
    let folded = Folded::of(name);
    let mut slot = folded.slot();
    loop {
        let Indexed { folded: known, found, .. } = index[slot];
        let found = found?;
        if known.len == folded.len
            && known.lower() == folded.lower()
            && name_of(&found).is_some_and(|known| known.as_bytes().eq_ignore_ascii_case(name))
        {
            return Some(found);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Effect, Group, Keys};

    const fn command(name: &'static str, arity: Arity) -> Command {
        Command {
            name,
            group: Group::String,
            syntax: "key",
            summary: "",
            complexity: "",
            since: "",
            arity,
            keys: Keys::ONE,
            flags: Flags::FAST,
            run: Run::Key(|_, _, _| Ok(Effect::Unchanged)),
        }
    }

    static COMMANDS: [Command; 6] = [
        command("GET", Arity::Exactly(2)),
        command("SET", Arity::AtLeast(3)),
        command("X", Arity::Exactly(2)),
        command("SORT_RO", Arity::AtLeast(2)),
        command("GETRANGE", Arity::Exactly(4)),
        command("GETRANGES", Arity::Exactly(4)),
    ];

    #[test]
    fn a_command_may_have_another_name_or_none() {
        let mut table = CommandTable::new(&COMMANDS.iter().collect::<Vec<_>>());
        assert_eq!(table.rename("nope", "other"), Err(RenameError::NoSuchCommand));
        assert_eq!(table.rename("GET", "set"), Err(RenameError::NameTaken));
        assert_eq!(table.rename("get", "Fetch"), Ok(()));
        assert_eq!(table.rename("SORT_RO", "ordered-without-writing"), Ok(()));
        assert_eq!(table.rename("SET", ""), Ok(()));
        assert_eq!(table.rename("SET", "again"), Err(RenameError::NoSuchCommand));
        assert_eq!(table.rename("X", "SET"), Err(RenameError::NameTaken), "a log may say SET");
        let name_of = |found: Option<Resolved>| found.map(|resolved| resolved.command.name);
        for (name, of) in [
            ("FETCH", Some("GET")),
            ("fetch", Some("GET")),
            ("feTch", Some("GET")),
            ("Ordered-Without-Writing", Some("SORT_RO")),
            ("GETRANGE", Some("GETRANGE")),
            ("x", Some("X")),
            ("GET", None),
            ("SET", None),
            ("SORT_RO", None),
        ] {
            assert_eq!(name_of(table.find(name.as_bytes())), of, "{name}");
        }
        let mut letters = [0; 8];
        letters[..5].copy_from_slice(b"fetch");
        assert_eq!(name_of(table.find_single(u64::from_le_bytes(letters), 5, 2).copied()), Some("GET"));
        assert_eq!(name_of(table.find_declared(b"set")), Some("SET"));
        assert_eq!(name_of(table.find_declared(b"fetch")), None);
        assert!(table.top().iter().map(|command| command.name).eq(["GET", "X", "SORT_RO", "GETRANGE", "GETRANGES"]));
        assert!(table.is_renamed());
        assert_eq!(table.rename("fetch", "FETCH"), Ok(()));
        assert_eq!(table.rename("fetch", "get"), Ok(()));
        assert_eq!(name_of(table.find(b"GET")), Some("GET"));
        assert_eq!(table.rename("ordered-without-writing", "sort_ro"), Ok(()));
        assert!(!table.is_renamed(), "one that nobody can call is in no log");
    }

    #[test]
    fn members_are_where_the_syntax_says() {
        let of = |syntax| Member::of(&Command { syntax, ..command("X", Arity::AtLeast(2)) });
        for syntax in
            ["key member [member ...]", "key field", "key field value [field value ...]", "key member [WITHSCORE]"]
        {
            assert_eq!(of(syntax), Member::Second, "{syntax}");
        }
        for syntax in [
            "key increment member",
            "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
            "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        ] {
            assert_eq!(of(syntax), Member::Last, "{syntax}");
        }
        for syntax in ["key", "key value", "key [count]", "key min max", "key start stop"] {
            assert_eq!(of(syntax), Member::Nowhere, "{syntax}");
        }
    }

    /// The commands that both searches find, at first sight and in the end.
    fn found(name: &str, args: usize) -> [Option<&'static str>; 2] {
        let table = CommandTable::new(&COMMANDS.iter().collect::<Vec<_>>());
        let mut word = [0; 8];
        let at_sight = match name.len() {
            len @ 1..=8 => {
                word[..len].copy_from_slice(name.as_bytes());
                table.find_single(u64::from_le_bytes(word), len, args).map(|resolved| resolved.command.name)
            }
            _ => None,
        };
        [at_sight, table.find(name.as_bytes()).map(|resolved| resolved.command.name)]
    }

    #[test]
    fn names_are_found_in_any_case_and_as_clients_write_them_at_first_sight() {
        for command in &COMMANDS {
            let (name, args) = (command.name, if command.name.starts_with("GETRANGE") { 4 } else { 3 });
            let short = (name.len() <= 8 && command.arity.accepts(args)).then_some(name);
            assert_eq!(found(name, args), [short, Some(name)]);
            assert_eq!(found(&name.to_ascii_lowercase(), args), [short, Some(name)]);
        }
        assert_eq!(found("GET", 2), [Some("GET"); 2]);
        assert_eq!(found("Get", 2), [None, Some("GET")]);
        assert_eq!(found("SORT_rO", 2), [None, Some("SORT_RO")]);
        for other in ["", "G", "GE", "GETS", "GET\0", "GEX", "GETRANG", "sort\x7fro", "SORT-RO", "GETRANGESS"] {
            assert_eq!(found(other, 4), [None, None], "{other:?}");
        }
    }
}
