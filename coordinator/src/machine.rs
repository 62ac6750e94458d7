//! The coordinator's core: a value that turns events into effects
//! (HARNESS-RUNTIME 7).
//!
//! It knows no thread, no file and no clock. The shell performs the effects and
//! reports their outcomes.

mod control;

pub(crate) use control::{ControlEvent, Verdict};

use jiff::Timestamp;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::exit;
use premath_kernel::policy::until::Until;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A lane's place in sorted worktree order, from 0.
pub(crate) type LaneIndex = usize;

/// What happened in the world. `C` is a claim, which the core passes on.
#[derive(Debug)]
pub(crate) enum MachineEvent<C> {
    /// A lane is ready for its first step.
    Booted(LaneIndex),
    /// A lane cannot be used; nothing was dispatched to it.
    BootFailed {
        /// The lane.
        lane: LaneIndex,
        /// The class of the failed boot.
        class: FailureClass,
    },
    /// A pass was made.
    Passed(Pass<C>),
    /// The work of a lane's step is done: it waits for the landing queue.
    WorkDone(LaneIndex),
    /// The agent of a lane's step is to mend work that failed in the landing
    /// queue.
    MendDue(LaneIndex),
    /// The making of a spare worktree ended.
    Spare(SpareNews),
    /// Nothing happened for a while.
    Looked,
    /// A lane's step is over.
    StepEnded {
        /// The lane.
        lane: LaneIndex,
        /// Whether the issue ended well.
        succeeded: bool,
        /// Whether its provider refused: the step does not count.
        refused: bool,
        /// Whether the lane cannot continue.
        lane_lost: bool,
        /// Whether issue memory or trajectory cannot be used any more.
        store_lost: bool,
    },
    /// A lane found out whether the verification passes without any work.
    Answered {
        /// The lane.
        lane: LaneIndex,
        /// Whether the lane cannot continue.
        lane_lost: bool,
    },
    /// A lane's thread panicked, with the claim it was working on.
    Panicked {
        /// The lane.
        lane: LaneIndex,
        /// What it was working on.
        claim: Option<C>,
    },
    /// The time came that an effect asked for, or the issue store changed.
    Woke,
    /// The window in which attempts begin opened, or closed.
    Window {
        /// Whether it is open.
        is_open: bool,
    },
    /// A person, or a bound of the batch, asked for an end: no new work from
    /// here on.
    Interrupted,
    /// An operator asks something of the batch.
    Control(ControlEvent),
    /// Issue memory or trajectory cannot be used any more.
    StoreLost,
}

/// The end of an attempt to make a spare worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpareNews {
    /// It is there, and its lane boots.
    Made,
    /// It cannot be made.
    Refused,
    /// There is nothing to do in it now.
    NotNeeded,
}

/// The findings of a pass.
#[derive(Debug)]
pub(crate) struct Pass<C> {
    /// A claim for each lane that got one.
    pub claims: BTreeMap<LaneIndex, C>,
    /// Lanes that there is work for, and that must wait for it.
    pub held: BTreeSet<LaneIndex>,
    /// The lane that is to find out whether the verification passes without
    /// any work.
    pub asks: Option<LaneIndex>,
    /// When the next issue that waits for its retry may be claimed, or a lane
    /// that is held may continue; `None` where that hangs on a step that runs.
    pub look_at: Option<Timestamp>,
}

