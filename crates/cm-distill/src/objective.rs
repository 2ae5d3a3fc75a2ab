//! The constrained objective that distills a critic into a quasimetric.

use cm_learner::Metrics;
use cm_nn::{Backend, Over, Var};
use serde::{Deserialize, Serialize};

use crate::Result;

/// How distances `d` and targets `t` make a loss. With `l` the multiplier, the constraint is
/// `pos = mean_i h(max(0, d_ii - t_ii))`: pairs that occur are not farther than the critic says;
/// and the conservative part `neg = mean_ij h(max(0, t_ij - d_ij))`: everything else is as far as
/// the critic says, or farther. No gradient flows into `t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// `min_d max_l neg + l (pos - margin)` (Eq. 20, `eq:distill_optimization`) with `h(x) = x^2`,
    /// `l = softplus(lambda)` and the critic's reference `f(g_j, a_j, g_j)`.
    PaperText,
    /// `pos + neg / l + l (margin - stop(pos))` with `h(x) = x^2`, `l = softplus(lambda) + 0.01`,
    /// `neg` without the diagonal, reference `f(g_j, a'_j, g_j)`.
    AuthorsCode,
    /// `sqrt(l) pos + neg / sqrt(l) + l (margin - stop(pos))` with these roots constant, `h`
    /// Huber's loss, `l = softplus(lambda)`, `neg` without the diagonal, reference
    /// `f(g_j, a_j, g_j)`: the 2-D experiment.
    Plane,
}

/// Keeps the multiplier of the authors' objective away from zero.
const SMALLEST_MULTIPLIER: f32 = 0.01;

impl Objective {
    /// The loss of distances and targets `[n, n]` and the dual variable `lambda [1, 1]`; its
    /// descent is descent for the distance and ascent for the multiplier. Adds `constraint`,
    /// `conservative` and `multiplier` to the metrics.
    pub(crate) fn loss<B: Backend>(
        self,
        distance: &Var<B>,
        target: &Var<B>,
        lambda: &Var<B>,
        margin: f32,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let excess = distance.sub(target)?;
        // Eq. 18, eq:distillation_constraint
        let constraint = self.penalty(&excess.diagonal()?)?.mean(Over::All)?;
        // Eq. 19, eq:distill_loss
        let conservative = self.penalty(&excess.neg()?)?;
        let conservative = match self {
            Self::PaperText => conservative.mean(Over::All)?,
            Self::AuthorsCode | Self::Plane => {
                let diagonal = conservative.diagonal()?.mean(Over::All)?;
                let diagonal = diagonal.scale(1.0 / conservative.rows() as f32)?;
                conservative.mean(Over::All)?.sub(&diagonal)?
            }
        };
        let multiplier = lambda.softplus()?;
        let multiplier = match self {
            Self::AuthorsCode => multiplier.affine(1.0, SMALLEST_MULTIPLIER)?,
            Self::PaperText | Self::Plane => multiplier,
        };
        // What the distance descends on.
        let weighted = match self {
            Self::PaperText => conservative.add(&constraint.mul(&multiplier.stop_gradient())?)?,
            Self::AuthorsCode => constraint.add(&conservative.div(&multiplier)?)?,
            Self::Plane => {
                let root = multiplier.stop_gradient().sqrt()?;
                constraint.mul(&root)?.add(&conservative.div(&root)?)?
            }
        };
        // What the multiplier ascends on, with the sign turned: l (pos - margin) of Eq. 20,
        // eq:distill_optimization.
        let slack = constraint.stop_gradient().affine(-1.0, margin)?;
        metrics.extend([
            ("constraint", constraint.stop_gradient()),
            ("conservative", conservative.stop_gradient()),
            ("multiplier", multiplier.stop_gradient()),
        ]);
        weighted.add(&multiplier.mul(&slack)?)
    }

