//! The log of an engine in memory: its records as text, and whether they lead another engine to the same data. Knows no
//! command.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tenon_engine::Engine;
use tenon_engine::clock;
use tenon_engine::journal::Journal;
use tenon_engine::loading::{Hands, LogReport};
use tenon_engine::persist::aof::{Directory, Names};
use tenon_engine::persist::journal::files::Memory;
use tenon_engine::replay::Replayer;
use tenon_engine::store::entry::{EntryRef, ValueRef};
use tenon_engine::store::types::hll::{Registers, SketchRef};
use tenon_engine::store::types::stream::{Group, ProducerCounts, ProducerLimits, StreamId};
use tenon_engine::store::types::{Collection, DeadlinesRef, Hash, List, Set, Stream, ValueType, Zset};
use tenon_engine::string;
use tenon_engine::worker::Worker;

/// A journal that keeps all records.
#[derive(Default)]
pub struct Records(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    records: Vec<Vec<u8>>,
    bytes: u64,
}

impl Journal for Records {
    fn append(&self, record: &[u8]) -> u64 {
        let mut kept = self.0.lock().expect("no test panics while it appends");
        kept.records.push(record.to_vec());
        kept.bytes += record.len() as u64;
        kept.bytes
    }
}

impl Records {
    /// Takes out all records so far.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().expect("no test panics while it appends").records)
    }

    /// How many records there are so far.
    pub fn len(&self) -> usize {
        self.0.lock().expect("no test panics while it appends").records.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every record so far, in order.
    pub fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().expect("no test panics while it appends").records.clone()
    }
}

/// Attaches a journal that keeps all records of an engine.
pub fn keep_records(engine: &Engine) -> Arc<Records> {
    let records = Arc::new(Records::default());
    engine.attach_journal(Arc::clone(&records) as Arc<dyn Journal>);
    records
}

/// A part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A line that begins with `#`, without its end.
    Annotation(&'a [u8]),
    /// A command.
    Command(Vec<&'a [u8]>),
}

/// The parts of a record.
///
/// # Panics
/// When it is none: every record is whole.
pub fn parts(record: &[u8]) -> Vec<Part<'_>> {
    let mut rest = record;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let line = take_line(&mut rest);
        if line.starts_with(b"#") {
            parts.push(Part::Annotation(line));
            continue;
        }
        let words = (0..number(line, b'*')).map(|_| {
            let len = number(take_line(&mut rest), b'$');
            let (word, behind) = rest.split_at(len);
            rest = behind.strip_prefix(b"\r\n").expect("a word ends with its line");
            word
        });
        parts.push(Part::Command(words.collect()));
    }
    parts
}

fn take_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.windows(2).position(|two| two == b"\r\n").expect("a line has an end");
    let line = &rest[..end];
    *rest = &rest[end + 2..];
    line
}

fn number(line: &[u8], kind: u8) -> usize {
    assert_eq!(line.first(), Some(&kind), "{}", line.escape_ascii());
    std::str::from_utf8(&line[1..]).ok().and_then(|text| text.parse().ok()).expect("a count follows")
}

/// A record as text: its parts, with commas between them.
pub fn text(record: &[u8]) -> String {
    let part = |part: Part<'_>| match part {
        Part::Annotation(line) => line.escape_ascii().to_string(),
        Part::Command(words) => {
            let word = |word: &&[u8]| if word.is_empty() { "\"\"".to_owned() } else { word.escape_ascii().to_string() };
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }
    };
    parts(record).into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Runs records again.
///
/// # Errors
/// Which one can't be, and why.
pub fn replay(engine: &Engine, worker: &mut Worker, records: &[Vec<u8>]) -> Result<(), String> {
    let mut replayer = Replayer::new(engine);
    for record in records {
        for part in parts(record) {
            match part {
                Part::Annotation(line) => replayer.annotation(line),
                Part::Command(words) => {
                    replayer.command(worker, &words).map_err(|error| format!("{}: {error}", text(record)))?;
                }
            }
        }
        if replayer.is_in_multi() {
            return Err(format!("{}: not whole", text(record)));
        }
    }
    Ok(())
}

