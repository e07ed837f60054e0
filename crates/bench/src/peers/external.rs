//! A server that somebody else has started. It is measured as it is, and never ended.

use super::answers::{ask_for_life, own_figures};
use super::identity;
use super::postgres::{make_table, version_and_process};
use super::program::Persistence;
use crate::machine::listening::listens;
use crate::results::Build;
use crate::target::{Protocol, Target};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tenon_client::Address;

/// A server somewhere.
#[derive(Clone, Debug)]
pub struct External {
    /// Where it is.
    pub target: Target,
    /// What it says of itself.
    pub version: String,
    /// Which build it is, as far as it says so, or its process may be looked at.
    pub build: Build,
    /// Its process, if it runs on this machine and may be looked at.
    pub pid: Option<u32>,
    /// Why there is none, where one was to be expected.
    pub note: Option<String>,
}

impl External {
    /// Asks it who it is.
    ///
    /// # Errors
    /// When nobody answers there in that language.
    pub fn ask(target: &Target) -> Result<External> {
        if target.protocol == Protocol::Postgres {
            return External::database(target);
        }
        ask_for_life(target).with_context(|| format!("nobody at {target} answers as a server of that kind does"))?;
        // A server may refuse to speak of itself, or know no process; it can be measured all the same.
        let figures = own_figures(target).unwrap_or_default();
        let figure = |names: &[&str]| {
            let found = figures.iter().find(|(name, _)| names.contains(&name.as_str()));
            found.map(|(_, value)| value.as_str())
        };
        let version = figure(&["valkey_version", "tenon_version"])
            .or_else(|| figure(&["redis_version", "version"]))
            .unwrap_or("?");
        let told =
            figure(&["process_id", "pid"]).and_then(|pid| pid.parse().ok()).filter(|_| is_local(&target.address));
        let (pid, note) = believed(told, &target.address);
        Ok(External {
            target: target.clone(),
            version: version.to_owned(),
            build: build(&identity::said_in(&figures), pid),
            pid,
            note,
        })
    }

    /// Here a failure has words of its own, and each connection a process, below the one that stays.
    fn database(target: &Target) -> Result<External> {
        let (version, told) = version_and_process(target).with_context(|| format!("nobody at {target} answers"))?;
        make_table(target, Persistence::AofAlways)?;
        let (pid, note) = believed(told, &target.address);
        Ok(External { target: target.clone(), version, build: build(&identity::said_by(target), pid), pid, note })
    }
}

/// Its build by what it says, and by its process's file where that may be read.
fn build(said: &BTreeMap<String, String>, pid: Option<u32>) -> Build {
    let says = identity::in_a_line(said);
    match pid.map(|pid| PathBuf::from(format!("/proc/{pid}/exe"))) {
        Some(file) => identity::of_file(&file, &says),
        None => Build { says, ..Build::default() },
    }
}

/// The process that a server tells, if it is this that listens there, else why not. From a container it tells a number that
/// is another process's here, whose figures would pass for its own.
fn believed(told: Option<u32>, address: &Address) -> (Option<u32>, Option<String>) {
    let Some(pid) = told else { return (None, None) };
    match listens(pid, address) {
        Ok(true) => (Some(pid), None),
        Ok(false) => (None, Some("the server's process is unknown: who it names does not listen here".to_owned())),
        Err(_) => (None, Some("the server's process may not be looked at".to_owned())),
    }
}

/// Whether it leads to this machine.
pub(super) fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
    }
}
