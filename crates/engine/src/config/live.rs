//! The configuration in force: values that hot code reads with one relaxed load, CONFIG GET and CONFIG SET. It knows
//! the table, but not what changes bring about: `set` says what changed, and the caller applies it.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};
use tenon_ds::glob::{Case, glob};

use super::choices::{Access, Choice};
use super::end_words::EndWords;
use super::error::{SetError, ValueError};
use super::loader::{Rename, UserLine, Warning};
use super::machine::Machine;
use super::setting::{At, Guard, Initial, Kind, Setting, Support};
use super::table::{FITS, SETTINGS, SettingId, find};
use super::unsupported::{ACCEPTED_AT_DEFAULT, Fixed, find_fixed};
use super::value::{ClientClass, OutputBufferLimit, OutputBufferLimits, SavePoint, Scene, Value, parse};
use crate::errors::shown;
use crate::notify::EventClass;

const COUNT: usize = SETTINGS.len();

/// What CONFIG GET has a row of.
#[derive(Clone, Copy)]
enum Row {
    Setting(&'static Setting),
    Fixed(&'static Fixed),
}

/// The rows of CONFIG GET in order, each with its name.
fn rows() -> impl Iterator<Item = (&'static str, Row)> {
    let settings = SETTINGS.iter().flat_map(|setting| setting.names().map(move |name| (name, Row::Setting(setting))));
    let fixed = ACCEPTED_AT_DEFAULT.iter().flat_map(|fixed| fixed.names().map(move |name| (name, Row::Fixed(fixed))));
    settings.chain(fixed)
}

/// A row that was found by its name.
struct Found {
    place: usize,
    name: &'static str,
    row: Row,
}

/// The rows by their names in lower case: clients ask for one at a time.
static ROWS_BY_NAME: LazyLock<HashMap<Vec<u8>, Found>> = LazyLock::new(|| {
    let found = rows().enumerate().map(|(place, (name, row))| (name, Found { place, name, row }));
    found.map(|(name, found)| (name.as_bytes().to_ascii_lowercase(), found)).collect()
});

/// All settings with their values. Reads may run beside a `set`: each value is whole, and several that are set
/// together appear one by one.
pub struct Config {
    /// Values of numbers, by `SettingId`; the places of other settings stay 0.
    numbers: [AtomicI64; COUNT],
    /// Values of texts and lists, by `SettingId`; the places of other settings stay empty.
    texts: [RwLock<Arc<str>>; COUNT],
    /// The value of client-output-buffer-limit: hard bytes, soft bytes and soft seconds of each class.
    limits: [[AtomicU64; 3]; ClientClass::ALL.len()],
    /// The values at the start of a machine like this one, without file and flags.
    initial: Vec<Value>,
    machine: Machine,
    /// The file that CONFIG REWRITE writes.
    pub(super) file: Option<PathBuf>,
    /// What was read, in order, as people call it.
    pub(super) sources: Vec<String>,
    pub(super) is_memcached: bool,
    pub(super) warnings: Vec<Warning>,
    pub(super) users: Vec<UserLine>,
    pub(super) renames: Vec<Rename>,
    /// Held while values change. A CONFIG SET stores its own in steps.
    pub(super) changing: Mutex<()>,
}

/// A setting, and a value that it may have.
pub(crate) struct Staged {
    pub(crate) setting: &'static Setting,
    value: Value,
}

impl Staged {
    /// Whether somebody may be let in by the value who is not without it.
    pub(crate) fn lets_in(&self) -> bool {
        match (self.setting.id, &self.value) {
            (SettingId::requirepass, Value::Text(password)) => password.is_empty(),
            (SettingId::protected_mode | SettingId::memcached_auth, Value::Number(is_on)) => *is_on == 0,
            _ => false,
        }
    }

    /// Whether an append-only log is to be there with it.
    pub(crate) fn begins_log(&self) -> bool {
        matches!((self.setting.id, &self.value), (SettingId::appendonly, Value::Number(is_on)) if *is_on != 0)
    }
}

/// A setting that `set` has given another value.
#[derive(Debug)]
pub struct Changed {
    /// The setting.
    pub setting: &'static Setting,
    /// The value it had.
    before: Value,
}

/// Who wants to change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A client on this machine: over loopback or a UNIX socket.
    Local,
    /// A client on another machine.
    Remote,
}

impl Config {
    /// The defaults on a machine like this.
    ///
    /// # Panics
    /// When the table contradicts itself, which any test would find.
    pub fn new(machine: Machine) -> Self {
        let empty: Arc<str> = "".into();
        let initial: Vec<Value> = SETTINGS.iter().map(|setting| initial_value(setting, &machine)).collect();
        let config = Self {
            numbers: std::array::from_fn(|_| AtomicI64::new(0)),
            texts: std::array::from_fn(|_| RwLock::new(Arc::clone(&empty))),
            limits: Default::default(),
            initial,
            machine,
            file: None,
            sources: Vec::new(),
            is_memcached: false,
            warnings: Vec::new(),
            users: Vec::new(),
            renames: Vec::new(),
            changing: Mutex::new(()),
        };
        for (setting, fits) in SETTINGS.iter().zip(FITS) {
            assert!(fits(&setting.kind), "the accessor of {} returns a type that cannot hold it", setting.name);
            config.store(setting, config.initial(setting));
        }
        config
    }