/// Loads an append-only file of these bytes, with as many workers as the engine has, each on a thread of its own.
///
/// # Errors
/// Where it goes wrong, and why.
pub fn load(engine: &Arc<Engine>, log: &[u8]) -> Result<LogReport, String> {
    const INCREMENT: &str = "appendonly.aof.1.incr.aof";
    let names = Names {
        dir: "/".into(),
        appenddirname: "appendonlydir".to_owned(),
        appendfilename: "appendonly.aof".to_owned(),
    };
    let files = Memory::new();
    files.put(&names.path(names.manifest()), format!("file {INCREMENT} seq 1 type i\n").as_bytes());
    files.put(&names.path(INCREMENT), log);
    let directory = Directory::open(Arc::new(files), names).map_err(|error| error.to_string())?;
    let loading = engine.begin_loading(log.len() as u64);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for index in 0..engine.workers() {
            let is_done = &is_done;
            scope.spawn(move || {
                let mut worker = engine.worker(index);
                while !is_done.load(Ordering::Relaxed) {
                    engine.tick(&mut worker);
                }
            });
        }
        // Also when loading panics, or the workers would tick on for ever.
        let _done = AtTheEnd(&is_done);
        let mut worker = engine.worker(engine.workers());
        let go_on = &mut |_| ControlFlow::Continue(());
        let loaded = engine.load_log(&loading, &mut worker, &directory, Hands::Workers, go_on);
        loaded.map_err(|error| error.to_string())
    })
}

/// Becomes true when this goes.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All data of an engine, key by key, as text that two engines with the same data have in common.
pub fn state(engine: &Engine) -> BTreeMap<(usize, Vec<u8>), String> {
    let mut state = BTreeMap::new();
    for index in 0..engine.shards.count() {
        let locked = engine.shards.lock(index);
        for (database, keyspace) in locked.shard.databases() {
            keyspace.scan(0, usize::MAX, |entry| {
                state.insert((database, entry.key().to_vec()), show(entry));
            });
        }
    }
    for library in engine.scripts.libraries.shelf().libraries() {
        state.insert((usize::MAX, library.name.clone()), library.code.escape_ascii().to_string());
    }
    state
}

/// Where two engines' data differ; empty when nowhere.
pub fn differences(live: &Engine, replayed: &Engine) -> Vec<String> {
    let (live, replayed) = (state(live), state(replayed));
    let keys: std::collections::BTreeSet<_> = live.keys().chain(replayed.keys()).collect();
    let differing = keys.into_iter().filter(|key| live.get(*key) != replayed.get(*key));
    differing
        .map(|key| {
            let of = |state: &BTreeMap<_, String>| state.get(key).cloned().unwrap_or_else(|| "nothing".to_owned());
            format!("{} {}: {}; replayed: {}", key.0, key.1.escape_ascii(), of(&live), of(&replayed))
        })
        .collect()
}

fn show(entry: EntryRef<'_>) -> String {
    let mut shown = String::new();
    if let Some(deadline_ms) = entry.deadline_ms() {
        let _ = write!(shown, "until {deadline_ms} ");
    }
    if entry.flags() != 0 {
        let _ = write!(shown, "flags {} ", entry.flags());
    }
    let value = entry.value();
    let elements: Vec<String> = match ValueType::of(value) {
        ValueType::String => vec![show_string(&string::to_vec(value))],
        ValueType::List => view::<List>(value).iter_from(0).map(|item| escape(&item.to_vec())).collect(),
        ValueType::Hash => {
            let mut elements = Vec::new();
            view::<Hash>(value).for_each(|field, value_of| {
                let field = field.to_vec();
                let until = until(value.deadlines(), &field);
                elements.push(format!("{}={}{until}", escape(&field), escape(&value_of.to_vec())));
            });
            sorted(elements)
        }
        ValueType::Set => {
            let mut elements = Vec::new();
            view::<Set>(value).for_each(|member| {
                let member = member.to_vec();
                elements.push(format!("{}{}", escape(&member), until(value.deadlines(), &member)));
            });
            sorted(elements)
        }
        ValueType::Zset => {
            let mut elements = Vec::new();
            view::<Zset>(value).for_each(|member, score| {
                let member = member.to_vec();
                elements.push(format!("{score}:{}{}", escape(&member), until(value.deadlines(), &member)));
            });
            elements
        }
        ValueType::Stream => show_stream(view::<Stream>(value)),
    };
    shown.push_str(ValueType::of(value).name());
    elements.iter().for_each(|element| {
        shown.push(' ');
        shown.push_str(element);
    });
    shown
}

