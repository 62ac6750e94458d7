//! What all pages have: the head, the navigation, the landmarks.

use crate::html::escaped;
use std::fmt::Write;

/// A page of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// How the batch is.
    Overview,
    /// The dependencies of issues.
    Graph,
    /// The run log.
    Log,
    /// The report.
    Report,
    /// Any other.
    Elsewhere,
}

const PLACES: [(Place, &str, &str); 4] = [
    (Place::Overview, "/", "Overview"),
    (Place::Graph, "/graph", "Dependencies"),
    (Place::Log, "/log", "Run log"),
    (Place::Report, "/report", "Report"),
];

/// The sign of the page in a browser's tab.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 \
                    16'%3E%3Crect width='16' height='16' rx='4' fill='%230969da'/%3E%3Cpath d='M4 \
                    5h8M4 8h5M4 11h7' stroke='white' stroke-width='1.6' \
                    stroke-linecap='round'/%3E%3C/svg%3E";

/// A page and its content.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Which one it is.
    pub place: Place,
    /// Its title, as text.
    pub title: &'a str,
    /// The repository that is shown, as text.
    pub repository: &'a str,
    /// Its content below the first heading, as HTML.
    pub content: &'a str,
    /// Whether it is kept up to date.
    pub is_live: bool,
}

/// Writes a page.
pub fn page(page: &Page<'_>) -> String {
    let (title, repository) = (escaped(page.title), escaped(page.repository));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"color-scheme\" content=\"light dark\">\n\
        <link rel=\"icon\" href=\"{ICON}\">\n\
        <link rel=\"stylesheet\" href=\"/page.css\">\n<script src=\"/page.js\" defer></script>\n\
        <title>{title} · {repository}</title>\n</head>\n<body>\n\
        <a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
        <header class=\"bar\">\n<p class=\"brand\">{repository}</p>\n<nav aria-label=\"Pages\"><ul>\n"
    );
    for (place, address, name) in PLACES {
        let here = match place == page.place {
            true => " aria-current=\"page\"",
            false => "",
        };
        let _ = writeln!(text, "<li><a href=\"{address}\"{here}>{name}</a></li>");
    }
    text.push_str("</ul></nav>\n");
    if page.is_live {
        text.push_str(
            "<p class=\"link\" id=\"link\">not live: this page does not change by \
             itself</p>\n",
        );
    }
    let _ = write!(
        text,
        "</header>\n<main id=\"main\" tabindex=\"-1\">\n<h1>{title}</h1>\n{}</main>\n</body>\n</html>\n",
        page.content
    );
    text
}

/// Writes the content of a page that says one thing.
pub fn message(lines: &[&str]) -> String {
    let lines = lines.iter();
    lines
        .map(|line| format!("<p>{}</p>\n", escaped(line)))
        .collect()
}
