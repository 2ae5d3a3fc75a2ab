//! `cm plan`.

use std::path::PathBuf;

use anyhow::Context;
use cm_train::{GreedyPath, Links, Planner, RoadMap, Task};
use serde_json::json;

use super::distance::{MAP_STATES, rows};
use super::{Axes, RunArguments, State, data_states, make_parent};
use crate::figures::Map;

#[derive(clap::Args)]
#[command(
    after_help = "A greedy path goes from state to state of the data, each within --radius of the last, always to the one from which the learned \
        distance to the goal is least. Far goals are better reached with --link, which adds up short distances instead of trusting long ones.\n\n\
        Examples:\n  cm plan runs/plane --from=-20,0 --to 0,20 --figure plan.png\n  \
        cm plan runs/plane --from=-20,0 --to 0,20 --radius 3 --link 3"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// The state to start from, its numbers separated by commas.
    #[arg(long, value_name = "STATE")]
    from: State,
    /// The state to get to.
    #[arg(long, value_name = "STATE")]
    to: State,
    /// How far one move may go; five times the data's median step if not given.
    #[arg(long)]
    radius: Option<f32>,
    /// Compose far distances of moves no longer than this by the learned distance, and take the
    /// shortest way.
    #[arg(long, value_name = "DISTANCE", conflicts_with_all = ["arrived", "longest"])]
    link: Option<f32>,
    /// How near to the goal is near enough; the radius if not given.
    #[arg(long)]
    arrived: Option<f32>,
    /// The longest path.
    #[arg(long, default_value_t = 1000)]
    longest: usize,
    /// Draw it over a map of the distance (png or svg).
    #[arg(long)]
    figure: Option<PathBuf>,
    /// Which two coordinates of a state the picture shows.
    #[arg(long, default_value = "0,1")]
    axes: Axes,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// States of the data that are linked: every pair of them within the radius costs a distance.
const LINKED_STATES: usize = 2_000;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let from = rows(&model, "--from", std::iter::once(&arguments.from))?;
    let to = rows(&model, "--to", std::iter::once(&arguments.to))?;
    let task = model.settings().task.open().context("the task of the run")?;
    let states = data_states(&model, &task, MAP_STATES);
    let places = states.concat();
    let radius = arguments.radius.unwrap_or_else(|| 5.0 * median_step(&model, &task));
    let paths = match arguments.link {
        Some(longest) => {
            let places = data_states(&model, &task, LINKED_STATES).concat();
            RoadMap::new(&model, &places, Links { radius, longest })?.paths(&from, &to)?
        }
        None => {
            let (longest, arrived) = (arguments.longest, arguments.arrived.unwrap_or(radius));
            Planner { radius, longest, arrived }.paths(&model, &places, &from, &to)?
        }
    };
    let path = &paths[0];
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&as_json(path))?);
    } else {
        print(path);
    }
    if let Some(file) = &arguments.figure {
        arguments.axes.check(model.dimensions().state())?;
        make_parent(file)?;
        let distances = model.distances_to(&places, &to)?;
        let show = |state: &Vec<f32>| arguments.axes.of(state);
        let map = Map {
            title: &format!("Greedy path by {}", model.settings().method.method().title()),
            places: &states.iter().map(show).collect::<Vec<_>>(),
            values: Some(&distances),
            goals: &[arguments.axes.of(&to)],
            paths: &[path.states.iter().map(show).collect()],
        };
        map.save(file)?;
    }
    Ok(())
}

fn print(path: &GreedyPath) {
    for (state, distance) in path.states.iter().zip(&path.distances) {
        println!("{state:?}  {distance:.4} to go");
    }
    let end =
        if path.arrived { "arrived" } else { "stuck: no move within the radius leads nearer" };
    let moves = path.states.len() - 1;
    let s = if moves == 1 { "" } else { "s" };
    println!("{end} after {moves} move{s}, {:.2} long", path.length());
}

fn as_json(path: &GreedyPath) -> serde_json::Value {
    json!({
        "arrived": path.arrived,
        "length": path.length(),
        "states": path.states,
        "distances": path.distances,
    })
}

/// The median length of a step of the data, in its own units.
fn median_step(model: &cm_train::Model, task: &Task) -> f32 {
    let data = &task.data;
    let mut lengths = Vec::new();
    for trajectory in 0..data.trajectories() {
        let rows: Vec<_> = data
            .trajectory(trajectory)
            .map(|row| model.unscaled(data.observations().row(row)))
            .collect();
        lengths.extend(rows.windows(2).map(|pair| {
            pair[0].iter().zip(&pair[1]).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
        }));
    }
    lengths.retain(|&length| length > 0.0);
    lengths.sort_by(f32::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(1.0)
}
