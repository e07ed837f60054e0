//! Resident memory a key, over the bytes of key and value. Knows nothing of how a server stores them.

use super::context::Context;
use super::load::{self, KEY_LEN, Operation};
use super::measure;
use super::placement::Placement;
use super::report::{Table, figure, median};
use super::servers::{Program, Server, Start};
use anyhow::{Context as _, Result};

const VALUE_LENS: [usize; 4] = [8, 32, 100, 1000];

/// What one key costs.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    /// Growth of resident memory a key, over key and value.
    grown: f64,
    /// All resident memory, the empty server's too, a key, over key and value.
    total: f64,
}

/// A server's medians.
#[derive(Debug)]
pub struct Row {
    /// The server's name.
    pub server: &'static str,
    /// Bytes of each value.
    pub value_len: usize,
    /// Whether each key expires.
    pub expire: bool,
    /// Bytes a key over key and value, by which the memory grew.
    pub grown: f64,
    /// The same with the empty server's own memory.
    pub total: f64,
}

/// Fills a fresh server for each figure, the servers one after another.
pub fn run(context: &mut Context) -> Result<Vec<Row>> {
    let placement = Placement::for_threads(1, 1)?;
    let mut rows = Vec::new();
    for value_len in VALUE_LENS {
        for expire in [false, true] {
            let name = format!("memory/value-{value_len}{}", if expire { "/expire" } else { "" });
            if !context.wants(&name) {
                continue;
            }
            eprintln!("{name}");
            let programs = context.programs.clone();
            let mut taken: Vec<Vec<Bytes>> = vec![Vec::new(); programs.len()];
            for _ in 0..context.scale.rounds {
                // They settle together: nothing of one server's memory depends on what the others do meanwhile.
                let mut filled = Vec::new();
                for (program, taken) in programs.iter().zip(&mut taken) {
                    match Filled::of(context, program, &placement, value_len, expire) {
                        Ok(server) => filled.push((server, taken)),
                        Err(error) => context.failed(&name, program.name, &error),
                    }
                }
                std::thread::sleep(context.scale.settle);
                for (server, taken) in &mut filled {
                    match server.bytes(value_len) {
                        Ok(bytes) => taken.push(bytes),
                        Err(error) => context.failed(&name, server.server.name, &error),
                    }
                }
                // All at once; dropping them waits for each, and complains of one that is gone already.
                filled.iter().for_each(|(server, _)| drop(server.server.ask_to_end()));
            }
            rows.extend(programs.iter().zip(taken).filter_map(|(program, taken)| {
                let grown = median(taken.iter().map(|bytes| bytes.grown))?;
                let total = median(taken.iter().map(|bytes| bytes.total))?;
                Some(Row { server: program.name, value_len, expire, grown, total })
            }));
        }
    }
    Ok(rows)
}

/// A server that holds all keys.
struct Filled {
    server: Server,
    keys: u64,
    /// Resident bytes before the first key.
    empty: u64,
}

impl Filled {
    fn of(
        context: &Context,
        program: &Program,
        placement: &Placement,
        value_len: usize,
        expire: bool,
    ) -> Result<Filled> {
        let start = Start::new(1, &placement.server, &context.scratch);
        let server = program.start(&start)?;
        let protocol = server.first_protocol();
        let address = server.address(protocol).context("a server speaks its first protocol")?;
        let keys = context.scale.keys_memory;
        let empty = measure::resident_bytes(server.pid())?;
        load::fill(address, protocol, Operation::Set { value_len, expire }, keys, &placement.client)?;
        Ok(Filled { server, keys, empty })
    }

    fn bytes(&self, value_len: usize) -> Result<Bytes> {
        let full = measure::resident_bytes(self.server.pid())?;
        let over = |bytes: f64| bytes / self.keys as f64 - (KEY_LEN + value_len) as f64;
        Ok(Bytes { grown: over(full as f64 - self.empty as f64), total: over(full as f64) })
    }
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table {
    let mut table =
        Table::new(&["value bytes", "expiry", "server", "bytes a key over key + value", "with the empty server"]);
    for row in rows {
        table.row([
            row.value_len.to_string(),
            (if row.expire { "yes" } else { "no" }).to_owned(),
            row.server.to_owned(),
            figure(row.grown),
            figure(row.total),
        ]);
    }
    table
}
