//! Ensembles of two.

use crate::{Backend, Result, Var};

/// Two modules of the same kind with their own parameters.
///
/// ```
/// use cm_nn::{DfdxBackend, Mlp, MlpSettings, Parameters, Twin, Var};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend, 0);
/// let settings = MlpSettings { hidden: vec![8], ..Default::default() };
/// let critics = Twin::new("critic", |name| Mlp::new(&mut parameters, name, 3, &settings, 1))?;
///
/// let x = Var::new(&backend, [2, 3], vec![0.5; 6])?;
/// let [first, second] = critics.map(|critic| critic.forward(&x))?;
/// assert_ne!(first.to_vec()?, second.to_vec()?);
/// assert_eq!(first.minimum(&second)?.shape(), [2, 1]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Twin<M> {
    modules: [M; 2],
}

impl<M> Twin<M> {
    /// Makes the two with the names `<name>_0` and `<name>_1`.
    pub fn new(name: &str, mut module: impl FnMut(&str) -> Result<M>) -> Result<Self> {
        let modules = [module(&format!("{name}_0"))?, module(&format!("{name}_1"))?];
        Ok(Self { modules })
    }

    /// The same function of both.
    pub fn map<B: Backend>(&self, f: impl Fn(&M) -> Result<Var<B>>) -> Result<[Var<B>; 2]> {
        Ok([f(&self.modules[0])?, f(&self.modules[1])?])
    }

    /// Both.
    pub fn modules(&self) -> &[M; 2] {
        &self.modules
    }
}
