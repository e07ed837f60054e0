//! PageRank as a plain program, which all others are compared with. Knows no server.

use super::Graph;

/// The part of a rank that follows the edges.
pub const DAMPING: f64 = 0.85;

/// Every node's rank after so many iterations from equal ranks; their sum is 1. What comes to a node that points nowhere
/// is spread over all.
pub fn ranks(graph: &Graph, iterations: usize) -> Vec<f64> {
    let nodes = graph.nodes();
    let mut ranks = vec![1.0 / nodes as f64; nodes];
    for _ in 0..iterations {
        let (mut sums, mut nowhere) = (vec![0.0; nodes], 0.0);
        for (node, rank) in ranks.iter().enumerate() {
            let targets = graph.targets(node);
            targets.iter().for_each(|target| sums[*target as usize] += rank / targets.len() as f64);
            if targets.is_empty() {
                nowhere += rank;
            }
        }
        ranks = step(sums, nowhere);
    }
    ranks
}

/// New ranks from what has come to each node along edges, and what has come to nodes that point nowhere.
pub fn step(mut sums: Vec<f64>, nowhere: f64) -> Vec<f64> {
    let base = (1.0 - DAMPING + DAMPING * nowhere) / sums.len() as f64;
    sums.iter_mut().for_each(|sum| *sum = base + DAMPING * *sum);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_formula() {
        // Two nodes that point to each other and one that points nowhere.
        let directory = std::env::temp_dir().join(format!("tenon-bench-rank-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("three.tsv");
        std::fs::write(&path, "0 1\n1 0\n0 2\n").expect("it is written");
        let graph = Graph::read(&path).expect("it is a graph");
        std::fs::remove_dir_all(&directory).expect("it can go");
        let third = 1.0 / 3.0;
        let base = (0.15 + 0.85 * third) / 3.0;
        let once = [base + 0.85 * third, base + 0.85 * third / 2.0, base + 0.85 * third / 2.0];
        ranks(&graph, 1).iter().zip(once).for_each(|(rank, known)| assert!((rank - known).abs() < 1e-15));
        // In the limit, the ranks are the solution of the formula taken as an equation.
        let limit = ranks(&graph, 500);
        let base = (0.15 + 0.85 * limit[2]) / 3.0;
        for (rank, known) in
            limit.iter().zip([base + 0.85 * limit[1], base + 0.425 * limit[0], base + 0.425 * limit[0]])
        {
            assert!((rank - known).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_is_lost() {
        let sum: f64 = ranks(&Graph::drawn(500), 10).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}
