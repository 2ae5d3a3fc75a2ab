//! Places for the buffers of a recorded step in one piece of memory.
//!
//! Two buffers may share a place if every kernel that uses the one is done before the first that
//! uses the other starts, by the order that the kernels have anyway. Memory is reused along chains
//! of kernels, and branches that could run side by side still can.

use crate::memory::ALIGNMENT;
use crate::schedule::Order;

/// A buffer to be placed.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) bytes: usize,
    /// The steps that use it, ascending; the first ones write it.
    pub(crate) steps: Vec<usize>,
    /// Whether it is needed after the step, so that nothing may take its place over.
    pub(crate) is_kept: bool,
}

/// Where each request begins, and how many bytes there are in all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) offsets: Vec<usize>,
    pub(crate) bytes: usize,
}

/// Places the requests, in the order of their first steps.
pub(crate) fn plan(requests: &[Request], order: &Order) -> Plan {
    let mut by_time = (0..requests.len()).collect::<Vec<_>>();
    by_time.sort_by_key(|&index| requests[index].steps.first().copied());
    let mut offsets = vec![0; requests.len()];
    // Placed requests whose memory no later one was put into entirely.
    let mut placed = Vec::<usize>::new();
    let mut bytes = 0;
    for index in by_time {
        let request = &requests[index];
        let size = request.bytes.next_multiple_of(ALIGNMENT);
        let mut taken = placed
            .iter()
            .filter(|&&other| !may_follow(&requests[other], request, order))
            .map(|&other| {
                let length = requests[other].bytes.next_multiple_of(ALIGNMENT);
                (offsets[other], offsets[other] + length)
            })
            .collect::<Vec<_>>();
        taken.sort_unstable();
        offsets[index] = smallest_gap(&taken, size, bytes);
        bytes = bytes.max(offsets[index] + size);
        placed.push(index);
    }
    Plan { offsets, bytes }
}

/// Whether `late` may have the memory of `early`.
fn may_follow(early: &Request, late: &Request, order: &Order) -> bool {
    // Not only before the first: several may write parts of it, in any order.
    let is_before = |step: usize| late.steps.iter().all(|&other| order.comes_before(step, other));
    !early.is_kept && !late.steps.is_empty() && early.steps.iter().all(|&step| is_before(step))
}

/// Where `size` bytes fit between the taken ranges with the least left over; else behind them.
fn smallest_gap(taken: &[(usize, usize)], size: usize, bytes: usize) -> usize {
    let mut best = None::<(usize, usize)>;
    let mut end = 0;
    for &(start, stop) in taken.iter().chain([&(bytes, bytes)]) {
        if start >= end + size && best.is_none_or(|(left, _)| start - end - size < left) {
            best = Some((start - end - size, end));
        }
        end = end.max(stop);
    }
    best.map_or_else(
        || taken.iter().map(|&(_, stop)| stop).max().unwrap_or(0),
        |(_, offset)| offset,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Use::{Read, Write};

    fn request(bytes: usize, steps: &[usize]) -> Request {
        Request { bytes, steps: steps.to_vec(), is_kept: false }
    }

    #[test]
    fn a_chain_needs_two_places() {
        let uses = (0..10_u64).map(|i| vec![(i, Read), (i + 1, Write)]).collect::<Vec<_>>();
        let order = Order::new(&uses);
        let requests = (0..9).map(|i| request(1000, &[i, i + 1])).collect::<Vec<_>>();
        let plan = plan(&requests, &order);
        assert_eq!(plan.bytes, 2 * 1024);
        assert!(plan.offsets.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn branches_and_kept_buffers_have_places_of_their_own() {
        // Two chains of three steps that could run side by side.
        let uses = [
            vec![(1, Write)],
            vec![(11, Write)],
            vec![(1, Read), (2, Write)],
            vec![(11, Read), (12, Write)],
            vec![(2, Read), (3, Write)],
            vec![(12, Read), (13, Write)],
        ];
        let order = Order::new(&uses);
        let mut requests = vec![
            request(256, &[0, 2]),
            request(256, &[1, 3]),
            request(256, &[2, 4]),
            request(256, &[3, 5]),
            request(256, &[4]),
            request(256, &[5]),
        ];
        assert_eq!(plan(&requests, &order).bytes, 4 * 256);
        requests[0].is_kept = true;
        assert_eq!(plan(&requests, &order).bytes, 5 * 256);
    }

    #[test]
    fn no_two_buffers_that_live_together_overlap() {
        // Pseudo-random recordings, checked pair by pair.
        let mut state = 1_u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..50 {
            let count = 40;
            let uses = (0..count)
                .map(|step| {
                    let mut uses = vec![(step, Write)];
                    for _ in 0..random(4) {
                        if step > 0 {
                            uses.push((random(step), Read));
                        }
                    }
                    uses
                })
                .collect::<Vec<_>>();
            let order = Order::new(&uses);
            let requests = (0..count)
                .map(|buffer| {
                    let uses = uses.iter().enumerate();
                    let steps = uses.filter(|(_, uses)| uses.iter().any(|(b, _)| *b == buffer));
                    let steps = steps.map(|(step, _)| step).collect();
                    let bytes = 1 + random(5000) as usize;
                    Request { bytes, steps, is_kept: random(8) == 0 }
                })
                .collect::<Vec<_>>();
            let plan = plan(&requests, &order);
            for (a, first) in requests.iter().enumerate() {
                for (b, second) in requests.iter().enumerate().skip(a + 1) {
                    let apart = plan.offsets[a] + first.bytes <= plan.offsets[b]
                        || plan.offsets[b] + second.bytes <= plan.offsets[a];
                    let follow =
                        may_follow(first, second, &order) || may_follow(second, first, &order);
                    assert!(apart || follow, "{a} and {b}");
                }
                assert!(plan.offsets[a] + first.bytes <= plan.bytes);
                assert!(plan.offsets[a].is_multiple_of(ALIGNMENT));
            }
        }
    }
}
