//! Learned quasimetrics: perceptrons followed by a quasimetric head.

use cm_quasimetric::{Head, Reduction};
use serde::{Deserialize, Serialize};

use super::{Mlp, MlpSettings};
use crate::check::{Within, not_negative, require};
use crate::{Backend, Initialiser, Parameter, Parameters, Result, Var};

/// Settings of a [`Quasimetric`]. The defaults are the paper's MRN: 256 + 256 features, 4 x 512.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuasimetricSettings {
    /// Which head.
    pub head: HeadSettings,
    /// Number of features the head compares (of both halves together, if MRN).
    pub features: usize,
    /// The perceptron that makes them.
    pub network: MlpSettings,
}

/// Which quasimetric head; see [`Head`] for what each computes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadSettings {
    /// Metric residual network.
    Mrn {
        /// Number of MRNs whose distances are averaged.
        #[serde(default = "one")]
        components: usize,
        /// Added to every squared difference under the root; 0 makes it exactly a quasimetric.
        #[serde(default)]
        epsilon: f64,
        /// Whether each half of the features comes from a perceptron of its own; for one component only.
        #[serde(default)]
        separate: bool,
    },
    /// Interval quasimetric embedding.
    Iqe {
        /// Number of groups of features.
        groups: usize,
        /// How the groups become one distance.
        #[serde(default)]
        reduction: ReductionSettings,
    },
    /// Largest positive difference.
    Max,
}

/// How the lengths of IQE's groups become one distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReductionSettings {
    /// A learned mix of the largest and the mean, which starts as half of each.
    #[default]
    MaxMean,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
}

fn one() -> usize {
    1
}

impl HeadSettings {
    /// One MRN, exactly a quasimetric, both halves by one perceptron.
    pub const MRN: Self = Self::Mrn { components: 1, epsilon: 0.0, separate: false };
}

impl Default for QuasimetricSettings {
    fn default() -> Self {
        Self { head: HeadSettings::MRN, features: 512, network: MlpSettings::default() }
    }
}

impl QuasimetricSettings {
    /// Refuses a head that is none and a number of features that it cannot divide.
    pub fn check(&self) -> Result<()> {
        let (parts, expected) = match self.head {
            HeadSettings::Mrn { components, epsilon, separate } => {
                not_negative("epsilon", epsilon).within("head.mrn")?;
                let alone = !separate || components < 2;
                let expected = "false for more than one component";
                require(alone, "head.mrn.separate", expected, separate)?;
                (components.saturating_mul(2), "a positive multiple of twice the components")
            }
            HeadSettings::Iqe { groups, .. } => (groups, "a positive multiple of the groups"),
            HeadSettings::Max => (1, "positive"),
        };
        let fits = self.features > 0 && self.features.checked_rem(parts) == Some(0);
        let found = format!("{} for {parts}", self.features);
        require(fits, "features", expected, found)?;
        self.network.check().within("network")
    }
}

/// A quasimetric on the rows of matrices, whatever its parameters are: `<name>/encoder/linear_i` (or `<name>/symmetric/...` and
/// `<name>/asymmetric/...` if separate), and `<name>/logit` if IQE's reduction is learned.
///
/// ```
/// use cm_nn::{DfdxBackend, Parameters, Quasimetric, QuasimetricSettings, Var};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let settings = QuasimetricSettings { features: 16, ..Default::default() };
/// let d = Quasimetric::new(&mut parameters, "d", 2, &settings)?;
/// let x = d.features(&Var::new(&backend, [3, 2], vec![0.0, 0.0, 1.0, -1.0, 2.0, 0.5])?)?;
/// let all = d.pairs(&x, &x)?.to_vec()?;
/// assert_eq!(all[0], 0.0);
/// assert_ne!(all[1], all[3]); // from the first to the second, and back
/// assert!(all[2] <= all[1] + all[5]); // the triangle inequality
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Quasimetric<B: Backend> {
    networks: Vec<Mlp<B>>,
    head: Head,
    logit: Option<Parameter<B>>,
}

impl<B: Backend> Quasimetric<B> {
    /// A quasimetric on rows of `inputs` columns.
    pub fn new(
        parameters: &mut Parameters<B>,
        name: &str,
        inputs: usize,
        settings: &QuasimetricSettings,
    ) -> Result<Self> {
        settings.check()?;
        let features = settings.features;
        let mut network = |part: &str, features| {
            Mlp::new(parameters, &format!("{name}/{part}"), inputs, &settings.network, features)
        };
        let networks = match settings.head {
            HeadSettings::Mrn { separate: true, .. } => {
                vec![network("symmetric", features / 2)?, network("asymmetric", features / 2)?]
            }
            _ => vec![network("encoder", features)?],
        };
        let (head, logit) = match settings.head {
            HeadSettings::Mrn { components, epsilon, .. } => {
                (Head::Mrn { components, epsilon }, None)
            }
            HeadSettings::Max => (Head::Max, None),
            HeadSettings::Iqe { groups, reduction } => {
                let reduction = match reduction {
                    ReductionSettings::MaxMean => Reduction::MaxMean { logit: 0.0 },
                    ReductionSettings::Sum => Reduction::Sum,
                    ReductionSettings::Mean => Reduction::Mean,
                    ReductionSettings::Max => Reduction::Max,
                };
                let learned = matches!(reduction, Reduction::MaxMean { .. });
                let name = format!("{name}/logit");
                let logit = learned.then(|| parameters.create(&name, [1, 1], Initialiser::ZEROS));
                (Head::Iqe { groups, reduction }, logit.transpose()?)
            }
        };
        Ok(Self { networks, head, logit })
    }

    /// The features that distances compare: `[n, inputs]` to `[n, features]`.
    pub fn features(&self, x: &Var<B>) -> Result<Var<B>> {
        let parts = self.networks.iter().map(|network| network.forward(x));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        match parts.as_slice() {
            [one] => Ok(one.clone()),
            parts => Var::concat_columns(&parts.iter().collect::<Vec<_>>()),
        }
    }

    /// Distance from each row of features to the same row of others, `[n, 1]`.
    pub fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_rows(to, self.head, self.logit()?.as_ref())
    }

    /// Distance from each row of features to every row of others, `[n, m]`.
    pub fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_pairs(to, self.head, self.logit()?.as_ref())
    }

    fn logit(&self) -> Result<Option<Var<B>>> {
        self.logit.as_ref().map(Parameter::value).transpose()
    }
}
