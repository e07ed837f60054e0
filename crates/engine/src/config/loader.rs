//! Building a configuration out of directives, in the order they are given: what each changes, what is refused, what
//! there is to warn of. It knows nothing of how files and command lines are written.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use super::args;
use super::error::{LoadError, LoadProblem, ValueError};
use super::live::{Config, check_support};
use super::machine::Machine;
use super::rewrite::USER;
use super::setting::{Kind, Setting, Support};
use super::table::{SETTINGS, find};
use super::unsupported::{ACCEPTED_AT_DEFAULT, FORGOTTEN, Fixed, Otherwise, UNSUPPORTED_DIRECTIVES, find_fixed};
use super::value::{Value, parse_memory, save_words};

/// Where something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line.
    CommandLine,
    /// On a line of a file, or of the standard input.
    Line {
        /// The file as it was named, or `stdin`.
        file: String,
        /// Counted from 1.
        line: usize,
    },
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

/// Something to log about a configuration that is accepted all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it was said.
    pub origin: Origin,
    /// The setting.
    pub name: &'static str,
    /// What is odd about what was said.
    pub oddity: Oddity,
    /// What to know about it.
    pub text: &'static str,
}

/// What is odd about what a setting was said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// It has no effect.
    NoEffect,
    /// It is more than so many bytes, which it is taken as.
    MoreThan(i64),
    /// It was not said, and is nothing because of another setting.
    Closed {
        /// The other one.
        by: &'static str,
    },
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Warning { origin, name, oddity, text } = self;
        match oddity {
            Oddity::NoEffect => write!(f, "{origin}: '{name}' has no effect: {text}"),
            Oddity::Closed { by } => write!(f, "'{name}' is 0 because of '{by}': {text}"),
            Oddity::MoreThan(most) => write!(f, "{origin}: '{name}' is taken as {most}: {text}"),
        }
    }
}

/// The setting of where memcached's clients come to.
const MEMCACHED_PORT: &str = "memcached-port";

/// The directive that gives a command another name, which is no setting: each line names another one.
const RENAME: &str = "rename-command";

/// A user and its rules, as a configuration names them. What the rules mean, and whether they are right, is not known
/// here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserLine {
    /// Where it was said.
    pub origin: Origin,
    name: Vec<u8>,
    rules: Vec<Vec<u8>>,
}

impl UserLine {
    /// The user's name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The rules, a selector perhaps in several words.
    pub fn rules(&self) -> impl Iterator<Item = &[u8]> {
        self.rules.iter().map(Vec::as_slice)
    }

    /// Whether it keeps anybody from anything: not so what Redis writes of the user that everybody is.
    fn guards(&self) -> bool {
        // A line begins with a user who may do nothing: it has to say all of these, and nothing else.
        const OPEN: [&[&[u8]]; 4] = [&[b"on"], &[b"nopass"], &[b"~*", b"allkeys"], &[b"+@all", b"allcommands"]];
        const HARMLESS: &[&[u8]] = &[b"sanitize-payload", b"&*", b"allchannels"];
        let is_among = |rule: &[u8], words: &[&[u8]]| words.iter().any(|word| rule.eq_ignore_ascii_case(word));
        let says = |words: &[&[u8]]| self.rules().any(|rule| is_among(rule, words));
        let is_known = |rule: &[u8]| is_among(rule, HARMLESS) || OPEN.iter().any(|words| is_among(rule, words));
        self.name != b"default" || !OPEN.iter().all(|words| says(words)) || !self.rules().all(is_known)
    }
}

/// Another name for a command. Whether there is such a command is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// Where it was said.
    pub origin: Origin,
    /// What clients have called it by.
    pub old: String,
    /// What they call it by from then on; empty for nothing.
    pub new: String,
}

/// A configuration in the making. Later directives override earlier ones.
#[derive(Debug)]
pub struct Loader {
    config: Config,
    /// Values that cannot be honoured, unless a later directive gives the setting another one: `supervised upstart`
    /// in a file does no harm when the command line says `--supervised no`.
    refused: Vec<(&'static str, LoadError)>,
    warnings: Vec<Warning>,
    /// Whether it was said where memcached's clients come to.
    names_memcached_port: bool,
}

impl Loader {
    /// Starts from the defaults on a machine like this.
    pub fn new(machine: Machine) -> Self {
        let config = Config::new(machine);
        Self { config, refused: Vec::new(), warnings: Vec::new(), names_memcached_port: false }
    }

    /// The configuration, if nothing in it is refused.
    pub fn finish(mut self) -> Result<Config, LoadError> {
        self.close_unnamed_door();
        let Self { mut config, refused, warnings, .. } = self;
        match refused.into_iter().next() {
            Some((_, error)) => Err(error),
            None => {
                config.warnings = warnings;
                Ok(config)
            }
        }
    }

