//! What networks see of states and actions.

use cm_nn::check::{Within, positive, require};
use cm_nn::{Activation, Backend, FixedLayer, FixedMlp, Var};
use serde::{Deserialize, Serialize};

use crate::{Dimensions, Result};

/// How states and actions enter the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureSettings {
    /// As they are.
    #[default]
    Raw,
    /// Each coordinate `x` of a state becomes `tanh((x + c) / width)` for `centres` numbers `c`
    /// spaced evenly from `-limit` to `limit`; actions are normalised to length 1, unless they
    /// keep their size.
    Soft {
        /// Number of centres; at least 2.
        centres: usize,
        /// The outermost centres; positive.
        limit: f32,
        /// Width of each step; positive.
        width: f32,
        /// Whether each coordinate of an action is repeated, so that actions are about as wide as
        /// the state's features; default true.
        #[serde(default = "yes")]
        repeat_actions: bool,
        /// Whether actions keep their size instead of being normalised; default false.
        #[serde(default)]
        sized_actions: bool,
    },
}

fn yes() -> bool {
    true
}

impl FeatureSettings {
    /// The features of the 2-D experiment: 20 centres from -60 to 60, width 5, repeated actions.
    pub const PLANE: Self = Self::soft(20, 60.0, 5.0);

    /// Soft features with repeated actions.
    pub const fn soft(centres: usize, limit: f32, width: f32) -> Self {
        Self::Soft { centres, limit, width, repeat_actions: true, sized_actions: false }
    }

    /// The same with actions given once, if they are soft.
    ///
    /// ```
    /// use cm_learner::{Dimensions, FeatureSettings, Features};
    /// use cm_nn::DfdxBackend;
    ///
    /// let once = FeatureSettings::PLANE.with_actions_once();
    /// let dimensions = Dimensions::new(2, 2, 0..2)?;
    /// let features = Features::new(&DfdxBackend::new(0), once, &dimensions)?;
    /// assert_eq!((features.state_columns(), features.action_columns()), (40, 2));
    /// # Ok::<(), cm_learner::Error>(())
    /// ```
    pub const fn with_actions_once(self) -> Self {
        match self {
            Self::Raw => Self::Raw,
            Self::Soft { centres, limit, width, sized_actions, .. } => {
                Self::Soft { centres, limit, width, repeat_actions: false, sized_actions }
            }
        }
    }

