//! Settings round-trip, refuse unknown keys and refuse values outside their ranges.

use cm_baselines::{
    GciqlSettings, GcivlSettings, GoalValueSettings, HiqlSettings, Iql, IqlSettings, QLearning,
    QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_learner::DualOptimiser;
use cm_learner::{Dimensions, Learner, Transitions};
use cm_nn::{AdamSettings, DfdxBackend, Head, MlpSettings, QuasimetricSettings, Reduction, Var};
use cm_policy::{ActorSettings, Extraction, PolicySettings};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trips<S: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(settings: S) {
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<S>(&text).unwrap(), settings);
    let mut value = serde_json::to_value(&settings).unwrap();
    value["discuont"] = 0.9.into();
    let error = serde_json::from_value::<S>(value).unwrap_err().to_string();
    assert!(error.contains("unknown field `discuont`"), "{error}");
}

#[test]
fn presets_are_valid_and_round_trip() {
    for settings in [QrlSettings::plane(), QrlSettings::original(), QrlSettings::ogbench()] {
        settings.check().unwrap();
        round_trips(settings);
    }
    for settings in [
        QLearningSettings::plane(),
        QLearningSettings::plane_authors_code(),
        QLearningSettings::original(),
    ] {
        settings.check().unwrap();
        round_trips(settings);
    }
    for settings in [IqlSettings::original(), IqlSettings::antmaze(), IqlSettings::plane()] {
        settings.check().unwrap();
        round_trips(settings);
    }
    GcivlSettings::ogbench().check().unwrap();
    round_trips(GcivlSettings::ogbench());
    GciqlSettings::ogbench().check().unwrap();
    round_trips(GciqlSettings::ogbench());
    HiqlSettings::ogbench().check().unwrap();
    round_trips(HiqlSettings::ogbench());
}

