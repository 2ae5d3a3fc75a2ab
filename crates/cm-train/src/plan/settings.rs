//! How a road map is made.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How a [`RoadMap`](crate::RoadMap) is made of data and walked: the table `[plan]` of a run's
/// settings.
///
/// ```
/// use cm_train::PlanSettings;
///
/// let settings: PlanSettings = toml::from_str("nodes = 500")?;
/// assert_eq!(settings, PlanSettings { nodes: 500, ..Default::default() });
/// assert!(toml::from_str::<PlanSettings>("node = 500").is_err());
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanSettings {
    /// Most states of the data that the map has; fewer if they cover the data, twice as many where
    /// they do not and ways between them are missing.
    pub nodes: usize,
    /// Rows of the data that those are chosen among and that links are held against; four
    /// times as many if ways between the nodes are missing.
    pub rows: usize,
    /// How many steps ahead the policy is sent; a quarter of the discount's horizon, from 10 to 20,
    /// if 0.
    pub steps: u64,
    /// The longest link, by the learned distance; what held-out trajectories cover in half the
    /// steps if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<f32>,
    /// How far ahead the policy is sent, by the learned distance; if absent what held-out
    /// trajectories cover in those steps, and at least fifteen times what they cover in one (not
    /// between typical rows), unless they contradict ([`Trust`](crate::Trust)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<f32>,
    /// Seed of which rows are looked at, and which trajectories are held out.
    pub seed: u64,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self { nodes: 1_000, rows: 20_000, steps: 0, link: None, reach: None, seed: 0 }
    }
}

impl PlanSettings {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let refuse = |key: &str, expected, found: String| {
            Err(Error::Setting { setting: format!("plan.{key}"), expected, found })
        };
        for (key, number) in [("nodes", self.nodes), ("rows", self.rows)] {
            if !(2..1 << 24).contains(&number) {
                return refuse(key, "at least 2 and below 2^24", number.to_string());
            }
        }
        for (key, length) in [("link", self.link), ("reach", self.reach)] {
            if let Some(length) = length.filter(|length| !(*length > 0.0 && length.is_finite())) {
                return refuse(key, "finite and positive", length.to_string());
            }
        }
        if self.steps > 1_000_000 {
            return refuse("steps", "at most 1000000", self.steps.to_string());
        }
        Ok(())
    }

    /// How many steps ahead the policy is sent, under this discount.
    pub(crate) fn steps_under(&self, gamma: f64) -> usize {
        match self.steps {
            0 => (0.25 / (1.0 - gamma).max(1e-6)).round().clamp(10.0, 20.0) as usize,
            steps => steps as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let refused = |settings: PlanSettings| settings.check().unwrap_err().to_string();
        let default = PlanSettings::default();
        default.check().unwrap();
        assert!(refused(PlanSettings { nodes: 1, ..default }).starts_with("plan.nodes: "));
        assert!(refused(PlanSettings { rows: 0, ..default }).starts_with("plan.rows: "));
        let link = Some(f32::NAN);
        assert!(refused(PlanSettings { link, ..default }).starts_with("plan.link: "));
        let reach = Some(-1.0);
        assert!(refused(PlanSettings { reach, ..default }).ends_with("-1"));
    }

    #[test]
    fn steps_follow_the_discount() {
        let under = |gamma| PlanSettings::default().steps_under(gamma);
        assert_eq!([under(0.8), under(0.99), under(0.995), under(0.9999)], [10, 20, 20, 20]);
        assert_eq!(PlanSettings { steps: 7, ..Default::default() }.steps_under(0.99), 7);
    }
}
