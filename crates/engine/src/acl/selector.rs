//! A selector: commands, keys and channels that a user may use together. Knows no user.

use super::category::category;
use super::databases::{Databases, Touched};
use super::denial::Denial;
use super::error::RuleError;
use crate::args::Args;
use crate::command::{ChannelKind, Command, Flags, KeyFlags};
use crate::config::ChannelDefault;
use crate::config::args::{quote_if_needed, quoted};
use crate::table::{CommandTable, Resolved};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tenon_ds::glob::{Case, glob};

/// What may be done to keys: read, written, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyRights {
    read: bool,
    write: bool,
}

impl KeyRights {
    const BOTH: KeyRights = KeyRights { read: true, write: true };

    fn covers(self, needed: KeyRights) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }

    /// What a command needs that does this to a key.
    fn needed_for(flags: KeyFlags) -> KeyRights {
        let write = flags.any(KeyFlags::UPDATE.or(KeyFlags::INSERT).or(KeyFlags::DELETE));
        KeyRights { read: flags.any(KeyFlags::ACCESS), write }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    glob: Vec<u8>,
    rights: KeyRights,
    /// Bytes at its beginning that stand for themselves.
    prefix_len: usize,
}

impl KeyPattern {
    fn new(glob: &[u8], rights: KeyRights) -> KeyPattern {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        KeyPattern { glob: glob.to_vec(), rights, prefix_len: glob.iter().position(is_special).unwrap_or(glob.len()) }
    }

    /// Whether it matches a key. Most patterns are a prefix with `*` behind, and most keys that one is asked about begin
    /// otherwise: a user may have a hundred of them.
    fn matches(&self, key: &[u8]) -> bool {
        let (prefix, rest) = self.glob.split_at(self.prefix_len);
        match rest {
            _ if !key.starts_with(prefix) => false,
            [] => key.len() == prefix.len(),
            // `*` alone does not match the empty key.
            [b'*'] if !prefix.is_empty() => true,
            _ => glob(&self.glob, key, Case::Sensitive),
        }
    }
}

/// Whether a rule allows or refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allow,
    Refuse,
}

/// Which of a kind of things may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach<T> {
    All,
    Only(Vec<T>),
}

impl<T> Reach<T> {
    const NONE: Reach<T> = Reach::Only(Vec::new());
}

/// One set of rights; all of a command must be allowed by the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Whether commands are allowed unless a rule refuses them.
    starts_with_all: bool,
    /// The rules since then, the latest last, none of which another makes idle: command or `@category`.
    rules: Vec<(Verdict, String)>,
    /// What the rules come to: a bit for each command of the table.
    allowed: Box<[u64]>,
    /// For a command that is refused: first arguments with which it is allowed all the same.
    first_arguments: BTreeMap<u16, BTreeSet<String>>,
    keys: Reach<KeyPattern>,
    channels: Reach<Vec<u8>>,
    /// In the order of their numbers.
    databases: Reach<usize>,
}

impl Selector {
    /// No command, no key, every database; channels as `acl-pubsub-default` says.
    pub fn new(table: &CommandTable, channels: ChannelDefault) -> Selector {
        Selector {
            starts_with_all: false,
            rules: Vec::new(),
            allowed: vec![0; table.all().len().div_ceil(64)].into(),
            first_arguments: BTreeMap::new(),
            keys: Reach::NONE,
            channels: match channels {
                ChannelDefault::AllChannels => Reach::All,
                ChannelDefault::ResetChannels => Reach::NONE,
            },
            databases: Reach::All,
        }
    }

