//! Ensembles of two.

use crate::{Backend, Result, Var};

/// Two modules of the same kind with their own parameters, or one where a setting says so.
///
/// ```
/// use cm_nn::{DfdxBackend, Mlp, MlpSettings, Parameters, Twin, Var};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let settings = MlpSettings { hidden: vec![8], ..Default::default() };
/// let critics = Twin::new("critic", |name| Mlp::new(&mut parameters, name, 3, &settings, 1))?;
///
/// let x = Var::new(&backend, [2, 3], vec![0.5; 6])?;
/// let difference = critics.join(|critic| critic.forward(&x), |first, second| first.sub(second))?;
/// assert!(difference.to_vec()?.iter().all(|&difference| difference != 0.0));
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Twin<M> {
    modules: Vec<M>,
}

impl<M> Twin<M> {
    /// Makes the two with the names `<name>_0` and `<name>_1`.
    pub fn new(name: &str, module: impl FnMut(&str) -> Result<M>) -> Result<Self> {
        Self::one_or_two([&format!("{name}_0"), &format!("{name}_1")], true, module)
    }

    /// Makes both, or only the first if there are not `two`: settings decide.
    pub fn one_or_two(
        names: [&str; 2],
        two: bool,
        module: impl FnMut(&str) -> Result<M>,
    ) -> Result<Self> {
        let names = if two { &names[..] } else { &names[..1] };
        Ok(Self { modules: names.iter().copied().map(module).collect::<Result<_>>()? })
    }

    /// The two, or the one.
    pub fn members(&self) -> &[M] {
        &self.modules
    }

    /// A function of each, and `both` of the two results; the result itself if there is only one.
    pub fn join<B: Backend>(
        &self,
        f: impl Fn(&M) -> Result<Var<B>>,
        both: impl Fn(&Var<B>, &Var<B>) -> Result<Var<B>>,
    ) -> Result<Var<B>> {
        let first = f(&self.modules[0])?;
        match self.modules.get(1) {
            Some(second) => both(&first, &f(second)?),
            None => Ok(first),
        }
    }
}
