//! What holds for every learner: repeatability, exact resumption, refusals; and the parts of CMD-1
//! that no fixture covers.

use cm_contrastive::{Crl, CrlSettings};
use cm_distill::PolicySees::MovedFeatures;
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings, Error, Tmd, TmdSettings};
use cm_learner::{Dimensions, Learner, Transitions};
use cm_nn::testing::Exact;
use cm_nn::{Backend, DfdxBackend, Head, MlpSettings, Reduction, Snapshot, Var};
use cm_policy::{ActorSettings, Gcbc, GcbcSettings};

type B = DfdxBackend;
const ROWS: usize = 16;

fn dimensions() -> Dimensions {
    Dimensions::new(2, 2, 0..2).unwrap()
}

/// A batch that depends on the backend's step alone.
fn batch(backend: &B) -> Transitions<B> {
    let state = |stream| Var::normal(backend, [ROWS, 2], stream).unwrap();
    let action = |stream| state(stream).tanh().unwrap();
    Transitions {
        state: state(0x300),
        action: action(0x301),
        next_state: state(0x302),
        goal: state(0x303),
        goal_action: action(0x304),
        steps_to_goal: Var::full(backend, [ROWS, 1], 1.0).unwrap(),
        actor_goals: None,
    }
}

fn small(network: &mut MlpSettings) {
    network.hidden = vec![16, 16];
}

fn small_actor(actor: &mut ActorSettings) {
    small(&mut actor.policy.network);
}

fn cmd1(mut settings: Cmd1Settings) -> Cmd1Settings {
    small(&mut settings.quasimetric.network);
    settings.quasimetric.features = 16;
    small_actor(&mut settings.actor);
    settings
}

fn cmd2(mut settings: Cmd2Settings) -> Cmd2Settings {
    small(&mut settings.quasimetric.network);
    small(&mut settings.critic.network);
    settings.quasimetric.features = 16;
    settings.critic.repr_dim = 8;
    small_actor(&mut settings.actor);
    settings
}

type Make = Box<dyn Fn(&B) -> Box<dyn Learner<B>>>;

/// Every learner of this crate and those it builds on, in every preset, at a small size.
fn learners() -> Vec<(String, Make)> {
    let mut all: Vec<(String, Make)> = Vec::new();
    for (name, settings) in [
        ("paper", Cmd1Settings::paper_text()),
        ("code", Cmd1Settings::authors_code()),
        ("plane", Cmd1Settings::plane()),
        ("OGBench", Cmd1Settings::ogbench()),
    ] {
        let settings = cmd1(settings);
        let make = move |backend: &B| -> Box<dyn Learner<B>> {
            Box::new(Cmd1::new(backend, &settings, &dimensions()).unwrap())
        };
        all.push((format!("CMD-1 {name}"), Box::new(make)));
    }
    for (name, settings) in [
        ("paper", Cmd2Settings::paper_text()),
        ("code", Cmd2Settings::authors_code()),
        ("plane", Cmd2Settings::plane()),
    ] {
        let settings = cmd2(settings);
        let make = move |backend: &B| -> Box<dyn Learner<B>> {
            Box::new(Cmd2::new(backend, &settings, &dimensions()).unwrap())
        };
        all.push((format!("CMD-2 {name}"), Box::new(make)));
    }
    for (name, mut settings) in [
        ("paper", CrlSettings::paper_text()),
        ("code", CrlSettings::authors_code()),
        ("plane", CrlSettings::plane()),
    ] {
        small(&mut settings.critic.network);
        small_actor(&mut settings.actor);
        let make = move |backend: &B| -> Box<dyn Learner<B>> {
            Box::new(Crl::new(backend, &settings, &dimensions()).unwrap())
        };
        all.push((format!("CRL {name}"), Box::new(make)));
    }
    for (name, mut settings) in [
        ("released", TmdSettings::released()),
        ("paper", TmdSettings::paper_text()),
        ("revised", TmdSettings::revised()),
        ("features", TmdSettings { policy_sees: MovedFeatures, ..TmdSettings::released() }),
    ] {
        small(&mut settings.network);
        settings.latent = 32;
        small_actor(&mut settings.actor);
        let make = move |backend: &B| -> Box<dyn Learner<B>> {
            Box::new(Tmd::new(backend, &settings, &dimensions()).unwrap())
        };
        all.push((format!("TMD {name}"), Box::new(make)));
    }
    for (name, mut settings) in
        [("code", GcbcSettings::authors_code()), ("plane", GcbcSettings::plane())]
    {
        small(&mut settings.policy.network);
        let make = move |backend: &B| -> Box<dyn Learner<B>> {
            Box::new(Gcbc::new(backend, &settings, &dimensions()).unwrap())
        };
        all.push((format!("GCBC {name}"), Box::new(make)));
    }
    all
}

