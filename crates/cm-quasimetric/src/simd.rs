//! Run-time choice of instruction set.
//!
//! Kernels are plain Rust over arrays of [`LANES`] elements, marked `#[inline(always)]`. Compiling
//! the same source inside a function with more target features lets the compiler turn each array
//! into one or two vector registers; [`dispatch`] picks the widest version this machine can run.

/// Elements processed side by side: one 512-bit register of `f32`, or two of `f64`.
pub(crate) const LANES: usize = 16;

/// Work that is compiled once per instruction set.
pub(crate) trait Kernel {
    type Output;

    /// Does the work. `FMA`: fused multiply-add is one instruction. `ROWS`: how many rows of
    /// accumulators, each [`LANES`] wide, the register file holds comfortably.
    ///
    /// Implementations must be `#[inline(always)]`, and so must what they call in their hot loops.
    fn run<const FMA: bool, const ROWS: usize>(self) -> Self::Output;
}

/// Runs the kernel with the best instruction set of this machine.
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("fma")
        {
            // SAFETY: the features that `run_avx512` is compiled for were just detected.
            return unsafe { run_avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features that `run_avx2` is compiled for were just detected.
            return unsafe { run_avx2(kernel) };
        }
        kernel.run::<false, 2>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    kernel.run::<{ cfg!(target_arch = "aarch64") }, 4>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,fma")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true, 8>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true, 4>()
}