#[test]
fn what_a_method_cannot_do_is_refused() {
    let value = GoalValueSettings { expectile: 1.0, ..Default::default() };
    let scaled = ActorSettings::ogbench(); // needs a value of actions
    let of_gcivl = [
        ("value.expectile", GcivlSettings { value, ..GcivlSettings::ogbench() }),
        ("actor.extraction", GcivlSettings { actor: scaled, ..GcivlSettings::ogbench() }),
    ];
    for (key, settings) in of_gcivl {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let value = GoalValueSettings { target_decay: 1.0, ..Default::default() };
    let error = GciqlSettings { value, ..GciqlSettings::ogbench() }.check().unwrap_err();
    assert!(error.to_string().contains("value.target_decay"), "{error}");
    let hiql = HiqlSettings::ogbench;
    for (key, settings) in [
        ("representation", HiqlSettings { representation: 0, ..hiql() }),
        ("policy.kind", HiqlSettings { policy: PolicySettings::default(), ..hiql() }),
        ("low_sharpness", HiqlSettings { low_sharpness: -1.0, ..hiql() }),
        ("high_sharpness", HiqlSettings { high_sharpness: f32::NAN, ..hiql() }),
    ] {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let by_values = Extraction::ValueAdvantage { sharpness: 1.0 };
    let actor = ActorSettings { extraction: by_values, ..ActorSettings::ogbench() };
    let error = QrlSettings { actor, ..QrlSettings::ogbench() }.check().unwrap_err();
    assert!(error.to_string().contains("actor.extraction"), "{error}");
}

#[test]
fn an_empty_table_is_the_defaults() {
    assert_eq!(serde_json::from_str::<QrlSettings>("{}").unwrap(), QrlSettings::plane());
    assert_eq!(
        serde_json::from_str::<QLearningSettings>("{}").unwrap(),
        QLearningSettings::plane()
    );
    assert_eq!(serde_json::from_str::<IqlSettings>("{}").unwrap(), IqlSettings::original());
}

#[test]
fn the_original_multiplier_starts_at_one_hundredth() {
    let start = QrlSettings::original().dual_start;
    assert!((start.exp().ln_1p() - 0.01).abs() < 1e-6);
}

#[test]
fn refuses_values_outside_their_ranges() {
    let qrl = QrlSettings::plane;
    let metric = |head, features| QuasimetricSettings { head, features, ..Default::default() };
    let bad = AdamSettings { learning_rate: -1.0, ..Default::default() };
    let none = TransitionSettings::Latent {
        size: 0,
        encoder: MlpSettings::default(),
        residual: MlpSettings::default(),
    };
    let refused = [
        ("push_offset", QrlSettings { push_offset: f32::NAN, ..qrl() }),
        ("push_sharpness", QrlSettings { push_sharpness: 0.0, ..qrl() }),
        ("step_cost", QrlSettings { step_cost: -1.0, ..qrl() }),
        ("margin", QrlSettings { margin: -0.1, ..qrl() }),
        ("transition_weight", QrlSettings { transition_weight: f32::INFINITY, ..qrl() }),
        ("dual_start", QrlSettings { dual_start: f32::INFINITY, ..qrl() }),
        ("size", QrlSettings { transition: none, ..qrl() }),
        ("features", QrlSettings { quasimetric: metric(Head::Max, 0), ..qrl() }),
        (
            "features",
            QrlSettings {
                quasimetric: metric(Head::Iqe { groups: 7, reduction: Reduction::MAX_MEAN }, 64),
                ..qrl()
            },
        ),
        (
            "features",
            QrlSettings {
                quasimetric: metric(Head::Iqe { groups: 0, reduction: Reduction::MAX_MEAN }, 64),
                ..qrl()
            },
        ),
        ("learning_rate", QrlSettings { adam: bad, ..qrl() }),
        (
            "learning_rate",
            QrlSettings { dual_optimiser: DualOptimiser::Sgd { learning_rate: 0.0 }, ..qrl() },
        ),
        ("learning_rate", QrlSettings { dual_optimiser: DualOptimiser::Adam(bad), ..qrl() }),
    ];
    for (key, settings) in refused {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let q = QLearningSettings::plane;
    for (key, settings) in [
        ("discount", QLearningSettings { discount: 1.0, ..q() }),
        ("target_decay", QLearningSettings { target_decay: -0.1, ..q() }),
        ("learning_rate", QLearningSettings { adam: bad, ..q() }),
    ] {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let iql = IqlSettings::plane;
    for (key, settings) in [
        ("discount", IqlSettings { discount: f32::NAN, ..iql() }),
        ("expectile", IqlSettings { expectile: 1.0, ..iql() }),
        ("target_decay", IqlSettings { target_decay: 1.0, ..iql() }),
        ("advantage_sharpness", IqlSettings { advantage_sharpness: -1.0, ..iql() }),
        ("largest_weight", IqlSettings { largest_weight: 0.0, ..iql() }),
        ("learning_rate", IqlSettings { policy_adam: bad, ..iql() }),
    ] {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
}

/// Random rows of the 2-D experiment.
fn batch(backend: &DfdxBackend, state: usize) -> Transitions<DfdxBackend> {
    let matrix = |columns, stream| Var::normal(backend, [8, columns], stream).unwrap();
    Transitions {
        state: matrix(state, 0x300),
        action: matrix(2, 0x301).l2_normalize(0.0).unwrap(),
        next_state: matrix(state, 0x302),
        goal: matrix(state, 0x303),
        goal_action: matrix(2, 0x304),
        steps_to_goal: matrix(1, 0x305).abs().unwrap(),
        actor_goals: None,
    }
}

#[test]
fn every_preset_of_the_plane_takes_steps() {
    let backend = DfdxBackend::new(0);
    let dimensions = Dimensions::new(2, 2, 0..2).unwrap();
    let learners: [Box<dyn Learner<DfdxBackend>>; 4] = [
        Box::new(Qrl::new(&backend, &QrlSettings::plane(), &dimensions).unwrap()),
        Box::new(QLearning::new(&backend, &QLearningSettings::plane(), &dimensions).unwrap()),
        Box::new(
            QLearning::new(&backend, &QLearningSettings::plane_authors_code(), &dimensions)
                .unwrap(),
        ),
        Box::new(Iql::new(&backend, &IqlSettings::plane(), &dimensions).unwrap()),
    ];
    for learner in learners {
        let rows = batch(&backend, 2);
        let before = learner.snapshot(0).unwrap();
        for (name, value) in learner.step(&rows).unwrap() {
            assert!(value.item().unwrap().is_finite(), "{name}");
        }
        let after = learner.snapshot(0).unwrap();
        for (name, matrix) in before.iter() {
            let moved = after.get(name).unwrap() != matrix;
            // Nothing pulls on a bias that every distance subtracts from itself.
            assert!(moved || name.ends_with("/b"), "{name} did not move");
        }
        let distance = learner
            .distance(&rows.state, &rows.action, &rows.goal, &rows.goal_action)
            .unwrap()
            .unwrap();
        assert_eq!(distance.shape(), [8, 1]);
        let action = learner.act(&rows.state, &rows.goal).unwrap();
        assert_eq!(action.shape(), [8, 2]);

        let error = learner.step(&batch(&backend, 3)).unwrap_err().to_string();
        assert!(error.contains("state") && error.contains("[8, 2]"), "{error}");
    }
}