    /// The file the configuration was read from, in full, if it was read from one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The files that the configuration was read from beside the command line, in order, as people call them.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Whether it comes from memcached's command line.
    pub fn is_memcached(&self) -> bool {
        self.is_memcached
    }

    /// What should be logged about the configuration once there is a log.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The users that the configuration was started with, as they were named.
    pub fn users(&self) -> &[UserLine] {
        &self.users
    }

    /// Commands that get other names at the start, in order.
    pub fn renames(&self) -> &[Rename] {
        &self.renames
    }

    /// The machine that defaults and percentages are reckoned for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The output buffer limit of one class of clients.
    pub fn output_buffer_limit(&self, class: ClientClass) -> OutputBufferLimit {
        let [hard, soft, seconds] = &self.limits[class as usize];
        OutputBufferLimit {
            hard_bytes: hard.load(Relaxed),
            soft_bytes: soft.load(Relaxed),
            soft_seconds: seconds.load(Relaxed),
        }
    }

    /// The text of a setting's value, as in CONFIG GET.
    pub fn show(&self, setting: &Setting) -> String {
        self.value(setting).show(&setting.kind)
    }

    /// CONFIG GET: names and values in the table's order. Each pattern is a glob, or a name in any case; a name is
    /// given back as it was asked for. Older names are rows of their own.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(String, String)> {
        let is_glob = |pattern: &[u8]| pattern.iter().any(|byte| b"[*?".contains(byte));
        let patterns: Vec<(&[u8], bool)> = patterns.iter().map(|pattern| (*pattern, is_glob(pattern))).collect();
        let asked = |name: &str| {
            let (matched, is_glob) = patterns.iter().find(|(pattern, is_glob)| match is_glob {
                true => glob(pattern, name.as_bytes(), Case::Insensitive),
                false => pattern.eq_ignore_ascii_case(name.as_bytes()),
            })?;
            Some(if *is_glob { name.to_owned() } else { String::from_utf8_lossy(matched).into_owned() })
        };
        let value_of = |row: Row| match row {
            Row::Setting(setting) => self.show(setting),
            Row::Fixed(fixed) => fixed.value.to_owned(),
        };
        if patterns.iter().any(|(_, is_glob)| *is_glob) {
            return rows().filter_map(|(name, row)| Some((asked(name)?, value_of(row)))).collect();
        }
        let mut found: Vec<_> =
            patterns.iter().filter_map(|(name, _)| ROWS_BY_NAME.get(&name.to_ascii_lowercase()[..])).collect();
        found.sort_unstable_by_key(|found| found.place);
        found.dedup_by_key(|found| found.place);
        found.into_iter().filter_map(|found| Some((asked(found.name)?, value_of(found.row)))).collect()
    }

