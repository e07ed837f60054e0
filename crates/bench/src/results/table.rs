//! Markdown tables and figures that read well. Knows nothing of what the figures mean.

/// A table in the making.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: Vec<String>) -> Table {
        Table { rows: vec![columns] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The heads of the columns, then the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Whether a column holds figures only.
    pub fn holds_figures(&self, column: usize) -> bool {
        self.rows[1..].iter().all(|row| !row[column].starts_with(|first: char| first.is_alphabetic() || first == '`'))
    }

    /// The table as Markdown, its columns aligned for a terminal: words to the left, figures to the right.
    pub fn markdown(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let right: Vec<bool> = (0..columns).map(|column| self.holds_figures(column)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let shown: Vec<String> =
            [1_234_567.8, 99.94, 9.876, 0.1234, 0.01234, 0.0082, -4321.0, 0.0].into_iter().map(figure).collect();
        assert_eq!(shown, ["1,234,568", "99.9", "9.88", "0.123", "0.0123", "0.00820", "-4,321", "0.000"]);
    }

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut table = Table::new(vec!["server".into(), "op/s".into()]);
        table.row(vec!["tenon".into(), "1,000".into()]);
        table.row(vec!["memcached".into(), "–".into()]);
        let expected = "| server    |  op/s |\n| --------- | -----:|\n| tenon     | 1,000 |\n| memcached |     – |\n";
        assert_eq!(table.markdown(), expected);
    }
}
