//! The reporter of a batch on a terminal: the live view while it runs, lines before
//! and after it.

use harness_coordinator::report::{HumanReporter, Notice, Reporter, Summary};
use jiff::Zoned;
use premath_cli::{Beside, HeldStream};
use premath_kernel::json::id::BatchId;

/// Reports in lines that the live view holds back while it is shown.
pub(crate) struct LiveReporter {
    lines: HumanReporter<HeldStream, HeldStream>,
    view: Beside,
    batch: Option<BatchId>,
}

impl LiveReporter {
    pub(crate) fn new(view: Beside, now: fn() -> Zoned) -> Self {
        Self {
            lines: HumanReporter::new(view.output(), view.error(), now),
            view,
            batch: None,
        }
    }
}

impl Reporter for LiveReporter {
    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::BatchStarted(start) => self.batch = Some(start.batch_id.clone()),
            // What is fetched for lanes is shown on the terminal until then.
            Notice::LaneBooted { .. } => {
                if let Some(batch) = &self.batch {
                    self.view.show(batch);
                }
            }
            _ => {}
        }
        self.lines.notice(notice);
    }

    fn summary(&mut self, summary: &Summary) {
        self.view.end();
        self.lines.summary(summary);
    }
}

impl Drop for LiveReporter {
    fn drop(&mut self) {
        // Of a batch that ends without a summary.
        self.view.end();
    }
}
