//! What an environment is to a training loop: worlds with goals, in which many episodes run side by
//! side.

use std::ops::Range;

use cm_random::Stream;

use crate::Error;

/// A world in which an agent acts towards a goal.
///
/// The environment itself does not change; everything that does is in an
/// [`Episode`](Self::Episode), so that thousands of episodes share one world and run on all cores.
/// An episode draws every random number from the stream it was begun with: its course depends on
/// the seed, on its own number and on the actions, never on its neighbours or on the number of
/// threads ([`rollout`](crate::rollout)).
///
/// An observation is a state as a policy and a distance see it; some of its coordinates
/// ([`goal_columns`](Self::goal_columns)) are what a goal fixes, such as the xy of a maze.
pub trait Env: Sync {
    /// One episode under way.
    type Episode: Send;

    /// What it is called on a command line and in a run's settings.
    fn name(&self) -> &str;

    /// Numbers in an observation.
    fn observation_width(&self) -> usize;

    /// Numbers in an action. Each lies in `[-1, 1]`; what lies outside is treated as the
    /// environment documents.
    fn action_width(&self) -> usize;

    /// Which numbers of an observation the goal fixes.
    fn goal_columns(&self) -> Range<usize>;

    /// The largest number of steps an episode may take.
    fn horizon(&self) -> usize;

    /// How many tasks an evaluation goes through, one after another: episode `k` of a
    /// [`rollout`](crate::rollout) has task `k % tasks`.
    fn tasks(&self) -> usize {
        1
    }

    /// Begins an episode of one of the [`tasks`](Self::tasks).
    fn begin_task(&self, task: usize, random: Stream) -> Result<Self::Episode, Error> {
        let _ = task;
        self.begin(random)
    }

    /// Begins an episode: where it starts and its goal come from `random`, and so will everything
    /// else that happens by chance in it.
    fn begin(&self, random: Stream) -> Result<Self::Episode, Error>;

    /// Writes what the agent sees now. Observing may be noisy, and then draws from the episode's
    /// stream.
    fn observe(&self, episode: &mut Self::Episode, observation: &mut [f32]);

    /// Writes where the episode should end: as many numbers as there are
    /// [`goal_columns`](Self::goal_columns).
    fn goal(&self, episode: &Self::Episode, goal: &mut [f32]);

    /// Acts once. Fails only where the world cannot go on (a simulator's state that is not finite,
    /// say).
    fn step(&self, episode: &mut Self::Episode, action: &[f32]) -> Result<(), Error>;

    /// Whether the goal is reached where the episode now stands.
    fn succeeded(&self, episode: &Self::Episode) -> bool;

    /// Where the agent is in the plane, for pictures.
    fn position(&self, episode: &Self::Episode) -> [f32; 2];

    /// Every state, where states are finitely many places of the plane.
    fn places(&self) -> Option<&[[f32; 2]]> {
        None
    }

    /// What stands in the way, for pictures: rectangles of the plane that
    /// [`position`](Self::position) is in, each by its lower left and its upper right corner.
    fn walls(&self) -> Vec<[[f32; 2]; 2]> {
        Vec::new()
    }
}
