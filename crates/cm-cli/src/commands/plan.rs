//! `cm plan`.

use std::path::PathBuf;

use anyhow::bail;
use cm_train::{GreedyPath, Links, Model, Planner, RoadMap, Task};
use serde_json::json;

use super::distance::MAP_STATES;
use super::{Axes, RunArguments, data_states, make_parent};
use crate::figures::Map;
use crate::states::{Lazy, Named};
use crate::words::{in_json, in_words, map_in_words, trust_in_json, warning};

#[derive(clap::Args)]
#[command(
    after_help = "The path is the shortest one over states of the data, along links that some trajectory took. For runs without such links \
        (those of the paper's environments), \
        it is the shortest one over the road map that `cm eval --plan` or `cm train --plan` has kept; \
        --link composes it of moves within --radius; --greedy always goes to where the learned distance to the \
        goal is least, and may stop half way. A path that does not arrive is an error.\n\n\
        Examples:\n  cm plan runs/walks --from -10,0 --to 0,10 --figure plan.png\n  \
        cm plan runs/plane --from -20,0 --to 0,20 --radius 3 --link 3\n  \
        cm plan runs/plane --from -20,0 --to 0,20 --greedy"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// The state to start from: its numbers separated by commas, or TRAJECTORY:STEP of the data.
    #[arg(long, value_name = "STATE", allow_hyphen_values = true)]
    from: Named,
    /// The state to get to.
    #[arg(long, value_name = "STATE", allow_hyphen_values = true)]
    to: Named,
    /// Compose the path of moves no longer than this by the learned distance, whether the data took
    /// them or not.
    #[arg(long, value_name = "DISTANCE", conflicts_with = "greedy")]
    link: Option<f32>,
    /// Go down the learned distance to the goal from state to state.
    #[arg(long)]
    greedy: bool,
    /// How far one move may go with --link or --greedy; five times the data's median step if not
    /// given.
    #[arg(long)]
    radius: Option<f32>,
    /// How near to the goal is near enough for --greedy; the radius if not given.
    #[arg(long, requires = "greedy")]
    arrived: Option<f32>,
    /// The longest path of --greedy.
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
/// Moves no longer than this by the learned distance, if nothing says otherwise.
const LINK: f32 = 3.0;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let lazy = Lazy::new(&model);
    let from = lazy.state("--from", &arguments.from)?;
    let to = lazy.state("--to", &arguments.to)?;
    let (path, map) = find(arguments, &lazy, &model, &from, &to)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&as_json(&model, &path, map.as_ref()))?);
    } else {
        print(&model, &path);
        map.as_ref().and_then(map_in_words).iter().for_each(|text| println!("{text}"));
    }
    if let Some(file) = &arguments.figure {
        arguments.axes.check(model.dimensions().state())?;
        make_parent(file)?;
        let states = data_states(&model, lazy.task()?, MAP_STATES);
        let distances = model.distances_to(&states.concat(), &to)?;
        let show = |state: &Vec<f32>| arguments.axes.of(state);
        let map = Map {
            title: &format!("Path by {}", model.settings().method.method().title()),
            places: &states.iter().map(show).collect::<Vec<_>>(),
            values: Some(&distances),
            steps: model.calibration(),
            roads: &[],
            walls: &[],
            goals: &[arguments.axes.of(&to)],
            paths: &[path.states.iter().map(show).collect()],
        };
        map.save(file)?;
    }
    if !path.arrived {
        let moves = path.states.len() - 1;
        match model.roads() {
            Some(_) if !arguments.greedy && arguments.link.is_none() => {
                bail!("no way: no chain of trajectories leads from {from:?} to {to:?}")
            }
            _ => bail!(
                "the path does not arrive: after {moves} moves no move within the radius leads \
                 nearer"
            ),
        }
    }
    Ok(())
}

/// The path, and the kept map if it is over that.
fn find(
    arguments: &Arguments,
    lazy: &Lazy<'_>,
    model: &Model,
    from: &[f32],
    to: &[f32],
) -> anyhow::Result<(GreedyPath, Option<RoadMap>)> {
    let composed = model.roads().is_some();
    if composed && !arguments.greedy && arguments.link.is_none() && arguments.radius.is_none() {
        return Ok((model.path(from, to)?, None));
    }
    let by_map = !arguments.greedy && arguments.link.is_none() && arguments.radius.is_none();
    if let Some(map) = arguments.run.kept_map(model)?.filter(|_| by_map) {
        return Ok((first(map.paths(model, from, to)?)?, Some(map)));
    }
    let task = lazy.task()?;
    let radius = arguments.radius.unwrap_or_else(|| 5.0 * median_step(model, task));
    let paths = if arguments.greedy || !model.is_quasimetric() {
        let (longest, arrived) = (arguments.longest, arguments.arrived.unwrap_or(radius));
        let places = data_states(model, task, MAP_STATES).concat();
        Planner { radius, longest, arrived }.paths(model, &places, from, to)?
    } else {
        let places = data_states(model, task, LINKED_STATES).concat();
        let longest = arguments.link.unwrap_or(LINK);
        RoadMap::new(model, &places, Links { radius, longest })?.paths(model, from, to)?
    };
    Ok((first(paths)?, None))
}

fn first(paths: Vec<GreedyPath>) -> anyhow::Result<GreedyPath> {
    let first = paths.into_iter().next();
    first.ok_or_else(|| anyhow::anyhow!("--from: expected a state, found none"))
}

fn print(model: &Model, path: &GreedyPath) {
    for (state, &distance) in path.states.iter().zip(&path.distances) {
        println!("{state:?}  {} to go", in_words(model, distance));
    }
    let moves = path.states.len() - 1;
    if path.arrived {
        let whole = in_words(model, path.distances[0]);
        let s = if moves == 1 { "" } else { "s" };
        println!("arrived after {moves} move{s}, {:.2} long: {whole}", path.length());
    }
    warning(model).iter().for_each(|warning| println!("{warning}"));
}

fn as_json(model: &Model, path: &GreedyPath, map: Option<&RoadMap>) -> serde_json::Value {
    let number = |&distance: &f32| if distance.is_finite() { json!(distance) } else { json!(null) };
    let mut value = json!({
        "arrived": path.arrived,
        "length": path.length(),
        "states": path.states,
        "distances": path.distances.iter().map(number).collect::<Vec<_>>(),
        "steps": in_json(model, path.distances[0]),
        "read_out": model.read_out().to_string(),
    });
    if let Some(trust) = map.and_then(RoadMap::trust) {
        value["trust"] = trust_in_json(trust);
    }
    value
}

/// The median length of a step of the data, in its own units.
fn median_step(model: &Model, task: &Task) -> f32 {
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
