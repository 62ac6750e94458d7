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
    let mut check = crate::command("bash");
    let check = check.arg("-n").arg(root.join(FILE)).stderr(Stdio::piped());
    let checked = check.output().expect("bash can be started");
    if !checked.status.success() {
        let said = String::from_utf8_lossy(&checked.stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        fault(
            0,
            format!(
                "bash cannot read it: {}",
                said.rsplit(": ").next().unwrap_or_default()
            ),
        );
    }
    let said: Vec<String> = text
        .lines()
        .find_map(|line| line.strip_prefix("# Steps: "))
        .map(|steps| {
            steps
                .trim_end_matches('.')
                .split(", ")
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
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
