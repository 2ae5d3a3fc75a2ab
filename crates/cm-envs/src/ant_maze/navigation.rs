//! The way through the maze from cell to cell, as D4RL's collector finds it.

use std::fmt;
use std::str::FromStr;

use super::{Cell, Maze, SCALE};
use crate::Error;

/// Which cell a place belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellRule {
    /// D4RL's rule: `1 + coordinate / 4`, rounded down. Borders lie on the centres of the cells,
    /// half a cell away from those of the maze, so that an ant which walks in the direction of
    /// falling coordinates turns early and scrapes the corners.
    Floor,
    /// The cell whose centre is nearest.
    Round,
}

impl CellRule {
    /// The cell of a place in the plane.
    ///
    /// ```
    /// use cm_envs::ant_maze::{Cell, CellRule};
    ///
    /// let place = [3.0, 0.5]; // one unit before the centre of the second cell
    /// assert_eq!(CellRule::Floor.cell(place), Cell { row: 1, column: 1 });
    /// assert_eq!(CellRule::Round.cell(place), Cell { row: 1, column: 2 });
    /// ```
    pub fn cell(self, place: [f64; 2]) -> Cell {
        // A cast cuts off what is below 0.
        let [column, row] = place.map(|coordinate| match self {
            Self::Floor => (1.0 + coordinate.max(1e-4) / SCALE) as usize,
            Self::Round => (1.5 + coordinate / SCALE) as usize,
        });
        Cell { row, column }
    }
}

impl fmt::Display for CellRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Floor => "floor",
            Self::Round => "round",
        })
    }
}

impl FromStr for CellRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "floor" => Ok(Self::Floor),
            "round" => Ok(Self::Round),
            _ => Err(Error::UnknownCellRule { found: text.to_owned() }),
        }
    }
}

/// Shortest ways from every cell of a maze to every other, in steps to the four neighbours.
#[derive(Clone, Debug)]
pub struct Navigator {
    maze: Maze,
    /// `next[goal][cell]`, both counted row by row.
    next: Vec<Vec<Cell>>,
}

impl Navigator {
    /// Finds all ways through `maze`.
    pub fn new(maze: Maze) -> Self {
        Self { maze, next: maze.cells().map(|goal| ways_to(maze, goal)).collect() }
    }

    /// The cell to go to next from `cell`, on the way to `goal`: `goal` itself from there and where
    /// no way leads. Walls have a way out too, since by
    /// [`CellRule::Floor`] an ant can seem to be in one; what lies outside the maze has none.
    ///
    /// ```
    /// use cm_envs::ant_maze::{Cell, Maze, Navigator};
    ///
    /// let (start, goal) = (Cell { row: 1, column: 1 }, Cell { row: 3, column: 1 });
    /// assert_eq!(Navigator::new(Maze::Umaze).next(start, goal), Cell { row: 1, column: 2 });
    /// ```
    pub fn next(&self, cell: Cell, goal: Cell) -> Cell {
        let index = |cell: Cell| cell.row * self.maze.columns() + cell.column;
        let inside = |cell: Cell| cell.row < self.maze.rows() && cell.column < self.maze.columns();
        if inside(cell) && inside(goal) { self.next[index(goal)][index(cell)] } else { goal }
    }
}

/// Breadth first from the goal: a cell goes to the neighbour that found it.
fn ways_to(maze: Maze, goal: Cell) -> Vec<Cell> {
    let columns = maze.columns();
    let mut next: Vec<Option<Cell>> = vec![None; maze.rows() * columns];
    next[goal.row * columns + goal.column] = Some(goal);
    let mut front = std::collections::VecDeque::from([goal]);
    while let Some(cell) = front.pop_front() {
        for (down, right) in [(0, -1), (0, 1), (1, 0), (-1, 0)] {
            let neighbour =
                cell.row.checked_add_signed(down).zip(cell.column.checked_add_signed(right));
            let Some((row, column)) = neighbour else { continue };
            let neighbour = Cell { row, column };
            if row >= maze.rows() || column >= columns || next[row * columns + column].is_some() {
                continue;
            }
            next[row * columns + column] = Some(cell);
            if !maze.is_wall(neighbour) {
                front.push_back(neighbour);
            }
        }
    }
    next.into_iter().map(|next| next.unwrap_or(goal)).collect()
}
