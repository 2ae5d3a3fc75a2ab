//! Everything needed to repeat a run.

use std::path::Path;

use cm_replay::Goals;
use serde::{Deserialize, Serialize};

use crate::{Error, HeldOut, Method, MethodSettings, PlanSettings, ReadOut, Result, TaskSettings};

/// The settings of a run: what `config.toml` in its folder holds.
///
/// ```
/// use cm_train::{Method, RunSettings};
///
/// let settings = RunSettings::plane(Method::Cmd1);
/// let text = settings.to_toml();
/// assert!(text.contains("[method.cmd1]"));
/// assert_eq!(RunSettings::from_toml(&text)?, settings);
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// Seed of weights, batches and noise. The same seed gives the same run.
    pub seed: u64,
    /// Training steps.
    pub steps: u64,
    /// Rows of a batch.
    pub batch: usize,
    /// Standard deviation of noise added to states and goals in training.
    pub observation_noise: f32,
    /// Whether a transition whose goal is its own state stays there: its next state is the state.
    /// So it is in the authors' 2-D script; it matters to methods that look at single transitions.
    pub stay_at_goal: bool,
    /// Losses are recorded every so many steps.
    pub log_every: u64,
    /// The policy is evaluated every so many steps; never if 0.
    pub evaluate_every: u64,
    /// A checkpoint is written every so many steps.
    pub checkpoint_every: u64,
    /// How a distance between states is read out of what was learned.
    #[serde(default)]
    pub read_out: ReadOut,
    /// Which future states are goals.
    pub goals: Goals,
    /// Trajectories that are set aside.
    #[serde(default)]
    pub held_out: HeldOut,
    /// How the policy is evaluated.
    pub evaluation: EvaluationSettings,
    /// The road map on which it is evaluated as well; none if absent. It changes nothing in
    /// training, so that it may be added to a run, or changed, at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSettings>,
    /// Where data comes from and where the policy acts.
    pub task: TaskSettings,
    /// What is trained.
    pub method: MethodSettings,
}

/// How the policy is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationSettings {
    /// How many episodes.
    pub episodes: usize,
    /// Their seed: every evaluation sees the same starts and goals.
    pub seed: u64,
    /// Whether the policy also acts before the first step, knowing nothing.
    pub untrained: bool,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self { episodes: 1_500, seed: 0, untrained: true }
    }
}

impl RunSettings {
    /// Reads TOML; unknown keys are refused.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| {
            let found = error.to_string().trim_end().to_owned();
            Error::Setting {
                setting: "settings".into(),
                expected: "a run's settings in TOML",
                found,
            }
        })
    }

    /// Reads a TOML file; errors name it.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        toml::from_str(&text).map_err(|error| Error::content(path, error.to_string().trim_end()))
    }

    /// The settings as TOML.
    pub fn to_toml(&self) -> String {
        // Every key is a string and every value a number, a string, a boolean or a table of those.
        toml::to_string(self).expect("settings are representable in TOML")
    }

    /// Refuses settings outside their ranges; the method's and the task's own are checked when
    /// those are made.
    pub fn check(&self) -> Result<()> {
        let positive = [
            ("steps", self.steps),
            ("batch", self.batch as u64),
            ("log_every", self.log_every),
            ("checkpoint_every", self.checkpoint_every),
        ];
        if let Some((setting, _)) = positive.into_iter().find(|&(_, number)| number == 0) {
            let found = "0".to_owned();
            let setting = setting.to_owned();
            return Err(Error::Setting { setting, expected: "at least 1", found });
        }
        self.held_out.check()?;
        self.plan.iter().try_for_each(PlanSettings::check)?;
        if self.method.method() == Method::Hiql && self.goals.subgoal_steps == 0 {
            return Err(Error::Setting {
                setting: "goals.subgoal_steps".to_owned(),
                expected: "at least 1 for hiql, whose policies have two levels",
                found: "0".to_owned(),
            });
        }
        if self.evaluate_every > 0 && self.evaluation.episodes == 0 {
            let found = "0".to_owned();
            return Err(Error::Setting {
                setting: "evaluation.episodes".to_owned(),
                expected: "at least 1 if there are evaluations",
                found,
            });
        }
        if !(self.observation_noise >= 0.0 && self.observation_noise.is_finite()) {
            return Err(Error::Setting {
                setting: "observation_noise".to_owned(),
                expected: "finite and not negative",
                found: self.observation_noise.to_string(),
            });
        }
        Ok(())
    }

    /// The first key in which two settings differ, `steps` and `plan` apart: a run may be made longer
    /// and evaluated in another way.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let longer = Self { steps: self.steps, plan: self.plan, ..other.clone() };
        if *self == longer {
            return None;
        }
        let table = |settings: &Self| toml::Value::try_from(settings).ok();
        Some(match (table(self), table(&longer)) {
            (Some(a), Some(b)) => first_difference("", &a, &b).unwrap_or_default(),
            _ => "settings".to_owned(),
        })
    }
}

fn first_difference(key: &str, a: &toml::Value, b: &toml::Value) -> Option<String> {
    let (toml::Value::Table(left), toml::Value::Table(right)) = (a, b) else {
        return (a != b).then(|| key.to_owned());
    };
    let dotted =
        |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    left.keys().chain(right.keys()).find_map(|name| match (left.get(name), right.get(name)) {
        (Some(a), Some(b)) => first_difference(&dotted(name), a, b),
        _ => Some(dotted(name)),
    })
}
