//! `cm inspect`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_nn::Snapshot;
use cm_replay::{ReadOptions, Summary, read};
use cm_train::{Checkpoint, RunFolder, read_evaluations};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cm inspect walks.csv\n  cm inspect runs/walks\n  cm inspect runs/walks/model.safetensors --json"
)]
pub(crate) struct Arguments {
    /// Folder of a run, a checkpoint.bin, a model's .safetensors, or a data set.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.path;
    let (text, value) = if path.is_dir() {
        of_run(path)?
    } else if path.extension().is_some_and(|extension| extension == "bin") {
        of_checkpoint(&Checkpoint::load(path)?)
    } else if path.extension().is_some_and(|extension| extension == "safetensors")
        && !is_data(path)?
    {
        of_weights(&Snapshot::load_safetensors(path)?)
    } else {
        of_data(path)?
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print!("{text}");
    }
    Ok(())
}

/// Trajectories in a safetensors file are called `observations`; weights never are.
fn is_data(path: &Path) -> anyhow::Result<bool> {
    let bytes =
        std::fs::read(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    Ok(bytes.windows(14).take(100_000).any(|window| window == b"\"observations\""))
}

fn of_run(path: &Path) -> anyhow::Result<(String, Value)> {
    let folder = RunFolder::new(path);
    if !folder.settings_file().exists() {
        bail!("{}: expected the folder of a run, found no config.toml in it", path.display());
    }
    let settings = folder.settings()?;
    let step = match folder.checkpoint_file() {
        file if file.exists() => Checkpoint::load(&file)?.step,
        _ => 0,
    };
    let evaluations = match folder.evaluations_file() {
        file if file.exists() => read_evaluations(&file)?,
        _ => Vec::new(),
    };
    let devices = folder.devices()?;
    let method = settings.method.method();
    let mut text = format!(
        "{}: {}, seed {}, step {step} of {}\n",
        path.display(),
        method.title(),
        settings.seed,
        settings.steps
    );
    for (from, device) in &devices {
        text += &format!("trained on {device} from step {from} on\n");
    }
    if let Some(last) = evaluations.last() {
        let best = evaluations
            .iter()
            .fold(last, |best, row| if row.success > best.success { row } else { best });
        text += &format!(
            "success {:.1} % at step {}, best {:.1} % at step {}\n",
            100.0 * last.success,
            last.step,
            100.0 * best.success,
            best.step
        );
    }
    let rows: Vec<_> = evaluations
        .iter()
        .map(
            |row| json!({ "step": row.step, "success": row.success, "mean_steps": row.mean_steps }),
        )
        .collect();
    let value = json!({
        "method": method.key(),
        "seed": settings.seed,
        "step": step,
        "steps": settings.steps,
        "devices": devices.iter().map(|(from, device)| json!({ "step": from, "device": device }))
            .collect::<Vec<_>>(),
        "evaluations": rows,
    });
    Ok((text, value))
}

fn of_checkpoint(checkpoint: &Checkpoint) -> (String, Value) {
    let (weights, tensors) = of_weights(&checkpoint.parameters);
    let best = checkpoint.best.map(|(step, success)| json!({ "step": step, "success": success }));
    let text = format!("checkpoint of step {}\n{weights}", checkpoint.step);
    (text, json!({ "step": checkpoint.step, "best": best, "parameters": tensors["parameters"] }))
}

fn of_weights(weights: &Snapshot) -> (String, Value) {
    let mut text = String::new();
    let (mut count, mut rows) = (0, Vec::new());
    for (name, matrix) in weights.iter() {
        let numbers = matrix.values.len();
        let square: f64 = matrix.values.iter().map(|&value| f64::from(value).powi(2)).sum();
        let size = (square / numbers.max(1) as f64).sqrt();
        text += &format!(
            "{name:48} {:>5} x {:<5} root mean square {size:.4}\n",
            matrix.shape[0], matrix.shape[1]
        );
        rows.push(json!({ "name": name, "shape": matrix.shape, "root_mean_square": size }));
        count += numbers;
    }
    text += &format!("{} matrices, {count} numbers\n", rows.len());
    (text, json!({ "numbers": count, "parameters": rows }))
}

fn of_data(path: &Path) -> anyhow::Result<(String, Value)> {
    let options = ReadOptions { allow_not_finite: true, ..Default::default() };
    let summary = Summary::of(&read(path, &options)?);
    let arrays: Vec<_> = summary
        .arrays
        .iter()
        .map(|array| {
            let columns: Vec<_> = array
                .columns
                .iter()
                .map(|column| json!({ "min": column.min, "max": column.max, "mean": column.mean, "deviation": column.deviation }))
                .collect();
            json!({ "name": array.name, "not_finite": array.not_finite, "columns": columns })
        })
        .collect();
    let value = json!({
        "steps": summary.steps,
        "trajectories": summary.trajectories,
        "transitions": summary.transitions,
        "lengths": { "shortest": summary.shortest, "median": summary.median, "longest": summary.longest },
        "arrays": arrays,
    });
    Ok((format!("{summary}\n"), value))
}
