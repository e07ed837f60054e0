//! Packed collections that are longer than usual settings have them: what is there twice is refused, in whatever order elements
//! come they are kept as they would be one by one, and reading them takes no longer than it must.

use crate::content::{Content, LIMITS, content};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tenon_persist::rdb::file::OnModule;
use tenon_persist::rdb::{Limits, LoadError, load};
use tenon_store::types::{HashLimits, SetLimits, ZsetLimits};
use tenon_wire::rdb::{Compression, Writer, seal};

const SET: u8 = 2;
const HASH: u8 = 4;
const ZSET: u8 = 5;
const KINDS: [u8; 3] = [SET, HASH, ZSET];

/// As many members as a packed form may have, about.
const MOST: usize = 32_000;

fn wide() -> Limits {
    Limits {
        hash: HashLimits { fields: MOST, bytes: 64 },
        set: SetLimits { ints: 20, members: MOST, bytes: 64 },
        zset: ZsetLimits { members: MOST, bytes: 64 },
        ..*LIMITS
    }
}

/// A collection of this kind with these members, which are the numbers' texts; their scores are the other numbers.
fn read(
    kind: u8,
    members: impl ExactSizeIterator<Item = (usize, usize)>,
    limits: Limits,
) -> Result<Content, LoadError> {
    let mut payload = vec![kind];
    let mut writer = Writer::new(&mut payload, Compression::Off);
    writer.length(members.len() as u64);
    for (member, score) in members {
        writer.string(format!("a member of some length, number {member}").as_bytes());
        match kind {
            HASH => writer.string(&[b'v'; 20]),
            ZSET => writer.double(score as f64),
            _ => {}
        }
    }
    seal(&mut payload);
    load(&payload, limits, 0, OnModule::Refuse).map(|loaded| content(&loaded.value))
}

fn encoding(content: &Content) -> &'static str {
    match content {
        Content::Hash(_, encoding, _) | Content::Set(_, encoding, _) | Content::Zset(_, encoding, _) => encoding,
        other => panic!("{other:?} is none of them"),
    }
}

/// The thread's time on a processor: however many others want one, it is the same.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it has not run for centuries")
}

/// How much time on a processor it takes to read so many elements, at best.
fn time_to_read(kind: u8, count: usize) -> Duration {
    let time = || {
        let started = cpu_time();
        let content = read(kind, (0..count).map(|number| (number, number / 3)), wide()).expect("it is one");
        assert_eq!(encoding(&content), "listpack");
        cpu_time() - started
    };
    (0..4).map(|_| time()).min().expect("it was read")
}

#[test]
fn each_element_is_not_looked_for_among_all_others() {
    for kind in KINDS {
        let (few, many) = (time_to_read(kind, MOST / 16), time_to_read(kind, MOST));
        // 14 to 20 times; were each looked for, it would be more than 200.
        assert!(many < 64 * few, "form {kind}: {few:?} and {many:?}");
    }
}

#[test]
fn what_is_there_twice_is_refused_wherever_it_is() {
    for kind in KINDS {
        for len in [2, 8, 9, 10, 100, 500] {
            for (first, second) in [(0, len - 1), (0, 1), (len - 2, len - 1), (len / 2 - 1, len / 2)] {
                for other_score in [0, 1_000] {
                    let members = (0..len).map(|at| if at == second { (first, first + other_score) } else { (at, at) });
                    let read = read(kind, members, wide());
                    assert!(read.is_err(), "form {kind}, {len} members, {first} and {second}: {read:?}");
                }
            }
        }
    }
}

#[test]
fn many_elements_are_kept_as_they_would_be_one_by_one() {
    for kind in KINDS {
        for len in [8, 9, 100, 1_000] {
            let up = read(kind, (0..len).map(|number| (number, number / 3)), wide()).expect("it is one");
            assert_eq!(encoding(&up), "listpack");
            let down = (0..len).map(|number| len - 1 - number).map(|number| (number, number / 3));
            assert_eq!(read(kind, down, wide()).expect("it is one"), up, "form {kind}, {len} members");
            if let Content::Zset(members, ..) = &up {
                assert!(members.is_sorted_by(|one, next| (one.1, &one.0) < (next.1, &next.0)), "{len} members");
            }
        }
    }
}
