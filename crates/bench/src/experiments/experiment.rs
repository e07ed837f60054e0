//! What an experiment declares. Knows none.

use crate::session::Session;
use anyhow::Result;

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// What it is called by.
    pub name: &'static str,
    /// Its heading in a report.
    pub title: &'static str,
    /// One sentence on what is measured.
    pub summary: &'static str,
    /// Which study it comes from.
    pub study: &'static str,
    /// Whether databases on disk take part.
    pub databases: bool,
    /// What of the options that all experiments have its figures depend on, beside its cases.
    pub depends_on: &'static [Setting],
    /// What its cases differ in, in the order of the table's columns.
    pub axes: &'static [&'static str],
    /// What its table shows.
    pub figures: &'static [Figure],
    /// What its report draws.
    pub plots: &'static [Plot],
    /// What the study published. Its machine was another: only shape and ratios are to be compared.
    pub published: &'static [Published],
    /// How far along its axes it is told that one may go.
    pub limits: &'static [Limit],
    /// The figure in which each server is held against the best of the others, if one says it all.
    pub rivals: Option<Figure>,
    /// Measures everything.
    pub run: fn(&mut Session) -> Result<()>,
}

/// What is asked for alike for every experiment and not used by each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// How many keys the servers hold.
    Keys,
    /// How long a load runs.
    Seconds,
    /// How many connections a load has.
    Connections,
    /// So many, whatever is asked for.
    ConnectionsOf(usize),
    /// One thread of the client, whatever is asked for.
    OneThread,
    /// How many processes the client has.
    ClientProcesses,
    /// How operations of an open loop follow one another.
    Arrivals,
    /// What an update of a record in memcached stores.
    Updates,
    /// Which web server's log is taken.
    WebLog,
}

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name in the results.
    pub name: &'static str,
    /// Its heading, with its unit.
    pub heading: &'static str,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from 0.
    Linear,
    /// By powers of ten.
    Log,
}

/// A drawing. There is one for each of the cases that differ in other axes.
#[derive(Clone, Copy, Debug)]
pub enum Plot {
    /// A line for each server and language.
    Lines {
        /// What the drawing shows.
        title: &'static str,
        /// The axis of the cases that goes to the right.
        x: &'static str,
        /// How it is divided.
        x_scale: Scale,
        /// The figure that goes up.
        y: Figure,
        /// How it is divided.
        y_scale: Scale,
    },
    /// A group of bars for each case.
    Bars {
        /// What the drawing shows.
        title: &'static str,
        /// The axis of the cases that there is a drawing for each place of, if any.
        each: Option<&'static str>,
        /// The figure that goes up.
        y: Figure,
    },
    /// A line for each server over time.
    Series {
        /// What the drawing shows.
        title: &'static str,
        /// The series' name, and its heading.
        y: Figure,
        /// Seconds from one point to the next.
        step_s: f64,
    },
}

/// A question to the table: how far along an axis a figure stays small enough.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// What is told of it, with the figure's limit in words.
    pub title: &'static str,
    /// The axis, a quantity.
    pub axis: &'static str,
    /// The figure.
    pub figure: Figure,
    /// What its median must be below.
    pub below: f64,
}

/// A published figure.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What was measured.
    pub what: &'static str,
    /// What came out.
    pub figure: &'static str,
    /// How the same is computed from results, where it can be.
    pub ours: Option<Ours>,
}

/// Where a case is to be on an axis: at this place, or anywhere.
pub type Spot = (&'static str, Option<&'static str>);

/// How what was published is computed from results.
#[derive(Clone, Copy, Debug)]
pub struct Ours {
    /// Of this figure's medians.
    pub figure: Figure,
    /// Of servers whose names begin so; of all if there is none.
    pub servers: &'static [&'static str],
    /// Of cases at these places.
    pub at: &'static [Spot],
    /// What it is divided by, if anything.
    pub over: Option<Base>,
    /// How it is told.
    pub form: Form,
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// The same server's at other places, all else being alike.
    Itself {
        /// The places.
        at: &'static [Spot],
    },
    /// Another server's.
    Server {
        /// How its name begins.
        prefix: &'static str,
        /// The places.
        at: &'static [Spot],
        /// The axes on which both are at one place.
        alike: &'static [&'static str],
    },
}

/// How a ratio is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As what it is above one, in percent.
    Above,
    /// In percent.
    Share,
    /// As it is.
    Times,
}

/// Operations a second.
pub const OPS: Figure = Figure { name: "ops_s", heading: "op/s" };
/// The mean latency.
pub const MEAN: Figure = Figure { name: "mean_us", heading: "mean µs" };
/// The median latency.
pub const P50: Figure = Figure { name: "p50_us", heading: "p50 µs" };
/// The 95th percentile of the latency.
pub const P95: Figure = Figure { name: "p95_us", heading: "p95 µs" };
/// The 99th percentile of the latency.
pub const P99: Figure = Figure { name: "p99_us", heading: "p99 µs" };
/// The 99.9th percentile of the latency.
pub const P999: Figure = Figure { name: "p999_us", heading: "p99.9 µs" };
/// The longest latency.
pub const MAX: Figure = Figure { name: "max_us", heading: "max µs" };
/// CPU time of the server an operation.
pub const SERVER_CPU: Figure = Figure { name: "server_cpu_us", heading: "server CPU µs/op" };
/// The part of it in the kernel.
pub const SERVER_SYSTEM: Figure = Figure { name: "server_system_us", heading: "of it system µs/op" };
/// CPU time of the client an operation.
pub const CLIENT_CPU: Figure = Figure { name: "client_cpu_us", heading: "client CPU µs/op" };
/// The share of the time in which the busiest client thread had something to do.
pub const CLIENT_BUSY: Figure = Figure { name: "client_busy", heading: "client busy" };
/// Fills that the server refused for want of memory.
pub const REFUSED_FILLS: Figure = Figure { name: "refused_fills", heading: "fills refused" };
/// Operations of an open loop that were due and never sent.
pub const UNSENT: Figure = Figure { name: "unsent", heading: "never sent" };
/// The 99th percentile of how late the client itself was, in an open loop.
pub const CLIENT_LATE: Figure = Figure { name: "client_late_p99_us", heading: "client late p99 µs" };
