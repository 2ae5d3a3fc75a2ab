//! Data sets that OGBench's script collected, collected again by the draws it wrote down.

use std::collections::VecDeque;

use cm_envs::Error;
use cm_envs::ogbench::{Behaviour, Body, Chance, Collected, Collector, Maze, OgTask};
use serde_json::Value;

use crate::files::{Tensors, world};
use crate::simulator::mujoco;

/// Chance as it came out.
struct Recorded {
    start: Vec<f64>,
    goals: VecDeque<[f64; 2]>,
    directions: VecDeque<[f64; 2]>,
    noise: VecDeque<f64>,
    exits: VecDeque<usize>,
}

impl Chance for Recorded {
    fn start(&mut self, body: &mut Body) -> Result<(), Error> {
        body.place(&self.start)
    }

    fn goal(&mut self) -> [f64; 2] {
        self.goals.pop_front().expect("a goal was written down")
    }

    fn direction(&mut self) -> [f64; 2] {
        self.directions.pop_front().expect("a direction was written down")
    }

    fn noise(&mut self, normals: &mut [f64]) {
        for normal in normals {
            *normal = self.noise.pop_front().expect("noise was written down");
        }
    }

    fn exit(&mut self) -> usize {
        self.exits.pop_front().expect("an exit was written down")
    }
}

fn place(value: &Value) -> [f64; 2] {
    [0, 1].map(|index| value[index].as_f64().unwrap())
}

fn exit(place: [f64; 2]) -> usize {
    let exits = Maze::Teleport.teleports().unwrap().exits;
    exits.iter().position(|cell| cell.center() == place).unwrap()
}

#[test]
fn collections_are_those_of_ogbench_to_the_last_bit() {
    let Some(mujoco) = mujoco() else { return };
    let mut rows_compared = 0;
    for file in Tensors::files(|file| file.metadata.contains_key("events")) {
        let name = &file.name;
        let Some((agent, maze)) = world(&file.metadata["env"], name) else { continue };
        let kind = &file.metadata["dataset_type"];
        let behaviour = Behaviour::ALL.into_iter().find(|found| found.name() == kind).unwrap();
        let task = OgTask { agent, maze, behaviour };
        let collector = Collector::new(&mujoco, task, 0).unwrap();
        let length: usize = file.metadata["max_episode_steps"].parse().unwrap();
        let deviation: f64 = file.metadata["noise_level"].parse().unwrap();
        let events: Vec<Value> = serde_json::from_str(&file.metadata["events"]).unwrap();

        let both = |key: &str| {
            let mut rows = file.floats(&format!("train/{key}"));
            if file.has(&format!("val/{key}")) {
                rows.extend(file.floats(&format!("val/{key}")));
            }
            rows
        };
        let (seen, actions) = (both("observations"), both("actions"));
        let (positions, velocities) = (both("qpos"), both("qvel"));
        let mut terminals = file.bytes("train/terminals");
        if file.has("val/terminals") {
            terminals.extend(file.bytes("val/terminals"));
        }
        let noise = file.doubles("noise");
        let directions = if behaviour == Behaviour::Explore {
            file.doubles("raw_directions")
        } else {
            Vec::new()
        };
        let mut directions: VecDeque<[f64; 2]> =
            directions.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        assert_eq!(terminals.len() % length, 0);
        for episode in 0..terminals.len() / length {
            let rows = episode * length..(episode + 1) * length;
            let within = |event: &&Value| rows.contains(&(event["row"].as_u64().unwrap() as usize));
            let of_kind = |start: &'static str| {
                let events = events.iter().filter(within);
                events.filter(move |event| event["kind"].as_str().unwrap().starts_with(start))
            };
            let reset = of_kind("reset").next().unwrap();
            let goals: Vec<_> = of_kind("reset").chain(of_kind("new goal")).collect();
            let velocity = &velocities[rows.start * 2..][..2];
            let start = place(&reset["init_xy"]).into_iter();
            let start = start.chain(velocity.iter().map(|&x| f64::from(x))).collect();
            let width = agent.action_width();
            let mut recorded = Recorded {
                start,
                goals: goals.iter().map(|goal| place(&goal["goal_xy"])).collect(),
                directions: directions.drain(..length.div_ceil(10).min(directions.len())).collect(),
                // The draws have the deviation already.
                noise: noise[rows.start * width..rows.end * width].iter().copied().collect(),
                exits: of_kind("teleported").map(|event| exit(place(&event["out_xy"]))).collect(),
            };
            // One more may be chosen in the last row, and is then never gone to.
            recorded.goals.push_back([0.0, 0.0]);
            let found = collector.collect_by(&mut recorded, length, 1.0, |_, _| ()).unwrap();
            assert!(deviation == task.noise() || behaviour == Behaviour::Explore);
            let what = format!("{name}, episode {episode}");
            let Collected { observations, actions: done, .. } = &found;
            assert!(*observations == seen[rows.start * 2..rows.end * 2], "{what}: observations");
            assert!(*done == actions[rows.start * 2..rows.end * 2], "{what}: actions");
            assert!(found.positions == positions[rows.start * 2..rows.end * 2], "{what}: qpos");
            assert!(found.velocities == velocities[rows.start * 2..rows.end * 2], "{what}: qvel");
            let numbers = |events: Vec<&Value>| -> Vec<usize> {
                events.iter().map(|e| e["row"].as_u64().unwrap() as usize - rows.start).collect()
            };
            let mut switched: Vec<usize> = found.goals.iter().map(|goal| goal.0).collect();
            switched.retain(|&row| row < length);
            assert_eq!(switched, numbers(goals), "{what}");
            assert_eq!(found.teleported, numbers(of_kind("teleported").collect()), "{what}");
            assert!(terminals[rows.clone()].iter().rev().skip(1).all(|&end| end == 0), "{what}");
            assert_eq!(terminals[rows.end - 1], 1);
            rows_compared += length;
        }
    }
    assert!(rows_compared > 1000, "{rows_compared}");
}
