//! `cm distance`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_train::Model;
use serde_json::json;

use super::{Axes, RunArguments, data_states, make_parent};
use crate::figures::Map;
use crate::states::{Lazy, Named, Numbers};
use crate::words::{in_json, in_words, warning};

#[derive(clap::Args)]
#[command(
    after_help = "The first --from goes with the first --to and so on; one of either goes with all of the other.\n\nExamples:\n  \
        cm distance runs/plane --from -20,0 --to 20,0 --both-ways\n  \
        cm distance runs/walks --from 12:40 --to 3.5,-1\n  \
        cm distance runs/walks --from 0,0 --to 3,4 --action 1,0 --goal-action 0,1\n  \
        cm distance runs/plane --to 20,0 --map map.png"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// A state to start from: its numbers separated by commas, or TRAJECTORY:STEP of the data.
    #[arg(long, value_name = "STATE", allow_hyphen_values = true)]
    from: Vec<Named>,
    /// A state to get to.
    #[arg(long, value_name = "STATE", required = true, allow_hyphen_values = true)]
    to: Vec<Named>,
    /// The action at the start: the distance that the method itself learns, between states with
    /// actions. The policy's if only --goal-action is given.
    #[arg(long, value_name = "ACTION", allow_hyphen_values = true)]
    action: Option<Numbers>,
    /// The action at the goal; the mean over some of the data's if only --action is given.
    #[arg(long, value_name = "ACTION", allow_hyphen_values = true)]
    goal_action: Option<Numbers>,
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
    let lazy = Lazy::new(&model);
    let states = |what: &str, named: &[Named]| -> anyhow::Result<Vec<Vec<f32>>> {
        named.iter().map(|named| lazy.state(what, named)).collect()
    };
    let (from, to) = (states("--from", &arguments.from)?, states("--to", &arguments.to)?);
    let pairs = pairs(&from, &to)?;
    if !pairs.is_empty() {
        let measure = |from: &[&[f32]], to: &[&[f32]]| -> anyhow::Result<Vec<f32>> {
            if arguments.action.is_none() && arguments.goal_action.is_none() {
                return Ok(model.distances(&from.concat(), &to.concat())?);
            }
            let rows = from.iter().zip(to);
            rows.map(|(from, to)| with_actions(arguments, &lazy, &model, from, to)).collect()
        };
        let (from, to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let there = measure(&from, &to)?;
        let back = if arguments.both_ways { Some(measure(&to, &from)?) } else { None };
        print(arguments, &model, &pairs, &there, back.as_deref())?;
    }
    if let (Some(file), Some(goal)) = (&arguments.map, to.first()) {
        draw(arguments, &lazy, &model, goal, file)?;
        if !arguments.json {
            println!("{}", file.display());
        }
    }
    Ok(())
}

fn print(
    arguments: &Arguments,
    model: &Model,
    pairs: &[(&[f32], &[f32])],
    there: &[f32],
    back: Option<&[f32]>,
) -> anyhow::Result<()> {
    // With actions it is another distance, which was not calibrated.
    let plain = arguments.action.is_none() && arguments.goal_action.is_none();
    let warning = if plain { warning(model) } else { None };
    let found = pairs.iter().enumerate();
    if arguments.json {
        let number =
            |distance: f32| if distance.is_finite() { json!(distance) } else { json!(null) };
        let all: Vec<_> = found
            .map(|(index, (from, to))| {
                json!({
                    "from": from,
                    "to": to,
                    "distance": number(there[index]),
                    "steps": if plain { in_json(model, there[index]) } else { json!(null) },
                    "back": back.map(|back| number(back[index])),
                    "read_out": if plain { model.read_out().to_string() } else { "actions".to_owned() },
                    "triangle_violations": warning.is_some().then(|| model.violations()),
                })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    let words = |distance: f32| match plain {
        true => in_words(model, distance),
        false => format!("{distance:.4}"),
    };
    for (index, (from, to)) in found {
        let back = back.map(|back| format!("; back {}", words(back[index]))).unwrap_or_default();
        println!("{from:?} to {to:?}: {}{back}", words(there[index]));
    }
    warning.iter().for_each(|warning| println!("{warning}"));
    Ok(())
}

/// The method's own distance, between states with actions.
fn with_actions(
    arguments: &Arguments,
    lazy: &Lazy<'_>,
    model: &Model,
    from: &[f32],
    to: &[f32],
) -> anyhow::Result<f32> {
    let width = model.dimensions().action();
    let given = |what: &str, action: &Option<Numbers>| match action {
        Some(Numbers(numbers)) if numbers.len() != width => {
            bail!("{what}: expected {width} numbers, found {}", numbers.len())
        }
        Some(Numbers(numbers)) => Ok(Some(numbers.clone())),
        None => Ok(None),
    };
    let action = match given("--action", &arguments.action)? {
        Some(action) => action,
        None => model.act(from, to)?,
    };
    let goal_actions: Vec<Vec<f32>> = match given("--goal-action", &arguments.goal_action)? {
        Some(action) => vec![action],
        None => {
            let task = lazy.task()?;
            let rows = task.data.actions();
            let every = (rows.rows() / 16).max(1);
            let rows = (0..rows.rows()).step_by(every).map(|row| rows.row(row));
            rows.map(|row| task.scaling.unscaled_action(row)).collect()
        }
    };
    let count = goal_actions.len();
    let found = model.distances_with_actions(
        (&from.repeat(count), &action.repeat(count)),
        (&to.repeat(count), &goal_actions.concat()),
    )?;
    Ok(found.iter().sum::<f32>() / count as f32)
}

fn draw(
    arguments: &Arguments,
    lazy: &Lazy<'_>,
    model: &Model,
    goal: &[f32],
    file: &Path,
) -> anyhow::Result<()> {
    arguments.axes.check(model.dimensions().state())?;
    let states = data_states(model, lazy.task()?, MAP_STATES);
    let distances = model.distances_to(&states.concat(), goal)?;
    let places: Vec<_> = states.iter().map(|state| arguments.axes.of(state)).collect();
    make_parent(file)?;
    let map = Map {
        title: &format!("Distance to the star by {}", model.settings().method.method().title()),
        places: &places,
        values: Some(&distances),
        steps: model.calibration(),
        roads: &[],
        walls: &[],
        goals: &[arguments.axes.of(goal)],
        paths: &[],
    };
    Ok(map.save(file)?)
}

/// Which states go together.
fn pairs<'a>(
    from: &'a [Vec<f32>],
    to: &'a [Vec<f32>],
) -> anyhow::Result<Vec<(&'a [f32], &'a [f32])>> {
    Ok(match (from, to) {
        ([], _) => Vec::new(),
        ([one], many) => many.iter().map(|to| (&one[..], &to[..])).collect(),
        (many, [one]) => many.iter().map(|from| (&from[..], &one[..])).collect(),
        (from, to) if from.len() == to.len() => {
            from.iter().zip(to).map(|(from, to)| (&from[..], &to[..])).collect()
        }
        _ => bail!("expected as many --to as --from, found {} and {}", to.len(), from.len()),
    })
}