    /// CONFIG SET: all of the pairs or none. Returns the settings whose values are now different, which is what the
    /// caller has to apply, or to [restore](Config::restore).
    pub fn set(&self, pairs: &[(&[u8], &[u8])], caller: Caller) -> Result<Vec<Changed>, SetError> {
        Ok(self.store_staged(&self.stage(pairs, caller)?))
    }

    /// The settings that the pairs name, and the values that they are to have; nothing is changed.
    ///
    /// # Errors
    /// Those of [`Config::set`].
    pub(crate) fn stage(&self, pairs: &[(&[u8], &[u8])], caller: Caller) -> Result<Vec<Staged>, SetError> {
        for (index, (name, _)) in pairs.iter().enumerate() {
            self.check_settable(name, caller)?;
            if pairs[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(SetError::Duplicate(shown(name)));
            }
        }
        let mut staged: Vec<Staged> = Vec::new();
        for (name, value) in pairs {
            let name = String::from_utf8_lossy(name);
            let words = || match std::str::from_utf8(value) {
                Ok(text) => Ok([text.to_owned()]),
                Err(_) => Err(ValueError::NotUtf8),
            };
            if let Some(setting) = find(&name) {
                let earlier = staged.iter().rev().find(|known| known.setting.id == setting.id);
                let current = earlier.map_or_else(|| self.value(setting), |known| known.value.clone());
                // As in Redis a relative directory starts from the one before.
                let value = words().and_then(|words| self.read(setting, &words, &current, Path::new(&*self.dir())));
                let known = setting.names().find(|known| known.eq_ignore_ascii_case(&name)).unwrap_or(setting.name);
                let value = value.and_then(|value| check_support(setting, value));
                let value = value.map_err(|error| SetError::Value(known, error))?;
                staged.push(Staged { setting, value });
            } else if let Some(fixed) = find_fixed(&name) {
                let known = fixed.names().find(|known| known.eq_ignore_ascii_case(&name)).unwrap_or(fixed.name);
                if !words().is_ok_and(|words| fixed.accepts(&words)) {
                    return Err(SetError::Value(known, ValueError::NotSupported(fixed.reason)));
                }
            }
        }
        Ok(staged)
    }

    /// Gives settings these values; tells which have others now.
    pub(crate) fn store_staged(&self, staged: &[Staged]) -> Vec<Changed> {
        let _changing = self.changing.lock();
        let before: Vec<_> = staged.iter().map(|it| self.value(it.setting)).collect();
        staged.iter().for_each(|it| self.store(it.setting, &it.value));
        let mut changed: Vec<Changed> = Vec::new();
        for (&Staged { setting, .. }, before) in staged.iter().zip(before) {
            let is_changed = self.value(setting) != before || names_files(setting);
            if is_changed && !changed.iter().any(|known| known.setting.id == setting.id) {
                changed.push(Changed { setting, before });
            }
        }
        changed
    }

    /// Gives settings the values back that they had.
    pub fn restore(&self, changed: &[Changed]) {
        let _changing = self.changing.lock();
        changed.iter().for_each(|Changed { setting, before }| self.store(setting, before));
    }

    /// Lowers `maxclients` to what the system allows open files for.
    pub fn lower_maxclients(&self, most: u32) {
        let _changing = self.changing.lock();
        debug_assert!(most < self.maxclients(), "that is no less");
        self.numbers[SettingId::maxclients as usize].store(i64::from(most), Relaxed);
    }

    /// Whether the value of this name is a secret that logs must not show.
    pub fn is_sensitive(name: &[u8]) -> bool {
        let Ok(name) = std::str::from_utf8(name) else { return false };
        find(name).is_some_and(Setting::is_sensitive) || find_fixed(name).is_some_and(Fixed::is_sensitive)
    }

