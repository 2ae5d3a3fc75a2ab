//! OGBench's mazes.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use cm_envs::mujoco::Mujoco;
use cm_envs::ogbench::{OgMaze, OgTask};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::maze_data::MazeData;
use super::{Environment, Task};
use crate::{Method, Result, RunSettings};

/// A maze of OGBench on MuJoCo, which is looked for when the task is opened. States and actions are
/// learned from as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OgMazeTask {
    /// The task, such as `pointmaze-medium-navigate-v0`.
    #[serde(deserialize_with = "known")]
    pub task: String,
    /// The file of its data, downloaded or generated.
    pub file: PathBuf,
}

static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| OgTask::all().into_iter().map(OgTask::name).collect());

/// A name that there is, also without `-v0`.
fn known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let task: OgTask = name.parse().map_err(serde::de::Error::custom)?;
    Ok(task.name())
}

impl Environment for OgMazeTask {
    fn key() -> &'static str {
        "ogbench"
    }

    fn names() -> Vec<&'static str> {
        NAMES.iter().map(String::as_str).collect()
    }

    fn named(name: &str) -> Option<Table> {
        let task: OgTask = name.parse().ok()?;
        Some(Table::from_iter([("task".to_owned(), task.name().into())]))
    }

    fn has_file() -> bool {
        true
    }

    fn preset(&self, method: Method) -> RunSettings {
        match self.task.parse() {
            Ok(task) => RunSettings::ogbench(method, task, self.clone().into()),
            // Opening it says what is wrong.
            Err(_) => RunSettings { task: self.clone().into(), ..RunSettings::plane(method) },
        }
    }

    fn goal_columns(&self, states: usize) -> Range<usize> {
        0..states
    }

    fn describe(&self) -> String {
        self.task.clone()
    }

    fn open(&self) -> Result<Task> {
        let task: OgTask = self.task.parse()?;
        let maze = OgMaze::new(&Mujoco::find()?, task)?;
        let data = Task::read(&self.file)?;
        self.maze_data(task).check(&data, |place| task.maze.is_wall(task.maze.cell(place)))?;
        Task::of_data(data, false, self, Some(Arc::new(maze)))
    }
}

impl OgMazeTask {
    fn maze_data(&self, task: OgTask) -> MazeData<'_> {
        MazeData {
            file: &self.file,
            task: &self.task,
            observation: task.agent.observation_width(),
            action: task.agent.action_width(),
            maze: task.maze.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cm_replay::{Dataset, Matrix};

    use super::*;

    #[test]
    fn data_of_another_maze_or_body_is_refused() {
        let of = |name: &str| OgMazeTask { task: name.into(), file: "walks.npz".into() };
        let data = |columns: usize, place: [f32; 2]| {
            let row = |_| place.into_iter().chain(std::iter::repeat_n(0.0, columns - 2));
            let states = Matrix::from_vec(3, columns, (0..3).flat_map(row).collect()).unwrap();
            let actions = Matrix::from_vec(3, 2, vec![0.0; 6]).unwrap();
            Dataset::new(states, actions, vec![3]).unwrap()
        };
        let found = |name: &str, data: &Dataset| {
            let (of, task) = (of(name), name.parse::<OgTask>().unwrap());
            let is_wall = |place| task.maze.is_wall(task.maze.cell(place));
            of.maze_data(task).check(data, is_wall).map_err(|error| error.to_string())
        };
        let (medium, large) = ("pointmaze-medium-navigate-v0", "pointmaze-large-navigate-v0");
        // Free in medium, a wall in large.
        let walks = data(2, [16.2, 0.3]);
        found(medium, &walks).unwrap();
        let message = found(large, &walks).unwrap_err();
        assert!(message.contains("walks.npz") && message.contains(large), "{message}");
        assert!(message.contains("row 0"), "{message}");
        assert!(found(medium, &data(2, [-90.0, 0.0])).is_err());
        let message = found(medium, &data(29, [0.0, 0.0])).unwrap_err();
        assert!(message.contains("expected 2 numbers in an observation, found 29"), "{message}");
        let message = found("antmaze-medium-stitch-v0", &data(29, [0.0, 0.0])).unwrap_err();
        assert!(message.contains("expected 8 numbers in an action, found 2"), "{message}");
    }

    #[test]
    fn unknown_names_are_refused_with_those_there_are() {
        let text = "task = \"pointmaze-huge-navigate-v0\"\nfile = \"x\"";
        let message = toml::from_str::<OgMazeTask>(text).unwrap_err().to_string();
        assert!(message.contains("pointmaze-huge") && message.contains("antmaze-giant-stitch-v0"));
        let short: OgMazeTask =
            toml::from_str("task = \"antmaze-giant-stitch\"\nfile = \"x\"").unwrap();
        assert_eq!(short.task, "antmaze-giant-stitch-v0");
    }
}
