//! Steps for nats: how many steps trajectories that were held out took over a distance.

use bincode::{Decode, Encode};
use cm_nn::Matrix;

/// A monotone map from distances to steps, by isotonic regression.
///
/// ```
/// use cm_train::Calibration;
///
/// // Two nats a step, with some noise.
/// let pairs: Vec<_> = (1..=2000).map(|n| (n % 40, n % 3)).map(|(steps, noise)| {
///     (2.0 * steps as f32 + noise as f32, steps as f32)
/// }).collect();
/// let calibration = Calibration::fit(&pairs).unwrap();
/// let steps = calibration.steps(20.0).unwrap();
/// assert!((steps.about - 10.0).abs() < 1.0 && steps.low <= steps.about && steps.about <= steps.high);
/// assert_eq!(calibration.steps(0.0).unwrap().about, 0.0);
/// assert!(calibration.steps(1000.0).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Calibration {
    /// Distance, low, about, high; all ascending.
    knots: Vec<[f32; 4]>,
}

/// How many steps a distance stands for.
///
/// ```
/// use cm_train::Steps;
///
/// let steps = Steps { low: 8.6, about: 14.2, high: 22.0 };
/// assert_eq!(steps.to_string(), "about 14 steps (9 to 22)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// Nine of ten pairs of held-out states took more.
    pub low: f32,
    /// The isotonic regression's mean.
    pub about: f32,
    /// Nine of ten took less.
    pub high: f32,
}

/// Least pairs behind a knot.
const LEAST: usize = 40;

impl Calibration {
    /// From pairs of a distance and the steps that were taken; none if there are too few finite
    /// ones.
    pub fn fit(pairs: &[(f32, f32)]) -> Option<Self> {
        let mut pairs: Vec<_> = pairs.iter().copied().filter(|pair| pair.0.is_finite()).collect();
        if pairs.len() < LEAST {
            return None;
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        // A quasimetric is 0 from a state to itself; other distances may be negative.
        let mut knots = if pairs[0].0 >= 0.0 { vec![[0.0; 4]] } else { Vec::new() };
        for block in blocks(&pairs) {
            let mean = |part: fn(&(f32, f32)) -> f32| {
                block.iter().map(|pair| f64::from(part(pair))).sum::<f64>() / block.len() as f64
            };
            let mut steps: Vec<_> = block.iter().map(|pair| pair.1).collect();
            steps.sort_by(f32::total_cmp);
            let quantile = |share: f64| steps[(share * (steps.len() - 1) as f64).round() as usize];
            let found = [
                mean(|pair| pair.0) as f32,
                quantile(0.1),
                mean(|pair| pair.1) as f32,
                quantile(0.9),
            ];
            let last = knots.last().copied().unwrap_or([f32::NEG_INFINITY; 4]);
            knots.push(std::array::from_fn(|at| found[at].max(last[at])));
        }
        Some(Self { knots })
    }

    /// The steps of a distance; none beyond what was held out.
    pub fn steps(&self, distance: f32) -> Option<Steps> {
        // Also refuses NaN.
        let above = self.knots.iter().position(|knot| distance <= knot[0])?;
        let [_, low, about, high] = match above {
            0 => self.knots[0],
            above => {
                let (left, right) = (self.knots[above - 1], self.knots[above]);
                let width = right[0] - left[0];
                let share = if width > 0.0 { (distance - left[0]) / width } else { 1.0 };
                std::array::from_fn(|at| left[at] + share * (right[at] - left[at]))
            }
        };
        Some(Steps { low, about, high })
    }

    /// The most steps it can tell.
    ///
    /// ```
    /// use cm_train::Calibration;
    ///
    /// // Half a nat a step, nowhere more than 20 steps.
    /// let pairs: Vec<_> = (0..1000).map(|n| (n % 21) as f32).map(|n| (n / 2.0, n)).collect();
    /// let calibration = Calibration::fit(&pairs).unwrap();
    /// assert!(calibration.most() > 19.0 && calibration.most() <= 20.0);
    /// ```
    pub fn most(&self) -> f32 {
        self.knots[self.knots.len() - 1][2]
    }

    /// The largest distance that it knows.
    pub(crate) fn farthest(&self) -> f32 {
        self.knots.last().map_or(0.0, |knot| knot[0])
    }

    pub(crate) fn matrix(&self) -> Matrix {
        Matrix { shape: [self.knots.len(), 4], values: self.knots.concat() }
    }

    pub(crate) fn from_matrix(matrix: &Matrix) -> Option<Self> {
        let knots: Vec<[f32; 4]> = matrix.values.as_chunks().0.to_vec();
        let ascends = knots.windows(2).all(|pair| (0..4).all(|at| pair[0][at] <= pair[1][at]));
        (matrix.shape[1] == 4 && !knots.is_empty() && ascends).then_some(Self { knots })
    }
}

/// Cuts sorted pairs into runs whose mean steps ascend: pools neighbours that violate it, after
/// beginning with runs of a size that says something.
fn blocks(pairs: &[(f32, f32)]) -> Vec<&[(f32, f32)]> {
    let size = (pairs.len() / 64).max(LEAST);
    // Ends and sums of steps.
    let mut pooled: Vec<(usize, usize, f64)> = Vec::new();
    let mut start = 0;
    while start < pairs.len() {
        let mut end = (start + size).min(pairs.len());
        // Equal distances stay together: their steps have one mean.
        while end < pairs.len() && pairs[end].0 == pairs[end - 1].0 {
            end += 1;
        }
        if pairs.len() - end < LEAST {
            end = pairs.len();
        }
        let sum = pairs[start..end].iter().map(|pair| f64::from(pair.1)).sum();
        pooled.push((start, end, sum));
        while let [.., (first, middle, left), (_, last, right)] = pooled[..] {
            let mean = |from: usize, to: usize, sum: f64| sum / (to - from) as f64;
            if mean(first, middle, left) < mean(middle, last, right) {
                break;
            }
            pooled.truncate(pooled.len() - 2);
            pooled.push((first, last, left + right));
        }
        start = end;
    }
    pooled.into_iter().map(|(start, end, _)| &pairs[start..end]).collect()
}

impl std::fmt::Display for Steps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "about {:.0} steps ({:.0} to {:.0})", self.about, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What falls is pooled: the result never falls, and the mean is kept.
    #[test]
    fn the_regression_is_isotonic() {
        let pairs: Vec<_> = (0..4000)
            .map(|n| (n as f32, ((n as f32 / 300.0).sin() * 9.0 + n as f32 / 400.0).abs()))
            .collect();
        let calibration = Calibration::fit(&pairs).unwrap();
        for pair in calibration.knots.windows(2) {
            assert!((0..4).all(|at| pair[0][at] <= pair[1][at]), "{pair:?}");
        }
        let blocks = blocks(&pairs);
        assert_eq!(blocks.iter().map(|block| block.len()).sum::<usize>(), pairs.len());
        let means: Vec<f32> = blocks
            .iter()
            .map(|block| block.iter().map(|pair| pair.1).sum::<f32>() / block.len() as f32)
            .collect();
        assert!(means.is_sorted() && means.len() > 3, "{means:?}");
        assert_eq!(Calibration::from_matrix(&calibration.matrix()), Some(calibration));
    }

    #[test]
    fn too_few_pairs_give_nothing() {
        assert_eq!(Calibration::fit(&[(1.0, 1.0); LEAST - 1]), None);
        assert_eq!(Calibration::fit(&[(f32::INFINITY, 1.0); 100]), None);
    }
}
