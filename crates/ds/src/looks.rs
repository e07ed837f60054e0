//! Sums over many pieces, of which a few may stand for all. Knows nothing of what the pieces are.

/// How many pieces are looked at for a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks(usize);

impl Looks {
    /// Every piece is: the sum is exact.
    pub const ALL: Looks = Looks(usize::MAX);
    /// A few are, however many there are.
    pub const FEW: Looks = Looks(32);

    /// The sum of what `piece` tells of each of `count` pieces, which it is given the numbers of. Where not all are looked at,
    /// some that are evenly spread stand for the others, and share the looks at what they have pieces of themselves.
    pub fn sum(self, count: usize, piece: impl Fn(usize, Looks) -> usize) -> usize {
        let taken = count.min(self.0);
        if taken == 0 {
            return 0;
        }
        let each = if self == Looks::ALL { self } else { Looks((self.0 / taken).max(1)) };
        let sum = (0..taken).map(|number| piece((2 * number + 1) * count / (2 * taken), each)).sum();
        for_all(sum, taken, count)
    }

    /// The sum of what `piece` tells of each. Where not all are looked at, the first ones stand for the others.
    pub fn sum_of_first<T>(self, pieces: impl ExactSizeIterator<Item = T>, piece: impl Fn(T) -> usize) -> usize {
        let count = pieces.len();
        for_all(pieces.take(self.0).map(piece).sum(), count.min(self.0), count)
    }
}

fn for_all(sum: usize, taken: usize, count: usize) -> usize {
    if taken == count { sum } else { (sum as u128 * count as u128 / taken as u128) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_few_stand_for_all() {
        for count in [0, 1, 31, 32, 33, 1_000, 1_000_000] {
            let looked_at = Cell::new(0);
            let sum = Looks::FEW.sum(count, |number, _| {
                assert!(number < count);
                looked_at.set(looked_at.get() + 1);
                number + 1
            });
            let exact = count * (count + 1) / 2;
            assert!(looked_at.get() <= 32 && sum.abs_diff(exact) <= exact / 20, "{sum} of {exact} for {count}");
            assert_eq!(Looks::ALL.sum(count.min(2_000), |_, _| 3), count.min(2_000) * 3);
            assert_eq!(Looks::FEW.sum_of_first(0..count, |_| 3), count * 3);
        }
    }

    #[test]
    fn pieces_of_pieces_share_the_looks() {
        let looked_at = Cell::new(0);
        let sum_of = |looks: Looks| {
            looks.sum(1_000, |_, looks| {
                looks.sum(50, |_, _| {
                    looked_at.set(looked_at.get() + 1);
                    7
                })
            })
        };
        assert_eq!(sum_of(Looks::FEW), 350_000);
        assert_eq!(looked_at.take(), 32);
        assert_eq!((sum_of(Looks::ALL), looked_at.get()), (350_000, 50_000));
    }
}
