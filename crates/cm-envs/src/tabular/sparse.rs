//! Sparse rows split at the diagonal, the storage of a linear system and of its factors.

/// Rows of a square matrix without its diagonal.
#[derive(Default)]
pub(crate) struct SplitRows {
    rows: Vec<Split>,
    columns: Vec<u32>,
    coefficients: Vec<f64>,
}

/// Where a row lies in the lists: columns before the diagonal, then columns after it.
struct Split {
    start: usize,
    after: usize,
    end: usize,
}

impl SplitRows {
    /// Appends a row from its entries before and after the diagonal.
    pub(crate) fn push(
        &mut self,
        before: impl Iterator<Item = (u32, f64)>,
        after: impl Iterator<Item = (u32, f64)>,
    ) {
        let start = self.columns.len();
        self.extend(before);
        let split = self.columns.len();
        self.extend(after);
        self.rows.push(Split { start, after: split, end: self.columns.len() });
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The entries before the diagonal.
    pub(crate) fn before(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, f64)> {
        self.entries(self.rows[row].start..self.rows[row].after)
    }

    /// The entries after the diagonal.
    pub(crate) fn after(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, f64)> {
        self.entries(self.rows[row].after..self.rows[row].end)
    }

    /// The whole row times a vector.
    pub(crate) fn times(&self, row: usize, vector: &[f64]) -> f64 {
        let entries = self.entries(self.rows[row].start..self.rows[row].end);
        product(entries, vector)
    }

    fn extend(&mut self, entries: impl Iterator<Item = (u32, f64)>) {
        for (column, coefficient) in entries {
            self.columns.push(column);
            self.coefficients.push(coefficient);
        }
    }

    fn entries(&self, range: std::ops::Range<usize>) -> impl ExactSizeIterator<Item = (u32, f64)> {
        let columns = self.columns[range.clone()].iter().copied();
        columns.zip(self.coefficients[range].iter().copied())
    }
}

/// Entries of a row times a vector.
pub(crate) fn product(entries: impl Iterator<Item = (u32, f64)>, vector: &[f64]) -> f64 {
    entries.map(|(column, coefficient)| coefficient * vector[column as usize]).sum()
}
