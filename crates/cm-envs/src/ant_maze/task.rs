//! The six tasks.

use std::fmt;
use std::str::FromStr;

use cm_random::{Stream, below_u64, unit_f64};
use rand_core::Rng;

use super::{Cell, Maze, Recipe};
use crate::Error;

/// A task of D4RL's AntMaze, version 2: a maze, and how its data was collected.
///
/// ```
/// use cm_envs::ant_maze::{Maze, Task};
///
/// let task: Task = "antmaze-large-play-v2".parse()?;
/// assert_eq!((task, task.maze(), task.horizon()), (Task::LargePlay, Maze::Large, 1000));
/// assert!("antmaze-giant".parse::<Task>().is_err());
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Data from one start to one goal.
    Umaze,
    /// Data from anywhere.
    UmazeDiverse,
    /// Data from anywhere to chosen goals.
    MediumPlay,
    /// The same once more, called `diverse`.
    MediumDiverse,
    /// Data from anywhere to chosen goals.
    LargePlay,
    /// The same once more, called `diverse`.
    LargeDiverse,
}

impl Task {
    /// The goals of the evaluation are beside their cell's centre by the sum of two numbers, each
    /// uniform from 0 to one of these.
    pub(super) const GOAL_NOISE: [f64; 2] = [1.0, 0.5];

    /// All of them, in the order of the paper's table.
    pub const ALL: [Self; 6] = [
        Self::Umaze,
        Self::UmazeDiverse,
        Self::MediumPlay,
        Self::MediumDiverse,
        Self::LargePlay,
        Self::LargeDiverse,
    ];

    /// D4RL's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Umaze => "antmaze-umaze-v2",
            Self::UmazeDiverse => "antmaze-umaze-diverse-v2",
            Self::MediumPlay => "antmaze-medium-play-v2",
            Self::MediumDiverse => "antmaze-medium-diverse-v2",
            Self::LargePlay => "antmaze-large-play-v2",
            Self::LargeDiverse => "antmaze-large-diverse-v2",
        }
    }

    /// The maze.
    pub fn maze(self) -> Maze {
        match self {
            Self::Umaze | Self::UmazeDiverse => Maze::Umaze,
            Self::MediumPlay | Self::MediumDiverse => Maze::Medium,
            Self::LargePlay | Self::LargeDiverse => Maze::Large,
        }
    }

    /// The largest number of steps of an evaluation.
    pub fn horizon(self) -> usize {
        match self.maze() {
            Maze::Umaze => 700,
            Maze::Medium | Maze::Large => 1000,
        }
    }

    /// Whether the data starts all over the maze; at the origin otherwise.
    pub fn starts_anywhere(self) -> bool {
        self != Self::Umaze
    }

    /// Whether the data is called `diverse`. In D4RL's files that makes no difference; by
    /// [`Recipe::Clean`] it has goals in every free cell.
    pub fn is_diverse(self) -> bool {
        matches!(self, Self::UmazeDiverse | Self::MediumDiverse | Self::LargeDiverse)
    }

    /// A goal of the evaluation.
    pub fn draw_goal(self, random: &mut Stream) -> [f64; 2] {
        self.maze().evaluation_goal().disturbed(Self::GOAL_NOISE, random)
    }

    /// A goal of the data.
    pub(super) fn draw_collection_goal(self, recipe: Recipe, random: &mut Stream) -> [f64; 2] {
        one_of(&recipe.goal_cells(self), random).disturbed(recipe.goal_noise(), random)
    }

    /// Where an episode of the data starts, if not at the origin.
    pub(super) fn draw_collection_start(self, random: &mut Stream) -> Option<[f64; 2]> {
        self.starts_anywhere().then(|| {
            let cell = one_of(&self.maze().collection_starts(), random);
            cell.center().map(|middle| (middle + unit_f64(random.next_u64())).max(0.0))
        })
    }
}

impl Cell {
    /// `center + U(0, a) + U(0, b)` in each coordinate, not below 0.
    pub(super) fn disturbed(self, [a, b]: [f64; 2], random: &mut Stream) -> [f64; 2] {
        self.center().map(|middle| {
            let noise = a * unit_f64(random.next_u64()) + b * unit_f64(random.next_u64());
            (middle + noise).max(0.0)
        })
    }
}

fn one_of(cells: &[Cell], random: &mut Stream) -> Cell {
    cells[below_u64(random.next_u64(), cells.len() as u64) as usize]
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = Error;

    /// Takes D4RL's name, also without `antmaze-` or `-v2`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let short =
            |name: &'static str| name.trim_start_matches("antmaze-").trim_end_matches("-v2");
        let found = text.strip_prefix("antmaze-").unwrap_or(text);
        let found = found.strip_suffix("-v2").unwrap_or(found);
        let task = Self::ALL.into_iter().find(|task| short(task.name()) == found);
        task.ok_or_else(|| Error::UnknownTask {
            found: text.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}
