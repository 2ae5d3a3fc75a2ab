//! Temporal metric distillation (Myers, Ji and Eysenbach 2025, "Offline Goal-Conditioned
//! Reinforcement Learning with Quasimetric Representations"): a contrastive distance that is made
//! invariant to actions and to time, so that it becomes the *optimal* successor distance.
//!
//! With `D_ij = d(phi(s_i, a_i), psi(g_j))` and `N_ij = d(psi(s'_i), psi(g_j))`:
//!
//! * the contrastive loss, each goal picking its state among the batch's, makes `D` the successor
//!   distance of the behaviour up to a constant;
//! * the action invariance `d(psi(s), phi(s, a)) -> 0` makes a state as close to a goal as its best
//!   action;
//! * the temporal invariance `gamma exp(D - N) - D`, smallest in expectation where
//!   `exp(-D) = gamma E exp(-N)`, passes distances back along transitions.
//!
//! There are two pairs of networks `(phi, psi)`; losses are means over them, and the policy
//! minimises the larger distance.

mod settings;

use cm_learner::{
    Dimensions, Features, Group, Learner, Metrics, StateDistance, Transitions, Update, streams,
};
use cm_nn::check::require;
use cm_nn::{Backend, Direction, Head, Mlp, Over, Parameters, Var};
use cm_policy::Actor;

pub use settings::{Cut, InvariantActions, PolicySees, TmdSettings};

use crate::Result;

/// Temporal metric distillation.
///
/// Parameters: `phi_0/...`, `phi_1/...`, `psi_0/...`, `psi_1/...` and the policy's.
///
/// ```
/// use cm_distill::{Tmd, TmdSettings};
/// use cm_learner::{Dimensions, Learner};
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let tmd = Tmd::new(&backend, &TmdSettings::released(), &Dimensions::new(2, 2, 0..2)?)?;
/// let [here, there] = [0.0, 3.0].map(|x| Var::full(&backend, [1, 2], x));
/// let (here, there) = (here?, there?);
/// let still = Var::full(&backend, [1, 2], 0.0)?;
/// let distance = tmd.distance(&here, &still, &there, &still)?.unwrap();
/// assert!(distance.item()? > 0.0);
/// # Ok::<(), cm_distill::Error>(())
/// ```
pub struct Tmd<B: Backend> {
    settings: TmdSettings,
    dimensions: Dimensions,
    features: Features<B>,
    pairs: Vec<Pair<B>>,
    phi_group: Group<B>,
    psi_group: Group<B>,
    actor: Actor<B>,
}

/// One of the two pairs of networks.
struct Pair<B: Backend> {
    phi: Mlp<B>,
    psi: Mlp<B>,
}

