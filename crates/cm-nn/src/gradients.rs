//! Gradients of a loss with respect to chosen parameters.

use crate::{Backend, Error, Parameter, Parameters, Result, Shape, Var, Zip};

/// Runs `loss` and differentiates its `[1, 1]` result by every parameter of `wanted`; returns the
/// loss (as a constant) and the gradients.
///
/// Parameters that are not wanted are constants for the time of the loss: "each loss moves only its
/// own parameters" needs nothing but naming them here, and nothing is computed for the others.
///
/// ```
/// use cm_nn::{DfdxBackend, Initialiser, Parameters, gradients};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let x = parameters.create("x", [1, 1], Initialiser::Constant(3.0))?;
/// let (loss, gradients) = gradients(&backend, &[&parameters], || x.value()?.square())?;
/// assert_eq!(loss.item()?, 9.0);
/// assert_eq!(gradients.get(&x).unwrap().item()?, 6.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn gradients<B: Backend>(
    backend: &B,
    wanted: &[&Parameters<B>],
    loss: impl FnOnce() -> Result<Var<B>>,
) -> Result<(Var<B>, Gradients<B>)> {
    let wanted = || wanted.iter().flat_map(|parameters| parameters.iter());
    let cells = wanted().map(|parameter| parameter.cell().clone()).collect::<Vec<_>>();
    let mut value = None;
    let tensors = backend.gradients(&cells, || {
        let loss = loss()?;
        if loss.shape() != [1, 1] {
            return Err(Error::shape("gradients", "a loss [1, 1]", &[loss.shape()]));
        }
        value = Some(loss.stop_gradient());
        Ok(loss.tensor().clone())
    })?;
    let by_parameter = wanted().map(Parameter::id).zip(tensors).collect();
    let value = value.ok_or(Error::NestedGradients)?;
    Ok((value, Gradients { backend: backend.clone(), by_parameter }))
}

/// What [`gradients`] found: one matrix per wanted parameter. An optimiser's step takes out those
/// of its own parameters.
pub struct Gradients<B: Backend> {
    backend: B,
    by_parameter: Vec<(u64, B::Tensor)>,
}

impl<B: Backend> Gradients<B> {
    /// None yet.
    pub fn none(backend: &B) -> Self {
        Self { backend: backend.clone(), by_parameter: Vec::new() }
    }

    /// And those of another loss. A parameter that already has one is refused: which of the two
    /// losses would move it?
    pub fn extend(&mut self, other: Self) -> Result<()> {
        let known = |id: &u64| self.by_parameter.iter().any(|(known, _)| known == id);
        let twice = other.by_parameter.iter().find(|(id, _)| known(id));
        if let Some((_, tensor)) = twice {
            let found = format!("{:?} differentiated twice", B::shape(tensor));
            let expected = "one loss for each parameter".to_owned();
            return Err(Error::Shape { operation: "gradients", expected, found });
        }
        self.by_parameter.extend(other.by_parameter);
        Ok(())
    }

    /// And those of another loss; where a parameter has one already, the two add up.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Initialiser, Parameters, gradients};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let mut parameters = Parameters::new(&backend);
    /// let x = parameters.create("x", [1, 1], Initialiser::Constant(3.0))?;
    /// let (_, mut both) = gradients(&backend, &[&parameters], || x.value()?.square())?;
    /// let (_, second) = gradients(&backend, &[&parameters], || x.value()?.scale(4.0))?;
    /// both.add(second)?;
    /// assert_eq!(both.get(&x).unwrap().item()?, 10.0);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn add(&mut self, other: Self) -> Result<()> {
        for (id, tensor) in other.by_parameter {
            match self.by_parameter.iter_mut().find(|(known, _)| *known == id) {
                Some((_, sum)) => *sum = self.backend.zip(sum, &tensor, Zip::Add)?,
                None => self.by_parameter.push((id, tensor)),
            }
        }
        Ok(())
    }

    /// The gradient with respect to `parameter`, if it was wanted and no optimiser has taken it
    /// yet.
    pub fn get(&self, parameter: &Parameter<B>) -> Option<Var<B>> {
        let found = self.by_parameter.iter().find(|(id, _)| *id == parameter.id());
        found.map(|(_, tensor)| Var::wrap(&self.backend, tensor.clone()))
    }

    /// Takes out the gradients of `parameters`, in their order.
    pub(crate) fn take(&mut self, parameters: &Parameters<B>) -> Result<Vec<B::Tensor>> {
        let positions = parameters.iter().map(|parameter| {
            let position = self.by_parameter.iter().position(|(id, _)| *id == parameter.id());
            position.ok_or_else(|| {
                let name = parameter.name().to_string();
                Error::MissingParameter { name, place: "the gradients" }
            })
        });
        let positions = positions.collect::<Result<Vec<_>>>()?;
        let tensors = positions.iter().map(|&position| self.by_parameter[position].1.clone());
        let tensors = tensors.collect();
        let mut index = 0;
        self.by_parameter.retain(|_| {
            index += 1;
            !positions.contains(&(index - 1))
        });
        Ok(tensors)
    }
}

impl<B: Backend> std::fmt::Debug for Gradients<B> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shapes = self.by_parameter.iter().map(|(_, tensor)| B::shape(tensor));
        formatter.debug_tuple("Gradients").field(&shapes.collect::<Vec<Shape>>()).finish()
    }
}
