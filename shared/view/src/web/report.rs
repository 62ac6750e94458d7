//! The report in the page.

use crate::report::page::title;
use crate::report::{Reader, ReportView};

/// Returns the title of a report.
pub fn report_title(report: &ReportView) -> String {
    title(report)
}

/// Writes the content of the page of a report: that of the HTML report.
pub fn report(report: &ReportView, reader: &Reader) -> String {
    let mut text = String::new();
    crate::report::html::content(report, reader, &mut text);
    text
}
