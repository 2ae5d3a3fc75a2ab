//! `cm eval`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use cm_envs::Rollout;
use cm_train::{Device, Evaluation, Model, RoadMap, Task};
use serde_json::json;

use super::distance::MAP_STATES;
use super::{RunArguments, data_states, make_parent};
use crate::config::PlanArguments;
use crate::figures::Map;
use crate::words::{map_in_words, trust_in_json};

#[derive(clap::Args)]
#[command(
    after_help = "With --plan the policy acts twice: sent straight to its goals, and from node to \
        node of a road map, which is kept with the model.\n\nExamples:\n  \
        cm eval runs/plane --episodes 500 --figure episodes.png\n  \
        cm eval runs/plane --plan --plan-set nodes=500 --figure walked.png\n  \
        cm eval runs/plane --plan --policy runs/cloned",
    group = clap::ArgGroup::new("road").args(["plan", "map"]).multiple(true)
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArguments,
    /// How many episodes.
    #[arg(long, default_value_t = 1000)]
    episodes: usize,
    /// Their seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plan: PlanArguments,
    /// Where a new road map is made: `cpu`; `cuda` or `cuda:N`, a GPU; `auto`, a GPU if there is one.
    /// Policies act on the CPU.
    #[arg(long, default_value = "cpu", requires = "plan")]
    device: Device,
    /// Walk this road map, which must be one of the model and its data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "plan_set"])]
    map: Option<PathBuf>,
    /// Let the policy of this run walk the road map, its best one or with --last its last, such as
    /// one that learned to reach goals nearby.
    #[arg(long, value_name = "RUN", requires = "road")]
    policy: Option<PathBuf>,
    /// Draw the first episodes here (png or svg), on the road map if there is one.
    #[arg(long)]
    figure: Option<PathBuf>,
    /// How many episodes it shows.
    #[arg(long, default_value_t = 12, requires = "figure")]
    drawn: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An evaluation, the road map that was walked, and how long the episodes took.
struct Found {
    evaluation: Evaluation,
    map: Option<RoadMap>,
    seconds: f64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = arguments.run.model()?;
    let other = arguments.policy.as_deref().map(|run| arguments.run.other(run)).transpose()?;
    let policy = other.as_ref().unwrap_or(&model);
    let task = model.settings().task.open().context("the task of the run")?;
    let paths = if arguments.figure.is_some() { arguments.drawn } else { 0 };
    let plan = Rollout { episodes: arguments.episodes.max(1), seed: arguments.seed, paths };
    let map = arguments.road_map(&model, &task)?;
    let mut found = vec![act(&model, policy, &task, None, &plan)?];
    if map.is_some() {
        found.push(act(&model, policy, &task, map, &plan)?);
    }
    if let Some(figure) = &arguments.figure {
        make_parent(figure)?;
        draw(&model, policy, &task, &found[found.len() - 1], arguments.drawn).save(figure)?;
    }
    if arguments.json {
        let mut all = found.iter().map(as_json);
        let mut straight = all.next().unwrap_or_default();
        if let Some(planned) = all.next() {
            straight["planned"] = planned;
        }
        println!("{}", serde_json::to_string_pretty(&straight)?);
    } else {
        found.iter().for_each(print);
    }
    Ok(())
}

impl Arguments {
    fn road_map(&self, model: &Model, task: &Task) -> anyhow::Result<Option<RoadMap>> {
        if let Some(file) = &self.map {
            return Ok(Some(RoadMap::load(file, model, task)?));
        }
        match self.plan.settings(model.settings().plan)? {
            Some(settings) => self.run.road_map(self.device, model, task, &settings).map(Some),
            None => Ok(None),
        }
    }
}

fn act(
    model: &Model,
    policy: &Model,
    task: &Task,
    map: Option<RoadMap>,
    plan: &Rollout,
) -> anyhow::Result<Found> {
    let started = Instant::now();
    let evaluation = match &map {
        Some(map) => model.evaluate_with(policy, map, task.world()?, plan)?,
        None => policy.evaluate(task.world()?, plan)?,
    };
    Ok(Found { evaluation, map, seconds: started.elapsed().as_secs_f64() })
}

