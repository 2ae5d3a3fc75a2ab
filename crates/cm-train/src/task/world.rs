//! Environments of any type, to act in.

use std::fmt;
use std::ops::Range;

use cm_envs::{Env, Outcome, Rollout, rollout_share};

use crate::Result;

/// An environment of any type, in which a policy is evaluated. Every [`Env`] is one.
pub trait World: fmt::Debug + Send + Sync {
    /// [`Env::observation_width`].
    fn observation_width(&self) -> usize;

    /// [`Env::goal_columns`].
    fn goal_columns(&self) -> Range<usize>;

    /// [`Env::places`].
    fn places(&self) -> Option<&[[f32; 2]]>;

    /// [`Env::tasks`].
    fn tasks(&self) -> usize;

    /// [`Env::walls`].
    fn walls(&self) -> Vec<[[f32; 2]; 2]>;

    /// [`rollout_share`] with a policy that fills in actions for observations and goals.
    fn rollout(
        &self,
        plan: &Rollout,
        numbers: Range<usize>,
        act: &mut Act<'_>,
    ) -> Result<Vec<Outcome>>;
}

/// A policy to a [`World`]: the numbers of `n` episodes, their observations `[n, observation]` and
/// goals `[n, goal]` to actions.
pub type Act<'a> = dyn FnMut(&[usize], &[f32], &[f32], &mut [f32]) -> Result<()> + 'a;

impl<E: Env + fmt::Debug + Send> World for E {
    fn observation_width(&self) -> usize {
        Env::observation_width(self)
    }

    fn goal_columns(&self) -> Range<usize> {
        Env::goal_columns(self)
    }

    fn places(&self) -> Option<&[[f32; 2]]> {
        Env::places(self)
    }

    fn tasks(&self) -> usize {
        Env::tasks(self)
    }

    fn walls(&self) -> Vec<[[f32; 2]; 2]> {
        Env::walls(self)
    }

    fn rollout(
        &self,
        plan: &Rollout,
        numbers: Range<usize>,
        act: &mut Act<'_>,
    ) -> Result<Vec<Outcome>> {
        rollout_share(self, plan, numbers, act)
    }
}