fn train(backend: &B, learner: &dyn Learner<B>, steps: usize) {
    for _ in 0..steps {
        for (name, value) in learner.step(&batch(backend)).unwrap() {
            assert!(value.item().unwrap().is_finite(), "{name}");
        }
    }
}

#[test]
fn a_seed_repeats_itself_bit_for_bit() {
    for (name, make) in learners() {
        let run = |seed| {
            let backend = DfdxBackend::new(seed);
            let learner = make(&backend);
            train(&backend, &*learner, 3);
            (learner.snapshot(0).unwrap(), learner.optimiser_snapshot(0).unwrap())
        };
        assert_eq!(run(1), run(1), "{name}");
        assert_ne!(run(1).0, run(2).0, "{name}");
    }
}

#[test]
fn resuming_is_exact() {
    for (name, make) in learners() {
        let backend = DfdxBackend::new(1);
        let learner = make(&backend);
        train(&backend, &*learner, 3);
        // To disk formats and back: safetensors for weights, bincode for the optimisers.
        let weights = learner.snapshot(0).unwrap().to_safetensors().unwrap();
        let config = bincode::config::standard();
        let optimiser =
            bincode::encode_to_vec(learner.optimiser_snapshot(0).unwrap(), config).unwrap();
        let step = backend.step().unwrap();
        train(&backend, &*learner, 3);

        let second = DfdxBackend::new(1);
        second.set_step(step).unwrap();
        let resumed = make(&second);
        resumed.restore(0, &Snapshot::from_safetensors(&weights).unwrap()).unwrap();
        let (optimiser, _) = bincode::decode_from_slice(&optimiser, config).unwrap();
        resumed.restore_optimiser(0, &optimiser).unwrap();
        train(&second, &*resumed, 3);
        assert_eq!(resumed.snapshot(0).unwrap(), learner.snapshot(0).unwrap(), "{name}");
        let (a, b) = (resumed.optimiser_snapshot(0), learner.optimiser_snapshot(0));
        assert_eq!(a.unwrap(), b.unwrap(), "{name}");
    }
}

#[test]
fn a_snapshot_of_another_learner_is_refused_and_changes_nothing() {
    let backend = DfdxBackend::new(0);
    let small = Cmd1::new(&backend, &cmd1(Cmd1Settings::paper_text()), &dimensions()).unwrap();
    let before = small.snapshot(0).unwrap();
    let twin = Cmd1::new(&backend, &cmd1(Cmd1Settings::plane()), &dimensions()).unwrap();
    assert!(small.restore(0, &twin.snapshot(0).unwrap()).is_err());
    assert!(small.restore_optimiser(0, &twin.optimiser_snapshot(0).unwrap()).is_err());
    let mut broken = small.snapshot(0).unwrap();
    let mut matrix = broken.get("potential/linear_2/b").unwrap().clone();
    matrix.values[0] = f32::NAN;
    broken.extend([("potential/linear_2/b".to_string(), matrix)]);
    let error = small.restore(0, &broken).unwrap_err().to_string();
    assert!(error.contains("potential/linear_2/b"), "{error}");
    assert_eq!(small.snapshot(0).unwrap(), before);
}

