//! docs/experiments.md, written from the table of experiments. Knows none of them.

use super::ALL;
use std::fmt::Write;

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Experiments of tenon-bench\n\n\
         Made from the experiments' declarations; to change a line, change the declaration and run\n\
         `TENON_BLESS=1 cargo test -p tenon-bench experiments_page_is_up_to_date`. How to run them: \
         [benchmarking.md](benchmarking.md).\n",
    );
    for experiment in ALL {
        let axes = experiment.axes.join(", ");
        let figures: Vec<&str> = experiment.figures.iter().map(|figure| figure.heading).collect();
        // Writing to a text does not fail.
        let _ = write!(
            page,
            "\n## `{}`: {}\n\n{}\n\n- After: {}.\n- Cases differ in: {axes}.\n- Shown: {}.\n",
            experiment.name,
            experiment.title,
            experiment.summary,
            experiment.study,
            figures.join(", ")
        );
        for limit in experiment.limits {
            let _ = writeln!(page, "- Told of each server: {}.", limit.title);
        }
        if let Some(figure) = experiment.rivals {
            let _ = writeln!(page, "- Told of each server: {} beside the least of the others'.", figure.heading);
        }
        for published in experiment.published {
            let _ = writeln!(page, "- Published, {}: {}.", published.what, published.figure);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Plot;

    #[test]
    fn experiments_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
        if std::env::var_os("TENON_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(path, page()).expect("docs can be written");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == page(), "docs/experiments.md is out of date: run this test with TENON_BLESS=1");
    }

    #[test]
    fn names_are_distinct_and_plots_draw_what_is_there() {
        let mut names: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for experiment in ALL {
            for plot in experiment.plots {
                let (axis, y) = match plot {
                    Plot::Lines { x, y, .. } => (Some(*x), Some(y)),
                    Plot::Bars { each, y, .. } => (*each, Some(y)),
                    // What is drawn over time is no figure of the table.
                    Plot::Series { .. } => (None, None),
                };
                assert!(axis.is_none_or(|axis| experiment.axes.contains(&axis)), "{}: {axis:?}", experiment.name);
                let shown =
                    |y: &crate::experiments::Figure| experiment.figures.iter().any(|figure| figure.name == y.name);
                assert!(y.is_none_or(shown), "{}: {y:?}", experiment.name);
            }
            let shows = |name: &str| experiment.figures.iter().any(|figure| figure.name == name);
            assert!(!shows("p99_us") || shows("p95_us"), "{}", experiment.name);
            // What neighbours change least is always told.
            assert!(experiment.figures.iter().any(|figure| figure.heading.contains("CPU")), "{}", experiment.name);
            assert!(!shows("ops_s") || (shows("server_cpu_us") && shows("client_busy")), "{}", experiment.name);
            let shown = |wanted: &str| experiment.figures.iter().any(|figure| figure.name == wanted);
            assert!(experiment.rivals.is_none_or(|figure| shown(figure.name)), "{}", experiment.name);
            for limit in experiment.limits {
                assert!(experiment.axes.contains(&limit.axis), "{}: {}", experiment.name, limit.axis);
                let shown = experiment.figures.iter().any(|figure| figure.name == limit.figure.name);
                assert!(shown, "{}: {:?}", experiment.name, limit.figure);
            }
        }
    }
}
