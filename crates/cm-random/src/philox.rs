//! The block function Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1,
//! 2, 3") and its counter layout.

use crate::{Stream, normal_pair};

/// Odd multipliers of the two halves of the counter.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What is added to the key after each round: the golden ratio and the square root of three minus
/// one, in 32 bits.
const KEY_INCREMENTS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// Four pseudo-random words for a counter under a key: a bijection of the counter for every key.
///
/// ```
/// use cm_random::philox4x32_10;
///
/// // A vector published with Random123, the authors' implementation.
/// let words = philox4x32_10([0; 4], [0; 2]);
/// assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
#[inline]
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut counter, [mut k0, mut k1]) = (counter, key);
    let mut rounds = 0;
    while rounds < ROUNDS {
        counter = round(counter, [k0, k1]);
        k0 = k0.wrapping_add(KEY_INCREMENTS[0]);
        k1 = k1.wrapping_add(KEY_INCREMENTS[1]);
        rounds += 1;
    }
    counter
}

#[inline(always)]
const fn round([c0, c1, c2, c3]: [u32; 4], [k0, k1]: [u32; 2]) -> [u32; 4] {
    let product0 = MULTIPLIERS[0] as u64 * c0 as u64;
    let product1 = MULTIPLIERS[1] as u64 * c2 as u64;
    [
        (product1 >> 32) as u32 ^ c1 ^ k0,
        product1 as u32,
        (product0 >> 32) as u32 ^ c3 ^ k1,
        product0 as u32,
    ]
}

/// The generator of one seed: every number it can give is addressed by `(step, stream, index)`.
///
/// ```
/// use cm_random::Philox;
///
/// let philox = Philox::new(1);
/// assert_eq!(philox.block(5, 2, 9), Philox::new(1).block(5, 2, 9));
/// assert_ne!(philox.block(5, 2, 9), philox.block(6, 2, 9));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Philox {
    key: [u32; 2],
}

