//! Goals that policies have for themselves.

use cm_learner::{ActorGoals, Dimensions, Metrics, Transitions};
use cm_nn::{DfdxBackend, MlpSettings, Over, Var};
use cm_policy::{Actor, ActorSettings, Extraction, PolicySettings};

type B = DfdxBackend;
const ROWS: usize = 12;

fn batch(backend: &B) -> Transitions<B> {
    let matrix = |columns, stream| Var::normal(backend, [ROWS, columns], stream).unwrap();
    Transitions {
        state: matrix(3, 0x300),
        action: matrix(2, 0x301).tanh().unwrap(),
        next_state: matrix(3, 0x302),
        goal: matrix(3, 0x303),
        goal_action: matrix(2, 0x304).tanh().unwrap(),
        steps_to_goal: Var::full(backend, [ROWS, 1], 1.0).unwrap(),
        actor_goals: None,
    }
}

/// A made-up distance: squared distance of the action from a point.
fn distance(action: &Var<B>) -> cm_nn::Result<Var<B>> {
    action.affine(1.0, -0.4)?.square()?.sum(Over::Columns)
}

/// Where the policy's goals are drawn apart, it learns from those alone.
#[test]
fn goals_of_its_own_take_the_place_of_the_others() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let shared = batch(&backend);
    let network = MlpSettings { hidden: vec![16], ..Default::default() };
    let settings = ActorSettings {
        policy: PolicySettings { network, ..PolicySettings::ogbench() },
        extraction: Extraction::ScaledDistance { alpha: 0.7 },
        ..ActorSettings::ogbench()
    };
    let actor = Actor::new(&backend, &settings, &Dimensions::new(3, 2, 1..3)?)?;
    let loss = |batch: &Transitions<B>| {
        let [goal, _] = actor.goals(batch)?;
        actor.loss(batch, &goal, distance, &mut Metrics::new())?.item()
    };
    let apart = |goal: &Var<B>| Transitions {
        goal: shared.state.clone(),
        actor_goals: Some(ActorGoals { goal: goal.clone(), subgoals: None }),
        ..batch(&backend)
    };
    assert_eq!(loss(&apart(&shared.goal))?, loss(&shared)?);
    assert_ne!(loss(&apart(&shared.next_state))?, loss(&shared)?);
    Ok(())
}
