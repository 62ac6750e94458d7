//! The page that shows what was measured: tables, plots and the machine.

use crate::figure::{self, Wrong};
use crate::plot::Plot;
use crate::programs::Programs;
use std::fs;
use std::path::Path;

const HEAD: &str = "# Benchmarks

What the harness costs, measured on one machine in one run. `mise run bench-report` writes this page.

- A figure with a baseline is compared with it in the same run: the baseline does the same work with a plain tool (`xargs`, git, an append with `fdatasync`, SHA-256).
- The ratio is the figure divided by the baseline. For times, less is better; for rates, more.
- Ratios may be compared between machines. Times may not.
- Targets are goals; a miss is a known gap.
";

/// Has the other benchmarks measure, and writes the page with its plots into a
/// folder.
pub(crate) fn write(
    folder: &Path,
    programs: &Programs,
    length: Option<&str>,
    plots: &[Plot],
) -> Result<(), Wrong> {
    fs::create_dir_all(folder)?;
    let mut text = HEAD.to_owned();
    if length.is_some() {
        text += "- This is the short form, with small sizes.\n";
    }
    text += &figure::table();
    let tables = tempfile::tempdir()?;
    for name in ["premath-bench-gate", "premath-bench-stream"] {
        let file = tables.path().join(name);
        let mut bench = programs.command(name);
        let status = bench.args(length).env(figure::TABLE, &file).status()?;
        if !status.success() {
            return Err(Wrong::because(format!("{name} failed")));
        }
        text += &fs::read_to_string(file)?;
    }
    text += "\n## Scaling\n";
    for plot in plots {
        plot.draw(folder)?;
        text += &plot.section();
    }
    Ok(fs::write(folder.join("index.md"), text)?)
}
