//! Values of settings: read from words by the rules of their kind, and shown in Redis's text forms. It knows kinds,
//! but no setting by name, and holds nothing.

use std::fmt::{self, Display, Formatter};
use std::num::IntErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::end_words::EndWords;
use super::error::ValueError;
use super::machine::Machine;
use super::setting::Kind;
use crate::notify::EventClass;

/// The value of any setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, a bool as 0 or 1, bytes, the index of a choice, or the bits of `EventClass`.
    Number(i64),
    /// A text; lists are its words.
    Text(Arc<str>),
    /// The output buffer limits of all classes.
    Limits(OutputBufferLimits),
}

impl Value {
    /// The text of CONFIG GET for a setting of this kind.
    pub(super) fn show(&self, kind: &Kind) -> String {
        match (self, kind) {
            (Self::Number(number), Kind::Bool) => if *number != 0 { "yes" } else { "no" }.to_owned(),
            (Self::Number(number @ ..0), Kind::MemoryOrShare) => format!("{}%", -number),
            (Self::Number(number), Kind::Octal { .. }) => format!("{number:o}"),
            (Self::Number(number), Kind::Choice(names)) => names[*number as usize].to_owned(),
            (Self::Number(number), Kind::NotifyFlags) => EventClass(*number as u32).to_string(),
            (Self::Number(number), _) => number.to_string(),
            (Self::Text(text), _) => text.to_string(),
            (Self::Limits(limits), _) => limits.to_string(),
        }
    }
}

/// What reading a value depends on besides its words.
pub(super) struct Scene<'a> {
    /// The value so far, for kinds that change a part of it.
    pub current: &'a Value,
    /// For percentages.
    pub machine: &'a Machine,
    /// Where relative paths start; empty for wherever the process works.
    pub directory: &'a Path,
    /// The setting's name, for errors that hold it.
    pub name: &'static str,
}

/// The value that `words` stand for.
pub(super) fn parse(kind: &Kind, words: &[String], scene: &Scene<'_>) -> Result<Value, ValueError> {
    match *kind {
        Kind::Bool => parse_bool(one(words)?).map(Value::Number),
        Kind::Int { min, max } => within(parse_integer(one(words)?)?, min, max).map(Value::Number),
        Kind::Clamped { min, max } => {
            let number = within(parse_integer(one(words)?)?, 0, i64::from(i32::MAX))?;
            Ok(Value::Number(number.clamp(min, max)))
        }
        Kind::PowerOfTwo { max } => {
            let number = within(parse_integer(one(words)?)?, 1, max)?;
            if number.count_ones() == 1 { Ok(Value::Number(number)) } else { Err(ValueError::NotPowerOfTwo(max)) }
        }
        Kind::Octal { max } => {
            let number = i64::from_str_radix(one(words)?, 8).map_err(|_| ValueError::NotOctal)?;
            if (0..=max).contains(&number) {
                Ok(Value::Number(number))
            } else {
                Err(ValueError::OutOfOctalRange { min: 0, max })
            }
        }
        Kind::Memory { min, max } => {
            within(parse_memory(one(words)?).ok_or(ValueError::NotMemory)?, min, max).map(Value::Number)
        }
        Kind::MemoryUpTo { min, max } => {
            let bytes = parse_memory(one(words)?).ok_or(ValueError::NotMemory)?;
            within(bytes.min(max), min, max).map(Value::Number)
        }
        Kind::MemoryOrPercent => parse_memory_or_percent(one(words)?, scene.machine).map(Value::Number),
        Kind::MemoryOrShare => parse_memory_or_share(one(words)?).map(Value::Number),
        Kind::Choice(names) => {
            let word = one(words)?;
            let index = names.iter().position(|name| name.eq_ignore_ascii_case(word));
            index.map(|index| Value::Number(index as i64)).ok_or(ValueError::NotOneOf(names))
        }
        Kind::Text => Ok(Value::Text(one(words)?.into())),
        Kind::FileName => {
            let word = one(words)?;
            if word.contains('/') { Err(ValueError::NotAFileName(scene.name)) } else { Ok(Value::Text(word.into())) }
        }
        Kind::PlainName(what) => match one(words)? {
            "" => Err(ValueError::EmptyName(scene.name)),
            word if word.contains(['/', '\\']) => Err(ValueError::NotAPlainName { setting: scene.name, what }),
            word => Ok(Value::Text(word.into())),
        },
        Kind::Directory => parse_directory(one(words)?, scene.directory).map(Value::Text),
        Kind::Words { max } => {
            let words: Vec<_> = inner_words(words).collect();
            if words.len() > max { Err(ValueError::TooManyAddresses) } else { Ok(Value::Text(words.join(" ").into())) }
        }
        Kind::SavePoints => parse_save_points(words).map(|points| Value::Text(show_save_points(&points).into())),
        Kind::OutputBufferLimits => parse_limits(words, scene.current).map(Value::Limits),
        Kind::NotifyFlags => {
            let flags = EventClass::parse(one(words)?).ok_or(ValueError::InvalidEventClass)?;
            Ok(Value::Number(i64::from(flags.0)))
        }
        Kind::Percentiles => parse_percentiles(words).map(|text| Value::Text(text.into())),
        Kind::EndWords => EndWords::parse(words).map(|text| Value::Text(text.into())),
    }
}