    /// The same with actions that keep their size and sign, if they are soft: half throttle is not
    /// full throttle.
    pub const fn with_sized_actions(self) -> Self {
        match self {
            Self::Raw => Self::Raw,
            Self::Soft { centres, limit, width, repeat_actions, .. } => {
                Self::Soft { centres, limit, width, repeat_actions, sized_actions: true }
            }
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let Self::Soft { centres, limit, width, .. } = *self else { return Ok(()) };
        require(centres >= 2, "centres", "at least 2", centres).within("soft")?;
        positive("limit", limit).within("soft")?;
        positive("width", width).within("soft")
    }
}

/// The features of [`FeatureSettings`] for given sizes.
///
/// ```
/// use cm_nn::{DfdxBackend, Var};
/// use cm_learner::{Dimensions, FeatureSettings, Features};
///
/// let backend = DfdxBackend::new(0);
/// let dimensions = Dimensions::new(2, 2, 0..2)?;
/// let features = Features::new(&backend, FeatureSettings::PLANE, &dimensions)?;
/// let state = Var::new(&backend, [1, 2], vec![0.0, 60.0])?;
/// let seen = features.state(&state)?.to_vec()?;
/// assert_eq!(seen.len(), 40);
/// assert!((seen[0] - (-12.0_f32).tanh()).abs() < 1e-6 && seen[20].abs() < 1e-6);
/// # Ok::<(), cm_learner::Error>(())
/// ```
pub struct Features<B: Backend> {
    soft: Option<Soft<B>>,
    state_columns: usize,
    action_columns: usize,
}

/// The soft features as linear maps.
struct Soft<B: Backend> {
    state: [Var<B>; 2],
    /// None if actions are given once.
    action: Option<Var<B>>,
    sized_actions: bool,
    centres: usize,
}

/// Added to the length that an action is divided by, as in the authors' code of the 2-D experiment.
const LENGTH_EPSILON: f32 = 1e-6;

impl<B: Backend> Features<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: FeatureSettings, dimensions: &Dimensions) -> Result<Self> {
        let (state, action) = (dimensions.state(), dimensions.action());
        let FeatureSettings::Soft { centres, limit, width, repeat_actions, sized_actions } =
            settings
        else {
            return Ok(Self { soft: None, state_columns: state, action_columns: action });
        };
        settings.check()?;
        let centre = |k: usize| limit * (2.0 * k as f32 / (centres - 1) as f32 - 1.0);
        let shift = (0..centres).map(|k| centre(k) / width).collect::<Vec<_>>();
        let soft = Soft {
            state: [
                spread(backend, state, centres, 1.0 / width)?,
                Var::new(backend, [1, state * centres], shift.repeat(state))?,
            ],
            action: repeat_actions.then(|| spread(backend, action, centres, 1.0)).transpose()?,
            sized_actions,
            centres,
        };
        let copies = if repeat_actions { centres } else { 1 };
        let (state_columns, action_columns) = (state * centres, action * copies);
        Ok(Self { soft: Some(soft), state_columns, action_columns })
    }

    /// `[n, state]` to `[n, state_columns]`.
    pub fn state(&self, state: &Var<B>) -> Result<Var<B>> {
        match &self.soft {
            Some(soft) => {
                let [weight, shift] = &soft.state;
                state.linear(weight, Some(shift), Activation::Tanh)
            }
            None => Ok(state.clone()),
        }
    }

    /// What makes the features of a state, for one at a time.
    ///
    /// ```
    /// use cm_learner::{Dimensions, FeatureSettings, Features};
    /// use cm_nn::DfdxBackend;
    ///
    /// let dimensions = Dimensions::new(2, 1, 0..2)?;
    /// let features = Features::new(&DfdxBackend::new(0), FeatureSettings::Raw, &dimensions)?;
    /// let mut seen = Vec::new();
    /// features.fixed_state()?.forward(&[3.0, 4.0], &mut seen)?;
    /// assert_eq!(seen, [3.0, 4.0]);
    /// # Ok::<(), cm_learner::Error>(())
    /// ```
    pub fn fixed_state(&self) -> Result<FixedMlp> {
        let Some(soft) = &self.soft else { return Ok(FixedMlp::default()) };
        let [weight, shift] = &soft.state;
        Ok(FixedMlp::new(vec![FixedLayer::new(weight, shift, Activation::Tanh)?]))
    }

    /// `[n, action]` to `[n, action_columns]`.
    pub fn action(&self, action: &Var<B>) -> Result<Var<B>> {
        let Some(soft) = &self.soft else { return Ok(action.clone()) };
        let direction = match soft.sized_actions {
            true => action.clone(),
            false => action.l2_normalize(LENGTH_EPSILON)?,
        };
        soft.action.as_ref().map_or(Ok(direction.clone()), |spread| direction.matmul(spread))
    }

    /// State and action side by side, `[n, state_columns + action_columns]`.
    pub fn state_action(&self, state: &Var<B>, action: &Var<B>) -> Result<Var<B>> {
        Var::concat_columns(&[&self.state(state)?, &self.action(action)?])
    }

    /// A state beside zeros where an action belongs, as distances between states have them.
    ///
    /// ```
    /// use cm_learner::{Dimensions, FeatureSettings, Features};
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let dimensions = Dimensions::new(2, 1, 0..2)?;
    /// let features = Features::new(&backend, FeatureSettings::Raw, &dimensions)?;
    /// let state = Var::new(&backend, [1, 2], vec![3.0, 4.0])?;
    /// assert_eq!(features.without_action(&state)?.to_vec()?, [3.0, 4.0, 0.0]);
    /// # Ok::<(), cm_learner::Error>(())
    /// ```
    pub fn without_action(&self, state: &Var<B>) -> Result<Var<B>> {
        // Normalised or not, repeated or not, zeros stay zeros.
        let none = Var::full(state.backend(), [state.rows(), self.action_columns], 0.0)?;
        Var::concat_columns(&[&self.state(state)?, &none])
    }

    /// Columns a network sees of a state.
    pub fn state_columns(&self) -> usize {
        self.state_columns
    }

    /// Columns a network sees of an action.
    pub fn action_columns(&self) -> usize {
        self.action_columns
    }

    /// Columns a network sees of `coordinates` of the state's coordinates.
    pub fn columns_of(&self, coordinates: usize) -> usize {
        coordinates * self.soft.as_ref().map_or(1, |soft| soft.centres)
    }

    /// The same features of some of the state's coordinates, given those alone.
    pub fn coordinates(&self, values: &Var<B>) -> Result<Var<B>> {
        let Some(soft) = &self.soft else { return Ok(values.clone()) };
        // Every coordinate has the same centres: the first blocks of the maps fit any coordinates.
        let columns = values.columns() * soft.centres;
        let weight = soft.state[0].slice_rows(0..values.columns())?.slice_columns(0..columns)?;
        let shift = soft.state[1].slice_columns(0..columns)?;
        values.linear(&weight, Some(&shift), Activation::Tanh)
    }
}

