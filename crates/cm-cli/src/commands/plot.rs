//! `cm plot`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_train::{RunFolder, read_evaluations, read_metrics};

use super::make_parent;
use super::reproduce::results::mean_curve;
use crate::figures::{Chart, Curve};

#[derive(clap::Args)]
#[command(
    after_help = "Runs that differ in their seeds alone are one curve: their mean, with a band of one \
                  standard error.\n\nExamples:\n  cm plot runs/plane --out plane.png\n  \
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
        let folder = RunFolder::new(path);
        let (found, points) = points(&folder, metric.as_deref())?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut settings = folder.settings()?;
        let seed = settings.seed;
        settings.seed = 0;
        settings.task.set_data_seed(0);
        runs.push(Run { curve: Curve { name, points }, seed, settings });
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

/// A run's curve, and its settings but for the seed.
struct Run<S> {
    curve: Curve,
    seed: u64,
    settings: S,
}

/// One curve of all runs that differ in their seeds alone.
fn over_seeds<S: PartialEq>(runs: Vec<Run<S>>) -> Vec<Curve> {
    let mut groups: Vec<Vec<Run<S>>> = Vec::new();
    for run in runs {
        let is_its = |group: &&mut Vec<Run<S>>| {
            group[0].settings == run.settings && group.iter().all(|other| other.seed != run.seed)
        };
        match groups.iter_mut().find(is_its) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups.into_iter().map(joined).collect()
}

/// The curve of runs with several seeds has their name without the seed.
fn joined<S>(mut runs: Vec<Run<S>>) -> Curve {
    if runs.len() == 1 {
        return runs.swap_remove(0).curve;
    }
    let (name, seed) = (&runs[0].curve.name, format!("-{}", runs[0].seed));
    let name = name.strip_suffix(&seed).unwrap_or(name).to_owned();
    let points =
        runs.iter().flat_map(|run| &run.curve.points).map(|&[step, value, _]| [step, value]);
    mean_curve(name, points.collect())
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

    /// Of settings that a number stands for.
    fn run(name: &str, seed: u64, settings: u32, values: &[f64]) -> Run<u32> {
        let points = values.iter().enumerate().map(|(x, &y)| [x as f64, y, 0.0]).collect();
        Run { curve: Curve { name: name.to_owned(), points }, seed, settings }
    }

    fn names(curves: &[Curve]) -> Vec<&str> {
        curves.iter().map(|curve| curve.name.as_str()).collect()
    }

    #[test]
    fn seeds_are_one_curve_and_what_names_share_is_in_the_title() {
        let runs = vec![
            run("maze-v2-cmd1-0", 0, 1, &[0.0, 1.0, 3.0]),
            run("maze-v2-gcbc-7", 7, 2, &[2.0]),
            run("maze-v2-cmd1-1", 1, 1, &[2.0, 1.0]),
            // The same seed once more, from another folder.
            run("maze-v2-cmd1-0", 0, 1, &[]),
        ];
        let mut curves = over_seeds(runs);
        assert_eq!(without_shared(&mut curves), "maze-v2");
        assert_eq!(names(&curves), ["cmd1", "gcbc-7", "cmd1-0"]);
        // The third step is one seed's.
        assert_eq!(curves[0].points, [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [2.0, 3.0, 0.0]]);
        assert_eq!(curves[1].points, [[0.0, 2.0, 0.0]]);
    }

    #[test]
    fn names_that_share_nothing_are_left_alone() {
        for given in [&["plane"][..], &["a", "b"], &["a-b", "a"], &["a-", "a-b"], &["-", "-a"]] {
            let runs = given.iter().zip(0..).map(|(name, other)| run(name, 0, other, &[]));
            let mut curves = over_seeds(runs.collect());
            assert_eq!(without_shared(&mut curves), "");
            assert_eq!(names(&curves), given);
        }
    }
}
