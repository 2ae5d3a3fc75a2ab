//! A model's policy in its world, on all threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use cm_envs::{Outcome, Rollout};
use cm_learner::Dimensions;
use cm_nn::{Snapshot, Var};

use super::Model;
use crate::plan::{Measure, Nodes, Sight, Walker, is_large};
use crate::{Error, Evaluation, Result, RoadMap, RunSettings, Scaling, Walked, World};

/// Episodes that act together. It does not depend on the number of threads, so that neither do the
/// actions.
const SHARE: usize = 4;

/// What one share of the episodes came to.
type Found = Result<(Vec<Outcome>, Walked)>;

/// Replaces the goals of episodes, by their numbers and observations, with what their policy is sent
/// to.
type Send<'a> = dyn FnMut(&[usize], &[f32], &mut [f32]) -> Result<()> + 'a;

impl Model {
    /// Lets the policy act in `world`, on all threads; their number does not change the outcome.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use cm_envs::Rollout;
    /// use cm_train::{Device, Method, Model, RunFolder, RunSettings, train};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let folder = RunFolder::new(scratch.path().join("run"));
    /// let settings = RunSettings::tiny_plane(Method::Gcbc, 0);
    /// let task = settings.task.open()?;
    /// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
    ///
    /// let plan = Rollout { episodes: 6, seed: 0, paths: 0 };
    /// let found = Model::load(&folder, false)?.evaluate(task.world()?, &plan)?;
    /// assert_eq!(found.outcomes.len(), 6);
    /// assert!((0.0..=1.0).contains(&found.success));
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn evaluate(&self, world: &dyn World, plan: &Rollout) -> Result<Evaluation> {
        self.check_world(world)?;
        let found = self.in_shares(
            plan,
            |_| Ok(()),
            |model, (), numbers| {
                let outcomes = model.act_in(world, plan, numbers, &mut |_, _, _| Ok(()))?;
                Ok((outcomes, Walked::default()))
            },
        );
        Ok(Evaluation::new(world, found?.0, None))
    }

    /// Lets the policy act in `world`, sent from node to node of a road map.
    pub fn evaluate_on(
        &self,
        map: &RoadMap,
        world: &dyn World,
        plan: &Rollout,
    ) -> Result<Evaluation> {
        self.evaluate_with(self, map, world, plan)
    }

    /// Lets the policy of another model act, sent from node to node of a road map of this one, whose
    /// distances say where it stands: a policy for goals nearby need not have learned a distance.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use cm_envs::Rollout;
    /// use cm_train::{Device, Method, Model, PlanSettings, RoadMap, RunFolder, RunSettings, train};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// let model = |method: Method| {
    ///     let folder = RunFolder::new(scratch.path().join(method.key()));
    ///     let settings = RunSettings::tiny_plane(method, 0);
    ///     let task = settings.task.open()?;
    ///     train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
    ///     Ok::<_, cm_train::Error>((Model::load(&folder, false)?, task))
    /// };
    /// let (metric, task) = model(Method::Cmd1)?;
    /// let (policy, _) = model(Method::Gcbc)?;
    /// let map = RoadMap::of_data(&metric, &task, &PlanSettings::default())?;
    /// let plan = Rollout { episodes: 6, seed: 0, paths: 0 };
    /// let found = metric.evaluate_with(&policy, &map, task.world()?, &plan)?;
    /// assert!(found.walked.is_some());
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn evaluate_with(
        &self,
        policy: &Model,
        map: &RoadMap,
        world: &dyn World,
        plan: &Rollout,
    ) -> Result<Evaluation> {
        self.check_world(world)?;
        policy.check_world(world)?;
        let fixed = Measure::new(self)?.fixed()?;
        let spots = Sight::new(self, fixed.as_ref())?.spots(map.nodes())?;
        let nodes = Nodes::new(map, self, spots);
        // Each thread has a copy of its own model, and needs one of the policy if that is another.
        let other = (!std::ptr::eq(self, policy)).then(|| policy.to_copy()).transpose()?;
        let prepare = |model: &Model| {
            let sight = Sight::new(model, fixed.as_ref())?;
            let whole = (!is_large(map)).then(|| sight.all_points(nodes.spots())).transpose()?;
            Ok((whole, other.as_ref().map(Copied::model).transpose()?))
        };
        let (outcomes, walked) =
            self.in_shares(plan, prepare, |model, (whole, policy), numbers| {
                let sight = Sight::new(model, fixed.as_ref())?;
                let mut walker = Walker::new(map, sight, &nodes, whole.as_ref());
                let mut send = |numbers: &[usize], seen: &[f32], goals: &mut [f32]| {
                    walker.aim(numbers, seen, goals)
                };
                let policy = policy.as_ref().unwrap_or(model);
                let outcomes = policy.act_in(world, plan, numbers, &mut send)?;
                Ok((outcomes, walker.walked))
            })?;
        Ok(Evaluation::new(world, outcomes, Some(walked)))
    }

