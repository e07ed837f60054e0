//! The table of commands and the search for a name in it.

use crate::command::{Arity, Command, Run};

/// A command found in the table.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// The command.
    pub command: &'static Command,
    /// Its number, by which statistics are kept.
    pub number: u16,
    /// Which argument is the key, where it is a command on one key.
    pub key: u16,
}

/// Slots of the name index: a power of two, several times the number of commands.
const SLOTS: usize = 1024;

/// Names up to this long are compared by their letters in one word alone.
const WORD: usize = 8;

/// The first eight letters of a name, and its length: nearly always all there is to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Folded {
    letters: u64,
    len: u8,
}

impl Folded {
    /// A name as it is compared; one too long to be a command's is like none of them.
    #[inline]
    fn of(name: &[u8]) -> Folded {
        let half = |at: usize| u64::from(u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]));
        let letters = match name.len() {
            0 => 0,
            1 => u64::from(name[0]),
            2 | 3 => {
                let middle = usize::from(name.len() == 3);
                u64::from(name[0]) | u64::from(name[1]) << 8 | u64::from(name[name.len() - 1]) << (8 + 8 * middle)
            }
            // Two halves that overlap where there are fewer than eight letters.
            4..8 => half(0) | half(name.len() - 4) << 32,
            _ => half(0) | half(4) << 32,
        };
        Folded { letters, len: name.len().min(u8::MAX as usize) as u8 }
    }

    /// The letters in lower case. Some bytes that are no letters become alike.
    #[inline]
    fn lower(self) -> u64 {
        self.letters | 0x2020_2020_2020_2020
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.lower() ^ u64::from(self.len)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 54) as usize % SLOTS
    }
}

/// A slot of the name index; length 0: empty.
#[derive(Clone, Copy, Debug, Default)]
struct Indexed {
    folded: Folded,
    number: u16,
}

/// The commands, subcommands included, each with a number.
pub struct CommandTable {
    all: Vec<&'static Command>,
    /// How many of `all` are no subcommands; they come first.
    top: usize,
    index: Box<[Indexed; SLOTS]>,
    /// By number: what is to be known of a command on one key before it is called.
    single: Box<[SingleKey]>,
}

/// A command on one key, in one cache line with its neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleKey {
    /// Fewest and most arguments; none at all for a command of another kind.
    least: u32,
    most: u32,
    /// Which argument is the key.
    key: u16,
}

impl SingleKey {
    fn of(command: &Command) -> SingleKey {
        let Run::Key(_) = command.run else { return SingleKey { least: u32::MAX, most: 0, key: 0 } };
        let Some(key) = command.keys.single() else { panic!("{} has one key in a fixed place", command.name) };
        let (least, most) = match command.arity {
            Arity::Exactly(count) => (count as u32, count as u32),
            Arity::AtLeast(count) => (count as u32, u32::MAX),
        };
        SingleKey { least, most, key: key as u16 }
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
        let single = all.iter().map(|command| SingleKey::of(command)).collect();
        let mut table = CommandTable { all, top: commands.len(), index: Box::new([Indexed::default(); SLOTS]), single };
        for number in 0..table.top {
            let name = table.all[number].name.as_bytes();
            assert!(table.find(name).is_none(), "{} is declared twice", table.all[number].name);
            let folded = Folded::of(name);
            let mut slot = folded.slot();
            while table.index[slot].folded.len > 0 {
                slot = (slot + 1) % SLOTS;
            }
            table.index[slot] = Indexed { folded, number: number as u16 };
        }
        table
    }

    /// The command of a name, in any case; a container for its subcommands.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Resolved> {
        let folded = Folded::of(name);
        let mut slot = folded.slot();
        loop {
            let indexed = self.index[slot];
            if indexed.folded.len == 0 {
                return None;
            }
            if indexed.folded.len == folded.len && indexed.folded.lower() == folded.lower() {
                let command = self.all[indexed.number as usize];
                // Clients write names in capitals, as they are declared, or in small letters.
                let letters = folded.letters;
                let is_usual = letters == indexed.folded.letters || letters == indexed.folded.lower();
                if is_usual && name.len() <= WORD || command.name.as_bytes().eq_ignore_ascii_case(name) {
                    let key = self.single[indexed.number as usize].key;
                    return Some(Resolved { command, number: indexed.number, key });
                }
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Which argument is the key, when the command is one on one key and takes so many arguments.
    #[inline]
    pub(crate) fn single_key(&self, number: u16, args: usize) -> Option<usize> {
        let single = self.single[number as usize];
        (single.least as usize <= args && args <= single.most as usize).then_some(usize::from(single.key))
    }

    /// The subcommand of a container, in any case.
    pub fn find_subcommand(&self, container: &'static Command, name: &[u8]) -> Option<Resolved> {
        let behind = container.name.len() + 1;
        let command =
            container.subcommands().iter().find(|sub| sub.name.as_bytes()[behind..].eq_ignore_ascii_case(name))?;
        let number = self.number_of(command)?;
        Some(Resolved { command, number, key: self.single[number as usize].key })
    }

    /// The number of a command or subcommand of this table.
    pub fn number_of(&self, command: &'static Command) -> Option<u16> {
        self.all.iter().position(|other| std::ptr::eq(*other, command)).map(|number| number as u16)
    }

    /// Every command that is no subcommand.
    pub fn top(&self) -> &[&'static Command] {
        &self.all[..self.top]
    }

    /// Every command and subcommand, by number.
    pub fn all(&self) -> &[&'static Command] {
        &self.all
    }
}
