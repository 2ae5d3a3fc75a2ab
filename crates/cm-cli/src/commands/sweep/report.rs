//! The table, the curves and the page of a sweep, whether it has ended or not.

use cm_train::{RunFolder, read_evaluations, read_metrics};

use super::Sweep;
use super::status::{RunStatus, State, counts, statuses};
use crate::commands::reproduce::output::{csv, make_folder, print_table, settings_of};
use crate::commands::reproduce::results::{Results, Spread, Walk, spread};
use crate::figures::{Chart, Curve};
use crate::page::Page;

/// Runs that differ in their seed alone.
struct Row<'a> {
    /// Their values, the seed's apart.
    values: Vec<(String, String)>,
    runs: Vec<&'a RunStatus<'a>>,
    results: Results,
    /// The first loss at the end of each run.
    losses: Vec<f64>,
}

/// Writes `results.csv`, `figures/success.png` and `index.html` into the sweep's folder, and prints
/// the table.
pub(super) fn write(sweep: &Sweep) -> anyhow::Result<()> {
    let (all, trouble) = statuses(sweep);
    let rows = rows(&all);
    let table = table(&rows);
    print_table(&table);
    let out = &sweep.plan.out;
    let figures = out.join("figures");
    make_folder(&figures)?;
    cm_files::replace(out.join("results.csv"), csv(&table))?;
    let name = sweep.plan.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut page = Page::new(&name);
    page.paragraph(&format!("{}.", counts(&all)));
    if let Some(trouble) = trouble {
        page.paragraph(&trouble);
    }
    page.table(&table);
    if rows.iter().any(|row| row.results.last().is_some()) {
        let file = figures.join("success.png");
        let curves = rows.iter().map(|row| Curve { name: row.name(), ..row.results.curve() });
        let curves = curves.collect::<Vec<_>>();
        Chart {
            title: "Success over training",
            x_label: "training steps",
            y_label: "share of goals reached",
            y_range: Some((0.0, 1.0)),
            curves: &curves,
        }
        .save(&file)?;
        page.heading("Success over training");
        page.figure(
            &file,
            "Share of goals reached; mean over seeds, the band is one standard error.",
        )?;
    }
    let open = all.iter().filter(|status| status.state != State::Done).collect::<Vec<_>>();
    if !open.is_empty() {
        page.heading("Runs that are not done");
        page.table(&open_runs(&open));
    }
    page.heading("Settings");
    for status in &all {
        page.details(&status.run.name, &settings_of(&status.run.job)?);
    }
    let file = out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}: {}", counts(&all), file.display());
    for status in open.iter().filter(|status| status.state == State::Failed) {
        let error = status.error.as_deref().unwrap_or("no error was left");
        println!("failed: {}: {error}", status.run.name);
    }
    Ok(())
}

fn rows<'a>(all: &'a [RunStatus<'a>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for status in all {
        let values = status.run.values.iter().filter(|(key, _)| key != "seed").cloned();
        let values = values.collect::<Vec<_>>();
        let index = match rows.iter().position(|row| row.values == values) {
            Some(index) => index,
            None => {
                let method = status.run.job.settings.method.method();
                let results = Results { method, walk: Walk::Straight, seeds: Vec::new() };
                rows.push(Row { values, runs: Vec::new(), results, losses: Vec::new() });
                rows.len() - 1
            }
        };
        let row = &mut rows[index];
        row.runs.push(status);
        let folder = RunFolder::new(&status.run.job.folder);
        if has_content(&folder.evaluations_file()) {
            row.results.seeds.extend(readable(read_evaluations(&folder.evaluations_file())));
        }
        if has_content(&folder.metrics_file()) {
            let rows = readable(read_metrics(&folder.metrics_file())).unwrap_or_default();
            let last = rows.last().and_then(|last| last.values.first());
            row.losses.extend(last.map(|(_, loss)| *loss));
        }
    }
    rows
}

/// A table that is damaged, or to which a run has written half a line, is left out of the report
/// and named.
fn readable<T>(table: cm_train::Result<T>) -> Option<T> {
    table.map_err(|error| eprintln!("left out: {error}")).ok()
}

fn has_content(file: &std::path::Path) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() > 0)
}

impl Row<'_> {
    fn name(&self) -> String {
        let labels = self.values.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>();
        if labels.is_empty() { self.results.method.title().to_owned() } else { labels.join(" ") }
    }
}

fn table(rows: &[Row<'_>]) -> Vec<Vec<String>> {
    let show = |spread: Option<Spread>, seeds: usize| match spread {
        None => "-".to_owned(),
        Some(Spread { mean, .. }) if seeds < 2 => format!("{mean:.3}"),
        Some(Spread { mean, error }) => format!("{mean:.3} ± {error:.3}"),
    };
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in rows.iter().flat_map(|row| &row.values) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let titles = ["done", "steps", "last success", "best success", "first loss"];
    let head = if keys.is_empty() { vec!["method"] } else { keys.clone() };
    let mut table = vec![head.into_iter().chain(titles).map(str::to_owned).collect::<Vec<_>>()];
    for row in rows {
        let value = |key: &&str| {
            let found = row.values.iter().find(|(other, _)| other == key);
            found.map_or_else(|| "-".to_owned(), |(_, label)| label.clone())
        };
        let mut cells = keys.iter().map(value).collect::<Vec<_>>();
        if keys.is_empty() {
            cells.push(row.name());
        }
        let done = row.runs.iter().filter(|status| status.state == State::Done).count();
        let steps = row.runs.iter().map(|status| status.step).max().unwrap_or(0);
        let seeds = row.results.seeds.len();
        cells.push(format!("{done} of {}", row.runs.len()));
        cells.push(steps.to_string());
        cells.push(show(row.results.last(), seeds));
        cells.push(show(row.results.best(), seeds));
        cells.push(show(spread(&row.losses), row.losses.len()));
        table.push(cells);
    }
    table
}

fn open_runs(open: &[&RunStatus<'_>]) -> Vec<Vec<String>> {
    let titles = ["run", "state", "step", "where", "first error"];
    let mut table = vec![titles.map(str::to_owned).to_vec()];
    for status in open {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let steps = status.run.job.settings.steps;
        table.push(vec![
            status.run.name.clone(),
            status.state.name().to_owned(),
            format!("{} of {steps}", status.step),
            text(&status.place),
            text(&status.error),
        ]);
    }
    table
}
