//! What goes through a maze.

use std::fmt;

/// A body, by what is known of it without a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// A ball that is moved in the plane.
    Point,
    /// The four-legged ant of AntMaze.
    Ant,
}

impl Agent {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Point, Self::Ant];

    /// How the names of its environments begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Point => "pointmaze",
            Self::Ant => "antmaze",
        }
    }

    /// Numbers in a position.
    pub fn positions(self) -> usize {
        match self {
            Self::Point => 2,
            Self::Ant => 15,
        }
    }

    /// Numbers in a velocity.
    pub fn velocities(self) -> usize {
        match self {
            Self::Point => 2,
            Self::Ant => 14,
        }
    }

    /// Numbers in an observation: the point's velocity is not seen.
    pub fn observation_width(self) -> usize {
        match self {
            Self::Point => 2,
            Self::Ant => 29,
        }
    }

    /// Numbers in an action.
    pub fn action_width(self) -> usize {
        match self {
            Self::Point => 2,
            Self::Ant => 8,
        }
    }

    /// How near to the goal is near enough.
    pub fn success_radius(self) -> f64 {
        match self {
            Self::Point => 1.0,
            Self::Ant => 0.5,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
