//! Formats tables of reports so that they fit a terminal.
use comfy_table::{CellAlignment, ColumnConstraint, Table, Width, presets};
use std::fmt;
use std::ops::Range;

/// Maximum width of a table in columns of a terminal.
pub const MAX_WIDTH: usize = 100;
/// Width in columns to which text is wrapped at the narrowest.
const MIN_TEXT: usize = 20;
/// Space around a cell in columns.
const PADDING: usize = 2;

/// A table of a report, without lines between its cells.
///
/// A table wider than [`MAX_WIDTH`] wraps long text. If that is not enough, it is split into several tables below each
/// other, each of which has the first columns again.
#[derive(Debug, Clone)]
pub struct ReportTable {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Number of columns at the left that say what a row is about.
    keys: usize,
    /// First columns of the groups that are kept together when the table is split.
    groups: Vec<usize>,
    /// Columns with numbers, which are aligned to the right.
    numbers: Vec<Range<usize>>,
}

impl ReportTable {
    /// Returns a table without rows, whose first column says what a row is about.
    pub fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> ReportTable {
        let header = header.into_iter().map(Into::into).collect();
        ReportTable { header, rows: Vec::new(), keys: 1, groups: Vec::new(), numbers: Vec::new() }
    }

    /// Aligns columns with numbers to the right.
    #[must_use]
    pub fn numbers(mut self, columns: Range<usize>) -> ReportTable {
        self.numbers.push(columns);
        self
    }

    /// Sets the number of columns at the left that say what a row is about.
    #[must_use]
    pub fn keys(mut self, count: usize) -> ReportTable {
        self.keys = count;
        self
    }

    /// Sets the columns in front of which the table is split, if it has to be.
    #[must_use]
    pub fn groups<const N: usize>(mut self, first: [usize; N]) -> ReportTable {
        self.groups = first.into();
        self
    }

    /// Adds a row. Missing cells are empty.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns true if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn is_number(&self, column: usize) -> bool {
        self.numbers.iter().any(|columns| columns.contains(&column))
    }

    /// Returns the width of a column's widest cell.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).chain(self.header.get(column));
        cells.flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Returns the width to which a column may shrink. Numbers and what a row is about are not wrapped.
    fn least_width(&self, column: usize) -> usize {
        let width = self.width(column);
        if column < self.keys || self.is_number(column) { width } else { width.min(MIN_TEXT) }
    }

    /// Returns the widths of columns beside each other. The widest text is wrapped first.
    fn widths(&self, columns: &[usize]) -> Vec<usize> {
        let mut widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        while widths.iter().map(|width| width + PADDING).sum::<usize>() >= MAX_WIDTH + PADDING {
            let can_shrink = |place: &usize| widths[*place] > self.least_width(columns[*place]);
            let Some(place) = (0..widths.len()).filter(can_shrink).max_by_key(|place| widths[*place]) else { break };
            widths[place] -= 1;
        }
        widths
    }

    /// Returns true if these columns fit beside each other.
    fn fits(&self, columns: &[usize]) -> bool {
        // The space behind the last cell is not printed.
        columns.iter().map(|column| self.least_width(*column) + PADDING).sum::<usize>() < MAX_WIDTH + PADDING
    }

    /// Returns the columns of each of the tables below each other.
    fn parts(&self) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.header.len()).collect();
        if self.fits(&all) {
            return vec![all];
        }
        let keys: Vec<usize> = (0..self.keys).collect();
        let mut starts: Vec<usize> = [self.keys].into_iter().chain(self.groups.iter().copied()).collect();
        starts.push(self.header.len());
        starts.dedup();
        let mut parts = vec![keys.clone()];
        let mut add = |columns: &[usize]| {
            let last = parts.last().map(|part| [part, columns].concat()).unwrap_or_default();
            match parts.last_mut() {
                Some(part) if self.fits(&last) || part.len() == self.keys => *part = last,
                _ => parts.push([&keys, columns].concat()),
            }
        };
        for group in starts.windows(2) {
            let columns: Vec<usize> = (group[0]..group[1]).collect();
            if self.fits(&[&keys[..], &columns].concat()) {
                add(&columns);
            } else {
                columns.iter().for_each(|column| add(&[*column]));
            }
        }
        parts
    }

    /// Returns the table of these columns.
    fn part(&self, columns: &[usize]) -> Table {
        let mut table = Table::new();
        let cells = |row: &[String]| -> Vec<String> {
            columns.iter().map(|column| row.get(*column).cloned().unwrap_or_default()).collect()
        };
        table.load_style(presets::NOTHING).set_header(cells(&self.header));
        self.rows.iter().for_each(|row| _ = table.add_row(cells(row)));
        for ((place, column), width) in columns.iter().enumerate().zip(self.widths(columns)) {
            let Some(own) = table.column_mut(place) else { continue };
            if self.is_number(*column) {
                own.set_cell_alignment(CellAlignment::Right);
            }
            if width < self.width(*column) {
                // The width of a column counts the space around its cells.
                let width = u16::try_from(width + PADDING).unwrap_or(u16::MAX);
                own.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            }
        }
        table
    }
}

impl fmt::Display for ReportTable {
    /// Writes the table without a newline at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, columns) in self.parts().iter().enumerate() {
            let between = if number > 0 { "\n\n" } else { "" };
            write!(f, "{between}{}", self.part(columns).trim_fmt())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_table_that_fits_has_one_line_for_each_row() {
        let mut table = ReportTable::new(["name", "mean", "why"]).numbers(1..2);
        table.row(["a", "1.5 ± 0.1", "it is"]);
        table.row(["longer", "10", ""]);
        assert_eq!(table.to_string(), " name         mean  why\n a       1.5 ± 0.1  it is\n longer         10");
    }

    #[test]
    fn long_text_is_wrapped_in_its_column() {
        let mut table = ReportTable::new(["name", "count", "why"]).numbers(1..2);
        table.row(["x", "1", &"some words ".repeat(20)]);
        let text = table.to_string();
        assert!((90..=MAX_WIDTH).contains(&widest(&text)), "{}: {text}", widest(&text));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with(" x         1  some words") && lines[2].starts_with("              "), "{text}");
        assert_eq!(text.matches("words").count(), 20);
    }

    #[test]
    fn a_wide_table_is_split_between_its_groups() {
        let header: Vec<String> =
            ["from", "to"].map(str::to_owned).into_iter().chain((0..8).map(|n| format!("n{n}"))).collect();
        let mut table = ReportTable::new(header).keys(2).groups([6]).numbers(2..10);
        table.row(["aa", "bb"].into_iter().map(str::to_owned).chain((0..8).map(|n| format!("{n:015}"))));
        let text = table.to_string();
        let parts: Vec<&str> = text.split("\n\n").collect();
        assert!(widest(&text) <= MAX_WIDTH, "{text}");
        assert!(parts.len() == 2 && parts.iter().all(|part| part.contains("aa    bb")), "{text}");
        assert!(parts[0].contains("n3") && parts[1].contains("n4"), "{text}");
        // A group that is too wide itself is split, too.
        let mut wide = ReportTable::new((0..12).map(|n| format!("column {n}")));
        wide.row((0..12).map(|n| format!("{n:020}")));
        let text = wide.to_string();
        assert!(widest(&text) <= MAX_WIDTH && text.contains("column 11"), "{text}");
    }
}
