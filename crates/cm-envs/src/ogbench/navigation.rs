//! The way through a maze, cell by cell, as OGBench's oracle takes it.

use std::collections::VecDeque;

use super::maze::neighbours;
use super::{Cell, Maze};

/// Knows the shortest ways between all cells of a maze. Teleports are not ways.
///
/// ```
/// use cm_envs::ogbench::{Cell, Maze, Navigator};
///
/// let navigator = Navigator::new(Maze::Medium);
/// // Down from the upper left corner, on the way to the lower right one.
/// assert_eq!(navigator.subgoal([0.3, -0.2], [20.0, 20.0]), [0.0, 4.0]);
/// assert_eq!(navigator.steps(Cell { row: 1, column: 1 }, Cell { row: 6, column: 6 }), Some(10));
/// ```
#[derive(Clone, Debug)]
pub struct Navigator {
    maze: Maze,
    /// For each goal, by its number among all cells: what a search from there found.
    searches: Vec<Option<Search>>,
}

/// Steps to every cell, and the cells in the order in which they were found.
#[derive(Clone, Debug)]
struct Search {
    steps: Vec<Option<usize>>,
    order: Vec<Cell>,
}

impl Navigator {
    /// Searches from every free cell.
    pub fn new(maze: Maze) -> Self {
        let search = |cell| (!maze.is_wall(cell)).then(|| search(maze, cell));
        Self { maze, searches: maze.cells().map(search).collect() }
    }

    /// How many cells it is from one to another; none if there is no way.
    pub fn steps(&self, from: Cell, to: Cell) -> Option<usize> {
        self.searches.get(number(self.maze, to)?)?.as_ref()?.steps[number(self.maze, from)?]
    }

    /// The cells that are exactly so many steps from `cell`, in the order in which a search in
    /// breadth finds them.
    pub fn at_distance(&self, cell: Cell, steps: usize) -> Vec<Cell> {
        let search = number(self.maze, cell).and_then(|cell| self.searches[cell].as_ref());
        let found = search.map_or(&[][..], |search| &search.order);
        found.iter().copied().filter(|&other| self.steps(other, cell) == Some(steps)).collect()
    }

    /// The next cell on a shortest way: the first of those above, left, below and right that is
    /// nearer to `to` than `from` and than those before it; `from` itself if none is.
    pub fn next(&self, from: Cell, to: Cell) -> Cell {
        let mut best = (from, self.steps(from, to));
        for neighbour in neighbours(from) {
            let steps = self.steps(neighbour, to);
            if let (Some(nearer), Some(least)) = (steps, best.1)
                && nearer < least
            {
                best = (neighbour, steps);
            }
        }
        best.0
    }

    /// Where to go now on the way from a place to another: the centre of the next cell, also where
    /// that is the goal's.
    pub fn subgoal(&self, place: [f64; 2], goal: [f64; 2]) -> [f64; 2] {
        self.next(self.maze.cell(place), self.maze.cell(goal)).center()
    }

    /// The direction to the [`subgoal`](Self::subgoal), of length 1 or, very near to it, less.
    pub fn direction(&self, place: [f64; 2], goal: [f64; 2]) -> [f64; 2] {
        let [x, y] = self.subgoal(place, goal);
        let (x, y) = (x - place[0], y - place[1]);
        let length = (x * x + y * y).sqrt() + 1e-6;
        [x / length, y / length]
    }
}

/// The number of a cell of the maze, row by row.
fn number(maze: Maze, cell: Cell) -> Option<usize> {
    let inside = cell.row < maze.rows() && cell.column < maze.columns();
    inside.then(|| cell.row * maze.columns() + cell.column)
}

fn search(maze: Maze, from: Cell) -> Search {
    let mut steps = vec![None; maze.rows() * maze.columns()];
    let (mut order, mut front) = (Vec::new(), VecDeque::from([(from, 0)]));
    while let Some((cell, away)) = front.pop_front() {
        let Some(at) = number(maze, cell) else { continue };
        if maze.is_wall(cell) || steps[at].is_some() {
            continue;
        }
        steps[at] = Some(away);
        order.push(cell);
        front.extend(neighbours(cell).map(|neighbour| (neighbour, away + 1)));
    }
    Search { steps, order }
}
