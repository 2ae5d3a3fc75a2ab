//! Open-loop runs.

use cm_envs::ogbench::{Agent, Body, Maze};

use crate::files::{Tensors, model_as_of, world};
use crate::simulator::mujoco;

const TOLERANCE: f64 = 1e-6;

fn assert_row(what: &str, found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() < TOLERANCE, "{what}, {index}: {found}, expected {wanted}");
    }
}

#[test]
fn trajectories_are_those_of_ogbench() {
    let Some(mujoco) = mujoco() else { return };
    let mut followed = 0;
    for file in Tensors::files(|file| file.has("qpos0")) {
        let (name, version) = (&file.name, &file.metadata["mujoco"]);
        let environment = file.metadata["about"].split([':', ',']).next().unwrap().to_owned();
        let Some((agent, maze)) = world(&environment, name) else { continue };
        let Some(model) = model_as_of(&mujoco, version, name, agent, maze) else { continue };
        let mut body = Body::of_model(&model, agent, maze).unwrap();
        body.place(&[file.doubles("qpos0"), file.doubles("qvel0")].concat()).unwrap();
        let seen = file.doubles("observations");
        let mut seen = seen.chunks_exact(agent.observation_width());
        assert_row(name, body.observation(), seen.next().unwrap());
        let actions = file.doubles("actions");
        for (step, action) in actions.chunks_exact(agent.action_width()).enumerate() {
            let moved = body.step(action, || panic!("{name}: a teleport")).unwrap();
            let what = format!("{name}, step {step}");
            assert_row(&what, body.observation(), seen.next().unwrap());
            if file.has("success") {
                let [goal, success] = ["goal", "success"].map(|key| file.doubles(key));
                let away = (moved.place[0] - goal[0]).hypot(moved.place[1] - goal[1]);
                assert_eq!(away <= agent.success_radius(), success[step] == 1.0, "{what}");
                let state = [("qpos", agent.positions()), ("qvel", agent.velocities())];
                let state = state
                    .map(|(key, width)| file.doubles(key)[(step + 1) * width..][..width].to_vec());
                assert_row(&what, body.state(), &state.concat());
            }
        }
        assert!(seen.next().is_none());
        followed += 1;
    }
    assert!(followed >= 4, "{followed}");
}

/// Numbers that were written down with the rules: the observation after so many steps of the same
/// action from rest.
#[test]
fn the_point_moves_and_is_stopped_by_walls_as_written_down() {
    let Some(mujoco) = mujoco() else { return };
    type Row = ([f64; 2], [f64; 2], [(usize, [f64; 2]); 5]);
    let table: [Row; 3] = [
        (
            [0.0, 0.0],
            [1.0, 0.3],
            [
                (1, [0.2, 0.06]),
                (5, [1.0, 0.3]),
                (20, [4.0, 1.2]),
                (30, [5.322662, 1.731791]),
                (60, [5.343077, 3.547770]),
            ],
        ),
        (
            [0.0, 0.0],
            [-0.5, -1.0],
            [
                (1, [-0.1, -0.2]),
                (5, [-0.5, -1.0]),
                (20, [-1.246709, -1.340634]),
                (30, [-1.246657, -1.340709]),
                (60, [-1.246652, -1.341221]),
            ],
        ),
        (
            [0.5, 3.2],
            [1.5, 0.0],
            [
                (1, [0.8, 3.2]),
                (5, [2.0, 3.2]),
                (20, [5.364552, 3.2]),
                (30, [5.364615, 3.2]),
                (60, [5.364615, 3.2]),
            ],
        ),
    ];
    for (start, action, rows) in table {
        let mut point = Body::new(&mujoco, Agent::Point, Maze::Medium).unwrap();
        point.place(&[start[0], start[1], 0.0, 0.0]).unwrap();
        let mut steps = 0;
        for (step, wanted) in rows {
            while steps < step {
                point.step(&action, || 0).unwrap();
                steps += 1;
            }
            assert_row(&format!("{action:?}, step {step}"), point.observation(), &wanted);
        }
    }
}
