//! What is reported when a batch begins.

use crate::report::{BatchTerms, Notice, Reporter, SetAside};
use harness_worker::batch::{Batch, foreign_warning};
use harness_worker::sandbox::left_out_warning;
use premath_memory::cause::chain;
use premath_memory::roots::MemoryRoots;
use premath_memory::{clock, observation};
use std::time::Duration;

/// Reports what a batch is run with.
pub(super) fn announce(batch: &Batch, lanes: usize, started_ms: u64, reporter: &mut dyn Reporter) {
    let (begun, deadline) = (clock::now(), batch.settings.bounds.deadline);
    let ran = Duration::from_millis(begun.boot_ms.saturating_sub(started_ms));
    reporter.notice(&Notice::BatchStarted(BatchTerms {
        batch_id: batch.id(),
        resumed: batch.is_resumed(),
        lanes,
        mode: &batch.settings.mode,
        issues_path: batch.memory.path(),
        landing: batch.landing.is_on().then_some(&batch.settings.landing),
        ends_at: deadline.ends_at(begun.wall, ran),
        sandbox: &batch.settings.sandbox.choice,
        hooks: batch.settings.describe_hooks(),
        repair: batch.settings.describe_repair(),
    }));
    for target_sync in batch.target_sync() {
        reporter.notice(&Notice::TargetSync(target_sync));
    }
    let network = batch.settings.network.choice.warning();
    let warnings = [
        foreign_warning(&batch.foreign_rows()),
        batch.own_checks_warning(),
        left_out_warning(&batch.settings),
        network,
        attention_warning(&batch.settings.roots),
        set_aside_warning(batch),
    ];
    for detail in warnings.into_iter().flatten() {
        reporter.notice(&Notice::Warning { detail: &detail });
    }
}

/// Says which issues are set aside, and how they are taken up.
fn set_aside_warning(batch: &Batch) -> Option<String> {
    let aside = SetAside {
        issues: batch.set_aside().into_iter().collect(),
        after: batch.settings.set_aside_after,
    };
    aside.text()
}

/// Says that the last batch left something to look at.
fn attention_warning(roots: &MemoryRoots) -> Option<String> {
    let found = match observation::read(roots) {
        Ok(found) => found?,
        Err(error) => return Some(format!("the last batch is not known: {}", chain(&error))),
    };
    let count = found.needs_attention.len();
    (count > 0).then(|| {
        format!(
            "batch {} left {count} item(s) that need attention: `premath observe needs_attention`",
            found.batch_id
        )
    })
}
