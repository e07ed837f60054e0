//! PageRank with a key-value store as memory: objects of neighbours and of ranks, read and written by the client that
//! computes. Knows no socket.

use crate::dialects::Dialect;
use crate::graphs::Graph;
use crate::key::Key;
use crate::load::{Reply, Statement, Workload};
use anyhow::{Context, Result, bail};
use std::ops::Range;
use std::sync::Arc;

/// The key of the nodes that a node points to: 32-bit numbers, least byte first.
pub fn targets_key(node: usize) -> Key {
    Key::of(format!("adj:{node}").as_bytes())
}

/// The key of a node's rank: a double, least byte first.
pub fn rank_key(node: usize) -> Key {
    Key::of(format!("rank:{node}").as_bytes())
}

/// What is done with each node.
#[derive(Clone, Debug)]
pub enum Task {
    /// Its neighbours are stored.
    StoreTargets,
    /// Its rank of these is stored.
    StoreRanks(Arc<Vec<f64>>),
    /// Its neighbours and its rank are read, and the rank is divided among the neighbours.
    Divide,
    /// Its rank is read.
    ReadRanks,
}

/// One thread's nodes.
#[derive(Debug)]
pub struct Ranking<D> {
    dialect: D,
    /// What the server was given, to check what it gives back.
    graph: Arc<Graph>,
    task: Task,
    nodes: Range<usize>,
    sums: Vec<f64>,
    nowhere: f64,
    /// Both objects of a reply.
    read: [Vec<u8>; 2],
}

impl<D: Dialect> Ranking<D> {
    /// Does the task with these nodes.
    pub fn new(dialect: D, graph: Arc<Graph>, task: Task, nodes: Range<usize>) -> Ranking<D> {
        let sums = match task {
            Task::Divide | Task::ReadRanks => vec![0.0; graph.nodes()],
            Task::StoreTargets | Task::StoreRanks(_) => Vec::new(),
        };
        Ranking { dialect, graph, task, nodes, sums, nowhere: 0.0, read: Default::default() }
    }

    /// By node, what it was given by the others, or its rank if that was read.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// What came to nodes that point nowhere.
    pub fn nowhere(&self) -> f64 {
        self.nowhere
    }

    /// Reads both objects of a node; what is not all there yet is left for later.
    fn read_both(&mut self, input: &[u8], node: usize) -> Result<Option<usize>> {
        let read = &mut self.read;
        let keys = [targets_key(node), rank_key(node)];
        let shown = self.dialect.read_get_many(input, &keys, &mut |index, value| {
            let value = value.with_context(|| format!("the server has lost '{}'", keys[index].escape_ascii()))?;
            read[index].clear();
            read[index].extend_from_slice(value);
            Ok(())
        })?;
        Ok(shown.map(|((), len)| len))
    }

    fn divide(&mut self, node: usize) -> Result<()> {
        let [targets, rank] = &self.read;
        let rank = rank_in(rank, node)?;
        let (words, rest) = targets.as_chunks::<4>();
        let known = self.graph.targets(node);
        if !rest.is_empty() || words.len() != known.len() {
            bail!("the server has another value for 'adj:{node}'");
        }
        // The ranking goes by what was read; what is known only shows that it was read right.
        for (word, known) in words.iter().zip(known) {
            let target = u32::from_le_bytes(*word);
            if target != *known {
                bail!("the server has another value for 'adj:{node}'");
            }
            self.sums[target as usize] += rank / words.len() as f64;
        }
        if words.is_empty() {
            self.nowhere += rank;
        }
        Ok(())
    }
}

fn rank_in(bytes: &[u8], node: usize) -> Result<f64> {
    let bytes = bytes.try_into().ok().with_context(|| format!("the server has another value for 'rank:{node}'"))?;
    Ok(f64::from_le_bytes(bytes))
}

impl<D: Dialect> Workload for Ranking<D> {
    /// The node.
    type Pending = usize;