impl Philox {
    /// The generator keyed by `seed`.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self { key: halves(seed) }
    }

    /// Block `index` of `stream` at `step`: four words (see the counter layout in the crate's
    /// documentation).
    #[inline]
    pub const fn block(&self, step: u64, stream: u32, index: u32) -> [u32; 4] {
        let [step_low, step_high] = halves(step);
        philox4x32_10([index, stream, step_low, step_high], self.key)
    }

    /// The `N` blocks from `first_index` on at once, word by word: entry `[w][n]` is word `w` of
    /// block `first_index + n`.
    ///
    /// The rounds of different blocks are independent, so the compiler turns them into vector
    /// instructions.
    ///
    /// ```
    /// let philox = cm_random::Philox::new(1);
    /// let words = philox.blocks::<8>(5, 2, 100);
    /// for n in 0..8 {
    ///     assert_eq!(words.map(|word| word[n]), philox.block(5, 2, 100 + n as u32));
    /// }
    /// ```
    #[inline(always)]
    pub fn blocks<const N: usize>(
        &self,
        step: u64,
        stream: u32,
        first_index: u32,
    ) -> [[u32; N]; 4] {
        // Each word in the lower half of 64 bits: vector units multiply those halves into 64 bits,
        // and the upper halves may hold anything in between.
        const LOWER: u64 = u32::MAX as u64;
        let [step_low, step_high] = halves(step).map(u64::from);
        let mut c0 = [0; N];
        for (n, c0) in c0.iter_mut().enumerate() {
            *c0 = u64::from(first_index.wrapping_add(n as u32));
        }
        let (mut c1, mut c2, mut c3) = ([u64::from(stream); N], [step_low; N], [step_high; N]);
        let [mut k0, mut k1] = self.key;
        for _ in 0..ROUNDS {
            for n in 0..N {
                let product0 = u64::from(MULTIPLIERS[0]) * (c0[n] & LOWER);
                let product1 = u64::from(MULTIPLIERS[1]) * (c2[n] & LOWER);
                c0[n] = (product1 >> 32) ^ c1[n] ^ u64::from(k0);
                c1[n] = product1;
                c2[n] = (product0 >> 32) ^ c3[n] ^ u64::from(k1);
                c3[n] = product0;
            }
            k0 = k0.wrapping_add(KEY_INCREMENTS[0]);
            k1 = k1.wrapping_add(KEY_INCREMENTS[1]);
        }
        let mut words = [[0; N]; 4];
        for (words, lanes) in words.iter_mut().zip([&c0, &c1, &c2, &c3]) {
            for (word, &lane) in words.iter_mut().zip(lanes) {
                *word = lane as u32;
            }
        }
        words
    }

    /// Fills `out` with standard normal numbers, four from each block of `stream` at `step` from
    /// `first_index` on: [`normal_pair`] of its first two words, then of its last two.
    ///
    /// Inlined, so that a caller compiled for wider vectors has them here as well.
    ///
    /// ```
    /// use cm_random::{Philox, normal_pair};
    ///
    /// let philox = Philox::new(1);
    /// let mut numbers = [0.0; 6];
    /// philox.normals(5, 2, 100, &mut numbers);
    /// let words = philox.block(5, 2, 101);
    /// assert_eq!((numbers[4], numbers[5]), normal_pair(words[0], words[1]));
    /// ```
    #[inline(always)]
    pub fn normals(&self, step: u64, stream: u32, first_index: u32, out: &mut [f32]) {
        /// As many as keep the loops over them in vector registers.
        const BLOCKS: usize = 16;
        let mut index = first_index;
        for out in out.chunks_mut(4 * BLOCKS) {
            let [a, b, c, d] = self.blocks::<BLOCKS>(step, stream, index);
            let [mut x, mut y, mut z, mut w] = [[0.0; BLOCKS]; 4];
            for n in 0..BLOCKS {
                (x[n], y[n]) = normal_pair(a[n], b[n]);
            }
            for n in 0..BLOCKS {
                (z[n], w[n]) = normal_pair(c[n], d[n]);
            }
            let numbers: [[f32; 4]; BLOCKS] = std::array::from_fn(|n| [x[n], y[n], z[n], w[n]]);
            out.copy_from_slice(&numbers.as_flattened()[..out.len()]);
            index = index.wrapping_add(BLOCKS as u32);
        }
    }

    /// The words of `stream` at `step` one after another, from block 0.
    #[inline]
    pub const fn stream(&self, step: u64, stream: u32) -> Stream {
        Stream::new(*self, step, stream)
    }
}

const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of `philox4x32 10` in Random123's file of known answers.
    #[test]
    fn agrees_with_the_published_vectors() {
        let vectors = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in vectors {
            assert_eq!(philox4x32_10(counter, key), expected, "counter {counter:x?} key {key:x?}");
        }
    }

    #[test]
    fn fills_with_the_normal_numbers_of_the_blocks_in_order() {
        let philox = Philox::new(3);
        for length in [0, 1, 5, 64, 67, 200] {
            let mut numbers = vec![0.0; length];
            philox.normals(9, 4, u32::MAX - 20, &mut numbers);
            for (at, number) in numbers.iter().enumerate() {
                let [a, b, c, d] = philox.block(9, 4, (u32::MAX - 20).wrapping_add(at as u32 / 4));
                let ((x, y), (z, w)) = (normal_pair(a, b), normal_pair(c, d));
                assert_eq!(*number, [x, y, z, w][at % 4], "{at} of {length}");
            }
        }
    }

    /// The third vector again through the documented layout of seed, step, stream and index.
    #[test]
    fn lays_the_counter_out_as_documented() {
        let philox = Philox::new(0x299f_31d0_a409_3822);
        let words = philox.block(0x0370_7344_1319_8a2e, 0x85a3_08d3, 0x243f_6a88);
        assert_eq!(words, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
