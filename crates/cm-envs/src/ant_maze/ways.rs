//! How long the shortest way through a maze is.

use super::{Cell, Maze};

type Place = [f64; 2];

/// Shortest ways of a point through a maze, exactly.
///
/// A shortest way turns at corners of walls alone. So it is the shortest of those that lead from
/// corner to corner in straight lines.
///
/// ```
/// use cm_envs::ant_maze::{Maze, ShortestWays};
///
/// let ways = ShortestWays::new(Maze::Umaze);
/// // Along the corridor, and from its start around the wall to its end.
/// assert_eq!(ways.length([0.0, 0.0], [6.0, 1.0]), Some(37_f64.sqrt()));
/// let around = 2.0 * (6.0_f64.hypot(2.0)) + 4.0;
/// assert_eq!(ways.length([0.0, 0.0], [0.0, 8.0]), Some(around));
/// // Into a wall there is none.
/// assert_eq!(ways.length([0.0, 0.0], [0.0, 4.0]), None);
/// ```
pub struct ShortestWays {
    walls: Vec<[Place; 2]>,
    corners: Vec<Place>,
    /// Between corners, row by row.
    lengths: Vec<f64>,
}

impl ShortestWays {
    /// Finds the ways between all corners.
    pub fn new(maze: Maze) -> Self {
        let (walls, corners) = ([maze.walls(), seams(maze)].concat(), corners(maze));
        let count = corners.len();
        let mut ways = Self { walls, corners, lengths: Vec::new() };
        let mut lengths = Vec::with_capacity(count * count);
        for &from in &ways.corners {
            lengths.extend(ways.corners.iter().map(|&to| ways.straight(from, to)));
        }
        for by in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let over = lengths[from * count + by] + lengths[by * count + to];
                    let length = &mut lengths[from * count + to];
                    *length = length.min(over);
                }
            }
        }
        ways.lengths = lengths;
        ways
    }

    /// The length of the shortest way; none if there is no way, as into walls.
    pub fn length(&self, from: Place, to: Place) -> Option<f64> {
        if [from, to].iter().any(|&place| self.is_inside_wall(place)) {
            return None;
        }
        let mut shortest = self.straight(from, to);
        if shortest.is_infinite() {
            let [starts, ends] = [from, to].map(|place| {
                let of_corner = |&corner: &Place| self.straight(place, corner);
                self.corners.iter().map(of_corner).collect::<Vec<_>>()
            });
            for (number, start) in
                starts.iter().enumerate().filter(|(_, length)| length.is_finite())
            {
                let row = &self.lengths[number * ends.len()..][..ends.len()];
                for (between, end) in row.iter().zip(&ends) {
                    shortest = shortest.min(start + between + end);
                }
            }
        }
        shortest.is_finite().then_some(shortest)
    }

    /// The distance, if no wall lies between; else infinity.
    fn straight(&self, from: Place, to: Place) -> f64 {
        let is_free = !self.walls.iter().any(|&wall| crosses(from, to, wall));
        if is_free { (to[0] - from[0]).hypot(to[1] - from[1]) } else { f64::INFINITY }
    }

    fn is_inside_wall(&self, place: Place) -> bool {
        self.walls.iter().any(|[low, high]| (0..2).all(|k| low[k] < place[k] && place[k] < high[k]))
    }
}

/// Places where a wall sticks out: of four cells that meet there, one is a wall.
fn corners(maze: Maze) -> Vec<Place> {
    let meeting =
        meetings(maze).filter(|(_, walls)| walls.iter().filter(|&&wall| wall).count() == 1);
    meeting.map(|(place, _)| place).collect()
}

/// Where walls touch, with a side or with a corner: boxes that are hardly larger than a line or a
/// point, so that no way leads between.
fn seams(maze: Maze) -> Vec<[Place; 2]> {
    let mut seams = Vec::new();
    for (place, walls) in meetings(maze) {
        if matches!(walls, [true, false, false, true] | [false, true, true, false]) {
            seams.push([-1e-6, 1e-6].map(|half| place.map(|x| x + half)));
        }
    }
    for cell @ Cell { row, column } in maze.cells().filter(|&cell| maze.is_wall(cell)) {
        let [[left, low], [right, top]] = cell.corners();
        if column + 1 < maze.columns() && maze.is_wall(Cell { row, column: column + 1 }) {
            seams.push([[right - 1e-6, low], [right + 1e-6, top]]);
        }
        if row + 1 < maze.rows() && maze.is_wall(Cell { row: row + 1, column }) {
            seams.push([[left, top - 1e-6], [right, top + 1e-6]]);
        }
    }
    seams
}

