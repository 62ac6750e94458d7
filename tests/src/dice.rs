//! Reproducible chance.

/// A small generator of chance with a seed that a failure can name.
#[derive(Clone, Debug)]
pub struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    /// Takes the seed from `PREMATH_TESTS_SEED`, else from the clock.
    pub fn from_environment() -> Self {
        let given = std::env::var("PREMATH_TESTS_SEED").ok();
        Self::new(match given {
            Some(text) => text.parse().expect("PREMATH_TESTS_SEED is a number"),
            None => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(1, |since| since.as_micros() as u64),
        })
    }

    /// Makes a generator.
    pub const fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// Returns the seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns a number below `bound` (SplitMix64).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}
