//! The diagnosis of a long chain, as a process, beside the parsing of its file.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{Programs, run};
use crate::scratch;
use premath_kernel::issue::Issue;
use std::fs;
use std::path::Path;

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let path = folder.join("chain/issues.jsonl");
    scratch::issues(&path, sizes.large, |number| number.checked_sub(1))?;
    let (mut whole, mut parsing, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..=sizes.runs {
        let (output, diagnosed) = timed(|| {
            let mut premath = programs.command("premath");
            premath.args(["dep", "diagnostics", "--json", "--issues"]);
            run(premath.arg(&path))
        })?;
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        if answer["integrity"]["hasCycle"] != false || answer["neverReady"] != serde_json::json!([])
        {
            return Err(Wrong::because("a chain is diagnosed as something else"));
        }
        let (issues, parsed) = timed(|| parse(&path))?;
        if issues.len() != sizes.large {
            return Err(Wrong::because("the chain does not have its length"));
        }
        if number > 0 {
            whole.push(diagnosed.as_secs_f64());
            parsing.push(parsed.as_secs_f64());
            ratios.push(diagnosed.as_secs_f64() / parsed.as_secs_f64());
        }
    }
    figure::show(
        &format!(
            "dep diagnostics, chain of {}, against reading the rows",
            sizes.large
        ),
        &figure::time(median(whole)),
        &figure::time(median(parsing)),
        median(ratios),
        "< 200 ms at 100000",
    );
    Ok(())
}

/// Reads and parses a file of issues, and does nothing with them.
fn parse(path: &Path) -> Result<Vec<Issue>, Wrong> {
    let text = fs::read_to_string(path)?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(Wrong::from))
        .collect()
}
