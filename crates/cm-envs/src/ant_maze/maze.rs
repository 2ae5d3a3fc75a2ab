//! The three mazes: cells, and where they lie in the plane.

use std::fmt;

/// The side of a cell.
pub const SCALE: f64 = 4.0;

/// A maze of D4RL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maze {
    /// A corridor in the shape of a U, 5 x 5 cells.
    Umaze,
    /// 8 x 8 cells.
    Medium,
    /// 9 x 12 cells.
    Large,
}

/// A cell of a maze by row and column. Rows count along y, columns along x; the start is in row 1,
/// column 1, and its centre is the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Counts along y.
    pub row: usize,
    /// Counts along x.
    pub column: usize,
}

/// `#` wall, `R` start, `g` goal of the collected data, `G` goal of the evaluation, `B` goal of
/// both, `.` neither.
const UMAZE: [&str; 5] = ["#####", "#R..#", "###.#", "#B..#", "#####"];
const MEDIUM: [&str; 8] = [
    "########", "#R.##..#", "#..#..g#", "##...###", "#..#...#", "#g#..#.#", "#...#gG#", "########",
];
const LARGE: [&str; 9] = [
    "############",
    "#R...#g....#",
    "#.##.#.#.#.#",
    "#....g.#..g#",
    "#.####.###.#",
    "#.g#.#.....#",
    "##.#.#.#.###",
    "#..#g.g#.B.#",
    "############",
];

impl Maze {
    /// All of them, smallest first.
    pub const ALL: [Self; 3] = [Self::Umaze, Self::Medium, Self::Large];

    /// How many rows of cells there are, walls included.
    pub fn rows(self) -> usize {
        self.layout().len()
    }

    /// How many columns of cells there are, walls included.
    pub fn columns(self) -> usize {
        self.layout()[0].len()
    }

    /// Every cell, row by row.
    pub fn cells(self) -> impl Iterator<Item = Cell> {
        let columns = self.columns();
        (0..self.rows()).flat_map(move |row| (0..columns).map(move |column| Cell { row, column }))
    }

    /// Whether a cell is a wall. What lies outside the maze is.
    pub fn is_wall(self, cell: Cell) -> bool {
        self.symbol(cell) == b'#'
    }

    /// The cells that are not walls.
    pub fn free_cells(self) -> Vec<Cell> {
        self.cells().filter(|&cell| !self.is_wall(cell)).collect()
    }

    /// The walls in the plane, cell by cell: lower left and upper right corners.
    ///
    /// ```
    /// use cm_envs::ant_maze::Maze;
    ///
    /// let walls = Maze::Umaze.walls();
    /// assert_eq!((walls.len(), walls[0]), (18, [[-6.0, -6.0], [-2.0, -2.0]]));
    /// ```
    pub fn walls(self) -> Vec<[[f64; 2]; 2]> {
        self.cells().filter(|&cell| self.is_wall(cell)).map(Cell::corners).collect()
    }

    /// The cell with the goal of the evaluation.
    ///
    /// ```
    /// use cm_envs::ant_maze::{Cell, Maze};
    ///
    /// assert_eq!(Maze::Large.evaluation_goal(), Cell { row: 7, column: 9 });
    /// assert_eq!(Maze::Large.evaluation_goal().center(), [32.0, 24.0]);
    /// ```
    pub fn evaluation_goal(self) -> Cell {
        match self {
            Self::Umaze => Cell { row: 3, column: 1 },
            Self::Medium => Cell { row: 6, column: 6 },
            Self::Large => Cell { row: 7, column: 9 },
        }
    }

    /// The cells that D4RL sends its ants to when it collects data with chosen goals.
    pub fn collection_goals(self) -> Vec<Cell> {
        self.cells().filter(|&cell| matches!(self.symbol(cell), b'g' | b'B')).collect()
    }

    /// The cells that D4RL's ants start in when they do not all start at the origin: the free ones
    /// without a goal.
    pub fn collection_starts(self) -> Vec<Cell> {
        self.cells().filter(|&cell| matches!(self.symbol(cell), b'R' | b'.' | b'G')).collect()
    }

    fn symbol(self, cell: Cell) -> u8 {
        let row = self.layout().get(cell.row);
        row.and_then(|row| row.as_bytes().get(cell.column)).copied().unwrap_or(b'#')
    }

    fn layout(self) -> &'static [&'static str] {
        match self {
            Self::Umaze => &UMAZE,
            Self::Medium => &MEDIUM,
            Self::Large => &LARGE,
        }
    }
}

impl Cell {
    /// The middle of the cell in the plane.
    pub fn center(self) -> [f64; 2] {
        [SCALE * (self.column as f64 - 1.0), SCALE * (self.row as f64 - 1.0)]
    }

    /// The lower left and the upper right corner of the cell in the plane.
    pub fn corners(self) -> [[f64; 2]; 2] {
        [-0.5, 0.5].map(|half| self.center().map(|x| x + half * SCALE))
    }
}

impl fmt::Display for Maze {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Umaze => "umaze",
            Self::Medium => "medium",
            Self::Large => "large",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evaluation_goal_is_where_the_layout_marks_it() {
        for maze in Maze::ALL {
            let marked: Vec<_> =
                maze.cells().filter(|&cell| matches!(maze.symbol(cell), b'G' | b'B')).collect();
            assert_eq!(marked, [maze.evaluation_goal()], "{maze}");
            assert_eq!(maze.symbol(Cell { row: 1, column: 1 }), b'R');
            assert!(maze.layout().iter().all(|row| row.len() == maze.columns()));
        }
    }
}
