//! Steps of trajectories whose outcome was luck.

use std::collections::BTreeSet;

use super::l2;
use super::of_data::quantile;

/// A step that changes the state by so many times what nineteen of twenty do is a jump.
const JUMP: f32 = 6.0;
const USUAL: f64 = 0.95;
/// A jump is luck unless so many of those from the same place land at the same one.
const CERTAIN: f32 = 0.75;
/// Most jumps that each is compared with.
const MOST: usize = 1_000;

/// Rows after which a trajectory jumped to where it need not have come.
///
/// A world may throw one about: of what goes in at a door some comes out here, some there. A
/// distance that knows the best case believes in all of it, and even one that knows chances has
/// learned them from few. `states` are rows of `width` numbers that vary alike; `ends` says where
/// trajectories end. Places are the same if no jump would be needed between them.
pub(super) fn thrown(states: &[f32], width: usize, ends: &[usize]) -> BTreeSet<usize> {
    let state = |row: usize| &states[row * width..][..width];
    let mut rows = Vec::new();
    let mut start = 0;
    for &end in ends {
        rows.extend(start..end.max(start + 1) - 1);
        start = end;
    }
    let changes: Vec<f32> = rows.iter().map(|&row| l2(state(row), state(row + 1))).collect();
    let far = JUMP * quantile(changes.clone(), USUAL);
    let jumps: Vec<usize> = rows
        .into_iter()
        .zip(changes)
        .filter(|(_, far_off)| *far_off > far)
        .map(|(row, _)| row)
        .collect();
    let every = jumps.len().div_ceil(MOST).max(1);
    let luck = |&row: &usize| {
        let others = jumps.iter().step_by(every);
        let alike = others.filter(|&&other| l2(state(row), state(other)) <= far);
        let (mut all, mut same) = (0.0, 0.0);
        for &other in alike {
            all += 1.0;
            same += f32::from(l2(state(row + 1), state(other + 1)) <= far);
        }
        // One that was seen once may be luck.
        same < CERTAIN * (all + 1.0)
    };
    jumps.iter().copied().filter(luck).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trajectories that walk to a door and are put elsewhere: from 10 always to 100, from 30 to 200
    /// or 300.
    #[test]
    fn jumps_that_always_land_at_the_same_place_are_no_luck() {
        let (mut states, mut ends) = (Vec::new(), Vec::new());
        let mut walk = |door: f32, exit: f32| {
            states.extend((0..6).map(|step| door - 5.0 + step as f32));
            states.extend((0..40).map(|step| exit + step as f32));
            ends.push(states.len());
        };
        (0..4).for_each(|_| walk(10.0, 100.0));
        [200.0, 300.0, 200.0, 300.0].into_iter().for_each(|exit| walk(30.0, exit));
        let luck: Vec<usize> = thrown(&states, 1, &ends).into_iter().collect();
        assert_eq!(luck, [4, 5, 6, 7].map(|number| number * 46 + 5));
        assert!(thrown(&[], 1, &[]).is_empty());
    }
}
