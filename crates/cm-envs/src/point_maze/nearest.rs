//! Nearest neighbours in the plane, by a grid of cells.

use std::collections::BinaryHeap;

/// Points of the plane in cells of equal size, so that the nearest ones are found by looking at few
/// of them.
///
/// ```
/// use cm_envs::point_maze::Nearest;
///
/// let points = [[0.0, 0.0], [3.0, 4.0], [-1.0, 0.0]];
/// let nearest = Nearest::new(&points);
/// assert_eq!(nearest.nearest([2.0, 2.0]), Some(1));
/// assert_eq!(nearest.among([0.1, 0.0], 2), [0, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct Nearest {
    origin: [f32; 2],
    cell: f32,
    columns: usize,
    rows: usize,
    /// Where each cell's points begin in `points`, and where the last one's end.
    starts: Vec<u32>,
    /// The points, cell by cell, each with its number.
    points: Vec<([f32; 2], u32)>,
}

/// Points in a cell, on average over the cells of the bounding box.
const CROWD: f32 = 4.0;

impl Nearest {
    /// Sorts the points into cells. Points that are not finite are never found.
    pub fn new(points: &[[f32; 2]]) -> Self {
        let finite = || points.iter().filter(|p| p[0].is_finite() && p[1].is_finite());
        let bound = |axis: usize, pick: fn(f32, f32) -> f32, start: f32| {
            finite().map(|p| p[axis]).fold(start, pick)
        };
        let count = finite().count();
        if count == 0 {
            return Self {
                origin: [0.0; 2],
                cell: 1.0,
                columns: 0,
                rows: 0,
                starts: vec![0],
                points: vec![],
            };
        }
        let origin = [bound(0, f32::min, f32::INFINITY), bound(1, f32::min, f32::INFINITY)];
        let size = [
            bound(0, f32::max, f32::NEG_INFINITY) - origin[0],
            bound(1, f32::max, f32::NEG_INFINITY) - origin[1],
        ];
        // At least as many cells along the longer side as keep a thin crowd thin, and never more
        // cells than points.
        let area_cell = (size[0] * size[1] * CROWD / count as f32).sqrt();
        let line_cell = size[0].max(size[1]) * CROWD / count as f32;
        let cell = area_cell.max(line_cell).max(f32::MIN_POSITIVE);
        let number = |length: f32| (length / cell) as usize + 1;
        let (columns, rows) = (number(size[0]), number(size[1]));

        let mut index = Self {
            origin,
            cell,
            columns,
            rows,
            starts: vec![0; columns * rows + 1],
            points: vec![],
        };
        for &point in finite() {
            let (column, row) = index.cell_of(point);
            index.starts[row * columns + column + 1] += 1;
        }
        for at in 1..index.starts.len() {
            index.starts[at] += index.starts[at - 1];
        }
        let mut next = index.starts.clone();
        index.points = vec![([0.0; 2], 0); count];
        for (number, &point) in points.iter().enumerate() {
            if point[0].is_finite() && point[1].is_finite() {
                let (column, row) = index.cell_of(point);
                let slot = &mut next[row * columns + column];
                index.points[*slot as usize] = (point, number as u32);
                *slot += 1;
            }
        }
        index
    }

    /// The number of the point nearest to `place`, the first of equally near ones; none of no
    /// points.
    pub fn nearest(&self, place: [f32; 2]) -> Option<usize> {
        self.among(place, 1).first().copied()
    }

