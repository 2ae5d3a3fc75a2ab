//! Which states can reach a goal, and in how few transitions: a breadth-first search backwards.

use super::transitions::Transitions;

/// For each state the states one transition of positive probability before it.
pub(crate) struct Predecessors {
    /// Those of state `s` are `lists[starts[s]..starts[s + 1]]`.
    starts: Vec<usize>,
    lists: Vec<u32>,
}

/// The states that can reach a goal.
pub(crate) struct Reaching {
    /// The goal first, then the others by the number of transitions they need at least.
    pub(crate) order: Vec<u32>,
    /// That number for every state; `None` where the goal cannot be reached.
    pub(crate) hops: Vec<Option<u32>>,
}

impl Predecessors {
    /// Row `state * actions + action` of `transitions` leads from `state`.
    pub(crate) fn new(transitions: &Transitions, actions: usize) -> Self {
        let mut starts = vec![0; transitions.states() + 1];
        for row in 0..transitions.rows() {
            for (next, _) in transitions.row(row) {
                starts[next + 1] += 1;
            }
        }
        for state in 0..transitions.states() {
            starts[state + 1] += starts[state];
        }
        let mut free = starts.clone();
        let mut lists = vec![0; transitions.len()];
        for row in 0..transitions.rows() {
            for (next, _) in transitions.row(row) {
                lists[free[next]] = (row / actions) as u32;
                free[next] += 1;
            }
        }
        Self { starts, lists }
    }

    /// Searches backwards from `goal`.
    pub(crate) fn reaching(&self, goal: usize) -> Reaching {
        let mut hops = vec![None; self.starts.len() - 1];
        hops[goal] = Some(0);
        let mut order = vec![goal as u32];
        let mut searched = 0;
        while let Some(&state) = order.get(searched) {
            searched += 1;
            let state = state as usize;
            let further = hops[state].map(|hops: u32| hops + 1);
            for &before in &self.lists[self.starts[state]..self.starts[state + 1]] {
                if hops[before as usize].is_none() {
                    hops[before as usize] = further;
                    order.push(before);
                }
            }
        }
        Reaching { order, hops }
    }
}
