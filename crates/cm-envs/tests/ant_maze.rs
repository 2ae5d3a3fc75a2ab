//! Every documented fact of AntMaze's evaluation.

mod ant;
mod simulator;

use ant::{at, stream};
use cm_envs::ant_maze::{ACTION, Ant, AntMaze, Cell, Maze, STATE, Task, standing};
use cm_envs::{Env, Rollout, rollout};
use simulator::mujoco;

/// Smallest and largest of many draws in each coordinate.
fn bounds(draws: impl Iterator<Item = [f64; 2]>) -> [[f64; 2]; 2] {
    draws.fold([[f64::INFINITY, f64::NEG_INFINITY]; 2], |bounds, draw| {
        std::array::from_fn(|axis| {
            [bounds[axis][0].min(draw[axis]), bounds[axis][1].max(draw[axis])]
        })
    })
}

#[test]
fn goals_of_the_evaluation_lie_in_their_regions() {
    for (task, region) in [
        (Task::Umaze, [[0.0, 1.5], [8.0, 9.5]]),
        (Task::UmazeDiverse, [[0.0, 1.5], [8.0, 9.5]]),
        (Task::MediumPlay, [[20.0, 21.5], [20.0, 21.5]]),
        (Task::MediumDiverse, [[20.0, 21.5], [20.0, 21.5]]),
        (Task::LargePlay, [[32.0, 33.5], [24.0, 25.5]]),
        (Task::LargeDiverse, [[32.0, 33.5], [24.0, 25.5]]),
    ] {
        let count = 20_000;
        let draws: Vec<_> = (0..count).map(|n| task.draw_goal(&mut stream(n))).collect();
        let found = bounds(draws.iter().copied());
        for axis in 0..2 {
            assert!(found[axis][0] >= region[axis][0] && found[axis][1] <= region[axis][1]);
            assert!(found[axis][0] < region[axis][0] + 0.05, "{task}: {found:?}");
            assert!(found[axis][1] > region[axis][1] - 0.05, "{task}: {found:?}");
            // The sum of two uniform numbers: mean 0.75, variance 1/12 + 1/48.
            let offset = |draw: &[f64; 2]| draw[axis] - region[axis][0];
            let mean = draws.iter().map(offset).sum::<f64>() / count as f64;
            let square = draws.iter().map(|draw| (offset(draw) - 0.75).powi(2)).sum::<f64>();
            assert!((mean - 0.75).abs() < 0.01, "{mean}");
            assert!((square / count as f64 - 5.0 / 48.0).abs() < 0.004, "{square}");
        }
        // The coordinates are independent.
        let product =
            |draw: &[f64; 2]| (draw[0] - region[0][0] - 0.75) * (draw[1] - region[1][0] - 0.75);
        let covariance = draws.iter().map(product).sum::<f64>() / count as f64;
        assert!(covariance.abs() < 0.004, "{covariance}");
    }
}

#[test]
fn episodes_begin_standing_near_the_origin() {
    let states: Vec<_> = (0..2_000).map(|n| standing(&mut stream(n))).collect();
    let range = |index: usize| {
        let numbers = states.iter().map(|state| state[index]);
        numbers
            .fold([f64::INFINITY, f64::NEG_INFINITY], |range, x| [range[0].min(x), range[1].max(x)])
    };
    for (index, middle) in
        [(0, 0.0), (1, 0.0), (2, 0.75)].into_iter().chain((7..15).map(|i| (i, 0.0)))
    {
        let [low, high] = range(index);
        assert!(low >= middle - 0.1 && low < middle - 0.099, "{index}: {low}");
        assert!(high <= middle + 0.1 && high > middle + 0.099, "{index}: {high}");
    }
    for state in &states {
        let norm: f64 = state[3..7].iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-12 && state[3] > 0.9);
    }
    for index in 15..STATE {
        let variance = states.iter().map(|state| state[index] * state[index]).sum::<f64>() / 2e3;
        assert!((variance.sqrt() - 0.1).abs() < 0.006, "{index}: {variance}");
    }
}

#[test]
fn tasks_have_their_widths_horizons_and_names() {
    let Some(mujoco) = mujoco() else { return };
    for (name, horizon) in [
        ("antmaze-umaze-v2", 700),
        ("antmaze-umaze-diverse-v2", 700),
        ("antmaze-medium-play-v2", 1000),
        ("antmaze-medium-diverse-v2", 1000),
        ("antmaze-large-play-v2", 1000),
        ("antmaze-large-diverse-v2", 1000),
    ] {
        let maze = AntMaze::new(&mujoco, name.parse().unwrap()).unwrap();
        assert_eq!((maze.name(), maze.horizon()), (name, horizon));
        assert_eq!((maze.observation_width(), maze.action_width()), (29, 8));
        assert_eq!(maze.goal_columns(), 0..2);
    }
    let short: Task = "medium-play".parse().unwrap();
    assert_eq!(short, Task::MediumPlay);
    let message = "antmaze-huge-v2".parse::<Task>().unwrap_err().to_string();
    assert!(message.contains("`antmaze-huge-v2`") && message.contains("antmaze-large-play-v2"));
}

