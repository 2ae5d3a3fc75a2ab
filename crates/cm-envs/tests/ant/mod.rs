//! What the tests of AntMaze share.

use cm_envs::ant_maze::STATE;
use cm_random::{Philox, Stream};

pub(crate) fn stream(number: u64) -> Stream {
    Philox::new(3).stream(number, 1)
}

/// An ant that is put down at `xy`, upright and at rest.
pub(crate) fn at(xy: [f64; 2]) -> [f64; STATE] {
    let mut state = [0.0; STATE];
    (state[0], state[1], state[2], state[3]) = (xy[0], xy[1], 0.75, 1.0);
    state
}