    /// Changes the rights as a rule says. They are [settled](Selector::settle) behind the last one.
    ///
    /// # Errors
    /// When it is no rule for selectors; then nothing has changed.
    pub fn apply(&mut self, rule: &[u8], table: &CommandTable) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        if is("allkeys") || is("~*") {
            self.keys = Reach::All;
        } else if is("resetkeys") {
            self.keys = Reach::NONE;
        } else if is("allchannels") || is("&*") {
            self.channels = Reach::All;
        } else if is("resetchannels") {
            self.channels = Reach::NONE;
        } else if is("alldbs") {
            self.databases = Reach::All;
        } else if is("resetdbs") {
            self.databases = Reach::NONE;
        } else if let Some(numbers) = rule.split_at_checked(3).filter(|(name, _)| name.eq_ignore_ascii_case(b"db=")) {
            self.databases = Reach::Only(parse_databases(numbers.1)?);
        } else if is("allcommands") || is("+@all") {
            self.start_anew(Verdict::Allow, table);
        } else if is("nocommands") || is("-@all") {
            self.start_anew(Verdict::Refuse, table);
        } else {
            return match rule {
                [b'~', glob @ ..] => self.add_key_pattern(KeyRights::BOTH, glob),
                [b'%', ..] if matches!(self.keys, Reach::All) => Err(RuleError::BesideAllKeys),
                [b'%', rest @ ..] => {
                    let (rights, glob) = key_rights(rest).ok_or(RuleError::Syntax)?;
                    self.add_key_pattern(rights, glob)
                }
                [b'&', glob @ ..] => self.add_channel_pattern(glob),
                [b'+', b'@', name @ ..] => self.set_category(name, Verdict::Allow, table),
                [b'-', b'@', name @ ..] => self.set_category(name, Verdict::Refuse, table),
                [b'+', name @ ..] => self.allow_command(name, table),
                [b'-', name @ ..] => {
                    let found = find(table, name).ok_or(RuleError::Unknown)?;
                    self.set_command(found.command, found.number, Verdict::Refuse, table);
                    self.note(found.command.full_name(), Verdict::Refuse);
                    Ok(())
                }
                _ => Err(RuleError::Syntax),
            };
        }
        Ok(())
    }

    /// What comes behind the last rule: a pattern that was said several times stands where it was said first.
    pub fn settle(&mut self) {
        if let Reach::Only(patterns) = &mut self.keys {
            let mut said: HashMap<&[u8], KeyRights> = HashMap::with_capacity(patterns.len());
            for pattern in &*patterns {
                let rights = said.entry(&pattern.glob).or_insert(pattern.rights);
                rights.read |= pattern.rights.read;
                rights.write |= pattern.rights.write;
            }
            if said.len() < patterns.len() {
                let first = |pattern: &KeyPattern| {
                    let rights = said.remove(&pattern.glob[..])?;
                    Some(KeyPattern { rights, ..pattern.clone() })
                };
                *patterns = patterns.iter().filter_map(first).collect();
            }
        }
        if let Reach::Only(patterns) = &mut self.channels {
            let mut said = HashSet::with_capacity(patterns.len());
            patterns.retain(|pattern| said.insert(pattern.clone()));
        }
    }

    fn start_anew(&mut self, verdict: Verdict, table: &CommandTable) {
        self.starts_with_all = verdict == Verdict::Allow;
        self.rules.clear();
        self.first_arguments.clear();
        (0..table.all().len()).for_each(|number| self.set_bit(number as u16, verdict));
    }

    fn add_key_pattern(&mut self, rights: KeyRights, glob: &[u8]) -> Result<(), RuleError> {
        let Reach::Only(patterns) = &mut self.keys else { return Err(RuleError::BesideAllKeys) };
        if has_spaces(glob) {
            return Err(RuleError::Syntax);
        }
        patterns.push(KeyPattern::new(glob, rights));
        Ok(())
    }

    fn add_channel_pattern(&mut self, glob: &[u8]) -> Result<(), RuleError> {
        let Reach::Only(patterns) = &mut self.channels else { return Err(RuleError::BesideAllChannels) };
        if has_spaces(glob) {
            return Err(RuleError::Syntax);
        }
        patterns.push(glob.to_vec());
        Ok(())
    }

    fn set_category(&mut self, name: &[u8], verdict: Verdict, table: &CommandTable) -> Result<(), RuleError> {
        let category = category(name).ok_or(RuleError::Unknown)?;
        for (number, command) in table.all().iter().enumerate() {
            if command.categories().contains(&category) {
                self.set_command(command, number as u16, verdict, table);
            }
        }
        self.note(format!("@{category}"), verdict);
        Ok(())
    }

    /// `+command`, `+command|subcommand`, and `+command|argument` for one without subcommands.
    fn allow_command(&mut self, name: &[u8], table: &CommandTable) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let found = find(table, name).ok_or(RuleError::Unknown)?;
            self.set_command(found.command, found.number, Verdict::Allow, table);
            self.note(found.command.full_name(), Verdict::Allow);
            return Ok(());
        };
        let (before, argument) = (&name[..bar], &name[bar + 1..]);
        let container = find(table, before).ok_or(RuleError::Unknown)?;
        if before.contains(&b'|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if argument.is_empty() || has_spaces(argument) {
            return Err(RuleError::Syntax);
        }
        if container.command.subcommands().is_empty() {
            let argument = std::str::from_utf8(argument).map_err(|_| RuleError::Syntax)?.to_ascii_lowercase();
            self.note(format!("{}|{argument}", container.command.full_name()), Verdict::Allow);
            self.first_arguments.entry(container.number).or_default().insert(argument);
        } else {
            let found = find(table, name).ok_or(RuleError::Unknown)?;
            self.set_command(found.command, found.number, Verdict::Allow, table);
            self.note(found.command.full_name(), Verdict::Allow);
        }
        Ok(())
    }

    /// Allows or refuses a command with all its subcommands.
    fn set_command(&mut self, command: &Command, number: u16, verdict: Verdict, table: &CommandTable) {
        let subcommands = command.subcommands().iter();
        let numbers = subcommands.filter_map(|subcommand| table.number_of(subcommand));
        for number in std::iter::once(number).chain(numbers) {
            self.set_bit(number, verdict);
            self.first_arguments.remove(&number);
        }
    }

    fn set_bit(&mut self, number: u16, verdict: Verdict) {
        let (word, bit) = (usize::from(number) / 64, 1 << (number % 64));
        match verdict {
            Verdict::Allow => self.allowed[word] |= bit,
            Verdict::Refuse => self.allowed[word] &= !bit,
        }
    }

    fn has_bit(&self, number: u16) -> bool {
        self.allowed[usize::from(number) / 64] & 1 << (number % 64) != 0
    }

    /// Remembers a rule in the place of those that it makes idle: those on the same command, or its subcommands.
    fn note(&mut self, rule: String, verdict: Verdict) {
        self.rules.retain(|(_, known)| {
            known.strip_prefix(&rule).is_none_or(|behind| !behind.is_empty() && !behind.starts_with('|'))
        });
        self.rules.push((verdict, rule));
    }

    /// Whether nothing is refused.
    pub fn is_everything(&self, table: &CommandTable) -> bool {
        self.starts_with_all
            && self.keys == Reach::All
            && self.channels == Reach::All
            && self.databases == Reach::All
            && (0..table.all().len()).all(|number| self.has_bit(number as u16))
    }

    /// Whether a command may run with these arguments; `keys` are its keys among them.
    ///
    /// # Errors
    /// Why not.
    pub fn check(
        &self,
        found: Resolved,
        args: &Args<'_>,
        keys: &[(usize, KeyFlags)],
        databases: Databases,
    ) -> Result<(), Denial> {
        // As in Valkey this is looked at first, and named last.
        if let Reach::Only(allowed) = &self.databases {
            check_databases(allowed, found.command, args, databases)?;
        }
        if !self.may_run(found, args) {
            return Err(Denial::Command);
        }
        let refused = |(index, flags): &&(usize, KeyFlags)| !self.may_use_key(args.get(*index), *flags);
        if let Some((index, _)) = keys.iter().find(refused) {
            return Err(Denial::Key(*index));
        }
        if let Some((mut indexes, kind)) = found.command.keys.channels(args)
            && let Some(index) = indexes.find(|index| !self.may_use_channel(args.get(*index), kind))
        {
            return Err(Denial::Channel(index));
        }
        Ok(())
    }

    fn may_run(&self, found: Resolved, args: &Args<'_>) -> bool {
        let with_argument = || {
            let argument = args.try_get(1)?;
            let known = self.first_arguments.get(&found.number)?;
            known.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(argument))
        };
        // Whoever could not authenticate could never get other rights.
        found.command.flags.any(Flags::NO_AUTH) || self.has_bit(found.number) || with_argument().is_some()
    }

    fn may_use_key(&self, key: &[u8], flags: KeyFlags) -> bool {
        let needed = KeyRights::needed_for(flags);
        match &self.keys {
            Reach::All => true,
            Reach::Only(patterns) => {
                patterns.iter().any(|pattern| pattern.rights.covers(needed) && pattern.matches(key))
            }
        }
    }

    /// Whether this may be done to every key there is.
    pub fn may_use_all_keys(&self, flags: KeyFlags) -> bool {
        let needed = KeyRights::needed_for(flags);
        match &self.keys {
            Reach::All => true,
            Reach::Only(patterns) => patterns.iter().any(|it| it.glob == b"*" && it.rights.covers(needed)),
        }
    }

    /// Whether a channel may be used; a pattern only if it is one of the selector's, letter for letter.
    pub fn may_use_channel(&self, channel: &[u8], kind: ChannelKind) -> bool {
        match (&self.channels, kind) {
            (Reach::All, _) => true,
            (Reach::Only(patterns), ChannelKind::Literal) => {
                patterns.iter().any(|pattern| glob(pattern, channel, Case::Sensitive))
            }
            (Reach::Only(patterns), ChannelKind::Pattern) => patterns.iter().any(|pattern| pattern == channel),
        }
    }

    /// The rules on commands, as ACL GETUSER gives them.
    pub fn commands_text(&self) -> String {
        let mut text = String::from(if self.starts_with_all { "+@all" } else { "-@all" });
        for (verdict, rule) in &self.rules {
            text.push_str(if *verdict == Verdict::Allow { " +" } else { " -" });
            text.push_str(rule);
        }
        text
    }

    /// The key patterns, as ACL GETUSER gives them.
    pub fn keys_text(&self) -> Vec<u8> {
        self.key_words().join(&b' ')
    }

    /// The channel patterns, as ACL GETUSER gives them.
    pub fn channels_text(&self) -> Vec<u8> {
        self.channel_words().join(&b' ')
    }

    /// The databases, as ACL GETUSER gives them; `None` when it may use all.
    pub fn databases_text(&self) -> Option<String> {
        match &self.databases {
            Reach::All => None,
            Reach::Only(numbers) if numbers.is_empty() => Some(String::new()),
            Reach::Only(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                Some(format!("db={}", numbers.join(",")))
            }
        }
    }

    fn key_words(&self) -> Vec<Vec<u8>> {
        let word = |pattern: &KeyPattern| {
            let prefix: &[u8] = match pattern.rights {
                KeyRights { read: true, write: false } => b"%R~",
                KeyRights { read: false, write: true } => b"%W~",
                _ => b"~",
            };
            [prefix, &pattern.glob].concat()
        };
        match &self.keys {
            Reach::All => vec![b"~*".to_vec()],
            Reach::Only(patterns) => patterns.iter().map(word).collect(),
        }
    }

    fn channel_words(&self) -> Vec<Vec<u8>> {
        match &self.channels {
            Reach::All => vec![b"&*".to_vec()],
            Reach::Only(patterns) => patterns.iter().map(|pattern| [b"&", &pattern[..]].concat()).collect(),
        }
    }

    /// Rules that give a new selector the same rights, as ACL LIST and files have them.
    pub(super) fn words(&self) -> Vec<Vec<u8>> {
        let mut words = self.key_words();
        if self.channels != Reach::All {
            words.push(b"resetchannels".to_vec());
        }
        words.extend(self.channel_words());
        if let Some(databases) = self.databases_text() {
            words.push(if databases.is_empty() { b"resetdbs".to_vec() } else { databases.into_bytes() });
        }
        words.extend(self.commands_text().split(' ').map(|word| word.as_bytes().to_vec()));
        words
    }

    /// The selector within parentheses. Its words are split anew when it is read, so those with quotes are quoted.
    pub(super) fn in_parentheses(&self) -> Vec<u8> {
        // Whoever reads it takes a word that ends with one for the end of the selector.
        let ends_early = |word: &[u8]| word.ends_with(b")");
        let quote = |word: Vec<u8>| if ends_early(&word) { quoted(&word) } else { quote_if_needed(&word) };
        let words: Vec<Vec<u8>> = self.words().into_iter().map(quote).collect();
        [b"(", &words.join(&b' ')[..], b")"].concat()
    }
}

