//! Contrastive losses of a square matrix of logits `f_ij = f(s_i, a_i, g_j)`, whose diagonal are
//! the pairs that belong together.

use cm_nn::check::{Within, not_negative, positive};
use cm_nn::{Backend, Direction, Over, Var};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Which contrastive loss, and what logits are divided by before it. The default is
/// [`ContrastiveSettings::authors_code`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContrastiveSettings {
    /// The loss.
    pub loss: ContrastiveLoss,
    /// Positive. At the optimum, logits over this divisor are log ratios of probabilities.
    pub divisor: f32,
}

/// Contrastive losses; all are means, where the paper writes sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ContrastiveLoss {
    /// Mean of the forward and the backward loss (Eq. 8, `eq:contrastive_loss`).
    #[default]
    Symmetric,
    /// Each `(s_i, a_i)` picks its goal: `mean_i (logsumexp_j f_ij - f_ii)`.
    Forward,
    /// Each goal picks its `(s_j, a_j)`: `mean_i (logsumexp_j f_ji - f_ii)`.
    Backward,
    /// The forward loss plus `penalty * mean_i (logsumexp_j f_ij)^2`, which ties down the constant
    /// that the forward loss leaves free.
    Cpc {
        /// Weight of the penalty; not negative.
        penalty: f32,
    },
    /// Every pair is classified alone: `mean_ij (softplus(f_ij) - [i = j] f_ij)`.
    BinaryNce,
}

impl ContrastiveLoss {
    /// CPC with the authors' weight of the penalty.
    pub const CPC: Self = Self::Cpc { penalty: 0.01 };
}

impl Default for ContrastiveSettings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl ContrastiveSettings {
    /// Symmetric InfoNCE of the logits themselves.
    pub fn paper_text() -> Self {
        Self { loss: ContrastiveLoss::Symmetric, divisor: 1.0 }
    }

    /// Symmetric InfoNCE of logits divided by the square root of 64, the number of features.
    pub fn authors_code() -> Self {
        Self { divisor: 8.0, ..Self::paper_text() }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        positive("divisor", self.divisor)?;
        match self.loss {
            ContrastiveLoss::Cpc { penalty } => not_negative("penalty", penalty).within("loss.cpc"),
            _ => Ok(()),
        }
    }

    /// The loss of square logits `[n, n]`, `[1, 1]`.
    ///
    /// ```
    /// use cm_contrastive::ContrastiveSettings;
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// // Logits that say nothing: every choice among four costs ln 4.
    /// let logits = Var::full(&DfdxBackend::new(0), [4, 4], 3.0)?;
    /// let loss = ContrastiveSettings::paper_text().of(&logits)?;
    /// assert!((loss.item()? - 4.0_f32.ln()).abs() < 1e-6);
    /// # Ok::<(), cm_contrastive::Error>(())
    /// ```
    pub fn of<B: Backend>(&self, logits: &Var<B>) -> Result<Var<B>> {
        let logits = match self.divisor {
            1.0 => logits.clone(),
            divisor => logits.scale(1.0 / divisor)?,
        };
        match self.loss {
            ContrastiveLoss::Symmetric => logits.info_nce(Direction::Symmetric),
            ContrastiveLoss::Forward => logits.info_nce(Direction::Rows),
            ContrastiveLoss::Backward => logits.info_nce(Direction::Columns),
            ContrastiveLoss::Cpc { penalty } => {
                let normaliser = logits.log_sum_exp(Over::Columns)?;
                let penalty = normaliser.square()?.mean(Over::All)?.scale(penalty)?;
                logits.info_nce(Direction::Rows)?.add(&penalty)
            }
            ContrastiveLoss::BinaryNce => {
                let together = logits.diagonal()?.mean(Over::All)?;
                let together = together.scale(1.0 / logits.rows() as f32)?;
                logits.softplus()?.mean(Over::All)?.sub(&together)
            }
        }
    }
}
