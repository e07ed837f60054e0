//! A directed graph in memory. Knows not what is computed over it.

use crate::generators::{Random, ZipfExact};
use crate::packed::contents;
use anyhow::{Context, Result, bail};
use std::io::BufRead;
use std::path::Path;

/// Nodes from 0, each with the nodes that it points to, ordered and each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where each node's targets begin, and one place more.
    begins: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    /// Of these edges; the nodes are numbered anew, in their order.
    fn of(mut edges: Vec<(u64, u64)>) -> Result<Graph> {
        let mut names: Vec<u64> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        names.sort_unstable();
        names.dedup();
        if u32::try_from(names.len()).is_err() {
            bail!("it has more than 2^32 nodes");
        }
        edges.sort_unstable();
        edges.dedup();
        let number = |name: u64| names.binary_search(&name).unwrap_or_default();
        let mut begins = vec![0; names.len() + 1];
        let mut targets = Vec::with_capacity(edges.len());
        for (from, to) in edges {
            begins[number(from) + 1] += 1;
            targets.push(number(to) as u32);
        }
        for node in 0..names.len() {
            begins[node + 1] += begins[node];
        }
        Ok(Graph { begins, targets })
    }

    /// Reads a file of lines `from to`, packed or not.
    ///
    /// # Errors
    /// When it cannot be read or understood, or holds no edge.
    pub fn read(path: &Path) -> Result<Graph> {
        let (_, bytes) = contents(path)?;
        Graph::parse(&bytes).with_context(|| path.display().to_string())
    }

    fn parse(bytes: &[u8]) -> Result<Graph> {
        let mut edges = Vec::new();
        for (index, line) in bytes.lines().enumerate() {
            let line = line?;
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let mut words = line.split_whitespace().map(str::parse);
            match (words.next(), words.next()) {
                (Some(Ok(from)), Some(Ok(to))) => edges.push((from, to)),
                _ => bail!("line {} is no edge: '{line}'", index + 1),
            }
        }
        if edges.is_empty() {
            bail!("it holds no edge");
        }
        Graph::of(edges)
    }

    /// Draws a graph, the same each time: a tenth of the nodes points nowhere, the others to ten on the average, and how
    /// often a node is pointed to follows Zipf's law, as in the web.
    pub fn drawn(nodes: u32) -> Graph {
        let mut random = Random::new(u64::from(nodes));
        let mut popular = ZipfExact::new(u64::from(nodes), 0.8);
        let mut edges = Vec::new();
        for from in 0..u64::from(nodes) {
            // Each node is in the graph, if by its loop alone.
            let targets = if random.below(10) == 0 { 0 } else { 1 + random.below(20) };
            edges.extend((0..targets).map(|_| (from, popular.next(&mut random))));
            if targets == 0 {
                edges.push((popular.next(&mut random), from));
            }
        }
        Graph::of(edges).unwrap_or(Graph { begins: vec![0], targets: Vec::new() })
    }

    /// Nodes in all.
    pub fn nodes(&self) -> usize {
        self.begins.len() - 1
    }

    /// Edges in all.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// The nodes that this one points to.
    #[inline]
    pub fn targets(&self, node: usize) -> &[u32] {
        &self.targets[self.begins[node]..self.begins[node + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_in_any_order_and_once() {
        let graph = Graph::parse(b"# head\n7\t3\n3 9\n7 3\n\n9 9\n7 9\n").expect("it is a graph");
        assert_eq!((graph.nodes(), graph.edges()), (3, 4));
        assert_eq!((graph.targets(0), graph.targets(1), graph.targets(2)), (&[2][..], &[0, 2][..], &[2][..]));
        for bad in ["", "# head\n", "1\n", "1 x\n", "-1 2\n"] {
            assert!(Graph::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_drawn_graph_is_the_same_each_time_and_has_what_makes_ranking_hard() {
        let graph = Graph::drawn(2_000);
        assert_eq!(graph, Graph::drawn(2_000));
        assert_eq!(graph.nodes(), 2_000);
        let pointing_nowhere = (0..2_000).filter(|node| graph.targets(*node).is_empty()).count();
        assert!((50..400).contains(&pointing_nowhere), "{pointing_nowhere}");
        let mut pointed_to = vec![0; 2_000];
        (0..2_000).flat_map(|node| graph.targets(node)).for_each(|target| pointed_to[*target as usize] += 1);
        assert!(pointed_to.iter().max() > Some(&200) && graph.edges() > 10_000, "{}", graph.edges());
    }
}