    fn penalty<B: Backend>(self, x: &Var<B>) -> Result<Var<B>> {
        match self {
            Self::Plane => x.relu()?.huber(1.0),
            Self::PaperText | Self::AuthorsCode => x.relu()?.square(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cm_nn::testing::Exact;
    use cm_nn::{DfdxBackend, Initialiser, Parameters, gradients};

    use super::*;

    const N: usize = 5;
    const MARGIN: f64 = 0.35;
    const STEP: f64 = 1e-6;

    /// `pos`, `neg` and `l` in double precision.
    fn parts(objective: Objective, d: &Exact, t: &Exact, lambda: f64) -> (f64, f64, f64) {
        let h = |x: f64| match objective {
            Objective::Plane if x > 1.0 => x - 0.5,
            Objective::Plane => 0.5 * x * x,
            _ => x * x,
        };
        let n = N as f64;
        let pos = (0..N).map(|i| h((d.at(i, i) - t.at(i, i)).max(0.0))).sum::<f64>() / n;
        let keeps = |i, j| objective == Objective::PaperText || i != j;
        let pairs = (0..N).flat_map(|i| (0..N).map(move |j| (i, j))).filter(|&(i, j)| keeps(i, j));
        let neg = pairs.map(|(i, j)| h((t.at(i, j) - d.at(i, j)).max(0.0))).sum::<f64>() / (n * n);
        let softplus = lambda.exp().ln_1p();
        let l = if objective == Objective::AuthorsCode { softplus + 0.01 } else { softplus };
        (pos, neg, l)
    }

    /// What the distance descends on and what lambda descends on, each with the other player's part
    /// of the multiplier held at `held`.
    fn players(objective: Objective, (pos, neg, l): (f64, f64, f64), held: (f64, f64)) -> [f64; 2] {
        let (held_l, held_pos) = held;
        let dual = l * (MARGIN - held_pos);
        match objective {
            Objective::PaperText => [neg + held_l * pos, dual],
            Objective::AuthorsCode => [pos + neg / held_l, neg / l + dual],
            Objective::Plane => [held_l.sqrt() * pos + neg / held_l.sqrt(), dual],
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_the_two_players() {
        let backend = DfdxBackend::new(0);
        // Large enough differences that Huber's loss is used in both of its parts.
        let d = Exact::normal([N, N], 1).map_f32(|x| 2.0 * x.abs());
        let t = Exact::normal([N, N], 2).map_f32(|x| 2.0 * x);
        for objective in [Objective::PaperText, Objective::AuthorsCode, Objective::Plane] {
            for lambda in [-1.0_f32, 1.0] {
                let mut parameters = Parameters::new(&backend);
                let zeros = Initialiser::ZEROS;
                let distance = parameters.create("d", [N, N], zeros).unwrap();
                distance.set(&d.to_f32()).unwrap();
                let start = Initialiser::Constant(lambda);
                let dual = parameters.create("lambda", [1, 1], start).unwrap();
                let mut metrics = Metrics::new();
                let target = t.var(&backend).unwrap();
                let (loss, gradients) = gradients(&backend, &[&parameters], || {
                    let (d, lambda) = (distance.value()?, dual.value()?);
                    objective.loss(&d, &target, &lambda, MARGIN as f32, &mut metrics)
                })
                .unwrap();

                let lambda = f64::from(lambda);
                let (pos, neg, l) = parts(objective, &d, &t, lambda);
                let at = players(objective, (pos, neg, l), (l, pos));
                let value = at[0] + l * (MARGIN - pos);
                assert!((f64::from(loss.item().unwrap()) - value).abs() < 1e-5 * value.abs());
                for (name, wanted) in
                    [("constraint", pos), ("conservative", neg), ("multiplier", l)]
                {
                    let found = &metrics.iter().find(|(key, _)| *key == name).unwrap().1;
                    assert!((f64::from(found.item().unwrap()) - wanted).abs() < 1e-5, "{name}");
                }

                let found = Exact::read(&gradients.get(&distance).unwrap()).unwrap();
                let slope = |element: usize| {
                    let moved = |step: f64| {
                        let mut d = d.clone();
                        d.values[element] += step;
                        players(objective, parts(objective, &d, &t, lambda), (l, pos))[0]
                    };
                    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
                };
                let values = (0..N * N).map(slope).collect();
                let what = format!("{objective:?}");
                found.assert_close(&Exact { shape: [N, N], values }, 1e-4, &what);

                let moved = |step: f64| {
                    players(objective, parts(objective, &d, &t, lambda + step), (l, pos))[1]
                };
                let wanted = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let found = f64::from(gradients.get(&dual).unwrap().item().unwrap());
                assert!(
                    (found - wanted).abs() < 1e-4 * (1.0 + wanted.abs()),
                    "{what} {found} {wanted}"
                );
            }
        }
    }
}
