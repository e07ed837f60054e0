//! Loads against a server that behaves as told: everything is sent and checked, whatever goes wrong is an error, and the
//! time a server stands still is not hidden.

use crate::toy::{Manners, Toy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenon_bench::dialects::Resp;
use tenon_bench::generators::{Distribution, Inserted, KeyChooser};
use tenon_bench::load::{Arrivals, Draw, Outcome, Pace, Plan, Reply, Until, Workload};
use tenon_bench::target::{Protocol, Target};
use tenon_bench::traces::{Hits, Trace};
use tenon_bench::values::{Lengths, Values};
use tenon_bench::workloads::{KeyValue, Keys, Misses, Mix, Replay, Spec, Tally};
use tenon_client::Address;

const KEYS: u64 = 500;
const VALUE_LEN: usize = 32;

fn spec(mix: Mix, keys: Keys) -> Spec {
    let (values, lengths) = (Values::new(4 << 20), Lengths::fixed(VALUE_LEN));
    Spec { mix, keys, first: 0, values, lengths, expire_s: 0, keys_a_get: 1, misses: Misses::Fail, seed: 1 }
}

fn chosen() -> Keys {
    Keys::Chosen(KeyChooser::new(Distribution::Uniform, &Arc::new(Inserted::new(KEYS)), 0))
}

struct Shape {
    connections: usize,
    threads: usize,
    pipeline: usize,
    pace: Pace,
    until: Until,
}

const SMALL: Shape =
    Shape { connections: 4, threads: 2, pipeline: 8, pace: Pace::Closed, until: Until::Operations(5_000) };

fn run(address: &Address, shape: &Shape, spec: impl Fn(usize) -> Spec) -> anyhow::Result<(Outcome, Tally)> {
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let Shape { connections, pipeline, pace, until, .. } = *shape;
    let (target, tls, draw) = (&Target::of(Protocol::Resp, address.clone()), None, Draw::default());
    let plan =
        Plan { target, tls, connections, pipeline, pace, draw, until, cores: &[], progress: &progress, stop: &stop };
    let workloads = (0..shape.threads).map(|thread| KeyValue::new(Resp, spec(thread))).collect();
    let (outcome, workloads) = tenon_bench::load::run(&plan, workloads, &mut ())?;
    assert_eq!(progress.load(Ordering::Relaxed), outcome.operations, "what is shown is what was done");
    match pace {
        // At least one write, one wait and one read.
        Pace::Closed => assert!(outcome.client_calls.is_some_and(|calls| calls >= 3), "{:?}", outcome.client_calls),
        Pace::Open { .. } => assert_eq!(outcome.client_calls, None),
    }
    let tally = workloads.iter().map(KeyValue::tally).fold(Tally::default(), Tally::with);
    Ok((outcome, tally))
}

fn fill(address: &Address, lengths: Lengths) {
    let shape = Shape { until: Until::Exhausted, ..SMALL };
    let part = |thread| Spec { lengths, ..spec(Mix::SET, Keys::part(KEYS, shape.threads, thread)) };
    let (outcome, _) = run(address, &shape, part).expect("the server takes everything");
    assert_eq!(outcome.operations, KEYS);
}

#[test]
fn everything_asked_for_is_sent_and_answered() {
    let toy = Toy::start(Manners::Good);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    assert_eq!(toy.requests(), KEYS);
    let mix = Mix { get: 1.0, set: 1.0, delete: 0.0 };
    for (connections, threads, pipeline) in [(1, 1, 1), (4, 2, 8), (100, 3, 2), (1, 4, 300)] {
        let shape = Shape { connections, threads, pipeline, ..SMALL };
        let before = toy.requests();
        let (outcome, tally) = run(&toy.address, &shape, |_| spec(mix, chosen())).expect("a good server");
        assert_eq!((outcome.operations, toy.requests() - before), (5_000, 5_000));
        assert_eq!(tally.hits, outcome.kinds[0].1.count());
        assert!((2_000..3_000).contains(&tally.hits), "{}", tally.hits);
        assert_eq!(outcome.latency().count(), 5_000);
        assert_eq!(outcome.intervals.iter().sum::<u64>(), 5_000);
    }
}

#[test]
fn values_of_any_length_are_checked_byte_for_byte() {
    let toy = Toy::start(Manners::Good);
    // Longer than a read, so that replies come in pieces.
    for lengths in [Lengths::fixed(0), Lengths { min: 1, max: 100_000 }, Lengths::fixed(700_000)] {
        fill(&toy.address, lengths);
        let shape = Shape { until: Until::Operations(200), ..SMALL };
        let (outcome, tally) =
            run(&toy.address, &shape, |_| Spec { lengths, ..spec(Mix::GET, chosen()) }).expect("all");
        assert_eq!((outcome.operations, tally.hits), (200, 200));
    }
    let shape = Shape { until: Until::Operations(10), ..SMALL };
    let other = Lengths::fixed(699_999);
    assert!(run(&toy.address, &shape, |_| Spec { lengths: other, ..spec(Mix::GET, chosen()) }).is_err());
}

#[test]
fn a_get_of_several_keys_counts_each() {
    let toy = Toy::start(Manners::Good);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let before = toy.requests();
    let (outcome, tally) = run(&toy.address, &SMALL, |_| Spec { keys_a_get: 16, ..spec(Mix::GET, chosen()) }).unwrap();
    assert_eq!((toy.requests() - before, outcome.operations, tally.hits), (5_000, 80_000, 80_000));
}

#[test]
fn misses_are_counted_or_filled_as_asked() {
    let toy = Toy::start(Manners::Good);
    let (_, tally) = run(&toy.address, &SMALL, |_| Spec { misses: Misses::Count, ..spec(Mix::GET, chosen()) }).unwrap();
    assert_eq!((tally.hits, tally.misses), (0, 5_000));
    let (outcome, tally) =
        run(&toy.address, &SMALL, |_| Spec { misses: Misses::Fill, ..spec(Mix::GET, chosen()) }).unwrap();
    assert_eq!((outcome.operations, tally.hits + tally.misses), (5_000, 5_000));
    assert_eq!((outcome.kinds[3].0, outcome.kinds[3].1.count()), ("fill", tally.misses));
    // Each key is missed at least once, and not much more: several may be in flight.
    assert!((KEYS - 10..2 * KEYS).contains(&tally.misses), "{}", tally.misses);
}

#[test]
fn a_server_that_answers_wrongly_fails_the_run() {
    for (manners, expected) in [
        (Manners::WrongValue { at: KEYS + 700 }, "another value for 'key:"),
        (Manners::Forgets { at: KEYS + 700 }, "has lost 'key:"),
        (Manners::Refuses { at: KEYS + 700 }, "answered '-OOM command not allowed'"),
        (Manners::SaysMore { at: KEYS + 700 }, "answered '+OK'"),
        (Manners::HangsUp { at: KEYS + 700 }, "closed the connection"),
    ] {
        let toy = Toy::start(manners);
        fill(&toy.address, Lengths::fixed(VALUE_LEN));
        for pace in [Pace::Closed, Pace::Open { rate: 20_000.0, arrivals: Arrivals::Even }] {
            let shape = Shape { pace, ..SMALL };
            let result = run(&toy.address, &shape, |_| spec(Mix::GET, chosen()));
            // It misbehaves once: in the loop that comes first.
            if pace == Pace::Closed {
                let error = format!("{:#}", result.expect_err("no figure is taken"));
                assert!(error.contains(expected), "{manners:?}: {error}");
            } else {
                result.expect("it behaves again");
            }
        }
    }
}

#[test]
fn nobody_there_is_an_error() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = run(&free.into(), &SMALL, |_| spec(Mix::GET, chosen())).expect_err("nobody listens");
    assert!(format!("{error:#}").contains("no connection to 127.0.0.1:"), "{error:#}");
}

