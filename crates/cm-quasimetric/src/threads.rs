//! When other threads are asked.

/// What is worth a task: below it, waking another thread takes longer than the work. In elements of
/// a pairwise distance, of which a core does so many in 20 to 40 microseconds.
const LEAST: usize = 1 << 18;

/// How many pieces of work, of so many elements each, a thread takes at least: for `with_min_len`,
/// which keeps fewer than twice as many on the thread that asks. No result depends on it.
pub(crate) fn least(elements: usize) -> usize {
    LEAST.div_ceil(elements.max(1))
}