    /// Refuses a world of other observations or goals than the model is of.
    fn check_world(&self, world: &dyn World) -> Result<()> {
        let own = (self.dimensions.state(), self.dimensions.goal_columns());
        let found = (world.observation_width(), world.goal_columns());
        if own == found {
            return Ok(());
        }
        Err(Error::Setting {
            setting: "policy".to_owned(),
            expected: "a model of the world's observations and goals",
            found: format!(
                "one of {} numbers, goals {:?}; the world's have {}, goals {:?}",
                own.0, own.1, found.0, found.1
            ),
        })
    }

    /// Acts in the episodes `numbers`, on this thread.
    fn act_in(
        &self,
        world: &dyn World,
        plan: &Rollout,
        numbers: Range<usize>,
        send: &mut Send<'_>,
    ) -> Result<Vec<Outcome>> {
        let (seen, columns) = (world.observation_width(), world.goal_columns());
        world.rollout(plan, numbers, &mut |numbers, observations, goals, actions| {
            let rows = observations.len() / seen;
            let (mut states, mut aims) = (observations.to_vec(), goals.to_vec());
            send(numbers, observations, &mut aims)?;
            self.scaling.states(&mut states);
            self.scaling.coordinates(columns.start, &mut aims, columns.len());
            let state = Var::new(&self.backend, [rows, seen], states)?;
            let goal = Var::new(&self.backend, [rows, columns.len()], aims)?;
            let found = self.learner.act(&state, &goal)?.to_vec()?;
            if found.len() != actions.len() {
                let [expected, found] = [actions.len(), found.len()].map(|all| all / rows);
                return Err(Error::Width { what: "actions".to_owned(), expected, found });
            }
            actions.copy_from_slice(&found);
            self.scaling.unscale_actions(actions);
            Ok(())
        })
    }

    fn to_copy(&self) -> Result<Copied<'_>> {
        let parameters = self.learner.snapshot(0)?;
        let (settings, dimensions, scaling) = (&self.settings, &self.dimensions, &self.scaling);
        Ok(Copied { settings, dimensions, scaling, parameters })
    }

    /// Lets threads take shares of the episodes, each thread with a copy of the model: a model stays
    /// on one thread. What `prepare` makes of the copy is kept for all shares of the thread.
    fn in_shares<P>(
        &self,
        plan: &Rollout,
        prepare: impl Fn(&Model) -> Result<P> + Sync,
        act: impl Fn(&Model, &P, Range<usize>) -> Found + Sync,
    ) -> Found {
        let shares = plan.episodes.div_ceil(SHARE);
        let threads = rayon::current_num_threads().min(shares);
        let numbers = |share: usize| share * SHARE..(share * SHARE + SHARE).min(plan.episodes);
        if threads < 2 {
            let own = prepare(self)?;
            let found = (0..shares).map(|share| (share, act(self, &own, numbers(share))));
            return join(found.collect());
        }
        let copied = self.to_copy()?;
        let next = AtomicUsize::new(0);
        let work = || {
            let model = copied.model()?;
            let own = prepare(&model)?;
            let mut found = Vec::new();
            loop {
                let share = next.fetch_add(1, Ordering::Relaxed);
                if share >= shares {
                    return Ok(found);
                }
                found.push((share, act(&model, &own, numbers(share))));
            }
        };
        // What a policy would share with other threads takes longer to hand out than to do.
        let alone = || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            pool.map_err(|error| Error::Thread(std::io::Error::other(error)))?.install(work)
        };
        let found = std::thread::scope(|scope| {
            let threads = (0..threads).map(|_| scope.spawn(alone)).collect::<Vec<_>>();
            let found = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            found.collect::<Result<Vec<_>>>()
        })?;
        join(found.into_iter().flatten().collect())
    }
}

