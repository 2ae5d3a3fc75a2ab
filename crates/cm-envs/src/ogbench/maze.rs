//! The four mazes: cells, tasks, teleports.

use std::fmt;

use crate::ant_maze::{Cell, SCALE};

/// A maze of OGBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maze {
    /// 8 x 8 cells.
    Medium,
    /// 9 x 12 cells.
    Large,
    /// 12 x 16 cells.
    Giant,
    /// 9 x 12 cells, some of which lead elsewhere.
    Teleport,
}

/// `#` is a wall, `.` is free.
const MEDIUM: [&str; 8] = [
    "########", "#..##..#", "#..#...#", "##...###", "#..#...#", "#.#..#.#", "#...#..#", "########",
];
const LARGE: [&str; 9] = [
    "############",
    "#....#.....#",
    "#.##.#.#.#.#",
    "#......#...#",
    "#.####.###.#",
    "#..#.#.....#",
    "##.#.#.#.###",
    "#..#...#...#",
    "############",
];
const GIANT: [&str; 12] = [
    "################",
    "#.#......##....#",
    "#.#.##.#.#..##.#",
    "#...#..#...#...#",
    "#.###.######.#.#",
    "#...#...#....#.#",
    "###.#.#..#.#.###",
    "#...#..#...#...#",
    "#.#.#.######.#.#",
    "#.###...#...##.#",
    "#.....#...#....#",
    "################",
];
const TELEPORT: [&str; 9] = [
    "############",
    "#.....#.#..#",
    "##.#...#..##",
    "##.###.....#",
    "#....#.#.#.#",
    "#.##.#.#.#.#",
    "#.##.#.#.#.#",
    "#....#...#.#",
    "############",
];

/// Rows and columns of a task's start and goal.
type Ends = [[usize; 2]; 2];

const MEDIUM_TASKS: [Ends; 5] =
    [[[1, 1], [6, 6]], [[6, 1], [1, 6]], [[5, 3], [4, 2]], [[6, 5], [6, 1]], [[2, 6], [1, 1]]];
const LARGE_TASKS: [Ends; 5] =
    [[[1, 1], [7, 10]], [[5, 4], [7, 1]], [[7, 4], [1, 10]], [[3, 8], [5, 4]], [[1, 1], [5, 4]]];
const GIANT_TASKS: [Ends; 5] = [
    [[1, 1], [10, 14]],
    [[1, 14], [10, 1]],
    [[8, 14], [1, 1]],
    [[8, 3], [5, 12]],
    [[5, 9], [3, 8]],
];
const TELEPORT_TASKS: [Ends; 5] =
    [[[1, 10], [7, 1]], [[1, 1], [7, 10]], [[5, 6], [7, 10]], [[7, 1], [7, 10]], [[5, 6], [7, 1]]];

/// Cells that lead to other cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Teleports {
    /// Where one disappears, in the order in which they are looked at.
    pub entrances: [Cell; 2],
    /// Where one appears, each with the same probability.
    pub exits: [Cell; 3],
    /// How near to an entrance's centre is near enough.
    pub reach: f64,
}

const TELEPORTS: Teleports = Teleports {
    entrances: [Cell { row: 4, column: 6 }, Cell { row: 5, column: 1 }],
    exits: [Cell { row: 1, column: 7 }, Cell { row: 6, column: 1 }, Cell { row: 6, column: 10 }],
    reach: 1.5,
};

impl Teleports {
    /// Whether a body there disappears.
    pub fn takes(&self, place: [f64; 2]) -> bool {
        self.entrances.iter().any(|cell| {
            let [x, y] = cell.center();
            (place[0] - x).hypot(place[1] - y) <= self.reach
        })
    }
}

impl Maze {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Medium, Self::Large, Self::Giant, Self::Teleport];

    /// How many tasks each has.
    pub const TASKS: usize = 5;

    /// As it is called in the names of environments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Giant => "giant",
            Self::Teleport => "teleport",
        }
    }

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
        let row = self.layout().get(cell.row);
        row.and_then(|row| row.as_bytes().get(cell.column)).is_none_or(|&symbol| symbol == b'#')
    }

    /// The cells that are not walls, row by row.
    pub fn free_cells(self) -> Vec<Cell> {
        self.cells().filter(|&cell| !self.is_wall(cell)).collect()
    }

    /// The free cells that are not the middle of a straight corridor.
    ///
    /// ```
    /// use cm_envs::ogbench::Maze;
    ///
    /// assert_eq!(Maze::ALL.map(|maze| maze.vertex_cells().len()), [21, 22, 46, 24]);
    /// ```
    pub fn vertex_cells(self) -> Vec<Cell> {
        let mut cells = self.free_cells();
        cells.retain(|&cell| {
            let [up, left, down, right] = neighbours(cell).map(|cell| self.is_wall(cell));
            let vertical = !up && !down && left && right;
            let horizontal = !left && !right && up && down;
            !vertical && !horizontal
        });
        cells
    }

    /// The start and the goal of a task, which counts from 0. Panics beyond the last.
    pub fn task(self, task: usize) -> [Cell; 2] {
        let tasks = match self {
            Self::Medium => MEDIUM_TASKS,
            Self::Large => LARGE_TASKS,
            Self::Giant => GIANT_TASKS,
            Self::Teleport => TELEPORT_TASKS,
        };
        tasks[task].map(|[row, column]| Cell { row, column })
    }

    /// What leads where, if anything does.
    pub fn teleports(self) -> Option<&'static Teleports> {
        (self == Self::Teleport).then_some(&TELEPORTS)
    }

    /// The cell that a place is in: that of the nearest centre. Places beyond the maze's first row
    /// or column count as in it.
    pub fn cell(self, [x, y]: [f64; 2]) -> Cell {
        // A cast rounds towards zero and does not go below it.
        let number = |along: f64| ((along + 1.5 * SCALE) / SCALE) as usize;
        Cell { row: number(y), column: number(x) }
    }

    fn layout(self) -> &'static [&'static str] {
        match self {
            Self::Medium => &MEDIUM,
            Self::Large => &LARGE,
            Self::Giant => &GIANT,
            Self::Teleport => &TELEPORT,
        }
    }
}

/// The cells above, left, below and right. What would be outside is far outside.
pub(super) fn neighbours(cell: Cell) -> [Cell; 4] {
    let Cell { row, column } = cell;
    [
        Cell { row: row.wrapping_sub(1), column },
        Cell { row, column: column.wrapping_sub(1) },
        Cell { row: row.wrapping_add(1), column },
        Cell { row, column: column.wrapping_add(1) },
    ]
}

impl fmt::Display for Maze {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
