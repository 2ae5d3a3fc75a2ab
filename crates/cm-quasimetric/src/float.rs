//! The two element types, `f32` and `f64`, and the little arithmetic the kernels need of them.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// An element type of the kernels: `f32` or `f64`.
///
/// The trait is sealed; it exists so that every kernel is written once for both.
pub trait Float:
    sealed::Sealed
    + Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Negative infinity.
    const NEG_INFINITY: Self;
    /// The largest finite number.
    const MAX: Self;
    /// Not a number.
    const NAN: Self;
    /// A sum of squares below this has lost digits to underflow.
    const SMALLEST_SQUARE: Self;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// The same value in double precision.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// `self * factor + term` with one rounding.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The IEEE total order, for sorting.
    fn total_cmp(&self, other: &Self) -> Ordering;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! impl_float {
    ($float:ident) => {
        impl Float for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;
            const MAX: Self = $float::MAX;
            const NAN: Self = $float::NAN;
            const SMALLEST_SQUARE: Self = $float::MIN_POSITIVE / $float::EPSILON;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $float::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                $float::mul_add(self, factor, term)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $float::is_finite(self)
            }
            #[inline(always)]
            fn total_cmp(&self, other: &Self) -> Ordering {
                $float::total_cmp(self, other)
            }
        }
    };
}

impl_float!(f32);
impl_float!(f64);

/// The larger of two numbers, in the form that compiles to one vector instruction.
#[inline(always)]
pub(crate) fn maximum<E: Float>(a: E, b: E) -> E {
    if a > b { a } else { b }
}

/// `a * b + c`, fused where the instruction set has it (`FMA`): without the instruction, the fused
/// form would be a slow library call.
#[inline(always)]
pub(crate) fn multiply_add<E: Float, const FMA: bool>(a: E, b: E, c: E) -> E {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