#[test]
fn each_loss_moves_only_its_own_parameters() {
    let backend = DfdxBackend::new(0);
    for (name, make) in learners() {
        let learner = make(&backend);
        let before = learner.snapshot(0).unwrap();
        train(&backend, &*learner, 1);
        let after = learner.snapshot(0).unwrap();
        let groups = learner.groups();
        let all = groups.iter().flat_map(|group| group.parameters().iter());
        let names = all.map(|parameter| parameter.name().to_string()).collect::<Vec<_>>();
        let unique = names.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(unique.len(), names.len(), "{name}: parameter names");
        for parameter in &names {
            // The last bias of a potential only shifts all energies, which InfoNCE does not see.
            if parameter == "potential/linear_2/b" {
                continue;
            }
            let [a, b] = [&before, &after].map(|snapshot| snapshot.get(parameter));
            assert_ne!(a, b, "{name}: {parameter} did not move");
        }
    }
}

/// The energy and loss of CMD-1 from its distances, in double precision.
#[test]
fn cmd1_without_potential_and_with_twins() -> Result<(), Error> {
    let backend = DfdxBackend::new(3);
    let batch = batch(&backend);
    for (head, separate) in [
        Head::MRN,
        Head::Mrn { components: 2, epsilon: 0.0 },
        Head::Iqe { groups: 4, reduction: Reduction::MAX_MEAN },
        Head::Iqe { groups: 2, reduction: Reduction::Sum },
        Head::Max,
    ]
    .map(|head| (head, false))
    .into_iter()
    .chain([(Head::MRN, true)])
    {
        let mut settings = cmd1(Cmd1Settings::authors_code());
        (settings.quasimetric.head, settings.quasimetric.separate) = (head, separate);
        settings.potential = false;
        let single = Cmd1::new(&backend, &settings, &dimensions())?;
        let loss_of = |learner: &Cmd1<B>| learner.contrastive_loss(&batch)?.item();
        let first = loss_of(&single)?;

        // d of all pairs, with goal actions rolled, row by row.
        let action = batch.goal_action.roll_rows(1)?;
        let n = ROWS as f64;
        let mut energy = Exact::from_fn([ROWS, ROWS], |_, _| 0.0);
        for shift in 0..ROWS {
            let roll = |var: &Var<B>| var.roll_rows(shift as isize);
            let to = (roll(&batch.goal)?, roll(&action)?);
            let d = single.distance(&batch.state, &batch.action, &to.0, &to.1)?.unwrap();
            for (i, d) in d.to_vec()?.into_iter().enumerate() {
                let j = (i + ROWS - shift) % ROWS;
                energy.values[i * ROWS + j] = -f64::from(d);
            }
        }
        let sum = |i: usize, at: &dyn Fn(usize, usize) -> f64| {
            (0..ROWS).map(|j| at(i, j).exp()).sum::<f64>().ln() - energy.at(i, i)
        };
        let rows = (0..ROWS).map(|i| sum(i, &|i, j| energy.at(i, j))).sum::<f64>() / n;
        let columns = (0..ROWS).map(|i| sum(i, &|i, j| energy.at(j, i))).sum::<f64>() / n;
        let wanted = (rows + columns) / 2.0;
        assert!((f64::from(first) - wanted).abs() < 1e-5, "{head:?}: {first} {wanted}");

        // A twin whose halves are two single learners: the mean of their losses, the larger of
        // their distances.
        let other = Cmd1::new(&DfdxBackend::new(4), &settings, &dimensions())?;
        settings.twin = true;
        let twin = Cmd1::new(&backend, &settings, &dimensions())?;
        let mut parameters = single.snapshot(0)?;
        let quasimetric = other.snapshot(0)?.under("quasimetric/");
        parameters.extend(quasimetric.prefixed("quasimetric_1/"));
        twin.restore(0, &parameters)?;
        let mean = (first + loss_of(&other)?) / 2.0;
        assert!((loss_of(&twin)? - mean).abs() < 1e-6 * mean.abs(), "{head:?}");
        let distance = |learner: &Cmd1<B>| -> Result<Vec<f32>, Error> {
            let d =
                learner.distance(&batch.state, &batch.action, &batch.goal, &batch.goal_action)?;
            d.unwrap().to_vec()
        };
        let [a, b] = [distance(&single)?, distance(&other)?];
        let larger = a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect::<Vec<_>>();
        assert_eq!(distance(&twin)?, larger, "{head:?}");
    }
    Ok(())
}

