//! The command line: a file, then flags with the names of settings. It knows no setting; help comes from the table.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::args;
use super::error::{LoadError, LoadProblem};
use super::help::help;
use super::live::Config;
use super::loader::{Loader, Origin};
use super::machine::Machine;
use super::memcached;
use super::memcached_file;
use super::memcached_options;

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Run the server.
    Run(Box<Config>),
    /// Print this text and end.
    Help(String),
    /// Print the version and end.
    Version,
}

/// Reads the command line: `[FILE | -] [--name value ...] ... [-]`, without the program's name; a flag and its values may be one argument. Flags come after the
/// file and override it, wherever a lone `-` (the standard input, as a file) stands. Behind the word `memcached` stand
/// memcached's options instead, perhaps behind a file of such.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    machine: Machine,
    stdin: &mut dyn Read,
) -> Result<Invocation, LoadError> {
    let args: Vec<OsString> = args.into_iter().collect();
    let fail = |problem| LoadError { origin: Origin::CommandLine, problem };
    // The file's name alone need not be UTF-8.
    let mut words = Vec::with_capacity(args.len());
    for arg in &args {
        words.push(arg.to_string_lossy().into_owned());
        if arg.to_str().is_none() && words.len() > 1 {
            return Err(fail(LoadProblem::NotUtf8));
        }
    }
    let first = words.first().map_or("", String::as_str);
    if first == MEMCACHED {
        return as_memcached(Loader::new(machine), &words[1..]);
    }
    if let Some(at) = words.iter().position(|word| word == "--help").or((first == "-h").then_some(0)) {
        let topic = words.get(at + 1).map(String::as_str);
        return help(topic).map(Invocation::Help).map_err(fail);
    }
    if words.iter().any(|word| word == "--version") || first == "-v" {
        return Ok(Invocation::Version);
    }

    let mut rest = words.as_slice();
    let mut loader = Loader::new(machine);
    let mut reads_stdin = false;
    if let [first, after @ ..] = rest
        && !first.starts_with("--")
    {
        rest = after;
        if first == "-" {
            reads_stdin = true;
        } else {
            loader.file(&PathBuf::from(&args[0]))?;
        }
    }
    if let [before @ .., last] = rest
        && last == "-"
    {
        rest = before;
        reads_stdin = true;
    }
    if reads_stdin {
        let mut text = Vec::new();
        let read = stdin.read_to_end(&mut text);
        read.map_err(|error| fail(LoadProblem::Read { path: Path::new("stdin").to_owned(), error }))?;
        loader.text(&text, "stdin")?;
        loader.has_read("the standard input".to_owned());
    }
    while let [flag, after @ ..] = rest {
        let Some(flag) = flag.strip_prefix("--").filter(|name| !name.is_empty()) else {
            return Err(fail(LoadProblem::StrayArgument(flag.clone())));
        };
        let (name, mut values) = name_and_values(flag).map_err(fail)?;
        // As in Redis, what follows a name alone is its value, also if it starts with two dashes; `save` needs none.
        let own = usize::from(values.is_empty() && !name.eq_ignore_ascii_case("save")).min(after.len());
        let is_flag = |word: &String| word.starts_with("--");
        let len = own + after[own..].iter().position(is_flag).unwrap_or(after.len() - own);
        values.extend_from_slice(&after[..len]);
        rest = &after[len..];
        flag_of(&mut loader, &name, &values)?;
    }
    Ok(Invocation::Run(Box::new(loader.finish()?)))
}

/// A flag without its dashes: a name, `name=value`, or a name and values as in a file, all in one argument.
fn name_and_values(flag: &str) -> Result<(String, Vec<String>), LoadProblem> {
    match flag.find(|char: char| char == '=' || char.is_ascii_whitespace()) {
        Some(at) if flag[at..].starts_with('=') => Ok((flag[..at].to_owned(), vec![flag[at + 1..].to_owned()])),
        Some(at) => {
            let values =
                args::split(&flag.as_bytes()[at..]).map_err(|args::Unbalanced| LoadProblem::UnbalancedQuotes)?;
            let values = values.into_iter().map(|value| String::from_utf8(value).map_err(|_| LoadProblem::NotUtf8));
            Ok((flag[..at].to_owned(), values.collect::<Result<_, _>>()?))
        }
        None => Ok((flag.to_owned(), Vec::new())),
    }
}

/// The first word of a command line that is memcached's.
const MEMCACHED: &str = "memcached";

/// A server in the place of memcached, by its command line.
fn as_memcached(mut loader: Loader, args: &[String]) -> Result<Invocation, LoadError> {
    // Where memcached looks for SASL's passwords.
    let named = |variable| std::env::var(variable).ok().filter(|path| !path.is_empty());
    // Debian's unit names a file of options.
    let mut names_log = false;
    let words = match args {
        [path, after @ ..] if !path.starts_with('-') => {
            let mut file = memcached_words(path)?;
            loader.has_read(path.clone());
            names_log = file.names_log;
            file.words.extend_from_slice(after);
            file.words
        }
        _ => args.to_vec(),
    };
    let asked = memcached::read(&words, named("MEMCACHED_SASL_PWDB"))
        .map_err(|problem| LoadError { origin: Origin::CommandLine, problem })?;
    if asked.help {
        return Ok(Invocation::Help(memcached_options::help()));
    }
    if asked.version {
        return Ok(Invocation::Help(memcached_options::version()));
    }
    for (name, words) in &asked.settings {
        loader.apply(name, words, &Origin::CommandLine).map_err(|error| as_option(&asked, name, error))?;
    }
    loader.as_memcached();
    if let Some(path) = named("MEMCACHED_PORT_FILENAME") {
        loader.apply("memcached-port-file", &[path], &Origin::CommandLine)?;
    }
    for (name, text) in asked.idle {
        loader.warn(name, text);
    }
    if names_log {
        loader.warn("logfile", "The log goes to where who has started the server sends it.");
    }
    Ok(Invocation::Run(Box::new(loader.finish()?)))
}

/// The options in a file of memcached's.
fn memcached_words(path: &str) -> Result<memcached_file::File, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|error| LoadError {
        origin: Origin::CommandLine,
        problem: LoadProblem::Read { path: PathBuf::from(path), error },
    })?;
    memcached_file::read(&text).map_err(|line| LoadError {
        origin: Origin::Line { file: path.to_owned(), line },
        problem: LoadProblem::NoMemcachedOption,
    })
}

/// A setting's error as one of the option that was given.
fn as_option(asked: &memcached::Asked, setting: &str, LoadError { origin, problem }: LoadError) -> LoadError {
    let problem = match (problem, asked.option_of(setting)) {
        (LoadProblem::Value { value: Some(value), error, .. }, Some(option)) => {
            LoadProblem::MemcachedValue { option: option.into(), value, error }
        }
        (problem, _) => problem,
    };
    LoadError { origin, problem }
}

fn flag_of(loader: &mut Loader, name: &str, values: &[String]) -> Result<(), LoadError> {
    loader.obey(name, values, &Origin::CommandLine, 0)
}
