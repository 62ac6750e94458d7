//! Why an issue did not close, and where more of it is.

use super::JudgedTurn;
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::plain::plain;

/// Returns the lines on an issue that did not close: what failed, where more is
/// reported about it, and where what it left is.
pub(super) fn why(report: &StepReport, judged: Option<&JudgedTurn>) -> Vec<String> {
    let issue = plain(&report.issue_id);
    let mut lines = vec![format!("{issue}: {}", plain(&reason(report, judged)))];
    match (&report.said, judged) {
        (Some((_, output)), _) => {
            lines.push(format!("  output: {}", output.display()));
        }
        (None, Some(judged)) => lines.push(format!(
            "  verdict: premath harness-join-check --explain --input {}",
            judged.path.display()
        )),
        (None, None) => {}
    }
    if let Some(branch) = &report.salvage {
        lines.push(format!("  saved work: {}", plain(branch)));
    }
    lines
}

/// What failed, in a line.
fn reason(report: &StepReport, judged: Option<&JudgedTurn>) -> String {
    // What a command printed before it was ended does not say why.
    if report.ending == StepEnding::Cancelled {
        let stays = FailureClass::LandingNotTakenBack;
        let mut classes = report.failure_classes.iter();
        let is_there = classes.any(|class| class == stays.as_str());
        let rest = is_there.then(|| format!("; {stays}: {}", stays.meaning()));
        let rest = rest.unwrap_or_default();
        return format!("an operator cancelled the attempt{rest}");
    }
    if let Some((said, _)) = &report.said {
        return said.clone();
    }
    let Some(class) = report.failure_classes.first() else {
        return match &report.ending {
            StepEnding::NotBegun => "the attempt did not start".to_owned(),
            StepEnding::Interrupted => "the batch was interrupted during the attempt".to_owned(),
            _ => format!("the attempt ended as {}", report.result_class),
        };
    };
    match class.parse::<FailureClass>() {
        Ok(FailureClass::WorkNoChange) => {
            format!("{class}: the attempt changed nothing; {ALLOWS_NO_CHANGE} allows that")
        }
        Ok(known) => match judged.and_then(|turn| turn.broken_at.as_ref()) {
            Some(place) => format!("{class}: {} {place}", known.meaning()),
            None => format!("{class}: {}", known.meaning()),
        },
        // A word of the command's own.
        Err(_) => format!("{class}: no details recorded"),
    }
}

/// What lets work that changes nothing close its issue.
pub(super) const ALLOWS_NO_CHANGE: &str = "the label no-change of the issue, or on_no_change = \
                                           \"allow\" under [batch] in harness.toml,";

/// Returns whether an issue was closed although nothing was changed for it.
pub(super) fn changed_nothing(report: &StepReport) -> bool {
    report.succeeded() && report.commit.is_none() && report.world.is_none()
}
