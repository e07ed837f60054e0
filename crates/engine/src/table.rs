//! The table of commands and the search for a name in it.

use crate::command::Command;

/// A command found in the table.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// The command.
    pub command: &'static Command,
    /// Its number, by which statistics are kept.
    pub number: u16,
}

/// Slots of the name index: a power of two, several times the number of commands.
const SLOTS: usize = 2048;
/// An empty slot.
const EMPTY: u16 = u16::MAX;

/// The commands, subcommands included, each with a number.
pub struct CommandTable {
    all: Vec<&'static Command>,
    /// How many of `all` are no subcommands; they come first.
    top: usize,
    index: Box<[u16; SLOTS]>,
}

/// A hash of a name in any case.
#[inline]
fn slot_of(name: &[u8]) -> usize {
    // The first eight letters, their case bit set, and the length: enough to tell nearly all names apart.
    let mut letters = [0u8; 8];
    if name.len() >= 8 {
        letters.copy_from_slice(&name[..8]);
    } else {
        letters[..name.len()].copy_from_slice(name);
    }
    let folded = u64::from_le_bytes(letters) | 0x2020_2020_2020_2020;
    let mixed = (folded ^ name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 53) as usize % SLOTS
}

impl CommandTable {
    /// The table of these commands and their subcommands.
    ///
    /// # Panics
    /// When a name is there twice.
    pub fn new(commands: &[&'static Command]) -> CommandTable {
        let mut all: Vec<&'static Command> = commands.to_vec();
        for command in commands {
            all.extend(command.subcommands());
        }
        let mut table = CommandTable { all, top: commands.len(), index: Box::new([EMPTY; SLOTS]) };
        for number in 0..table.top {
            let name = table.all[number].name.as_bytes();
            assert!(table.find(name).is_none(), "{} is declared twice", table.all[number].name);
            let mut slot = slot_of(name);
            while table.index[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            table.index[slot] = number as u16;
        }
        table
    }

    /// The command of a name, in any case; a container for its subcommands.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Resolved> {
        let mut slot = slot_of(name);
        loop {
            let number = self.index[slot];
            if number == EMPTY {
                return None;
            }
            let command = self.all[number as usize];
            if command.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(Resolved { command, number });
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The subcommand of a container, in any case.
    pub fn find_subcommand(&self, container: &'static Command, name: &[u8]) -> Option<Resolved> {
        let behind = container.name.len() + 1;
        let command =
            container.subcommands().iter().find(|sub| sub.name.as_bytes()[behind..].eq_ignore_ascii_case(name))?;
        let number = self.all.iter().position(|other| std::ptr::eq(*other, *command))? as u16;
        Some(Resolved { command, number })
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