/// The multiplier grows while the constraint is violated by more than the margin and shrinks while
/// it is not.
#[test]
fn dual_descent_goes_the_right_way() {
    let backend = DfdxBackend::new(0);
    for preset in [Cmd2Settings::paper_text(), Cmd2Settings::plane()] {
        for (margin, grows) in [(1e-9, true), (1e9, false)] {
            // Distances divided by 256, the plane's, would violate it by less than rounding shows.
            let settings = Cmd2Settings { margin, distance_divisor: 1.0, ..cmd2(preset.clone()) };
            let learner = Cmd2::new(&backend, &settings, &dimensions()).unwrap();
            let lambda = || learner.snapshot(0).unwrap().get("lambda").unwrap().values[0];
            let before = lambda();
            train(&backend, &learner, 1);
            assert_eq!(lambda() > before, grows, "{margin}");
        }
    }
}

#[test]
fn settings_are_checked_and_unknown_keys_refused() {
    let backend = DfdxBackend::new(0);
    let error = serde_json::from_str::<Cmd1Settings>(r#"{"twins": true}"#).unwrap_err();
    assert!(error.to_string().contains("twins"));
    let error = serde_json::from_str::<Cmd2Settings>(r#"{"quasimetric": {"heads": 1}}"#);
    assert!(error.unwrap_err().to_string().contains("heads"));
    for preset in [
        Cmd1Settings::paper_text(),
        Cmd1Settings::authors_code(),
        Cmd1Settings::plane(),
        Cmd1Settings::ogbench(),
    ] {
        let text = serde_json::to_string(&preset).unwrap();
        assert_eq!(serde_json::from_str::<Cmd1Settings>(&text).unwrap(), preset);
    }
    for preset in [Cmd2Settings::paper_text(), Cmd2Settings::authors_code(), Cmd2Settings::plane()]
    {
        let text = serde_json::to_string(&preset).unwrap();
        assert_eq!(serde_json::from_str::<Cmd2Settings>(&text).unwrap(), preset);
    }
    let refused: [(&str, fn(&mut Cmd2Settings)); 8] = [
        ("distance_divisor", |s| s.distance_divisor = 0.0),
        ("margin", |s| s.margin = -0.1),
        ("initial_lambda", |s| s.initial_lambda = f32::NAN),
        ("divisor", |s| s.contrastive.divisor = 0.0),
        ("features", |s| s.quasimetric.features = 15),
        ("head", |s| {
            let reduction = Reduction::Mean;
            s.quasimetric.head = Head::Iqe { groups: 0, reduction };
        }),
        ("separate", |s| {
            s.quasimetric.head = Head::Mrn { components: 2, epsilon: 0.0 };
            s.quasimetric.separate = true;
        }),
        ("epsilon", |s| {
            s.quasimetric.head = Head::Mrn { components: 1, epsilon: -1.0 };
        }),
    ];
    for (name, change) in refused {
        let mut settings = cmd2(Cmd2Settings::paper_text());
        change(&mut settings);
        let Err(error) = Cmd2::new(&backend, &settings, &dimensions()) else {
            panic!("{name} was accepted");
        };
        assert!(error.to_string().contains(name), "{error}");
    }
    let wrong = Dimensions::new(3, 2, 0..2).unwrap();
    let learner = Cmd1::new(&backend, &cmd1(Cmd1Settings::paper_text()), &wrong).unwrap();
    let error = learner.step(&batch(&backend)).unwrap_err().to_string();
    assert_eq!(error, "batch state: expected [16, 3], found [16, 2]");
}
