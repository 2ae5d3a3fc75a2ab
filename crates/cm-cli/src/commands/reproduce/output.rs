//! Tables in print, settings on the page, and folders of figures.

use std::path::Path;

use anyhow::Context;
use cm_train::{Job, RunFolder};

/// Columns as wide as their widest cell.
pub(in crate::commands) fn print_table(table: &[Vec<String>]) {
    let columns = table[0].len();
    let width =
        |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in table {
        let cells =
            (0..columns).map(|column| format!("{:>width$}", row[column], width = width(column)));
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

/// A table as CSV, without the marks of the best.
pub(in crate::commands) fn csv(table: &[Vec<String>]) -> String {
    let cell = |cell: &String| {
        let text = cell.trim_start_matches('*');
        match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        }
    };
    let lines = table.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(","));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Makes the folder of an experiment's figures.
pub(in crate::commands) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{}: could not be made", folder.display()))
}

/// The settings of a run as they stand on a page, with the devices it was trained on.
pub(in crate::commands) fn settings_of(job: &Job) -> anyhow::Result<String> {
    let devices = RunFolder::new(&job.folder).devices()?;
    let devices = devices.iter().map(|(from, name)| format!("# {name} from step {from} on\n"));
    Ok(devices.collect::<String>() + &job.settings.to_toml())
}
