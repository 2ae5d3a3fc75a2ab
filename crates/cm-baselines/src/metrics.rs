//! What a training step reports.

use cm_nn::{Backend, Var};

/// Named numbers `[1, 1]` of one training step. They stay on the backend until someone reads them.
pub struct Metrics<B: Backend> {
    values: Vec<(&'static str, Var<B>)>,
}

impl<B: Backend> Default for Metrics<B> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<B: Backend> Metrics<B> {
    /// Names and values in the order they were noted.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Var<B>)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Var<B>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Adds a value, as a constant.
    pub(crate) fn note(&mut self, name: &'static str, value: &Var<B>) {
        self.values.push((name, value.stop_gradient()));
    }
}