    const KINDS: &'static [&'static str] = &["node"];

    fn statements(&self) -> Vec<Statement> {
        self.dialect.statements()
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let node = self.nodes.next()?;
        match &self.task {
            Task::StoreTargets => {
                let targets: Vec<u8> =
                    self.graph.targets(node).iter().flat_map(|target| target.to_le_bytes()).collect();
                self.dialect.write_set(&targets_key(node), &targets, 0, out);
            }
            Task::StoreRanks(ranks) => self.dialect.write_set(&rank_key(node), &ranks[node].to_le_bytes(), 0, out),
            Task::Divide => self.dialect.write_get_many(&[targets_key(node), rank_key(node)], out),
            Task::ReadRanks => self.dialect.write_get(&rank_key(node), out),
        }
        Some(node)
    }

    fn reply(&mut self, node: &mut usize, input: &[u8], _out: &mut Vec<u8>) -> Result<Reply> {
        let node = *node;
        let finished = |len: Option<usize>, operations| match len {
            Some(len) => Reply::Finished { len, kind: 0, operations },
            None => Reply::Incomplete,
        };
        match &self.task {
            Task::StoreTargets | Task::StoreRanks(_) => {
                Ok(finished(self.dialect.read_set(input)?.map(|((), len)| len), 1))
            }
            Task::Divide => {
                let len = self.read_both(input, node)?;
                if len.is_some() {
                    self.divide(node)?;
                }
                Ok(finished(len, 2))
            }
            Task::ReadRanks => {
                let key = rank_key(node);
                let Some((value, len)) = self.dialect.read_get(input, &key)? else { return Ok(Reply::Incomplete) };
                let value = value.with_context(|| format!("the server has lost '{}'", key.escape_ascii()))?;
                self.sums[node] = rank_in(value, node)?;
                Ok(finished(Some(len), 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Resp, Text};

    fn replies(values: [&[u8]; 2]) -> Vec<u8> {
        let mut out = b"*2\r\n".to_vec();
        for value in values {
            crate::dialects::write_bulk(value, &mut out);
        }
        out
    }

    #[test]
    fn a_rank_is_divided_among_those_pointed_to() {
        let graph = Arc::new(Graph::drawn(50));
        let node = (0..50).find(|node| graph.targets(*node).len() > 1).expect("one of them");
        let targets: Vec<u8> = graph.targets(node).iter().flat_map(|target| target.to_le_bytes()).collect();
        let mut ranking = Ranking::new(Resp, Arc::clone(&graph), Task::Divide, node..node + 1);
        let mut out = Vec::new();
        let mut pending = ranking.begin(&mut out).expect("a node");
        assert!(
            String::from_utf8_lossy(&out).contains(&format!("rank:{node}\r\n")) && ranking.begin(&mut out).is_none()
        );
        let reply = replies([&targets, &0.5f64.to_le_bytes()]);
        assert!(matches!(ranking.reply(&mut pending, &reply[..reply.len() - 1], &mut out), Ok(Reply::Incomplete)));
        assert!(ranking.sums().iter().all(|sum| *sum == 0.0), "half a reply counts for nothing");
        let len = reply.len();
        let done = ranking.reply(&mut pending, &reply, &mut out).expect("a good reply");
        assert_eq!(done, Reply::Finished { len, kind: 0, operations: 2 });
        let share = 0.5 / graph.targets(node).len() as f64;
        assert!(graph.targets(node).iter().all(|target| ranking.sums()[*target as usize] == share));

        for wrong in [
            replies([&targets[4..], &0.5f64.to_le_bytes()]),
            replies([&[&targets[..targets.len() - 1], b"\xFF"].concat(), &0.5f64.to_le_bytes()]),
            replies([&targets, b"0.5"]),
            b"*2\r\n$-1\r\n$-1\r\n".to_vec(),
        ] {
            assert!(ranking.reply(&mut pending, &wrong, &mut out).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn what_is_stored_is_what_is_read() {
        let graph = Arc::new(Graph::drawn(10));
        let ranks = Arc::new(vec![0.125; 10]);
        let mut out = Vec::new();
        let mut store = Ranking::new(Text, Arc::clone(&graph), Task::StoreRanks(ranks), 3..4);
        assert_eq!(store.begin(&mut out), Some(3));
        assert_eq!(out, [&b"set rank:3 0 0 8\r\n"[..], &0.125f64.to_le_bytes(), b"\r\n"].concat());
        let mut read = Ranking::new(Text, graph, Task::ReadRanks, 3..4);
        let mut pending = read.begin(&mut out).expect("a node");
        let reply = [&b"VALUE rank:3 0 8\r\n"[..], &0.125f64.to_le_bytes(), b"\r\nEND\r\n"].concat();
        assert!(matches!(read.reply(&mut pending, &reply, &mut out), Ok(Reply::Finished { .. })));
        assert_eq!(read.sums()[3], 0.125);
        assert!(read.reply(&mut pending, b"END\r\n", &mut out).is_err());
    }
}