#[test]
fn unix_sockets_carry_loads_too() {
    let directory = std::env::temp_dir().join(format!("tenon-bench-loads-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("toy.sock");
    let toy = Toy::start_unix(&path);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    assert_eq!(run(&toy.address, &SMALL, |_| spec(Mix::GET, chosen())).unwrap().0.operations, 5_000);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_load_stops_when_it_is_told_to() {
    let toy = Toy::start(Manners::Good);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let plan = Plan {
        target: &toy.target(),
        tls: None,
        connections: 2,
        pipeline: 1,
        pace: Pace::Closed,
        draw: Draw::default(),
        until: Until::Elapsed(Duration::from_secs(600)),
        cores: &[],
        progress: &progress,
        stop: &stop,
    };
    std::thread::scope(|scope| {
        let load =
            scope.spawn(|| tenon_bench::load::run(&plan, vec![KeyValue::new(Resp, spec(Mix::GET, chosen()))], &mut ()));
        while progress.load(Ordering::Relaxed) < 100 && !load.is_finished() {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        let error = load.join().unwrap().expect_err("what was cut off is no figure");
        assert_eq!(error.to_string(), "stopped");
    });
}

/// What a stall of the server does to latencies. A closed loop has one late answer for each connection; in an open one,
/// everybody who would have come meanwhile has waited, and the figures say so.
#[test]
fn an_open_loop_shows_a_stall_to_everybody_who_would_have_come() {
    const RATE: u64 = 1_000;
    const PAUSE: Duration = Duration::from_millis(400);
    let half = PAUSE.as_nanos() as u64 / 2;
    for arrivals in [Arrivals::Even, Arrivals::Poisson] {
        let toy = Toy::start(Manners::Stalls { at: KEYS + 100, pause: PAUSE });
        fill(&toy.address, Lengths::fixed(VALUE_LEN));
        // Room for few at a time: the others wait in the client, which must not hide it.
        let shape = Shape {
            connections: 2,
            threads: 1,
            pipeline: 1,
            pace: Pace::Open { rate: RATE as f64, arrivals },
            until: Until::Elapsed(Duration::from_millis(1_000)),
        };
        let (outcome, _) = run(&toy.address, &shape, |_| spec(Mix::GET, chosen())).expect("it answers in the end");
        let late = outcome.latency().count_from(half);
        // Half of those due during the stall waited at least half of it. A slow machine makes it more, never fewer; random
        // arrivals vary by some tens.
        let due = RATE * PAUSE.as_millis() as u64 / 2 / 1_000;
        assert!(late >= due * 3 / 4, "{late} of {due} waited ({arrivals})");
        // A machine that gives this process no time may leave some unsent; none is forgotten.
        let counted = outcome.operations + outcome.unsent;
        assert!(counted >= RATE * 8 / 10, "nobody is left out: {counted}");
        assert!(outcome.latency().count() >= counted);
    }
}

/// More than a server answers that stands still for a moment, over its only connection.
const SOON_BEHIND: Shape = Shape {
    connections: 1,
    threads: 1,
    pipeline: 1,
    pace: Pace::Open { rate: 2_000.0, arrivals: Arrivals::Even },
    until: Until::Elapsed(Duration::from_millis(200)),
};

/// While all connections are taken, the client may be late all the same: with what it sends when there is room.
#[test]
fn how_late_the_client_was_is_known_of_every_request_that_was_sent() {
    let toy = Toy::start(Manners::Stalls { at: KEYS + 10, pause: Duration::from_millis(100) });
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let (outcome, _) = run(&toy.address, &SOON_BEHIND, |_| spec(Mix::GET, chosen())).expect("it answers in the end");
    // What was in flight when a hopeless backlog was given up was sent and not answered.
    let in_flight_max = 1;
    let sent = outcome.operations..=outcome.operations + in_flight_max;
    assert!(sent.contains(&outcome.late.count()), "{} of {sent:?}", outcome.late.count());
}

/// Has something to do for longer than there is time for.
struct Laborious(KeyValue<Resp>);

impl Workload for Laborious {
    type Pending = <KeyValue<Resp> as Workload>::Pending;

    const KINDS: &'static [&'static str] = <KeyValue<Resp> as Workload>::KINDS;

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<Self::Pending> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(1) {}
        self.0.begin(out)
    }

    fn reply(&mut self, pending: &mut Self::Pending, input: &[u8], out: &mut Vec<u8>) -> anyhow::Result<Reply> {
        self.0.reply(pending, input, out)
    }
}

#[test]
fn a_client_that_is_the_limit_is_known_for_it_whatever_the_pace() {
    let toy = Toy::start(Manners::Good);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    for pace in [Pace::Closed, Pace::Open { rate: 50_000.0, arrivals: Arrivals::Poisson }] {
        let plan = Plan {
            target: &toy.target(),
            tls: None,
            connections: 500,
            pipeline: 1,
            pace,
            draw: Draw::default(),
            until: Until::Elapsed(Duration::from_millis(200)),
            cores: &[],
            progress: &progress,
            stop: &stop,
        };
        let workload = Laborious(KeyValue::new(Resp, spec(Mix::GET, chosen())));
        let (outcome, _) = tenon_bench::load::run(&plan, vec![workload], &mut ()).expect("a good server");
        // It was on its core or waited for one; what a virtual machine is robbed of is in neither.
        assert!(outcome.client_busy > 0.5, "{pace:?}: {}", outcome.client_busy);
    }
}

#[test]
fn what_was_due_and_never_answered_is_counted() {
    // Far more than a server with a lock and a thread for each connection answers.
    let toy = Toy::start(Manners::Stalls { at: KEYS + 10, pause: Duration::from_secs(4) });
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let (outcome, _) =
        run(&toy.address, &SOON_BEHIND, |_| spec(Mix::GET, chosen())).expect("it is given up, not failed");
    assert!(outcome.unsent > 300, "{}", outcome.unsent);
    assert!(outcome.latency().quantile_ns(0.5) > 1_500_000_000, "what waits is recorded with its wait");
    // Nobody knows of which kind they would have been.
    assert_eq!(outcome.unanswered.count(), outcome.unsent + 1, "the one in flight, too");
    assert_eq!(outcome.kinds.iter().map(|(_, latency)| latency.count()).sum::<u64>(), outcome.operations);
}

#[test]
fn a_steady_open_loop_keeps_its_rate() {
    let toy = Toy::start(Manners::Good);
    fill(&toy.address, Lengths::fixed(VALUE_LEN));
    let shape = Shape {
        connections: 8,
        threads: 2,
        pipeline: 4,
        pace: Pace::Open { rate: 4_000.0, arrivals: Arrivals::Even },
        until: Until::Elapsed(Duration::from_millis(500)),
    };
    let (outcome, _) = run(&toy.address, &shape, |_| spec(Mix::GET, chosen())).expect("a good server");
    // All that was due is answered; on a machine that gives this process no time, some is in flight or unsent at the end.
    let (counted, in_flight_max) = (outcome.operations + outcome.unsent, 8 * 4);
    assert!((2_000 - in_flight_max..=2_000).contains(&counted), "{counted}");
}

#[test]
fn a_trace_is_replayed_to_its_last_request() {
    // Of one object, and of twenty in bursts: nearly every request waits for another.
    let bursts = (0..1_000).map(|index| index / 50).collect();
    for (requests, objects) in [(vec![0; 1_000], 1), (bursts, 20)] {
        let toy = Toy::start(Manners::Good);
        let trace = Arc::new(Trace { requests, sizes: vec![100; objects] });
        let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let plan = Plan {
            target: &toy.target(),
            tls: None,
            connections: 8,
            pipeline: 1,
            pace: Pace::Closed,
            draw: Draw::default(),
            until: Until::Exhausted,
            cores: &[],
            progress: &progress,
            stop: &stop,
        };
        let workload = Replay::new(Resp, trace, Values::new(100));
        let (outcome, replayed) = tenon_bench::load::run(&plan, vec![workload], &mut ()).expect("all is sent");
        assert_eq!((outcome.operations, replayed[0].left()), (1_000, 0));
        // Each object is missed once, and fetched once.
        let hits = 1.0 - objects as f64 / 1_000.0;
        assert_eq!(replayed[0].hits(), Hits { requests: hits, bytes: hits });
        assert_eq!(toy.requests(), 1_000 + objects as u64);
    }
}