    /// The numbers of the `count` points nearest to `place` (all, if there are fewer), nearest
    /// first, equally near ones in order.
    pub fn among(&self, place: [f32; 2], count: usize) -> Vec<usize> {
        // The worst of the best so far is at the top. Squares of distances are not negative, so
        // their bits order them.
        let mut best: BinaryHeap<(u32, u32)> = BinaryHeap::with_capacity(count + 1);
        if count == 0 || self.points.is_empty() {
            return Vec::new();
        }
        let (column, row) = self.cell_of(place);
        for ring in 0..self.columns.max(self.rows) {
            if best.len() == count
                && let Some(&(worst, _)) = best.peek()
            {
                // Everything outside the rings so far is at least this far away.
                let outside = (ring.saturating_sub(1)) as f32 * self.cell;
                if f32::from_bits(worst) < outside * outside {
                    break;
                }
            }
            self.visit_ring(column, row, ring, |&(point, number)| {
                let offset = [point[0] - place[0], point[1] - place[1]];
                let square = offset[0] * offset[0] + offset[1] * offset[1];
                let candidate = (square.to_bits(), number);
                if best.len() < count {
                    best.push(candidate);
                } else if let Some(mut worst) = best.peek_mut()
                    && candidate < *worst
                {
                    *worst = candidate;
                }
            });
        }
        best.into_sorted_vec().into_iter().map(|(_, number)| number as usize).collect()
    }

    /// Every point in the cells at distance `ring` (the larger of the two coordinates' differences)
    /// from a cell.
    fn visit_ring(
        &self,
        column: usize,
        row: usize,
        ring: usize,
        mut visit: impl FnMut(&([f32; 2], u32)),
    ) {
        let rows = row.saturating_sub(ring)..=(row + ring).min(self.rows - 1);
        for at_row in rows {
            let whole = at_row.abs_diff(row) == ring;
            let step = if whole || ring == 0 { 1 } else { 2 * ring };
            let first = column as isize - ring as isize;
            for at_column in (first..=first + 2 * ring as isize).step_by(step) {
                if at_column < 0 || at_column >= self.columns as isize {
                    continue;
                }
                let cell = at_row * self.columns + at_column as usize;
                let range = self.starts[cell] as usize..self.starts[cell + 1] as usize;
                self.points[range].iter().for_each(&mut visit);
            }
        }
    }

    /// The cell of a point, or the nearest one to it in each coordinate.
    fn cell_of(&self, point: [f32; 2]) -> (usize, usize) {
        let along = |axis: usize, cells: usize| {
            // A cast saturates, and what is not a number goes to the first cell.
            (((point[axis] - self.origin[axis]) / self.cell) as usize).min(cells - 1)
        };
        (along(0, self.columns), along(1, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_sorting(points: &[[f32; 2]], place: [f32; 2], count: usize) -> Vec<usize> {
        let square = |p: [f32; 2]| {
            let offset = [p[0] - place[0], p[1] - place[1]];
            offset[0] * offset[0] + offset[1] * offset[1]
        };
        let mut order: Vec<_> = (0..points.len()).collect();
        order.sort_by(|&a, &b| square(points[a]).total_cmp(&square(points[b])).then(a.cmp(&b)));
        order.truncate(count);
        order
    }

    proptest! {
        /// Coordinates on a coarse lattice, so that many points are equal and many equally far.
        #[test]
        fn finds_what_sorting_finds(
            points in prop::collection::vec((-20_i8..20, -3_i8..3), 0..200),
            place in (-30.0_f32..30.0, -30.0_f32..30.0),
            count in 0_usize..40,
        ) {
            let points: Vec<_> = points.iter().map(|p| [f32::from(p.0) * 0.5, f32::from(p.1)]).collect();
            let index = Nearest::new(&points);
            let place = [place.0, place.1];
            prop_assert_eq!(index.among(place, count), by_sorting(&points, place, count));
        }
    }

    #[test]
    fn copes_with_points_on_a_line_at_one_place_and_not_at_all() {
        let line: Vec<_> = (0..1000).map(|x| [x as f32, 5.0]).collect();
        assert_eq!(Nearest::new(&line).nearest([700.4, -2.0]), Some(700));
        assert_eq!(Nearest::new(&[[2.0, 2.0]; 50]).among([9.0, 9.0], 3), [0, 1, 2]);
        assert_eq!(Nearest::new(&[[f32::NAN, 0.0], [1.0, 1.0]]).nearest([0.0, 0.0]), Some(1));
        assert_eq!(Nearest::new(&[]).nearest([0.0, 0.0]), None);
    }
}
