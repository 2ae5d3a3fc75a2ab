//! Matrices in double precision, for reference values.

use cm_random::{Philox, normal_pair};

use crate::{Backend, Result, Shape, Var};

/// A matrix in double precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// Rows and columns.
    pub shape: Shape,
    /// The values, row by row.
    pub values: Vec<f64>,
}

impl Exact {
    /// `f(row, column)` everywhere.
    pub fn from_fn([rows, columns]: Shape, f: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        Self { shape: [rows, columns], values: values.map(|(i, j)| f(i, j)).collect() }
    }

    /// Standard normal numbers that are exact in single precision; other numbers for each `stream`.
    pub fn normal(shape: Shape, stream: u32) -> Self {
        Self::from_fn(shape, |i, j| {
            let words = Philox::new(17).block(0, stream, (i * shape[1] + j) as u32);
            f64::from(normal_pair(words[0], words[1]).0)
        })
    }

    /// `f` of every value, rounded to single precision.
    pub fn map_f32(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            shape: self.shape,
            values: self.values.iter().map(|&x| f64::from(f(x) as f32)).collect(),
        }
    }

    /// `f` of every value.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { shape: self.shape, values: self.values.iter().map(|&x| f(x)).collect() }
    }

    /// The value at row `i`, column `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.shape[1] + j]
    }

    /// A row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.shape[1]..(i + 1) * self.shape[1]]
    }

    /// Root of the mean square.
    pub fn rms(&self) -> f64 {
        let squares = self.values.iter().map(|x| x * x).sum::<f64>();
        (squares / self.values.len() as f64).sqrt()
    }

    /// The sum of the products of corresponding values.
    pub fn dot(&self, other: &Self) -> f64 {
        assert_eq!(self.shape, other.shape);
        self.values.iter().zip(&other.values).map(|(x, y)| x * y).sum()
    }

    /// The same values on a backend, in single precision.
    pub fn var<B: Backend>(&self, backend: &B) -> Result<Var<B>> {
        Var::new(backend, self.shape, self.to_f32())
    }

    /// The values in single precision.
    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&x| x as f32).collect()
    }

    /// What a backend computed.
    pub fn read<B: Backend>(var: &Var<B>) -> Result<Self> {
        let values = var.to_vec()?.into_iter().map(f64::from).collect();
        Ok(Self { shape: var.shape(), values })
    }

    /// Fails if any value differs from `expected` by more than `tolerance` times its size plus the
    /// typical size.
    pub fn assert_close(&self, expected: &Self, tolerance: f64, what: &str) {
        assert_eq!(self.shape, expected.shape, "{what}: shape");
        let typical = expected.rms();
        for (index, (found, expected)) in self.values.iter().zip(&expected.values).enumerate() {
            let error = (found - expected).abs();
            assert!(
                error <= tolerance * (expected.abs() + typical),
                "{what}: element {index} is {found}, expected {expected}"
            );
        }
    }
}