impl<B: Backend> Tmd<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &TmdSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let TmdSettings { network, latent, adam, .. } = settings;
        let features = Features::new(backend, settings.features, dimensions)?;
        let (state, action) = (features.state_columns(), features.action_columns());
        let [mut of_phi, mut of_psi] = [0; 2].map(|_| Parameters::new(backend));
        let pairs = (0..2).map(|index| {
            let phi = format!("phi_{index}");
            let phi = Mlp::new(&mut of_phi, &phi, state + action, network, *latent)?;
            let psi = Mlp::new(&mut of_psi, &format!("psi_{index}"), state, network, *latent)?;
            Ok(Pair { phi, psi })
        });
        let pairs = pairs.collect::<Result<_>>()?;
        let seen = match settings.policy_sees {
            PolicySees::States => dimensions.clone(),
            PolicySees::Features | PolicySees::MovedFeatures => {
                let (goal, whole) = (dimensions.goal_columns(), 0..dimensions.state());
                let expected = "`states` unless goals are whole states";
                require(goal == whole, "policy_sees", expected, format_args!("{goal:?}"))?;
                Dimensions::new(*latent, dimensions.action(), 0..*latent)?
            }
        };
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            features,
            pairs,
            phi_group: Group::adam("phi", of_phi, *adam)?,
            psi_group: Group::adam("psi", of_psi, *adam)?,
            actor: Actor::new(backend, &settings.actor, &seen)?,
        })
    }

    /// The loss of `phi` and `psi`, `[1, 1]`. Adds its three terms to the metrics.
    pub fn critic_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let Self { settings, features, .. } = self;
        let pair = features.state_action(&batch.state, &batch.action)?;
        let states = Var::concat_rows(&[&batch.state, &batch.goal])?;
        let (states, next_state) = (features.state(&states)?, features.state(&batch.next_state)?);
        let invariant = match settings.invariant_actions {
            InvariantActions::Own => None,
            InvariantActions::Permuted => {
                let rows = batch.action.rows();
                let order = Var::permutation(batch.action.backend(), rows, streams::GOAL_ACTIONS)?;
                let action = batch.action.gather_rows(&order)?;
                Some(features.state_action(&batch.state, &action)?)
            }
        };
        let mut terms = Vec::with_capacity(self.pairs.len());
        for Pair { phi, psi } in &self.pairs {
            let from = phi.forward(&pair)?;
            let both = psi.forward(&states)?;
            let rows = batch.state.rows();
            let (here, goal) = (both.slice_rows(0..rows)?, both.slice_rows(rows..2 * rows)?);
            let next = psi.forward(&next_state)?.stop_gradient();

            // The distance from every (s, a) of the batch to every goal.
            let distance = self.all(&from, &goal)?;
            let logits = distance.scale(-1.0 / settings.contrastive_divisor)?;
            let contrastive = logits.info_nce(Direction::Columns)?;

            let acted = match &invariant {
                Some(pair) => phi.forward(pair)?,
                None => from.clone(),
            };
            let acted = if settings.stop_phi { acted.stop_gradient() } else { acted };
            let action_invariance = self.own(&here, &acted)?.mean(Over::All)?;

            let distance = match settings.stop_psi {
                true => self.all(&from, &goal.stop_gradient())?,
                false => distance,
            };
            let next = self.all(&next, &goal.stop_gradient())?;
            let divergence = self.divergence(&distance, &next)?;
            terms.push([contrastive, action_invariance, self.weigh(&divergence)?]);
        }
        let mean = |term: usize| -> Result<Var<B>> {
            let [first, second] = [&terms[0][term], &terms[1][term]];
            first.add(second)?.scale(0.5)
        };
        let [contrastive, action, temporal] = [mean(0)?, mean(1)?, mean(2)?];
        let named = [
            ("contrastive", &contrastive),
            ("action_invariance", &action),
            ("temporal_invariance", &temporal),
        ];
        metrics.extend(named.map(|(name, term)| (name, term.stop_gradient())));
        let loss = contrastive.add(&action.scale(settings.action_invariance)?)?;
        loss.add(&temporal.scale(settings.temporal_invariance)?)
    }

    /// The policy's loss, `[1, 1]`: the larger distance from its action, held to the data.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let seen = self.features.state(&goal)?;
        let ends = self.pairs.iter().map(|pair| Ok(pair.psi.forward(&seen)?.stop_gradient()));
        let ends = ends.collect::<Result<Vec<_>>>()?;
        let distance = |action: &Var<B>| {
            let pair = self.features.state_action(&batch.state, action)?;
            self.larger(|index, networks| self.own(&networks.phi.forward(&pair)?, &ends[index]))
        };
        if self.settings.policy_sees == PolicySees::States {
            return self.actor.loss(batch, &goal, distance, metrics);
        }
        let seen = Transitions {
            state: self.seen(&batch.state)?,
            action: batch.action.clone(),
            next_state: batch.next_state.clone(),
            goal: self.seen(batch.actor_goal())?,
            goal_action: batch.goal_action.clone(),
            steps_to_goal: batch.steps_to_goal.clone(),
            actor_goals: None,
        };
        self.actor.loss(&seen, &self.seen(&goal)?, distance, metrics)
    }

    /// `d(phi(s, a), psi(g))` row by row, `[n, 1]`; the larger of the two.
    pub fn action_distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
    ) -> Result<Var<B>> {
        let pair = self.features.state_action(state, action)?;
        let goal = self.features.state(goal)?;
        self.larger(|_, Pair { phi, psi }| self.own(&phi.forward(&pair)?, &psi.forward(&goal)?))
    }

    /// What the policy sees of a state.
    fn seen(&self, state: &Var<B>) -> Result<Var<B>> {
        let [first, second] = [&self.pairs[0].psi, &self.pairs[1].psi];
        let state = self.features.state(state)?;
        let mean = first.forward(&state)?.add(&second.forward(&state)?)?.scale(0.5)?;
        match self.settings.policy_sees {
            PolicySees::MovedFeatures => Ok(mean),
            _ => Ok(mean.stop_gradient()),
        }
    }

    /// `gamma exp(D - N) - D`, cut; `[n, n]`.
    fn divergence(&self, distance: &Var<B>, next: &Var<B>) -> Result<Var<B>> {
        let ahead = distance.sub(next)?;
        let largest = match self.settings.cut {
            Cut::Linear { beyond } => beyond,
            Cut::Clip { .. } => Cut::LARGEST,
        };
        let exponential = ahead.clamp(f32::NEG_INFINITY, largest)?.exp()?;
        let term = exponential.scale(self.settings.discount)?.sub(distance)?;
        match self.settings.cut {
            Cut::Linear { beyond } => {
                let linear = ahead.affine(1.0, -beyond)?.is_positive()?;
                term.add(&ahead.sub(&term)?.mul(&linear)?)
            }
            Cut::Clip { at } => term.clamp(f32::NEG_INFINITY, at),
        }
    }

    /// The mean over all pairs and over the rows' own goals, as the settings weigh them.
    fn weigh(&self, divergence: &Var<B>) -> Result<Var<B>> {
        let own = self.settings.own_goals;
        let all = divergence.mean(Over::All)?.scale(1.0 - own)?;
        all.add(&divergence.diagonal()?.mean(Over::All)?.scale(own)?)
    }

    /// The larger of what both pairs of networks say.
    fn larger(&self, distance: impl Fn(usize, &Pair<B>) -> Result<Var<B>>) -> Result<Var<B>> {
        distance(0, &self.pairs[0])?.maximum(&distance(1, &self.pairs[1])?)
    }

    fn own(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_rows(to, self.settings.head, None)
    }

    fn all(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_pairs(to, self.settings.head, None)
    }

    /// The head without what is added under roots, so that it is 0 from a point to itself.
    fn exact_head(&self) -> Head {
        match self.settings.head {
            Head::Mrn { components, .. } => Head::Mrn { components, epsilon: 0.0 },
            head => head,
        }
    }
}

