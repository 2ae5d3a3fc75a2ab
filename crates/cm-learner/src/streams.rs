//! Which stream of random numbers each use draws from; one place, so that no two uses of one step
//! share numbers.
//!
//! ```
//! assert!((0x100..0x1ff).contains(&cm_learner::streams::POLICY_SAMPLE));
//! ```

/// The policy's action in the distance term.
pub const POLICY_SAMPLE: u32 = 0x100;
/// The policy's action in the behaviour-cloning term.
pub const CLONING_SAMPLE: u32 = 0x101;
/// C-Mixup's mixing weights.
pub const MIXUP_WEIGHT: u32 = 0x102;
/// C-Mixup's partners.
pub const MIXUP_PARTNER: u32 = 0x103;
/// Which rows of the policy's goals come from another row, or their permutation.
pub const POLICY_GOALS: u32 = 0x104;
/// The permutation of goal actions in CMD.
pub const GOAL_ACTIONS: u32 = 0x105;
/// First of the streams kept for learners of other crates.
pub const OTHERS: u32 = 0x140;