/// Whether a command may be about the databases that it is about, if only these are allowed.
fn check_databases(allowed: &[usize], command: &Command, args: &Args<'_>, databases: Databases) -> Result<(), Denial> {
    let touched = Touched::by(command, args, databases.count);
    let may_use = |database: usize| allowed.binary_search(&database).is_ok();
    if touched.selected && !may_use(databases.selected) || touched.all && !(0..databases.count).all(may_use) {
        return Err(Denial::Database(None));
    }
    match touched.named.iter().find(|(_, database)| !may_use(*database)) {
        Some((argument, _)) => Err(Denial::Database(Some(*argument))),
        None => Ok(()),
    }
}

/// The numbers of a list of databases, in order and each once. As in Valkey there need be no such databases.
fn parse_databases(list: &[u8]) -> Result<Vec<usize>, RuleError> {
    let parse = |text: &[u8]| {
        let (sign, digits) = match text {
            [b'-', digits @ ..] => (-1, digits),
            [b'+', digits @ ..] | digits => (1, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(RuleError::Syntax);
        }
        let digits = std::str::from_utf8(digits).expect("digits are ASCII");
        let number = digits.parse::<i32>().ok().map(|number| number * sign);
        number.and_then(|number| usize::try_from(number).ok()).ok_or(RuleError::DatabaseOutOfRange)
    };
    let numbers: Result<BTreeSet<usize>, RuleError> = list.split(|byte| *byte == b',').map(parse).collect();
    Ok(numbers?.into_iter().collect())
}

/// The command of a rule, its subcommand behind a bar.
fn find(table: &CommandTable, name: &[u8]) -> Option<Resolved> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let found = table.find_declared(words.next()?)?;
    match words.next() {
        Some(subcommand) => table.find_subcommand(found.command, subcommand),
        None => Some(found),
    }
}

