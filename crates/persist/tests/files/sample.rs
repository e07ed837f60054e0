//! Files made by hand, and what is found in them.

use std::collections::BTreeMap;
use std::io::Read;
use tenon_persist::rdb::file::{Cut, Cutter, Ending, FileError, Note, OnModule, Options};
use tenon_persist::rdb::{Limits, Scene};
use tenon_store::entry::{Entry, Meta, ValueRef};
use tenon_store::types::stream::{ProducerLimits, Producers};
use tenon_store::types::{HashLimits, ListLimits, Object, SetLimits, ZsetLimits};
use tenon_wire::rdb::crc64;

/// A file on its way.
pub struct File(Vec<u8>);

impl File {
    pub fn begin(header: &str) -> File {
        File(header.as_bytes().to_vec())
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut File {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn string(&mut self, text: &[u8]) -> &mut File {
        let len = u8::try_from(text.len()).ok().filter(|len| *len < 64).expect("texts in tests are short");
        self.raw(&[len]).raw(text)
    }

    pub fn select(&mut self, database: u8) -> &mut File {
        self.raw(&[0xFE, database])
    }

    pub fn auxiliary(&mut self, name: &str, text: &str) -> &mut File {
        self.raw(b"\xFA").string(name.as_bytes()).string(text.as_bytes())
    }

    pub fn entry(&mut self, form: u8, key: &[u8], value: &[u8]) -> &mut File {
        self.raw(&[form]).string(key).raw(value)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The file with its end and checksum.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(0xFF);
        let checksum = crc64(0, &self.0);
        self.0.extend_from_slice(&checksum.to_le_bytes());
        self.0
    }
}

/// A stream without entries and groups, up to what is known of producers.
pub const EMPTY_STREAM: &[u8] = b"\x00\x00\x05\x05\x00\x00\x00\x00\x00\x00";

/// What a stream knows of two producers, of which one has added two entries; as Redis 8.6.3 writes it.
pub const PRODUCERS: &[u8] =
    b"\x4e\x10\x07\x02\x01p\x02\xc0\x01\x05\x01\xc0\x02\x05\x02\x01q\x01\xc0\x01\x05\x03\x07\x01";

/// What a module keeps of a key, and says that it may be left out; as Redis 8.6.3 writes it.
pub const METADATA: &[u8] = b"\xf3\x01\x09\xf5\xc4\x28\x05\x04kept\x02\x01\x03\x00\x00\xc0\x3f\x00";

/// A file that has one of everything that is no value's form.
pub fn sample() -> Vec<u8> {
    let mut file = File::begin("REDIS0014");
    file.auxiliary("redis-ver", "8.0.6").auxiliary("redis-bits", "64");
    file.raw(b"\xF5").string(b"#!lua name=lib\nredis.register_function('f', ...)");
    file.select(0).raw(b"\xFB\x05\x02").raw(b"\xF4\x03\x05\x02");
    file.entry(0, b"plain", b"\x05value");
    file.raw(b"\xFC").raw(&4_102_444_800_123u64.to_le_bytes());
    file.entry(0, b"int", &[&[0xC2][..], &(-70_000i32).to_le_bytes()].concat());
    file.raw(b"\xF8\x41\x2C").entry(0, b"idle", b"\x01v");
    file.raw(b"\xFD").raw(&2_000_000_000u32.to_le_bytes()).raw(b"\xF9\xC8").entry(0, b"busy", b"\x01v");
    file.entry(1, b"list", b"\x02\x01a\x01b");
    file.select(3);
    let deadlines = |member: u8, ms: u64| [&[1, 1, member][..], &ms.to_le_bytes()].concat();
    file.entry(4, b"hash", b"\x02\x01f\x01v\x01g\x01w");
    file.auxiliary_bytes("tenon-member-deadlines", &deadlines(b'f', 4_102_444_800_001));
    file.entry(2, b"set", b"\x02\x01a\x01b");
    file.auxiliary_bytes("tenon-member-deadlines", &deadlines(b'a', 4_102_444_800_000));
    // An empty stream.
    file.entry(15, b"stream", b"\x00\x00\x05\x05\x00");
    // The same with a producer, behind metadata that may be left out.
    file.raw(METADATA).entry(26, b"once", &[EMPTY_STREAM, PRODUCERS].concat());
    file.entry(0, b"last", b"\x01v").auxiliary("tenon-client-flags", "7").auxiliary("tenon-of-later", "?");
    file.end()
}

impl File {
    fn auxiliary_bytes(&mut self, name: &str, text: &[u8]) -> &mut File {
        self.raw(b"\xFA").string(name.as_bytes()).string(text)
    }
}

/// A key with its value.
#[derive(Debug)]
pub struct FoundEntry {
    /// What it is, when it is a string.
    pub text: Vec<u8>,
    pub deadline_ms: Option<u64>,
    pub usage: String,
    pub flags: u32,
    pub deadlines: Vec<(Vec<u8>, u64)>,
    /// How many ids of producers a stream remembers.
    pub producer_ids: usize,
}

/// What is in a file.
#[derive(Debug)]
pub struct Found {
    /// By database and key.
    pub entries: BTreeMap<String, FoundEntry>,
    order: Vec<String>,
    pub notes: Vec<Note>,
    pub ending: Ending,
    pub batches: usize,
}

impl Found {
    /// The keys with their databases, as they come.
    pub fn keys(&self) -> Vec<&str> {
        self.order.iter().map(|key| &**key).collect()
    }
}

/// What is in a file in memory.
pub fn read(bytes: &[u8]) -> Result<Found, FileError> {
    read_from(bytes, Some(bytes.len() as u64), OnModule::Refuse).map(|(found, _)| found)
}

/// What is in a file, and what follows it.
pub fn read_from(
    source: impl Read,
    total_bytes: Option<u64>,
    on_module: OnModule,
) -> Result<(Found, Vec<u8>), FileError> {
    let limits = Limits {
        list: ListLimits::new(-2, usize::MAX),
        hash: HashLimits { fields: 16, bytes: 64 },
        set: SetLimits { ints: 20, members: 16, bytes: 64 },
        zset: ZsetLimits { members: 16, bytes: 64 },
        producers: ProducerLimits::INITIAL,
    };
    let mut cutter = Cutter::new(source, Options { total_bytes, databases: 16, on_module })?;
    let scene = Scene { limits, origin: cutter.header().origin };
    let (mut entries, mut order, mut notes, mut batches) = (BTreeMap::new(), Vec::new(), Vec::new(), 0);
    let ending = loop {
        let batch = match cutter.next_batch()? {
            Cut::Batch(batch) => batch,
            Cut::End(ending) => break ending,
        };
        batches += 1;
        notes.extend(batch.notes.iter().map(|(_, note)| note.clone()));
        for span in &batch.entries {
            let key = batch.key(span)?.into_owned();
            let mut found = FoundEntry {
                text: Vec::new(),
                deadline_ms: span.deadline_ms,
                usage: format!("{:?}", span.usage),
                flags: 0,
                deadlines: Vec::new(),
                producer_ids: 0,
            };
            batch.store(span, &scene, |value, flags| {
                found.flags = flags;
                let entry = Entry::new(&key, value, &Meta::default());
                if let Some(deadlines) = entry.view().value().deadlines() {
                    deadlines
                        .for_each_from(0, usize::MAX, &mut |member, ms| found.deadlines.push((member.to_vec(), ms)));
                }
                match entry.view().value() {
                    ValueRef::Bytes(bytes) => found.text = bytes.to_vec(),
                    ValueRef::Int(int) => found.text = int.to_string().into_bytes(),
                    ValueRef::Object(Object::Shared(bytes)) => found.text = bytes.to_vec(),
                    ValueRef::Object(Object::Rope(rope)) => found.text = rope.to_vec(),
                    ValueRef::Object(Object::Stream(stream)) => {
                        found.producer_ids = stream.producers().map_or(0, Producers::ids);
                    }
                    ValueRef::Object(_) | ValueRef::Packed(..) => {}
                }
            })?;
            let name = format!("{}/{}", span.database, key.escape_ascii());
            order.push(name.clone());
            entries.insert(name, found);
        }
    };
    let (mut rest, mut source) = cutter.into_rest();
    source.read_to_end(&mut rest).expect("what follows can be read");
    Ok((Found { entries, order, notes, ending, batches }, rest))
}
