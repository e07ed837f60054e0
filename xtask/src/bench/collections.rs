//! The commands on collections and scripts beside redis-server: cost of an operation and the memory of
//! collections. Knows no server beyond its address.

use super::context::{CONNECTIONS, Context};
use super::load::{self, Load, Operation, Plan, Protocol, RANDOM, Until};
use super::measure;
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::resp::Resp;
use super::servers::{Program, Server, Start};
use super::throughput::CLIENT_BUSY_LIMIT;
use anyhow::{Context as _, Result};
use std::time::Duration;

/// Commands in flight on each connection.
const PIPELINE: usize = 16;
/// Collections that a command is spread over.
const KEYS: u64 = 1_000;
/// Members of the one large sorted set.
const LARGE: u64 = 1_000_000;

/// What stands in the server before a command is measured.
#[derive(Clone, Copy, Debug)]
enum Prepared {
    Nothing,
    /// `KEYS` lists, hashes, sets or sorted sets with so many elements each.
    Lists(u64),
    Hashes(u64),
    Sets(u64),
    /// One sorted set of `LARGE` members, scores in the order of their names.
    LargeZset,
}

/// A command to measure: `__rand_int__` becomes twelve digits below `random`.
#[derive(Debug)]
struct Case {
    name: &'static str,
    prepared: Prepared,
    random: u64,
    requests: u64,
    words: &'static [&'static str],
}

const VALUE: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
const SCRIPT: &str = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])";

const CASES: &[Case] = &[
    Case {
        name: "lpush",
        prepared: Prepared::Nothing,
        random: KEYS,
        requests: 2_000_000,
        words: &["LPUSH", "list:__rand_int__", VALUE],
    },
    Case {
        name: "lpop",
        prepared: Prepared::Lists(1_000),
        random: KEYS,
        requests: 600_000,
        words: &["LPOP", "list:__rand_int__"],
    },
    Case {
        name: "rpushx",
        prepared: Prepared::Lists(1),
        random: KEYS,
        requests: 2_000_000,
        words: &["RPUSHX", "list:__rand_int__", VALUE],
    },
    Case {
        name: "lrange-100",
        prepared: Prepared::Lists(300),
        random: KEYS,
        requests: 300_000,
        words: &["LRANGE", "list:__rand_int__", "0", "99"],
    },
    Case {
        name: "hset",
        prepared: Prepared::Nothing,
        random: KEYS,
        requests: 2_000_000,
        words: &["HSET", "hash:__rand_int__", "field:__rand_int__", VALUE],
    },
    Case {
        name: "hgetall-16",
        prepared: Prepared::Hashes(16),
        random: KEYS,
        requests: 1_000_000,
        words: &["HGETALL", "hash:__rand_int__"],
    },
    Case {
        name: "sadd",
        prepared: Prepared::Nothing,
        random: KEYS,
        requests: 2_000_000,
        words: &["SADD", "set:__rand_int__", "member:__rand_int__"],
    },
    Case {
        name: "spop",
        prepared: Prepared::Sets(1_000),
        random: KEYS,
        requests: 600_000,
        words: &["SPOP", "set:__rand_int__"],
    },
    Case {
        name: "zadd",
        prepared: Prepared::Nothing,
        random: KEYS,
        requests: 2_000_000,
        words: &["ZADD", "zset:__rand_int__", "__rand_int__", "member:__rand_int__"],
    },
    Case {
        name: "zrange-100-of-1M",
        prepared: Prepared::LargeZset,
        random: LARGE,
        requests: 300_000,
        words: &["ZRANGE", "zset", "500000", "500099"],
    },
    Case {
        name: "zrank-of-1M",
        prepared: Prepared::LargeZset,
        random: LARGE,
        requests: 2_000_000,
        words: &["ZRANK", "zset", "member:__rand_int__"],
    },
    Case {
        name: "xadd",
        prepared: Prepared::Nothing,
        random: KEYS,
        requests: 2_000_000,
        words: &["XADD", "stream:__rand_int__", "*", "field", VALUE],
    },
    Case {
        name: "eval-2-keys",
        prepared: Prepared::Nothing,
        random: 100_000,
        requests: 600_000,
        words: &["EVAL", SCRIPT, "2", "a:__rand_int__", "b:__rand_int__", VALUE],
    },
];

/// A server's cost of one command.
#[derive(Debug)]
pub struct Row {
    /// What was measured.
    pub case: &'static str,
    /// The server's name.
    pub server: &'static str,
    /// CPU microseconds of the server an operation.
    pub server_cpu_us: f64,
    /// Of which its own code, not the kernel's, took this.
    pub server_user_us: f64,
    /// The client's share of its core.
    pub client_busy: f64,
}

