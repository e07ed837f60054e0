//! The ring's protocol in every order of its steps, as loom tries them: `cargo xtask loom`. Knows only small rings.

use super::{Consumer, Ring, ring};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

fn append(ring: &Ring, record: &[u8]) {
    let Err(mut claim) = ring.append(record) else { return };
    let mut done = 0;
    while done < record.len() {
        done += ring.fill(&mut claim, &record[done..]);
        if done < record.len() {
            ring.wait_for_room(&claim, LONG);
        }
    }
}

/// Takes bytes, sleeping when there are none, until there were so many.
fn take(consumer: &mut Consumer, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < len {
        let end = consumer.look();
        if end == consumer.consumed() {
            consumer.wait(end, LONG);
            continue;
        }
        let (first, second) = consumer.bytes(end);
        out.extend([first, second].concat());
        consumer.take(end);
    }
    out
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    // Findings of this kind show with few switches; without a bound the search takes hours.
    model.preemption_bound = Some(2);
    model.check(test);
}

#[test]
fn two_producers_and_a_sleeping_consumer() {
    model(|| {
        let (ring, mut consumer) = ring(4, 2, 0);
        let producers = [b"aa", b"bb"].map(|record| {
            let ring = ring.clone();
            loom::thread::spawn(move || append(&ring, record))
        });
        let out = take(&mut consumer, 4);
        assert!(out == b"aabb" || out == b"bbaa", "{out:?}");
        producers.into_iter().for_each(|producer| producer.join().expect("it ends well"));
    });
}

#[test]
fn a_record_longer_than_the_ring_waits_for_room() {
    model(|| {
        let (ring, mut consumer) = ring(1, 2, 0);
        let producer = {
            let ring = ring.clone();
            loom::thread::spawn(move || append(&ring, b"abcd"))
        };
        assert_eq!(take(&mut consumer, 4), b"abcd");
        producer.join().expect("it ends well");
    });
}

#[test]
fn blocks_are_used_again() {
    model(|| {
        let (ring, mut consumer) = ring(1, 2, 0);
        let producers = [&b"aa"[..], b"b"].map(|record| {
            let ring = ring.clone();
            loom::thread::spawn(move || append(&ring, record))
        });
        let out = take(&mut consumer, 3);
        assert!(out == b"aab" || out == b"baa", "{out:?}");
        producers.into_iter().for_each(|producer| producer.join().expect("it ends well"));
    });
}

#[test]
fn a_nudge_wakes_the_consumer() {
    model(|| {
        let (ring, mut consumer) = ring(2, 2, 0);
        let nudger = {
            let ring = ring.clone();
            loom::thread::spawn(move || ring.nudge_consumer())
        };
        // Nothing is ever filled: only the nudge ends it.
        consumer.wait(0, LONG);
        nudger.join().expect("it ends well");
    });
}
