//! C-Mixup: mixing rows with similar inputs.

use cm_learner::streams;
use cm_nn::{Backend, Over, Var};

use super::Mixup;
use crate::Result;

impl Mixup {
    /// Every row mixed with its partner, inputs (state, goal) and action alike.
    pub(super) fn mix<B: Backend>(
        &self,
        [state, goal, action]: [Var<B>; 3],
    ) -> Result<[Var<B>; 3]> {
        let inputs = Var::concat_columns(&[&state, &goal])?;
        let logits = squared_distances(&inputs)?.scale(-0.5 / self.bandwidth.powi(2))?;
        let partner = logits.categorical(streams::MIXUP_PARTNER)?;
        let weight = beta_two_two(state.backend(), state.rows())?;
        let mix = |x: &Var<B>| {
            let other = x.gather_rows(&partner)?;
            x.sub(&other)?.mul(&weight)?.add(&other)
        };
        Ok([mix(&state)?, mix(&goal)?, mix(&action)?])
    }
}

/// `|z_i - z_j|^2` for all pairs of rows.
fn squared_distances<B: Backend>(z: &Var<B>) -> Result<Var<B>> {
    let lengths = z.square()?.sum(Over::Columns)?;
    let products = z.matmul(&z.transpose()?)?;
    products.scale(-2.0)?.add(&lengths)?.add(&lengths.transpose()?)
}

/// Numbers from Beta(2, 2), `[n, 1]`: the middle one of three uniform numbers.
fn beta_two_two<B: Backend>(backend: &B, rows: usize) -> Result<Var<B>> {
    let three = Var::uniform(backend, [rows, 3], streams::MIXUP_WEIGHT)?;
    let column = |k| three.slice_columns(k..k + 1);
    let (a, b, c) = (column(0)?, column(1)?, column(2)?);
    a.minimum(&b)?.maximum(&a.maximum(&b)?.minimum(&c)?)
}

#[cfg(test)]
mod tests {
    use cm_nn::DfdxBackend;

    use super::*;

    #[test]
    fn weights_have_the_moments_of_beta_two_two() {
        let weights = beta_two_two(&DfdxBackend::new(1), 100_000).unwrap().to_vec().unwrap();
        let moment = |power: i32| {
            weights.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / weights.len() as f64
        };
        // E x^k of Beta(2, 2) is 6 / ((k + 2) (k + 3)); standard errors are below 1e-3.
        for (power, wanted) in [(1, 0.5), (2, 0.3), (3, 0.2), (4, 1.0 / 7.0)] {
            assert!((moment(power) - wanted).abs() < 4e-3, "{power} {}", moment(power));
        }
    }

    #[test]
    fn partners_are_drawn_by_distance() {
        // Rows at 0, 1 and 3: from row 0 the odds are 1 : exp(-1/2) : exp(-9/2) for bandwidth 1.
        let backend = DfdxBackend::new(2);
        let rows = 30_000;
        let values = (0..rows).map(|i| [0.0, 1.0, 3.0][i % 3]).collect();
        let z = Var::new(&backend, [rows, 1], values).unwrap();
        let three = z.slice_rows(0..3).unwrap();
        let logits = squared_distances(&three).unwrap().scale(-0.5).unwrap().to_vec().unwrap();
        for (found, wanted) in
            logits.iter().zip([0.0, -0.5, -4.5, -0.5, 0.0, -2.0, -4.5, -2.0, 0.0])
        {
            assert!((found - wanted).abs() < 1e-5);
        }
        let many = Var::new(&backend, [rows, 3], logits[..3].repeat(rows)).unwrap();
        let partners = many.categorical(streams::MIXUP_PARTNER).unwrap().to_vec().unwrap();
        let share = |k: f32| partners.iter().filter(|&&p| p == k).count() as f32 / rows as f32;
        let odds = [1.0_f32, (-0.5_f32).exp(), (-4.5_f32).exp()];
        for (k, odd) in odds.iter().enumerate() {
            assert!((share(k as f32) - odd / odds.iter().sum::<f32>()).abs() < 0.012);
        }
    }

    #[test]
    fn mixes_inputs_and_actions_alike() {
        // State, goal and action of a row are the same number times 1, 2 and 3, and so they stay.
        let backend = DfdxBackend::new(3);
        let state = Var::normal(&backend, [64, 1], 0x300).unwrap();
        let (goal, action) = (state.scale(2.0).unwrap(), state.scale(3.0).unwrap());
        let mixed = Mixup::default().mix([state.clone(), goal, action]).unwrap();
        let [mixed_state, mixed_goal, mixed_action] = mixed.map(|var| var.to_vec().unwrap());
        assert_ne!(mixed_state, state.to_vec().unwrap());
        for ((s, g), a) in mixed_state.iter().zip(mixed_goal).zip(mixed_action) {
            assert!((2.0 * s - g).abs() < 1e-5 && (3.0 * s - a).abs() < 1e-5);
        }
    }
}
