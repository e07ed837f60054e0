//! `memory`: what a key costs beside its own bytes.

use super::experiment::{Base, Experiment, Figure, Form, Ours, Plot, Published, SERVER_CPU, Spot};
use super::plain::{PROTOCOL, SAMPLE, protocol, speaks};
use crate::key::Key;
use crate::machine::process::resident_bytes;
use crate::results::Case;
use crate::session::{Contender, Named, Reading, Session};
use crate::values::{Lengths, Values};
use anyhow::{Context, Result};
use std::time::Duration;

const KEYS: &str = "keys";
const VALUE: &str = "value bytes";
const EXPIRY: &str = "expiry";
const OVERHEAD: Figure = Figure { name: "overhead_bytes_key", heading: "bytes a key over key + value" };

/// What a server has taken for what it stores.
pub const GROWN: Figure = Figure { name: "grown_mb", heading: "grown by MB" };

/// What a server has grown by, beside Memcached.
const fn beside_memcached(at: &'static [Spot]) -> Option<Ours> {
    let over = Some(Base::Server { prefix: "memcached", at: &[], alike: &[KEYS, VALUE, EXPIRY] });
    Some(Ours { figure: GROWN, servers: &[], at, over, form: Form::Above })
}

/// Resident memory against the bytes stored.
pub static MEMORY: Experiment = Experiment {
    name: "memory",
    title: "Memory",
    summary: "A fresh server is filled in one language; its resident memory is read before and after, once it has settled.",
    study: "the memtier studies; Waterloo",
    databases: false,
    depends_on: &[],
    axes: &[PROTOCOL, KEYS, VALUE, EXPIRY],
    figures: &[
        GROWN,
        OVERHEAD,
        Figure { name: "overhead_share", heading: "over key + value" },
        Figure { name: "empty_mb", heading: "empty MB" },
        SERVER_CPU,
    ],
    plots: &[Plot::Bars { title: "Bytes a key over key and value", each: Some(EXPIRY), y: OVERHEAD }],
    published: &[
        Published {
            what: "10 k keys",
            figure: "Redis 0.78 MB, Memcached 0.67 MB: 16.4 % more",
            ours: beside_memcached(&[(KEYS, Some("10000")), (VALUE, Some("32")), (EXPIRY, Some("no"))]),
        },
        Published {
            what: "100 k keys",
            figure: "Redis 7.46 MB, Memcached 6.87 MB: 8.6 % more",
            ours: beside_memcached(&[(KEYS, Some("100000")), (VALUE, Some("32")), (EXPIRY, Some("no"))]),
        },
        Published {
            what: "1 M keys",
            figure: "Redis 72.4 MB, Memcached 49.6 MB: 46.0 % more",
            ours: beside_memcached(&[(KEYS, Some("1000000")), (VALUE, Some("32")), (EXPIRY, Some("no"))]),
        },
        Published { what: "Memcached, 10.2 GB of records", figure: "10,876 MB, 6.6 % over", ours: None },
        Published { what: "Redis, 10.2 GB of records", figure: "14,740 MB, 44.5 % over", ours: None },
    ],
    limits: &[],
    rivals: None,
    run,
};

/// A day: nothing expires meanwhile.
const EXPIRE_S: u32 = 86_400;

fn run(session: &mut Session) -> Result<()> {
    let keys = session.keys() as f64;
    let fewer = fewer(session.keys());
    let mut cases = Vec::new();
    for protocol in session.all_protocols() {
        let case = |keys: f64, len: f64, expiry: &str| {
            let case = Case::new().word(PROTOCOL, protocol.name()).number(KEYS, keys);
            case.number(VALUE, len).word(EXPIRY, expiry)
        };
        cases.extend(fewer.iter().map(|keys| case(*keys as f64, 32.0, "no")));
        for len in [8.0, 32.0, 100.0, 1_000.0] {
            cases.extend(["no", "yes"].map(|expiry| case(keys, len, expiry)));
        }
    }
    // The memory of a server that somebody else has filled says nothing.
    let started = session.started();
    session.grid(&started, &cases, speaks, filled)
}

/// A hundredth and a tenth of the keys, as far as those are whole keys and not all.
fn fewer(keys: u64) -> Vec<u64> {
    let mut fewer: Vec<u64> = [keys / 100, keys / 10].into_iter().filter(|part| (1..keys).contains(part)).collect();
    fewer.dedup();
    fewer
}

/// What is less than this is not told from what a server takes for itself meanwhile, which is whole pages and more.
const STORED_LEAST: f64 = 1e6;

/// A process's resident memory once it has settled.
pub fn settled(session: &Session, pid: u32) -> Result<f64> {
    // Redis finishes its rehash in it, and all give back what they only needed for a moment.
    session.interrupt.sleep(Duration::from_millis(session.scaled(500, 1_500)))?;
    Ok(resident_bytes(pid)? as f64)
}

fn filled(session: &Session, contender: &Contender, case: &Case, _round: u64) -> Result<Reading> {
    let quantity = |axis: &str| case.quantity(axis).context("the case has its quantities");
    let (keys, len) = (quantity(KEYS)?.max(1.0) as u64, quantity(VALUE)? as usize);
    let expire_s = if case.at(EXPIRY).is_some_and(|point| point.to_string() == "yes") { EXPIRE_S } else { 0 };
    let server = session.start(contender, &session.settings())?;
    let pid = server.pid().with_context(|| format!("{} has no process here", contender.name()))?;
    let empty = resident_bytes(pid)? as f64;
    let (values, lengths) = (Values::new(len), Lengths::fixed(len));
    let protocol = protocol(case)?;
    let filling = session.fill_in(&server, protocol, keys, &values, lengths, expire_s)?.reading();
    let grown = settled(session, pid)? - empty;
    // A key that is not there costs nothing.
    session.read_back(&server, protocol, (keys, SAMPLE), &values, lengths)?;
    let stored = keys as f64 * (Key::PLAIN_LEN + len) as f64;
    let reading = match stored < STORED_LEAST {
        true => Reading::default().note("less than a MB is stored: most of it is what the server takes for itself"),
        false => Reading::default(),
    };
    Ok(reading
        .known(SERVER_CPU.name, filling.figures.get(SERVER_CPU.name).copied())
        .figure(GROWN.name, grown / 1e6)
        .figure("empty_mb", empty / 1e6)
        .figure("overhead_bytes_key", (grown - stored) / keys as f64)
        .figure("overhead_share", grown / stored - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_whole_keys_and_no_case_twice() {
        assert_eq!(fewer(1_000_000), [10_000, 100_000]);
        assert_eq!((fewer(250), fewer(12), fewer(5), fewer(1)), (vec![2, 25], vec![1], vec![], vec![]));
    }
}