    /// Listens to no clients of memcached, who are asked for no password, where nobody has said that it should and clients of
    /// RESP are asked for one or have a guarded way in: a redis.conf does not know of them.
    pub(super) fn close_unnamed_door(&mut self) {
        let config = &self.config;
        if self.names_memcached_port || config.is_memcached() || config.memcached_auth() {
            return;
        }
        let guarded = [
            (!config.requirepass().is_empty(), "requirepass"),
            (config.users.iter().any(UserLine::guards), USER),
            (!config.aclfile().is_empty(), "aclfile"),
            (config.port() == 0 && config.tls_port() != 0, "tls-port"),
            (config.port() == 0 && !config.unixsocket().is_empty(), "unixsocket"),
        ];
        let Some((_, by)) = guarded.into_iter().find(|(is_so, _)| *is_so) else { return };
        let setting = find(MEMCACHED_PORT).expect("a setting");
        self.config.store(setting, &Value::Number(0));
        let text = "memcached's clients would come in beside it and be asked for no password. Say memcached-port to have them in, \
                    and memcached-auth to have them asked.";
        self.warn_of(&Origin::CommandLine, MEMCACHED_PORT, Oddity::Closed { by }, text);
    }

    /// The directory in which the process was started.
    pub(super) fn directory(&self) -> &str {
        &self.config.machine().directory
    }

    /// Notes that memcached's command line is obeyed.
    pub(super) fn as_memcached(&mut self) {
        self.config.is_memcached = true;
    }

    /// Notes something to log.
    pub(super) fn warn(&mut self, name: &'static str, text: &'static str) {
        self.warnings.push(Warning { origin: Origin::CommandLine, name, oddity: Oddity::NoEffect, text });
    }

    /// Obeys one directive: a name in any case, and the words after it.
    pub fn apply(&mut self, name: &str, words: &[String], origin: &Origin) -> Result<(), LoadError> {
        let fail = |problem| Err(LoadError { origin: origin.clone(), problem });
        if name.eq_ignore_ascii_case(USER) {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            return self.user(&words, origin);
        }
        if name.eq_ignore_ascii_case(RENAME) {
            return self.rename(words, origin);
        }
        if let Some(setting) = find(name) {
            self.forget(setting.name);
            return self.apply_setting(setting, name, words, origin);
        }
        if let Some(fixed) = find_fixed(name) {
            self.forget(fixed.name);
            if !fixed.accepts(words) && fixed.otherwise == Otherwise::Warned {
                self.warn_of(origin, fixed.name, Oddity::NoEffect, fixed.reason);
            } else if !fixed.accepts(words) {
                let error = ValueError::NotSupported(fixed.reason);
                let value = (!fixed.is_sensitive()).then(|| words.join(" "));
                let problem = LoadProblem::Value { name: name.to_owned(), value, error };
                self.refused.push((fixed.name, LoadError { origin: origin.clone(), problem }));
            }
            return Ok(());
        }
        if let Some(name) = FORGOTTEN.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            self.warn_of(origin, name, Oddity::NoEffect, "Redis has dropped it, too.");
            return Ok(());
        }
        if let Some((_, reason)) = UNSUPPORTED_DIRECTIVES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return fail(LoadProblem::UnsupportedDirective { name: name.to_owned(), reason });
        }
        fail(LoadProblem::UnknownSetting { name: name.to_owned(), nearest: nearest(name) })
    }

    fn warn_of(&mut self, origin: &Origin, name: &'static str, oddity: Oddity, text: &'static str) {
        self.warnings.push(Warning { origin: origin.clone(), name, oddity, text });
    }

    /// Obeys a `user` directive: a name, and its rules.
    pub(super) fn user(&mut self, words: &[Vec<u8>], origin: &Origin) -> Result<(), LoadError> {
        let Some((name, rules)) = words.split_first() else {
            let error = ValueError::WrongNumberOfArguments;
            let problem = LoadProblem::Value { name: USER.to_owned(), value: None, error };
            return Err(LoadError { origin: origin.clone(), problem });
        };
        self.config.users.push(UserLine { origin: origin.clone(), name: name.clone(), rules: rules.to_vec() });
        Ok(())
    }

    fn rename(&mut self, words: &[String], origin: &Origin) -> Result<(), LoadError> {
        let [old, new] = words else {
            let error = ValueError::WrongNumberOfArguments;
            let problem = LoadProblem::Value { name: RENAME.to_owned(), value: None, error };
            return Err(LoadError { origin: origin.clone(), problem });
        };
        self.config.renames.push(Rename { origin: origin.clone(), old: old.clone(), new: new.clone() });
        Ok(())
    }

    /// The users named so far.
    pub(super) fn users(&self) -> &[UserLine] {
        &self.config.users
    }

    fn apply_setting(
        &mut self,
        setting: &'static Setting,
        name: &str,
        words: &[String],
        origin: &Origin,
    ) -> Result<(), LoadError> {
        self.names_memcached_port |= setting.name == MEMCACHED_PORT;
        let current = self.config.value(setting);
        let words = match words {
            [list] if setting.kind.is_list() => words_within(list),
            words => words.into(),
        };
        let words = if setting.kind == Kind::SavePoints { self.save_words(setting, &words) } else { words };
        // Wherever the server works meanwhile, when CONFIG REWRITE reads its file again.
        let directory = Path::new(self.directory());
        let parsed = self.config.read(setting, &words, &current, directory);
        if let Ok(value) = &parsed {
            // Stored even if it is refused below, so that CONFIG REWRITE sees what the file says.
            self.config.store(setting, value);
        }
        match parsed.and_then(|value| check_support(setting, value)) {
            Ok(value) => {
                if let Support::NoEffect(text) = setting.support
                    && value != *self.config.initial(setting)
                {
                    self.warn_of(origin, setting.name, Oddity::NoEffect, text);
                }
                if let Kind::MemoryUpTo { max, .. } = setting.kind
                    && words.iter().filter_map(|word| parse_memory(word)).any(|bytes| bytes > max)
                {
                    let text = "longer strings could be saved, but not loaded.";
                    self.warn_of(origin, setting.name, Oddity::MoreThan(max), text);
                }
                Ok(())
            }
            Err(error) => {
                let later_values_help = matches!(error, ValueError::NotSupported(_) | ValueError::Directory(_));
                let value = (!setting.is_sensitive()).then(|| words.join(" "));
                let problem = LoadProblem::Value { name: name.to_owned(), value, error };
                let error = LoadError { origin: origin.clone(), problem };
                if later_values_help {
                    self.refused.push((setting.name, error));
                    return Ok(());
                }
                Err(error)
            }
        }
    }

    /// Repeated `save` lines add up, as in Redis wherever they stand, but for an empty one.
    fn save_words(&self, setting: &Setting, words: &[String]) -> Vec<String> {
        let adds_up = words.iter().any(|word| !word.is_empty());
        let before = if adds_up { self.config.show(setting) } else { String::new() };
        let owned = |words: &[String]| save_words(words).into_iter().map(str::to_owned).collect::<Vec<_>>();
        [owned(&[before]), owned(words)].concat()
    }

    /// Drops what an earlier directive for the same setting left behind.
    fn forget(&mut self, name: &str) {
        self.refused.retain(|(refused, _)| *refused != name);
        self.warnings.retain(|warning| warning.name != name);
    }

    /// Notes that something was read.
    pub(super) fn has_read(&mut self, source: String) {
        self.config.sources.push(source);
    }

    /// Remembers the file that CONFIG REWRITE is to write.
    pub(super) fn set_file(&mut self, path: std::path::PathBuf) {
        self.has_read(path.display().to_string());
        self.config.file = Some(path);
    }

    /// The settings that have another value in `config`, and those with a refused value here.
    pub(super) fn differing(&self, config: &Config) -> Vec<&'static Setting> {
        let differs =
            |setting: &&Setting| self.is_refused(setting.name) || self.config.value(setting) != config.value(setting);
        SETTINGS.iter().filter(differs).collect()
    }

    /// The settings of Redis that were given a value other than their only one.
    pub(super) fn refused_fixed(&self) -> Vec<&'static Fixed> {
        ACCEPTED_AT_DEFAULT.iter().filter(|fixed| self.is_refused(fixed.name)).collect()
    }

    fn is_refused(&self, name: &str) -> bool {
        self.refused.iter().any(|(refused, _)| *refused == name)
    }
}

