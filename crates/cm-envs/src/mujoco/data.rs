//! The state of one simulation.

use std::sync::Arc;

use super::Model;
use super::api::Handle;
use super::handlers::guarded;
use super::model::STATE;
use crate::Error;

/// One simulation of a [`Model`]: its state, its controls, and MuJoCo's working memory.
pub struct Data {
    model: Arc<Model>,
    handle: Handle,
    /// A call was left half-way; only a reset makes the working memory sound again.
    broken: bool,
}

// SAFETY: an mjData is memory of its own that belongs to no thread.
unsafe impl Send for Data {}

impl Data {
    /// A simulation at the model's initial state.
    pub fn new(model: &Arc<Model>) -> Result<Self, Error> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the model lives at least as long as the data, which hold it.
        let outcome = guarded(|| handle = unsafe { (model.api().make_data)(model.handle()) });
        // From here on dropping frees the data, also data that MuJoCo warned of.
        let data =
            (!handle.is_null()).then(|| Self { model: model.clone(), handle, broken: false });
        outcome?;
        let reason = "no memory for another simulation";
        data.ok_or_else(|| Error::Simulator { reason: reason.into() })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Goes back to the model's initial state.
    pub fn reset(&mut self) -> Result<(), Error> {
        let (model, handle) = (&self.model, self.handle);
        // SAFETY: both handles are alive, and the data were made from the model; so in all calls
        // below.
        guarded(|| unsafe { (model.api().reset_data)(model.handle(), handle) })?;
        self.broken = false;
        Ok(())
    }

    /// Writes the positions, then the velocities. Panics unless there is room for exactly these.
    pub fn state(&self, state: &mut [f64]) {
        let model = &self.model;
        assert_eq!(state.len(), model.positions() + model.velocities(), "positions and velocities");
        // SAFETY: as in `reset`; `state` has the length that the bits ask for.
        unsafe { (model.api().get_state)(model.handle(), self.handle, state.as_mut_ptr(), STATE) }
    }

    /// Sets the positions, then the velocities, and computes what follows from them. Numbers that
    /// are not finite are refused.
    pub fn set_state(&mut self, state: &[f64]) -> Result<(), Error> {
        let expected = self.model.positions() + self.model.velocities();
        check("state", state, expected)?;
        self.usable()?;
        let (model, handle) = (self.model.clone(), self.handle);
        // SAFETY: as in `reset`; `state` has the length that the bits ask for.
        self.run(|| unsafe {
            (model.api().set_state)(model.handle(), handle, state.as_ptr(), STATE);
            (model.api().forward)(model.handle(), handle);
        })
    }

    /// The same without computing what follows from them, which a step does anyway. What the solver
    /// keeps from the step before to start from is left as it is.
    pub fn overwrite_state(&mut self, state: &[f64]) -> Result<(), Error> {
        check("state", state, self.model.positions() + self.model.velocities())?;
        self.usable()?;
        let model = &self.model;
        // SAFETY: as in `reset`; `state` has the length that the bits ask for.
        unsafe { (model.api().set_state)(model.handle(), self.handle, state.as_ptr(), STATE) }
        Ok(())
    }

    /// Sets what the motors do from the next step on. Numbers that are not finite are refused.
    pub fn set_control(&mut self, control: &[f64]) -> Result<(), Error> {
        check("control", control, self.model.controls())?;
        self.usable()?;
        let model = &self.model;
        // SAFETY: as in `reset`; `control` has the length that the bit asks for.
        unsafe {
            let bit = model.control_bit();
            (model.api().set_state)(model.handle(), self.handle, control.as_ptr(), bit);
        }
        Ok(())
    }

    /// Simulates `steps` time steps. A simulation that diverges, or of which MuJoCo warns in any
    /// other way, is an error.
    pub fn step(&mut self, steps: usize) -> Result<(), Error> {
        self.usable()?;
        let (model, handle) = (self.model.clone(), self.handle);
        let (step, model) = (model.api().step, model.handle());
        self.run(|| {
            for _ in 0..steps {
                // SAFETY: as in `reset`.
                unsafe { step(model, handle) }
            }
        })
    }

    fn run(&mut self, call: impl FnOnce()) -> Result<(), Error> {
        guarded(call).map_err(|failure| {
            self.broken = true;
            failure.into()
        })
    }

    fn usable(&self) -> Result<(), Error> {
        if self.broken {
            let reason = "the simulation failed before and was not reset".to_owned();
            return Err(Error::Simulator { reason });
        }
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: the handle came from `make_data` and nothing else refers to it.
        let _ = guarded(|| unsafe { (self.model.api().delete_data)(self.handle) });
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Data of {:?}", self.model)
    }
}

fn check(what: &str, numbers: &[f64], expected: usize) -> Result<(), Error> {
    let found = numbers.len();
    if found != expected {
        return Err(Error::Length { what: what.into(), expected, found });
    }
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(Error::NotFinite { what: format!("{what}, entry {index}"), found: numbers[index] })
        }
    }
}
