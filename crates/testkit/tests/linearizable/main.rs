//! What several clients do at the same time happens in some order that agrees with real time: each command at one moment
//! between its call and its reply, those of MULTI and of a script all at the same one. Short histories of few keys are held
//! against a model of the server. Knows nothing of the server's inside.
//!
//! `TENON_LINEARIZABLE_SECONDS` says how long all settings together are played (20 by default; 3,600 for a long run),
//! `TENON_RANDOM_SEED` with which seed, `TENON_FILTER` only those settings whose name has that in it.
#![forbid(unsafe_code)]

mod check;
mod client;
mod commands;
mod disturb;
mod handmade;
mod history;
mod model;
mod rounds;

use commands::Family;
use disturb::Disturbance;
use rounds::{PLAIN, Setting, play};
use std::time::{Duration, Instant};

/// What is played in turn.
const SETTINGS: &[Setting] = &[
    Setting { name: "one worker", server: &[("workers", "1")], ..PLAIN },
    Setting { name: "two workers", server: &[("workers", "2")], ..PLAIN },
    Setting { name: "four workers", server: &[("workers", "4")], ..PLAIN },
    Setting {
        name: "saving",
        server: &[("workers", "2"), ("appendonly", "yes"), ("appendfsync", "always")],
        disturbances: &[Disturbance::Saving],
        ..PLAIN
    },
    Setting {
        name: "disturbed",
        server: &[("workers", "2"), ("appendonly", "yes")],
        disturbances: &[Disturbance::Pauses, Disturbance::Scripts, Disturbance::Keyspace],
        ..PLAIN
    },
    // Without memcached's clients: there a store that is refused takes the old item away.
    Setting {
        name: "short of memory",
        server: &[("workers", "2")],
        disturbances: &[Disturbance::Memory],
        item_clients: 0,
        swaps: false,
        ..PLAIN
    },
    Setting { name: "slow scripts", server: &[("workers", "2")], idles: 200_000, ..PLAIN },
    // So large that commands take long enough to lend the worker's loop.
    Setting {
        name: "large collections",
        server: &[("workers", "2")],
        families: &[Family::Lists, Family::Hashes, Family::Sets, Family::Zsets],
        fill: 10_000,
        item_clients: 0,
        ..PLAIN
    },
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is to be a number")))
}

#[test]
fn concurrent_commands_are_linearizable() {
    let seconds = number("TENON_LINEARIZABLE_SECONDS").unwrap_or(20);
    let seed = number("TENON_RANDOM_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let filter = std::env::var("TENON_FILTER").unwrap_or_default();
    let settings: Vec<&Setting> = SETTINGS.iter().filter(|setting| setting.name.contains(&filter)).collect();
    assert!(!settings.is_empty(), "no setting is called {filter}");
    for setting in &settings {
        let begun = Instant::now();
        let tally = play(setting, seed, Duration::from_secs(seconds) / settings.len() as u32);
        println!("{}: {tally:?} in {:.1} s, seed {seed}", setting.name, begun.elapsed().as_secs_f64());
        // Where the machine is busy more overlaps, and more checks are given up.
        assert!(tally.given_up <= 5 + tally.rounds / 4, "{}: too many checks were given up: {tally:?}", setting.name);
    }
}
