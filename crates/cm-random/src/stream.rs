//! A stream read as a sequence of words, usable wherever `rand` wants a generator.

use std::convert::Infallible;

use rand_core::TryRng;

use crate::Philox;

/// The words of one `(seed, step, stream)` in order; made by [`Philox::stream`].
///
/// ```
/// use cm_random::Philox;
/// use rand_core::Rng;
///
/// let philox = Philox::new(3);
/// let mut stream = philox.stream(10, 1);
/// assert_eq!(stream.next_u32(), philox.block(10, 1, 0)[0]);
///
/// stream.seek(6); // word 6 is the third of block 1
/// assert_eq!(stream.next_u32(), philox.block(10, 1, 1)[2]);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    philox: Philox,
    step: u64,
    stream: u32,
    /// The next word's number.
    word: u64,
    /// The block `word / 4`, valid unless `word` is the first of its block.
    block: [u32; 4],
}

impl Stream {
    pub(crate) const fn new(philox: Philox, step: u64, stream: u32) -> Self {
        Self { philox, step, stream, word: 0, block: [0; 4] }
    }

    /// Makes `word` (counted from the start of the stream, modulo 2^34) the next one read.
    pub fn seek(&mut self, word: u64) {
        self.word = word;
        self.block = self.philox.block(self.step, self.stream, (word / 4) as u32);
    }

    #[inline]
    fn next_word(&mut self) -> u32 {
        let place = (self.word % 4) as usize;
        if place == 0 {
            self.block = self.philox.block(self.step, self.stream, (self.word / 4) as u32);
        }
        self.word = self.word.wrapping_add(1);
        self.block[place]
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_word())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = self.next_word();
        let high = self.next_word();
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            let word = self.next_word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    #[test]
    fn reads_the_blocks_in_order_whatever_the_width() {
        let philox = Philox::new(99);
        let words: [u32; 12] = std::array::from_fn(|n| philox.block(4, 5, n as u32 / 4)[n % 4]);

        let mut stream = philox.stream(4, 5);
        assert_eq!(std::array::from_fn(|_| stream.next_u32()), words);

        let mut stream = philox.stream(4, 5);
        let pairs: [u64; 6] = std::array::from_fn(|_| stream.next_u64());
        for (pair, value) in words.chunks(2).zip(pairs) {
            assert_eq!(value, u64::from(pair[0]) + (u64::from(pair[1]) << 32));
        }

        let mut bytes = [0; 45];
        philox.stream(4, 5).fill_bytes(&mut bytes);
        for (at, byte) in bytes.iter().enumerate() {
            assert_eq!(*byte, words[at / 4].to_le_bytes()[at % 4]);
        }
    }

    #[test]
    fn starts_over_after_the_last_block() {
        let mut stream = Philox::new(7).stream(1, 2);
        let first = stream.clone().next_u32();
        stream.seek((1 << 34) - 1);
        stream.next_u32();
        assert_eq!(stream.next_u32(), first);
    }
}
