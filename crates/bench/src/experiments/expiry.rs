//! `expiry`: how long a key that is due is still there.

use super::experiment::{Experiment, Figure, Plot};
use super::plain::{PROTOCOL, speaks};
use crate::machine::cpu::Used;
use crate::results::Case;
use crate::session::{Reading, Running, Session};
use crate::target::Protocol;
use crate::values::{Lengths, Values};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tenon_client::{Resp, Value};

const KEYS: &str = "keys not due";
const DUE: u64 = 1_000;
const P50: Figure = Figure { name: "lag_p50_ms", heading: "lag p50 ms" };
const P95: Figure = Figure { name: "lag_p95_ms", heading: "lag p95 ms" };
const P99: Figure = Figure { name: "lag_p99_ms", heading: "lag p99 ms" };
const MAX: Figure = Figure { name: "lag_max_ms", heading: "lag max ms" };
const CPU: Figure = Figure { name: "watched_server_cpu_ms_s", heading: "server CPU ms/s" };
const LEFT: Figure = Figure { name: "never", heading: "not gone after 10 s" };

/// From due to gone.
pub static EXPIRY: Experiment = Experiment {
    name: "expiry",
    title: "How long a key outlives its deadline",
    summary: "A thousand keys are due one after another within a second, among many that are not due. A server tells of each \
              key's end by a keyspace event; the lag is the event's time less the deadline. Nobody reads the keys. Each is \
              watched for ten seconds, the server's CPU time until the last one is gone; a percentile that falls among those \
              that are left then is not known. Over RESP only: memcached tells nobody.",
    study: "what the studies wished for",
    databases: false,
    depends_on: &[],
    axes: &[PROTOCOL, KEYS],
    figures: &[P50, P95, P99, MAX, LEFT, CPU],
    plots: &[Plot::Bars { title: "99th percentile of the lag", each: None, y: P99 }],
    published: &[],
    limits: &[],
    rivals: None,
    run,
};

/// How long a key is watched from its deadline on, each for as long as the others.
const WATCHED_MS: f64 = 10_000.0;

/// A day: none of the others is due meanwhile.
const EXPIRE_S: u32 = 86_400;

fn run(session: &mut Session) -> Result<()> {
    let keys = session.keys() as f64;
    let cases: Vec<Case> =
        [0.0, keys].map(|keys| Case::new().word(PROTOCOL, Protocol::Resp.name()).number(KEYS, keys)).to_vec();
    // Events are switched on, and keys are left behind: not in somebody else's server.
    let started = session.started();
    session.grid(&started, &cases, speaks, |session, contender, case, _| {
        let server = session.start(contender, &session.settings())?;
        let keys = case.quantity(KEYS).unwrap_or(0.0) as u64;
        if keys > 0 {
            session.fill(&server, keys, &Values::new(32), Lengths::fixed(32), EXPIRE_S)?;
        }
        lag(session, &server)
    })
}

fn lag(session: &Session, server: &Running) -> Result<Reading> {
    let target = server.target(Protocol::Resp).context("the server speaks RESP")?;
    let connect = || target.connect(Some(Duration::from_secs(5))).map(Resp::over);
    let (mut writer, mut events) = (connect()?, connect()?);
    expect_ok(&writer.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"Ex"])?)?;
    events.call(&[b"PSUBSCRIBE", b"__keyevent@*__:expired"])?;

    let first_ms = unix_ms() as u64 + 500;
    let words: Vec<(String, String)> =
        (0..DUE).map(|number| (format!("due:{number}"), (first_ms + number).to_string())).collect();
    let commands: Vec<[&[u8]; 5]> =
        words.iter().map(|(key, due)| [&b"SET"[..], key.as_bytes(), b"x", b"PXAT", due.as_bytes()]).collect();
    let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
    writer.pipeline(&commands)?.iter().try_for_each(expect_ok)?;
    if unix_ms() as u64 >= first_ms {
        bail!("the machine was too slow: the first keys were due before all were stored");
    }
    events.set_timeout(Some(Duration::from_millis(200)))?;
    let used = || server.pid().map(Used::of).transpose();
    let (before, begin) = (used()?, Instant::now());
    let mut lags = Lags::default();
    let end_ms = (first_ms + DUE) as f64 + WATCHED_MS;
    while lags.gone() < DUE as usize && unix_ms() < end_ms {
        session.interrupt.check()?;
        let event = match events.receive() {
            Ok(event) => event,
            Err(error) if error.kind() == ErrorKind::TimedOut => continue,
            Err(error) => return Err(error).context("no events come"),
        };
        let now_ms = unix_ms();
        if let Some(number) = expired(&event) {
            lags.gone_after(now_ms - (first_ms + number) as f64);
        }
    }
    let cpu = before.zip(used()?).map(|(before, after)| after.since(before).total);
    let cpu_ms_s = cpu.map(|cpu| cpu.as_secs_f64() * 1e3 / begin.elapsed().as_secs_f64());
    Ok(lags.reading().known(CPU.name, cpu_ms_s))
}