fn one(words: &[String]) -> Result<&str, ValueError> {
    match words {
        [word] => Ok(word),
        _ => Err(ValueError::WrongNumberOfArguments),
    }
}

/// The words, and those within quoted ones: `save "1 2"` is `save 1 2`.
pub(super) fn inner_words(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().flat_map(|word| word.split(' ')).filter(|word| !word.is_empty())
}

fn within(number: i64, min: i64, max: i64) -> Result<i64, ValueError> {
    if (min..=max).contains(&number) { Ok(number) } else { Err(ValueError::OutOfRange { min, max }) }
}

fn parse_bool(word: &str) -> Result<i64, ValueError> {
    match word {
        yes if yes.eq_ignore_ascii_case("yes") => Ok(1),
        no if no.eq_ignore_ascii_case("no") => Ok(0),
        _ => Err(ValueError::NotBool),
    }
}

/// As Redis's `string2ll`: no blanks, no plus sign, no leading zeros.
fn parse_integer(word: &str) -> Result<i64, ValueError> {
    let number = word.parse::<i64>().map_err(|_| ValueError::NotInteger)?;
    if number.to_string() == word { Ok(number) } else { Err(ValueError::NotInteger) }
}

/// As Redis's `memtoull`, but the digits must be there and the bytes must fit.
pub fn parse_memory(word: &str) -> Option<i64> {
    let (digits, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
    let factor: i64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

/// Bytes as short as a file can say them without loss: `67108864` is `64mb`.
pub(super) fn show_memory(bytes: i64) -> String {
    [(30, "gb"), (20, "mb"), (10, "kb")]
        .into_iter()
        .find(|(shift, _)| bytes != 0 && bytes % (1 << shift) == 0)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

fn parse_memory_or_percent(word: &str, machine: &Machine) -> Result<i64, ValueError> {
    let Some(percent) = word.strip_suffix('%') else {
        return parse_memory(word).ok_or(ValueError::NotMemory);
    };
    let bytes = machine.percent_of_memory(parse_percent(percent)?).ok_or(ValueError::MemoryUnknown)?;
    Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn parse_memory_or_share(word: &str) -> Result<i64, ValueError> {
    match word.strip_suffix('%') {
        Some(percent) => Ok(-(parse_percent(percent)? as i64)),
        None => parse_memory(word).ok_or(ValueError::NotMemoryOrPercent),
    }
}

fn parse_percent(word: &str) -> Result<u64, ValueError> {
    let percent = parse_integer(word).ok().and_then(|percent| u64::try_from(percent).ok());
    match percent {
        None => Err(ValueError::NotMemoryOrPercent),
        Some(101..) => Err(ValueError::PercentTooBig),
        Some(percent) => Ok(percent),
    }
}

/// The directory's absolute path, after a look that it is one.
fn parse_directory(word: &str, from: &Path) -> Result<Arc<str>, ValueError> {
    let refused = |error: std::io::Error| ValueError::Directory(system_reason(&error));
    // Of nothing the system says that it is not there.
    let path = if word.is_empty() { PathBuf::new() } else { from.join(word) };
    let path = std::fs::canonicalize(path).map_err(refused)?;
    // What it holds need not be known: it is enough that one may go in.
    std::fs::metadata(path.join(".")).map_err(refused)?;
    Ok(path.to_str().ok_or(ValueError::NotUtf8)?.into())
}

/// The system's text alone: Rust adds ` (os error 2)`, which C's `strerror` does not.
pub(crate) fn system_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// "Save when so many seconds have passed and so many changes were made."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last save, at least 1.
    pub seconds: u64,
    /// Changes since the last save.
    pub changes: u32,
}

/// The numbers of save points: several words, or one that has all of them with a blank between two. As in Redis more blanks are
/// empty numbers.
pub(super) fn save_words(words: &[String]) -> Vec<&str> {
    match words {
        [word] if word.is_empty() => Vec::new(),
        [word] => word.split(' ').collect(),
        words => words.iter().map(String::as_str).collect(),
    }
}

/// The number that C's `strtoll` reads, as Redis has it do: nothing is 0, and what is too high the highest.
fn lenient_number(word: &str) -> Option<i64> {
    if word.is_empty() {
        return Some(0);
    }
    let number = word.trim_start_matches([' ', '\t', '\n', '\x0B', '\x0C', '\r']);
    match number.parse() {
        Ok(number) => Some(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(i64::MAX),
        Err(_) => None,
    }
}

fn parse_save_points(words: &[String]) -> Result<Vec<SavePoint>, ValueError> {
    let point = |pair: &[&str]| {
        let [seconds, changes] = *pair else { return None };
        let seconds = lenient_number(seconds).filter(|seconds| *seconds > 0)?;
        // Of more changes Redis takes the lower 32 bits.
        let changes = lenient_number(changes).filter(|changes| i32::try_from(*changes).is_ok())?;
        Some(SavePoint { seconds: seconds.unsigned_abs(), changes: u32::try_from(changes).ok()? })
    };
    save_words(words).chunks(2).map(|pair| point(pair).ok_or(ValueError::InvalidSavePoints)).collect()
}

fn show_save_points(points: &[SavePoint]) -> String {
    let pairs: Vec<_> = points.iter().map(|point| format!("{} {}", point.seconds, point.changes)).collect();
    pairs.join(" ")
}

impl SavePoint {
    /// The points a value of `Kind::SavePoints` holds.
    pub(super) fn list(text: &str) -> Vec<Self> {
        parse_save_points(&[text.to_owned()]).unwrap_or_default()
    }
}

fn parse_percentiles(words: &[String]) -> Result<String, ValueError> {
    let mut shown = Vec::new();
    for word in inner_words(words) {
        let number = word.parse::<f64>().ok().filter(|number| !number.is_nan());
        let number = number.ok_or(ValueError::InvalidPercentiles)?;
        if !(0.0..=100.0).contains(&number) {
            return Err(ValueError::PercentileOutOfRange);
        }
        shown.push(number.to_string());
    }
    Ok(shown.join(" "))
}

/// The classes of clients that have output buffer limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    /// Ordinary clients.
    Normal,
    /// Replicas.
    Replica,
    /// Subscribers.
    Pubsub,
}

impl ClientClass {
    /// All classes, by index.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Replica, Self::Pubsub];
    /// Their names in CONFIG GET; Redis 7 still says `slave` there.
    const NAMES: [&'static str; 3] = ["normal", "slave", "pubsub"];
    /// Their names in files that CONFIG REWRITE writes.
    pub(super) const FILE_NAMES: [&'static str; 3] = ["normal", "replica", "pubsub"];

    fn from_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("replica") { "slave" } else { name };
        Self::ALL
            .into_iter()
            .zip(Self::NAMES)
            .find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map(|(class, _)| class)
    }
}

/// When a client that does not read its replies is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBufferLimit {
    /// Closed at once beyond so many bytes; 0 for no limit.
    pub hard_bytes: u64,
    /// Closed when beyond so many bytes for `soft_seconds`; 0 for no limit.
    pub soft_bytes: u64,
    /// The seconds of `soft_bytes`.
    pub soft_seconds: u64,
}

/// The output buffer limits of all classes, indexed by `ClientClass as usize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBufferLimits(pub [OutputBufferLimit; 3]);

impl OutputBufferLimits {
    /// No limits at all.
    pub(super) const NONE: Self =
        Self([OutputBufferLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 }; ClientClass::ALL.len()]);
}

impl Display for OutputBufferLimits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (name, limit)) in ClientClass::NAMES.iter().zip(self.0).enumerate() {
            let blank = if index == 0 { "" } else { " " };
            let OutputBufferLimit { hard_bytes, soft_bytes, soft_seconds } = limit;
            write!(f, "{blank}{name} {hard_bytes} {soft_bytes} {soft_seconds}")?;
        }
        Ok(())
    }
}

