//! Which cores the server and the client run on. Knows nothing of what they do there.

use anyhow::{Context as _, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores for both sides of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Cores of the server.
    pub server: Vec<usize>,
    /// Cores of the client.
    pub client: Vec<usize>,
}

impl Placement {
    /// Disjoint cores where there are enough, else all cores for both.
    pub fn for_threads(server: usize, client: usize) -> Result<Placement> {
        let mine = sched_getaffinity(None).context("the cores of this process cannot be read")?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core)).collect();
        Ok(Placement::among(&cores, server, client))
    }

    fn among(cores: &[usize], server: usize, client: usize) -> Placement {
        if cores.len() < server + client {
            return Placement { server: cores.to_vec(), client: cores.to_vec() };
        }
        Placement { server: cores[..server].to_vec(), client: cores[server..server + client].to_vec() }
    }

    /// Whether server and client compete for the same cores.
    pub fn shared(&self) -> bool {
        self.server == self.client
    }

    /// How many cores both have together.
    pub fn cores(&self) -> usize {
        if self.shared() { self.server.len() } else { self.server.len() + self.client.len() }
    }
}

/// The form taskset takes.
pub fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Keeps the calling thread on these cores.
pub fn pin_this_thread(cores: &[usize]) -> Result<()> {
    if cores.is_empty() {
        bail!("a thread needs a core to run on");
    }
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).with_context(|| format!("this thread cannot be kept on the cores {}", list(cores)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_split_where_there_are_enough() {
        let placement = Placement::among(&[0, 1], 1, 1);
        assert_eq!(placement, Placement { server: vec![0], client: vec![1] });
        assert_eq!((placement.shared(), placement.cores()), (false, 2));
        let placement = Placement::among(&[0, 1], 2, 2);
        assert_eq!((placement.shared(), placement.cores()), (true, 2));
        assert_eq!(Placement::among(&[2, 3, 6, 7, 8], 2, 2), Placement { server: vec![2, 3], client: vec![6, 7] });
    }
}
