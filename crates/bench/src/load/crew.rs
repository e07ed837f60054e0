//! Threads, and processes, that share connections among them. A thread has as much to do for each of its connections as any
//! other, or those with fewer connections would end last, and their end would look like a slower server.

use std::ops::Range;

/// The part of `total` that falls to one of several threads, or processes.
pub fn share(total: u64, threads: usize, thread: usize) -> Range<u64> {
    part(total, threads as u64, thread as u64..thread as u64 + 1)
}

/// The part of `total` that falls to some of `all`.
fn part(total: u64, all: u64, some: Range<u64>) -> Range<u64> {
    let begin = |at: u64| (u128::from(total) * u128::from(at) / u128::from(all)) as u64;
    begin(some.start)..begin(some.end)
}

/// The threads of one process and their connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crew {
    /// How many threads there are.
    pub threads: usize,
    /// Which of all processes' connections are theirs.
    connections: Range<u64>,
    /// How many connections all processes have.
    all: u64,
}

impl Crew {
    /// Of the only process.
    pub fn alone(connections: usize, threads: usize) -> Crew {
        Crew::of_process((connections, threads), 1, 0)
    }

    /// Of one of several processes that have so many connections together.
    pub fn of_process((connections, threads): (usize, usize), processes: usize, process: usize) -> Crew {
        let all = connections as u64;
        Crew { threads, connections: share(all, processes, process), all }
    }

    /// How many connections a thread has.
    pub fn connections_of(&self, thread: usize) -> usize {
        let Range { start, end } = self.places_of(thread);
        (end - start) as usize
    }

    fn places_of(&self, thread: usize) -> Range<u64> {
        let Range { start, end } = self.connections;
        let own = share(end - start, self.threads, thread);
        start + own.start..start + own.end
    }

    /// What the process has of so many things that are counted out, from where on.
    pub fn share(&self, total: u64) -> Range<u64> {
        part(total, self.all, self.connections.clone())
    }

    /// What a thread of it has.
    pub fn share_of(&self, total: u64, thread: usize) -> Range<u64> {
        part(total, self.all, self.places_of(thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for (total, threads) in [(10, 3), (0, 2), (u64::MAX, 7)] {
            let shares: Vec<Range<u64>> = (0..threads).map(|thread| share(total, threads, thread)).collect();
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((shares[0].start, shares[threads - 1].end), (0, total));
        }
    }

    #[test]
    fn every_connection_has_as_much_to_do() {
        for (connections, processes, threads) in [(12, 1, 8), (50, 1, 32), (12, 5, 2), (7, 7, 1)] {
            let total = connections as u64 * 100;
            let mut end = 0;
            for process in 0..processes {
                let crew = Crew::of_process((connections, threads), processes, process);
                assert_eq!(crew.share(total).start, end);
                for thread in 0..threads {
                    let mine = crew.share_of(total, thread);
                    assert_eq!(mine.start, end);
                    assert_eq!(mine.end - mine.start, crew.connections_of(thread) as u64 * 100);
                    end = mine.end;
                }
                assert_eq!(crew.share(total).end, end);
            }
            assert_eq!(end, total);
        }
    }
}
