//! The drawing as SVG.

use super::heights::BOX_HEIGHT;
use super::label::Font;
use super::layout::{BOX_WIDTH, Layout, Line};
use super::{Drawn, GraphNode};
use crate::html::escaped;
use crate::web::issue_address;
use std::fmt::Write;

/// The space between the border of a box and its text.
const INSET: usize = 10;
const ROOM: usize = BOX_WIDTH.unsigned_abs() as usize - 2 * INSET;
const ID: Font = Font {
    size: 13,
    is_bold: true,
};
const TITLE: Font = Font {
    size: 13,
    is_bold: false,
};
const STATE: Font = Font {
    size: 11,
    is_bold: false,
};
/// The least room of an id beside a state.
const ID_ROOM: usize = 90;

/// Writes the drawing of issues.
pub(super) fn drawing(drawn: &Drawn<'_>, layout: &Layout, text: &mut String) {
    let (width, height) = (layout.width, layout.height);
    let _ = writeln!(
        text,
        "<div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of the \
        dependencies\"><svg class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
        {width} {height}\" role=\"group\" aria-label=\"Dependencies of {} issues\">\n\
        <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
        markerUnits=\"userSpaceOnUse\" markerWidth=\"9\" markerHeight=\"9\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>",
        drawn.nodes.len()
    );
    for line in &layout.lines {
        let class = if line.is_turned {
            "edge turned"
        } else {
            "edge"
        };
        let _ = writeln!(
            text,
            "<path class=\"{class}\" d=\"{}\" marker-end=\"url(#tip)\"/>",
            path(line)
        );
    }
    for (node, (left, top)) in drawn.nodes.iter().zip(&layout.boxes) {
        text.push_str(&boxed(node, *left, *top));
    }
    text.push_str("</svg></div>\n");
}

/// Writes a line as the data of a path that ends at the head of the arrow.
fn path(line: &Line) -> String {
    let mut bends = line.bends.clone();
    if line.is_turned {
        bends.reverse();
        bends = bends.into_iter().map(|(from, to)| (to, from)).collect();
    }
    let mut path = String::new();
    for (place, ((x1, y1), (x2, y2))) in bends.into_iter().enumerate() {
        let _ = match place {
            0 => write!(path, "M{x1} {y1}"),
            _ => write!(path, "H{x1}"),
        };
        let _ = match y1 == y2 {
            true => write!(path, "H{x2}"),
            false => {
                let middle = i64::midpoint(x1, x2);
                write!(path, "C{middle} {y1} {middle} {y2} {x2} {y2}")
            }
        };
    }
    path
}

fn boxed(node: &GraphNode, left: i64, top: i64) -> String {
    let state = STATE.fitted(&node.state, ROOM - ID_ROOM);
    let [first, second] = TITLE.on_two_lines(&node.title, ROOM);
    let id_room = ROOM - STATE.room(&state) - INSET;
    format!(
        "<a href=\"{}\"><title>{}</title><svg x=\"{left}\" y=\"{top}\" width=\"{BOX_WIDTH}\" \
        height=\"{BOX_HEIGHT}\"><rect class=\"node {}\" x=\"1\" y=\"1\" width=\"{}\" \
        height=\"{}\" rx=\"6\"/><text class=\"id\" x=\"{INSET}\" y=\"19\">{}</text>\
        <text class=\"word\" x=\"{}\" y=\"19\" text-anchor=\"end\">{}</text>\
        {}{}</svg></a>\n",
        issue_address(&node.id),
        escaped(&format!("{}: {} ({})", node.id, node.title, node.state)),
        class(&node.state),
        BOX_WIDTH - 2,
        BOX_HEIGHT - 2,
        escaped(&ID.fitted(&node.id, id_room)),
        INSET + ROOM,
        escaped(&state),
        line(36, &first),
        line(52, &second),
    )
}

fn line(y: usize, text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("<text x=\"{INSET}\" y=\"{y}\">{}</text>", escaped(text)),
    }
}

/// Returns the class of a state, which has a border of its own.
fn class(state: &str) -> &'static str {
    match state {
        "closed" => "closed",
        "in progress" => "runs",
        "ready" => "ready",
        "blocked" => "blocked",
        _ => "waits",
    }
}
