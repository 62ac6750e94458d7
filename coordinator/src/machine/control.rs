//! What an operator asks of a batch that runs, as the core decides it.

use super::{Effect, LaneIndex, LaneState, Machine, Making};
use std::fmt;

/// What an operator asks of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlEvent {
    /// Make no pass.
    Pause,
    /// Make passes again.
    Resume,
    /// End when the running steps have ended.
    Drain,
    /// End the running steps, then the batch.
    Stop,
    /// End the step of a lane.
    Cancel(LaneIndex),
    /// Something may be ready that was not.
    Look,
    /// Add lanes.
    AddLanes(usize),
    /// Give a lane no more work.
    RemoveLane(LaneIndex),
}

/// What is answered to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No pass is made from here on.
    Paused,
    /// It is paused already.
    PausedBefore,
    /// Passes are made again.
    Resumed,
    /// It is not paused.
    NotPaused,
    /// The running steps finish, then the batch.
    Draining,
    /// The running steps end now.
    Stopping,
    /// The step of the lane ends now.
    Cancelling,
    /// The next pass is on its way.
    Looking,
    /// The lanes are being made.
    Growing,
    /// The lane ends with its step, or has ended.
    Leaving,
    /// The batch ends, and takes no more work.
    Ending,
    /// The lane has no step.
    NoStep,
    /// The worktrees are a person's, or each lane has so many dispatches.
    CannotGrow,
    /// The lane has ended.
    LaneOver,
    /// A batch without a lane does nothing.
    LastLane,
}

impl Verdict {
    /// Returns whether what was asked is done.
    pub(crate) const fn is_done(self) -> bool {
        match self {
            Self::Paused
            | Self::PausedBefore
            | Self::Resumed
            | Self::Draining
            | Self::Stopping
            | Self::Cancelling
            | Self::Looking
            | Self::Growing
            | Self::Leaving => true,
            Self::NotPaused
            | Self::Ending
            | Self::NoStep
            | Self::CannotGrow
            | Self::LaneOver
            | Self::LastLane => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paused => "paused: running attempts continue, no new one starts",
            Self::PausedBefore => "already paused",
            Self::Resumed => "resumed",
            Self::NotPaused => "the batch is not paused",
            Self::Draining => "draining: running attempts finish, then the batch ends",
            Self::Stopping => "stopping: running attempts end now, then the batch ends",
            Self::Cancelling => "the attempt ends now",
            Self::Looking => "open for its next attempt",
            Self::Growing => "the lanes are being created",
            Self::Leaving => "the lane ends after its running attempt",
            Self::Ending => "the batch is ending and starts no new attempts",
            Self::NoStep => "no attempt is running",
            Self::CannotGrow => {
                "this batch cannot create lanes: its worktrees are named, or its lanes have a \
                 number of rounds"
            }
            Self::LaneOver => "the lane has ended already",
            Self::LastLane => "it is the last lane; drain the batch instead",
        })
    }
}

impl Machine {
    /// Takes in what an operator asks; says what is to be done, and what is
    /// answered.
    pub(super) fn control<C>(&mut self, asked: ControlEvent, effects: &mut Vec<Effect<C>>) {
        let verdict = self.judge(asked, effects);
        effects.push(Effect::Answer(verdict));
    }

    fn judge<C>(&mut self, asked: ControlEvent, effects: &mut Vec<Effect<C>>) -> Verdict {
        match asked {
            ControlEvent::Drain => {
                self.draining = true;
                effects.push(Effect::Drain);
                Verdict::Draining
            }
            ControlEvent::Stop => {
                self.draining = true;
                effects.push(Effect::Kill);
                Verdict::Stopping
            }
            ControlEvent::Cancel(lane) => self.cancel(lane, effects),
            ControlEvent::RemoveLane(lane) => self.remove_lane(lane),
            _ if self.draining || self.finished => Verdict::Ending,
            ControlEvent::Pause => self.pause(effects),
            ControlEvent::Resume if !self.is_paused => Verdict::NotPaused,
            ControlEvent::Resume => {
                self.is_paused = false;
                self.stale = true;
                Verdict::Resumed
            }
            ControlEvent::Look => {
                self.stale = true;
                Verdict::Looking
            }
            ControlEvent::AddLanes(_) if !self.crew.can_grow => Verdict::CannotGrow,
            ControlEvent::AddLanes(count) => {
                self.crew.lanes += count;
                self.wanted += count;
                Verdict::Growing
            }
        }
    }

    fn pause<C>(&mut self, effects: &mut Vec<Effect<C>>) -> Verdict {
        if self.is_paused {
            return Verdict::PausedBefore;
        }
        self.is_paused = true;
        self.unpass(effects);
        Verdict::Paused
    }

    fn cancel<C>(&self, lane: LaneIndex, effects: &mut Vec<Effect<C>>) -> Verdict {
        let is_busy = |lane: &super::Lane| lane.state == LaneState::Busy;
        if !self.lanes.get(lane).is_some_and(is_busy) {
            return Verdict::NoStep;
        }
        effects.push(Effect::Cancel(lane));
        Verdict::Cancelling
    }

    fn remove_lane(&mut self, lane: LaneIndex) -> Verdict {
        let stays = |lane: &&super::Lane| lane.state != LaneState::Retired && !lane.leaves;
        let staying = self.lanes.iter().filter(stays).count();
        let Some(removed) = self.lanes.get_mut(lane) else {
            return Verdict::LaneOver;
        };
        if removed.state == LaneState::Retired {
            return Verdict::LaneOver;
        }
        if removed.leaves {
            return Verdict::Leaving;
        }
        if staying + self.wanted <= 1 {
            return Verdict::LastLane;
        }
        removed.leaves = true;
        self.crew.lanes = self.crew.lanes.saturating_sub(1).max(1);
        Verdict::Leaving
    }

    /// Has the next lane made that an operator adds.
    pub(super) fn make_lane<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        if self.wanted > 0 && self.making.is_none() {
            self.making = Some(Making::Lane);
            effects.push(Effect::MakeLane);
        }
    }
}
