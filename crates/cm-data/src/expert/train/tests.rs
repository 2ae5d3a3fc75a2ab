use cm_envs::ant_maze::{ACTION, STATE};
use cm_random::{Philox, normal_pair, unit_f32};
use rand_core::Rng;

use super::herd::Experience;
use super::learner::{Acts, Learner, Settings};
use super::*;

/// A world of one step: the reward is how near the action is to a rotation of the first inputs.
#[test]
fn the_learner_solves_a_world_of_one_step() {
    let settings = Settings { hidden: 32, discount: 0.9, ..Settings::default() };
    let mut learner = Learner::new(settings, 1).unwrap();
    let mut random = Philox::new(2).stream(0, 0);
    let rows = 512;
    let mut play = |learner: &Learner, noise: f32| {
        let inputs: Vec<f32> =
            (0..rows * STATE).map(|_| 2.0 * unit_f32(random.next_u32()) - 1.0).collect();
        let Acts { means: mut actions, deviations, values } = learner.act(&inputs).unwrap();
        let mut experience = Experience { values, ..Experience::default() };
        for (action, input) in actions.chunks_exact_mut(ACTION).zip(inputs.chunks_exact(STATE)) {
            let (mut log_density, mut reward) = (0.0, 0.0);
            for index in 0..ACTION {
                let (z, _) = normal_pair(random.next_u32(), random.next_u32());
                action[index] += noise * deviations[index] * z;
                log_density -= 0.5 * z * z + deviations[index].ln() + 0.918_938_5;
                reward -=
                    (action[index] - 0.8 * input[(index + 1) % ACTION]).powi(2) / ACTION as f32;
            }
            experience.log_densities.push(log_density);
            experience.rewards.push(reward);
            experience.ended.push(true);
        }
        experience.last_values = vec![0.0; rows];
        (experience.inputs, experience.actions) = (inputs, actions);
        experience
    };
    let mean = |experience: &Experience| experience.rewards.iter().sum::<f32>() / rows as f32;
    // Doing nothing loses the variance of 0.8 U(-1, 1), 0.213.
    let before = mean(&play(&learner, 0.0));
    assert!((before + 0.213).abs() < 0.03, "{before}");
    for iteration in 0..60 {
        let experience = play(&learner, 1.0);
        learner.learn(&experience, iteration).unwrap();
    }
    let after = mean(&play(&learner, 0.0));
    assert!(after > -0.05, "{before} {after}");
}

/// A squashed policy that starts from a clipped one does what that does, times the gain.
#[test]
fn a_clipped_policy_can_be_squashed() {
    let input = [0.3; STATE];
    let clipped = Learner::new(Settings::default(), 3).unwrap();
    let actions = Actions::Squashed { low: 0.2, high: 0.4 };
    let settings = Settings { actions, gain: [50.0, 20.0], ..Settings::default() };
    let mut squashed = Learner::new(settings, 4).unwrap();
    squashed.restore_expert(&clipped.expert().unwrap()).unwrap();
    let (before, after) = (clipped.act(&input).unwrap(), squashed.act(&input).unwrap());
    for index in 0..ACTION {
        let gain = [50.0, 20.0][index % 2];
        assert!((after.means[index] - gain * before.means[index]).abs() < 1e-5);
        assert!((after.deviations[index] - 0.3).abs() < 1e-6);
    }
    assert_eq!(before.values, after.values);
    // The file acts as the learner does.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("expert.safetensors");
    squashed.expert().unwrap().save_safetensors(&path).unwrap();
    let expert = crate::expert::Expert::open(&ExpertFile::File(path)).unwrap();
    let mut action = [0.0; ACTION];
    expert.act(&input, &mut action);
    assert!(action.iter().zip(&after.means).all(|(a, mean)| (a - mean.tanh()).abs() < 1e-5));
    // Drawn actions have the mean and the deviation, before squashing.
    let mut random = Philox::new(5).stream(0, 0);
    let (mut sum, mut square) = (0.0, 0.0);
    for _ in 0..4_000 {
        expert.sample(&input, &mut random, &mut action);
        let gap = f64::from(action[2].atanh() - after.means[2]);
        (sum, square) = (sum + gap / 4_000.0, square + gap * gap / 4_000.0);
    }
    assert!(sum.abs() < 0.02 && (square.sqrt() - 0.3).abs() < 0.01, "{sum} {square}");
    // The way back is closed.
    let mut back = Learner::new(Settings::default(), 3).unwrap();
    let message = back.restore_expert(&squashed.expert().unwrap()).unwrap_err();
    assert!(message.contains("deviation_bounds"), "{message}");
}