    fn check_settable(&self, name: &[u8], caller: Caller) -> Result<(), SetError> {
        let text = String::from_utf8_lossy(name);
        let Some(setting) = find(&text) else {
            return if find_fixed(&text).is_some() { Ok(()) } else { Err(SetError::Unknown(shown(name))) };
        };
        let allowed = match self.enable_protected_configs() {
            Access::Yes => true,
            Access::Local => caller == Caller::Local,
            Access::No => false,
        };
        match (setting.at, setting.guard) {
            (At::Start, _) => Err(SetError::Immutable(text.into_owned())),
            (At::Runtime, Guard::Protected) if !allowed => Err(SetError::Protected(text.into_owned())),
            _ => Ok(()),
        }
    }

    /// The value that words stand for, given the value so far, and the directory that relative paths start from.
    pub(super) fn read(
        &self,
        setting: &Setting,
        words: &[String],
        current: &Value,
        directory: &Path,
    ) -> Result<Value, ValueError> {
        parse(&setting.kind, words, &Scene { current, machine: &self.machine, directory, name: setting.name })
    }

    /// The default on this machine.
    pub(super) fn initial(&self, setting: &Setting) -> &Value {
        &self.initial[setting.id as usize]
    }

    pub(super) fn value(&self, setting: &Setting) -> Value {
        match slot_of(&setting.kind) {
            Slot::Number => Value::Number(self.number(setting.id)),
            Slot::Text => Value::Text(self.text(setting.id)),
            Slot::Limits => Value::Limits(OutputBufferLimits(ClientClass::ALL.map(|c| self.output_buffer_limit(c)))),
        }
    }

    pub(super) fn store(&self, setting: &Setting, value: &Value) {
        match value {
            Value::Number(number) => self.numbers[setting.id as usize].store(*number, Relaxed),
            Value::Text(text) => *self.texts[setting.id as usize].write() = Arc::clone(text),
            Value::Limits(limits) => {
                for (stored, limit) in self.limits.iter().zip(limits.0) {
                    let numbers = [limit.hard_bytes, limit.soft_bytes, limit.soft_seconds];
                    stored.iter().zip(numbers).for_each(|(stored, number)| stored.store(number, Relaxed));
                }
            }
        }
    }

    #[inline]
    fn number(&self, id: SettingId) -> i64 {
        self.numbers[id as usize].load(Relaxed)
    }

    fn text(&self, id: SettingId) -> Arc<str> {
        Arc::clone(&self.texts[id as usize].read())
    }
}

/// Values may be secrets, so they are left out.
impl Debug for Config {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("file", &self.file).finish_non_exhaustive()
    }
}

/// # Panics
/// When the table has a default that is not one of its kind.
fn initial_value(setting: &Setting, machine: &Machine) -> Value {
    let text = match setting.initial {
        Initial::Is(text) => text.to_owned(),
        Initial::OfMachine { of, .. } => of(machine),
    };
    if setting.kind == Kind::Directory {
        // Where the process is already need not be looked at, and may be gone.
        return Value::Text(text.into());
    }
    let current = Value::Limits(OutputBufferLimits::NONE);
    let scene = Scene { current: &current, machine, directory: Path::new(""), name: setting.name };
    match parse(&setting.kind, std::slice::from_ref(&text), &scene) {
        Ok(value) => value,
        Err(error) => panic!("the default '{text}' of {}: {error}", setting.name),
    }
}

/// Passes on a value that Tenon honours.
pub(super) fn check_support(setting: &Setting, value: Value) -> Result<Value, ValueError> {
    match setting.support {
        Support::Only { values, reason } if !values.contains(&value.show(&setting.kind).as_str()) => {
            Err(ValueError::NotSupported(reason))
        }
        _ => Ok(value),
    }
}

/// Where a value of a kind is kept.
#[derive(PartialEq, Eq)]
enum Slot {
    Number,
    Text,
    Limits,
}

fn slot_of(kind: &Kind) -> Slot {
    match kind {
        Kind::Bool
        | Kind::Int { .. }
        | Kind::Clamped { .. }
        | Kind::PowerOfTwo { .. }
        | Kind::Octal { .. }
        | Kind::Memory { .. }
        | Kind::MemoryUpTo { .. }
        | Kind::MemoryOrPercent
        | Kind::MemoryOrShare
        | Kind::Choice(_)
        | Kind::NotifyFlags => Slot::Number,
        Kind::Text
        | Kind::FileName
        | Kind::PlainName(_)
        | Kind::Directory
        | Kind::Words { .. }
        | Kind::SavePoints
        | Kind::Percentiles
        | Kind::EndWords => Slot::Text,
        Kind::OutputBufferLimits => Slot::Limits,
    }
}