/// What one run has cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    server_us: f64,
    server_user_us: f64,
    client_busy: f64,
}

/// Measures every command on every RESP server, the servers in turn.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let cases: Vec<&Case> = CASES.iter().filter(|case| context.wants(&format!("collections/{}", case.name))).collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let placement = Placement::for_threads(1, 1)?;
    let servers = start_all(context, &placement)?;
    let mut rows = Vec::new();
    for case in cases {
        let name = format!("collections/{}", case.name);
        eprintln!("{name}");
        let mut taken: Vec<Vec<Cost>> = vec![Vec::new(); servers.len()];
        for round in 0..context.scale.rounds {
            for (server, taken) in servers.iter().zip(&mut taken) {
                match measured(context, server, case, &placement, round) {
                    Ok(cost) => taken.push(cost),
                    Err(error) => context.failed(&name, server.name, &error),
                }
            }
        }
        rows.extend(servers.iter().zip(taken).filter_map(|(server, taken)| {
            Some(Row {
                case: case.name,
                server: server.name,
                server_cpu_us: median(taken.iter().map(|cost| cost.server_us))?,
                server_user_us: median(taken.iter().map(|cost| cost.server_user_us))?,
                client_busy: median(taken.iter().map(|cost| cost.client_busy))?,
            })
        }));
    }
    Ok(rows)
}

fn start_all(context: &Context, placement: &Placement) -> Result<Vec<Server>> {
    let speaks = |program: &&Program| program.family.protocols().contains(&Protocol::Resp);
    context.programs.iter().filter(speaks).map(|program| start(context, program, placement)).collect()
}

fn start(context: &Context, program: &Program, placement: &Placement) -> Result<Server> {
    let start = Start::new(1, &placement.server, &context.scratch);
    program.start(&start)
}

fn connect(server: &Server) -> Result<Resp> {
    Resp::connect(server.address(Protocol::Resp).context("a RESP server has an address")?)
}

fn measured(context: &Context, server: &Server, case: &Case, placement: &Placement, round: u64) -> Result<Cost> {
    prepare(server, case.prepared)?;
    let requests = if context.options.quick { case.requests / 10 } else { case.requests };
    let numbers = case.words.iter().map(|word| word.matches(RANDOM).count() as u32).sum();
    let load = Load {
        address: server.address(Protocol::Resp).context("a RESP server has an address")?,
        protocol: Protocol::Resp,
        operation: Operation::Command { words: case.words, below: case.random },
        plan: Plan::AtRandom { keys: case.random.pow(numbers), seed: round, until: Until::Operations(requests) },
        connections: CONNECTIONS,
        threads: 1,
        pipeline: PIPELINE,
        cores: &placement.client,
    };
    let (cpu_before, user_before) = (measure::cpu_time(server.pid())?, measure::user_time(server.pid())?);
    let outcome = load::run(&load)?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / outcome.operations as f64;
    Ok(Cost {
        server_us: micros(measure::cpu_time(server.pid())?.saturating_sub(cpu_before)),
        server_user_us: micros(measure::user_time(server.pid())?.saturating_sub(user_before)),
        client_busy: outcome.client_busy,
    })
}

/// Empties the server and puts in what the command works on. Names have the twelve digits of redis-benchmark's.
fn prepare(server: &Server, prepared: Prepared) -> Result<()> {
    let mut resp = connect(server)?;
    resp.send(&["FLUSHALL"])?;
    let mut each = |kind: &str, count: u64, words: &dyn Fn(u64, u64) -> Vec<String>| -> Result<()> {
        for key in 0..KEYS {
            let name = format!("{kind}:{key:012}");
            for element in 0..count {
                let words = words(key, element);
                let mut all: Vec<&str> = vec![&words[0], &name];
                all.extend(words[1..].iter().map(String::as_str));
                resp.send(&all)?;
            }
        }
        Ok(())
    };
    match prepared {
        Prepared::Nothing => {}
        Prepared::Lists(count) => each("list", count, &|_, _| vec!["RPUSH".into(), VALUE.into()])?,
        Prepared::Hashes(count) => {
            each("hash", count, &|_, element| vec!["HSET".into(), format!("field:{element:02}"), VALUE.into()])?;
        }
        Prepared::Sets(count) => {
            each("set", count, &|_, element| vec!["SADD".into(), format!("member:{element:012}")])?
        }
        Prepared::LargeZset => {
            for member in 0..LARGE {
                resp.send(&["ZADD", "zset", &member.to_string(), &format!("member:{member:012}")])?;
            }
        }
    }
    resp.finish()
}

