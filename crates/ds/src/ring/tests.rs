//! The ring with one thread step by step, and with several at once. Knows what each record must read.

use super::{Consumer, Ring, ring};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Far longer than anything takes: who sleeps for so long was not woken.
const LONG: Duration = Duration::from_secs(60);

/// Sleeps until somebody wakes the sleeper.
fn until_woken(sleep: impl FnOnce(Duration)) {
    let since = Instant::now();
    sleep(LONG);
    assert!(since.elapsed() < LONG, "nobody has woken it");
}

/// Everything that is there, and that it is taken.
fn drain(consumer: &mut Consumer) -> Vec<u8> {
    let end = consumer.look();
    let (first, second) = consumer.bytes(end);
    let bytes = [first, second].concat();
    consumer.take(end);
    bytes
}

fn append(ring: &Ring, record: &[u8]) {
    let mut claim = ring.reserve(record.len());
    assert_eq!(ring.fill(&mut claim, record), record.len());
    assert!(claim.is_filled());
}

#[test]
fn bytes_come_out_in_the_order_of_their_reservation() {
    let (ring, mut consumer) = ring(4, 4, 0);
    let mut first = ring.reserve(3);
    let mut second = ring.reserve(2);
    assert_eq!(ring.fill(&mut second, b"de"), 2);
    assert_eq!(consumer.look(), 0, "what lies before is not there yet");
    assert_eq!(ring.fill(&mut first, b"ab"), 2);
    assert_eq!(consumer.look(), 0, "in the last block a claim is there as a whole");
    assert_eq!(ring.fill(&mut first, b"c"), 1);
    assert_eq!(consumer.look(), 5);
    assert_eq!(drain(&mut consumer), b"abcde");
    assert_eq!((ring.head(), ring.len()), (5, 1), "the block that is not used up is held");
}

#[test]
fn records_end_where_the_consumer_may_stop() {
    let (ring, mut consumer) = ring(4, 4, 0);
    append(&ring, b"ab");
    let mut long = ring.reserve(4);
    ring.fill(&mut long, b"cd");
    assert_eq!(consumer.look(), 4, "the first block is full");
    assert_eq!(consumer.whole_records(), Some(2), "but a record goes on behind it");
    consumer.take(2);
    assert_eq!(consumer.whole_records(), None);
    ring.fill(&mut long, b"ef");
    assert_eq!((consumer.look(), consumer.whole_records()), (6, Some(6)));
    append(&ring, b"gh");
    assert_eq!((consumer.look(), consumer.whole_records()), (8, Some(8)), "a record that ends with its block");
}

#[test]
fn a_record_longer_than_the_ring_is_filled_as_room_appears() {
    let (ring, mut consumer) = ring(4, 2, 0);
    let record: Vec<u8> = (0..21).collect();
    let mut claim = ring.reserve(record.len());
    let mut done = ring.fill(&mut claim, &record);
    assert_eq!(done, 8);
    assert_eq!(ring.fill(&mut claim, &record[done..]), 0, "there is no room");
    let mut out = Vec::new();
    while !claim.is_filled() || out.len() < record.len() {
        consumer.look();
        out.extend(drain(&mut consumer));
        done += ring.fill(&mut claim, &record[done..]);
    }
    assert_eq!(out, record);
}

#[test]
fn what_lies_within_a_block_and_has_room_is_appended_in_one_go() {
    let (ring, mut consumer) = ring(4, 2, 8);
    assert_eq!(ring.append(b"abc").ok(), Some(11));
    let mut across = ring.append(b"de").expect_err("it lies in two blocks");
    assert_eq!((across.at(), across.end(), consumer.look()), (11, 13, 8));
    assert_eq!(ring.fill(&mut across, b"de"), 2);
    assert_eq!(ring.append(b"fgh").ok(), Some(16), "as far as the block's end");
    let mut without_room = ring.append(b"i").expect_err("the ring is full");
    consumer.look();
    assert_eq!(drain(&mut consumer), b"abcdefgh");
    assert_eq!(ring.fill(&mut without_room, b"i"), 1);
    assert_eq!(ring.append(b"j").ok(), Some(18));
    consumer.look();
    assert_eq!(drain(&mut consumer), b"ij");
}

#[test]
fn a_nudge_is_not_overslept() {
    let (ring, mut consumer) = ring(4, 2, 0);
    ring.nudge_consumer();
    until_woken(|at_most| consumer.wait(0, at_most));
    append(&ring, b"x");
    until_woken(|at_most| consumer.wait(0, at_most));
    assert_eq!(consumer.look(), 1);
}

#[test]
fn a_nudge_ends_one_sleep() {
    const WHILE: Duration = Duration::from_millis(20);
    let (ring, mut consumer) = ring(64, 4, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(WHILE);
            ring.nudge_consumer();
        });
        until_woken(|at_most| consumer.wait(0, at_most));
    });
    let since = Instant::now();
    consumer.wait(0, WHILE);
    assert!(since.elapsed() >= WHILE, "there was nothing new to end it");
}

