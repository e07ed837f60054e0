//! Everything that can be wrong with a setting, and the texts users and clients see for it; it knows nothing of how
//! settings are parsed. Texts that Redis has too are Redis's, word for word (redis 7.0, `config.c`).

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::PathBuf;

use super::loader::Origin;
use super::memcached_refusal::MemcachedRefusal;
use super::memcached_sizes::SizeRefusal;

/// Why a value is not one for its setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// The setting takes one value and got none or several.
    WrongNumberOfArguments,
    /// Not `yes` or `no`.
    NotBool,
    /// Not a decimal integer.
    NotInteger,
    /// Not an octal integer.
    NotOctal,
    /// Not a number of bytes such as `100mb`.
    NotMemory,
    /// Not a number of bytes, nor a percentage such as `80%`.
    NotMemoryOrPercent,
    /// A percentage over 100.
    PercentTooBig,
    /// A percentage of a memory size that could not be found out.
    MemoryUnknown,
    /// A number outside its bounds, both inclusive.
    OutOfRange {
        /// The smallest number allowed.
        min: i64,
        /// The largest number allowed.
        max: i64,
    },
    /// As `OutOfRange`, for octal numbers.
    OutOfOctalRange {
        /// The smallest number allowed.
        min: i64,
        /// The largest number allowed.
        max: i64,
    },
    /// Not a power of two between 1 and the number here.
    NotPowerOfTwo(i64),
    /// None of the names allowed.
    NotOneOf(&'static [&'static str]),
    /// Not four words for each class of clients.
    BufferLimitArity,
    /// Not `normal`, `replica`, `slave` or `pubsub`.
    BufferLimitClass,
    /// A limit that is not a number of bytes or of seconds.
    BufferLimitNumber,
    /// Not pairs of seconds and changes.
    InvalidSavePoints,
    /// A percentile that is not a number.
    InvalidPercentiles,
    /// A percentile outside 0 to 100.
    PercentileOutOfRange,
    /// A letter that stands for no class of keyspace events.
    InvalidEventClass,
    /// An end of the process that is to save, and not to.
    SaveAndNoSave,
    /// An append-only file that cannot begin.
    CannotLog,
    /// A port that cannot be listened on.
    CannotListen,
    /// Certificates, keys or ciphers that cannot be used.
    CannotUseTls,
    /// Addresses that cannot be listened on.
    CannotBind,
    /// More addresses than can be listened on.
    TooManyAddresses,
    /// More clients than the system allows open files for. Holds the number that it does.
    TooManyClients(u32),
    /// A path where a mere file name is wanted. Holds the setting's name.
    NotAFileName(&'static str),
    /// A path where a name is wanted.
    NotAPlainName {
        /// The setting's name.
        setting: &'static str,
        /// What is named.
        what: &'static str,
    },
    /// No name where one is wanted. Holds the setting's name.
    EmptyName(&'static str),
    /// A directory that cannot be entered, with the system's reason.
    Directory(String),
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A value of Redis that Tenon cannot honour, with the reason.
    NotSupported(&'static str),
}

impl Display for ValueError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotLog => f.write_str("Unable to turn on AOF. Check server logs."),
            Self::CannotListen => f.write_str("Unable to listen on this port. Check server logs."),
            Self::CannotUseTls => f.write_str("Unable to update TLS configuration. Check server logs."),
            Self::CannotBind => f.write_str("Failed to bind to specified addresses."),
            Self::WrongNumberOfArguments => f.write_str("wrong number of arguments"),
            Self::NotBool => f.write_str("argument must be 'yes' or 'no'"),
            Self::NotInteger => f.write_str("argument couldn't be parsed into an integer"),
            Self::NotOctal => f.write_str("argument couldn't be parsed as an octal number"),
            Self::NotMemory => f.write_str("argument must be a memory value"),
            Self::NotMemoryOrPercent => f.write_str("argument must be a memory or percent value"),
            Self::PercentTooBig => f.write_str("percentage argument must be less or equal to 100"),
            Self::MemoryUnknown => f.write_str("the memory of this machine is unknown, give a number of bytes"),
            Self::OutOfRange { min, max } => write!(f, "argument must be between {min} and {max} inclusive"),
            Self::OutOfOctalRange { min, max } => write!(f, "argument must be between {min:o} and {max:o} inclusive"),
            Self::NotPowerOfTwo(max) => write!(f, "argument must be a power of two between 1 and {max}"),
            Self::NotOneOf(names) => write!(f, "argument(s) must be one of the following: {}", names.join(", ")),
            Self::BufferLimitArity => f.write_str("Wrong number of arguments in buffer limit configuration."),
            Self::BufferLimitClass => f.write_str("Invalid client class specified in buffer limit configuration."),
            Self::BufferLimitNumber => {
                f.write_str("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
            }
            Self::InvalidSavePoints => f.write_str("Invalid save parameters"),
            Self::InvalidPercentiles => f.write_str("Invalid latency-tracking-info-percentiles parameters"),
            Self::PercentileOutOfRange => {
                f.write_str("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
            }
            Self::InvalidEventClass => f.write_str("Invalid event class character. Use 'Ag$lshzxeKEtmdnoc'."),
            Self::SaveAndNoSave => f.write_str("shutdown options SAVE and NOSAVE can't be used simultaneously"),
            Self::TooManyAddresses => f.write_str("Too many bind addresses specified."),
            Self::TooManyClients(most) => {
                write!(f, "The operating system is not able to handle the specified number of clients, try with {most}")
            }
            Self::NotAFileName(name) => write!(f, "{name} can't be a path, just a filename"),
            Self::NotAPlainName { setting, what } => write!(f, "{setting} can't be a path, just a {what}"),
            Self::EmptyName(name) => write!(f, "{name} can't be empty"),
            Self::Directory(reason) => f.write_str(reason),
            Self::NotUtf8 => f.write_str("argument must be UTF-8"),
            Self::NotSupported(reason) => write!(f, "not supported yet: {reason}"),
        }
    }
}

impl std::error::Error for ValueError {}

/// Why the server cannot start with the configuration it was given: what, and where it was said.
#[derive(Debug)]
pub struct LoadError {
    /// The file and line, or the command line.
    pub origin: Origin,
    /// What is wrong there.
    pub problem: LoadProblem,
}

/// What is wrong in a configuration file or on the command line.
#[derive(Debug)]
pub enum LoadProblem {
    /// No such setting.
    UnknownSetting {
        /// The name as it was given.
        name: String,
        /// The known name nearest to it, if any is near.
        nearest: Option<&'static str>,
    },
    /// A directive of Redis that Tenon does not have.
    UnsupportedDirective {
        /// The directive.
        name: String,
        /// Why it is not there.
        reason: &'static str,
    },
    /// A known setting with a wrong value.
    Value {
        /// The name as it was given.
        name: String,
        /// The value as it was given, or `None` where it is a secret.
        value: Option<String>,
        /// What is wrong with it.
        error: ValueError,
    },
    /// Quotes that do not end, or end within a word.
    UnbalancedQuotes,
    /// A line that is no comment and is not UTF-8.
    NotUtf8,
    /// A word on the command line that belongs to no flag.
    StrayArgument(String),
    /// An option of memcached's command line that is not understood.
    MemcachedOption {
        /// The option as it was given.
        option: String,
        /// Why not.
        text: &'static str,
    },
    /// An option of memcached's command line with a value that its setting does not take.
    MemcachedValue {
        /// The option.
        option: Box<str>,
        /// The value as it was given.
        value: String,
        /// What is wrong with it.
        error: ValueError,
    },
    /// A line in a file of memcached's options that is none.
    NoMemcachedOption,
    /// An argument that memcached does not start with.
    MemcachedRefusal(MemcachedRefusal),
    /// Sizes on memcached's command line that do not go together.
    MemcachedSizes(SizeRefusal),
    /// Files that include each other, or too deep a nesting.
    IncludeTooDeep,
    /// A file that cannot be read.
    Read {
        /// The file, as it was named.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

impl Display for LoadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let dashes = if matches!(self.origin, Origin::CommandLine) { "--" } else { "" };
        write!(f, "{}: ", self.origin)?;
        match &self.problem {
            LoadProblem::UnknownSetting { name, nearest } => {
                write!(f, "unknown setting '{dashes}{name}'")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean '{dashes}{nearest}'?"),
                    None => f.write_str("; `tenon --help all` lists every setting"),
                }
            }
            LoadProblem::UnsupportedDirective { name, reason } => write!(f, "'{name}' is not supported yet: {reason}"),
            LoadProblem::Value { name, value: Some(value), error } => write!(f, "{dashes}{name} '{value}': {error}"),
            LoadProblem::Value { name, value: None, error } => write!(f, "{dashes}{name}: {error}"),
            LoadProblem::UnbalancedQuotes => f.write_str("unbalanced quotes"),
            LoadProblem::NotUtf8 => f.write_str("the line is not UTF-8"),
            LoadProblem::StrayArgument(word) => {
                write!(f, "unexpected argument '{word}': the file comes first, then --name value ...")
            }
            LoadProblem::MemcachedSizes(refusal) => refusal.fmt(f),
            LoadProblem::MemcachedRefusal(refusal) => refusal.fmt(f),
            LoadProblem::NoMemcachedOption => f.write_str("the line is no option of memcached's command line"),
            LoadProblem::MemcachedValue { option, value, error } => write!(f, "{option} '{value}': {error}"),
            LoadProblem::MemcachedOption { option, text } => write!(f, "'{option}': {text}"),
            LoadProblem::IncludeTooDeep => f.write_str("files are included too deep; does one include itself?"),
            LoadProblem::Read { path, error } => write!(f, "can't read '{}': {error}", path.display()),
        }
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    /// What the process ends with: 1, but where memcached says that it is used in a wrong way (`EX_USAGE`).
    pub fn exit_code(&self) -> u8 {
        match &self.problem {
            LoadProblem::MemcachedSizes(_) => 64,
            LoadProblem::MemcachedRefusal(refusal) => refusal.exit_code(),
            _ => 1,
        }
    }
}

/// Why CONFIG SET changed nothing. Shown without the leading `ERR `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No such setting. Holds the name as it was given.
    Unknown(String),
    /// The setting can only be given at the start. Holds the name as it was given.
    Immutable(String),
    /// The setting is protected from clients by `enable-protected-configs`. Holds the name as it was given.
    Protected(String),
    /// The same name twice. Holds the name as it was given.
    Duplicate(String),
    /// A value that is not one for its setting. Holds the setting's own name.
    Value(&'static str, ValueError),
}

impl Display for SetError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, reason): (&str, &dyn Display) = match self {
            Self::Unknown(name) => {
                return write!(f, "Unknown option or number of arguments for CONFIG SET - '{name}'");
            }
            Self::Immutable(name) => (name, &"can't set immutable config"),
            Self::Protected(name) => (name, &"can't set protected config"),
            Self::Duplicate(name) => (name, &"duplicate parameter"),
            Self::Value(name, error) => (name, error),
        };
        write!(f, "CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    }
}

impl std::error::Error for SetError {}

/// Why CONFIG REWRITE left the file as it was. Shown without the leading `ERR `.
#[derive(Debug)]
pub enum RewriteError {
    /// The server was started without a file.
    NoFile,
    /// The file, or one that it includes, no longer loads.
    Load(LoadError),
    /// Users have changed that an included file names, which is not rewritten.
    UsersIncluded,
    /// The file cannot be written.
    Write(io::Error),
}

impl Display for RewriteError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("The server is running without a config file"),
            Self::Load(error) => write!(f, "Rewriting config file: {error}"),
            Self::UsersIncluded => f.write_str(
                "Rewriting config file: users have changed that an included file names: name them in the file itself",
            ),
            Self::Write(error) => write!(f, "Rewriting config file: {error}"),
        }
    }
}

impl std::error::Error for RewriteError {}