/// How long the keys that are gone outlived their deadlines, in milliseconds.
#[derive(Debug, Default)]
struct Lags(Vec<f64>);

impl Lags {
    /// A key is gone.
    fn gone_after(&mut self, lag_ms: f64) {
        // Those that were due first could be watched for longer than the others.
        if lag_ms <= WATCHED_MS {
            self.0.push(lag_ms.max(0.0));
        }
    }

    fn gone(&self) -> usize {
        self.0.len()
    }

    /// The lag that this share of all keys had at most. `None` where it falls among those that are left, of which only is
    /// known that they have outlived all others.
    fn percentile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * DUE as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    fn reading(&self) -> Reading {
        let figures = [(P50, 0.5), (P95, 0.95), (P99, 0.99), (MAX, 1.0)];
        let known = figures.into_iter().filter_map(|(figure, share)| Some((figure, self.percentile(share)?)));
        let reading = known.fold(Reading::default(), |reading, (figure, lag_ms)| reading.figure(figure.name, lag_ms));
        reading.figure(LEFT.name, DUE as f64 - self.gone() as f64)
    }
}

/// The number of the key whose end an event tells.
fn expired(event: &Value) -> Option<u64> {
    let (Value::Array(words) | Value::Push(words)) = event else { return None };
    let Some(Value::Bulk(key)) = words.last() else { return None };
    std::str::from_utf8(key.strip_prefix(b"due:")?).ok()?.parse().ok()
}

fn expect_ok(reply: &Value) -> Result<()> {
    match reply {
        Value::Simple(ok) if ok == b"OK" => Ok(()),
        other => bail!("the server answered {other:?}"),
    }
}

fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_expires_has_no_lag_to_show() {
        let shown = |lags: &Lags| [P50, P99, MAX, LEFT].map(|figure| lags.reading().figures.get(figure.name).copied());
        let none = Lags::default();
        assert_eq!(shown(&none), [None, None, None, Some(1_000.0)]);
        let mut lags = Lags::default();
        (1..=990).for_each(|lag| lags.gone_after(f64::from(lag)));
        assert_eq!(shown(&lags), [Some(500.0), Some(990.0), None, Some(10.0)]);
        // Seen longer than the others could be.
        lags.gone_after(10_500.0);
        assert_eq!(shown(&lags), [Some(500.0), Some(990.0), None, Some(10.0)]);
        lags.0.pop();
        assert_eq!(shown(&lags), [Some(500.0), None, None, Some(11.0)]);
        (0..11).for_each(|_| lags.gone_after(-0.3));
        assert_eq!(shown(&lags), [Some(489.0), Some(979.0), Some(989.0), Some(0.0)]);
    }

    #[test]
    fn events_name_their_keys() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let event = [bulk("pmessage"), bulk("__keyevent@*__:expired"), bulk("__keyevent@0__:expired"), bulk("due:17")];
        assert_eq!(expired(&Value::Array(event.to_vec())), Some(17));
        assert_eq!(expired(&Value::Array(vec![bulk("pmessage"), bulk("key:1")])), None);
        assert_eq!(expired(&bulk("due:17")), None);
        assert!(expect_ok(&Value::Error(b"ERR".to_vec())).is_err());
    }
}
