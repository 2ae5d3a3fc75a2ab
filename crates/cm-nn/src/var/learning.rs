//! Distances, contrastive losses and policy densities.

use cm_quasimetric::{Head, Reduction};

use crate::check::require;
use crate::{Backend, Direction, Error, Pairing, Result, Var};

impl<B: Backend> Var<B> {
    /// Quasimetric distance from row `i` of `self` to row `i` of `other`, `[n, 1]`.
    ///
    /// `logit [1, 1]` is the learned weight of a max-mean reduction, if the head has one.
    pub fn distance_rows(&self, other: &Self, head: Head, logit: Option<&Self>) -> Result<Self> {
        if self.shape() != other.shape() {
            let expected = "two matrices of one shape";
            return Err(Error::shape("distance_rows", expected, &[self.shape(), other.shape()]));
        }
        self.distance(other, head, Pairing::Rows, logit)
    }

    /// Quasimetric distance from every row of `self` to every row of `other`, `[n, m]`.
    ///
    /// `logit [1, 1]` is the learned weight of a max-mean reduction, if the head has one.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Direction, Var};
    /// use cm_quasimetric::Head;
    ///
    /// let backend = DfdxBackend::new(0);
    /// let x = Var::new(&backend, [2, 2], vec![0.0, 0.0, 3.0, 0.0])?;
    /// let distances = x.distance_pairs(&x, Head::Max, None)?;
    /// assert_eq!(distances.to_vec()?, [0.0, 0.0, 3.0, 0.0]);
    /// // The contrastive loss of minus the distances: each row should pick its own column.
    /// let loss = distances.neg()?.info_nce(Direction::Rows)?.item()?;
    /// assert!((loss - (2.0_f32.ln() + (1.0 + (-3.0_f32).exp()).ln()) / 2.0).abs() < 1e-6);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn distance_pairs(&self, other: &Self, head: Head, logit: Option<&Self>) -> Result<Self> {
        if self.columns() != other.columns() {
            let expected = "equal numbers of columns";
            return Err(Error::shape("distance_pairs", expected, &[self.shape(), other.shape()]));
        }
        self.distance(other, head, Pairing::All, logit)
    }

    /// Mean cross entropy of square logits against their diagonal, `[1, 1]`.
    pub fn info_nce(&self, direction: Direction) -> Result<Self> {
        self.check_square("info_nce")?;
        Ok(self.with(self.backend.info_nce(&self.tensor, direction)?))
    }

    /// With `self` the mean: log-density of `action` under `tanh(normal(self, scale))`, summed over
    /// columns, `[n, 1]`.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let full = |value| Var::full(&backend, [1, 1], value);
    /// let density = full(0.0)?.tanh_normal_log_density(&full(1.0)?, &full(0.0)?)?.item()?;
    /// assert!((density - -0.918_938_5).abs() < 1e-6); // -ln(2 pi) / 2
    /// // An action on the bound has the finite density of the whole tail.
    /// assert!(full(0.0)?.tanh_normal_log_density(&full(1.0)?, &full(1.0)?)?.item()?.is_finite());
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn tanh_normal_log_density(&self, scale: &Self, action: &Self) -> Result<Self> {
        let shapes = [self.shape(), scale.shape(), action.shape()];
        if shapes[1] != shapes[0] || shapes[2] != shapes[0] {
            let expected = "mean, scale and action of one shape";
            return Err(Error::shape("tanh_normal_log_density", expected, &shapes));
        }
        let (mean, scale, action) = (&self.tensor, &scale.tensor, &action.tensor);
        Ok(self.with(self.backend.tanh_normal_log_density(mean, scale, action)?))
    }

    fn distance(
        &self,
        other: &Self,
        head: Head,
        pairing: Pairing,
        logit: Option<&Self>,
    ) -> Result<Self> {
        let learnable = matches!(head, Head::Iqe { reduction: Reduction::MaxMean { .. }, .. });
        if let Some(logit) = logit {
            if logit.shape() != [1, 1] {
                return Err(Error::shape("quasimetric logit", "[1, 1]", &[logit.shape()]));
            }
            require(learnable, "logit", "given only for a max-mean reduction", head)?;
        }
        let logit = logit.map(|logit| &logit.tensor);
        Ok(self.with(self.backend.quasimetric(
            head,
            pairing,
            &self.tensor,
            &other.tensor,
            logit,
        )?))
    }
}
