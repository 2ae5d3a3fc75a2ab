//! Where episodes stand, and the distances from there.

use cm_learner::FixedDistance;
use cm_nn::Var;

use super::measure::{Measure, Points, cut_off};
use crate::{Model, Result};

/// Points that are compared with each other in any order: plain rows of numbers, for any thread.
#[derive(Debug, Default)]
pub(crate) struct Spots {
    columns: usize,
    values: Vec<f32>,
}

impl Spots {
    pub(super) fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// Some of the rows.
    pub(super) fn some(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut values = Vec::new();
        rows.for_each(|row| values.extend_from_slice(self.row(row)));
        Self { columns: self.columns, values }
    }

    /// Adds the rows of others behind its own.
    pub(super) fn append(&mut self, others: Self) {
        self.columns = others.columns;
        self.values.extend(others.values);
    }
}

/// The metric for a few states and distances at a time, which is what walks ask for.
pub(crate) struct Sight<'a> {
    pub(super) measure: Measure<'a>,
    pub(super) model: &'a Model,
    /// What it does without matrices of a backend, if the method's networks can be used like that:
    /// the same numbers up to rounding.
    fixed: Option<&'a FixedDistance>,
}

impl<'a> Sight<'a> {
    /// `fixed` is the model's, if it has one.
    pub(crate) fn new(model: &'a Model, fixed: Option<&'a FixedDistance>) -> Result<Self> {
        Ok(Self { measure: Measure::new(model)?, model, fixed })
    }

    /// The points of whole states, one after another in their own units.
    pub(crate) fn spots(&self, states: &[f32]) -> Result<Spots> {
        let Some(fixed) = self.fixed else {
            let points = self.measure.points(states)?;
            return Ok(Spots { columns: points.columns(), values: points.to_vec()? });
        };
        let width = self.model.dimensions().state();
        self.model.check_rows("states", states.len(), width)?;
        let columns = fixed.columns();
        let mut values = Vec::with_capacity(states.len() / width * columns);
        for state in self.model.scaled(states).chunks_exact(width) {
            fixed.point(state, &mut values)?;
        }
        Ok(Spots { columns, values })
    }

    /// Some of the points as the metric takes them.
    pub(super) fn points(
        &self,
        spots: &Spots,
        rows: impl ExactSizeIterator<Item = usize>,
    ) -> Result<Points> {
        let shape = [rows.len(), spots.columns];
        Ok(Var::new(self.model.learner().0, shape, spots.some(rows).values)?)
    }

    /// All of the points as the metric takes them.
    pub(crate) fn all_points(&self, spots: &Spots) -> Result<Points> {
        self.points(spots, 0..spots.rows())
    }

    /// From the first of each pair of points to the second.
    pub(super) fn distances(&self, pairs: &[(&[f32], &[f32])]) -> Result<Vec<f32>> {
        if let Some(fixed) = self.fixed {
            let distance = |(from, to): &(&[f32], &[f32])| cut_off(fixed.distance(from, to)?);
            return pairs.iter().map(distance).collect();
        }
        let Some((first, _)) = pairs.first() else { return Ok(Vec::new()) };
        let shape = [pairs.len(), first.len()];
        let from = pairs.iter().flat_map(|(from, _)| *from).copied().collect();
        let to = pairs.iter().flat_map(|(_, to)| *to).copied().collect();
        let backend = self.model.learner().0;
        self.measure.rows(&Var::new(backend, shape, from)?, &Var::new(backend, shape, to)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::model::barely_trained;

    #[test]
    fn numbers_are_those_of_the_metric() {
        // Crl's points have no such form.
        for (method, has_form) in
            [(Method::Cmd1, true), (Method::Cmd2, true), (Method::Qrl, true), (Method::Crl, false)]
        {
            let (model, _) = barely_trained(method);
            let fixed = Measure::new(&model).unwrap().fixed().unwrap();
            assert_eq!(fixed.is_some(), has_form, "{method:?}");
            let sights = [fixed.as_ref(), None].map(|fixed| Sight::new(&model, fixed).unwrap());
            let states: Vec<f32> = (0..10).map(|at| (at as f32 * 1.7).sin() * 9.0).collect();
            let [quick, slow] = sights.each_ref().map(|sight| sight.spots(&states).unwrap());
            assert_eq!((quick.rows(), slow.rows()), (5, 5));
            let pairs = |spots: &Spots| {
                let all = (0..25).map(|pair| (pair / 5, pair % 5));
                all.map(|(from, to)| (spots.row(from).to_vec(), spots.row(to).to_vec()))
                    .collect::<Vec<_>>()
            };
            let distances = |sight: &Sight<'_>, spots: &Spots| {
                let pairs = pairs(spots);
                let pairs: Vec<_> = pairs.iter().map(|(a, b)| (&a[..], &b[..])).collect();
                sight.distances(&pairs).unwrap()
            };
            let found = distances(&sights[0], &quick);
            for (found, wanted) in found.iter().zip(distances(&sights[1], &slow)) {
                assert!((found - wanted).abs() <= 1e-5 * (1.0 + wanted), "{found} {wanted}");
            }
            assert!(!has_form || found[0] == 0.0 && found[1] > 0.0);
            // The metric itself takes them, too.
            let some = sights[0].points(&quick, [3, 1].into_iter()).unwrap();
            let far = sights[0].measure.pairs(&some, &sights[0].all_points(&quick).unwrap());
            assert!((far.unwrap()[1] - found[16]).abs() <= 1e-5 * (1.0 + found[16]));
            assert!(sights[0].spots(&[1.0]).is_err());
            // What is no number does not pass for 0.
            for sight in &sights {
                let spots = sight.spots(&[f32::NAN, 0.0, 1.0, 2.0]).unwrap();
                let pair = [(spots.row(0), spots.row(1))];
                let refused = sight.distances(&pair).unwrap_err().to_string();
                assert!(refused.contains("is NaN"), "{method:?}: {refused}");
                let points = sight.all_points(&spots).unwrap();
                assert!(sight.measure.pairs(&points, &points).is_err(), "{method:?}");
            }
        }
    }
}
