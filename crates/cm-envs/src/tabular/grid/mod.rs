//! Controlled processes drawn as text.
//!
//! | symbol | cell |
//! |---|---|
//! | `#` | wall: not a state; moves into it, as into the edge, stay where they are |
//! | `.` or a space | floor |
//! | `A`-`Z` | floor with a name, which [`Grid::marked`] finds |
//! | `^` `>` `v` `<` | one-way door: entered and left only in its direction |
//! | `~` | slippery floor: a move goes to one of its two sides with the probability `slip`, each with half of it |
//! | `,` | windy floor: after the move, the wind pushes one cell further with its probability |
//! | `a`-`z` but `v` | teleporter: with the probability of its letter every action leads to one of the cells with the same capital letter, each as likely; else it is floor |
//! | `@` | absorbing: every action stays |
//!
//! There are five actions, those of [`Move`].

mod dynamics;
mod layout;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::process::ControlledProcess;
use crate::Error;
pub(crate) use layout::Cell;

/// The actions of a grid; `as usize` gives the action's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    /// One line up.
    North,
    /// One column to the right.
    East,
    /// One line down.
    South,
    /// One column to the left.
    West,
    /// No move: nothing slips, but the wind still blows.
    Stay,
}

impl Move {
    /// All moves, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::North, Self::East, Self::South, Self::West, Self::Stay];
}

/// What the symbols of a grid do. Unknown keys of a file are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GridRules {
    /// Probability that a move from `~` goes aside.
    pub slip: f64,
    /// Wind over `,`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wind: Option<Wind>,
    /// Probability of each teleporter's letter; 1 for those not listed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub teleport: BTreeMap<char, f64>,
}

/// A wind that may push one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wind {
    /// Where to.
    pub direction: Move,
    /// How likely in each step.
    pub probability: f64,
}

/// A grid and the controlled process it describes. States are the cells that are not walls, line by
/// line.
///
/// ```
/// use cm_envs::tabular::{Discount, Grid, GridRules};
///
/// // The way east is one step through the door; the way back is around the wall.
/// let grid = Grid::parse("
///     A>B
///     .#.
///     ...
/// ", &GridRules::default())?;
/// let (a, b) = (grid.marked('A')[0], grid.marked('B')[0]);
/// let discount = Discount::new(0.9)?;
/// let distances = grid.process().successor_distances(discount)?;
/// assert!((distances[(a, b)] - 2.0 * discount.step_length()).abs() < 1e-12);
/// assert!((distances[(b, a)] - 6.0 * discount.step_length()).abs() < 1e-12);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GridFile", into = "GridFile")]
pub struct Grid {
    rules: GridRules,
    width: usize,
    cells: Vec<Cell>,
    /// State of each cell.
    states: Vec<Option<usize>>,
    /// Cell of each state.
    places: Vec<usize>,
    process: ControlledProcess,
}

/// A [`Grid`] as it is written: the layout beside its rules.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    layout: String,
    #[serde(default)]
    rules: GridRules,
}

impl Grid {
    /// Reads a layout. Empty first and last lines, and the indentation that all lines share, are
    /// left out; all lines must then have the same length.
    pub fn parse(layout: &str, rules: &GridRules) -> Result<Self, Error> {
        let (width, cells) = layout::parse(layout)?;
        dynamics::check(rules, &cells)?;
        let mut places = Vec::new();
        let states: Vec<Option<usize>> = cells
            .iter()
            .enumerate()
            .map(|(place, &cell)| {
                (cell != Cell::Wall).then(|| {
                    places.push(place);
                    places.len() - 1
                })
            })
            .collect();
        let process =
            dynamics::Dynamics { rules, width, cells: &cells }.process(&states, &places)?;
        Ok(Self { rules: rules.clone(), width, cells, states, places, process })
    }

    /// The process over the cells that are not walls.
    pub fn process(&self) -> &ControlledProcess {
        &self.process
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of lines.
    pub fn height(&self) -> usize {
        self.cells.len() / self.width
    }

    /// The state in `line` and `column`, both from 0 at the top left. `None` at walls and outside.
    pub fn state_at(&self, line: usize, column: usize) -> Option<usize> {
        if column < self.width {
            self.states.get(line * self.width + column).copied()?
        } else {
            None
        }
    }

    /// Line and column of a state.
    ///
    /// # Panics
    /// If `state` does not exist.
    pub fn cell_of(&self, state: usize) -> (usize, usize) {
        (self.places[state] / self.width, self.places[state] % self.width)
    }

    /// The states of the cells with a symbol, line by line; usually a capital letter.
    pub fn marked(&self, symbol: char) -> Vec<usize> {
        let found = |&state: &usize| self.cells[self.places[state]].symbol() == symbol;
        (0..self.places.len()).filter(found).collect()
    }

    /// Where the wind blows, if there is one.
    #[cfg(feature = "pictures")]
    pub(crate) fn wind_direction(&self) -> Option<Move> {
        self.rules.wind.map(|wind| wind.direction)
    }

    /// What is in each cell, line by line.
    #[cfg(feature = "pictures")]
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// What is in each cell of a line, from the left.
    pub(crate) fn line(&self, line: usize) -> &[Cell] {
        &self.cells[line * self.width..][..self.width]
    }
}

/// The layout.
impl std::fmt::Display for Grid {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in 0..self.height() {
            let symbols: String = self.line(line).iter().map(|cell| cell.symbol()).collect();
            writeln!(formatter, "{symbols}")?;
        }
        Ok(())
    }
}

impl TryFrom<GridFile> for Grid {
    type Error = Error;

    fn try_from(file: GridFile) -> Result<Self, Error> {
        Self::parse(&file.layout, &file.rules)
    }
}

impl From<Grid> for GridFile {
    fn from(grid: Grid) -> Self {
        Self { layout: grid.to_string(), rules: grid.rules }
    }
}
