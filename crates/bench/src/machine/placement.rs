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
    /// Disjoint cores where there are enough, else all cores for both. What the caller names is taken as it is.
    pub fn new(
        server_threads: usize,
        client_threads: usize,
        server: Option<Vec<usize>>,
        client: Option<Vec<usize>>,
    ) -> Result<Placement> {
        let chosen = among(&own_cores()?, server_threads, client_threads);
        Ok(Placement { server: server.unwrap_or(chosen.server), client: client.unwrap_or(chosen.client) })
    }

    /// Whether server and client compete for cores.
    pub fn shared(&self) -> bool {
        self.server.iter().any(|core| self.client.contains(core))
    }
}

fn among(cores: &[usize], server: usize, client: usize) -> Placement {
    if cores.len() < server + client {
        return Placement { server: cores.to_vec(), client: cores.to_vec() };
    }
    Placement { server: cores[..server].to_vec(), client: cores[server..server + client].to_vec() }
}

/// The cores that this process may use.
pub fn own_cores() -> Result<Vec<usize>> {
    let mine = sched_getaffinity(None).context("the cores of this process cannot be read")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| mine.is_set(*core)).collect())
}

/// Reads `0`, `0,2` and `0-3,8`.
pub fn parse_cores(text: &str) -> Result<Vec<usize>, String> {
    let bad = || format!("'{text}' is no list of cores: write 0,2 or 0-3");
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
        if first > last || last >= CpuSet::MAX_CPU {
            return Err(bad());
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

/// The form that [`parse_cores`] reads.
pub fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Keeps the calling thread, and what it starts, on these cores.
pub fn pin_this_thread(cores: &[usize]) -> Result<()> {
    if cores.is_empty() {
        bail!("a thread needs a core to run on");
    }
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).with_context(|| format!("the cores {} cannot be used", list(cores)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_split_where_there_are_enough() {
        let placement = among(&[0, 1], 1, 1);
        assert_eq!(placement, Placement { server: vec![0], client: vec![1] });
        assert!(!placement.shared());
        assert!(among(&[0, 1], 2, 2).shared());
        assert_eq!(among(&[2, 3, 6, 7, 8], 2, 2), Placement { server: vec![2, 3], client: vec![6, 7] });
    }

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse_cores("0-2,5"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(list(&[0, 1, 5]), "0,1,5");
        for bad in ["", "x", "3-1", "0,", "99999"] {
            assert!(parse_cores(bad).is_err(), "{bad}");
        }
    }
}
