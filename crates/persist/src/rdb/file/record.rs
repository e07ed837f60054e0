//! One record of a file: what it begins with, and where it ends. Knows neither where the bytes come from nor how many are
//! there.

use super::super::{Origin, extras};
use super::batch::{EntrySpan, Note, Usage};
use super::cut::{OnModule, Options};
use super::error::{Cause, Doing};
use super::module;
use super::opcode;
use super::scan::{Scan, Stop};
use super::skip::{Skipped, skip_lengths, skip_value};
use std::borrow::Cow;
use tenon_wire::rdb::ReadError;

/// What earlier records have said about those that follow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The database of the keys.
    pub(super) database: usize,
    /// When the next key expires.
    deadline_ms: Option<u64>,
    /// How the next key was used.
    usage: Usage,
}

/// What stands at a place.
pub(super) enum Record {
    /// Nothing that is kept.
    Passed,
    /// Something beside the keys.
    Noted(Note),
    /// A key.
    Entry(EntrySpan),
    /// The end.
    End,
}

/// Why a record cannot be read.
pub(super) struct Fault {
    pub(super) stop: Halt,
    pub(super) doing: Doing,
    /// Where the key stands, and the form of its value.
    pub(super) key: Option<(usize, u8)>,
}

/// Why one cannot go on.
pub(super) enum Halt {
    /// So many bytes are needed, counted from where the scan began.
    More(u64),
    /// What stands there is wrong.
    Wrong(Cause),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        match stop {
            Stop::More(bytes) => Halt::More(bytes),
            Stop::Wrong(error) => Halt::Wrong(Cause::Value(error)),
        }
    }
}

impl From<Cause> for Halt {
    fn from(cause: Cause) -> Halt {
        Halt::Wrong(cause)
    }
}

/// What is wrong, and what was read.
trait While<T> {
    fn doing(self, doing: Doing) -> Result<T, Fault>;
}

impl<T, E: Into<Halt>> While<T> for Result<T, E> {
    fn doing(self, doing: Doing) -> Result<T, Fault> {
        self.map_err(|error| Fault { stop: error.into(), doing, key: None })
    }
}

/// Passes over one record and tells what it is. When it is not wholly there, nothing has changed.
pub(super) fn read_record(
    scan: &mut Scan<'_>,
    place: &mut Place,
    origin: Origin,
    options: &Options,
) -> Result<Record, Fault> {
    match scan.byte().doing(Doing::Type)? {
        opcode::DEADLINE_MS => {
            let ms = i64::from_le_bytes(scan.array().doing(Doing::Expire)?);
            place.deadline_ms = deadline(ms);
        }
        opcode::DEADLINE_SECONDS => {
            let seconds = i32::from_le_bytes(scan.array().doing(Doing::Expire)?);
            place.deadline_ms = deadline(i64::from(seconds) * 1_000);
        }
        opcode::FREQUENCY => place.usage = Usage::Frequency(scan.byte().doing(Doing::Type)?),
        opcode::IDLE => place.usage = Usage::IdleSeconds(scan.length().doing(Doing::Type)?),
        opcode::SELECT => {
            let index = scan.length().doing(Doing::Length)?;
            let found = usize::try_from(index).ok().filter(|index| *index < options.databases);
            place.database =
                found.ok_or(Cause::Database { index, databases: options.databases }).doing(Doing::Length)?;
            return Ok(Record::Noted(Note::Database(place.database)));
        }
        opcode::RESIZE => {
            let count = scan.length().doing(Doing::Length)?;
            skip_lengths(scan, 1).doing(Doing::Length)?;
            return Ok(Record::Noted(Note::Keys { database: place.database, count }));
        }
        opcode::SLOT_INFO => skip_lengths(scan, 3).doing(Doing::Length)?,
        opcode::KEY_METADATA if origin == Origin::Redis => return key_metadata(scan, options.on_module),
        opcode::SLOT_IMPORT => {
            scan.skip_string().doing(Doing::Type)?;
            let ranges = scan.count(2).doing(Doing::Length)?;
            for _ in 0..ranges {
                skip_lengths(scan, 2).doing(Doing::Length)?;
            }
        }
        opcode::AUXILIARY => {
            let name = scan.string().doing(Doing::Auxiliary)?.into_owned();
            let text = scan.string().doing(Doing::Auxiliary)?.into_owned();
            return Ok(Record::Noted(Note::Auxiliary { name, text }));
        }
        opcode::MODULE_AUXILIARY => return module_auxiliary(scan, options.on_module),
        opcode::FUNCTION => {
            let code = scan.string().doing(Doing::Functions)?.into_owned();
            return Ok(Record::Noted(Note::Function(code)));
        }
        opcode::FUNCTION_BEFORE_7 => return Err(Cause::EarlyFunctions).doing(Doing::Functions),
        opcode::END => return Ok(Record::End),
        form => return entry(form, scan, place, origin, options.on_module),
    }
    Ok(Record::Passed)
}

