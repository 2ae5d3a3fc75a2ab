//! The heads under measurement and the buffers they work on.

use cm_quasimetric::{Head, Reduction, Rows};

use crate::{info_nce, numbers};

/// Features of every benchmark of the heads.
pub const FEATURES: usize = 512;

/// The heads that are measured: IQE has 64 groups of 8 intervals.
pub const HEADS: [(&str, Head); 3] = [
    ("mrn", Head::MRN),
    ("iqe", Head::Iqe { groups: FEATURES / 8, reduction: Reduction::MaxMean { logit: 0.0 } }),
    ("max", Head::Max),
];

/// Which rows of `x` meet which rows of `y`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Row `i` meets row `i`.
    Rowwise,
    /// Every row meets every row.
    Pairwise,
}

/// A batch of points with room for distances and gradients.
pub struct Batch {
    /// Points of each side.
    pub size: usize,
    /// `[size, FEATURES]`
    pub x: Vec<f32>,
    /// `[size, FEATURES]`
    pub y: Vec<f32>,
    form: Form,
    distances: Vec<f32>,
    /// The gradient of the distances.
    pub grad: Vec<f32>,
    grad_x: Vec<f32>,
    grad_y: Vec<f32>,
}

impl Batch {
    /// A batch of `size` random points on each side.
    pub fn new(form: Form, size: usize) -> Self {
        let distances = if form == Form::Rowwise { size } else { size * size };
        Self {
            size,
            x: numbers(1, size * FEATURES),
            y: numbers(2, size * FEATURES),
            form,
            distances: vec![0.0; distances],
            grad: numbers(3, distances),
            grad_x: vec![0.0; size * FEATURES],
            grad_y: vec![0.0; size * FEATURES],
        }
    }

    /// Computes the distances.
    pub fn forward(&mut self, head: Head) {
        let (x, y) = (rows(&self.x, self.size), rows(&self.y, self.size));
        match self.form {
            Form::Rowwise => head.rowwise(x, y, &mut self.distances),
            Form::Pairwise => head.pairwise(x, y, &mut self.distances),
        }
        .expect("the shapes fit");
    }

    /// Computes the distances and the gradients of their weighted sum.
    pub fn forward_backward(&mut self, head: Head) {
        self.forward(head);
        self.backward(head);
    }

    /// Computes the distances, symmetric InfoNCE on `-d / 8`, and its gradients.
    pub fn info_nce(&mut self, head: Head) -> f32 {
        self.forward(head);
        let loss = info_nce::symmetric(&self.distances, self.size, -0.125, &mut self.grad);
        self.backward(head);
        loss
    }

    fn backward(&mut self, head: Head) {
        self.grad_x.fill(0.0);
        self.grad_y.fill(0.0);
        let (x, y) = (rows(&self.x, self.size), rows(&self.y, self.size));
        let (grad_x, grad_y) = (&mut self.grad_x, &mut self.grad_y);
        match self.form {
            Form::Rowwise => head.rowwise_backward(x, y, &self.grad, grad_x, grad_y),
            Form::Pairwise => head.pairwise_backward(x, y, &self.grad, grad_x, grad_y),
        }
        .expect("the shapes fit");
    }
}

fn rows(data: &[f32], size: usize) -> Rows<'_, f32> {
    Rows::new(data, size, FEATURES).expect("the shapes fit")
}
