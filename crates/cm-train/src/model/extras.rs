//! What is stored with a model beside its weights, when training has ended.

use cm_nn::{Matrix, Snapshot};

use crate::plan::Roads;
use crate::{Calibration, Error, Result};

/// In `distance/...` of a model's safetensors file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extras {
    /// `distance/nodes` and `distance/links`.
    pub(crate) roads: Option<Roads>,
    /// `distance/calibration`.
    pub(crate) calibration: Option<Calibration>,
    /// `distance/goal_actions`: some of the data's, scaled.
    pub(crate) goal_actions: Vec<f32>,
    /// `distance/violations`: the share of triples that violated the triangle inequality.
    pub(crate) violations: Option<f32>,
}

const PREFIX: &str = "distance/";

impl Extras {
    /// Whether a stored model has them.
    pub(crate) fn are_in(stored: &Snapshot) -> bool {
        stored.iter().any(|(name, _)| name.starts_with(PREFIX))
    }

    /// Takes them out of a stored model of these widths.
    pub(crate) fn split(
        stored: Snapshot,
        states: usize,
        actions: usize,
    ) -> Result<(Self, Snapshot)> {
        let get = |name: &str| stored.get(&format!("{PREFIX}{name}"));
        let refuse = |what: &str, expected: usize, found: &Matrix| Error::Width {
            what: format!("{PREFIX}{what}"),
            expected,
            found: found.shape[1],
        };
        let mut extras = Self::default();
        if let (Some(nodes), Some(links)) = (get("nodes"), get("links")) {
            extras.roads = Some(Roads::from_matrices(nodes, links, states)?);
        }
        if let Some(matrix) = get("calibration") {
            let found = Calibration::from_matrix(matrix);
            extras.calibration = Some(found.ok_or_else(|| refuse("calibration", 4, matrix))?);
        }
        if let Some(matrix) = get("goal_actions") {
            if matrix.shape[1] != actions {
                return Err(refuse("goal_actions", actions, matrix));
            }
            extras.goal_actions.clone_from(&matrix.values);
        }
        extras.violations = get("violations").and_then(|matrix| matrix.values.first().copied());
        let rest = stored.into_iter().filter(|(name, _)| !name.starts_with(PREFIX));
        Ok((extras, rest.collect()))
    }

    /// As matrices to be stored with a model whose actions have this width.
    pub(crate) fn snapshot(&self, actions: usize) -> Snapshot {
        let mut all: Vec<(String, Matrix)> = Vec::new();
        if let Some(roads) = &self.roads {
            all.extend(roads.snapshot());
        }
        if let Some(calibration) = &self.calibration {
            all.push(("calibration".to_owned(), calibration.matrix()));
        }
        if !self.goal_actions.is_empty() {
            let shape = [self.goal_actions.len() / actions, actions];
            let values = self.goal_actions.clone();
            all.push(("goal_actions".to_owned(), Matrix { shape, values }));
        }
        if let Some(share) = self.violations {
            all.push(("violations".to_owned(), Matrix { shape: [1, 1], values: vec![share] }));
        }
        all.into_iter().map(|(name, matrix)| (format!("{PREFIX}{name}"), matrix)).collect()
    }
}
