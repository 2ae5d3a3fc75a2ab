//! The ant's body has a left side and a right side that are alike, so a policy seen in a mirror
//! walks as well as the policy itself: to the right as that does to the left.
//!
//! The mirror stands along the x axis. Its right leg in front is the left one's image, and so on.

use cm_envs::ant_maze::ACTION;
use cm_nn::{Matrix, Snapshot};

/// Which number, and with which sign, a mirrored number is.
type Image = (usize, f32);

/// Of [`cm_envs::ant_maze::policy_input`]: y, and turns about x and z, change their sign.
fn input(index: usize) -> Image {
    match index {
        2 | 4 => (index, -1.0),             // x and z of the quaternion
        14 | 16 | 18 | 28 => (index, -1.0), // velocity along y, spin about x and z, direction's y
        5..=12 => joint(5, index),          // angles
        19..=26 => joint(19, index),        // their velocities
        _ => (index, 1.0),
    }
}

/// Of the joints from `first` on: hip and ankle of the legs 1 to 4. Legs 1 and 4 are each other's
/// image, and so are 2 and 3; hips swing the other way, ankles bend alike.
fn joint(first: usize, index: usize) -> Image {
    let (leg, part) = ((index - first) / 2, (index - first) % 2);
    (first + 2 * (3 - leg) + part, side(part))
}

/// Of the motors: those of the legs 4, 1, 2 and 3.
fn motor(index: usize) -> Image {
    (index ^ 2, side(index % 2))
}

fn side(part: usize) -> f32 {
    if part == 0 { -1.0 } else { 1.0 }
}

/// The expert in `snapshot` as a mirror shows it.
pub(super) fn mirrored(snapshot: &Snapshot) -> Snapshot {
    let image = |(name, mut matrix): (String, Matrix)| {
        let columns = matrix.shape[1];
        let values = std::mem::take(&mut matrix.values);
        matrix.values = match name.as_str() {
            "input/mean" => row(&values, input),
            "input/variance" => row(&values, |index| unsigned(input(index))),
            "policy/linear_0/w" | "value/linear_0/w" => (0..values.len() / columns.max(1))
                .flat_map(|index| {
                    let (from, sign) = input(index);
                    values[from * columns..][..columns].iter().map(move |weight| sign * weight)
                })
                .collect(),
            "policy/linear_2/w" | "policy/linear_2/b" => {
                values.chunks(columns.max(1)).flat_map(|outputs| row(outputs, output)).collect()
            }
            "log_deviation" => row(&values, |index| unsigned(motor(index))),
            _ => values,
        };
        (name, matrix)
    };
    snapshot.clone().into_iter().map(image).collect()
}

/// Of a policy's outputs: means, then what standard deviations are made of, which have no sides.
fn output(index: usize) -> Image {
    if index < ACTION {
        return motor(index);
    }
    let (from, _) = motor(index - ACTION);
    (ACTION + from, 1.0)
}

fn unsigned((from, _): Image) -> Image {
    (from, 1.0)
}

fn row(values: &[f32], image: impl Fn(usize) -> Image) -> Vec<f32> {
    let number = |index| {
        let (from, sign) = image(index);
        sign * values[from]
    };
    (0..values.len()).map(number).collect()
}

#[cfg(test)]
mod tests {
    use cm_envs::ant_maze::{Ant, Maze, STATE, policy_input, standing};
    use cm_random::{Philox, unit_f32};
    use rand_core::Rng;

    use super::*;
    use crate::expert::{Expert, ExpertFile, simulator};

    fn seen(state: &[f64; STATE]) -> [f64; STATE] {
        let mut image = *state;
        image[1] = -state[1];
        for (index, number) in image[2..].iter_mut().enumerate() {
            let (from, sign) = input(index);
            *number = f64::from(sign) * state[2 + from];
        }
        image
    }

    fn seen_action(action: &[f32; ACTION]) -> [f32; ACTION] {
        row(action, motor).try_into().unwrap()
    }

    #[test]
    fn an_image_of_the_image_is_the_expert() {
        for file in [ExpertFile::Clean, ExpertFile::D4rl(Maze::Large)] {
            let expert = Snapshot::from_safetensors(&file.read().unwrap()).unwrap();
            let image = mirrored(&expert);
            assert_eq!(mirrored(&image), expert);
            assert_ne!(image, expert);
        }
    }

    #[test]
    fn the_mediums_expert_is_the_image_of_the_larges() {
        let [large, medium] = [Maze::Large, Maze::Medium].map(ExpertFile::D4rl);
        let read = |file: &ExpertFile| Snapshot::from_safetensors(&file.read().unwrap()).unwrap();
        assert_eq!(read(&medium), mirrored(&read(&large)));
        let sums = [large, medium].map(|file| Expert::open(&file).unwrap().sha256().to_owned());
        assert_ne!(sums[0], sums[1]);
    }

    #[test]
    fn an_image_acts_as_the_expert_does_in_the_mirror() {
        let mut random = Philox::new(3).stream(0, 0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.safetensors");
        for file in [ExpertFile::Clean, ExpertFile::D4rl(Maze::Large)] {
            let expert = Snapshot::from_safetensors(&file.read().unwrap()).unwrap();
            mirrored(&expert).save_safetensors(&path).unwrap();
            let image = Expert::open(&ExpertFile::File(path.clone())).unwrap();
            let expert = Expert::open(&file).unwrap();
            for _ in 0..100 {
                let input: [f32; STATE] =
                    std::array::from_fn(|_| 2.0 * unit_f32(random.next_u32()) - 1.0);
                let there: [f32; STATE] = row(&input, super::input).try_into().unwrap();
                let (mut here, mut found) = ([0.0; ACTION], [0.0; ACTION]);
                expert.act(&input, &mut here);
                image.act(&there, &mut found);
                let expected = seen_action(&here);
                assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
    }

    /// The tables above against MuJoCo: the image of what comes of an action is what comes of its
    /// image.
    #[test]
    fn the_body_moves_as_its_image_does() {
        let Some(mujoco) = simulator("a mirrored ant") else { return };
        let model = Ant::model(&mujoco, None).unwrap();
        let (mut ant, mut image) = (Ant::new(&model).unwrap(), Ant::new(&model).unwrap());
        let mut random = Philox::new(7).stream(0, 0);
        for _ in 0..20 {
            ant.place(&standing(&mut random)).unwrap();
            for _ in 0..20 {
                let action = std::array::from_fn(|_| 2.0 * unit_f32(random.next_u32()) - 1.0);
                image.place(&seen(ant.state())).unwrap();
                let direction = [0.6, 0.8];
                let expected: Vec<f32> = row(&policy_input(ant.state(), direction), input);
                let found = policy_input(image.state(), [0.6, -0.8]);
                assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-6));
                // Both begin anew, so that the solver remembers nothing of the step before.
                let state = *ant.state();
                ant.place(&state).unwrap();
                ant.step(&action).unwrap();
                image.step(&seen_action(&action)).unwrap();
                let (expected, found) = (seen(ant.state()), image.state());
                let gaps = expected.iter().zip(found).map(|(a, b)| (a - b).abs());
                let gap = gaps.fold(0.0, f64::max);
                assert!(gap < 1e-6, "{gap}");
            }
        }
    }
}
