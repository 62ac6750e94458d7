//! What a command had left of its bounds, and whether it can have used that since.

use super::{MachineMemory, UsageBounds};

/// What the list of a command's processes shows of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTotals {
    /// How many they are.
    pub processes: u64,
    /// Their threads, the first of each included.
    pub threads: u64,
    /// The bytes of their mapped pages.
    pub resident: u64,
}

/// What a command had left of its bounds when its processes were listed.
///
/// Until the machine as a whole has lost as much, they need not be listed again. That
/// other programs gave up as much at the same time cannot be excluded, so the answer is
/// good for a short time only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// Bytes of memory; without a bound `u64::MAX`.
    memory: u64,
    /// Processes; without a bound `u64::MAX`.
    processes: u64,
    /// The memory of the machine at its best since then.
    machine: MachineMemory,
    /// The fewest processes and threads of the machine since then; `None` where it does
    /// not say.
    tasks: Option<u64>,
}

impl Headroom {
    /// Returns what a command has left, where the machine lost so much memory since the
    /// command began: it may be the command's, although no process shows it.
    pub fn left(
        bounds: UsageBounds,
        counted: ProcessTotals,
        lost: u64,
        machine: MachineMemory,
        tasks: Option<u64>,
    ) -> Self {
        let left =
            |bound: Option<u64>, used| bound.map_or(u64::MAX, |bound| bound.saturating_sub(used));
        // A thread that ends makes room for a process among the tasks.
        let threads = counted.threads.saturating_sub(counted.processes);
        Self {
            memory: left(bounds.memory, counted.resident.max(lost)),
            processes: left(bounds.processes, counted.processes),
            machine,
            tasks: tasks.map(|tasks| tasks.saturating_sub(threads)),
        }
    }

    /// Returns whether the command can have used it, where the machine has so much
    /// memory and so many processes and threads now. What others give up meanwhile
    /// does not count for the command.
    pub fn may_be_used(&mut self, machine: MachineMemory, tasks: Option<u64>) -> bool {
        self.machine = self.machine.at_best(machine);
        self.tasks = self.tasks.zip(tasks).map(|(fewest, now)| fewest.min(now));
        let begun = match (self.tasks, tasks) {
            (Some(fewest), Some(now)) => now - fewest,
            _ => u64::MAX,
        };
        // A machine that does not say what it has says zero.
        let is_known = self.memory == u64::MAX || machine.available > 0;
        !is_known || self.machine.lost(machine) >= self.memory || begun >= self.processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: MachineMemory = MachineMemory {
        available: 1_000,
        shared: 100,
    };

    const COUNTED: ProcessTotals = ProcessTotals {
        processes: 5,
        threads: 5,
        resident: 100,
    };

    fn headroom() -> Headroom {
        let bounds = UsageBounds {
            memory: Some(300),
            processes: Some(20),
        };
        Headroom::left(bounds, COUNTED, 0, MACHINE, Some(400))
    }

    #[test]
    fn memory_that_the_machine_lost_before_is_not_left() {
        let bounds = UsageBounds {
            memory: Some(300),
            ..UsageBounds::default()
        };
        let mut headroom = Headroom::left(bounds, COUNTED, 250, MACHINE, Some(400));
        let less = MachineMemory {
            available: 951,
            ..MACHINE
        };
        assert!(!headroom.may_be_used(less, Some(400)));
        let more = MachineMemory {
            available: 950,
            ..MACHINE
        };
        assert!(headroom.may_be_used(more, Some(400)));
    }

    #[test]
    fn a_thread_that_ends_makes_room_for_a_process() {
        let bounds = UsageBounds {
            processes: Some(20),
            ..UsageBounds::default()
        };
        let counted = ProcessTotals {
            threads: 55,
            ..COUNTED
        };
        let mut headroom = Headroom::left(bounds, counted, 0, MACHINE, Some(400));
        assert!(!headroom.may_be_used(MACHINE, Some(364)));
        assert!(headroom.may_be_used(MACHINE, Some(365)));
    }

    #[test]
    fn a_machine_that_has_lost_less_than_the_room_leaves_it_unused() {
        let less = MachineMemory {
            available: 801,
            shared: 299,
        };
        assert!(!headroom().may_be_used(less, Some(414)));
        let more = MachineMemory {
            available: 2_000,
            shared: 0,
        };
        assert!(!headroom().may_be_used(more, Some(1)));
    }

    #[test]
    fn what_others_gave_up_does_not_count() {
        let mut headroom = headroom();
        let freed = MachineMemory {
            available: 2_000,
            shared: 0,
        };
        assert!(!headroom.may_be_used(freed, Some(100)));
        let taken = MachineMemory {
            available: 1_800,
            shared: 0,
        };
        assert!(headroom.may_be_used(taken, Some(100)));
        assert!(!headroom.may_be_used(freed, Some(114)));
        assert!(headroom.may_be_used(freed, Some(115)));
    }

    #[test]
    fn each_loss_as_large_as_the_room_may_be_the_commands() {
        let memory = MachineMemory {
            available: 800,
            ..MACHINE
        };
        assert!(headroom().may_be_used(memory, Some(400)));
        let shared = MachineMemory {
            shared: 300,
            ..MACHINE
        };
        assert!(headroom().may_be_used(shared, Some(400)));
        assert!(headroom().may_be_used(MACHINE, Some(415)));
    }

    #[test]
    fn what_the_machine_does_not_say_may_be_used() {
        assert!(headroom().may_be_used(MACHINE, None));
        assert!(Headroom::default().may_be_used(MachineMemory::default(), None));
        let silent = MachineMemory::default();
        assert!(headroom().may_be_used(silent, Some(400)));
        let mut unbounded = Headroom::left(UsageBounds::default(), COUNTED, 0, MACHINE, Some(1));
        let nothing = MachineMemory {
            available: 0,
            shared: 9_000,
        };
        assert!(!unbounded.may_be_used(nothing, Some(9_000)));
    }
}
