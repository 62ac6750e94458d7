//! `ci-pipeline-test`: `.ci/run` is made of the steps that it says.

use super::{Fault, text_of};
use std::path::Path;
use std::process::Stdio;

const FILE: &str = ".ci/run";

/// Checks the script of a checkout.
///
/// # Panics
///
/// Where bash cannot be started.
pub fn faults(root: &Path) -> Vec<Fault> {
    let text = text_of(root, FILE);
    let mut faults = Vec::new();
    let mut fault = |line: usize, detail: String| faults.push(Fault::at(FILE, line, detail));
    if !text.starts_with("#!/usr/bin/env bash\n") {
        fault(1, "it does not begin with `#!/usr/bin/env bash`".to_owned());
    }
    if !text.lines().any(|line| line == "set -euo pipefail") {
        fault(
            0,
            "it continues after a step that failed: no `set -euo pipefail`".to_owned(),
        );
    }
    if let Some(said) = refusal_of_bash(root) {
        fault(0, format!("bash cannot read it: {said}"));
    }
    let found = steps(&text, &mut fault);
    let said = announced(&text);
    if said.is_empty() {
        fault(
            0,
            "it does not say its steps: no line `# Steps: …`".to_owned(),
        );
    } else if said != found {
        fault(
            0,
            format!(
                "it says the steps {}, and has {}",
                said.join(", "),
                found.join(", ")
            ),
        );
    }
    faults
}

/// Returns what bash reports about a script that it cannot read.
fn refusal_of_bash(root: &Path) -> Option<String> {
    let mut check = crate::command("bash");
    let check = check.arg("-n").arg(root.join(FILE)).stderr(Stdio::piped());
    let checked = check.output().expect("bash can be started");
    if checked.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&checked.stderr);
    let said = said.lines().next().unwrap_or_default();
    Some(said.rsplit(": ").next().unwrap_or_default().to_owned())
}

/// Returns the steps that the script says it has.
fn announced(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let steps = lines.find_map(|line| line.strip_prefix("# Steps: "));
    let steps = steps.map(|steps| steps.trim_end_matches('.').split(", "));
    steps.into_iter().flatten().map(str::to_owned).collect()
}

/// Returns the steps that the script has. Each has a command, and its failure
/// ends the script.
fn steps(text: &str, fault: &mut impl FnMut(usize, String)) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut commands = 1;
    for (number, line) in text.lines().enumerate() {
        let ignores = ["|| true", "|| :", "; true"];
        if ignores.iter().any(|end| line.trim_end().ends_with(end)) {
            fault(number + 1, "a failure is skipped".to_owned());
        }
        match line.strip_prefix("step ") {
            Some(step) => {
                if commands == 0 {
                    fault(number, "a step without a command".to_owned());
                }
                commands = 0;
                found.push(step.trim().to_owned());
            }
            None if !line.trim().is_empty() && !line.starts_with('#') => commands += 1,
            None => {}
        }
    }
    if commands == 0 {
        fault(text.lines().count(), "a step without a command".to_owned());
    }
    found
}