fn settings(folder: &Path) -> TrainSettings {
    TrainSettings {
        maze: Some(Maze::Umaze),
        steps: 0,
        ants: 3,
        seed: 4,
        ..TrainSettings::clean(folder)
    }
}

/// The weights after some iterations, with a checkpoint and a fresh start in between or not.
#[test]
fn a_training_cut_off_goes_on_as_if_it_had_not_been() {
    if crate::expert::simulator("a training cut off").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let iterate = |out: &str, pieces: &[usize], threads: usize| {
        let path = folder.path().join(out);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            for &iterations in pieces {
                let mut training = Training::open(&settings(&path)).unwrap();
                (0..iterations).for_each(|_| _ = training.iterate().unwrap());
                training.save().unwrap();
            }
        });
        (
            std::fs::read(path.join("checkpoint.bin")).unwrap(),
            std::fs::read(path.join("expert.safetensors")).unwrap(),
        )
    };
    let whole = iterate("whole", &[3], 1);
    assert_eq!(whole, iterate("pieces", &[1, 2], 2));

    let path = folder.path().join("whole/expert.safetensors");
    let file = ExpertFile::File(path);
    crate::expert::Expert::open(&file).unwrap();
    let other = TrainSettings { seed: 5, ..settings(&folder.path().join("whole")) };
    let message = Training::open(&other).err().unwrap().to_string();
    assert!(message.contains("seed 4") && message.contains("seed 5"), "{message}");
    for (from, further) in [(file, "further"), (ExpertFile::Clean, "on")] {
        let further = settings(&folder.path().join(further));
        let from = TrainSettings { from: Some(from), ..further };
        assert!(Training::open(&from).unwrap().evaluate().unwrap().velocity.is_finite());
    }

    let checkpoint = folder.path().join("whole/checkpoint.bin");
    for damaged in [&whole.0[..100], b"CMEXPRT1", b""] {
        std::fs::write(&checkpoint, damaged).unwrap();
        let again = Training::open(&settings(&folder.path().join("whole")));
        let message = again.err().unwrap().to_string();
        assert!(message.contains("checkpoint.bin") && message.contains("damaged"), "{message}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let settings = settings(Path::new("never-made"));
    let rules = settings.rules;
    let with = |rules| TrainSettings { rules, ..settings.clone() };
    for (wrong, name, found) in [
        (with(Rules { hold: [0, 9], ..rules }), "hold", "0,9"),
        (with(Rules { hold: [9, 8], ..rules }), "hold", "9,8"),
        (with(Rules { reach: 0.0, ..rules }), "reach", "0"),
        (with(Rules { reach: f64::NAN, ..rules }), "reach", "NaN"),
        (with(Rules { spread: -1.0, ..rules }), "spread", "-1"),
        (with(Rules { spread: f64::INFINITY, ..rules }), "spread", "inf"),
        (with(Rules { spread: 1.5, ..rules }), "spread", "1.5"),
        (with(Rules { reach: 2.5, ..rules }), "maze", "2.5"),
        (with(Rules { paid_to_goal: true, ..rules }), "paid-to-goal", "a spread of 0"),
        (TrainSettings { discount: 1.0, ..settings.clone() }, "discount", "1"),
        (TrainSettings { mirrored: true, ..settings.clone() }, "mirrored", "none"),
        (TrainSettings { ants: 0, ..settings.clone() }, "ants", "0"),
    ] {
        let message = train(&wrong, &crate::silent).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains(found), "{message}");
    }
    assert!(!Path::new("never-made").exists());
}

#[test]
fn an_expert_that_is_refused_leaves_no_folder() {
    let scratch = tempfile::tempdir().unwrap();
    let (out, file) = (scratch.path().join("out"), scratch.path().join("walks.safetensors"));
    std::fs::write(&file, "walks").unwrap();
    let from = Some(ExpertFile::File(file));
    let message = train(&TrainSettings { from, ..settings(&out) }, &crate::silent).unwrap_err();
    assert!(message.to_string().contains("walks.safetensors: not an expert"), "{message}");
    assert!(!out.exists());
}
