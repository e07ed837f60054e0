//! Markdown tables and medians. Knows nothing of what the figures mean.

/// A table in the making.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Table {
        Table { rows: vec![columns.iter().map(|column| (*column).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(cells.into());
    }

    /// Whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table as Markdown, its columns aligned for a terminal: words to the left, figures to the right.
    pub fn markdown(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let figures =
            |column: usize| self.rows[1..].iter().all(|row| !row[column].starts_with(|c: char| c.is_alphabetic()));
        let right: Vec<bool> = (0..columns).map(figures).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                text += &if right[column] { format!("| {cell:>width$} ") } else { format!("| {cell:<width$} ") };
            }
            text += "|\n";
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(*width);
                    text += &if right[column] { format!("| {dashes}:") } else { format!("| {dashes} ") };
                }
                text += "|\n";
            }
        }
        text
    }
}

/// The middle of the figures; of an even number of them the lower middle. `None` of none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// A figure with three significant digits, or all digits before the point, in groups of three.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        magnitude if magnitude >= 1.0 => 2,
        magnitude if magnitude >= 0.1 || magnitude == 0.0 => 3,
        magnitude if magnitude >= 0.01 => 4,
        magnitude if magnitude >= 0.001 => 5,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    format!("{sign}{}{rest}", groups.join(","))
}

/// A figure, or a dash where none was taken.
pub fn figure_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let shown: Vec<String> = [1_234_567.8, 99.94, 9.876, 0.1234, -4321.0, 0.0].into_iter().map(figure).collect();
        assert_eq!(shown, ["1,234,568", "99.9", "9.88", "0.123", "-4,321", "0.000"]);
    }

    #[test]
    fn the_median_is_one_of_the_figures() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0]), Some(1.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut table = Table::new(&["server", "op/s"]);
        table.row(["tenon".into(), "1,000".into()]);
        table.row(["memcached".into(), "–".into()]);
        let expected = "| server    |  op/s |\n| --------- | -----:|\n| tenon     | 1,000 |\n| memcached |     – |\n";
        assert_eq!(table.markdown(), expected);
    }
}