/// What is to be done in the world.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect<C> {
    /// Make a pass for the lanes of `Machine::idle`.
    Pass,
    /// Hand a claim to a lane.
    Dispatch {
        /// The lane.
        lane: LaneIndex,
        /// The claim.
        claim: C,
    },
    /// Let the agent of a lane's step mend its work.
    Mend(LaneIndex),
    /// Let a lane find out whether the verification passes without any work.
    Ask(LaneIndex),
    /// Release a claim that its lane cannot release.
    Release(C),
    /// Record the attempt of a lane that panicked, and release its claim.
    EndPanicked(C),
    /// Signal a lane that there is no more work.
    Retire(LaneIndex),
    /// Make a spare worktree, if there is something to do in it.
    MakeSpare,
    /// Send [`MachineEvent::Woke`] at a time.
    WakeAt(Timestamp),
    /// The pass that was asked for is not to be made.
    Unpass,
    /// Wait for news of the issue store: nothing runs, and nothing is ready.
    AwaitIssues,
    /// End the attempt of a lane now.
    Cancel(LaneIndex),
    /// Make a worktree for a lane that an operator adds.
    MakeLane,
    /// There are so many lanes now.
    Lanes(usize),
    /// Have running attempts finish, as the first signal does.
    Drain,
    /// End running attempts, as a further signal does.
    Kill,
    /// What is answered to the operator.
    Answer(Verdict),
    /// Nothing is left to do.
    Finish,
}

/// How long a lane continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Dispatches a lane may get; `None` until nothing is left.
    pub rounds: Option<u64>,
    /// Steps a dispatch may have.
    pub steps_per_dispatch: u64,
    /// Whether the first failure ends the batch.
    pub stop_on_failure: bool,
    /// When the batch ends where nothing is left to do.
    pub until: Until,
}

/// The lanes of a batch, and the worktrees that they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crew {
    /// How many worktrees there are.
    pub(crate) worktrees: usize,
    /// How many issues are worked on at once.
    pub(crate) lanes: usize,
    /// How many spare worktrees may be made.
    pub(crate) spare: usize,
    /// How many more with each lane that an operator adds.
    pub(crate) spare_per_lane: usize,
    /// How long work waits for the landing before one is made.
    pub(crate) patience: Duration,
    /// Whether worktrees can be made for more lanes.
    pub(crate) can_grow: bool,
}

impl Crew {
    /// Lets there be spare worktrees for the lanes that there are now.
    const fn fit_spare(&mut self, lanes_before: usize) {
        let more = self.lanes.saturating_sub(lanes_before) * self.spare_per_lane;
        let fewer = lanes_before.saturating_sub(self.lanes) * self.spare_per_lane;
        self.spare = (self.spare + more).saturating_sub(fewer);
    }
}

/// What a worktree is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    /// The next step of a lane whose work waits for its landing.
    Spare,
    /// A lane that an operator adds.
    Lane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    Booting,
    Idle,
    Busy,
    /// It finished or was disabled, and gets no more work.
    Retired,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    state: LaneState,
    dispatches: u64,
    steps_left: u64,
    /// Since when the work of its step is done.
    done_since: Option<Timestamp>,
    /// Whether an operator removed it: it gets no more work.
    leaves: bool,
}

impl Lane {
    const BOOTING: Self = Self {
        state: LaneState::Booting,
        dispatches: 0,
        steps_left: 0,
        done_since: None,
        leaves: false,
    };

    /// Returns whether its step is worked on, so that it counts as a lane.
    const fn is_at_work(&self) -> bool {
        matches!(self.state, LaneState::Busy) && self.done_since.is_none()
    }

    fn becomes(&mut self, state: LaneState) {
        self.state = state;
        self.done_since = None;
    }
}

/// The state of a batch.
#[derive(Debug)]
pub(crate) struct Machine {
    lanes: Vec<Lane>,
    /// The lanes whose agents wait to mend their work, in the order in which they
    /// asked. They come before new attempts.
    mending: Vec<LaneIndex>,
    crew: Crew,
    /// The worktree that is being made.
    making: Option<Making>,
    /// How many lanes are still to be made.
    wanted: usize,
    /// Whether an operator paused the batch: no pass is made.
    is_paused: bool,
    /// Whether the window in which attempts begin is closed: no pass is made.
    is_shut: bool,
    /// Whether all lanes were booted once.
    begun: bool,
    allowance: Allowance,
    passing: bool,
    /// Something changed since the last pass began.
    stale: bool,
    draining: bool,
    store_lost: bool,
    startup_refused: bool,
    dispatched: bool,
    finished: bool,
    waiting_until: Option<Timestamp>,
}

