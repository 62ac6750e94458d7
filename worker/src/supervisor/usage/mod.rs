//! What all processes of a command together use of the machine.
//!
//! The kernel bounds one process or one user; these bounds are the command's.
//! They are checked at intervals, so that a command may be over one for a
//! moment.
//!
//! `/proc` does not show everything that a process uses: memory outlasts a
//! mapping, files outlast their names, and descriptors wait in sockets. Where
//! the command has means to hide something (see [`HeldBytes`]), it is charged with
//! what the machine has lost since the command began.

mod files;
mod held;
mod machine;
mod pages;

use super::descendants::descendants_now;
use super::message::{OsText, Resource};
use files::Written;
use held::HeldBytes;
use machine::memory_now;
use pages::Pages;
use premath_kernel::policy::usage::{
    Headroom, Lasting, MachineMemory, MemoryUse, ProcessTotals, UsageBounds,
};
use premath_platform::machine::tasks;
use premath_platform::process::Process;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often memory and processes are checked: whether what the machine lost since
/// the last list of processes can take the command over a bound.
const LOOK: Duration = Duration::from_millis(100);
/// How often the processes are listed in any case. A list reads every process of the
/// machine, for every lane.
const LIST: Duration = Duration::from_secs(1);
/// How often the disk is checked.
const LOOK_AT_DISK: Duration = Duration::from_millis(500);
/// How long the free room of the disks alone is trusted.
const MEASURE: Duration = Duration::from_millis(500);
/// What part of the time a check may take: one in so many.
const SHARE: u32 = 10;

/// What all processes of a command together may use; no bound where absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes at once.
    pub processes: Option<u64>,
    /// Bytes of files in `folders` that it wrote.
    pub disk: Option<u64>,
    /// The folders that it can write to.
    folders: Vec<OsText>,
}

impl Ceilings {
    /// Names the folders that the bound of the disk is about.
    pub fn measure<'a>(&mut self, folders: impl IntoIterator<Item = &'a Path>) {
        self.folders = folders.into_iter().map(OsText::from).collect();
    }

    const fn bounds(&self) -> UsageBounds {
        UsageBounds {
            memory: self.memory,
            processes: self.processes,
        }
    }

    const fn is_any(&self) -> bool {
        self.memory.is_some() || self.processes.is_some() || self.disk.is_some()
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| Path::new(&folder.0))
    }
}

/// What a command was seen to use.
#[derive(Debug)]
pub(super) struct CommandUsage {
    ceilings: Ceilings,
    look: Instant,
    /// When the processes are listed although the machine has lost little.
    list_by: Instant,
    /// What the command had left when they were listed last.
    headroom: Headroom,
    look_closely: Instant,
    look_at_disk: Instant,
    /// When files are measured although the disks have as much room as before.
    measure_by: Instant,
    /// The memory of the machine when it had most of it free.
    machine: MachineMemory,
    /// The free bytes of each folder's file system, when it had most.
    free: Vec<u64>,
    /// When the command began: what changed since is its own.
    began: files::Time,
    hides_memory: Lasting,
    hides_files: Lasting,
}

impl CommandUsage {
    pub(super) fn of(ceilings: Ceilings, now: Instant) -> Self {
        let free = match ceilings.disk {
            Some(_) => ceilings.folders().map(files::free).collect(),
            None => Vec::new(),
        };
        let machine = match ceilings.memory {
            Some(_) => memory_now(),
            None => MachineMemory::default(),
        };
        Self {
            ceilings,
            // A command that has just been started uses nothing yet, and many end
            // before the first check.
            look: now + LOOK,
            list_by: now + LOOK,
            headroom: Headroom::default(),
            look_closely: now,
            look_at_disk: now,
            measure_by: now + MEASURE,
            machine,
            free,
            began: files::now(),
            hides_memory: Lasting::default(),
            hides_files: Lasting::default(),
        }
    }

