//! What can be asked for on the command line, alike for every experiment. Knows no experiment.

use crate::load::Arrivals;
use crate::machine::placement::parse_cores;
use crate::target::{Protocol, Target, TargetParser};
use crate::workloads::ycsb::Mix;
use std::path::PathBuf;
use std::time::Duration;

/// Options of every experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Small sizes, short times and one round: shows that everything works, in under a minute
    #[arg(long)]
    pub quick: bool,

    /// Measure a server that runs already: redis://HOST:PORT, rediss://..., memcache://..., memcache-meta://...,
    /// memcache-binary://..., postgres://HOST/DATABASE, unix:///PATH; USER:PASSWORD@ before HOST says who connects, USER@
    /// with a password in $TENON_BENCH_PASSWORD. The bench writes its keys into it. May be given several times
    #[arg(long, value_name = "URL", value_parser = TargetParser)]
    pub target: Vec<Target>,

    /// Who vouches for the servers at rediss://: a file of certificates [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,

    /// Servers to start and measure, by name (tenon, redis-server, valkey-server, memcached, ...) or as NAME=FILE; all that
    /// are installed if neither this nor --target is given
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Vec<String>,

    /// Languages to measure: resp, resp-tls, text, meta, binary, postgres; if not given, resp, text and postgres
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub protocols: Vec<Protocol>,

    /// Only cases whose description contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub filter: String,

    /// How often each case is measured; the median is shown [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,

    /// How long each load runs that is not of a number of operations [default: 3, with --quick 0.3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Keys in the servers; for `ycsb` and `ycsb-load` records [default: 1000000, with --quick 100000; records 100000, 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub keys: Option<u64>,

    /// Operations of each workload of `ycsb` [default: as many as there are records]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,

    /// Connections of each load, where the experiment does not vary them
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub connections: usize,

    /// Threads that each started server serves clients with [default: half of the cores, or as many as --server-cpus]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub server_threads: Option<usize>,

    /// Threads of the bench [default: half of the cores, or as many as --client-cpus]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub client_threads: Option<usize>,

    /// Processes that the clients of `ycsb`, `ycsb-load` and `records` are shared out to
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub client_processes: usize,

    /// Cores for the servers, e.g. 0-3,8 [default: as many as the server has threads]
    #[arg(long, value_name = "CORES", value_parser = Cores::parse)]
    pub server_cpus: Option<Cores>,

    /// Cores for the bench [default: as many as it has threads, apart from the servers'; with too few for that, both have all]
    #[arg(long, value_name = "CORES", value_parser = Cores::parse)]
    pub client_cpus: Option<Cores>,

    /// Offered loads for `load` and `ycsb-load`, in operations a second, 10^8 at most [default: 5000,10000,...,320000; 500,1000,...,320000]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rates: Vec<u64>,

    /// How offered operations follow one another: poisson or even
    #[arg(long, value_name = "KIND", default_value = "poisson")]
    pub arrivals: Arrivals,

    /// Workloads for `ycsb` and `ycsb-load`: A to F, the Waterloo study's WA to WF, and WG, half of whose writes delete; those of
    /// the study on records of their own [default: A,B,C,D,E,F; A,B,F]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = workload)]
    pub workloads: Vec<&'static Mix>,

    /// Fields of YCSB's records [default: 10; for the Waterloo workloads 16]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub record_fields: Option<usize>,

    /// Bytes of each field of YCSB's records [default: 100; for the Waterloo workloads 255]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub field_bytes: Option<usize>,

    /// Let updates of YCSB's records in memcached store the new field alone, as YCSB's own binding does
    #[arg(long)]
    pub shrinking_updates: bool,

    /// Traces for `eviction`: files, or directories of them (.csv, .lis, .trace, packed or not)
    #[arg(long, value_name = "PATH,...", value_delimiter = ',')]
    pub traces: Vec<PathBuf>,

    /// A web server's log for `weblog`: a head, then lines of words parted by tabs, the last two status and bytes
    #[arg(long, value_name = "FILE")]
    pub weblog: Option<PathBuf>,

    /// Graphs for `pagerank`: lines of two nodes, packed or not; one drawn at random if not given
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    pub graphs: Vec<PathBuf>,

    /// A directory that is there, for the servers' files while they are measured [default: the system's temporary one]. In memory (tmpfs) what
    /// is to be on disk costs nothing
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where results are kept, a file for each experiment
    #[arg(long, value_name = "DIR", default_value = "tenon-bench-results")]
    pub out: PathBuf,

    /// Keep what an earlier, interrupted run has measured, and measure the rest
    #[arg(long)]
    pub r#continue: bool,

    /// Print the results as one JSON document, an array of all runs, instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Threads of a started server and of the bench, on so many cores.
    pub fn threads(&self, cores: usize) -> (usize, usize) {
        let half = (cores / 2).max(1);
        let threads = |asked: Option<usize>, named: &Option<Cores>| {
            asked.unwrap_or(named.as_ref().map_or(half, |cores| cores.0.len()))
        };
        (threads(self.server_threads, &self.server_cpus), threads(self.client_threads, &self.client_cpus))
    }
}

/// A list of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

impl Cores {
    fn parse(text: &str) -> Result<Cores, String> {
        parse_cores(text).map(Cores)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is no number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(bad)
}

fn workload(text: &str) -> Result<&'static Mix, String> {
    Mix::of(text).ok_or_else(|| format!("'{text}' is no workload: A to F or WA to WG"))
}

/// So many keys are more than any machine has memory for.
const KEYS_MAX: u64 = 1_000_000_000_000;

/// So many threads are more than any machine has cores for.
const THREADS_MAX: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    at_least_one(text).and_then(|number| match number {
        0..=THREADS_MAX => Ok(number),
        _ => Err(format!("{number} threads are more than {THREADS_MAX}")),
    })
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("'{text}' is no number of 1 or more"))
}