/// `d(psi(s), psi(g))`, the larger of the two, without what is added under roots in training.
impl<B: Backend> StateDistance<B> for Tmd<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        let [first, second] = [&self.pairs[0].psi, &self.pairs[1].psi];
        let state = self.features.state(state)?;
        Var::concat_columns(&[&first.forward(&state)?, &second.forward(&state)?])
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.of_halves(from, to, |from, to| from.distance_rows(to, self.exact_head(), None))
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.of_halves(from, to, |from, to| from.distance_pairs(to, self.exact_head(), None))
    }
}

impl<B: Backend> Tmd<B> {
    fn of_halves(
        &self,
        from: &Var<B>,
        to: &Var<B>,
        distance: impl Fn(&Var<B>, &Var<B>) -> Result<Var<B>>,
    ) -> Result<Var<B>> {
        let latent = self.settings.latent;
        let half = |index: usize| {
            let range = index * latent..(index + 1) * latent;
            distance(&from.slice_columns(range.clone())?, &to.slice_columns(range)?)
        };
        half(0)?.maximum(&half(1)?)
    }
}

impl<B: Backend> Learner<B> for Tmd<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("critic_loss", &[&self.phi_group, &self.psi_group], |metrics| {
            self.critic_loss(batch, metrics)
        })?;
        let policy_loss = |metrics: &mut Metrics<B>| self.policy_loss(batch, metrics);
        match self.settings.policy_sees {
            PolicySees::MovedFeatures => {
                let groups = [self.actor.group(), &self.psi_group];
                update.minimise_also("policy_loss", &groups, policy_loss)
            }
            _ => update.minimise("policy_loss", &[self.actor.group()], policy_loss),
        }
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        match self.settings.policy_sees {
            PolicySees::States => self.actor.act(state, goal),
            _ => self.actor.act(&self.seen(state)?, &self.seen(goal)?),
        }
    }

    /// `d(phi(s, a), psi(g))`; the goal's action plays no part.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        self.action_distance(state, action, goal).map(Some)
    }

    fn states(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![&self.phi_group, &self.psi_group, self.actor.group()]
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
