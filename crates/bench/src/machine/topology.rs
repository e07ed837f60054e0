//! Which cores, as the kernel counts them, are threads of one physical core. Knows nothing of what runs on them.

use super::placement::parse_cores;

/// Cores, each with one that stands for its physical core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology(Vec<(usize, usize)>);

impl Topology {
    /// Of these cores. One that the kernel tells nothing of is taken to be a physical one.
    pub fn of(cores: &[usize]) -> Topology {
        let physical = |core: usize| {
            let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
            let siblings = std::fs::read_to_string(path).ok().and_then(|text| parse_cores(text.trim()).ok());
            siblings.and_then(|siblings| siblings.into_iter().min()).unwrap_or(core)
        };
        Topology(cores.iter().map(|core| (*core, physical(*core))).collect())
    }

    /// All of them.
    pub fn cores(&self) -> Vec<usize> {
        self.0.iter().map(|(core, _)| *core).collect()
    }

    /// All of them, in the order in which so many threads are best given theirs: first one of each physical core, where there
    /// are as many; else those of each physical core together, so that it is one side's.
    pub fn in_order(&self, threads: usize) -> Vec<usize> {
        let mut order = self.0.clone();
        let place = |(_, physical): &(usize, usize)| self.0.iter().position(|(_, other)| other == physical);
        order.sort_by_key(place);
        let (mut first, mut others): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut before = None;
        for (core, physical) in &order {
            (if before == Some(physical) { &mut others } else { &mut first }).push(*core);
            before = Some(physical);
        }
        if first.len() < threads {
            return order.iter().map(|(core, _)| *core).collect();
        }
        first.append(&mut others);
        first
    }

    /// Those that are none of `taken`, the ones that share no physical core with them first.
    pub fn beside(&self, taken: &[usize], threads: usize) -> Vec<usize> {
        let mut free = self.in_order(taken.len() + threads);
        free.retain(|core| !taken.contains(core));
        free.sort_by_key(|core| self.share(&[*core], taken));
        free
    }

    /// Whether some core of the ones and some core of the others are one physical core's.
    pub fn share(&self, ones: &[usize], others: &[usize]) -> bool {
        let physical = |core: &usize| self.0.iter().find(|(known, _)| known == core).map(|(_, physical)| *physical);
        ones.iter().filter_map(physical).any(|one| others.iter().filter_map(physical).any(|other| other == one))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of so many physical cores with two threads each, numbered as the first threads, then the second ones.
    pub fn two_each(physical: usize) -> Topology {
        Topology((0..2 * physical).map(|core| (core, core % physical)).collect())
    }

    /// Each core a physical one.
    pub fn one_each(cores: &[usize]) -> Topology {
        Topology(cores.iter().map(|core| (*core, *core)).collect())
    }

    #[test]
    fn physical_cores_are_given_whole_or_one_thread_of_each() {
        assert_eq!(two_each(3).in_order(3), [0, 1, 2, 3, 4, 5]);
        assert_eq!(two_each(3).in_order(4), [0, 3, 1, 4, 2, 5]);
        assert_eq!(one_each(&[4, 2]).in_order(2), [4, 2]);
        assert_eq!(two_each(3).beside(&[0], 2), [1, 2, 4, 5, 3]);
        assert_eq!(two_each(3).beside(&[0, 3], 4), [1, 4, 2, 5]);
    }

    #[test]
    fn threads_of_one_physical_core_are_known() {
        let four = two_each(2);
        assert!(four.share(&[0, 1], &[2]) && !four.share(&[0, 2], &[1, 3]) && !four.share(&[0], &[9]));
        let own = crate::machine::placement::own_cores().expect("cores");
        assert_eq!(Topology::of(&own).cores(), own);
        assert!(Topology::of(&own).share(&own[..1], &own[..1]));
    }
}