#[test]
fn goals_are_redrawn_and_episodes_depend_on_their_numbers_only() {
    let Some(mujoco) = mujoco() else { return };
    let maze = AntMaze::new(&mujoco, Task::Umaze).unwrap();
    let run = |episodes: usize, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let plan = Rollout { episodes, seed: 5, paths: episodes };
        pool.install(|| {
            rollout(&maze, &plan, |seen, goals, actions| {
                for (row, action) in actions.iter_mut().enumerate() {
                    *action = (seen[row / 8 * 29 + 2] + goals[row / 8 * 2]).sin();
                }
                Ok::<(), cm_envs::Error>(())
            })
            .unwrap()
        })
    };
    let outcomes = run(4, 1);
    assert_eq!(outcomes, run(4, 2));
    assert_eq!(outcomes[..2], run(2, 2));
    for pair in outcomes.windows(2) {
        assert_ne!(pair[0].goal, pair[1].goal);
        assert_ne!(pair[0].path, pair[1].path);
    }
}

#[test]
fn success_is_within_half_a_unit_of_the_goal() {
    let Some(mujoco) = mujoco() else { return };
    let maze = AntMaze::new(&mujoco, Task::Umaze).unwrap();
    let mut episode = maze.begin(stream(0)).unwrap();
    assert!(!maze.succeeded(&episode));
    let mut goal = [0.0; 2];
    maze.goal(&episode, &mut goal);
    let goal = goal.map(f64::from);
    for (distance, expected) in [(0.0, true), (0.499, true), (0.501, false)] {
        for direction in [0.0_f64, 1.0, 2.5, 4.0] {
            let place =
                [goal[0] + distance * direction.cos(), goal[1] + distance * direction.sin()];
            episode.place(&at(place)).unwrap();
            assert_eq!(maze.succeeded(&episode), expected, "{distance} {direction}");
        }
    }
    let mut seen = [0.0; STATE];
    maze.observe(&mut episode, &mut seen);
    assert_eq!(seen, episode.ant().state().map(|number| number as f32));
    assert_eq!(maze.position(&episode), [seen[0], seen[1]]);
}

#[test]
fn actions_are_clipped_torques_and_others_are_refused() {
    let Some(mujoco) = mujoco() else { return };
    let model = Ant::model(&mujoco, None).unwrap();
    let after = |action: f32| {
        let mut ant = Ant::new(&model).unwrap();
        ant.place(&at([0.0, 0.0])).unwrap();
        ant.step(&[action; ACTION]).unwrap();
        *ant.state()
    };
    assert_eq!(after(1.0), after(7.0));
    assert_eq!(after(-1.0), after(f32::NEG_INFINITY));
    assert_ne!(after(1.0), after(0.9));
    // The first motor is the hip of leg 4, whose angle is number 13 of the state.
    let mut ant = Ant::new(&model).unwrap();
    ant.place(&at([0.0, 0.0])).unwrap();
    let still = after(0.0);
    let mut action = [0.0; ACTION];
    action[0] = 1.0;
    ant.step(&action).unwrap();
    let moved: Vec<usize> =
        (7..15).filter(|&joint| (ant.state()[joint] - still[joint]).abs() > 0.05).collect();
    assert_eq!(moved, [13]);

    let message = ant.step(&[f32::NAN; ACTION]).unwrap_err().to_string();
    assert!(message.contains("action") && message.contains("NaN"), "{message}");
    let message = ant.step(&[0.0; 7]).unwrap_err().to_string();
    assert!(message.contains("expected 8 entries, found 7"), "{message}");
    ant.step(&[0.0; ACTION]).unwrap();
}

#[test]
fn walls_are_where_the_layouts_say() {
    // Pushed along x at ground level, a torso comes to rest at the wall's face.
    let Some(mujoco) = mujoco() else { return };
    let rows = |maze: Maze| -> Vec<String> {
        let symbol = |cell| if maze.is_wall(cell) { '#' } else { '.' };
        (0..maze.rows())
            .map(|row| (0..maze.columns()).map(|column| symbol(Cell { row, column })).collect())
            .collect()
    };
    assert_eq!(rows(Maze::Umaze), ["#####", "#...#", "###.#", "#...#", "#####"]);
    let medium = rows(Maze::Medium);
    assert_eq!(
        medium,
        [
            "########", "#..##..#", "#..#...#", "##...###", "#..#...#", "#.#..#.#", "#...#..#",
            "########"
        ]
    );
    assert_eq!(
        rows(Maze::Large),
        [
            "############",
            "#....#.....#",
            "#.##.#.#.#.#",
            "#......#...#",
            "#.####.###.#",
            "#..#.#.....#",
            "##.#.#.#.###",
            "#..#...#...#",
            "############"
        ]
    );
    let model = Ant::model(&mujoco, Some(Maze::Umaze)).unwrap();
    let mut ant = Ant::new(&model).unwrap();
    for (start, velocity, axis, limits) in [
        // From the start to the west: the wall's face is at x = -2.
        ([-0.5, 0.0], [-8.0, 0.0], 0, -2.0..-0.8),
        // From the end of the corridor to the east: the face is at x = 10.
        ([8.5, 4.0], [8.0, 0.0], 0, 8.8..10.0),
        // From the start to the north, where the wall between the arms begins at y = 2.
        ([0.0, 0.5], [0.0, 8.0], 1, 0.8..2.0),
    ] {
        let mut state = at(start);
        (state[15], state[16]) = (velocity[0], velocity[1]);
        ant.place(&state).unwrap();
        for _ in 0..20 {
            ant.step(&[0.0; ACTION]).unwrap();
            assert!(limits.start < ant.xy()[axis] + 1.0 && ant.xy()[axis] - 1.0 < limits.end);
        }
        assert!(limits.contains(&ant.xy()[axis]), "{start:?}: {:?}", ant.xy());
    }
}
