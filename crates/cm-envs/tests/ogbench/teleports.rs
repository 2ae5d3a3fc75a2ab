//! Teleports.

use std::collections::BTreeMap;

use cm_envs::ogbench::{Agent, Body, Maze};
use cm_random::Philox;
use serde_json::Value;

use crate::files::{json_files, model_as_of};
use crate::simulator::mujoco;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn near(found: &[f64], wanted: &[f64]) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6)
}

#[test]
fn teleports_lead_where_ogbenchs_do_and_are_seen_a_step_later() {
    let Some(mujoco) = mujoco() else { return };
    let mut teleported = 0;
    for (file, content) in json_files("cases") {
        let version = content["mujoco"].as_str().unwrap();
        for (number, case) in content["cases"].as_array().unwrap().iter().enumerate() {
            let agent = match case["agent"].as_str().unwrap() {
                "point" => Agent::Point,
                "ant" => Agent::Ant,
                other => panic!("{file}: {other}"),
            };
            let what = format!("case {number} of {file}");
            let maze = Maze::Teleport;
            let Some(model) = model_as_of(&mujoco, version, &what, agent, maze) else { continue };
            let mut body = Body::of_model(&model, agent, maze).unwrap();
            body.place(&[numbers(&case["qpos0"]), numbers(&case["qvel0"])].concat()).unwrap();
            let exit = case["out_index"].as_u64().unwrap() as usize;
            for (step, action) in case["actions"].as_array().unwrap().iter().enumerate() {
                let moved = body.step(&numbers(action), || exit).unwrap();
                let wanted = case["teleported"][step].as_bool().unwrap();
                assert_eq!(moved.teleported, wanted, "{what}, step {step}");
                let seen = numbers(&case["observations"][step + 1]);
                let after = numbers(&case["xy_after_step"][step + 1]);
                assert!(near(body.observation(), &seen), "{what}, step {step}: {body:?} {seen:?}");
                assert!(near(&body.xy(), &after), "{what}, step {step}: {body:?} {after:?}");
                assert!(near(&moved.place, &seen[..2]));
                teleported += usize::from(moved.teleported);
            }
        }
    }
    assert!(teleported >= 6, "{teleported}");
}

/// Each exit with probability 1/3, whichever entrance it was.
#[test]
fn exits_are_drawn_uniformly() {
    let Some(mujoco) = mujoco() else { return };
    let task = "pointmaze-teleport-navigate-v0".parse().unwrap();
    let maze = cm_envs::ogbench::OgMaze::new(&mujoco, task).unwrap();
    let mut counts = BTreeMap::new();
    let episodes = 600;
    for number in 0..episodes {
        use cm_envs::Env;
        let random = Philox::new(4).stream(number, 7);
        let start = if number % 2 == 0 { [20.0, 13.6] } else { [0.0, 14.4] };
        let toward = if number % 2 == 0 { -1.0 } else { 1.0 };
        let mut episode = maze.begin_at(start, [0.0, 24.0], random).unwrap();
        // The first step leads within reach, the second shows where that led.
        maze.step(&mut episode, &[0.0, toward]).unwrap();
        let [x, y] = maze.position(&episode);
        *counts.entry([x as i32, y as i32]).or_insert(0) += 1;
        let mut seen = [0.0; 2];
        maze.observe(&mut episode, &mut seen);
        assert!((f64::from(seen[0]) - start[0]).abs() < 0.01, "{seen:?}");
    }
    let exits: Vec<_> = counts.keys().copied().collect();
    assert_eq!(exits, [[0, 20], [24, 0], [36, 20]]);
    // Five standard deviations of a binomial number.
    assert!(counts.values().all(|&count| (count - 200_i32).abs() < 58), "{counts:?}");
}
