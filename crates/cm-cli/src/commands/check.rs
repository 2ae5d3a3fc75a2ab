//! `cm check`.

use std::path::PathBuf;

use anyhow::Context;
use cm_train::{Check, Contrast, Model, Pair, check};
use serde_json::json;

use super::{RunArguments, make_parent};
use crate::figures::{Chart, Curve};

#[derive(clap::Args)]
#[command(
    after_help = "Everything is measured on trajectories that were held out from training. The exit status is 0 whatever the verdict; --strict makes a \
        doubtful one an error.\n\nExamples:\n  cm check runs/walks\n  cm check runs/walks --figure check.png --strict"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// Draw the distance over the steps that held-out trajectories took (png or svg);
    /// figures/check.png of the run if not given.
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Fail if the verdict is doubtful.
    #[arg(long)]
    strict: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let task = model.settings().task.open().context("the task of the run")?;
    let found = check(&model, &task)?;
    let (good, verdict) = found.verdict();
    let figure = arguments
        .figure
        .clone()
        .unwrap_or_else(|| arguments.run.folder().figures().join("check.png"));
    make_parent(&figure)?;
    let title = format!("{}: held-out trajectories", model.settings().method.method().title());
    let curves = [
        curve("with the trajectory", &found.pairs, |pair| pair.distance),
        curve("back", &found.pairs, |pair| pair.back),
    ];
    let chart = Chart {
        title: &title,
        x_label: "steps between",
        y_label: "learned distance",
        y_range: None,
        curves: &curves,
    };
    chart.save(&figure)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&as_json(&found, good, &verdict))?);
    } else {
        print(&model, &found);
        println!("{}", figure.display());
        println!("verdict: {verdict}");
    }
    if arguments.strict && !good {
        anyhow::bail!("{verdict}");
    }
    Ok(())
}

/// Mean and deviation of the finite distances over steps, in at most thirty bins.
fn curve(name: &str, pairs: &[Pair], distance: impl Fn(&Pair) -> f32) -> Curve {
    let longest = pairs.iter().map(|pair| pair.steps).fold(1.0, f32::max);
    let width = (longest / 30.0).max(1.0);
    let mut bins = vec![(0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64); (longest / width) as usize + 1];
    for pair in pairs {
        let value = f64::from(distance(pair));
        if value.is_finite() {
            let bin = &mut bins[(pair.steps / width) as usize];
            *bin =
                (bin.0 + 1.0, bin.1 + f64::from(pair.steps), bin.2 + value, bin.3 + value * value);
        }
    }
    let full = bins.into_iter().filter(|bin| bin.0 > 0.0);
    let points = full.map(|(count, steps, sum, squares)| {
        let mean = sum / count;
        [steps / count, mean, (squares / count - mean * mean).max(0.0).sqrt()]
    });
    Curve { name: name.to_owned(), points: points.collect() }
}

fn print(model: &Model, found: &Check) {
    let [training, held_out] = found.trajectories;
    println!(
        "{held_out} trajectories held out, {training} trained on; read-out {}",
        found.read_out
    );
    if let Some(contrast) = &found.contrast {
        let Contrast { loss, accuracy } = contrast.held_out;
        println!(
            "goals told from others: {:.1} % (chance 50 %, trained on {:.1} %); loss {loss:.3} \
             (trained on {:.3})",
            100.0 * accuracy,
            100.0 * contrast.training.accuracy,
            contrast.training.loss
        );
    }
    println!("rank correlation of distance and steps: {:.3}", found.rank_correlation);
    println!("triples in order: {:.1} %", 100.0 * found.ordered);
    println!("farther back than ahead: {:.1} % of pairs", 100.0 * found.asymmetry);
    if found.unreachable > 0.0 {
        println!("without a way: {:.1} % of pairs", 100.0 * found.unreachable);
    }
    let [triples, violated] = found.triangles;
    println!("triangle inequality: {violated} of {triples} triples violate it");
    if let Some(share) = found.goal_action {
        println!(
            "dependence on the goal's action: {:.1} % of the spread of the distance with actions",
            100.0 * share
        );
    }
    match (found.calibrated, model.calibration()) {
        (Some(share), Some(calibration)) => println!(
            "steps: up to {:.0}; {:.0} % of pairs lie between the bounds given",
            calibration.most(),
            100.0 * share
        ),
        _ => println!("steps: not calibrated"),
    }
}

fn as_json(found: &Check, good: bool, verdict: &str) -> serde_json::Value {
    let contrast =
        |of: Contrast| json!({ "loss": of.loss, "accuracy": of.accuracy, "chance": 0.5 });
    json!({
        "good": good,
        "verdict": verdict,
        "read_out": found.read_out.to_string(),
        "trajectories": { "training": found.trajectories[0], "held_out": found.trajectories[1] },
        "contrast": found.contrast.map(|found| json!({
            "held_out": contrast(found.held_out),
            "training": contrast(found.training),
        })),
        "pairs": found.pairs.len(),
        "rank_correlation": found.rank_correlation,
        "ordered_triples": found.ordered,
        "asymmetry": found.asymmetry,
        "unreachable": found.unreachable,
        "triangles": { "triples": found.triangles[0], "violated": found.triangles[1] },
        "goal_action": found.goal_action,
        "calibrated": found.calibrated,
    })
}
