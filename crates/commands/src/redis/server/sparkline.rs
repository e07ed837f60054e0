//! ASCII graphs of a few rows, as Redis draws them (`sparkline.c`). Knows only numbers and labels.

/// What a filled column ends in, from low to high.
const TOPS: [u8; 3] = *b"_o#";
/// Columns before a new stretch of rows begins.
pub const COLUMNS: usize = 80;
/// Rows of a stretch, labels not counted.
const ROWS: usize = 4;

/// Draws the samples, each a value and a label that is written below it from top to bottom.
pub fn draw(samples: &[(u64, String)]) -> String {
    let low = samples.iter().map(|(value, _)| *value).min().unwrap_or(0);
    let high = samples.iter().map(|(value, _)| *value).max().unwrap_or(0);
    let mut drawn = String::new();
    for (index, stretch) in samples.chunks(COLUMNS).enumerate() {
        if index > 0 {
            drawn.push('\n');
        }
        draw_stretch(stretch, low, high, &mut drawn);
    }
    drawn
}

fn draw_stretch(samples: &[(u64, String)], low: u64, high: u64, drawn: &mut String) {
    let steps = TOPS.len() * ROWS;
    let height = if high == low { 1.0 } else { (high - low) as f64 };
    let step_of = |value: u64| (((value - low) as f64 * steps as f64 / height) as usize).min(steps - 1);
    let mut push_row = |cell: &dyn Fn(&(u64, String)) -> u8| {
        drawn.extend(samples.iter().map(|sample| char::from(cell(sample))));
        drawn.push('\n');
    };
    for row in 0..ROWS {
        let below = (ROWS - row - 1) * TOPS.len();
        push_row(&|(value, _)| match step_of(*value).checked_sub(below) {
            None => b' ',
            Some(top) => TOPS.get(top).copied().unwrap_or(b'|'),
        });
    }
    push_row(&|_| b' ');
    let label_rows = samples.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
    for row in 0..label_rows {
        push_row(&|(_, label)| label.as_bytes().get(row).copied().unwrap_or(b' '));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_as_redis_does() {
        let samples = [(1, "9s"), (12, "8s"), (7, "1s"), (4, "0s")].map(|(value, label)| (value, label.to_owned()));
        assert_eq!(draw(&samples), " #  \n |_ \n ||_\n_|||\n    \n9810\nssss\n");
        let flat = [(5, "1m".to_owned()), (5, "2m".to_owned())];
        assert_eq!(draw(&flat), "  \n  \n  \n__\n  \n12\nmm\n");
        assert_eq!(draw(&[]), "");
    }

    #[test]
    fn long_rows_go_on_below() {
        let samples = vec![(1, "x".to_owned()); COLUMNS + 1];
        let drawn = draw(&samples);
        assert_eq!(drawn.lines().map(str::len).max(), Some(COLUMNS));
        assert_eq!(drawn.lines().filter(|line| line.contains('_')).count(), 2);
    }
}
