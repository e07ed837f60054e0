//! lru_crawler: the list of all keys. lru, slabs: what memcached does with its memory and Tenon has no need of.

use super::answer::Answer;
use super::verb::TextCommand;
use std::io::Write;
use tenon_engine::Engine;
use tenon_engine::ds::progress;
use tenon_engine::ds::slab::{SLAB_MAX, class_number};
use tenon_engine::store::entry::{EntryRef, Marks};
use tenon_engine::store::keyspace::is_past;
use tenon_engine::watchers::write_encoded;
use tenon_engine::wire::memcache::number::parse_u32;
use tenon_engine::wire::memcache::{KEY_MAX, base64};
use tenon_engine::worker::Worker;

use super::admin::DATABASE;

/// Lists keys.
pub static LRU_CRAWLER: TextCommand = TextCommand {
    name: "lru_crawler",
    family: "admin",
    syntax: "metadump|mgdump <classid,classid,...|all|hash>",
    summary: "Lists the items, each with what is known of it, or as a line to read it by. crawl, sleep, tocrawl, enable \
              and disable are answered and change nothing: what has expired goes without being looked for.",
};

/// Would tune queues.
pub static LRU: TextCommand = TextCommand {
    name: "lru",
    family: "admin",
    syntax: "tune <percent hot> <percent warm> <max hot factor> <max warm factor> [noreply]",
    summary: "Is answered as memcached answers it, and changes nothing: there are no such queues.",
};

/// Would move memory.
pub static SLABS: TextCommand = TextCommand {
    name: "slabs",
    family: "admin",
    syntax: "reassign <source class> <dest class> | automove <0|1|2> [noreply]",
    summary: "Is answered as by a memcached that does not reassign slabs: memory is packed without being told to.",
};

/// What `lru_crawler` is to do.
#[derive(Debug)]
pub enum Crawl {
    /// Nothing more than this answer.
    Answer(Answer),
    /// To list the items.
    Dump(Dump),
}

/// Reads the words behind `lru_crawler`. `is_alone` says that the answers to all requests before have been sent: as in
/// memcached nothing is listed behind others.
pub fn crawl(engine: &Engine, words: &[&[u8]], is_alone: bool) -> Crawl {
    let answer = match words {
        [b"crawl", classes] => classes_of(classes).map_or_else(|answer| answer, |_| Answer::Ok),
        [b"metadump" | b"mgdump", _] if !engine.config.memcached_dump() => Answer::DumpDisabled,
        [b"metadump", _] if !is_alone => Answer::MetadumpPipelined,
        [b"mgdump", _] if !is_alone => Answer::MgdumpPipelined,
        [form @ (b"metadump" | b"mgdump"), classes] => match classes_of(classes) {
            Ok(classes) => {
                let form = if *form == b"mgdump" { Form::Reading } else { Form::Facts };
                return Crawl::Dump(Dump { form, classes, shard: 0, from: 0 });
            }
            Err(answer) => answer,
        },
        [b"tocrawl", number] => parse_u32(number).map_or(Answer::BadFormat, |_| Answer::Ok),
        [b"sleep", microseconds] => match parse_u32(microseconds) {
            None => Answer::BadFormat,
            Some(1_000_001..) => Answer::SleepTooLong,
            Some(_) => Answer::Ok,
        },
        [b"enable" | b"disable"] => Answer::Ok,
        _ => Answer::Unknown,
    };
    Crawl::Answer(answer)
}

/// The size classes that a word lists; `None`: all.
fn classes_of(word: &[u8]) -> Result<Option<Vec<usize>>, Answer> {
    if matches!(word, b"all" | b"hash") {
        return Ok(None);
    }
    let class = |word| parse_u32(word).map(|number| number as usize).filter(|number| CLASSES.contains(number));
    let classes = word.split(|&byte| byte == b',').map(class).collect::<Option<Vec<_>>>();
    classes.map(Some).ok_or(Answer::BadClass)
}

/// The numbers of the size classes.
const CLASSES: std::ops::RangeInclusive<usize> = 1..=class_number(SLAB_MAX);

