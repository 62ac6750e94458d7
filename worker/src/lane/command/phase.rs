//! Which command of a lane runs, and what follows from that.

use crate::interrupt::Level;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::landing::{LAND_ROUNDS, LANDED_ROUNDS, VERIFY_ROUNDS, WORK_ROUNDS};
use premath_kernel::policy::network::NetworkPhase;

/// Which command of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Boot,
    Startup,
    /// The work, in one of its rounds.
    Work(usize),
    /// The verification of work that has not passed yet, in one of its rounds.
    Verify(usize),
    /// The verification of work that passed on another state of the target, in
    /// one of its rounds.
    Land(usize),
    /// The check of what landed, in one of its rounds.
    Landed(usize),
    /// The push of the landing target.
    Push,
    Setup,
    /// The setup of the checkout for verifications.
    VerifySetup,
    /// The verification of the operator's base, for the build state it leaves.
    Warm,
    /// The verification of the last commit, without any build state.
    Tip,
    Stop,
}

impl Phase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Startup => "startup",
            Self::Work(round) => at_most(&WORK_ROUNDS, round),
            Self::Verify(round) => at_most(&VERIFY_ROUNDS, round),
            Self::Land(round) => at_most(&LAND_ROUNDS, round),
            Self::Landed(round) => at_most(&LANDED_ROUNDS, round),
            Self::Push => "push",
            Self::Setup => "setup",
            Self::VerifySetup => "verify-setup",
            Self::Warm => "warm",
            Self::Tip => "tip",
            Self::Stop => "stop",
        }
    }

    /// Returns the subject of a message about the command's limits.
    pub(super) const fn subject(self) -> &'static str {
        match self {
            Self::Boot => "the boot command",
            Self::Work(_) => "the work command",
            Self::Startup
            | Self::Verify(_)
            | Self::Land(_)
            | Self::Landed(_)
            | Self::Warm
            | Self::Tip => "the verification",
            Self::Push => "the push",
            Self::Setup => "the setup",
            Self::VerifySetup => "the setup of the verification",
            Self::Stop => "the stop command",
        }
    }

    /// Returns whether the command is the work.
    pub(crate) const fn is_work(self) -> bool {
        matches!(self, Self::Work(_))
    }

    /// Returns whether the command runs in the checkout for verifications.
    pub(crate) const fn is_verification(self) -> bool {
        matches!(
            self,
            Self::Startup
                | Self::Verify(_)
                | Self::Land(_)
                | Self::Landed(_)
                | Self::VerifySetup
                | Self::Warm
                | Self::Tip
        )
    }

    /// Returns whose network policy the command has.
    pub(crate) const fn network(self) -> NetworkPhase {
        if self.is_verification() {
            NetworkPhase::Verify
        } else {
            NetworkPhase::Work
        }
    }

    /// How far an interrupt must go to end the command: before the first step
    /// there is nothing to finish.
    pub(super) const fn cut_at(self) -> Level {
        match self {
            Self::Boot | Self::Startup | Self::Warm => Level::Drain,
            Self::Work(_)
            | Self::Verify(_)
            | Self::Land(_)
            | Self::Landed(_)
            | Self::Push
            | Self::Setup
            | Self::VerifySetup
            | Self::Tip
            | Self::Stop => Level::Kill,
        }
    }

    /// The class of a failure that has no better one.
    pub(super) const fn class(self) -> FailureClass {
        match self {
            Self::Boot | Self::Setup | Self::VerifySetup | Self::Stop => FailureClass::HookFailed,
            Self::Startup => FailureClass::StartupCheckFailed,
            Self::Work(_) => FailureClass::WorkFailed,
            Self::Verify(_) | Self::Warm => FailureClass::CheckFailed,
            Self::Land(_) | Self::Landed(_) | Self::Tip => FailureClass::LandingCheckFailed,
            Self::Push => FailureClass::LandingPushFailed,
        }
    }
}

/// Returns the name of a round, or of the last one.
const fn at_most(rounds: &[&'static str], round: usize) -> &'static str {
    rounds[if round < rounds.len() {
        round
    } else {
        rounds.len() - 1
    }]
}