    /// Returns when to check again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.ceilings.is_any().then_some(self.look)
    }

    /// Checks the bounds, where it is time, and returns the one that is
    /// exceeded. `own` is a process of the harness among those of the command.
    pub(super) fn exceeded(&mut self, now: Instant, own: Option<Pid>) -> Option<Resource> {
        if now < self.look || !self.ceilings.is_any() {
            return None;
        }
        self.look = now + LOOK;
        let own = own.map(|own| own.as_raw_nonzero().get());
        // Before the list, so that what starts or grows meanwhile counts as new.
        let (machine, tasks) = (memory_now(), tasks());
        self.machine = self.machine.at_best(machine);
        if self.headroom.may_be_used(machine, tasks) || now >= self.list_by {
            self.list_by = now + LIST;
            let processes = descendants_now();
            let count = processes.len() as u64;
            if self.ceilings.processes.is_some_and(|bound| count > bound) {
                return Some(Resource::Processes);
            }
            let threads = processes.iter().map(|process| process.threads).sum();
            let processes = shown(processes, own);
            let resident = processes.iter().map(pages::resident).sum();
            if self.takes_the_memory(&processes, resident, machine) {
                return Some(Resource::Memory);
            }
            let totals = ProcessTotals {
                processes: count,
                threads,
                resident,
            };
            self.headroom = self.left(totals, machine, tasks);
        }
        if now >= self.look_at_disk && self.fills_the_disk(own) {
            return Some(Resource::Disk);
        }
        None
    }

    /// Returns what the command has left until its processes are listed again.
    fn left(&self, totals: ProcessTotals, machine: MachineMemory, tasks: Option<u64>) -> Headroom {
        let bounds = self.ceilings.bounds();
        let lost = self.machine.lost(machine);
        if self.hides_memory.was() && bounds.may_be_over(totals.resident, lost) {
            // The next list says whether it lasts.
            return Headroom::default();
        }
        Headroom::left(bounds, totals, lost, machine, tasks)
    }

    fn takes_the_memory(
        &mut self,
        processes: &[Process],
        resident: u64,
        now: MachineMemory,
    ) -> bool {
        let Some(bound) = self.ceilings.memory else {
            return false;
        };
        // As long as the machine has about as much memory as at best, nothing is
        // hidden.
        let lost = self.machine.lost(now);
        let may_hide = self.ceilings.bounds().may_be_over(resident, lost)
            && Instant::now() >= self.look_closely;
        if resident <= bound && !may_hide {
            return false;
        }
        let began = Instant::now();
        let held = HeldBytes::by(processes, self.began);
        let hides = self.hides_memory.still(held.hides_memory);
        let is_over = |pages: Pages| {
            let memory = MemoryUse {
                own: pages.own,
                shared: pages.shared,
                unnamed: held.memory,
                buffers: held.buffers,
                hides,
            };
            memory.charged(self.machine, now) > bound
        };
        // Pages that processes share are counted in each of them; where that
        // is too much, each is divided by its users.
        let is_over = is_over(processes.iter().map(Pages::counted).sum())
            && is_over(processes.iter().map(Pages::divided).sum());
        self.look_closely = after(began);
        is_over
    }

    fn fills_the_disk(&mut self, own: Option<i32>) -> bool {
        let began = Instant::now();
        self.look_at_disk = began + LOOK_AT_DISK;
        let Some(bound) = self.ceilings.disk else {
            return false;
        };
        // As long as the disks have about as much room as at best, nothing has
        // to be measured.
        let mut taken = 0;
        for (folder, best) in self.ceilings.folders().zip(&mut self.free) {
            let free = files::free(folder);
            *best = free.max(*best);
            taken = taken.max(*best - free);
        }
        // Now and then in any case: other programs may free as much meanwhile.
        if taken < bound && began < self.measure_by {
            return false;
        }
        let held = HeldBytes::by(&shown(descendants_now(), own), self.began);
        let mut written = Written::default();
        for folder in self.ceilings.folders() {
            written.add(folder, self.began);
        }
        self.look_at_disk = after(began).max(began + LOOK_AT_DISK);
        self.measure_by = self.look_at_disk + MEASURE;
        // What is too deep to be measured is too much where the disks lost as much.
        let is_too_deep = written.is_too_deep && taken >= bound;
        if self
            .hides_files
            .still(written.is_partial || held.hides_files)
        {
            return is_too_deep || taken.max(written.bytes) > bound;
        }
        is_too_deep || written.bytes + held.files > bound
    }
}

/// Returns the processes that are the command's own, by the numbers that `/proc`
/// shows what they hold by.
fn shown(mut processes: Vec<Process>, own: Option<i32>) -> Vec<Process> {
    // Of its children the harness has one more: the first process of the view,
    // whose descriptors cannot be read.
    processes.retain(|process| {
        let pid = process.pid.as_raw_nonzero().get();
        own != Some(pid) && own != Some(process.parent) && !process.zombie
    });
    for process in &mut processes {
        process.pid = process.shown_as();
    }
    processes
}

/// Returns when a check that began at a moment may be repeated.
fn after(began: Instant) -> Instant {
    let now = Instant::now();
    now + now.saturating_duration_since(began) * SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_listed_once_a_second_where_the_machine_lost_nothing() {
        let began = Instant::now();
        let mut usage = CommandUsage::of(ceilings(1 << 40, 1 << 20), began);
        let lists = lists_in_a_second(&mut usage, began);
        assert_eq!(lists, 1);
    }

    #[test]
    fn processes_are_listed_at_each_look_where_little_is_left() {
        let began = Instant::now();
        let mut usage = CommandUsage::of(ceilings(1 << 40, 0), began);
        let lists = lists_in_a_second(&mut usage, began);
        assert_eq!(lists, 9);
    }

    fn ceilings(memory: u64, processes: u64) -> Ceilings {
        Ceilings {
            memory: Some(memory),
            processes: Some(processes),
            ..Ceilings::default()
        }
    }

    /// Looks at a command every 100 ms for a second, and counts how often its
    /// processes were listed.
    fn lists_in_a_second(usage: &mut CommandUsage, began: Instant) -> usize {
        let looks = (1..10).map(|number| began + LOOK * number);
        let is_listed = |now: &Instant| {
            let _ = usage.exceeded(*now, None);
            usage.list_by == *now + LIST
        };
        looks.filter(is_listed).count()
    }
}
