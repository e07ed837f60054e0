//! How sets and sorted sets are combined, and how much work that is. Knows no set.

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combination {
    Union,
    Intersection,
    Difference,
}

/// Looks at members, in each of the collections, to see whether a few that are wanted are found at once: fewer than anything is
/// lent for.
pub(super) const FIRST_LOOKS: usize = 1_024;

/// Whether so many members that are `wanted` are found at once by so many looks as `find` may take, where all of them are more
/// `steps` than that: nothing need be lent for them then. It is looked for them in so many `collections`.
pub(super) fn are_soon_found(
    wanted: usize,
    (steps, collections): (usize, usize),
    find: impl FnOnce(usize) -> bool,
) -> bool {
    let looks = FIRST_LOOKS / collections.max(1);
    steps > FIRST_LOOKS && wanted <= looks && find(looks)
}

impl Combination {
    /// About how many members are looked at where the sets have so many; `None` for one that is not there.
    pub(super) fn steps(self, lens: impl ExactSizeIterator<Item = Option<usize>> + Clone) -> usize {
        let sets = lens.len();
        let sum = || lens.clone().flatten().fold(0, usize::saturating_add);
        match self {
            Combination::Union => sum(),
            // Each member of the smallest one is looked for in all; where one is not there, none is.
            Combination::Intersection => {
                lens.map(Option::unwrap_or_default).min().unwrap_or_default().saturating_mul(sets)
            }
            // Each of the first one is, or the others' members are taken out of a copy.
            Combination::Difference => {
                let first = lens.clone().next().flatten().unwrap_or_default();
                first.saturating_mul(sets).min(sum())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_that_of_the_sets_that_are_gone_through() {
        let cases: [(&[Option<usize>], [usize; 3]); 5] = [
            (&[Some(5)], [5, 5, 5]),
            (&[Some(3), Some(1_000_000)], [1_000_003, 6, 6]),
            (&[Some(1_000_000), Some(3)], [1_000_003, 6, 1_000_003]),
            (&[None, Some(7)], [7, 0, 0]),
            (&[Some(7), None, Some(1)], [8, 0, 8]),
        ];
        for (lens, steps) in cases {
            let all = [Combination::Union, Combination::Intersection, Combination::Difference];
            assert_eq!(all.map(|combination| combination.steps(lens.iter().copied())), steps, "{lens:?}");
        }
    }
}
