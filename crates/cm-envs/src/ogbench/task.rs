//! Names of environments with their data.

use std::fmt;
use std::str::FromStr;

use super::{Agent, Maze};
use crate::Error;

/// How data is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// From anywhere to one place after another.
    Navigate,
    /// From anywhere to a place four cells away: short episodes, to be stitched together.
    Stitch,
    /// In random directions, with much noise. Of the ant alone.
    Explore,
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Navigate, Self::Stitch, Self::Explore];

    /// As it is called in the names of data sets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Navigate => "navigate",
            Self::Stitch => "stitch",
            Self::Explore => "explore",
        }
    }
}

/// An environment of OGBench and a data set of it.
///
/// ```
/// use cm_envs::ogbench::{Agent, Behaviour, Maze, OgTask};
///
/// let task: OgTask = "pointmaze-giant-stitch-v0".parse()?;
/// assert_eq!((task.agent, task.maze), (Agent::Point, Maze::Giant));
/// assert_eq!(task.behaviour, Behaviour::Stitch);
/// assert_eq!((task.rows(), task.episodes(), task.horizon()), (201, 5000, 1000));
/// assert!("pointmaze-giant-explore-v0".parse::<OgTask>().is_err());
/// assert_eq!(OgTask::all().len(), 19);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OgTask {
    /// What goes through the maze.
    pub agent: Agent,
    /// The maze.
    pub maze: Maze,
    /// How the data is collected.
    pub behaviour: Behaviour,
}

impl OgTask {
    /// Every task that OGBench has data for, in the order of its tables.
    pub fn all() -> Vec<Self> {
        let mut tasks = Vec::new();
        for agent in Agent::ALL {
            for behaviour in Behaviour::ALL {
                tasks.extend(Maze::ALL.map(|maze| Self { agent, maze, behaviour }));
            }
        }
        tasks.retain(|task| {
            task.behaviour != Behaviour::Explore
                || (task.agent == Agent::Ant && task.maze != Maze::Giant)
        });
        tasks
    }

    /// OGBench's name.
    pub fn name(self) -> String {
        format!("{}-{}-{}-v0", self.agent, self.maze, self.behaviour.name())
    }

    /// The name of the environment alone, without its data: `pointmaze-medium-v0`.
    pub fn environment(self) -> String {
        format!("{}-{}-v0", self.agent, self.maze)
    }

    /// The largest number of steps of an evaluation.
    pub fn horizon(self) -> usize {
        1000
    }

    /// Rows of an episode of the data: one more than it has transitions.
    pub fn rows(self) -> usize {
        match (self.behaviour, self.maze) {
            (Behaviour::Navigate, Maze::Giant) => 2001,
            (Behaviour::Navigate, _) => 1001,
            (Behaviour::Stitch, _) => 201,
            (Behaviour::Explore, _) => 501,
        }
    }

    /// Episodes of the data to train on.
    pub fn episodes(self) -> usize {
        match (self.behaviour, self.maze) {
            (Behaviour::Navigate, Maze::Giant) => 500,
            (Behaviour::Navigate, _) => 1000,
            (Behaviour::Stitch, _) => 5000,
            (Behaviour::Explore, _) => 10_000,
        }
    }

    /// Further episodes, for validation.
    pub fn validation_episodes(self) -> usize {
        self.episodes() / 10
    }

    /// The standard deviation of the noise on the data's actions.
    pub fn noise(self) -> f64 {
        match (self.behaviour, self.agent) {
            (Behaviour::Explore, _) => 1.0,
            (_, Agent::Point) => 0.5,
            (_, Agent::Ant) => 0.2,
        }
    }
}

impl fmt::Display for OgTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl FromStr for OgTask {
    type Err = Error;

    /// Takes OGBench's name, also without `-v0`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let found = text.strip_suffix("-v0").unwrap_or(text);
        let tasks = Self::all();
        let named = |task: &&Self| task.name().strip_suffix("-v0") == Some(found);
        tasks.iter().find(named).copied().ok_or_else(|| Error::UnknownTask {
            found: text.to_owned(),
            known: tasks.iter().map(|task| task.name()).collect::<Vec<_>>().join(", "),
        })
    }
}