/// A matrix `[columns, columns * copies]` that repeats each column, times `scale`.
fn spread<B: Backend>(backend: &B, columns: usize, copies: usize, scale: f32) -> Result<Var<B>> {
    let wide = columns * copies;
    let value = |at: usize| if at % wide / copies == at / wide { scale } else { 0.0 };
    Var::new(backend, [columns, wide], (0..columns * wide).map(value).collect())
}

#[cfg(test)]
mod tests {
    use cm_nn::DfdxBackend;

    use super::*;

    #[test]
    fn soft_features_are_what_they_say() {
        let backend = DfdxBackend::new(0);
        let settings = FeatureSettings::soft(3, 2.0, 5.0);
        let dimensions = Dimensions::new(2, 2, 1..2).unwrap();
        let features = Features::new(&backend, settings, &dimensions).unwrap();
        let state = Var::new(&backend, [1, 2], vec![1.0, -3.0]).unwrap();
        let seen = features.state(&state).unwrap().to_vec().unwrap();
        let wanted = [-1.0_f32, 1.0, 3.0, -5.0, -3.0, -1.0].map(|x| (x / 5.0).tanh());
        for (found, wanted) in seen.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-6, "{seen:?}");
        }
        let second = state.slice_columns(1..2).unwrap();
        assert_eq!(features.coordinates(&second).unwrap().to_vec().unwrap(), seen[3..]);

        let action = Var::new(&backend, [1, 2], vec![3.0, -4.0]).unwrap();
        let seen = features.action(&action).unwrap().to_vec().unwrap();
        for (found, wanted) in seen.iter().zip([0.6, 0.6, 0.6, -0.8, -0.8, -0.8]) {
            assert!((found - wanted).abs() < 1e-6, "{seen:?}");
        }
        let once = Features::new(&backend, settings.with_actions_once(), &dimensions).unwrap();
        let direction = once.action(&action).unwrap().to_vec().unwrap();
        assert!((direction[0] - 0.6).abs() < 1e-6 && (direction[1] + 0.8).abs() < 1e-6);
        let sized = Features::new(&backend, settings.with_sized_actions(), &dimensions).unwrap();
        let seen = sized.action(&action).unwrap().to_vec().unwrap();
        assert_eq!(seen, [3.0, 3.0, 3.0, -4.0, -4.0, -4.0]);
        let both = features.state_action(&state, &action).unwrap();
        assert_eq!(both.columns(), features.state_columns() + features.action_columns());
        let none = Var::full(&backend, [1, 2], 0.0).unwrap();
        for features in [features, once, sized] {
            let wanted = features.state_action(&state, &none).unwrap().to_vec().unwrap();
            assert_eq!(features.without_action(&state).unwrap().to_vec().unwrap(), wanted);
        }
    }

    #[test]
    fn refuses_settings_outside_their_ranges() {
        let dimensions = Dimensions::new(2, 2, 0..2).unwrap();
        for (centres, limit, width) in [(1, 1.0, 1.0), (3, 0.0, 1.0), (3, 1.0, f32::NAN)] {
            let settings = FeatureSettings::soft(centres, limit, width);
            assert!(Features::new(&DfdxBackend::new(0), settings, &dimensions).is_err());
        }
    }
}