/// What is meant by a deadline: -1 is none, and what lies before the epoch is past.
fn deadline(ms: i64) -> Option<u64> {
    (ms != -1).then(|| u64::try_from(ms).unwrap_or(0))
}

fn module_auxiliary(scan: &mut Scan<'_>, on_module: OnModule) -> Result<Record, Fault> {
    let doing = Doing::ModuleAuxiliary;
    let name = module::name_of(scan.length().doing(doing)?);
    if scan.length().doing(doing)? != module::UNSIGNED {
        let wrong = ReadError::Malformed("a module's data does not say when it is to be read");
        return Err(Stop::from(wrong)).doing(doing);
    }
    scan.length().doing(doing)?;
    if on_module == OnModule::Refuse {
        return Err(Cause::Module(name)).doing(doing);
    }
    module::skip_parts(scan).doing(doing)?;
    Ok(Record::Noted(Note::SkippedModule(name)))
}

/// Passes over what modules keep of the key that follows.
fn key_metadata(scan: &mut Scan<'_>, on_module: OnModule) -> Result<Record, Fault> {
    let metadata = module::skip_metadata(scan).doing(Doing::Type)?;
    let mut ahead = scan.clone_at(scan.at());
    let form = ahead.byte().doing(Doing::Type)?;
    if form >= opcode::KEY_METADATA {
        let wrong = ReadError::Malformed("no key follows a key's metadata");
        return Err(Stop::from(wrong)).doing(Doing::Type);
    }
    let key_at = ahead.at();
    let key = ahead.string().doing(Doing::Key)?.into_owned();
    match metadata.needed {
        Some(class) if on_module == OnModule::Refuse => {
            Err(Fault { stop: Cause::Module(class).into(), doing: Doing::Value, key: Some((key_at, form)) })
        }
        _ if metadata.classes.is_empty() => Ok(Record::Passed),
        _ => Ok(Record::Noted(Note::SkippedMetadata { key, classes: metadata.classes })),
    }
}

/// Passes over a key and its value, and over what Tenon has written behind it.
fn entry(
    form: u8,
    scan: &mut Scan<'_>,
    place: &mut Place,
    origin: Origin,
    on_module: OnModule,
) -> Result<Record, Fault> {
    let key_at = scan.at();
    scan.skip_string().doing(Doing::Key)?;
    let value_at = scan.at();
    let record =
        value(form, scan, origin).map_err(|stop| Fault { stop, doing: Doing::Value, key: Some((key_at, form)) });
    let span = EntrySpan {
        database: place.database as u32,
        form,
        usage: place.usage,
        deadline_ms: place.deadline_ms,
        key_at,
        value_at,
        end: scan.at(),
    };
    let key = || scan.clone_at(key_at).string().map(Cow::into_owned).doing(Doing::Key);
    let record = match record? {
        Skipped::Known => Record::Entry(span),
        Skipped::Module(number) => {
            let module = module::name_of(number);
            if on_module == OnModule::Refuse {
                let stop = Cause::Module(module).into();
                return Err(Fault { stop, doing: Doing::Value, key: Some((key_at, form)) });
            }
            Record::Noted(Note::SkippedKey { key: key()?, module })
        }
    };
    (place.deadline_ms, place.usage) = (None, Usage::Unknown);
    Ok(record)
}

fn value(form: u8, scan: &mut Scan<'_>, origin: Origin) -> Result<Skipped, Halt> {
    let skipped = skip_value(form, origin, scan)?;
    // There is always something behind a value, if only the end.
    while scan.peek()? == opcode::AUXILIARY {
        let mut ahead = scan.clone_at(scan.at() + 1);
        let name = ahead.string()?;
        if !extras::is_of_value(&name) {
            break;
        }
        ahead.skip_string()?;
        *scan = ahead;
    }
    Ok(skipped)
}
