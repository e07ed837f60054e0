//! A server to measure, whoever started it. Knows not what is measured.

use crate::peers::{External, Program, Server};
use crate::results::Build;
use crate::target::{Protocol, Target};

/// What results are kept under.
pub trait Named {
    /// The name in tables.
    fn name(&self) -> String;
    /// The version.
    fn version(&self) -> &str;
    /// Which build of it.
    fn build(&self) -> &Build;
    /// What it speaks.
    fn protocols(&self) -> Vec<Protocol>;
    /// Whether the bench starts it, and so knows how.
    fn is_started(&self) -> bool {
        true
    }
}

/// A server that takes part.
#[derive(Clone, Debug)]
pub enum Contender {
    /// One that the bench starts.
    Program(Program),
    /// One that runs already.
    External(External),
}

impl Named for Contender {
    fn name(&self) -> String {
        match self {
            Contender::Program(program) => program.name.clone(),
            Contender::External(external) => external.target.to_string(),
        }
    }

    fn version(&self) -> &str {
        match self {
            Contender::Program(program) => &program.version,
            Contender::External(external) => &external.version,
        }
    }

    fn build(&self) -> &Build {
        match self {
            Contender::Program(program) => &program.build,
            Contender::External(external) => &external.build,
        }
    }

    fn protocols(&self) -> Vec<Protocol> {
        match self {
            Contender::Program(program) => program.family.protocols().to_vec(),
            Contender::External(external) => vec![external.target.protocol],
        }
    }

    fn is_started(&self) -> bool {
        matches!(self, Contender::Program(_))
    }
}

/// A server that answers.
#[derive(Debug)]
pub enum Running {
    /// Started by the bench, and ended by it.
    Started(Box<Server>),
    /// Only spoken to.
    External(Box<External>),
}

impl Named for Running {
    fn name(&self) -> String {
        match self {
            Running::Started(server) => server.program.name.clone(),
            Running::External(external) => external.target.to_string(),
        }
    }

    fn version(&self) -> &str {
        match self {
            Running::Started(server) => &server.program.version,
            Running::External(external) => &external.version,
        }
    }

    fn build(&self) -> &Build {
        match self {
            Running::Started(server) => &server.program.build,
            Running::External(external) => &external.build,
        }
    }

    fn protocols(&self) -> Vec<Protocol> {
        match self {
            Running::Started(server) => server.program.family.protocols().to_vec(),
            Running::External(external) => vec![external.target.protocol],
        }
    }

    fn is_started(&self) -> bool {
        matches!(self, Running::Started(_))
    }
}

impl Running {
    /// Where it speaks `protocol`, if it does.
    pub fn target(&self, protocol: Protocol) -> Option<Target> {
        match self {
            Running::Started(server) => server.target(protocol),
            Running::External(external) => (external.target.protocol == protocol).then(|| external.target.clone()),
        }
    }

    /// Where a cluster's nodes speak to one that the bench has started.
    pub fn bus_port(&self) -> Option<u16> {
        match self {
            Running::Started(server) => Some(server.bus_port()),
            Running::External(_) => None,
        }
    }

    /// What must be known of what can be seen of it.
    pub fn note(&self) -> Option<&str> {
        match self {
            Running::Started(_) => None,
            Running::External(external) => external.note.as_deref(),
        }
    }

    /// Its process, if it may be looked at.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Running::Started(server) => Some(server.pid()),
            Running::External(external) => external.pid,
        }
    }
}
