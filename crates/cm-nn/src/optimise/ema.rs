//! Target networks.

use crate::check::share;
use crate::{Backend, Error, Parameters, Result};

/// Moves target parameters slowly towards their sources: `decay * target + (1 - decay) * source`.
///
/// ```
/// use cm_nn::{DfdxBackend, Ema, Initialiser, Parameters};
///
/// let backend = DfdxBackend::new(0);
/// let [mut source, mut target] = [0; 2].map(|_| Parameters::new(&backend));
/// let x = source.create("x", [1, 2], Initialiser::Constant(1.0))?;
/// let y = target.create("x", [1, 2], Initialiser::Constant(-1.0))?;
/// let ema = Ema::new(&target, &source, 0.75)?; // starts as a copy
/// assert_eq!(y.to_vec()?, [1.0, 1.0]);
/// x.set(&[5.0, 1.0])?;
/// ema.step()?;
/// assert_eq!(y.to_vec()?, [2.0, 1.0]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Ema<B: Backend> {
    decay: f32,
    targets: Parameters<B>,
    sources: Parameters<B>,
}

impl<B: Backend> Ema<B> {
    /// Copies `sources` into `targets`, which must have the same shapes in the same order (names
    /// may differ, so that both can go into one file); `decay` is in `[0, 1]`.
    pub fn new(targets: &Parameters<B>, sources: &Parameters<B>, decay: f32) -> Result<Self> {
        share("decay", decay)?;
        let mut remaining = targets.iter();
        for source in sources {
            let place = "the target parameters";
            let missing = || Error::MissingParameter { name: source.name().to_string(), place };
            let target = remaining.next().ok_or_else(missing)?;
            if target.shape() != source.shape() {
                let (expected, found) = (target.shape(), source.shape());
                let name = target.name().to_string();
                return Err(Error::ParameterShape { name, expected, found });
            }
        }
        if let Some(extra) = remaining.next() {
            let (name, place) = (extra.name().to_string(), "the source parameters");
            return Err(Error::MissingParameter { name, place });
        }
        let (targets, sources) = (targets.clone(), sources.clone());
        targets.backend().blend(0.0, &targets.cells(), &sources.cells())?;
        Ok(Self { decay, targets, sources })
    }

    /// Moves the targets once.
    pub fn step(&self) -> Result<()> {
        self.targets.backend().blend(self.decay, &self.targets.cells(), &self.sources.cells())
    }
}
