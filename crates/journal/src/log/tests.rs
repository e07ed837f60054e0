//! The log against files in memory that fail, crash and block as each test wants. Knows what the file must hold.

mod backpressure;
mod killed;
mod syncing;

use super::*;
use crate::files::{Faulty, File, Files, Memory};
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::AtomicU64;

const LONG: Duration = Duration::from_secs(60);

fn settings(policy: Policy) -> Settings {
    Settings { policy, ring_bytes: 64 << 10, ..Settings::default() }
}

/// What was heard.
#[derive(Default)]
struct Heard {
    may_answer: AtomicU64,
    rewrites: AtomicU64,
    events: Mutex<Vec<Event>>,
    short: Mutex<Vec<bool>>,
    waits: AtomicU64,
}

impl Hooks for Heard {
    fn may_answer(&self, position: u64) {
        self.may_answer.fetch_max(position, Ordering::SeqCst);
    }

    fn needs_rewrite(&self) {
        self.rewrites.fetch_add(1, Ordering::SeqCst);
    }

    fn room_is_short(&self, is_short: bool) {
        self.short.lock().expect("nobody panics").push(is_short);
    }

    fn waits_for_room(&self) {
        self.waits.fetch_add(1, Ordering::SeqCst);
    }

    fn event(&self, event: &Event) {
        self.events.lock().expect("nobody panics").push(event.clone());
    }
}

struct Fixture {
    files: Faulty<Memory>,
    memory: Memory,
    heard: Arc<Heard>,
    log: Log,
}

fn path(number: u32) -> std::path::PathBuf {
    Path::new("d").join(format!("{number}.aof"))
}

fn start(policy: Policy, plan: &str) -> Fixture {
    let memory = Memory::new();
    memory.create_directory(Path::new("d")).expect("nothing fails yet");
    let files = Faulty::new(memory.clone(), "".parse().expect("a plan"));
    let file = files.create(&path(0)).expect("nothing fails yet");
    memory.sync_directory(Path::new("d")).expect("nothing fails yet");
    files.set(plan.parse().expect("a plan"));
    let heard = Arc::new(Heard::default());
    let log = Log::start(file, &settings(policy), heard.clone()).expect("threads can be started");
    Fixture { files, memory, heard, log }
}

impl Fixture {
    fn content(&self, number: u32) -> String {
        String::from_utf8(self.memory.content(&path(number)).expect("the file is there")).expect("text")
    }

    fn next_file(&self, number: u32) -> Arc<dyn File> {
        let file = self.files.create(&path(number)).expect("it can be made");
        self.memory.sync_directory(Path::new("d")).expect("it can be synced");
        file
    }

    fn events(&self) -> Vec<Event> {
        self.heard.events.lock().expect("nobody panics").clone()
    }
}

