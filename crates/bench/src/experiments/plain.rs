//! What the experiments on plain values share: the cases by language and operation, and the loads behind them. Knows no
//! experiment's sizes.

use crate::dialects::postgres::TABLE;
use crate::generators::{Distribution, Inserted, KeyChooser};
use crate::results::Case;
use crate::session::{Measured, Named, Running, Session, Shape};
use crate::target::Protocol;
use crate::values::{Lengths, Values};
use crate::workloads::{Keys, Misses, Mix, Spec};
use anyhow::{Context, Result};
use std::sync::Arc;

/// The axis of languages.
pub const PROTOCOL: &str = "protocol";
/// The axis of operations.
pub const OPERATION: &str = "operation";
/// The axis of requests in flight on each connection.
pub const PIPELINE: &str = "pipeline";

/// Bytes of the values where the studies do not vary them.
pub const VALUE_LEN: usize = 32;

/// Keys that are read back after a load of sets alone, at most.
pub const SAMPLE: u64 = 20_000;

/// Of one language and operation.
pub fn case(protocol: Protocol, operation: &str) -> Case {
    Case::new().word(PROTOCOL, protocol.name()).word(OPERATION, operation)
}

/// Whether a server is measured in the case's language.
pub fn speaks(session: &Session, server: &impl Named, case: &Case) -> bool {
    protocol(case).is_ok_and(|protocol| session.protocols(server).contains(&protocol))
}

/// The case's language.
pub fn protocol(case: &Case) -> Result<Protocol> {
    let name = case.at(PROTOCOL).context("the case names a language")?.to_string();
    name.parse().map_err(anyhow::Error::msg)
}

/// The case's requests in flight on each connection.
pub fn pipeline(case: &Case) -> usize {
    case.quantity(PIPELINE).unwrap_or(1.0) as usize
}

/// What the case's operation stands for.
pub fn mix(case: &Case) -> Mix {
    match case.at(OPERATION).map(ToString::to_string).as_deref() {
        Some("set") => Mix::SET,
        Some("get" | MANY) => Mix::GET,
        // As memtier mixes them when not told.
        _ => Mix { get: 10.0, set: 1.0, delete: 0.0 },
    }
}

/// The name of gets for several keys at once, each of which counts as an operation.
pub const MANY: &str = "get of 16 keys";

/// How several keys are asked for in a language, as its clients do it.
pub fn many(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Resp | Protocol::RespTls => "one MGET",
        Protocol::Text => "one get",
        Protocol::Meta => "16 mg in one write, each answered: there is no get of several keys",
        Protocol::Binary => "16 GETKQ and a NOOP in one write: what is there is answered, and the end",
        Protocol::Postgres => "one SELECT of all that are in an array",
    }
}

/// Keys of each get of the case's operation.
fn keys_a_get(case: &Case) -> usize {
    if case.at(OPERATION).is_some_and(|operation| operation.to_string() == MANY) { 16 } else { 1 }
}

/// The name of memtier's usual mix.
pub const MIXED: &str = "get:set 10:1";

/// What is stored in the servers, and how it is named.
#[derive(Clone, Debug)]
pub struct Stock {
    /// Keys that are there.
    pub keys: u64,
    /// What the values hold.
    pub values: Values,
    /// How long they are.
    pub lengths: Lengths,
    /// How often each key is named.
    pub distribution: Distribution,
}

impl Stock {
    /// Short values, all named equally often.
    pub fn short(keys: u64) -> Stock {
        Stock::of(keys, VALUE_LEN)
    }

    /// Values of one length, all named equally often.
    pub fn of(keys: u64, value_len: usize) -> Stock {
        let (values, lengths) = (Values::new(value_len), Lengths::fixed(value_len));
        Stock { keys, values, lengths, distribution: Distribution::Uniform }
    }

    /// Stores it.
    pub fn fill(&self, session: &Session, server: &Running) -> Result<Measured> {
        session.fill(server, self.keys, &self.values, self.lengths, 0)
    }

    /// Warms the server up and measures a load; the values are there.
    pub fn measure(
        &self,
        session: &Session,
        server: &Running,
        case: &Case,
        shape: &Shape,
        round: u64,
    ) -> Result<Measured> {
        session.vacuum(server, protocol(case)?, TABLE)?;
        self.warm_up(session, server, case, shape, round)?;
        let measured = self.measure_warm(session, server, case, shape, round)?;
        self.read_back(session, server, case)?;
        Ok(measured)
    }

    /// Reads a sample of what is there, where the case's operation reads nothing.
    pub fn read_back(&self, session: &Session, server: &Running, case: &Case) -> Result<()> {
        if mix(case).get > 0.0 {
            return Ok(());
        }
        session.read_back(server, protocol(case)?, (self.keys, SAMPLE), &self.values, self.lengths)
    }

    /// Runs the load for the short time before it is measured.
    pub fn warm_up(&self, session: &Session, server: &Running, case: &Case, shape: &Shape, round: u64) -> Result<()> {
        let shape = Shape { until: crate::load::Until::Elapsed(session.warm_up()), ..*shape };
        self.load(session, server, case, &shape, 2 * round).map(drop)
    }

    /// Measures a load on a server that is warm.
    pub fn measure_warm(
        &self,
        session: &Session,
        server: &Running,
        case: &Case,
        shape: &Shape,
        round: u64,
    ) -> Result<Measured> {
        self.load(session, server, case, shape, 2 * round + 1)
    }

    fn load(&self, session: &Session, server: &Running, case: &Case, shape: &Shape, seed: u64) -> Result<Measured> {
        let (mix, shape) = (mix(case), &Shape { seed, ..*shape });
        let keys = KeyChooser::new(self.distribution, &Arc::new(Inserted::new(self.keys)), 0);
        let spec = |thread: usize| Spec {
            mix,
            keys: Keys::Chosen(keys.clone()),
            first: 0,
            values: self.values.clone(),
            lengths: self.lengths,
            expire_s: 0,
            keys_a_get: keys_a_get(case),
            misses: Misses::Fail,
            // Every thread of every load draws other keys.
            seed: seed << 32 | thread as u64,
        };
        Ok(session.key_value(server, protocol(case)?, shape, spec)?.0)
    }
}
