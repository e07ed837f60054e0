//! From a histogram of registers to the number of elements: Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches" (arXiv:1702.01284), section 4. Knows no encoding.

use super::position::COUNT_MAX;
use super::registers::REGISTERS;

/// How many registers have each value. A forged dense sketch has values up to 63, above those that elements give.
pub(super) struct Histogram([u32; 64]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; 64])
    }
}

impl Histogram {
    /// Counts registers of this value.
    pub(super) fn add(&mut self, value: u8, registers: usize) {
        self.0[usize::from(value)] += registers as u32;
    }

    /// Counts registers that stand one a byte, eight in a word.
    pub(super) fn of_words(words: impl Iterator<Item = u64>) -> Histogram {
        // Neighbours mostly have the same values: a count waits for the one before if both are in one place.
        let mut parts = [[0; 256]; 4];
        let mut zero_words = 0;
        for word in words {
            if word == 0 {
                zero_words += 1;
                continue;
            }
            for (index, value) in word.to_le_bytes().into_iter().enumerate() {
                parts[index % 4][usize::from(value)] += 1;
            }
        }
        let mut histogram = Histogram::default();
        for (value, count) in histogram.0.iter_mut().enumerate() {
            *count = parts.iter().map(|part: &[u32; 256]| part[value]).sum();
        }
        histogram.add(0, zero_words * 8);
        histogram
    }

    fn of(&self, value: u8) -> f64 {
        f64::from(self.0[usize::from(value)])
    }
}

/// About how many different elements gave these registers; the largest number when all are as high as can be.
pub(super) fn estimate(histogram: &Histogram) -> u64 {
    /// 0.5 / ln 2.
    const ALPHA_INFINITE: f64 = std::f64::consts::LOG2_E / 2.0;
    let registers = REGISTERS as f64;
    let mut sum = registers * tau((registers - histogram.of(COUNT_MAX)) / registers);
    for value in (1..COUNT_MAX).rev() {
        sum = (sum + histogram.of(value)) * 0.5;
    }
    sum += registers * sigma(histogram.of(0) / registers);
    // A conversion saturates.
    (ALPHA_INFINITE * registers * registers / sum).round() as u64
}

/// The correction for registers that are zero.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let mut power = 1.0;
    let mut sum = x;
    loop {
        x *= x;
        let before = sum;
        sum += x * power;
        power += power;
        if sum == before {
            return sum;
        }
    }
}

/// The correction for registers that are as high as can be.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let mut power = 1.0;
    let mut sum = 1.0 - x;
    loop {
        x = x.sqrt();
        let before = sum;
        power *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * power;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_element_and_all_elements() {
        let all_of = |value| {
            let mut histogram = Histogram::default();
            histogram.add(value, REGISTERS);
            estimate(&histogram)
        };
        assert_eq!(all_of(0), 0);
        assert_eq!(all_of(COUNT_MAX), u64::MAX);
        assert_eq!(all_of(63), u64::MAX);
        let by_value: Vec<u64> = (0..=COUNT_MAX).map(all_of).collect();
        assert!(by_value.is_sorted(), "{by_value:?}");
    }

    #[test]
    fn a_few_elements_are_counted_exactly() {
        for elements in 1..50 {
            let mut histogram = Histogram::default();
            histogram.add(0, REGISTERS - elements);
            histogram.add(1, elements / 2);
            histogram.add(2, elements - elements / 2);
            assert_eq!(estimate(&histogram), elements as u64);
        }
    }
}
