//! Notifies a person of some of what a reporter reports.

use super::human::ending;
use super::{Notice, Reporter, Summary};
use harness_worker::batch::{Batch, SupervisionChange};
use harness_worker::notify::Notifier;
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::provider::ProviderChange;
use premath_kernel::record::notification::{Notification, NotifyEvent, NotifyFacts};
use premath_memory::clock;

/// Passes everything on to a reporter, and some of it to a notifier.
pub(crate) struct NotifyingReporter<'a> {
    inner: &'a mut dyn Reporter,
    notifier: Option<Notifier>,
    batch_id: BatchId,
}

impl<'a> NotifyingReporter<'a> {
    /// Notifies as the settings of the batch say.
    pub(crate) fn new(inner: &'a mut dyn Reporter, batch: &Batch) -> Self {
        Self {
            inner,
            notifier: Notifier::start(&batch.settings, &batch.program, batch.id()),
            batch_id: batch.id().clone(),
        }
    }

    /// Waits for the last notifications, and logs those that failed: the report is
    /// the last that a batch prints.
    pub(crate) fn finish(&mut self) {
        let failed = self.notifier.take().map(Notifier::finish);
        for detail in failed.into_iter().flatten() {
            tracing::warn!("{detail}");
        }
    }

    fn send(&mut self, event: NotifyEvent, facts: &NotifyFacts<'_>) {
        if let Some(notifier) = &mut self.notifier
            && notifier.includes(event)
        {
            let at = Stamp::at(clock::now().wall);
            notifier.send(Notification::new(event, at, &self.batch_id, facts));
        }
    }

    fn say(&mut self, event: NotifyEvent, text: &str) {
        self.send(event, &about(text));
    }

    fn step_ended(&mut self, report: &StepReport) {
        let id = &report.issue_id;
        let failed_check = FailureClass::LandingCheckFailed.as_str();
        let is_taken_back = report.failure_classes.iter().any(|c| c == failed_check);
        for (event, happened) in [
            (NotifyEvent::Blocked, report.ending == StepEnding::Blocked),
            (NotifyEvent::FailedCheck, is_taken_back),
        ] {
            if happened {
                let classes = report.failure_classes.join(", ");
                let text = format!("{id} {}: {classes}: {}", ending(report), report.title);
                let facts = NotifyFacts {
                    issue: Some((id, &report.title)),
                    failure_classes: &report.failure_classes,
                    ..about(&text)
                };
                self.send(event, &facts);
            }
        }
    }
}

const fn about(text: &str) -> NotifyFacts<'_> {
    NotifyFacts {
        text,
        issue: None,
        failure_classes: &[],
        exit_code: None,
    }
}

impl Reporter for NotifyingReporter<'_> {
    fn notice(&mut self, notice: &Notice<'_>) {
        self.inner.notice(notice);
        let failed = self.notifier.as_mut().map(Notifier::failures);
        for detail in failed.into_iter().flatten() {
            self.inner.notice(&Notice::Warning { detail: &detail });
        }
        match notice {
            Notice::StepEnded { report, .. } => self.step_ended(report),
            Notice::Ending {
                ended_by: EndedBy::Budget,
                detail,
            } => self.say(
                NotifyEvent::Budget,
                &format!("the budget is used up: {detail}"),
            ),
            Notice::Changed(SupervisionChange::Provider(change)) => {
                if matches!(change, ProviderChange::Parked { .. }) {
                    self.say(NotifyEvent::Parked, &change.to_string());
                }
            }
            Notice::BaselineChecked { passes: false, .. } => {
                let text = "the verification fails without any work";
                self.say(NotifyEvent::RedBaseline, text);
            }
            Notice::LaneGivenUp {
                class: FailureClass::StartupCheckFailed,
                detail,
                ..
            } => self.say(NotifyEvent::RedBaseline, detail),
            _ => {}
        }
    }

    fn summary(&mut self, summary: &Summary) {
        self.inner.summary(summary);
        let reports = summary.issues.iter().map(|(.., report)| report);
        let closed = reports.filter(|report| report.succeeded()).count();
        let text = format!(
            "batch {} ended: {closed} of {} attempted issues closed, exit code {}",
            summary.batch_id,
            summary.issues.len(),
            summary.exit_code
        );
        let facts = NotifyFacts {
            exit_code: Some(summary.exit_code),
            ..about(&text)
        };
        self.send(NotifyEvent::Done, &facts);
    }
}
