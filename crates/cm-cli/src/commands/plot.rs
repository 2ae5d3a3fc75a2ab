//! `cm plot`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_train::{RunFolder, read_evaluations, read_metrics};

use super::make_parent;
use super::reproduce::results::{Spread, spread};
use crate::figures::{Chart, Curve};

#[derive(clap::Args)]
#[command(
    after_help = "Runs that are called NAME-SEED, as `cm train --seeds` calls them, are one curve: the mean over \
                  seeds, with a band of one standard error.\n\nExamples:\n  cm plot runs/plane --out plane.png\n  \
                  cm plot runs/a-* runs/b-* --metric contrastive_loss --out losses.svg"
)]
pub(crate) struct Arguments {
    /// Folders of runs.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// What to plot: `success`, `mean_steps` or a loss by its name in metrics.csv; success if there
    /// are evaluations, else the first loss.
    #[arg(long)]
    metric: Option<String>,
    /// The picture (png or svg).
    #[arg(long, default_value = "curves.png")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut metric = arguments.metric.clone();
    let mut runs = Vec::new();
    for path in &arguments.runs {
        let (found, points) = points(&RunFolder::new(path), metric.as_deref())?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        runs.push(Curve { name, points });
        metric = Some(found);
    }
    let metric = metric.unwrap_or_default();
    let mut curves = over_seeds(runs);
    let shared = without_shared(&mut curves);
    let title = if shared.is_empty() { metric.clone() } else { format!("{metric}, {shared}") };
    make_parent(&arguments.out)?;
    let share = metric == "success";
    Chart {
        title: &title,
        x_label: "training steps",
        y_label: if share { "share of goals reached" } else { &metric },
        y_range: share.then_some((0.0, 1.0)),
        curves: &curves,
    }
    .save(&arguments.out)?;
    println!("{}", arguments.out.display());
    Ok(())
}

/// One curve of all runs whose names differ in the seed behind them alone.
fn over_seeds(runs: Vec<Curve>) -> Vec<Curve> {
    let mut groups: Vec<(String, Vec<Curve>)> = Vec::new();
    for run in runs {
        let name = match run.name.rsplit_once('-') {
            Some((name, seed)) if seed.parse::<u64>().is_ok() => name,
            _ => run.name.as_str(),
        };
        match groups.iter_mut().find(|(group, _)| group == name) {
            Some((_, seeds)) => seeds.push(run),
            None => groups.push((name.to_owned(), vec![run])),
        }
    }
    let joined = groups.into_iter().flat_map(|(name, mut seeds)| {
        if seeds.len() == 1 { seeds.pop() } else { Some(mean(name, &seeds)) }
    });
    joined.collect()
}

/// The mean at every step, and its standard error.
fn mean(name: String, seeds: &[Curve]) -> Curve {
    let mut points: Vec<[f64; 3]> = seeds.iter().flat_map(|seed| seed.points.clone()).collect();
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let means = points.chunk_by(|a, b| a[0] == b[0]).filter_map(|at| {
        let Spread { mean, error } = spread(&at.iter().map(|point| point[1]).collect::<Vec<_>>())?;
        Some([at[0][0], mean, error])
    });
    Curve { name, points: means.collect() }
}

/// What the names of several curves begin with, up to a dash; it is taken off them.
fn without_shared(curves: &mut [Curve]) -> String {
    let Some((first, others)) = curves.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return String::new();
    };
    let is_shared = |end: usize| {
        others.iter().all(|other| {
            other.name.get(..=end) == first.name.get(..=end) && other.name.len() > end + 1
        })
    };
    let mut dashes = first.name.match_indices('-').map(|(place, _)| place);
    let Some(end) = dashes.rfind(|&end| first.name.len() > end + 1 && is_shared(end)) else {
        return String::new();
    };
    let shared = first.name[..end].to_owned();
    curves.iter_mut().for_each(|curve| drop(curve.name.drain(..=end)));
    shared
}

/// The chosen metric of a run, and its name.
fn points(folder: &RunFolder, metric: Option<&str>) -> anyhow::Result<(String, Vec<[f64; 3]>)> {
    let evaluated =
        |file: &Path| -> bool { std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0) };
    let success = metric.is_none() && evaluated(&folder.evaluations_file());
    if success || matches!(metric, Some("success" | "mean_steps")) {
        let rows = read_evaluations(&folder.evaluations_file())?;
        let steps = metric == Some("mean_steps");
        let value =
            |row: &cm_train::EvaluationRow| if steps { row.mean_steps } else { row.success };
        let points = rows.iter().map(|row| [row.step as f64, value(row), 0.0]).collect();
        return Ok((if steps { "mean_steps" } else { "success" }.to_owned(), points));
    }
    let rows = read_metrics(&folder.metrics_file())?;
    let Some(first) = rows.first() else {
        bail!("{}: expected losses, found none yet", folder.metrics_file().display());
    };
    let name = metric.unwrap_or(&first.values[0].0).to_owned();
    let Some(column) = first.values.iter().position(|(key, _)| *key == name) else {
        let known: Vec<_> = first.values.iter().map(|(key, _)| key.as_str()).collect();
        bail!(
            "{}: expected one of {}, found `{name}`",
            folder.metrics_file().display(),
            known.join(", ")
        );
    };
    Ok((name, rows.iter().map(|row| [row.step as f64, row.values[column].1, 0.0]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, values: &[f64]) -> Curve {
        let points = values.iter().enumerate().map(|(x, &y)| [x as f64, y, 0.0]).collect();
        Curve { name: name.to_owned(), points }
    }

    #[test]
    fn seeds_are_one_curve_and_what_names_share_is_in_the_title() {
        let runs = [
            run("maze-v2-cmd1-0", &[0.0, 1.0, 3.0]),
            run("maze-v2-gcbc-7", &[2.0]),
            run("maze-v2-cmd1-1", &[2.0, 1.0]),
        ];
        let mut curves = over_seeds(runs.into());
        assert_eq!(without_shared(&mut curves), "maze-v2");
        let [cmd1, gcbc] = &curves[..] else { panic!("{}", curves.len()) };
        assert_eq!((cmd1.name.as_str(), gcbc.name.as_str()), ("cmd1", "gcbc-7"));
        // The third step is one seed's.
        assert_eq!(cmd1.points, [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [2.0, 3.0, 0.0]]);
        assert_eq!(gcbc.points, [[0.0, 2.0, 0.0]]);
    }

    #[test]
    fn names_that_share_nothing_are_left_alone() {
        for names in [&["plane"][..], &["a", "b"], &["a-b", "a"], &["a-", "a-b"], &["-", "-a"]] {
            let mut curves: Vec<_> = names.iter().map(|name| run(name, &[])).collect();
            assert_eq!(without_shared(&mut curves), "");
            assert!(curves.iter().map(|curve| curve.name.as_str()).eq(names.iter().copied()));
        }
    }
}
