//! `cm eval`.

use std::path::PathBuf;

use anyhow::Context;
use cm_envs::Rollout;
use serde_json::json;

use super::distance::MAP_STATES;
use super::{RunArguments, data_states, make_parent};
use crate::figures::Map;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  cm eval runs/plane --episodes 500 --figure episodes.png")]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// How many episodes.
    #[arg(long, default_value_t = 1000)]
    episodes: usize,
    /// Their seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draw the first episodes here (png or svg).
    #[arg(long)]
    figure: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Episodes in a picture.
const DRAWN: usize = 12;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let task = model.settings().task.open().context("the task of the run")?;
    let paths = if arguments.figure.is_some() { DRAWN } else { 0 };
    let plan = Rollout { episodes: arguments.episodes.max(1), seed: arguments.seed, paths };
    let evaluation = model.evaluate(task.world()?, &plan)?;
    let episodes = evaluation.outcomes.len() as f64;
    let error = (evaluation.success * (1.0 - evaluation.success) / episodes).sqrt();
    if let Some(figure) = &arguments.figure {
        make_parent(figure)?;
        let places: Vec<_> = data_states(&model, &task, MAP_STATES)
            .iter()
            .map(|state| [state[0], state[1]])
            .collect();
        let drawn = &evaluation.outcomes[..DRAWN.min(evaluation.outcomes.len())];
        let goals: Vec<_> =
            drawn.iter().map(|outcome| [outcome.goal[0], outcome.goal[1]]).collect();
        let paths: Vec<_> = drawn.iter().map(|outcome| outcome.path.clone()).collect();
        let map = Map {
            title: &format!(
                "{} episodes of {}",
                drawn.len(),
                model.settings().method.method().title()
            ),
            places: &places,
            values: None,
            steps: None,
            goals: &goals,
            paths: &paths,
        };
        map.save(figure)?;
    }
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&json!({
                "episodes": evaluation.outcomes.len(),
                "success": evaluation.success,
                "standard_error": error,
                "mean_steps": evaluation.mean_steps,
            }))?
        );
    } else {
        println!(
            "success {:.1} % (standard error {:.1}) over {episodes} episodes, {:.0} steps on average",
            100.0 * evaluation.success,
            100.0 * error,
            evaluation.mean_steps
        );
    }
    Ok(())
}
