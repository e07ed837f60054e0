//! Pearson's test: whether counts can have come from given probabilities. Knows no generator.

/// Draws `draws` cells and compares their counts with the probabilities; what is left over to 1 is a cell of its own,
/// which every index past the end falls into. Fails when such a difference comes by chance less than once in 100,000.
pub fn assert_fits(probabilities: &[f64], draws: u32, mut draw: impl FnMut() -> usize) {
    let mut counts = vec![0u64; probabilities.len() + 1];
    for _ in 0..draws {
        counts[draw().min(probabilities.len())] += 1;
    }
    let statistic = statistic(probabilities, &counts, f64::from(draws));
    assert!(
        statistic.value <= quantile(statistic.freedom),
        "chi-squared {:.1} with {} degrees of freedom, more than {:.1}; the worst cell is {:?}",
        statistic.value,
        statistic.freedom,
        quantile(statistic.freedom),
        statistic.worst,
    );
}

struct Statistic {
    value: f64,
    freedom: f64,
    /// Index, count, expected count.
    worst: (usize, u64, f64),
}

fn statistic(probabilities: &[f64], counts: &[u64], draws: f64) -> Statistic {
    let rest = (1.0 - probabilities.iter().sum::<f64>()).max(0.0);
    let mut sum = Statistic { value: 0.0, freedom: -1.0, worst: (0, 0, 0.0) };
    let (mut worst, mut pooled_count, mut pooled_expected) = (0.0, 0, 0.0);
    let mut add = |index, count: u64, expected: f64| {
        let part = (count as f64 - expected).powi(2) / expected;
        sum.value += part;
        sum.freedom += 1.0;
        if part > worst {
            worst = part;
            sum.worst = (index, count, expected);
        }
    };
    for (index, (probability, count)) in probabilities.iter().chain([&rest]).zip(counts).enumerate() {
        let expected = probability * draws;
        // Cells in which fewer than ten are expected are too coarse for the test: they are joined.
        if expected < 10.0 {
            pooled_count += count;
            pooled_expected += expected;
        } else {
            add(index, *count, expected);
        }
    }
    if pooled_expected >= 10.0 {
        add(usize::MAX, pooled_count, pooled_expected);
    } else {
        // What must not come at all (an index past the end) is in here.
        assert!(pooled_count <= 60, "{pooled_count} draws of cells in which {pooled_expected:.2} are expected");
    }
    sum
}

/// Wilson and Hilferty's approximation of the quantile that is exceeded once in 100,000.
fn quantile(freedom: f64) -> f64 {
    const Z: f64 = 4.265;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + Z * part.sqrt()).powi(3)
}

mod tests {
    use super::*;
    use crate::generators::Random;

    #[test]
    fn the_quantile_is_the_tables() {
        // Where the sum e^(-x/2) (x/2)^i / i!, i below half the degrees of freedom, is 1e-5.
        for (freedom, exact) in [(10.0, 41.296), (100.0, 172.099)] {
            assert!((quantile(freedom) / exact - 1.0f64).abs() < 0.02, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    #[should_panic(expected = "chi-squared")]
    fn a_wrong_distribution_is_found_out() {
        let mut random = Random::new(1);
        let mut wrong = vec![0.1; 10];
        (wrong[0], wrong[1]) = (0.11, 0.09);
        assert_fits(&wrong, 100_000, || random.below(10) as usize);
    }

    #[test]
    #[should_panic(expected = "draws of cells")]
    fn what_cannot_come_is_found_out() {
        let mut random = Random::new(1);
        assert_fits(&[0.25; 4], 100_000, || random.below(5) as usize);
    }
}
