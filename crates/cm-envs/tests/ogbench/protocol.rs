//! The evaluation's rules and the recipes' own draws.

use cm_envs::ogbench::{Agent, Behaviour, Body, Collector, Maze, Navigator, OgMaze, OgTask};
use cm_envs::{Env, Error, Rollout, rollout, task_success_rates};
use cm_random::{Philox, Stream};

use crate::simulator::mujoco;

fn stream(number: u64) -> Stream {
    Philox::new(9).stream(number, 3)
}

fn task(name: &str) -> OgTask {
    name.parse().unwrap()
}

#[test]
fn starts_and_goals_are_within_one_of_their_cells_centres() {
    let Some(mujoco) = mujoco() else { return };
    for name in ["pointmaze-giant-navigate-v0", "antmaze-medium-explore-v0"] {
        let maze = OgMaze::new(&mujoco, task(name)).unwrap();
        let width = maze.observation_width();
        let mut extremes = [f64::MAX, f64::MIN];
        for number in 0..60 {
            let which = number as usize % 5;
            let mut episode = maze.begin_task(which, stream(number)).unwrap();
            let (mut seen, mut goal) = (vec![0.0; width], vec![0.0; width]);
            maze.observe(&mut episode, &mut seen);
            maze.goal(&episode, &mut goal);
            let cells = maze.task().maze.task(which);
            for (found, cell) in [&seen, &goal].into_iter().zip(cells) {
                for (x, middle) in found.iter().zip(cell.center()) {
                    let off = f64::from(*x) - middle;
                    assert!(off.abs() <= 1.0 + 1e-5, "{name}: {found:?} {cell:?}");
                    extremes = [extremes[0].min(off), extremes[1].max(off)];
                }
            }
            assert!(!maze.succeeded(&episode));
            if width == 29 {
                let norm = |state: &[f32]| state[3..7].iter().map(|x| x * x).sum::<f32>().sqrt();
                // A goal's posture is one after steps, whose quaternions are of length 1; a start's
                // is as it was drawn.
                assert!((norm(&goal) - 1.0).abs() < 1e-5);
                assert!((norm(&seen) - 1.0).abs() < 0.2);
                assert!(goal[15..].iter().any(|velocity| velocity.abs() > 0.1));
            }
        }
        assert!(extremes[0] < -0.9 && extremes[1] > 0.9, "{extremes:?}");
    }
    // Quaternions are not normalised at a reset.
    let mut ant = Body::new(&mujoco, Agent::Ant, Maze::Medium).unwrap();
    let norms = (0..20).map(|number| {
        ant.reset([0.0, 0.0], &mut stream(number)).unwrap();
        ant.observation()[3..7].iter().map(|x| x * x).sum::<f64>().sqrt()
    });
    assert!(norms.into_iter().any(|norm| (norm - 1.0).abs() > 0.03));
}

#[test]
fn evaluation_clips_actions_and_goes_through_the_tasks_in_turn() {
    let Some(mujoco) = mujoco() else { return };
    let maze = OgMaze::new(&mujoco, task("pointmaze-medium-navigate-v0")).unwrap();
    let mut episode = maze.begin_at([0.0, 0.0], [20.0, 20.0], stream(1)).unwrap();
    maze.step(&mut episode, &[9.0, 0.0]).unwrap();
    assert!((f64::from(maze.position(&episode)[0]) - 0.2).abs() < 1e-6);
    assert!(matches!(maze.step(&mut episode, &[f32::NAN, 0.0]), Err(Error::Action { .. })));

    // The oracle without noise, to the goal itself once in its cell: all arrive, in about the
    // steps that were written down for ten such episodes.
    let navigator = Navigator::new(Maze::Medium);
    let plan = Rollout { episodes: 20, seed: 3, paths: 0 };
    let outcomes = rollout(&maze, &plan, |seen, goals, actions| {
        for row in 0..seen.len() / 2 {
            let [place, goal] =
                [seen, goals].map(|all| [all[2 * row], all[2 * row + 1]].map(f64::from));
            let there = Maze::Medium.cell(place) == Maze::Medium.cell(goal);
            let aim = if there { goal } else { navigator.subgoal(place, goal) };
            let (x, y) = (aim[0] - place[0], aim[1] - place[1]);
            let length = x.hypot(y).max(1e-6);
            actions[2 * row] = (x / length) as f32;
            actions[2 * row + 1] = (y / length) as f32;
        }
        Ok::<(), Error>(())
    });
    let outcomes = outcomes.unwrap();
    assert_eq!(task_success_rates(&outcomes, 5), [1.0; 5]);
    let tasks: Vec<usize> = outcomes.iter().map(|outcome| outcome.task).collect();
    assert_eq!(tasks[..6], [0, 1, 2, 3, 4, 0]);
    for (number, wanted) in [162.0, 161.0, 91.0, 154.0, 131.0].into_iter().enumerate() {
        let steps = outcomes.iter().filter(|outcome| outcome.task == number);
        let mean = steps.map(|outcome| outcome.steps as f64).sum::<f64>() / 4.0;
        assert!((mean - wanted).abs() < 12.0, "task {number}: {mean}, about {wanted}");
    }
}

#[test]
fn goals_outside_the_maze_are_refused() {
    let Some(mujoco) = mujoco() else { return };
    let maze = OgMaze::new(&mujoco, task("pointmaze-medium-navigate-v0")).unwrap();
    for goal in [[100.0, 0.0], [-4.0, 0.0], [-90.0, 0.0], [8.0, 0.0], [f64::NAN, 0.0]] {
        let message = maze.begin_at([0.0, 0.0], goal, stream(0)).unwrap_err().to_string();
        assert!(message.starts_with("goal: expected a place within the maze medium"), "{message}");
    }
    let error = "pointmaze-huge-navigate-v0".parse::<OgTask>().unwrap_err().to_string();
    assert!(error.contains("pointmaze-huge") && error.contains("antmaze-teleport-explore-v0"));
}

/// The recipe's statistics, as another version of it gave them in a dozen episodes.
#[test]
fn collected_episodes_reach_about_as_many_goals_as_elsewhere() {
    let Some(mujoco) = mujoco() else { return };
    let measured = [(Maze::Medium, 9.2), (Maze::Large, 5.0), (Maze::Teleport, 4.7)];
    for (maze, wanted) in measured {
        let task = OgTask { agent: Agent::Point, maze, behaviour: Behaviour::Navigate };
        let collector = Collector::new(&mujoco, task, 5).unwrap();
        let reached = (0..24).map(|number| {
            let episode = collector.collect(number, task.rows(), |_, _| ()).unwrap();
            assert_eq!(episode.observations.len(), 2 * 1001);
            episode.reached.len() as f64
        });
        let mean = reached.sum::<f64>() / 24.0;
        assert!((mean - wanted).abs() < 2.2, "{maze}: {mean}, about {wanted}");
    }
    let task = task("pointmaze-medium-stitch-v0");
    let collector = Collector::new(&mujoco, task, 5).unwrap();
    let episodes: Vec<_> =
        (0..60).map(|k| collector.collect(k, task.rows(), |_, _| ()).unwrap()).collect();
    let arrived = episodes.iter().filter(|episode| !episode.reached.is_empty()).count();
    assert!(arrived >= 54, "{arrived}");
    assert!(episodes.iter().all(|episode| episode.goals.len() == 1));
    assert_eq!(collector.collect(7, 50, |_, _| ()).unwrap().actions, episodes[7].actions[..100]);
}
