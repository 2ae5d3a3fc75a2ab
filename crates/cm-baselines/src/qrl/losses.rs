//! The terms of QRL's losses. Sections are those of the QRL paper.

use cm_nn::{Backend, Over, Result, Var};

/// `-E phi(d)` of Sec. 3.2, which pushes states and goals apart:
/// `mean softplus(sharpness (offset - d)) / sharpness`.
///
/// The authors' `100 softplus(5 - d / 100)` is offset 500 and sharpness 0.01.
///
/// ```
/// use cm_baselines::push_loss;
/// use cm_nn::{DfdxBackend, Var};
///
/// let distance = Var::full(&DfdxBackend::new(0), [4, 1], 500.0)?;
/// let loss = push_loss(&distance, 500.0, 0.01)?.item()?;
/// assert!((loss - 100.0 * 2.0_f32.ln()).abs() < 1e-3);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn push_loss<B: Backend>(distance: &Var<B>, offset: f32, sharpness: f32) -> Result<Var<B>> {
    let near = distance.affine(-sharpness, sharpness * offset)?.softplus()?;
    near.mean(Over::All)?.scale(1.0 / sharpness)
}

/// `E max(0, d(s, s') - cost)^2` of Sec. 3.2, by how much transitions are too long.
///
/// ```
/// use cm_baselines::transition_excess;
/// use cm_nn::{DfdxBackend, Var};
///
/// let distance = Var::new(&DfdxBackend::new(0), [2, 1], vec![0.5, 3.0])?;
/// assert_eq!(transition_excess(&distance, 1.0)?.item()?, 2.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn transition_excess<B: Backend>(distance: &Var<B>, step_cost: f32) -> Result<Var<B>> {
    distance.affine(1.0, -step_cost)?.relu()?.square()?.mean(Over::All)
}

/// `E (d(T(s, a), s')^2 + d(s', T(s, a))^2) / 2` of Sec. 3.4, how far the predicted outcome is from
/// the real one, there and back.
///
/// ```
/// use cm_baselines::latent_transition_loss;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let (there, back) = (Var::full(&backend, [3, 1], 1.0)?, Var::full(&backend, [3, 1], 3.0)?);
/// assert_eq!(latent_transition_loss(&there, &back)?.item()?, 5.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn latent_transition_loss<B: Backend>(there: &Var<B>, back: &Var<B>) -> Result<Var<B>> {
    there.square()?.add(&back.square()?)?.mean(Over::All)?.scale(0.5)
}

/// The Lagrangian of Sec. 3.2, `push + multiplier (excess - margin)`, to be minimised over the metric
/// and maximised over the multiplier.
///
/// Both happen by descent on the one result: the metric sees `push + multiplier * excess` with the
/// multiplier constant, the multiplier sees `multiplier (margin - excess)` with the excess
/// constant.
///
/// ```
/// use cm_baselines::lagrangian;
/// use cm_nn::{DfdxBackend, Initialiser, Parameters, Var, gradients};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let multiplier = parameters.create("multiplier", [1, 1], Initialiser::Constant(2.0))?;
/// let (push, excess) = (Var::full(&backend, [1, 1], 5.0)?, Var::full(&backend, [1, 1], 1.0)?);
/// let (_, found) = gradients(&backend, &[&parameters], || {
///     lagrangian(&push, &excess, &multiplier.value()?, 0.25)
/// })?;
/// // The constraint is violated, so that descent makes the multiplier larger.
/// assert_eq!(found.get(&multiplier).unwrap().item()?, 0.25 - 1.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn lagrangian<B: Backend>(
    push: &Var<B>,
    excess: &Var<B>,
    multiplier: &Var<B>,
    margin: f32,
) -> Result<Var<B>> {
    let primal = push.add(&multiplier.stop_gradient().mul(excess)?)?;
    let slack = excess.stop_gradient().affine(-1.0, margin)?;
    primal.add(&multiplier.mul(&slack)?)
}