#[test]
#[should_panic(expected = "claim.ring == self.id")]
fn claims_belong_to_their_ring() {
    let (one, _one) = ring(4, 2, 0);
    let (other, _other) = ring(4, 2, 0);
    let mut claim = one.reserve(1);
    other.fill(&mut claim, b"x");
}

/// What a property test does with the ring.
#[derive(Clone, Debug)]
enum Step {
    Reserve(usize),
    /// Fills up to so many bytes of one of the open claims.
    Fill(usize, usize),
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1usize..40).prop_map(Step::Reserve),
        (0usize..8, 1usize..24).prop_map(|(claim, len)| Step::Fill(claim, len)),
        (0usize..40).prop_map(Step::Take),
    ]
}

proptest! {
    /// Against a list of bytes of which each is there or not.
    #[test]
    fn the_ring_is_a_queue(steps in prop::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 200 })) {
        let (ring, mut consumer) = ring(8, 4, 48);
        let mut open = Vec::new();
        let mut queue: VecDeque<Option<u8>> = VecDeque::new();
        let mut ends = vec![48];
        let (mut reserved, mut taken) = (48u64, 48u64);
        let byte = |position: u64| (position.wrapping_mul(31) >> 2) as u8;
        for step in steps {
            match step {
                Step::Reserve(len) => {
                    open.push(ring.reserve(len));
                    queue.extend(std::iter::repeat_n(None, len));
                    reserved += len as u64;
                    ends.push(reserved);
                }
                Step::Fill(index, len) if !open.is_empty() => {
                    let index = index % open.len();
                    let claim = &mut open[index];
                    let at = claim.at();
                    let bytes: Vec<u8> = (at..claim.end()).take(len).map(byte).collect();
                    let filled = ring.fill(claim, &bytes);
                    for (position, byte) in (at..).zip(&bytes[..filled]) {
                        let place = &mut queue[(position - taken) as usize];
                        prop_assert!(place.replace(*byte).is_none());
                    }
                    if claim.is_filled() {
                        drop(open.remove(index));
                    }
                }
                Step::Fill(..) => {}
                Step::Take(at_most) => {
                    let complete = consumer.look();
                    let there = queue.iter().take_while(|byte| byte.is_some()).count() as u64;
                    prop_assert!(complete <= taken + there, "bytes are seen that are not there");
                    if open.is_empty() {
                        prop_assert_eq!(complete, reserved);
                    }
                    if let Some(end) = consumer.whole_records() {
                        prop_assert!(end > taken && end <= complete && ends.contains(&end));
                    }
                    let end = complete.min(taken + at_most as u64);
                    let (first, second) = consumer.bytes(end);
                    let expected: Vec<u8> = (taken..end).map(byte).collect();
                    prop_assert_eq!([first, second].concat(), expected);
                    consumer.take(end);
                    queue.drain(..(end - taken) as usize);
                    taken = end;
                }
            }
        }
    }
}

/// Several producers, each with numbered records of its own lengths; the consumer finds each producer's in order.
#[test]
fn threads_append_at_once() {
    const PRODUCERS: u8 = 4;
    const RECORDS: u32 = if cfg!(miri) { 6 } else { 20_000 };
    let (ring, mut consumer) = ring(64, 8, 0);
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let ring = &ring;
            scope.spawn(move || {
                for number in 0..RECORDS {
                    // Some are longer than the ring.
                    let len = if number % 97 == 0 { 700 } else { (number % 50) as usize };
                    let mut record = vec![producer];
                    record.extend(number.to_le_bytes());
                    record.extend((len as u32).to_le_bytes());
                    record.extend(std::iter::repeat_n(producer ^ number as u8, len));
                    let Err(mut claim) = ring.append(&record) else { continue };
                    let mut done = 0;
                    while done < record.len() {
                        done += ring.fill(&mut claim, &record[done..]);
                        if done < record.len() {
                            until_woken(|at_most| ring.wait_for_room(&claim, at_most));
                        }
                    }
                }
            });
        }
        let mut next = [0u32; PRODUCERS as usize];
        let mut out: Vec<u8> = Vec::new();
        while next != [RECORDS; PRODUCERS as usize] {
            if consumer.look() == consumer.consumed() {
                until_woken(|at_most| consumer.wait(consumer.consumed(), at_most));
            }
            out.extend(drain(&mut consumer));
            let mut rest = out.as_slice();
            while let Some((head, after)) = rest.split_first_chunk::<9>() {
                let number = u32::from_le_bytes(head[1..5].try_into().expect("four bytes"));
                let len = u32::from_le_bytes(head[5..].try_into().expect("four bytes")) as usize;
                let Some((body, after)) = after.split_at_checked(len) else { break };
                assert!(body.iter().all(|&byte| byte == head[0] ^ number as u8));
                let expected = &mut next[usize::from(head[0])];
                assert_eq!(number, *expected);
                *expected += 1;
                rest = after;
            }
            out.drain(..out.len() - rest.len());
        }
        assert!(out.is_empty());
    });
    assert!(ring.len() < 64);
}
