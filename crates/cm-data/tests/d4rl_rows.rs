//! Rows of D4RL's own files (see `d4rl_rows/README.md`): the environment goes on from them as they
//! do, and the statistics that data is compared by say of them what is known.

use std::io::Write;
use std::path::Path;

use cm_data::Statistics;
use cm_envs::ant_maze::{Ant, CellRule, STATE, Task};
use cm_envs::mujoco::Mujoco;
use cm_replay::{Dataset, Matrix, ReadOptions};

const FILES: [(&str, Task); 6] = [
    ("umaze", Task::Umaze),
    ("umaze-diverse", Task::UmazeDiverse),
    ("medium-play", Task::MediumPlay),
    ("medium-diverse", Task::MediumDiverse),
    ("large-play", Task::LargePlay),
    ("large-diverse", Task::LargeDiverse),
];

/// The rows of a file, cut into episodes where the ant is suddenly somewhere else: time-outs of
/// version 0 are not to be trusted.
fn rows(name: &str) -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/d4rl_rows");
    let extras = ["infos/goal", "infos/qpos", "infos/qvel"].map(str::to_owned).to_vec();
    let options = ReadOptions { extras, ..ReadOptions::default() };
    let data = cm_replay::read(folder.join(format!("{name}-v0.hdf5")), &options).unwrap();
    let (observations, positions) = (data.observations(), &data.extras()["infos/qpos"]);
    let jumps = |row: usize| {
        let (after, next) = (positions.row(row), observations.row(row + 1));
        (after[0] - next[0]).hypot(after[1] - next[1]) > 1e-3
    };
    let steps = data.steps();
    let inner = (0..steps - 1).filter(|&row| jumps(row)).map(|row| row + 1);
    let ends: Vec<usize> = inner.chain([steps]).collect();
    let copy = |matrix: &Matrix| {
        let numbers = matrix.numbers(0..matrix.rows()).into_owned();
        Matrix::from_vec(matrix.rows(), matrix.columns(), numbers).unwrap()
    };
    let mut cut = Dataset::new(copy(observations), copy(data.actions()), ends).unwrap();
    for (name, extra) in data.extras() {
        cut = cut.with_extra(name, copy(extra)).unwrap();
    }
    cut
}

#[test]
fn one_step_from_a_row_of_d4rl_leads_to_its_next_state() {
    let mujoco = match Mujoco::find() {
        Ok(mujoco) => mujoco,
        Err(reason) => {
            assert!(std::env::var_os("CM_REQUIRE_MUJOCO").is_none(), "{reason}");
            let _ = writeln!(std::io::stderr(), "SKIPPED one step from a row of D4RL: {reason}");
            return;
        }
    };
    for (name, task) in FILES {
        let data = rows(name);
        let positions = &data.extras()["infos/qpos"];
        let mut ant = Ant::new(&Ant::model(&mujoco, Some(task.maze())).unwrap()).unwrap();
        // The largest error of the 15 numbers of the position.
        let mut errors: Vec<f64> = (0..data.steps())
            .map(|row| {
                let state: [f64; STATE] =
                    std::array::from_fn(|index| data.observations().row(row)[index].into());
                ant.place(&state).unwrap();
                ant.step(data.actions().row(row)).unwrap();
                let expected = positions.row(row).iter().map(|&number| f64::from(number));
                let gaps = ant.state().iter().zip(expected).map(|(a, b)| (a - b).abs());
                gaps.fold(0.0, f64::max)
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| errors[(share * errors.len() as f64) as usize];
        for (share, bound) in [(0.5, 5e-4), (0.9, 2e-3), (0.99, 5e-3)] {
            let found = quantile(share);
            assert!(found < bound, "{name}: {share} of the errors are below {found}, not {bound}");
        }
    }
}

#[test]
fn episodes_starts_and_goals_are_as_the_recipe_has_them() {
    for (name, task) in FILES {
        let data = rows(name);
        let expected: &[usize] = match name {
            "umaze" => &[701, 701],
            "medium-diverse" => &[67],
            _ => &[1001, 997],
        };
        let episodes = (0..data.trajectories()).map(|number| data.trajectory(number));
        assert_eq!(episodes.clone().map(|rows| rows.len()).collect::<Vec<_>>(), expected, "{name}");
        for rows in episodes {
            let goal = data.extras()["infos/goal"].row(rows.start);
            let goal = [f64::from(goal[0]), f64::from(goal[1])];
            // In a marked cell, `diverse` or not, and up to three units beyond its centre.
            let cell = CellRule::Floor.cell(goal);
            assert!(task.maze().collection_goals().contains(&cell), "{name}: {goal:?}");
        }
    }
}

/// The figures were measured on the same rows by other code.
#[test]
fn statistics_of_d4rls_rows_are_the_known_ones() {
    let of = |name: &str, task: Task| Statistics::of(&rows(name), task).unwrap();
    let all: Vec<_> = FILES.into_iter().map(|(name, task)| of(name, task)).collect();
    let whole = all.iter().filter(|found| found.longest_episode > 67);
    let flips: f64 = whole.clone().map(|found| found.flipped * found.episodes as f64).sum();
    let arrivals: f64 = whole.map(|found| found.success_rate * found.episodes as f64).sum();
    assert_eq!((flips, arrivals), (7.0, 1.0));
    assert_eq!((all[0].flipped, all[0].success_rate, all[1].success_rate), (1.0, 0.0, 0.5));
    let rows = [1402.0, 1998.0, 1998.0, 67.0, 1998.0, 1998.0];
    let mean = |figure: fn(&Statistics) -> f64| {
        let sum: f64 = all.iter().zip(rows).map(|(found, rows)| rows * figure(found)).sum();
        sum / rows.iter().sum::<f64>()
    };
    for (found, expected, tolerance) in [
        (mean(|found| found.rows_on_back), 0.40, 0.01),
        (mean(|found| found.mean_abs_action), 0.763, 0.002),
        (mean(|found| found.actions_at_limit), 0.308, 0.002),
    ] {
        assert!((found - expected).abs() < tolerance, "{found}, expected {expected}");
    }
    let upright: f64 = all.iter().zip(rows).map(|(f, rows)| rows * (1.0 - f.rows_on_back)).sum();
    let speed: f64 = all
        .iter()
        .zip(rows)
        .map(|(found, rows)| rows * (1.0 - found.rows_on_back) * found.speed_upright)
        .sum();
    assert!((speed / upright - 0.82).abs() < 0.01, "{}", speed / upright);
}
