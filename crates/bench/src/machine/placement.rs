//! Which cores the server and the client run on. Knows nothing of what they do there.

use super::topology::Topology;
use anyhow::{Context as _, Result, bail};
use rustix::process::Pid;
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
    /// Disjoint cores where there are enough, and of different physical cores as far as there are, else all cores for both.
    /// What the caller names is taken as it is.
    ///
    /// # Errors
    /// When a core is named that this process may not use.
    pub fn new(
        server_threads: usize,
        client_threads: usize,
        server: Option<&[usize]>,
        client: Option<&[usize]>,
    ) -> Result<Placement> {
        let own = own_cores()?;
        for named in [server, client].into_iter().flatten() {
            let foreign: Vec<usize> = named.iter().copied().filter(|core| !own.contains(core)).collect();
            if !foreign.is_empty() {
                bail!("the cores {} cannot be used; there are {}", list(&foreign), list(&own));
            }
        }
        Ok(among(&Topology::of(&own), (server_threads, client_threads), server, client))
    }

    /// The cores of one of several servers that run at once, each with so many threads: its own where there are enough,
    /// else all of theirs.
    pub fn of_one(&self, index: usize, servers: usize, threads: usize) -> &[usize] {
        if self.server.len() < servers * threads { &self.server } else { &self.server[index * threads..][..threads] }
    }

    /// With one of these cores for each of so many threads of the client, or as many as the servers leave; where they leave
    /// none, both sides have all.
    pub fn with_client_threads(&self, cores: &Topology, threads: usize) -> Placement {
        let mut client = cores.beside(&self.server, threads);
        client.truncate(threads);
        Placement { server: self.server.clone(), client: if client.is_empty() { cores.cores() } else { client } }
    }
}

fn among(
    topology: &Topology,
    (server_threads, client_threads): (usize, usize),
    server: Option<&[usize]>,
    client: Option<&[usize]>,
) -> Placement {
    let all = || topology.cores();
    // Cores that are not taken; all of them where too few are left.
    let beside = |taken: &[usize], threads: usize| {
        let mut free = topology.beside(taken, threads);
        free.truncate(threads);
        if free.len() < threads { all() } else { free }
    };
    let (server, client) = match (server, client) {
        (Some(server), Some(client)) => (server.to_vec(), client.to_vec()),
        (Some(server), None) => (server.to_vec(), beside(server, client_threads)),
        (None, Some(client)) => (beside(client, server_threads), client.to_vec()),
        (None, None) if all().len() < server_threads + client_threads => (all(), all()),
        (None, None) => {
            let mut server = topology.in_order(server_threads + client_threads);
            server.truncate(server_threads);
            let client = beside(&server, client_threads);
            (server, client)
        }
    };
    Placement { server, client }
}

/// The cores that this process may use.
pub fn own_cores() -> Result<Vec<usize>> {
    cores_of(None).context("the cores of this process cannot be read")
}

/// The cores that a process may use; `None` for the calling thread.
pub fn cores_of(pid: Option<Pid>) -> Result<Vec<usize>> {
    let cores = sched_getaffinity(pid)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).collect())
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
        if let Some(twice) = (first..=last).find(|core| cores.contains(core)) {
            return Err(format!("'{text}' names core {twice} twice"));
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
    use super::super::topology::tests::{one_each, two_each};
    use super::*;

    fn placement(server: &[usize], client: &[usize]) -> Placement {
        Placement { server: server.to_vec(), client: client.to_vec() }
    }

    #[test]
    fn cores_are_split_where_there_are_enough() {
        let chosen = |cores: &[usize], server, client| among(&one_each(cores), (server, client), None, None);
        assert_eq!(chosen(&[0, 1], 1, 1), placement(&[0], &[1]));
        assert_eq!(chosen(&[0, 1], 2, 1), placement(&[0, 1], &[0, 1]));
        assert_eq!(chosen(&[2, 3, 6, 7, 8], 2, 2), placement(&[2, 3], &[6, 7]));
    }

    #[test]
    fn what_is_named_is_taken_and_the_other_side_keeps_out_of_it() {
        let chosen = |server, client| among(&one_each(&[0, 1, 2, 3]), (1, 2), server, client);
        assert_eq!(chosen(Some(&[1]), None), placement(&[1], &[0, 2]));
        assert_eq!(chosen(None, Some(&[0, 1])), placement(&[2], &[0, 1]));
        assert_eq!(chosen(Some(&[2, 3]), Some(&[3])), placement(&[2, 3], &[3]));
        assert_eq!(chosen(Some(&[1, 2, 3]), None), placement(&[1, 2, 3], &[0, 1, 2, 3]), "one core is not two");
    }

    #[test]
    fn no_physical_core_is_both_sides_as_long_as_there_are_enough() {
        let chosen = |server, client| among(&two_each(4), (server, client), None, None);
        assert_eq!(chosen(1, 1), placement(&[0], &[1]));
        assert_eq!(chosen(2, 2), placement(&[0, 1], &[2, 3]));
        assert_eq!(chosen(4, 4), placement(&[0, 4, 1, 5], &[2, 6, 3, 7]));
        assert_eq!(chosen(3, 3), placement(&[0, 4, 1], &[2, 6, 3]));
        assert_eq!(chosen(1, 7), placement(&[0], &[1, 5, 2, 6, 3, 7, 4]));
        let beside = among(&two_each(4), (1, 2), Some(&[0]), None);
        assert_eq!(beside, placement(&[0], &[1, 2]));
        assert_eq!(beside.with_client_threads(&two_each(4), 6).client, [1, 5, 2, 6, 3, 7]);
    }

    #[test]
    fn more_threads_of_the_client_have_the_cores_that_are_left() {
        let cores = [0, 1, 2, 3, 4, 5];
        let beside =
            |server: &[usize], threads| placement(server, &[5]).with_client_threads(&one_each(&cores), threads).client;
        assert_eq!(beside(&[1, 2], 1), [0]);
        assert_eq!(beside(&[1, 2], 4), [0, 3, 4, 5]);
        assert_eq!(beside(&[1, 2], 8), [0, 3, 4, 5], "they share them, and leave the server its own");
        assert_eq!(beside(&cores, 8), cores);
    }

    #[test]
    fn cores_of_nobody_are_refused() {
        let own = own_cores().expect("cores");
        let beyond = own[own.len() - 1] + 1;
        assert!(Placement::new(1, 1, Some(&own), None).is_ok());
        for (server, client) in [(Some(&[beyond][..]), None), (None, Some(&[own[0], beyond][..]))] {
            let error = Placement::new(1, 1, server, client).expect_err("there is no such core");
            assert!(error.to_string().starts_with(&format!("the cores {beyond} cannot be used")), "{error}");
        }
    }

    #[test]
    fn each_of_several_servers_has_cores_of_its_own_where_there_are_enough() {
        let six = placement(&[1, 2, 3, 4, 5, 6], &[7]);
        assert_eq!([0, 1, 2].map(|index| six.of_one(index, 3, 2)), [[1, 2], [3, 4], [5, 6]]);
        assert_eq!([0, 1, 2].map(|index| six.of_one(index, 3, 3)), [[1, 2, 3, 4, 5, 6]; 3]);
    }

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse_cores("0-2,5"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(list(&[0, 1, 5]), "0,1,5");
        for bad in ["", "x", "3-1", "0,", "99999", "0,0", "0-3,2"] {
            assert!(parse_cores(bad).is_err(), "{bad}");
        }
    }
}
