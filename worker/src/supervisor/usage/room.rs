//! What a command had left of its bounds, and whether it can have used that since.

use super::Ceilings;
use super::machine::MachineMemory;

/// What a command had left of its bounds when its processes were listed.
///
/// Until the machine as a whole has lost as much, they need not be listed again. That
/// other programs gave up as much meanwhile cannot be excluded, so the answer is good
/// for a short time only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Bytes of memory; without a bound `u64::MAX`.
    memory: u64,
    /// Processes; without a bound `u64::MAX`.
    processes: u64,
    /// The memory of the machine at that moment.
    machine: MachineMemory,
    /// The processes and threads of the machine at that moment; `None` where it does
    /// not say.
    tasks: Option<u64>,
}

impl Room {
    /// Returns what a command has left that has so many processes and so many bytes of
    /// memory.
    pub(super) fn left(
        ceilings: &Ceilings,
        (processes, memory): (u64, u64),
        machine: MachineMemory,
        tasks: Option<u64>,
    ) -> Self {
        let left =
            |bound: Option<u64>, used| bound.map_or(u64::MAX, |bound| bound.saturating_sub(used));
        Self {
            memory: left(ceilings.memory, memory),
            processes: left(ceilings.processes, processes),
            machine,
            tasks,
        }
    }

    /// Returns whether the command can have used it, where the machine has so much
    /// memory and so many processes and threads now.
    pub(super) fn may_be_used(&self, machine: MachineMemory, tasks: Option<u64>) -> bool {
        let lost = self.machine.available.saturating_sub(machine.available);
        let growth = machine.shared.saturating_sub(self.machine.shared);
        let begun = match (self.tasks, tasks) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => u64::MAX,
        };
        lost.max(growth) >= self.memory || begun >= self.processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: MachineMemory = MachineMemory {
        available: 1_000,
        shared: 100,
    };

    fn room() -> Room {
        let ceilings = Ceilings {
            memory: Some(300),
            processes: Some(20),
            ..Ceilings::default()
        };
        Room::left(&ceilings, (5, 100), MACHINE, Some(400))
    }

    #[test]
    fn a_machine_that_has_lost_less_than_the_room_leaves_it_unused() {
        let less = MachineMemory {
            available: 801,
            shared: 299,
        };
        assert!(!room().may_be_used(less, Some(414)));
        let more = MachineMemory {
            available: 2_000,
            shared: 0,
        };
        assert!(!room().may_be_used(more, Some(1)));
    }

    #[test]
    fn each_loss_as_large_as_the_room_may_be_the_commands() {
        let memory = MachineMemory {
            available: 800,
            ..MACHINE
        };
        assert!(room().may_be_used(memory, Some(400)));
        let shared = MachineMemory {
            shared: 300,
            ..MACHINE
        };
        assert!(room().may_be_used(shared, Some(400)));
        assert!(room().may_be_used(MACHINE, Some(415)));
    }

    #[test]
    fn what_the_machine_does_not_say_may_be_used() {
        assert!(room().may_be_used(MACHINE, None));
        assert!(Room::default().may_be_used(MachineMemory::default(), None));
        let unbounded = Room::left(&Ceilings::default(), (5, 100), MACHINE, Some(1));
        let nothing = MachineMemory {
            available: 0,
            shared: 9_000,
        };
        assert!(!unbounded.may_be_used(nothing, Some(9_000)));
    }
}
