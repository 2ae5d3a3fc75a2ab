//! The numbers by which data is collected.

use std::fmt;
use std::str::FromStr;

use super::{Cell, Maze, Task};
use crate::Error;

/// How far data is disturbed, where it is sent, and how long its episodes are.
///
/// | | d4rl | d4rl-code | clean |
/// |---|---|---|---|
/// | rows of an episode | 701 in umaze, else 1001 | 1001 | 1001 |
/// | goals | marked cells | marked cells | every free cell where the data is `diverse` |
/// | beside a cell's centre | `U(0, 2) + U(0, 1)` | `U(0, 1) + U(0, 0.5)` | the same |
/// | waypoints beside it | `U(0, 2)` | `U(0, 1)` | `U(0, 1)` |
/// | actions | drawn from the policy | drawn from the policy | the policy's mean |
///
/// The offsets hold in each coordinate; noise of the [`Guide`](super::Guide) comes on top of the
/// actions. The goals of the evaluation are those of D4RL's code whatever the recipe.
///
/// ```
/// use cm_envs::ant_maze::{Recipe, Task};
///
/// let recipe: Recipe = "d4rl".parse()?;
/// assert_eq!([Task::Umaze, Task::UmazeDiverse].map(|task| recipe.rows(task)), [701, 1001]);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// What the rows of D4RL's own files show.
    #[default]
    D4rl,
    /// What the code in D4RL's repository shows. It did not make the files as they are: of the
    /// goals that are known, half are farther from a cell's centre than this code can put them.
    D4rlCode,
    /// Little noise and mean actions, so that most episodes arrive.
    Clean,
}

impl Recipe {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::D4rl, Self::D4rlCode, Self::Clean];

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::D4rl => "d4rl",
            Self::D4rlCode => "d4rl-code",
            Self::Clean => "clean",
        }
    }

    /// Rows in an episode of `task`: D4RL stores the step at which it notices that the time is up.
    pub fn rows(self, task: Task) -> usize {
        match (self, task) {
            (Self::D4rl, Task::Umaze) => 701,
            _ => 1001,
        }
    }

    /// Whether actions are drawn from the policy; its mean otherwise.
    pub fn samples_actions(self) -> bool {
        self != Self::Clean
    }

    /// The cells that episodes of `task` are sent to.
    pub fn goal_cells(self, task: Task) -> Vec<Cell> {
        let maze: Maze = task.maze();
        match self {
            Self::Clean if task.is_diverse() => maze.free_cells(),
            _ => maze.collection_goals(),
        }
    }

    /// A goal is beside its cell's centre by the sum of two numbers, each uniform from 0 to one of
    /// these.
    pub(super) fn goal_noise(self) -> [f64; 2] {
        match self {
            Self::D4rl => [2.0, 1.0],
            Self::D4rlCode | Self::Clean => Task::GOAL_NOISE,
        }
    }

    /// A waypoint is beside its cell's centre by a number that is uniform from 0 to this.
    pub(super) fn waypoint_noise(self) -> f64 {
        match self {
            Self::D4rl => 2.0,
            Self::D4rlCode | Self::Clean => 1.0,
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let recipe = Self::ALL.into_iter().find(|recipe| recipe.name() == text);
        recipe.ok_or_else(|| Error::UnknownRecipe { found: text.to_owned() })
    }
}
