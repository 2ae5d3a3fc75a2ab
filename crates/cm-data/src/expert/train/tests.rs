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
    if let Err(reason) = Mujoco::find() {
        assert!(std::env::var_os("CM_REQUIRE_MUJOCO").is_none(), "{reason}");
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED a training cut off: {reason}");
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
