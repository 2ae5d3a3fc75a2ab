//! The ant against MuJoCo's Python bindings: `reference/make_ant_maze.py` builds the same models in
//! its own way and says what became of them.

mod simulator;

use std::collections::BTreeMap;

use cm_envs::ant_maze::{ACTION, Ant, Maze, STATE};
use serde::Deserialize;
use simulator::mujoco;

#[derive(Deserialize)]
struct Reference {
    mujoco: String,
    actions: Vec<f64>,
    every: usize,
    worlds: BTreeMap<String, World>,
}

#[derive(Deserialize)]
struct World {
    start: Vec<f64>,
    states: Vec<f64>,
    /// Everything else is a field of the compiled model.
    #[serde(flatten)]
    fields: BTreeMap<String, Vec<f64>>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference/ant_maze.json")).unwrap()
}

fn maze(name: &str) -> Option<Maze> {
    Maze::ALL.into_iter().find(|maze| maze.to_string() == name)
}

/// The numbers of one field in MuJoCo's textual form of a model, where each element has a line of
/// its own.
fn field(description: &str, name: &str) -> Vec<f64> {
    description
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(' '))
        .flat_map(|line| line.split_whitespace().map(|number| number.parse::<f64>().unwrap()))
        .collect()
}

#[test]
fn models_compile_to_the_same_numbers() {
    let Some(mujoco) = mujoco() else { return };
    let reference = reference();
    assert_eq!(reference.worlds.len(), 4);
    for (name, world) in &reference.worlds {
        let description = Ant::model(&mujoco, maze(name)).unwrap().describe().unwrap();
        assert_eq!(world.fields.len(), 15, "{:?}", world.fields.keys());
        for (key, expected) in &world.fields {
            let found = field(&description, key);
            assert_eq!(found.len(), expected.len(), "{name}, {key}");
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() <= 1e-12, "{name}, {key}: {found} {expected}");
            }
        }
        let mass: f64 = field(&description, "body_mass").iter().sum();
        assert!((mass - 0.911).abs() < 5e-4, "{mass}");
    }
}

#[test]
fn open_loop_trajectories_agree_for_50_steps() {
    let Some(mujoco) = mujoco() else { return };
    let reference = reference();
    if mujoco.version().to_string() != reference.mujoco {
        eprintln!("the reference is of MuJoCo {}, this is {}", reference.mujoco, mujoco.version());
        return;
    }
    let actions: Vec<f32> = reference.actions.iter().map(|&action| action as f32).collect();
    assert_eq!(actions.len(), 50 * ACTION);
    for (name, world) in &reference.worlds {
        let mut ant = Ant::new(&Ant::model(&mujoco, maze(name)).unwrap()).unwrap();
        ant.place(world.start.as_slice().try_into().unwrap()).unwrap();
        let mut expected = world.states.chunks_exact(STATE);
        for (action, step) in actions.chunks_exact(ACTION).zip(1..) {
            ant.step(action).unwrap();
            if step % reference.every == 0 {
                let expected = expected.next().unwrap();
                for (index, (found, expected)) in ant.state().iter().zip(expected).enumerate() {
                    let error = (found - expected).abs();
                    assert!(error < 1e-6, "{name}, step {step}, {index}: {found} {expected}");
                }
            }
        }
        assert!(expected.next().is_none());
    }
}
