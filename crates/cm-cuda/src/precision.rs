//! How exactly matrix products are computed.

/// The operands of matrix products. Everything else, and every sum, is in single precision.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single precision: as exact as the CPU.
    Highest = 0,
    /// Rounded to TF32 (10 bits after the point): errors of about 5e-4 in features.
    #[default]
    Tf32 = 1,
    /// Rounded to bfloat16 (7 bits after the point): errors of about 4e-3 in features. Parameters
    /// stay in single precision.
    Bf16 = 2,
}

impl std::fmt::Display for Precision {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Highest => "highest",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        })
    }
}