/// What a model is made of, for other threads.
struct Copied<'a> {
    settings: &'a RunSettings,
    dimensions: &'a Dimensions,
    scaling: &'a Scaling,
    parameters: Snapshot,
}

impl Copied<'_> {
    fn model(&self) -> Result<Model> {
        Model::of_parameters(self.settings, self.dimensions, self.scaling, &self.parameters)
    }
}

/// All shares' episodes in their order; of errors the first.
fn join(mut shares: Vec<(usize, Found)>) -> Found {
    shares.sort_by_key(|&(share, _)| share);
    let (mut all, mut total) = (Vec::new(), Walked::default());
    for (_, found) in shares {
        let (outcomes, walked) = found?;
        all.extend(outcomes);
        total.no_way += walked.no_way;
        total.replanned += walked.replanned;
    }
    Ok((all, total))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::model::barely_trained;
    use crate::{Device, Method, RunFolder, train};

    #[test]
    fn worlds_of_other_observations_are_refused() {
        let (model, task) = barely_trained(Method::Cmd1);
        let plan = Rollout { episodes: 2, seed: 5, paths: 0 };
        let map = RoadMap::of_data(&model, &task, &crate::PlanSettings::default()).unwrap();
        let message = "found one of 2 numbers, goals 0..2; the world's have 3, goals 1..3";
        let found = [model.evaluate(&Other, &plan), model.evaluate_on(&map, &Other, &plan)];
        for error in found.map(|found| found.unwrap_err().to_string()) {
            assert!(error.contains(message), "{error}");
        }
    }

    /// A world that nobody gets into.
    #[derive(Debug)]
    struct Other;

    impl World for Other {
        fn observation_width(&self) -> usize {
            3
        }

        fn goal_columns(&self) -> Range<usize> {
            1..3
        }

        fn places(&self) -> Option<&[[f32; 2]]> {
            None
        }

        fn tasks(&self) -> usize {
            1
        }

        fn walls(&self) -> Vec<[[f32; 2]; 2]> {
            Vec::new()
        }

        fn rollout(
            &self,
            _: &Rollout,
            _: Range<usize>,
            _: &mut crate::Act<'_>,
        ) -> Result<Vec<Outcome>> {
            unreachable!("it is refused before")
        }
    }

    #[test]
    fn what_policies_do_does_not_depend_on_the_number_of_threads() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(scratch.path().join("run"));
        let settings = RunSettings::tiny_plane(Method::Gcbc, 0);
        let task = settings.task.open().unwrap();
        train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {}).unwrap();
        let world = task.world().unwrap();
        let plan = Rollout { episodes: 4 * SHARE + 1, seed: 5, paths: 4 * SHARE + 1 };
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Model::load(&folder, false).unwrap().evaluate(world, &plan).unwrap())
        };
        let alone = with_threads(1);
        assert_eq!(alone.outcomes.len(), plan.episodes);
        assert_eq!(with_threads(3), alone);
    }
}