impl Machine {
    /// Begins with lanes that boot.
    pub(crate) fn new(crew: Crew, allowance: Allowance) -> Self {
        Self {
            lanes: vec![Lane::BOOTING; crew.worktrees],
            mending: Vec::new(),
            crew,
            making: None,
            wanted: 0,
            is_paused: false,
            is_shut: false,
            begun: false,
            allowance,
            passing: false,
            stale: true,
            draining: false,
            store_lost: false,
            startup_refused: false,
            dispatched: false,
            finished: false,
            waiting_until: None,
        }
    }

    /// Returns the lanes that wait for work, in order: as many as may begin.
    pub(crate) fn idle(&self) -> Vec<LaneIndex> {
        let mut idle = self.all_idle();
        idle.truncate(self.free());
        idle
    }

    /// Returns how many more issues may be worked on.
    fn free(&self) -> usize {
        self.unworked().saturating_sub(self.mending.len())
    }

    /// Returns how many more issues may be worked on, with those that are to be
    /// mended.
    fn unworked(&self) -> usize {
        let at_work = self.lanes.iter().filter(|lane| lane.is_at_work()).count();
        self.crew.lanes.saturating_sub(at_work)
    }

    /// Lets as many agents mend their work as may work now.
    fn let_mend<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        let lanes = &self.lanes;
        self.mending
            .retain(|lane| lanes[*lane].state == LaneState::Busy);
        while self.unworked() > 0 && !self.mending.is_empty() {
            let lane = self.mending.remove(0);
            self.lanes[lane].done_since = None;
            effects.push(Effect::Mend(lane));
        }
    }

    fn all_idle(&self) -> Vec<LaneIndex> {
        let lanes = self.lanes.iter().enumerate();
        let idle = lanes.filter(|(_, lane)| lane.state == LaneState::Idle);
        idle.map(|(index, _)| index).collect()
    }

    /// Returns whether a step runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.state == LaneState::Busy)
    }

    /// Returns whether memory or trajectory were lost in the middle.
    pub(crate) const fn store_lost(&self) -> bool {
        self.store_lost
    }

    /// Returns whether a startup verification refused before anything was
    /// dispatched.
    pub(crate) const fn refused_at_startup(&self) -> bool {
        self.startup_refused && !self.dispatched
    }

    /// Takes an event in and says what is to be done, in order.
    pub(crate) fn handle<C>(&mut self, event: MachineEvent<C>, now: Timestamp) -> Vec<Effect<C>> {
        let mut effects = Vec::new();
        let looks = matches!(event, MachineEvent::WorkDone(_) | MachineEvent::Looked);
        let lanes = self.crew.lanes;
        self.take_in(event, now, &mut effects);
        if self.crew.lanes != lanes {
            self.crew.fit_spare(lanes);
            effects.push(Effect::Lanes(self.crew.lanes));
        }
        self.advance(&mut effects);
        if looks && self.needs_spare(now) {
            self.making = Some(Making::Spare);
            effects.push(Effect::MakeSpare);
        }
        effects
    }

    fn take_in<C>(&mut self, event: MachineEvent<C>, now: Timestamp, effects: &mut Vec<Effect<C>>) {
        match event {
            MachineEvent::Booted(lane) => {
                self.lanes[lane].becomes(LaneState::Idle);
                self.stale = true;
            }
            MachineEvent::WorkDone(lane) => {
                // It may have worked again without waiting.
                self.mending.retain(|waits| *waits != lane);
                self.lanes[lane].done_since = Some(now);
                self.stale = true;
            }
            MachineEvent::MendDue(lane) => self.mending.push(lane),
            MachineEvent::Spare(news) => self.spare(news),
            MachineEvent::Looked => {}
            MachineEvent::BootFailed { lane, class } => {
                self.startup_refused |= class == FailureClass::StartupCheckFailed;
                self.lanes[lane].becomes(LaneState::Retired);
            }
            MachineEvent::Passed(pass) => self.passed(pass, now, effects),
            MachineEvent::StepEnded {
                lane,
                succeeded,
                refused,
                lane_lost,
                store_lost,
            } => {
                self.lanes[lane].steps_left += u64::from(refused);
                self.store_lost |= store_lost;
                let stop_on_failure = self.allowance.stop_on_failure;
                self.draining |=
                    store_lost || exit::is_last_step(stop_on_failure, succeeded, refused);
                self.release(lane, lane_lost, effects);
            }
            MachineEvent::Answered { lane, lane_lost } => self.release(lane, lane_lost, effects),
            MachineEvent::Panicked { lane, claim } => {
                self.lanes[lane].becomes(LaneState::Retired);
                self.stale = true;
                effects.extend(claim.map(Effect::EndPanicked));
            }
            MachineEvent::Woke => {
                self.waiting_until = None;
                self.stale = true;
            }
            MachineEvent::Window { is_open } => {
                self.is_shut = !is_open;
                self.stale |= is_open;
                if self.is_shut {
                    self.unpass(effects);
                }
            }
            MachineEvent::Interrupted => self.draining = true,
            MachineEvent::Control(asked) => self.control(asked, effects),
            MachineEvent::StoreLost => {
                self.store_lost = true;
                self.draining = true;
                self.passing = false;
            }
        }
    }

    /// Makes a lane idle, or retires it where its worktree is lost.
    fn release<C>(&mut self, lane: LaneIndex, is_lost: bool, effects: &mut Vec<Effect<C>>) {
        self.lanes[lane].becomes(LaneState::Idle);
        self.stale = true;
        if is_lost {
            self.retire_lost(lane, effects);
        }
    }

    /// Takes in how the making of a spare worktree ended.
    fn spare(&mut self, news: SpareNews) {
        match (self.making.take(), news) {
            (Some(Making::Lane), SpareNews::Made) => {
                self.wanted -= 1;
                self.lanes.push(Lane::BOOTING);
            }
            // The others would be refused too.
            (Some(Making::Lane), SpareNews::Refused | SpareNews::NotNeeded) => {
                // An operator may have removed others because of these.
                self.crew.lanes = self.crew.lanes.saturating_sub(self.wanted).max(1);
                self.wanted = 0;
            }
            (_, SpareNews::Made) => {
                self.crew.spare = self.crew.spare.saturating_sub(1);
                self.lanes.push(Lane::BOOTING);
            }
            (_, SpareNews::Refused) => self.crew.spare = 0,
            (_, SpareNews::NotNeeded) => {}
        }
    }

    /// Returns whether a lane waits for a worktree: the work of its step is done
    /// and has waited long enough, and no other worktree is free.
    fn needs_spare(&self, now: Timestamp) -> bool {
        let has_waited = |lane: &Lane| {
            let since = lane.done_since.map(|since| now.duration_since(since));
            since.is_some_and(|since| {
                Duration::try_from(since).unwrap_or_default() >= self.crew.patience
            })
        };
        let is_free = |lane: &Lane| matches!(lane.state, LaneState::Idle | LaneState::Booting);
        self.crew.spare > 0
            && self.free() > 0
            && !self.draining
            && !self.is_paused
            && !self.is_shut
            && self.making.is_none()
            && !self.lanes.iter().any(is_free)
            && self.lanes.iter().any(has_waited)
    }

    fn retire_lost<C>(&mut self, lane: LaneIndex, effects: &mut Vec<Effect<C>>) {
        self.lanes[lane].becomes(LaneState::Retired);
        effects.push(Effect::Retire(lane));
    }

    fn passed<C>(&mut self, pass: Pass<C>, now: Timestamp, effects: &mut Vec<Effect<C>>) {
        self.passing = false;
        let mut claims = pass.claims;
        for lane in self.idle() {
            let state = &mut self.lanes[lane];
            if pass.asks == Some(lane) {
                state.state = LaneState::Busy;
                effects.push(Effect::Ask(lane));
                continue;
            }
            let Some(claim) = claims.remove(&lane) else {
                // Nothing for it: its dispatch is over.
                if !pass.held.contains(&lane) {
                    state.steps_left = 0;
                }
                continue;
            };
            if state.steps_left == 0 {
                state.dispatches += 1;
                state.steps_left = self.allowance.steps_per_dispatch.max(1);
            }
            state.steps_left -= 1;
            state.state = LaneState::Busy;
            self.dispatched = true;
            effects.push(Effect::Dispatch { lane, claim });
        }
        // A claim for a lane that went away in the meantime.
        effects.extend(claims.into_values().map(Effect::Release));
        // A batch that ends once nothing is ready waits for no retry.
        let waits = self.allowance.until != Until::Idle || !pass.held.is_empty();
        let look_at = pass.look_at.filter(|_| waits);
        self.waiting_until = look_at.map(|at| at.max(now));
    }

    /// Takes a pass back that was asked for.
    fn unpass<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        if self.passing {
            self.passing = false;
            self.stale = true;
            effects.push(Effect::Unpass);
        }
    }

    /// Decides what follows from the current state.
    fn advance<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        let is_booting = |lane: &Lane| lane.state == LaneState::Booting;
        self.begun |= !self.lanes.iter().any(is_booting);
        // The first pass is for all lanes, in order, whichever boots first.
        if self.finished || !self.begun {
            return;
        }
        self.let_mend(effects);
        self.retire_where(effects, |lane| lane.leaves);
        if self.draining {
            self.retire_idle(effects);
        } else {
            self.retire_used_up(effects);
            self.make_lane(effects);
        }
        let busy = self.is_busy();
        let idle = !self.idle().is_empty();
        if (self.is_paused || self.is_shut) && !self.draining {
            // What waits for a pass waits for the operator, or for the window.
        } else if !self.passing && idle && self.stale {
            self.passing = true;
            self.stale = false;
            effects.push(Effect::Pass);
        } else if !self.passing && idle {
            match self.waiting_until {
                Some(at) => effects.push(Effect::WakeAt(at)),
                // A busy lane's end may make something ready.
                None if busy => {}
                None if self.allowance.until == Until::Forever && !self.draining => {
                    effects.push(Effect::AwaitIssues);
                }
                None => self.retire_idle(effects),
            }
        }
        let is_retired = |lane: &Lane| lane.state == LaneState::Retired;
        let over = self.lanes.iter().all(is_retired) && self.making.is_none();
        if over && !self.passing {
            self.finished = true;
            effects.push(Effect::Finish);
        }
    }

    fn retire_idle<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        self.retire_where(effects, |_| true);
    }

    /// Retires the idle lanes that something is true of.
    fn retire_where<C>(&mut self, effects: &mut Vec<Effect<C>>, is_over: impl Fn(&Lane) -> bool) {
        for lane in self.all_idle() {
            if is_over(&self.lanes[lane]) {
                self.lanes[lane].state = LaneState::Retired;
                effects.push(Effect::Retire(lane));
            }
        }
    }

    /// Retires lanes whose dispatches are used up.
    fn retire_used_up<C>(&mut self, effects: &mut Vec<Effect<C>>) {
        let Some(rounds) = self.allowance.rounds else {
            return;
        };
        let is_used_up = |lane: &Lane| lane.steps_left == 0 && lane.dispatches >= rounds;
        self.retire_where(effects, is_used_up);
    }
}

#[cfg(test)]
mod tests;