/// The text itself; of a HyperLogLog its registers, as its form depends on a setting.
fn show_string(text: &[u8]) -> String {
    let mut registers = Registers::default();
    let sketch = SketchRef::parse(text).ok().filter(|sketch| sketch.merge_into(&mut registers).is_ok());
    match sketch {
        Some(sketch) => format!("{:?} {}", sketch.last_estimate(), registers.counts().escape_ascii()),
        None => text.escape_ascii().to_string(),
    }
}

fn view<T: Collection>(value: ValueRef<'_>) -> T::View<'_> {
    value.collection::<T>().expect("the value is of its type")
}

fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn sorted(mut elements: Vec<String>) -> Vec<String> {
    elements.sort();
    elements
}

fn until(deadlines: Option<DeadlinesRef<'_>>, member: &[u8]) -> String {
    deadlines.and_then(|deadlines| deadlines.of(member)).map_or_else(String::new, |ms| format!("@{ms}"))
}

fn id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn show_stream(stream: &Stream) -> Vec<String> {
    let state = stream.state();
    let added =
        format!("last {} deleted {} added {}", id(state.last_id), id(state.max_deleted_id), state.entries_added);
    let entries = stream.range(StreamId::MIN..=StreamId::MAX).map(|entry| {
        let fields: Vec<String> = entry
            .fields()
            .map(|(field, value)| format!("{}={}", escape(&field.to_vec()), escape(&value.to_vec())))
            .collect();
        format!("[{} {}]", id(entry.id()), fields.join(" "))
    });
    let groups = stream.groups().map(|(name, group)| show_group(name, group));
    std::iter::once(added).chain(entries).chain(groups).chain(show_producers(stream)).collect()
}

/// What will soon be past, or is and has not gone yet, is not shown: of two engines one may be quicker.
fn show_producers(stream: &Stream) -> Option<String> {
    const SOON_MS: u64 = 30_000;
    let (limits, producers) = (stream.producer_limits(), stream.producers()?);
    let soon_ms = clock::now_us() / 1_000 + SOON_MS;
    let stays = |entry: StreamId| entry.ms.saturating_add(u64::from(limits.duration_s) * 1_000) > soon_ms;
    let shown = producers.starting_at(0).map(|(name, ids)| {
        let ids = ids.filter(|(_, entry)| stays(*entry)).map(|(of, entry)| format!(" {}={}", escape(of), id(entry)));
        format!("{}:{}", escape(name), ids.collect::<String>())
    });
    let shown = sorted(shown.filter(|producer| !producer.ends_with(':')).collect());
    let counts = producers.counts();
    Some(format!(
        "producers {} s {} ids <added {} duplicates {}> {shown:?}",
        limits.duration_s, limits.ids_max, counts.added, counts.duplicates
    ))
    .filter(|_| limits != ProducerLimits::INITIAL || counts != ProducerCounts::default() || producers.ids() > 0)
}

/// When a consumer was seen last is not in the log, nor is it in Redis's.
fn show_group(name: &[u8], group: &Group) -> String {
    let mut consumers: Vec<String> = group.consumers().map(|consumer| escape(consumer.name())).collect();
    consumers.sort();
    let pending: Vec<String> = group
        .pending_in(StreamId::MIN..=StreamId::MAX)
        .map(|(entry, pending)| {
            let holder = pending.consumer().map_or("nobody".to_owned(), |_| escape(group.holder_of(pending)));
            format!("{} to {holder} at {} times {}", id(entry), pending.delivered_ms(), pending.deliveries)
        })
        .collect();
    let released: Vec<String> = group.released_from(0).map(|(_, entry)| id(entry)).collect();
    let read = group.entries_read();
    let (name, last_id) = (escape(name), id(group.last_id()));
    format!("{{{name} at {last_id} read {read:?} {consumers:?} {pending:?} {released:?}}}")
}