/// The rights between `%` and `~`, and the glob behind. Without `~` it is the empty glob, as Redis has it.
fn key_rights(rest: &[u8]) -> Option<(KeyRights, &[u8])> {
    let tilde = rest.iter().position(|byte| *byte == b'~');
    let (letters, glob) = tilde.map_or((rest, &[][..]), |at| (&rest[..at], &rest[at + 1..]));
    let mut rights = KeyRights { read: false, write: false };
    for letter in letters {
        let right = match letter.to_ascii_uppercase() {
            b'R' => &mut rights.read,
            b'W' => &mut rights.write,
            _ => return None,
        };
        if std::mem::replace(right, true) {
            return None;
        }
    }
    (rights.read || rights.write).then_some((rights, glob))
}

/// What would end a word in a file of users.
pub(super) fn has_spaces(word: &[u8]) -> bool {
    word.iter().any(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_its_glob_does() {
        let patterns =
            ["", "*", "a", "ab", "ab*", "ab**", "a*b", "ab?", "a[bc]*", "a\\*", "\\ab*", "*b", "ab[", "ab\\"];
        let keys = ["", "a", "ab", "abc", "ac", "b", "a*", "a*b", "ab*", "ab[", "ab\\", "xab"];
        for pattern in patterns {
            for key in keys {
                let [pattern, key] = [pattern, key].map(str::as_bytes);
                let expected = glob(pattern, key, Case::Sensitive);
                assert_eq!(KeyPattern::new(pattern, KeyRights::BOTH).matches(key), expected, "{pattern:?} on {key:?}");
            }
        }
    }
}
