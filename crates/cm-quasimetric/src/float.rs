//! The two element types, `f32` and `f64`, and what the kernels need of them.

use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use std::thread::LocalKey;

use pulp::Simd;

use crate::head::Compiled;

/// An element type: `f32` or `f64`.
///
/// The trait is sealed; it exists so that every kernel is written once for both.
pub trait Float: Compiled {}

impl Float for f32 {}
impl Float for f64 {}

/// What the kernels need of an element type. Public only as a supertrait, which seals [`Float`].
#[doc(hidden)]
pub trait Kernel:
    Lanes
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
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

/// Vector registers of an element type, for whichever instruction set `S` the machine has.
///
/// Public only as a supertrait of [`Kernel`].
#[doc(hidden)]
pub trait Lanes: Sized {
    /// A register of elements.
    type Vector<S: Simd>: Copy;
    /// One truth value per element of a register.
    type Mask<S: Simd>: Copy;

    /// Elements of a register.
    fn lanes<S: Simd>() -> usize;
    /// The slice as whole registers, and what is left over.
    fn as_vectors<S: Simd>(slice: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    /// The slice as whole registers, and what is left over.
    fn as_vectors_mut<S: Simd>(slice: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);
    /// Loads at most a register, filling up with zeros.
    fn load<S: Simd>(simd: S, slice: &[Self]) -> Self::Vector<S>;
    /// Stores as much of a register as the slice holds.
    fn store<S: Simd>(simd: S, slice: &mut [Self], vector: Self::Vector<S>);
    /// The value in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `a + b`
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a - b`
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a / b`
    fn over<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a * b`
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a * b + c`, with one rounding where the instruction set has it.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// The larger of each pair.
    fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a > b`
    fn exceeds<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// `a == b`
    fn equals<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Mask<S>;
    /// `mask ? a : b`
    fn select<S: Simd>(
        simd: S,
        mask: Self::Mask<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// The square root of each element.
    fn root<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of a register's elements.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// The largest of a register's elements.
    fn largest<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// An index as a positive normal number, different for each index below 2^30, so that
    /// indices travel through the same registers as values. Zero is no index.
    fn from_index(index: usize) -> Self;
    /// The index that [`from_index`](Self::from_index) was given.
    fn to_index(self) -> usize;
    /// Scratch memory of this thread that is free to be used again.
    fn spare() -> &'static LocalKey<RefCell<Vec<Vec<Self>>>>;
}

macro_rules! impl_float {
    ($float:ident, $bits:ident, $vector:ident, $mask:ident, $lanes:ident, [$($op:ident = $simd_op:ident -> $out:ident),*],
     $as_vectors:ident, $as_vectors_mut:ident, $load:ident, $store:ident, $splat:ident, $mul_add:ident, $select:ident, $root:ident, $sum:ident, $largest:ident) => {
        impl Kernel for $float {
            const ZERO: Self = 0.0;
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
            fn is_finite(self) -> bool {
                $float::is_finite(self)
            }
        }

        impl Lanes for $float {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn as_vectors<S: Simd>(slice: &[Self]) -> (&[Self::Vector<S>], &[Self]) {
                S::$as_vectors(slice)
            }
            #[inline(always)]
            fn as_vectors_mut<S: Simd>(
                slice: &mut [Self],
            ) -> (&mut [Self::Vector<S>], &mut [Self]) {
                S::$as_vectors_mut(slice)
            }
            #[inline(always)]
            fn load<S: Simd>(simd: S, slice: &[Self]) -> Self::Vector<S> {
                // Whole registers, which most are, without the call that a part of one takes.
                match S::$as_vectors(slice).0.first() {
                    Some(&vector) => vector,
                    None => simd.$load(slice),
                }
            }
            #[inline(always)]
            fn store<S: Simd>(simd: S, slice: &mut [Self], vector: Self::Vector<S>) {
                match S::$as_vectors_mut(slice) {
                    ([first, ..], _) => *first = vector,
                    ([], rest) => simd.$store(rest, vector),
                }
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S> {
                simd.$splat(value)
            }
            $(
                #[inline(always)]
                fn $op<S: Simd>(
                    simd: S,
                    a: Self::Vector<S>,
                    b: Self::Vector<S>,
                ) -> Self::$out<S> {
                    simd.$simd_op(a, b)
                }
            )*
            #[inline(always)]
            fn mul_add<S: Simd>(
                simd: S,
                a: Self::Vector<S>,
                b: Self::Vector<S>,
                c: Self::Vector<S>,
            ) -> Self::Vector<S> {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn select<S: Simd>(
                simd: S,
                mask: Self::Mask<S>,
                a: Self::Vector<S>,
                b: Self::Vector<S>,
            ) -> Self::Vector<S> {
                simd.$select(mask, a, b)
            }
            #[inline(always)]
            fn root<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S> {
                simd.$root(a)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn largest<S: Simd>(simd: S, a: Self::Vector<S>) -> Self {
                simd.$largest(a)
            }
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                Self::from_bits((1.0 as $float).to_bits() + index as $bits)
            }
            #[inline(always)]
            fn to_index(self) -> usize {
                (self.to_bits() - (1.0 as $float).to_bits()) as usize
            }
            fn spare() -> &'static LocalKey<RefCell<Vec<Vec<Self>>>> {
                thread_local! {
                    static SPARE: RefCell<Vec<Vec<$float>>> = const { RefCell::new(Vec::new()) };
                }
                &SPARE
            }
        }
    };
}

impl_float!(
    f32, u32, f32s, m32s, F32_LANES,
    [
        plus = add_f32s -> Vector,
        minus = sub_f32s -> Vector,
        times = mul_f32s -> Vector,
        over = div_f32s -> Vector,
        larger = max_f32s -> Vector,
        exceeds = greater_than_f32s -> Mask,
        equals = equal_f32s -> Mask
    ],
    as_simd_f32s, as_mut_simd_f32s, partial_load_f32s, partial_store_f32s, splat_f32s, mul_add_e_f32s,
    select_f32s, sqrt_f32s, reduce_sum_f32s, reduce_max_f32s
);
impl_float!(
    f64, u64, f64s, m64s, F64_LANES,
    [
        plus = add_f64s -> Vector,
        minus = sub_f64s -> Vector,
        times = mul_f64s -> Vector,
        over = div_f64s -> Vector,
        larger = max_f64s -> Vector,
        exceeds = greater_than_f64s -> Mask,
        equals = equal_f64s -> Mask
    ],
    as_simd_f64s, as_mut_simd_f64s, partial_load_f64s, partial_store_f64s, splat_f64s, mul_add_e_f64s,
    select_f64s, sqrt_f64s, reduce_sum_f64s, reduce_max_f64s
);