/// Each command's cost, and over redis-server's.
pub fn table(rows: &[Row]) -> Table {
    let columns =
        ["command, pipeline 16", "server", "server CPU us/op", "over redis-server's", "of it user", "limited by"];
    let mut table = Table::new(&columns);
    for row in rows {
        let redis = rows.iter().find(|other| other.case == row.case && other.server == "redis-server");
        let ratio = redis.map(|redis| row.server_cpu_us / redis.server_cpu_us);
        table.row([
            row.case.to_owned(),
            row.server.to_owned(),
            figure(row.server_cpu_us),
            super::report::figure_or_dash(ratio),
            figure(row.server_user_us),
            (if row.client_busy > CLIENT_BUSY_LIMIT { "client" } else { "" }).to_owned(),
        ]);
    }
    table
}

/// Collections whose memory is measured.
const SHAPES: [&str; 5] = ["hashes", "lists", "sets", "zsets", "one-zset"];
/// Small collections of one kind.
const SMALL_KEYS: u64 = 100_000;
/// Elements of each.
const SMALL_LEN: u64 = 10;

/// A server's memory for one kind of collection.
#[derive(Debug)]
pub struct MemoryRow {
    /// Which collections.
    pub shape: &'static str,
    /// The server's name.
    pub server: &'static str,
    /// Resident bytes that they took, for each element.
    pub bytes_an_element: f64,
}

/// Fills a fresh server for each figure.
pub fn run_memory(context: &mut Context) -> Result<Vec<MemoryRow>> {
    let placement = Placement::for_threads(1, 1)?;
    let mut rows = Vec::new();
    for shape in SHAPES {
        let name = format!("collections/memory/{shape}");
        if !context.wants(&name) {
            continue;
        }
        eprintln!("{name}");
        for program in context.programs.clone() {
            if !program.family.protocols().contains(&Protocol::Resp) {
                continue;
            }
            match measured_memory(context, &program, &placement, shape) {
                Ok(bytes_an_element) => rows.push(MemoryRow { shape, server: program.name, bytes_an_element }),
                Err(error) => context.failed(&name, program.name, &error),
            }
        }
    }
    Ok(rows)
}

fn measured_memory(context: &Context, program: &Program, placement: &Placement, shape: &'static str) -> Result<f64> {
    let server = start(context, program, placement)?;
    let keys = if context.options.quick { SMALL_KEYS / 10 } else { SMALL_KEYS };
    let large = if context.options.quick { LARGE / 10 } else { LARGE };
    let empty = measure::resident_bytes(server.pid())?;
    let mut resp = connect(&server)?;
    let mut elements = keys * SMALL_LEN;
    if shape == "one-zset" {
        elements = large;
        for member in 0..large {
            resp.send(&["ZADD", "zset", &member.to_string(), &format!("member:{member:08}")])?;
        }
    } else {
        for key in 0..keys {
            let name = format!("key:{key:012}");
            let words: Vec<[String; 2]> = (0..SMALL_LEN)
                .map(|element| [format!("field:{element}"), format!("value:{:06}", key * SMALL_LEN + element)])
                .collect();
            let mut all: Vec<&str> = Vec::new();
            let scores: Vec<String> = (0..SMALL_LEN).map(|element| (key + element).to_string()).collect();
            for (word, score) in words.iter().zip(&scores) {
                match shape {
                    "hashes" => all.extend([&word[0][..], &word[1]]),
                    "lists" | "sets" => all.push(&word[1]),
                    _ => all.extend([&score[..], &word[1]]),
                }
            }
            let verb = match shape {
                "hashes" => "HSET",
                "lists" => "RPUSH",
                "sets" => "SADD",
                _ => "ZADD",
            };
            resp.send(&[&[verb, &name][..], &all].concat())?;
        }
    }
    resp.finish()?;
    std::thread::sleep(context.scale.settle);
    let full = measure::resident_bytes(server.pid())?;
    Ok(full.saturating_sub(empty) as f64 / elements as f64)
}

/// Each kind's memory, and over redis-server's.
pub fn memory_table(rows: &[MemoryRow]) -> Table {
    let mut table = Table::new(&["collections", "server", "bytes an element", "over redis-server's"]);
    for row in rows {
        let redis = rows.iter().find(|other| other.shape == row.shape && other.server == "redis-server");
        let ratio = redis.map(|redis| row.bytes_an_element / redis.bytes_an_element);
        table.row([
            row.shape.to_owned(),
            row.server.to_owned(),
            figure(row.bytes_an_element),
            super::report::figure_or_dash(ratio),
        ]);
    }
    table
}