/// Every place where four cells meet, and which of them are walls: below, then above.
fn meetings(maze: Maze) -> impl Iterator<Item = (Place, [bool; 4])> {
    let places = (1..maze.rows()).flat_map(move |row| (1..maze.columns()).map(move |c| (row, c)));
    places.map(move |(row, column)| {
        let cells = [(row - 1, column - 1), (row - 1, column), (row, column - 1), (row, column)];
        let walls = cells.map(|(row, column)| maze.is_wall(Cell { row, column }));
        (Cell { row, column }.corners()[0], walls)
    })
}

/// Whether a straight line leads through the inside of a box. Along its side it does not.
fn crosses(from: Place, to: Place, [low, high]: [Place; 2]) -> bool {
    // The part of the line, from 0 to 1, that is inside both coordinates' ranges.
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for k in 0..2 {
        let step = to[k] - from[k];
        if step == 0.0 {
            if from[k] <= low[k] || from[k] >= high[k] {
                return false;
            }
            continue;
        }
        let (a, b) = ((low[k] - from[k]) / step, (high[k] - from[k]) / step);
        (enter, leave) = (enter.max(a.min(b)), leave.min(a.max(b)));
    }
    // Touching a corner is no way through.
    leave - enter > 1e-9
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, unit_f64};
    use rand_core::Rng;

    use super::*;

    /// Places in free cells.
    fn places(maze: Maze, count: usize) -> Vec<Place> {
        let (mut random, cells) = (Philox::new(3).stream(0, 0), maze.free_cells());
        (0..count)
            .map(|_| {
                let mut unit = || unit_f64(random.next_u64());
                let cell = cells[(unit() * cells.len() as f64) as usize];
                cell.center().map(|x| x + 3.9 * (unit() - 0.5))
            })
            .collect()
    }

    #[test]
    fn ways_are_a_metric_that_is_no_shorter_than_the_straight_line() {
        for maze in Maze::ALL {
            let (ways, places) = (ShortestWays::new(maze), places(maze, 20));
            let length = |from: usize, to: usize| ways.length(places[from], places[to]).unwrap();
            for x in 0..20 {
                assert_eq!(length(x, x), 0.0);
                for y in 0..20 {
                    let ([a, b], [c, d]) = (places[x], places[y]);
                    assert!(length(x, y) >= (c - a).hypot(d - b) - 1e-9);
                    assert!((length(x, y) - length(y, x)).abs() < 1e-9);
                    for z in 0..20 {
                        assert!(length(x, z) <= length(x, y) + length(y, z) + 1e-9, "{maze}");
                    }
                }
            }
        }
    }

    /// The shortest of all ways over a fine grid is at most a little longer.
    #[test]
    fn ways_are_those_over_a_fine_grid() {
        const PER_CELL: usize = 8;
        for maze in Maze::ALL {
            let ways = ShortestWays::new(maze);
            let (rows, columns) = (PER_CELL * maze.rows(), PER_CELL * maze.columns());
            let is_free = |row: usize, column: usize| {
                !maze.is_wall(Cell { row: row / PER_CELL, column: column / PER_CELL })
            };
            let place = |row: usize, column: usize| -> Place {
                [column, row].map(|x| 4.0 * ((x as f64 + 0.5) / PER_CELL as f64 - 1.5))
            };
            // From the start, by relaxing until nothing changes; moves are at most three apart.
            let start = (PER_CELL + PER_CELL / 2, PER_CELL + PER_CELL / 2);
            let mut lengths = vec![f64::INFINITY; rows * columns];
            lengths[start.0 * columns + start.1] = 0.0;
            let mut changed = true;
            while changed {
                changed = false;
                for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                    if !is_free(row, column) {
                        continue;
                    }
                    for (down, right) in (-3..=3).flat_map(|r| (-3..=3).map(move |c| (r, c))) {
                        let other =
                            (row.wrapping_add_signed(down), column.wrapping_add_signed(right));
                        if other.0 >= rows || other.1 >= columns || !is_free(other.0, other.1) {
                            continue;
                        }
                        let step = ways.straight(place(row, column), place(other.0, other.1));
                        let over = lengths[other.0 * columns + other.1] + step;
                        if over < lengths[row * columns + column] - 1e-12 {
                            lengths[row * columns + column] = over;
                            changed = true;
                        }
                    }
                }
            }
            for (row, column) in
                (0..rows).step_by(3).flat_map(|r| (0..columns).map(move |c| (r, c)))
            {
                if !is_free(row, column) {
                    continue;
                }
                let exact = ways.length(place(start.0, start.1), place(row, column)).unwrap();
                let found = lengths[row * columns + column];
                assert!(exact <= found + 1e-9, "{maze} {row} {column}: {exact} above {found}");
                assert!(found <= 1.02 * exact + 0.5, "{maze} {row} {column}: {exact}, {found}");
            }
        }
    }
}
