//! `cm distance`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cm_train::Model;
use serde_json::json;

use super::{Axes, RunArguments, State, data_states, make_parent};
use crate::figures::Map;

#[derive(clap::Args)]
#[command(
    after_help = "The first --from goes with the first --to and so on; one of either goes with all of the other.\n\nExamples:\n  \
        cm distance runs/plane --from=-20,0 --to 20,0 --both-ways\n  \
        cm distance runs/plane --to 20,0 --map map.png"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// A state to start from, its numbers separated by commas (write --from=-1,2 if the first is
    /// negative).
    #[arg(long, value_name = "STATE")]
    from: Vec<State>,
    /// A state to get to.
    #[arg(long, value_name = "STATE", required = true)]
    to: Vec<State>,
    /// Also the way back.
    #[arg(long)]
    both_ways: bool,
    /// Draw the distance from every state of the data to the first --to (png or svg).
    #[arg(long, value_name = "FILE", required_unless_present = "from")]
    map: Option<PathBuf>,
    /// Which two coordinates of a state a map shows.
    #[arg(long, default_value = "0,1")]
    axes: Axes,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Most states of the data that a map shows.
pub(crate) const MAP_STATES: usize = 20_000;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let pairs = pairs(&arguments.from, &arguments.to)?;
    let (from, to) = (
        rows(&model, "--from", pairs.iter().map(|pair| pair.0))?,
        rows(&model, "--to", pairs.iter().map(|pair| pair.1))?,
    );
    if !pairs.is_empty() {
        let there = model.distances(&from, &to)?;
        let back = if arguments.both_ways { Some(model.distances(&to, &from)?) } else { None };
        let found = pairs.iter().enumerate().map(|(index, &(from, to))| {
            (from, to, there[index], back.as_ref().map(|back| back[index]))
        });
        if arguments.json {
            let all: Vec<_> = found
                .map(|(from, to, there, back)| json!({ "from": from.0, "to": to.0, "distance": there, "back": back }))
                .collect();
            println!("{}", serde_json::to_string_pretty(&all)?);
        } else {
            for (from, to, there, back) in found {
                let back = back.map(|back| format!(", back {back:.4}")).unwrap_or_default();
                println!("{:?} to {:?}: {there:.4}{back}", from.0, to.0);
            }
        }
    }
    if let (Some(file), Some(goal)) = (&arguments.map, arguments.to.first()) {
        draw(arguments, &model, &goal.0, file)?;
        if !arguments.json {
            println!("{}", file.display());
        }
    }
    Ok(())
}

fn draw(arguments: &Arguments, model: &Model, goal: &[f32], file: &Path) -> anyhow::Result<()> {
    arguments.axes.check(model.dimensions().state())?;
    let task = model.settings().task.open().context("the task of the run")?;
    let states = data_states(model, &task, MAP_STATES);
    let distances = model.distances_to(&states.concat(), goal)?;
    let places: Vec<_> = states.iter().map(|state| arguments.axes.of(state)).collect();
    make_parent(file)?;
    let map = Map {
        title: &format!("Distance to the star by {}", model.settings().method.method().title()),
        places: &places,
        values: Some(&distances),
        goals: &[arguments.axes.of(goal)],
        paths: &[],
    };
    Ok(map.save(file)?)
}

/// Which states go together.
fn pairs<'a>(from: &'a [State], to: &'a [State]) -> anyhow::Result<Vec<(&'a State, &'a State)>> {
    Ok(match (from, to) {
        ([], _) => Vec::new(),
        ([one], many) => many.iter().map(|to| (one, to)).collect(),
        (many, [one]) => many.iter().map(|from| (from, one)).collect(),
        (from, to) if from.len() == to.len() => from.iter().zip(to).collect(),
        _ => bail!("expected as many --to as --from, found {} and {}", to.len(), from.len()),
    })
}

/// States one after another, each as wide as the model's.
pub(crate) fn rows<'a>(
    model: &Model,
    what: &str,
    states: impl Iterator<Item = &'a State>,
) -> anyhow::Result<Vec<f32>> {
    let width = model.dimensions().state();
    let mut all = Vec::new();
    for State(state) in states {
        if state.len() != width {
            bail!("{what}: expected {width} numbers, found {}", state.len());
        }
        all.extend_from_slice(state);
    }
    Ok(all)
}
