//! `expiry`: how long a key that is due is still there.

use super::experiment::{Experiment, Figure, Plot};
use super::plain::{PROTOCOL, speaks};
use crate::latency::Latency;
use crate::results::Case;
use crate::session::{Contender, Reading, Running, Session};
use crate::target::Protocol;
use crate::values::{Lengths, Values};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_client::{Resp, Value};

const KEYS: &str = "keys not due";
const DUE: u64 = 1_000;
const P99: Figure = Figure { name: "lag_p99_ms", heading: "lag p99 ms" };

/// From due to gone.
pub static EXPIRY: Experiment = Experiment {
    name: "expiry",
    title: "How long a key outlives its deadline",
    summary: "A thousand keys are due one after another within a second, among many that are not due. A server tells of each \
              key's end by a keyspace event; the lag is the event's time less the deadline. Nobody reads the keys. Over \
              RESP only: memcached tells nobody.",
    study: "what the studies wished for",
    databases: false,
    axes: &[PROTOCOL, KEYS],
    figures: &[
        Figure { name: "lag_p50_ms", heading: "lag p50 ms" },
        P99,
        Figure { name: "lag_max_ms", heading: "lag max ms" },
        Figure { name: "never", heading: "not gone after 10 s" },
    ],
    plots: &[Plot::Bars { title: "99th percentile of the lag", each: None, y: P99 }],
    published: &[],
    run,
};

/// A day: none of the others is due meanwhile.
const EXPIRE_S: u32 = 86_400;

fn run(session: &mut Session) -> Result<()> {
    let keys = session.keys() as f64;
    let cases: Vec<Case> =
        [0.0, keys].map(|keys| Case::new().word(PROTOCOL, Protocol::Resp.name()).number(KEYS, keys)).to_vec();
    // Events are switched on, and keys are left behind: not in somebody else's server.
    let started: Vec<Contender> =
        session.contenders.iter().filter(|contender| matches!(contender, Contender::Program(_))).cloned().collect();
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
    let connect = || Resp::connect_to(&target.address, Some(Duration::from_secs(5)));
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
    let (mut lags, mut gone) = (Latency::new(), 0);
    let end_ms = (first_ms + DUE + 10_000) as f64;
    while gone < DUE && unix_ms() < end_ms {
        session.interrupt.check()?;
        let event = match events.receive() {
            Ok(event) => event,
            Err(error) if error.kind() == ErrorKind::TimedOut => continue,
            Err(error) => return Err(error).context("no events come"),
        };
        let now_ms = unix_ms();
        let Some(number) = expired(&event) else { continue };
        gone += 1;
        lags.record(((now_ms - (first_ms + number) as f64).max(0.0) * 1e6) as u64, 1);
    }
    let summary = lags.summary();
    Ok(Reading::default()
        .figure("lag_p50_ms", summary.p50_us / 1e3)
        .figure("lag_p99_ms", summary.p99_us / 1e3)
        .figure("lag_max_ms", summary.max_us / 1e3)
        .figure("never", (DUE - gone) as f64))
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
    fn events_name_their_keys() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let event = [bulk("pmessage"), bulk("__keyevent@*__:expired"), bulk("__keyevent@0__:expired"), bulk("due:17")];
        assert_eq!(expired(&Value::Array(event.to_vec())), Some(17));
        assert_eq!(expired(&Value::Array(vec![bulk("pmessage"), bulk("key:1")])), None);
        assert_eq!(expired(&bulk("due:17")), None);
        assert!(expect_ok(&Value::Error(b"ERR".to_vec())).is_err());
    }
}
