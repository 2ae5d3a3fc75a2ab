//! States as people type them.

use std::str::FromStr;

use anyhow::{Context, bail};
use cm_train::{Model, Task};

/// A state on the command line: its numbers separated by commas, or a place in the data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Named {
    /// `-10,0`.
    Numbers(Vec<f32>),
    /// `12:40`: step 40 of trajectory 12, both counted from 0.
    Place { trajectory: usize, step: usize },
}

/// Numbers separated by commas.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers(pub(crate) Vec<f32>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f32>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        match numbers {
            Ok(numbers) if numbers.iter().all(|number: &f32| number.is_finite()) => {
                Ok(Self(numbers))
            }
            _ => Err(format!("expected finite numbers separated by commas, found `{text}`")),
        }
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((trajectory, step)) = text.split_once(':') else {
            return text.parse().map(|Numbers(numbers)| Self::Numbers(numbers));
        };
        match (trajectory.trim().parse(), step.trim().parse()) {
            (Ok(trajectory), Ok(step)) => Ok(Self::Place { trajectory, step }),
            _ => Err(format!(
                "expected numbers such as `1.5,-2` or a trajectory and a step of it such as \
                 `12:40`, found `{text}`"
            )),
        }
    }
}

/// The task of a model's run, opened when it is first needed.
pub(crate) struct Lazy<'a> {
    model: &'a Model,
    task: std::cell::OnceCell<Task>,
}

impl<'a> Lazy<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self { model, task: std::cell::OnceCell::new() }
    }

    pub(crate) fn task(&self) -> anyhow::Result<&Task> {
        if self.task.get().is_none() {
            let task = self.model.settings().task.open().context("the task of the run")?;
            let _ = self.task.set(task);
        }
        self.task.get().context("the task of the run")
    }

    /// A state in its own units, as wide as the model's.
    pub(crate) fn state(&self, what: &str, named: &Named) -> anyhow::Result<Vec<f32>> {
        let width = self.model.dimensions().state();
        match *named {
            Named::Numbers(ref numbers) if numbers.len() == width => Ok(numbers.clone()),
            Named::Numbers(ref numbers) => {
                bail!("{what}: expected {width} numbers, found {}", numbers.len())
            }
            Named::Place { trajectory, step } => {
                let data = &self.task()?.data;
                if trajectory >= data.trajectories() {
                    let count = data.trajectories();
                    bail!("{what}: expected a trajectory below {count}, found {trajectory}");
                }
                let rows = data.trajectory(trajectory);
                if step >= rows.len() {
                    let count = rows.len();
                    bail!(
                        "{what}: expected a step below {count} of trajectory {trajectory}, found \
                         {step}"
                    );
                }
                Ok(self.model.unscaled(data.observations().row(rows.start + step)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_people_type_them() {
        let numbers = |text: &str| text.parse::<Named>().unwrap();
        assert_eq!(numbers("-10, 0"), Named::Numbers(vec![-10.0, 0.0]));
        assert_eq!(numbers("12:40"), Named::Place { trajectory: 12, step: 40 });
        for bad in ["", "1,", "nan", "inf,0", "1:", ":", "-1:2", "1:2:3", "--to"] {
            assert!(bad.parse::<Named>().is_err(), "{bad}");
        }
    }
}