/// A type that an accessor can return.
pub(super) trait Read: Sized {
    /// The value of this setting.
    fn read(config: &Config, id: SettingId) -> Self;
    /// Whether the type can hold every value of this kind.
    fn fits(kind: &Kind) -> bool;
}

impl Read for bool {
    #[inline]
    fn read(config: &Config, id: SettingId) -> Self {
        config.number(id) != 0
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::Bool
    }
}

/// The smallest and largest number of a kind, if it is one of numbers.
fn bounds(kind: &Kind) -> Option<(i64, i64)> {
    match *kind {
        Kind::Int { min, max } | Kind::Clamped { min, max } => Some((min, max)),
        Kind::PowerOfTwo { max } => Some((1, max)),
        Kind::Octal { max } => Some((0, max)),
        Kind::Memory { min, max } | Kind::MemoryUpTo { min, max } => Some((min, max)),
        Kind::MemoryOrPercent => Some((0, i64::MAX)),
        Kind::MemoryOrShare => Some((-100, i64::MAX)),
        _ => None,
    }
}

/// Implements `Read` for an integer type. That no value is cut is what `fits` is for.
macro_rules! read_integer {
    ($($type:ty)*) => {$(
        impl Read for $type {
            #[inline]
            fn read(config: &Config, id: SettingId) -> Self {
                config.number(id) as Self
            }

            fn fits(kind: &Kind) -> bool {
                bounds(kind).is_some_and(|(min, max)| Self::try_from(min).is_ok() && Self::try_from(max).is_ok())
            }
        }
    )*};
}

read_integer!(u16 u32 u64 usize i32 i64);

impl<T: Choice> Read for T {
    #[inline]
    fn read(config: &Config, id: SettingId) -> Self {
        Self::ALL[config.number(id) as usize]
    }

    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Choice(names) if *names == Self::NAMES) && Self::NAMES.len() == Self::ALL.len()
    }
}

impl Read for EventClass {
    #[inline]
    fn read(config: &Config, id: SettingId) -> Self {
        Self(config.number(id) as u32)
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::NotifyFlags
    }
}

impl Read for Arc<str> {
    fn read(config: &Config, id: SettingId) -> Self {
        config.text(id)
    }

    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Text | Kind::FileName | Kind::PlainName(_) | Kind::Directory)
    }
}

impl Read for Vec<String> {
    fn read(config: &Config, id: SettingId) -> Self {
        config.text(id).split_whitespace().map(str::to_owned).collect()
    }

    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Words { .. })
    }
}

impl Read for Vec<f64> {
    fn read(config: &Config, id: SettingId) -> Self {
        config.text(id).split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::Percentiles
    }
}

impl Read for EndWords {
    fn read(config: &Config, id: SettingId) -> Self {
        EndWords::of(&config.text(id))
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::EndWords
    }
}

impl Read for Vec<SavePoint> {
    fn read(config: &Config, id: SettingId) -> Self {
        SavePoint::list(&config.text(id))
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::SavePoints
    }
}

impl Read for OutputBufferLimits {
    fn read(config: &Config, _: SettingId) -> Self {
        Self(ClientClass::ALL.map(|class| config.output_buffer_limit(class)))
    }

    fn fits(kind: &Kind) -> bool {
        *kind == Kind::OutputBufferLimits
    }
}
/// Whether a setting says where to read what it is about: who names the same place again wants that read anew.
fn names_files(setting: &Setting) -> bool {
    use SettingId::{tls_ca_cert_dir, tls_ca_cert_file, tls_cert_file, tls_key_file};
    matches!(setting.id, tls_cert_file | tls_key_file | tls_ca_cert_file | tls_ca_cert_dir)
}
