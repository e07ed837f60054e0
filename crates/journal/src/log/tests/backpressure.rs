//! When writes are to wait since there is little room, and who waits in the middle of one.

use super::syncing::GatedLog;
use super::*;

const RECORD: &[u8] = &[b'r'; 1_000];

fn told(heard: &Heard) -> Vec<bool> {
    heard.short.lock().expect("nobody panics").clone()
}

#[test]
fn writes_wait_before_the_ring_is_full_until_there_is_room() {
    for policy in [Policy::No, Policy::Always] {
        let gated = GatedLog::start(policy);
        let GatedLog { log, heard, .. } = &gated;
        // Its sync is held up, and so is the writer.
        let first = log.append(b"first ");
        assert!(!log.wait_durable(first, Duration::ZERO));
        gated.await_syncs(1);
        (0..38).for_each(|_| _ = log.append(RECORD));
        assert_eq!(told(heard), []);
        (0..10).for_each(|_| _ = log.append(RECORD));
        assert_eq!((told(heard), log.has_room_for_ticks()), (vec![true], true));
        (0..12).for_each(|_| _ = log.append(RECORD));
        assert_eq!((heard.waits.load(Ordering::SeqCst), log.has_room_for_ticks()), (0, false));
        std::thread::scope(|scope| {
            // What had begun finds no room in the end.
            scope.spawn(|| (0..10).for_each(|_| _ = log.append(RECORD)));
            until(|| heard.waits.load(Ordering::SeqCst) == 1);
            gated.let_go(u64::MAX);
        });
        until(|| told(heard).last() == Some(&false));
        assert!(log.wait_durable(log.position(), LONG));
        assert_eq!(log.statistics().stalls, 1);
    }
}

#[test]
fn nobody_waits_for_a_log_that_cannot_be_written() {
    let fixture = start(Policy::No, "write:eio");
    fixture.log.append(RECORD);
    until(|| fixture.log.refuses_writes().is_some());
    (0..80).for_each(|_| _ = fixture.log.append(RECORD));
    assert_eq!(told(&fixture.heard), []);
    fixture.files.set("".parse().expect("a plan"));
    fixture.log.close().expect("nothing fails any more");
    assert_eq!(told(&fixture.heard).last().unwrap_or(&false), &false);
    assert_eq!(fixture.content(0).len(), 81 * RECORD.len());
}

#[test]
fn who_waits_goes_on_when_the_log_fails_or_ends() {
    for ends in [false, true] {
        let gated = GatedLog::start(Policy::Always);
        let GatedLog { log, heard, .. } = &gated;
        log.append(b"first ");
        log.turn_ended();
        gated.await_syncs(1);
        (0..60).for_each(|_| _ = log.append(RECORD));
        assert_eq!(told(heard), [true]);
        if !ends {
            gated.fail("write:eio");
        }
        gated.let_go(u64::MAX);
        if ends {
            log.close().expect("nothing fails");
        }
        until(|| told(heard) == [true, false]);
        // Or who had waited would be confirmed what the log does not take.
        assert_eq!(log.refuses_writes().is_some(), !ends);
    }
}
