//! Learned quasimetrics: perceptrons followed by a quasimetric head.

use cm_quasimetric::{Head, Reduction};
use serde::{Deserialize, Serialize};

use super::{FixedQuasimetric, Mlp, MlpSettings};
use crate::check::{Within, require};
use crate::{Backend, Initialiser, Parameter, Parameters, Result, Var};

/// Settings of a [`Quasimetric`]. The defaults are the paper's MRN: 256 + 256 features, 4 x 512.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuasimetricSettings {
    /// Which head. The logit of a max-mean reduction is learned, from where it is set.
    pub head: Head,
    /// Number of features the head compares (of both halves together, if MRN).
    pub features: usize,
    /// Whether each half of the features comes from a perceptron of its own; for an MRN of one
    /// component only.
    pub separate: bool,
    /// The perceptron that makes them.
    pub network: MlpSettings,
}

impl Default for QuasimetricSettings {
    fn default() -> Self {
        let network = MlpSettings::default();
        Self { head: Head::MRN, features: 512, separate: false, network }
    }
}

impl QuasimetricSettings {
    /// Refuses a head that is none and a number of features that it cannot divide.
    pub fn check(&self) -> Result<()> {
        if let Err(refused) = self.head.check(self.features) {
            let setting = match refused {
                cm_quasimetric::Error::Head { .. } => "head",
                _ => "features",
            };
            let expected = "a number of features that the head divides";
            return require(false, setting, expected, refused);
        }
        let halves = matches!(self.head, Head::Mrn { components: 1, .. });
        let expected = "false but for an MRN of one component";
        require(!self.separate || halves, "separate", expected, self.separate)?;
        self.network.check().within("network")
    }
}

/// A quasimetric on the rows of matrices, whatever its parameters are: `<name>/encoder/linear_i`
/// (or `<name>/symmetric/...` and `<name>/asymmetric/...` if separate), and `<name>/logit` if IQE's
/// reduction is learned.
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
        let networks = match settings.separate {
            true => vec![network("symmetric", features / 2)?, network("asymmetric", features / 2)?],
            false => vec![network("encoder", features)?],
        };
        let head = settings.head;
        let logit = match head {
            Head::Iqe { reduction: Reduction::MaxMean { logit }, .. } => {
                let start = Initialiser::Constant(logit as f32);
                Some(parameters.create(&format!("{name}/logit"), [1, 1], start)?)
            }
            _ => None,
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

    /// The features of two sets of rows, by one product for both: weights are read once, and small
    /// products are slow.
    pub fn features_of_both(&self, from: &Var<B>, to: &Var<B>) -> Result<[Var<B>; 2]> {
        let features = self.features(&Var::concat_rows(&[from, to])?)?;
        let (middle, end) = (from.rows(), features.rows());
        Ok([features.slice_rows(0..middle)?, features.slice_rows(middle..end)?])
    }

    /// Distance from each row of features to the same row of others, `[n, 1]`.
    pub fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_rows(to, self.head, self.logit()?.as_ref())
    }

    /// Distance from each row of features to every row of others, `[n, m]`.
    pub fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        from.distance_pairs(to, self.head, self.logit()?.as_ref())
    }

    /// The quasimetric as it is now, for one row at a time; none if there are layer norms.
    pub fn fixed(&self) -> Result<Option<FixedQuasimetric>> {
        let networks = self.networks.iter().map(Mlp::fixed).collect::<Result<Option<Vec<_>>>>()?;
        let head = match (self.head, &self.logit) {
            (Head::Iqe { groups, .. }, Some(logit)) => {
                let logit = f64::from(logit.to_vec()?[0]);
                Head::Iqe { groups, reduction: Reduction::MaxMean { logit } }
            }
            (head, _) => head,
        };
        Ok(networks.map(|networks| FixedQuasimetric { networks, head }))
    }

    fn logit(&self) -> Result<Option<Var<B>>> {
        self.logit.as_ref().map(Parameter::value).transpose()
    }
}
