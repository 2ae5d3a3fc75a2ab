//! Tables in print, and folders of figures.

use std::path::Path;

use anyhow::Context;

/// Columns as wide as their widest cell.
pub(super) fn print_table(table: &[Vec<String>]) {
    let columns = table[0].len();
    let width =
        |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in table {
        let cells =
            (0..columns).map(|column| format!("{:>width$}", row[column], width = width(column)));
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

/// Makes the folder of an experiment's figures.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{}: could not be made", folder.display()))
}