/// Answers `lru`.
pub fn lru(words: &[&[u8]]) -> Answer {
    let factor = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<f64>().ok();
    match words {
        [b"tune", hot, warm, hot_factor, warm_factor, ..] => {
            let percents = parse_u32(hot).zip(parse_u32(warm));
            match (percents, factor(hot_factor), factor(warm_factor)) {
                (Some((hot, warm)), Some(_), Some(_)) if u64::from(hot) + u64::from(warm) > 80 => {
                    Answer::TooMuchHotAndWarm
                }
                (Some(_), Some(hot), Some(warm)) if hot <= 0.0 || warm <= 0.0 => Answer::NoAgeFactor,
                (Some(_), Some(_), Some(_)) => Answer::Ok,
                _ => Answer::Unknown,
            }
        }
        // Modes and a queue of its own for what expires soon are of memcached's maintainer thread.
        _ => Answer::Unknown,
    }
}

/// Answers `slabs`.
pub fn slabs(words: &[&[u8]]) -> Answer {
    match words {
        [b"reassign", _, _] => Answer::ReassignDisabled,
        [b"automove", b"ratio", ratio, ..] if std::str::from_utf8(ratio).is_ok_and(|it| it.parse::<f64>().is_ok()) => {
            Answer::Ok
        }
        [b"automove", b"ratio", ..] => Answer::Unknown,
        [b"automove", level, ..] => match parse_u32(level) {
            None => Answer::BadFormat,
            Some(0..=2) => Answer::Ok,
            Some(_) => Answer::Unknown,
        },
        _ => Answer::Unknown,
    }
}

/// How an item is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Its key and what is known of it.
    Facts,
    /// A line that reads it.
    Reading,
}

/// A list of the items that goes on where it stopped: there may be more of them than a client reads at once.
#[derive(Debug)]
pub struct Dump {
    form: Form,
    classes: Option<Vec<usize>>,
    shard: usize,
    from: u16,
}

/// Items that are looked at while their shard is locked, about.
const ITEMS_AT_ONCE: usize = 500;

impl Dump {
    /// Lists some items more; tells whether these were the last.
    pub fn step(&mut self, engine: &Engine, worker: &mut Worker, out: &mut Vec<u8>) -> bool {
        let clock = worker.clock;
        let state = engine.lock_serving(worker, self.shard);
        let next = state.shard.database(DATABASE).and_then(|keyspace| {
            keyspace.scan(self.from, ITEMS_AT_ONCE, |entry| {
                progress::count(1);
                let is_wanted = self.classes.as_ref().is_none_or(|classes| classes.contains(&entry.size_class()));
                if is_wanted && entry.is_string() && !is_past(entry.deadline_ms(), clock.now_ms) {
                    let idle_seconds = clock.access.seconds_since(entry.access());
                    self.write(entry, (clock.now_ms / 1_000).saturating_sub(idle_seconds.into()), out);
                }
            })
        });
        drop(state);
        self.from = next.unwrap_or(0);
        self.shard += usize::from(next.is_none());
        let is_over = self.shard == engine.shards.count();
        if is_over {
            out.extend_from_slice(match self.form {
                Form::Facts => b"END\r\n",
                Form::Reading => b"EN\r\n",
            });
        }
        is_over
    }

    fn write(&self, entry: EntryRef<'_>, accessed_s: u64, out: &mut Vec<u8>) {
        match self.form {
            // As in memcached these lines end with LF alone.
            Form::Facts => {
                out.extend_from_slice(b"key=");
                write_encoded(entry.key(), out);
                writeln!(
                    out,
                    " exp={} la={accessed_s} cas={} fetch={} cls={} size={}",
                    entry.deadline_ms().map_or(-1, |ms| i64::try_from(ms / 1_000).unwrap_or(i64::MAX)),
                    entry.cas().unwrap_or(0),
                    if entry.marks().has(Marks::FETCHED) { "yes" } else { "no" },
                    entry.size_class(),
                    entry.memory(),
                )
                .expect("a Vec takes everything");
            }
            Form::Reading => {
                let before = out.len();
                out.extend_from_slice(b"mg ");
                let is_plain = entry.key().iter().all(u8::is_ascii_graphic);
                if is_plain {
                    out.extend_from_slice(entry.key());
                } else {
                    base64::encode(entry.key(), out);
                }
                // The other protocol has keys that no line could ask for.
                if !(1..=KEY_MAX).contains(&(out.len() - before - b"mg ".len())) {
                    out.truncate(before);
                    return;
                }
                out.extend_from_slice(if is_plain { b"\r\n" } else { b" b\r\n" });
            }
        }
    }
}
