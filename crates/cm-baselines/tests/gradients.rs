//! Each learner's losses as wholes: the gradient along random directions against the loss's own
//! differences.

use cm_baselines::{
    Gciql, GciqlSettings, Gcivl, GcivlSettings, GoalReward, GoalValueSettings, Hiql, HiqlSettings,
    Iql, IqlSettings, QLearning, QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_learner::{ActorGoals, Dimensions, Group, Learner, Metrics, Subgoals, Transitions};
use cm_nn::{
    Activation, Backend, DfdxBackend, Head, MlpSettings, QuasimetricSettings, Reduction, Result,
    Var,
};
use cm_policy::{ActorSettings, BehaviourCloning, Extraction, PolicySettings};
use cm_random::{Philox, normal_pair};

type B = DfdxBackend;

fn network() -> MlpSettings {
    MlpSettings { hidden: vec![12], activation: Activation::Silu, ..Default::default() }
}

fn actor(behaviour_cloning: BehaviourCloning) -> ActorSettings {
    let policy = PolicySettings { network: network(), ..Default::default() };
    ActorSettings { policy, behaviour_cloning, ..ActorSettings::paper_text() }
}

fn dimensions() -> Dimensions {
    Dimensions::new(3, 2, 0..2).unwrap()
}

fn batch(backend: &B) -> Transitions<B> {
    let matrix = |columns, stream| Var::normal(backend, [6, columns], stream).unwrap();
    let steps = vec![1.0, 3.0, 0.0, 2.0, 1.0, 5.0];
    Transitions {
        state: matrix(3, 0x300),
        action: matrix(2, 0x301).tanh().unwrap(),
        next_state: matrix(3, 0x302),
        goal: matrix(3, 0x303),
        goal_action: matrix(2, 0x304).tanh().unwrap(),
        steps_to_goal: Var::new(backend, [6, 1], steps).unwrap(),
        actor_goals: None,
    }
}

/// Compares the gradient of `loss` in the group of that name with differences of `value`, along
/// five directions, each the gradient's plus a random one, both of length 1.
fn check(
    learner: &impl Learner<B>,
    group: &str,
    loss: impl Fn() -> Result<Var<B>>,
    value: impl Fn() -> f64,
) {
    let groups = learner.groups();
    let group: &Group<B> = groups.iter().find(|candidate| candidate.name() == group).unwrap();
    let (_, gradients) = group.differentiate(&loss).unwrap();
    let parameters = group.parameters();
    let of_each = parameters.iter().map(|p| gradients.get(p).unwrap().to_vec().unwrap());
    let gradient = of_each.flatten().map(f64::from).collect::<Vec<_>>();
    let start = parameters.iter().flat_map(|p| p.to_vec().unwrap()).collect::<Vec<_>>();
    let at = |change: f64, direction: &[f64]| {
        let moved = start.iter().zip(direction).map(|(&x, d)| (f64::from(x) + change * d) as f32);
        let mut moved = moved.collect::<Vec<_>>().into_iter();
        for parameter in parameters {
            let count = parameter.shape()[0] * parameter.shape()[1];
            parameter.set(&moved.by_ref().take(count).collect::<Vec<_>>()).unwrap();
        }
        value()
    };
    for seed in 0..5 {
        let random = (0..gradient.len()).map(|index| {
            let words = Philox::new(seed).block(0, 0x300, index as u32);
            f64::from(normal_pair(words[0], words[1]).0)
        });
        let random = random.collect::<Vec<_>>();
        let lengths = [length(&gradient), length(&random)];
        let direction = gradient.iter().zip(&random).map(|(g, r)| g / lengths[0] + r / lengths[1]);
        let direction = direction.collect::<Vec<_>>();
        let slope = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
        // A step may cross one of the heads' kinks, where differences are not the slope: the best
        // of three counts.
        let differences =
            [4e-3, 2e-3, 5e-4].map(|h| (at(h, &direction) - at(-h, &direction)) / (2.0 * h));
        let agrees = |found: f64| (slope - found).abs() < 0.01 * lengths[0];
        let name = group.name();
        assert!(differences.into_iter().any(agrees), "{name}: {slope}, {differences:?}");
    }
    at(0.0, &gradient);
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn item(loss: Result<Var<B>>) -> f64 {
    f64::from(loss.unwrap().item().unwrap())
}

#[test]
fn qrl() {
    let mrn =
        QuasimetricSettings { head: Head::MRN, features: 8, separate: true, network: network() };
    let iqe = QuasimetricSettings {
        head: Head::Iqe { groups: 2, reduction: Reduction::MAX_MEAN },
        separate: false,
        ..mrn.clone()
    };
    let latent = TransitionSettings::Latent { size: 5, encoder: network(), residual: network() };
    let features = TransitionSettings::Features { residual: network() };
    for (quasimetric, transition) in
        [(mrn, TransitionSettings::ActionInput), (iqe.clone(), latent), (iqe, features)]
    {
        let settings = QrlSettings {
            quasimetric,
            transition,
            features: Default::default(),
            // Makes the push and the excess of a size.
            push_offset: 1.0,
            push_sharpness: 1.0,
            step_cost: 0.2,
            transition_weight: 0.5,
            actor: actor(BehaviourCloning::Mse),
            ..QrlSettings::plane()
        };
        let backend = DfdxBackend::new(2);
        let qrl = Qrl::new(&backend, &settings, &dimensions()).unwrap();
        let batch = batch(&backend);
        let term = |name: &str| {
            let mut metrics = Metrics::new();
            qrl.critic_loss(&batch, &mut metrics).unwrap();
            item(Ok(metrics.into_iter().find(|(known, _)| *known == name).unwrap().1))
        };
        let critic_loss = || qrl.critic_loss(&batch, &mut Metrics::new());
        let (multiplier, excess) = (term("multiplier"), term("excess"));
        assert!(excess > 0.01, "the constraint should be at work: {excess}");
        check(&qrl, "critic", critic_loss, || {
            term("push") + multiplier * term("excess") + 0.5 * term("transition_loss")
        });
        check(&qrl, "dual", critic_loss, || term("multiplier") * (0.05 - excess));
        let policy_loss = || qrl.policy_loss(&batch, &mut Metrics::new());
        check(&qrl, "policy", policy_loss, || item(policy_loss()));
    }
}

#[test]
fn q_learning() {
    for settings in [
        QLearningSettings::plane(),
        QLearningSettings::plane_authors_code(),
        QLearningSettings::original(),
    ] {
        let settings = QLearningSettings {
            features: Default::default(),
            network: network(),
            actor: actor(BehaviourCloning::Mse),
            ..settings
        };
        let backend = DfdxBackend::new(2);
        let learner = QLearning::new(&backend, &settings, &dimensions()).unwrap();
        let batch = batch(&backend);
        let critic_loss = || learner.critic_loss(&batch);
        check(&learner, "critic", critic_loss, || item(critic_loss()));
        let policy_loss = || learner.policy_loss(&batch, &mut Metrics::new());
        check(&learner, "policy", policy_loss, || item(policy_loss()));
    }
}

#[test]
fn iql() {
    let settings = IqlSettings {
        network: network(),
        policy: PolicySettings { network: network(), ..Default::default() },
        ..IqlSettings::antmaze()
    };
    let backend = DfdxBackend::new(2);
    let learner = Iql::new(&backend, &settings, &dimensions()).unwrap();
    let batch = batch(&backend);
    let value_loss = || learner.value_loss(&batch);
    check(&learner, "value", value_loss, || item(value_loss()));
    let critic_loss = || learner.critic_loss(&batch);
    check(&learner, "critic", critic_loss, || item(critic_loss()));
    let policy_loss = || learner.policy_loss(&batch, &mut Metrics::new());
    check(&learner, "policy", policy_loss, || item(policy_loss()));
}

/// A batch whose policies have goals of their own, with subgoals.
fn with_subgoals(backend: &B) -> Transitions<B> {
    let matrix = |stream| Var::normal(backend, [6, 3], stream).unwrap();
    let subgoals = Some(Subgoals { low: matrix(0x306), high: matrix(0x307) });
    let actor_goals = Some(ActorGoals { goal: matrix(0x305), subgoals });
    Transitions { actor_goals, ..batch(backend) }
}

fn goal_values(reward: GoalReward) -> GoalValueSettings {
    let network = MlpSettings { layer_norm: true, ..network() };
    GoalValueSettings { network, reward, ..Default::default() }
}

/// OGBench's actor with small, smooth networks.
fn ogbench_actor(extraction: Extraction) -> ActorSettings {
    let policy = PolicySettings { network: network(), ..PolicySettings::ogbench() };
    ActorSettings { policy, extraction, ..ActorSettings::ogbench() }
}

#[test]
fn gcivl_and_gciql() {
    let backend = DfdxBackend::new(2);
    let batch = with_subgoals(&backend);
    for (reward, extraction) in [
        (GoalReward::StepCost, Extraction::ScaledDistance { alpha: 0.3 }),
        (GoalReward::Success, Extraction::ValueAdvantage { sharpness: 2.0 }),
    ] {
        let weighted = ogbench_actor(Extraction::ValueAdvantage { sharpness: 3.0 });
        let settings = GcivlSettings { value: goal_values(reward), actor: weighted };
        let learner = Gcivl::new(&backend, &settings, &dimensions()).unwrap();
        let value_loss = || learner.value_loss(&batch);
        check(&learner, "value", value_loss, || item(value_loss()));
        let policy_loss = || learner.policy_loss(&batch, &mut Metrics::new());
        check(&learner, "policy", policy_loss, || item(policy_loss()));

        let settings =
            GciqlSettings { value: goal_values(reward), actor: ogbench_actor(extraction) };
        let learner = Gciql::new(&backend, &settings, &dimensions()).unwrap();
        let value_loss = || learner.value_loss(&batch);
        check(&learner, "value", value_loss, || item(value_loss()));
        let critic_loss = || learner.critic_loss(&batch);
        check(&learner, "critic", critic_loss, || item(critic_loss()));
        if extraction != (Extraction::ScaledDistance { alpha: 0.3 }) {
            let policy_loss = || learner.policy_loss(&batch, &mut Metrics::new());
            check(&learner, "policy", policy_loss, || item(policy_loss()));
        }
    }
}

/// What the representation learns through the values is held to OGBench's code elsewhere: slow
/// copies see it too, and no gradient may pass there.
#[test]
fn hiql() {
    let backend = DfdxBackend::new(2);
    let batch = with_subgoals(&backend);
    let settings = HiqlSettings {
        value: goal_values(GoalReward::StepCost),
        representation: 4,
        policy: PolicySettings { network: network(), ..PolicySettings::ogbench() },
        ..HiqlSettings::ogbench()
    };
    let learner = Hiql::new(&backend, &settings, &dimensions()).unwrap();
    let value_loss = || learner.value_loss(&batch);
    check(&learner, "value", value_loss, || item(value_loss()));
    let low_loss = || learner.low_loss(&batch, &mut Metrics::new());
    check(&learner, "low", low_loss, || item(low_loss()));
    let high_loss = || learner.high_loss(&batch, &mut Metrics::new());
    check(&learner, "high", high_loss, || item(high_loss()));

    let without = self::batch(&backend);
    let error = learner.low_loss(&without, &mut Metrics::new()).unwrap_err().to_string();
    assert!(error.contains("subgoals"), "{error}");
    let length = learner.represent(&batch.state, &batch.goal).unwrap().square().unwrap();
    for length in length.sum(cm_nn::Over::Columns).unwrap().to_vec().unwrap() {
        assert!((length - 4.0).abs() < 1e-4, "{length}");
    }
}

/// The critic's loss of Q-learning from the values of its parts: each row with its own goal, then
/// with another row's.
#[test]
fn q_learning_target_by_hand() {
    let backend = DfdxBackend::new(3);
    let settings = QLearningSettings {
        features: Default::default(),
        network: network(),
        discount: 0.5,
        actor: ActorSettings { sampled: false, ..actor(BehaviourCloning::Mse) },
        ..QLearningSettings::plane()
    };
    let learner = QLearning::new(&backend, &settings, &dimensions()).unwrap();
    let own = batch(&backend);
    let found = item(learner.critic_loss(&own));

    // The target critic starts as a copy of the critic.
    let order = Var::permutation(&backend, 6, 0x141).unwrap();
    let mut sum = 0.0;
    for (goal, own_goal) in
        [(own.goal.clone(), true), (own.goal.gather_rows(&order).unwrap(), false)]
    {
        let policy_goal = goal.slice_columns(0..2).unwrap();
        let next_action = learner.act(&own.next_state, &policy_goal).unwrap();
        let next = learner.action_value(&own.next_state, &next_action, &goal).unwrap();
        let value = learner.action_value(&own.state, &own.action, &goal).unwrap();
        let steps = own.steps_to_goal.to_vec().unwrap();
        let rows = value.to_vec().unwrap().into_iter().zip(next.to_vec().unwrap()).zip(steps);
        for ((value, next), steps) in rows {
            let target = match own_goal && steps <= 1.0 {
                true => -1.0,
                false => (-1.0 + 0.5 * next).clamp(-2.0, 0.0),
            };
            sum += f64::from(value - target).powi(2);
        }
    }
    assert!((found - sum / 12.0).abs() < 1e-5, "{found} {}", sum / 12.0);
    assert_eq!(backend.step().unwrap(), 0, "a loss draws but does not advance");
}
