//! Choices by chance, each as likely as any other. Knows no source of randomness: random numbers are passed in.

/// A number below `bound`.
#[inline]
pub(super) fn below(random: u64, bound: usize) -> usize {
    ((u128::from(random) * bound as u128) >> 64) as usize
}

/// Which of a row of things are taken, so that each choice of so many is as likely as any other (Knuth's algorithm S).
pub(super) struct Selection {
    /// How many are still to be taken.
    pub wanted: usize,
    /// How many things are still to come.
    pub left: usize,
}

impl Selection {
    /// Whether the next one is taken.
    pub fn takes(&mut self, random: u64) -> bool {
        let takes = below(random, self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(takes);
        takes
    }
}