/// What a picture shows.
struct Drawn {
    title: String,
    places: Vec<[f32; 2]>,
    roads: Vec<[[f32; 2]; 2]>,
    walls: Vec<[[f32; 2]; 2]>,
    goals: Vec<[f32; 2]>,
    paths: Vec<Vec<[f32; 2]>>,
}

fn draw(model: &Model, policy: &Model, task: &Task, found: &Found, most: usize) -> Drawn {
    let outcomes = &found.evaluation.outcomes;
    let drawn = &outcomes[..most.min(outcomes.len())];
    let place = |state: &[f32]| [state[0], state[1]];
    let (places, roads) = match &found.map {
        None => (data_states(model, task, MAP_STATES).iter().map(|s| place(s)).collect(), vec![]),
        Some(map) => {
            let nodes = map.nodes().chunks_exact(model.dimensions().state());
            let nodes: Vec<_> = nodes.map(place).collect();
            let ends =
                |&(from, to, _): &(u32, u32, f32)| [nodes[from as usize], nodes[to as usize]];
            let roads = map.links().iter().map(ends).collect();
            (nodes, roads)
        }
    };
    let s = if drawn.len() == 1 { "" } else { "s" };
    let [metric, method] = [model, policy].map(|of| of.settings().method.method().title());
    let on = match &found.map {
        None => String::new(),
        Some(_) if metric == method => " on its road map".to_owned(),
        Some(_) => format!(" on the road map of {metric}"),
    };
    Drawn {
        title: format!("{} episode{s} of {method}{on}", drawn.len()),
        places,
        roads,
        walls: task.world.as_ref().map_or(Vec::new(), |world| world.walls()),
        goals: drawn.iter().map(|outcome| place(&outcome.goal)).collect(),
        paths: drawn.iter().map(|outcome| outcome.path.clone()).collect(),
    }
}

impl Drawn {
    fn save(&self, file: &std::path::Path) -> anyhow::Result<()> {
        let map = Map {
            title: &self.title,
            places: &self.places,
            values: None,
            steps: None,
            roads: &self.roads,
            walls: &self.walls,
            goals: &self.goals,
            paths: &self.paths,
        };
        Ok(map.save(file)?)
    }
}

fn standard_error(evaluation: &Evaluation) -> f64 {
    let Evaluation { success, outcomes, .. } = evaluation;
    (success * (1.0 - success) / outcomes.len() as f64).sqrt()
}

fn print(found: &Found) {
    let evaluation = &found.evaluation;
    println!(
        "{}success {:.1} % (standard error {:.1}) over {} episodes, {:.0} steps on average, \
         {:.1} s",
        if found.map.is_some() { "planned: " } else { "" },
        100.0 * evaluation.success,
        100.0 * standard_error(evaluation),
        evaluation.outcomes.len(),
        evaluation.mean_steps,
        found.seconds,
    );
    if !evaluation.tasks.is_empty() {
        let tasks = evaluation.tasks.iter().map(|success| format!("{:.1}", 100.0 * success));
        println!("  tasks: {} %", tasks.collect::<Vec<_>>().join(", "));
    }
    if let Some(walked) = evaluation.walked {
        let s = if walked.no_way == 1 { "" } else { "s" };
        println!(
            "  {} episode{s} without a way, which went straight; {} new ways looked for",
            walked.no_way, walked.replanned
        );
    }
    if let Some(text) = found.map.as_ref().and_then(map_in_words) {
        println!("  {text}");
    }
}

fn as_json(found: &Found) -> serde_json::Value {
    let evaluation = &found.evaluation;
    let walked = evaluation.walked;
    let mut value = json!({
        "episodes": evaluation.outcomes.len(),
        "success": evaluation.success,
        "standard_error": standard_error(evaluation),
        "mean_steps": evaluation.mean_steps,
        "seconds": found.seconds,
    });
    if !evaluation.tasks.is_empty() {
        value["tasks"] = json!(evaluation.tasks);
    }
    if let Some(walked) = walked {
        value["no_way"] = json!(walked.no_way);
        value["replanned"] = json!(walked.replanned);
    }
    if let Some(map) = &found.map {
        let [link, reach] = map.lengths();
        value["map"] = json!({ "links": map.links().len(), "link": link, "reach": reach });
        if let Some(trust) = map.trust() {
            value["map"]["trust"] = trust_in_json(trust);
        }
    }
    value
}
