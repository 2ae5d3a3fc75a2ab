//! What gradients flow to, cells, failures, and repetition.

use super::Suite;
use super::capture::Small;
use crate::{Backend, Error, Initialiser, Over, Parameters, Result, Snapshot, Var, gradients};

/// Only wanted parameters are differentiated by; one the loss does not touch has gradient zero.
pub fn wanted_parameters<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let (mut first, mut second) = (Parameters::new(&backend), Parameters::new(&backend));
    let x = first.create("x", [1, 1], Initialiser::Constant(3.0))?;
    let unused = first.create("unused", [2, 2], Initialiser::Constant(1.0))?;
    let y = second.create("y", [1, 1], Initialiser::Constant(5.0))?;
    let product = || x.value()?.mul(&y.value()?);
    let item = |found: Option<Var<B>>| found.map(|found| found.item()).transpose();

    let (loss, found) = gradients(&backend, &[&first], product)?;
    assert_eq!(loss.item()?, 15.0);
    assert_eq!(item(found.get(&x))?, Some(5.0));
    assert!(found.get(&y).is_none());
    let zero = found.get(&unused).map(|zero| zero.to_vec()).transpose()?;
    assert_eq!(zero, Some(vec![0.0; 4]));

    let (_, found) = gradients(&backend, &[&first, &second], product)?;
    assert_eq!((item(found.get(&x))?, item(found.get(&y))?), (Some(5.0), Some(3.0)));
    // A loss that depends on nothing wanted.
    let (_, found) = gradients(&backend, &[&second], || x.value()?.square())?;
    assert_eq!(item(found.get(&y))?, Some(0.0));
    Ok(())
}

/// `stop_gradient`, and what was computed outside or in other gradients, are constants.
pub fn constants<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut parameters = Parameters::new(&backend);
    let x = parameters.create("x", [1, 1], Initialiser::Constant(3.0))?;
    let slope = |loss: &dyn Fn() -> Result<Var<B>>| {
        let (_, found) = gradients(&backend, &[&parameters], loss)?;
        found.get(&x).map_or(Ok(f32::NAN), |found| found.item())
    };
    assert_eq!(slope(&|| x.value()?.mul(&x.value()?.stop_gradient()))?, 3.0);
    let outside = x.value()?.square()?;
    assert_eq!(slope(&|| x.value()?.mul(&outside))?, 9.0);
    let mut kept = None;
    gradients(&backend, &[&parameters], || {
        kept = Some(x.value()?.square()?);
        x.value()
    })?;
    let kept = kept.ok_or(Error::NestedGradients)?;
    assert_eq!(slope(&|| x.value()?.mul(&kept))?, 9.0);
    // One value used many times gets the sum.
    assert_eq!(slope(&|| x.value()?.mul(&x.value()?)?.mul(&x.value()?))?, 27.0);
    Ok(())
}

/// A failing loss, a nested one and one that is not a scalar are reported and leave the backend
/// usable.
pub fn failures<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut parameters = Parameters::new(&backend);
    let x = parameters.create("x", [2, 3], Initialiser::Constant(1.0))?;
    let wrong = gradients(&backend, &[&parameters], || x.value()?.matmul(&x.value()?));
    assert!(matches!(wrong, Err(Error::Shape { operation: "matmul", .. })));
    let matrix = gradients(&backend, &[&parameters], || x.value());
    assert!(matches!(matrix, Err(Error::Shape { operation: "gradients", .. })));
    let nested = gradients(&backend, &[&parameters], || {
        let (loss, _) = gradients(&backend, &[&parameters], || x.value()?.sum(Over::All))?;
        Ok(loss)
    });
    assert!(matches!(nested, Err(Error::NestedGradients)));
    let (loss, _) = gradients(&backend, &[&parameters], || x.value()?.sum(Over::All))?;
    assert_eq!(loss.item()?, 6.0);
    Ok(())
}

/// Cells are read as they are at that point of the step, and refuse what does not fit.
pub fn cells<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut parameters = Parameters::new(&backend);
    let x = parameters.create("x", [1, 2], Initialiser::Constant(1.0))?;
    assert_eq!(x.value()?.to_vec()?, [1.0, 1.0]);
    x.set(&[2.0, 3.0])?;
    assert_eq!(x.value()?.to_vec()?, [2.0, 3.0]);
    assert!(matches!(x.set(&[1.0]), Err(Error::Shape { .. })));
    assert_eq!(x.to_vec()?, [2.0, 3.0]);
    Ok(())
}

/// The same seed gives the same numbers bit for bit, and a run saved and resumed in the middle is
/// the run that never stopped.
pub fn repeats_itself<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let once = train(&suite.make(1), 0..6, None)?;
    assert_eq!(train(&suite.make(1), 0..6, None)?, once);
    assert_ne!(train(&suite.make(2), 0..6, None)?, once);
    let half = train(&suite.make(1), 0..3, None)?;
    assert_eq!(train(&suite.make(1), 3..6, Some(&half))?, once);
    Ok(())
}

/// Some steps of a small contrastive learner with noise; returns parameters and optimiser state.
fn train<B: Backend>(
    backend: &B,
    steps: std::ops::Range<u64>,
    from: Option<&Snapshot>,
) -> Result<Snapshot> {
    let learner = Small::new(backend)?;
    from.map_or(Ok(()), |from| learner.restore(0, from))?;
    backend.set_step(steps.start)?;
    for _ in steps {
        learner.step()?;
    }
    Ok(learner.state()?.remove(0))
}
