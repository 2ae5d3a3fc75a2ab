//! A learned quasimetric: perceptrons followed by a quasimetric head.

use cm_nn::{
    Activation, Backend, Initialiser, Mlp, MlpSettings, Parameter, Parameters, Result, Var,
};
use cm_quasimetric::{Head, Reduction};
use serde::{Deserialize, Serialize};

use crate::check::require;

/// Settings of a [`Metric`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricSettings {
    /// The head; default MRN.
    pub head: HeadSettings,
    /// Number of features the head compares; default 512.
    pub features: usize,
    /// The perceptron that makes them; default 4 x 512, ReLU.
    pub network: MlpSettings,
}

/// Which quasimetric head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadSettings {
    /// Metric residual network. Half of the features are its symmetric part, half the asymmetric one.
    Mrn {
        /// Whether each half comes from a perceptron of its own, as in the 2-D experiment.
        separate: bool,
    },
    /// Interval quasimetric embedding with a learned mix of the groups' maximum and mean.
    Iqe {
        /// Number of groups.
        groups: usize,
    },
    /// Largest positive difference.
    Max,
}

impl Default for MetricSettings {
    fn default() -> Self {
        let head = HeadSettings::Mrn { separate: false };
        Self { head, features: 512, network: MlpSettings::default() }
    }
}

impl MetricSettings {
    /// The 2-D experiment of the authors' script: MRN of 256 + 256 features, each half by three layers of 64 and swish.
    pub fn plane() -> Self {
        let network =
            MlpSettings { hidden: vec![64; 3], activation: Activation::Silu, ..Default::default() };
        Self { head: HeadSettings::Mrn { separate: true }, features: 512, network }
    }

    /// Refuses a number of features that the head cannot divide.
    pub fn check(&self) -> Result<()> {
        let features = self.features;
        let (multiple, expected) = match self.head {
            HeadSettings::Mrn { .. } => (2, "positive and even"),
            HeadSettings::Iqe { groups } => (groups, "a positive multiple of the groups"),
            HeadSettings::Max => (1, "positive"),
        };
        let holds = features > 0 && features.checked_rem(multiple) == Some(0);
        require(holds, "features", expected, features)
    }
}

/// A quasimetric on the rows of matrices, whatever its parameters are.
///
/// ```
/// use cm_baselines::{Metric, MetricSettings};
/// use cm_nn::{DfdxBackend, Parameters, Var};
///
/// let backend = DfdxBackend::new(0);
/// let metric = Metric::new(&mut Parameters::new(&backend, 0), "metric", 2, &MetricSettings::plane())?;
/// let features = |x: [f32; 2]| metric.features(&Var::new(&backend, [1, 2], x.to_vec())?);
/// let (here, there) = (features([0.0, 0.0])?, features([1.0, -1.0])?);
/// assert_eq!(metric.between(&here, &here)?.item()?, 0.0);
/// assert_ne!(metric.between(&here, &there)?.item()?, metric.between(&there, &here)?.item()?);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Metric<B: Backend> {
    networks: Vec<Mlp<B>>,
    head: Head,
    logit: Option<Parameter<B>>,
}

impl<B: Backend> Metric<B> {
    /// A metric on rows of `inputs` columns.
    pub fn new(
        parameters: &mut Parameters<B>,
        name: &str,
        inputs: usize,
        settings: &MetricSettings,
    ) -> Result<Self> {
        settings.check()?;
        let features = settings.features;
        let mut network = |part: &str, features| {
            Mlp::new(parameters, &format!("{name}/{part}"), inputs, &settings.network, features)
        };
        let networks = match settings.head {
            HeadSettings::Mrn { separate: true } => {
                vec![network("symmetric", features / 2)?, network("asymmetric", features / 2)?]
            }
            _ => vec![network("features", features)?],
        };
        let (head, logit) = match settings.head {
            HeadSettings::Mrn { .. } => (Head::MRN, None),
            HeadSettings::Max => (Head::Max, None),
            HeadSettings::Iqe { groups } => {
                let reduction = Reduction::MaxMean { logit: 0.0 };
                let logit = format!("{name}/logit");
                let logit = parameters.create(&logit, [1, 1], Initialiser::ZEROS)?;
                (Head::Iqe { groups, reduction }, Some(logit))
            }
        };
        Ok(Self { networks, head, logit })
    }

    /// The features that [`between`](Self::between) compares.
    pub fn features(&self, x: &Var<B>) -> Result<Var<B>> {
        let parts = self.networks.iter().map(|network| network.forward(x));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Var::concat_columns(&parts.iter().collect::<Vec<_>>())
    }

    /// Distance from each row of features to the same row of others, `[n, 1]`.
    pub fn between(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        let logit = self.logit.as_ref().map(Parameter::value).transpose()?;
        from.distance_rows(to, self.head, logit.as_ref())
    }
}
