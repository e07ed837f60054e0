//! Medians of repeated measurements. Knows not of what.

/// The middle of some figures, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number the mean of the two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// Of any number of figures but none.
pub fn spread(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let (lower, upper) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    Some(Spread { median: f64::midpoint(lower, upper), min, max })
}

/// The middle of the figures; `None` of none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    spread(figures).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(spread([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(spread([9.0, 1.0, 2.0, 4.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(median([]), None);
    }
}
