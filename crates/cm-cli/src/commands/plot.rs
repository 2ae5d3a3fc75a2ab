//! `cm plot`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_train::{RunFolder, read_evaluations, read_metrics};

use super::make_parent;
use crate::figures::{Chart, Curve};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cm plot runs/plane --out plane.png\n  cm plot runs/a runs/b --metric contrastive_loss --out losses.svg"
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
    let mut curves = Vec::new();
    for path in &arguments.runs {
        let (found, points) = points(&RunFolder::new(path), metric.as_deref())?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        curves.push(Curve { name, points });
        metric = Some(found);
    }
    let metric = metric.unwrap_or_default();
    make_parent(&arguments.out)?;
    let share = metric == "success";
    Chart {
        title: &metric,
        x_label: "training steps",
        y_label: if share { "share of goals reached" } else { &metric },
        y_range: share.then_some((0.0, 1.0)),
        curves: &curves,
    }
    .save(&arguments.out)?;
    println!("{}", arguments.out.display());
    Ok(())
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