/// The words of a list that was given as one: as Redis has it they may be in quotes once more (`--save '""'`).
fn words_within(list: &str) -> Vec<String> {
    if list.trim().is_empty() {
        return vec![String::new()];
    }
    let words = args::split(list.as_bytes()).unwrap_or_default();
    let words: Result<Vec<_>, _> = words.into_iter().map(String::from_utf8).collect();
    words.ok().filter(|words| !words.is_empty()).unwrap_or_else(|| vec![list.to_owned()])
}

/// The known name nearest to a mistyped one, if a third of its letters or fewer are wrong.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let settings = SETTINGS.iter().flat_map(Setting::names);
    let fixed = ACCEPTED_AT_DEFAULT.iter().flat_map(Fixed::names);
    let all = settings.chain(fixed).chain(["include", RENAME, USER]);
    let (distance, known) = all.map(|known| (edit_distance(&name, known), known)).min_by_key(|(d, _)| *d)?;
    (distance * 3 <= known.len().max(3)).then_some(known)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour to get from one to the other.
fn edit_distance(a: &str, b: &str) -> usize {
    // A name is never longer than the longest known one by much; this bounds what a hostile one costs.
    const LETTERS_MAX: usize = 64;
    let a: Vec<u8> = a.bytes().take(LETTERS_MAX).collect();
    let b: Vec<u8> = b.bytes().take(LETTERS_MAX).collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names() {
        assert_eq!(nearest("maxmemroy"), Some("maxmemory"));
        assert_eq!(nearest("MAXMEMORY-POLCY"), Some("maxmemory-policy"));
        assert_eq!(nearest("prot"), Some("port"));
        assert_eq!(nearest("appendfsnc"), Some("appendfsync"));
        assert_eq!(nearest("bnd"), Some("bind"));
        assert_eq!(nearest("frobnicate"), None);
        assert_eq!(nearest(&"x".repeat(1 << 20)), None);
    }

    #[test]
    fn distances() {
        assert_eq!(edit_distance("ab", "ba"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", "axc"), 1);
        assert_eq!(edit_distance("abc", "abc"), 0);
    }
}