fn parse_limits(words: &[String], current: &Value) -> Result<OutputBufferLimits, ValueError> {
    let mut limits = match current {
        Value::Limits(limits) => *limits,
        _ => OutputBufferLimits::NONE,
    };
    let words: Vec<_> = inner_words(words).collect();
    for limit in words.chunks(4) {
        let [class, hard, soft, seconds] = *limit else { return Err(ValueError::BufferLimitArity) };
        let class = ClientClass::from_name(class).ok_or(ValueError::BufferLimitClass)?;
        let bytes = |word| parse_memory(word).map(|bytes| bytes as u64).ok_or(ValueError::BufferLimitNumber);
        limits.0[class as usize] = OutputBufferLimit {
            hard_bytes: bytes(hard)?,
            soft_bytes: bytes(soft)?,
            soft_seconds: seconds.parse::<u32>().map_err(|_| ValueError::BufferLimitNumber)?.into(),
        };
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads words as a kind and shows the value or the error.
    fn read(kind: Kind, words: &[&str]) -> String {
        let machine = Machine { cores: 2, memory_bytes: Some(1_000), directory: "/".into() };
        let current = Value::Limits(OutputBufferLimits::NONE);
        let scene = Scene { current: &current, machine: &machine, directory: Path::new(""), name: "test" };
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse(&kind, &words, &scene) {
            Ok(value) => value.show(&kind),
            Err(error) => format!("! {error}"),
        }
    }

    /// Checks `input => shown` lines; the errors were recorded from redis-server 7.0.15.
    fn check(kind: Kind, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (input, expected) = line.split_once("=>").unwrap();
            assert_eq!(read(kind, &[input.trim().trim_matches('`')]), expected.trim(), "{kind:?} {line}");
        }
    }

    #[test]
    fn bools() {
        check(
            Kind::Bool,
            "yes => yes
             NO => no
             maybe => ! argument must be 'yes' or 'no'",
        );
        assert_eq!(read(Kind::Bool, &["yes", "no"]), "! wrong number of arguments");
        assert_eq!(read(Kind::Bool, &[]), "! wrong number of arguments");
    }

    #[test]
    fn integers() {
        check(
            Kind::Int { min: -1, max: 65535 },
            "0 => 0
             -1 => -1
             65535 => 65535
             65536 => ! argument must be between -1 and 65535 inclusive
             007 => ! argument couldn't be parsed into an integer
             +5 => ! argument couldn't be parsed into an integer
             ` 5` => ! argument couldn't be parsed into an integer
             1e3 => ! argument couldn't be parsed into an integer
             0x5 => ! argument couldn't be parsed into an integer
             99999999999999999999 => ! argument couldn't be parsed into an integer",
        );
        check(
            Kind::Clamped { min: 1, max: 500 },
            "0 => 1
             1000 => 500
             -1 => ! argument must be between 0 and 2147483647 inclusive",
        );
        check(
            Kind::PowerOfTwo { max: 8 },
            "8 => 8
             1 => 1
             6 => ! argument must be a power of two between 1 and 8
             16 => ! argument must be between 1 and 8 inclusive",
        );
        check(
            Kind::Octal { max: 0o777 },
            "700 => 700
             999 => ! argument couldn't be parsed as an octal number
             7777 => ! argument must be between 0 and 777 inclusive",
        );
    }

    #[test]
    fn memory_up_to() {
        check(
            Kind::MemoryUpTo { min: 1 << 20, max: 1 << 30 },
            "1mb => 1048576
             1gb => 1073741824
             2gb => 1073741824
             9223372036854775807 => 1073741824
             1kb => ! argument must be between 1048576 and 1073741824 inclusive
             9223372036854775808 => ! argument must be a memory value",
        );
    }

    #[test]
    fn memory() {
        check(
            Kind::Memory { min: 0, max: i64::MAX },
            "1k => 1000
             1KB => 1024
             5m => 5000000
             512mb => 536870912
             1gB => 1073741824
             7b => 7
             abc => ! argument must be a memory value
             -1 => ! argument must be a memory value
             1.5gb => ! argument must be a memory value
             100kk => ! argument must be a memory value
             1 mb => ! argument must be a memory value
             `` => ! argument must be a memory value
             gb => ! argument must be a memory value
             99999999999gb => ! argument must be a memory value",
        );
        check(
            Kind::MemoryOrPercent,
            "1kb => 1024
             80% => 800
             0% => 0
             101% => ! percentage argument must be less or equal to 100
             abc% => ! argument must be a memory or percent value
             abc => ! argument must be a memory value",
        );
        check(
            Kind::MemoryOrShare,
            "1kb => 1024
             5% => 5%
             100% => 100%
             0% => 0
             200% => ! percentage argument must be less or equal to 100
             -5% => ! argument must be a memory or percent value
             abc => ! argument must be a memory or percent value",
        );
        for bytes in [0, 1, 1000, 1024, 1536, 1 << 20, 3 << 30] {
            assert_eq!(parse_memory(&show_memory(bytes)), Some(bytes));
        }
        assert_eq!(show_memory(100 << 20), "100mb");
    }

    #[test]
    fn choices_and_texts() {
        check(
            Kind::Choice(&["no", "yes", "local"]),
            "LOCAL => local
             foo => ! argument(s) must be one of the following: no, yes, local",
        );
        check(Kind::FileName, "a/b => ! test can't be a path, just a filename");
        check(Kind::PlainName("dirname"), "a/b => ! test can't be a path, just a dirname");
        check(Kind::PlainName("filename"), "a.aof => a.aof");
        check(Kind::Directory, "/nonexistent => ! No such file or directory");
        check(Kind::Words { max: 2 }, "a b c => ! Too many bind addresses specified.");
        assert_eq!(read(Kind::Words { max: 3 }, &["a", "b"]), "a b");
    }

    #[test]
    fn save_points() {
        check(
            Kind::SavePoints,
            "100 1 60 5 => 100 1 60 5
             `` =>
             100 => ! Invalid save parameters
             100 x => ! Invalid save parameters
             0 1 => ! Invalid save parameters
             1 -1 => ! Invalid save parameters
             `5 ` => 5 0
             ` 5 1` => ! Invalid save parameters
             `5 1 ` => ! Invalid save parameters
             `5  1` => ! Invalid save parameters
             `  ` => ! Invalid save parameters
             2147483648 1 => 2147483648 1
             9223372036854775808 1 => 9223372036854775807 1
             1 2147483648 => ! Invalid save parameters
             +5 1 => 5 1
             0x5 1 => ! Invalid save parameters",
        );
        assert_eq!(read(Kind::SavePoints, &["5", "1", "60", "2"]), "5 1 60 2");
        assert_eq!(read(Kind::SavePoints, &["5 1", "60 2"]), "! Invalid save parameters");
        assert_eq!(SavePoint::list("100 1 60 5")[1], SavePoint { seconds: 60, changes: 5 });
    }

    #[test]
    fn output_buffer_limits() {
        check(
            Kind::OutputBufferLimits,
            "normal 1mb 2kb 3 REPLICA 1 2 3 => normal 1048576 2048 3 slave 1 2 3 pubsub 0 0 0
             slave 1 2 3 => normal 0 0 0 slave 1 2 3 pubsub 0 0 0
             normal 1 2 => ! Wrong number of arguments in buffer limit configuration.
             foo 1 2 3 => ! Invalid client class specified in buffer limit configuration.
             master 1 2 3 => ! Invalid client class specified in buffer limit configuration.
             normal -1 2 3 => ! Error in hard, soft or soft_seconds setting in buffer limit configuration.
             normal 1 2 -3 => ! Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        );
    }

    #[test]
    fn notify_flags() {
        check(
            Kind::NotifyFlags,
            "`` =>
             A => A
             KEA$nm => AnKEm
             gxE$ => g$xE
             nKEmg => gnKEm
             KEg$lshzxetd => AKE
             q => ! Invalid event class character. Use 'Ag$lshzxeKEtmdnoc'.",
        );
    }

    #[test]
    fn end_words() {
        check(
            Kind::EndWords,
            "default => default
             NOW nosave default => nosave now
             force save => save force
             save nosave => ! shutdown options SAVE and NOSAVE can't be used simultaneously
             `` => ! argument(s) must be one of the following: default, save, nosave, now, force
             x => ! argument(s) must be one of the following: default, save, nosave, now, force",
        );
    }

    #[test]
    fn percentiles() {
        check(
            Kind::Percentiles,
            "50 99.95 => 50 99.95
             1e1 0.10 => 10 0.1
             `` =>
             50 a => ! Invalid latency-tracking-info-percentiles parameters
             nan => ! Invalid latency-tracking-info-percentiles parameters
             50 101 => ! latency-tracking-info-percentiles parameters should sit between [0.0,100.0]
             inf => ! latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
        );
    }
}
