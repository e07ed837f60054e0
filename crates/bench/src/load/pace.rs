//! When operations are due. Knows no clock: the time is passed in.

use crate::generators::{Exponential, Random};
use std::fmt;
use std::str::FromStr;

/// Whether operations wait for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A connection sends again when it has all its replies: as fast as so many clients go.
    Closed,
    /// Operations are due at a rate, whether or not earlier ones are answered, and their latency counts from then.
    Open {
        /// Operations a second over all threads.
        rate: f64,
        /// How they follow one another.
        arrivals: Arrivals,
    },
}

/// How due times follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// With even gaps on each thread.
    Even,
    /// As many independent users send: with exponentially distributed gaps.
    Poisson,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arrivals::Even => "even",
            Arrivals::Poisson => "poisson",
        })
    }
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Arrivals, String> {
        match text {
            "even" => Ok(Arrivals::Even),
            "poisson" => Ok(Arrivals::Poisson),
            _ => Err(format!("'{text}' is no kind of arrivals: even or poisson")),
        }
    }
}

/// What tells the due times of one load from another's, and those of its threads, in whichever process, from each other's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// Other loads have others.
    pub seed: u64,
    /// Threads of the processes before this one.
    pub before: usize,
    /// Threads of the processes behind it.
    pub behind: usize,
}

impl Pace {
    /// The due times of one of so many threads of this process; none of a closed loop.
    pub fn due(self, draw: Draw, (index, threads): (usize, usize), end_ns: u64) -> Option<Due> {
        let Pace::Open { rate, arrivals } = self else { return None };
        let (number, all) = (draw.before + index, draw.before + threads + draw.behind);
        let phase = number as f64 / all as f64;
        // Keys are drawn by the same numbers, and must not go with the gaps.
        let seed = !(draw.seed << 32 | number as u64);
        Some(Due::new(rate / threads as f64, arrivals, phase, seed, end_ns))
    }
}

/// One thread's due times, in nanoseconds since its start.
#[derive(Debug)]
pub struct Due {
    next_ns: f64,
    gap_ns: f64,
    gaps: Option<Exponential>,
    random: Random,
    end_ns: f64,
}

impl Due {
    /// Operations due at `rate` a second until `end_ns`. `phase`, from 0 to 1, shifts this thread's even gaps against the
    /// other threads'.
    fn new(rate: f64, arrivals: Arrivals, phase: f64, seed: u64, end_ns: u64) -> Due {
        let gap_ns = 1e9 / rate;
        let gaps = (arrivals == Arrivals::Poisson).then(|| Exponential::with_mean(gap_ns));
        let mut due = Due { next_ns: gap_ns * phase, gap_ns, gaps, random: Random::new(seed), end_ns: end_ns as f64 };
        if due.gaps.is_some() {
            due.next_ns = 0.0;
            due.advance();
        }
        due
    }

    /// When the next operation is due; `None` when none is any more.
    pub fn next_ns(&self) -> Option<u64> {
        (self.next_ns < self.end_ns).then_some(self.next_ns as u64)
    }

    /// The next operation has been begun.
    pub fn advance(&mut self) {
        self.next_ns += match &mut self.gaps {
            Some(gaps) => gaps.next(&mut self.random),
            None => self.gap_ns,
        };
    }

    /// Nothing is due any more.
    pub fn end(&mut self) {
        self.end_ns = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut due: Due) -> Vec<u64> {
        std::iter::from_fn(|| {
            let next = due.next_ns()?;
            due.advance();
            Some(next)
        })
        .collect()
    }

    #[test]
    fn even_arrivals_keep_their_gaps() {
        let times = all(Due::new(1_000.0, Arrivals::Even, 0.5, 1, 1_000_000_000));
        assert_eq!(times.len(), 1_000);
        assert_eq!(times[..3], [500_000, 1_500_000, 2_500_000]);
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps() {
        let times = all(Due::new(10_000.0, Arrivals::Poisson, 0.0, 1, 10_000_000_000));
        // Ten standard deviations of the count.
        assert!((96_800..103_200).contains(&times.len()), "{}", times.len());
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 100_000).count() as f64 / times.len() as f64;
        assert!((long - (-1.0f64).exp()).abs() < 0.01, "{long}");
    }

    #[test]
    fn arrivals_of_threads_processes_and_loads_do_not_coincide() {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let pace = Pace::Open { rate: 2_000.0, arrivals };
            let times = |draw, index| all(pace.due(draw, (index, 2), 1_000_000_000).expect("an open loop"));
            let mut together: Vec<u64> = Vec::new();
            for process in 0..3 {
                let draw = Draw { seed: 7, before: 2 * process, behind: 2 * (2 - process) };
                together.extend([0, 1].into_iter().flat_map(|index| times(draw, index)));
            }
            let count = together.len();
            together.sort_unstable();
            together.dedup();
            // By chance a few of some thousand fall into one nanosecond.
            assert!(together.len() + 5 > count, "{arrivals}: {} of {count}", together.len());
            let (one, other) = (Draw::default(), Draw { seed: 1, ..Draw::default() });
            assert_eq!(times(one, 0), times(one, 0));
            assert_eq!(times(one, 0) == times(other, 0), arrivals == Arrivals::Even);
        }
        assert!(Pace::Closed.due(Draw::default(), (0, 1), 1).is_none());
    }

    #[test]
    fn arrivals_have_names() {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            assert_eq!(arrivals.to_string().parse(), Ok(arrivals));
        }
        assert!("odd".parse::<Arrivals>().is_err());
    }
}
