//! Settings of TMD: as released, as printed, as revised.

use cm_learner::FeatureSettings;
use cm_nn::check::{Within, fraction, not_negative, positive, require, share};
use cm_nn::{AdamSettings, Head, MlpSettings};
use cm_policy::{ActorSettings, BehaviourCloning, Extraction, PolicyGoals};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::cmd1::ogbench_head;

/// Settings of [`Tmd`](crate::Tmd). The default is [`TmdSettings::released`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TmdSettings {
    /// The head that compares features. A max-mean reduction keeps its logit: it is not learned.
    pub head: Head,
    /// Number of features of `phi` and `psi`.
    pub latent: usize,
    /// What they see of states and actions.
    pub features: FeatureSettings,
    /// Hidden layers of `phi` and `psi`, of which there are two each.
    pub network: MlpSettings,
    /// What moves `phi` and `psi`.
    pub adam: AdamSettings,
    /// Discount `gamma` of a step in the temporal invariance, in `(0, 1)`. That of geometric goals
    /// should be the same.
    pub discount: f32,
    /// Positive; distances are divided by this in the contrastive loss.
    pub contrastive_divisor: f32,
    /// Weight of the action invariance; not negative.
    pub action_invariance: f32,
    /// Which actions the action invariance is about.
    pub invariant_actions: InvariantActions,
    /// Whether the action invariance leaves `phi` alone.
    pub stop_phi: bool,
    /// Weight of the temporal invariance; not negative.
    pub temporal_invariance: f32,
    /// Whether the temporal invariance leaves `psi(g)` alone, as it always does `psi(s')`.
    pub stop_psi: bool,
    /// The share of the rows' own goals in the temporal invariance, in `[0, 1]`; the rest is of all
    /// pairs.
    pub own_goals: f32,
    /// What becomes of large terms of the temporal invariance.
    pub cut: Cut,
    /// What the policy sees.
    pub policy_sees: PolicySees,
    /// The policy and its loss.
    pub actor: ActorSettings,
}

/// The actions of the action invariance `d(psi(s), phi(s, a)) = 0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvariantActions {
    /// Those taken at each state.
    #[default]
    Own,
    /// Those of the batch in random order: an estimate of the mean over all pairs of states and
    /// actions (the TMD paper's Eq. 22), for the price of one.
    Permuted,
}

/// What becomes of large terms `e = gamma exp(d - d') - d` of the temporal invariance, which would
/// otherwise decide alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Cut {
    /// Where `d - d'` exceeds a bound the term is `d - d'`, whose slope is 1.
    Linear {
        /// The bound; at most 80.
        beyond: f32,
    },
    /// The term is at most this, and has no gradient there.
    Clip {
        /// The bound.
        at: f32,
    },
}

/// What the policy sees of states and goals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySees {
    /// Themselves.
    #[default]
    States,
    /// The mean of both `psi` of each, which the policy's loss leaves alone.
    Features,
    /// The same, moved by the policy's loss too.
    MovedFeatures,
}

impl Default for TmdSettings {
    fn default() -> Self {
        Self::released()
    }
}

impl TmdSettings {
    /// As the authors released it: weight 1 of the action invariance, 0.05 of the temporal one,
    /// half of it on the rows' own goals, linear beyond 3, gradients into `psi(g)`, logits over the
    /// root of 512, discount 0.99, Adam 3e-4.
    pub fn released() -> Self {
        let actor = ActorSettings::ogbench();
        Self {
            head: ogbench_head(8, 512),
            latent: 512,
            features: FeatureSettings::Raw,
            network: MlpSettings::ogbench(),
            adam: actor.adam,
            discount: 0.99,
            contrastive_divisor: 512.0_f32.sqrt(),
            action_invariance: 1.0,
            invariant_actions: InvariantActions::Own,
            stop_phi: false,
            temporal_invariance: 0.05,
            stop_psi: false,
            own_goals: 0.5,
            cut: Cut::Linear { beyond: 3.0 },
            policy_sees: PolicySees::States,
            actor,
        }
    }

    /// The authors' version of February 2026: as released, but both invariances have one weight;
    /// and with the paper's weight 0.1, discount 0.995 and a temporal invariance that moves `phi`
    /// alone.
    pub fn revised() -> Self {
        Self {
            action_invariance: 0.1,
            temporal_invariance: 0.1,
            stop_psi: true,
            discount: 0.995,
            ..Self::released()
        }
    }

    /// As the paper prints it: one weight of both invariances, 0.1 (0.01 in mazes of medium size);
    /// all pairs of states and goals, and of states and actions; terms of at most 5; the temporal
    /// invariance moves `phi` alone; logits are minus the distance; discount 0.995. The policy
    /// minimises its distance, half to its own goals and half to others (the paper names that
    /// share, but not its value), plus 0.1 times its squared distance to the data's actions.
    ///
    /// The head is the released one: the paper prints only its asymmetric half.
    pub fn paper_text() -> Self {
        let released = Self::released();
        Self {
            discount: 0.995,
            contrastive_divisor: 1.0,
            action_invariance: 0.1,
            invariant_actions: InvariantActions::Permuted,
            temporal_invariance: 0.1,
            stop_psi: true,
            own_goals: 0.0,
            cut: Cut::Clip { at: 5.0 },
            actor: ActorSettings {
                goals: PolicyGoals::Rolled { probability: 0.5 },
                extraction: Extraction::DistanceMinimisation { bc_coef: 0.0 }.with_weight(0.1),
                behaviour_cloning: BehaviourCloning::SquaredLength,
                ..released.actor
            },
            ..released
        }
    }

    /// The 2-D experiment, which has no TMD in the authors' script: its networks, policy, discount
    /// and rates; 128 features, distances that are log ratios in every loss.
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            head: ogbench_head(8, 128),
            latent: 128,
            features: FeatureSettings::PLANE,
            network: actor.policy.network.clone(),
            adam: actor.adam,
            discount: 0.8,
            contrastive_divisor: 1.0,
            action_invariance: 0.1,
            temporal_invariance: 0.1,
            actor,
            ..Self::released()
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        if let Err(refused) = self.head.check(self.latent) {
            let expected = "a number of features that the head divides";
            return require(false, "latent", expected, refused);
        }
        self.features.check().within("features")?;
        self.network.check().within("network")?;
        self.adam.check().within("adam")?;
        fraction("discount", self.discount)?;
        positive("discount", self.discount)?;
        positive("contrastive_divisor", self.contrastive_divisor)?;
        not_negative("action_invariance", self.action_invariance)?;
        not_negative("temporal_invariance", self.temporal_invariance)?;
        share("own_goals", self.own_goals)?;
        match self.cut {
            Cut::Linear { beyond } => {
                let finite = beyond.is_finite() && beyond <= Cut::LARGEST;
                require(finite, "beyond", "finite and at most 80", beyond).within("linear")
            }
            Cut::Clip { at } => require(at.is_finite(), "at", "finite", at).within("clip"),
        }
        .within("cut")?;
        let seen = self.policy_sees == PolicySees::States
            || self.actor.policy.features == FeatureSettings::Raw;
        let expected = "`raw` where the policy sees what `psi` makes of states";
        require(seen, "actor.policy.features", expected, "soft features")?;
        self.actor.check().within("actor")
    }
}

impl Cut {
    /// Exponents beyond this are not formed; their exponentials would overflow.
    pub(super) const LARGEST: f32 = 80.0;
}