/// Waits for what must come.
fn until(what: impl Fn() -> bool) {
    let since = Instant::now();
    while !what() {
        assert!(since.elapsed() < LONG, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn records_reach_the_file_in_order() {
    for policy in [Policy::No, Policy::EverySecond, Policy::Always] {
        let fixture = start(policy, "");
        assert_eq!(fixture.log.append(b"one,"), 4);
        assert_eq!(fixture.log.append(b"two,"), 8);
        fixture.log.append(b"");
        assert_eq!(fixture.log.position(), 8);
        fixture.log.close().expect("nothing fails");
        assert_eq!(fixture.content(0), "one,two,");
        assert_eq!((fixture.log.written(), fixture.log.durable()), (8, 8));
        assert_eq!(fixture.heard.may_answer.load(Ordering::SeqCst), 8);
        assert_eq!(fixture.log.statistics().file_len, 8);
    }
}

/// A file that knows what was synced and what was forgotten.
struct Remembering {
    inner: Arc<dyn File>,
    synced: AtomicU64,
    forgotten: AtomicU64,
    /// How much was forgotten at once that was not synced.
    ahead: AtomicU64,
}

impl Remembering {
    fn new() -> Arc<Remembering> {
        let inner = Memory::new().create(Path::new("f")).expect("it can be made");
        let [synced, forgotten, ahead] = [(); 3].map(|()| AtomicU64::new(0));
        Arc::new(Remembering { inner, synced, forgotten, ahead })
    }
}

impl File for Remembering {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.inner.write(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        let len = self.inner.size()?;
        self.inner.sync()?;
        self.synced.store(len, Ordering::SeqCst);
        Ok(())
    }
    fn forget(&self, len: u64) {
        assert!(self.size().is_ok_and(|size| len <= size), "what is not there is forgotten");
        self.ahead.fetch_max(len.saturating_sub(self.synced.load(Ordering::SeqCst)), Ordering::SeqCst);
        self.forgotten.store(len, Ordering::SeqCst);
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

#[test]
fn what_is_on_disk_is_given_back_to_the_system() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let file = Remembering::new();
        let log = Log::start(file.clone(), &settings(policy), Arc::new(NoHooks)).expect("threads can be started");
        let record = vec![b'r'; 4_000];
        let last = (0..600).map(|_| log.append(&record)).last().expect("there are some");
        until(|| file.forgotten.load(Ordering::SeqCst) > 1 << 20);
        assert!(log.wait_durable(last, LONG));
        assert_eq!(file.ahead.load(Ordering::SeqCst), 0, "what is not on disk is forgotten");
    }
}

#[test]
fn what_nobody_syncs_is_given_to_the_system_in_pieces() {
    let file = Remembering::new();
    let log = Log::start(file.clone(), &settings(Policy::No), Arc::new(NoHooks)).expect("threads can be started");
    let record = vec![b'r'; 8_000];
    let piece = 16 << 20;
    // Each piece ends with what the writer took from the ring at once.
    let written = piece + settings(Policy::No).ring_bytes as u64;
    for pieces in 1..=2 {
        while log.statistics().file_len < pieces * written {
            log.append(&record);
        }
        until(|| file.forgotten.load(Ordering::SeqCst) >= pieces * piece);
    }
    assert_eq!(log.statistics().syncs, 0);
}

#[test]
fn a_full_disk_loses_nothing() {
    for plan in ["write:enospc@2-4", "write:short@2 write:enospc@3-5", "write:torn@2-4", "write:torn@2-5 truncate:eio"]
    {
        let fixture = start(Policy::Always, plan);
        let first = fixture.log.append(b"first;");
        until(|| fixture.log.may_answer(first));
        let second = fixture.log.append(b"second;");
        until(|| fixture.log.refuses_writes().is_some());
        assert!(!fixture.log.may_answer(second));
        assert!(fixture.log.is_held_up().is_some() && !fixture.log.needs_rewrite(), "it heals by itself");
        let third = fixture.log.append(b"third;");
        until(|| fixture.log.may_answer(third));
        assert_eq!(fixture.content(0), "first;second;third;", "{plan}");
        assert_eq!(fixture.log.refuses_writes(), None);
        let events = fixture.events();
        assert!(matches!(events.first(), Some(Event::WriteFailed(_) | Event::NotCut(_))), "{events:?}");
        assert_eq!(events.last(), Some(&Event::WritesAgain));
    }
}

/// A file on a disk with so many free bytes, which keeps room.
struct OnSmallDisk {
    inner: Arc<dyn File>,
    disk: Mutex<SmallDisk>,
}

struct SmallDisk {
    free: u64,
    len: u64,
    kept_to: u64,
}

impl SmallDisk {
    fn grow(&mut self, to: u64) -> io::Result<()> {
        let more = to.saturating_sub(self.kept_to);
        self.free = self.free.checked_sub(more).ok_or(io::ErrorKind::StorageFull)?;
        self.kept_to += more;
        Ok(())
    }
}

impl OnSmallDisk {
    fn disk(&self) -> std::sync::MutexGuard<'_, SmallDisk> {
        self.disk.lock().expect("nobody panics")
    }
}

impl File for OnSmallDisk {
    fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut disk = self.disk();
        let len = disk.len + bytes.iter().map(|slice| slice.len() as u64).sum::<u64>();
        disk.grow(len)?;
        disk.len = len;
        self.inner.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn keep_room(&self, from: u64, len: u64) -> io::Result<()> {
        self.disk().grow(from + len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.free += disk.kept_to - len;
        (disk.len, disk.kept_to) = (len, len);
        self.inner.truncate(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

#[test]
fn what_is_confirmed_has_room_when_the_disk_is_full() {
    const FREE: u64 = 300 << 10;
    let memory = Memory::new();
    memory.create_directory(Path::new("d")).expect("nothing fails");
    let inner = memory.create(&path(0)).expect("nothing fails");
    let file = Arc::new(OnSmallDisk { inner, disk: Mutex::new(SmallDisk { free: FREE, len: 0, kept_to: 0 }) });
    let heard = Arc::new(Heard::default());
    let settings = settings(Policy::EverySecond);
    let log = Log::start(file.clone(), &settings, heard.clone()).expect("threads can be started");
    let record = [b'r'; 1 << 10];
    while log.refuses_writes().is_none() {
        log.append(&record);
    }
    let reason = log.refuses_writes().expect("nothing has become better");
    assert!(reason.to_string().starts_with("MISCONF Errors writing to the AOF file: "), "{reason}");
    // So much may come of those who have not heard of it.
    for _ in 0..settings.ring_bytes / record.len() / 8 {
        log.append(&record);
    }
    until(|| log.written() == log.position());
    assert_eq!(memory.content(&path(0)).expect("it is there").len() as u64, log.written());
    assert!(log.refuses_writes().is_some() && log.is_held_up().is_none(), "all that is confirmed comes into the file");
    assert!(!log.statistics().last_write_ok);
    file.disk().free += 1 << 20;
    until(|| log.refuses_writes().is_none());
    let events = heard.events.lock().expect("nobody panics").clone();
    assert!(matches!(events[..], [Event::NoRoom(_), Event::WritesAgain]), "{events:?}");
    log.append(&record);
    let len = log.position();
    log.close().expect("nothing fails");
    let disk = file.disk();
    assert_eq!(
        (disk.len, disk.kept_to, disk.free),
        (len, len, FREE + (1 << 20) - len),
        "what is not used is given back"
    );
}

#[test]
fn a_file_that_is_left_keeps_no_room() {
    let fixture = start(Policy::No, "");
    let file = |number| {
        let disk = Mutex::new(SmallDisk { free: 1 << 20, len: 0, kept_to: 0 });
        Arc::new(OnSmallDisk { inner: fixture.next_file(number), disk })
    };
    let (first, second) = (file(1), file(2));
    let log = Log::start(first.clone(), &settings(Policy::No), Arc::new(NoHooks)).expect("threads can be started");
    log.append(b"first;");
    log.prepare_switch(second.clone()).expect("there is none yet");
    log.cut();
    log.append(b"second;");
    assert!(log.wait_switched(LONG));
    assert_eq!(first.disk().kept_to, 6);
    until(|| second.disk().kept_to > 64 << 10);
    assert_eq!(fixture.content(1), "first;");
}

#[test]
fn refusals_are_worded_as_in_redis() {
    let fixture = start(Policy::EverySecond, "write:enospc");
    fixture.log.append(b"x");
    until(|| fixture.log.refuses_writes().is_some());
    let reason = fixture.log.refuses_writes().expect("it was there");
    assert_eq!(reason.to_string(), "MISCONF Errors writing to the AOF file: No space left on device");
    assert!(!fixture.log.statistics().last_write_ok);
    assert_eq!(fixture.log.close().expect_err("it is not written").raw_os_error(), reason.errno);
}

#[test]
fn nobody_waits_for_room_that_does_not_come() {
    let fixture = start(Policy::No, "write:enospc@1-");
    // Three times what the ring holds.
    let record = [b'r'; 1000];
    let all: Vec<u8> = (0..200u8).flat_map(|number| [&[number], &record[..]].concat()).collect();
    fixture.log.append(b"");
    for number in 0..200u8 {
        fixture.log.append(&[&[number], &record[..]].concat());
    }
    until(|| fixture.log.refuses_writes().is_some());
    fixture.files.set("".parse().expect("a plan"));
    until(|| fixture.log.written() == all.len() as u64);
    assert!(fixture.memory.content(&path(0)).expect("the file is there") == all, "in the order of their positions");
    assert!(fixture.log.statistics().stalls > 0);
}

#[test]
fn a_record_longer_than_the_ring_is_written() {
    let fixture = start(Policy::Always, "");
    let long: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
    let position = fixture.log.append(&long);
    until(|| fixture.log.may_answer(position));
    assert!(fixture.memory.content(&path(0)).expect("the file is there") == long);
}

#[test]
fn a_switch_parts_the_records_at_the_cut() {
    for policy in [Policy::No, Policy::EverySecond, Policy::Always] {
        let fixture = start(policy, "");
        fixture.log.append(b"before;");
        assert!(fixture.log.cancel_switch());
        fixture.log.prepare_switch(fixture.next_file(1)).expect("no other is under way");
        assert!(fixture.log.prepare_switch(fixture.next_file(2)).is_err());
        fixture.log.append(b"still;");
        assert_eq!(fixture.log.cut(), 13);
        fixture.log.append(b"behind;");
        assert!(fixture.log.wait_switched(LONG));
        assert!(fixture.log.durable() >= 13, "the old file is on disk before the first byte of the new one");
        fixture.log.close().expect("nothing fails");
        assert_eq!((fixture.content(0), fixture.content(1)), ("before;still;".into(), "behind;".into()));
        assert_eq!(fixture.log.statistics().file_len, 7);
    }
}

#[test]
fn what_a_snapshot_holds_need_not_be_written() {
    let fixture = start(Policy::EverySecond, "write:enospc");
    fixture.log.append(b"unwritten;");
    until(|| fixture.log.refuses_writes().is_some());
    fixture.log.prepare_switch(fixture.next_file(1)).expect("no other is under way");
    let cut = fixture.log.cut();
    fixture.log.append(b"behind;");
    fixture.files.set("".parse().expect("a plan"));
    fixture.log.drop_before_switch();
    assert!(fixture.log.wait_switched(LONG));
    fixture.log.trust_from(fixture.log.generation(), cut);
    until(|| fixture.log.refuses_writes().is_none());
    // Whoever refuses writes does not look again by himself.
    until(|| fixture.events().last() == Some(&Event::WritesAgain));
    fixture.log.close().expect("nothing fails any more");
    assert_eq!(fixture.content(1), "behind;");
}

#[test]
fn each_second_begins_with_its_time() {
    static NOW: AtomicU64 = AtomicU64::new(1_700_000_000);
    let memory = Memory::new();
    let settings = Settings { timestamps: true, clock: || NOW.load(Ordering::SeqCst), ..settings(Policy::No) };
    let file = memory.create(Path::new("f")).expect("it can be made");
    let log = Log::start(file, &settings, Arc::new(NoHooks)).expect("threads can be started");
    log.append(b"a\r\n");
    log.append(b"b\r\n");
    NOW.fetch_add(1, Ordering::SeqCst);
    let end = log.append(b"c\r\n");
    log.set_timestamps(false);
    NOW.fetch_add(1, Ordering::SeqCst);
    log.append(b"d\r\n");
    log.close().expect("nothing fails");
    let content = memory.content(Path::new("f")).expect("it is there");
    let expected = "#TS:1700000000\r\na\r\nb\r\n#TS:1700000001\r\nc\r\nd\r\n";
    assert_eq!(String::from_utf8(content).expect("text"), expected);
    assert_eq!(end, expected.len() as u64 - 3, "they count as bytes of the record behind them");
}

#[test]
fn many_threads_append_while_the_disk_comes_and_goes() {
    let fixture = start(Policy::Always, "write:torn@3-5 write:short@7 write:enospc@9-11 write:torn@15-16");
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let log = &fixture.log;
            scope.spawn(move || {
                for number in 0..300u32 {
                    let record = format!("{thread}:{number}:{};", "x".repeat((number % 700) as usize));
                    log.append(record.as_bytes());
                }
            });
        }
    });
    let end = fixture.log.position();
    until(|| fixture.log.may_answer(end));
    let content = fixture.content(0);
    let mut next = [0u32; 4];
    for record in content.split_terminator(';') {
        let mut parts = record.split(':');
        let thread: usize = parts.next().and_then(|part| part.parse().ok()).expect("a whole record");
        let number: u32 = parts.next().and_then(|part| part.parse().ok()).expect("a whole record");
        assert_eq!(parts.next().map(str::len), Some((number % 700) as usize));
        assert_eq!(number, next[thread]);
        next[thread] += 1;
    }
    assert_eq!(next, [300; 4]);
}
