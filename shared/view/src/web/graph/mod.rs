//! The dependencies of issues as a drawing and as a list: layers from what must be
//! done first, the same for the same issues.

mod drawing;
mod heights;
mod label;
mod layers;
mod layout;
mod order;

#[cfg(test)]
mod tests;

use super::{Head, foreign, issue_link, table};
use crate::html::escaped;
use layers::{Edge, Forward};
use premath_kernel::issue::natural;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most issues that are drawn.
const DRAWN: usize = 300;
/// The most issues that are listed below it.
const LISTED: usize = 500;

/// An issue of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its status, as `ready` where a lane can be given it now.
    pub state: String,
    /// The issues that it waits for, or waited for.
    pub needs: Vec<String>,
}

impl GraphNode {
    fn is_closed(&self) -> bool {
        self.state == "closed"
    }
}

/// The issues of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphView {
    /// The issues, sorted.
    nodes: Vec<GraphNode>,
    /// How many closed issues are left out, for the others are more than enough.
    closed_left_out: usize,
}

impl GraphView {
    /// Takes the issues of a store; the closed ones are left out where they are
    /// too many to be listed.
    pub fn of(mut nodes: Vec<GraphNode>) -> Self {
        nodes.sort_by(|a, b| natural::compare(&a.id, &b.id));
        let all = nodes.len();
        if all > LISTED {
            nodes.retain(|node| !node.is_closed());
        }
        Self {
            closed_left_out: all - nodes.len(),
            nodes,
        }
    }
}

/// The issues that are drawn, and what is left out of the drawing.
#[derive(Default)]
struct Drawn<'a> {
    nodes: Vec<&'a GraphNode>,
    /// From what is needed to what needs it, sorted.
    edges: Vec<Edge>,
    /// How many issues are closed, have no edge, come last.
    closed: usize,
    lone: usize,
    last: usize,
}

impl<'a> Drawn<'a> {
    /// Chooses issues: those with dependencies; of too many, those that are not closed;
    /// of too many, those that come first.
    fn of(nodes: &'a [GraphNode]) -> Self {
        let mut drawn = Self {
            nodes: nodes.iter().collect(),
            ..Self::default()
        };
        drawn.joined();
        if drawn.nodes.len() > DRAWN {
            let before = drawn.nodes.len();
            drawn.nodes.retain(|node| !node.is_closed());
            drawn.closed = before - drawn.nodes.len();
            drawn.joined();
        }
        if drawn.nodes.len() > DRAWN {
            let first = drawn.first();
            drawn.last = drawn.nodes.len() - first.len();
            drawn.nodes = first.into_iter().map(|place| drawn.nodes[place]).collect();
            drawn.joined();
        }
        drawn
    }

    /// Returns the issues of the edges that lead to what can be done first, as many as
    /// are drawn.
    fn first(&self) -> BTreeSet<usize> {
        let forward = Forward::of(self.nodes.len(), &self.edges);
        let mut rank = vec![0; self.nodes.len()];
        for (at, node) in forward.order.iter().enumerate() {
            rank[*node] = at;
        }
        let mut edges = forward.edges;
        edges.sort_by_key(|((from, to), _)| (rank[*to], rank[*from]));
        let mut first = BTreeSet::new();
        for ((from, to), _) in edges {
            let new = [from, to]
                .iter()
                .filter(|node| !first.contains(*node))
                .count();
            if first.len() + new <= DRAWN {
                first.extend([from, to]);
            }
        }
        first
    }

    /// Finds the edges, and leaves issues without one out.
    fn joined(&mut self) {
        let edges = edges(&self.nodes);
        let has_edge: BTreeSet<usize> = edges.iter().flat_map(|edge| [edge.0, edge.1]).collect();
        self.lone += self.nodes.len() - has_edge.len();
        self.nodes = has_edge
            .into_iter()
            .map(|place| self.nodes[place])
            .collect();
        self.edges = self::edges(&self.nodes);
    }
}

/// Returns the edges between issues, as places in the list: from what is needed to
/// what needs it.
fn edges(nodes: &[&GraphNode]) -> Vec<Edge> {
    let places: BTreeMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(place, node)| (node.id.as_str(), place))
        .collect();
    let mut edges = BTreeSet::new();
    for (to, node) in nodes.iter().enumerate() {
        let known = node.needs.iter().filter_map(|id| places.get(id.as_str()));
        edges.extend(known.filter(|from| **from != to).map(|from| (*from, to)));
    }
    edges.into_iter().collect()
}

/// Writes the content of the page of the graph.
pub fn graph(view: &GraphView) -> String {
    let mut text = String::new();
    if view.nodes.is_empty() {
        text.push_str(match view.closed_left_out {
            0 => "<p class=\"empty\">The issue store has no issues.</p>\n",
            _ => "<p class=\"empty\">All issues are closed.</p>\n",
        });
        return text;
    }
    let drawn = Drawn::of(&view.nodes);
    match drawn.edges.is_empty() {
        true => text.push_str("<p class=\"empty\">No issue waits for another one.</p>\n"),
        false => figure(view, &drawn, &mut text),
    }
    list(view, &mut text);
    text
}

/// Writes the drawing, below the words that it needs.
fn figure(view: &GraphView, drawn: &Drawn<'_>, text: &mut String) {
    let is_closed = |place: usize| drawn.nodes[place].is_closed();
    let layout = layout::layout(drawn.nodes.len(), &drawn.edges, &is_closed);
    text.push_str(
        "<p class=\"faint\">An arrow goes from an issue to one that waits for it. The list below \
        says the same in words.</p>\n",
    );
    if layout.lines.iter().any(|line| line.is_turned) {
        text.push_str(
            "<p class=\"notice warn\">Issues wait for each other: a dashed arrow closes a \
            cycle.</p>\n",
        );
    }
    let closed = drawn.closed + view.closed_left_out;
    let left_out: Vec<String> = [
        number(
            drawn.lone,
            "issue that no arrow joins",
            "issues that no arrow joins",
        ),
        number(closed, "closed issue", "closed issues"),
        number(drawn.last, "issue that comes last", "issues that come last"),
        number(
            layout.left_out,
            "arrow, the longest one",
            "arrows, the longest ones",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !left_out.is_empty() {
        let _ = writeln!(text, "<p>Not drawn: {}.</p>", left_out.join("; "));
    }
    drawing::drawing(drawn, &layout, text);
}

fn number(count: usize, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    }
}

fn list(view: &GraphView, text: &mut String) {
    const HEADS: [Head; 3] = [("Issue", false), ("State", false), ("Waits for", false)];
    text.push_str("<h2>Issues</h2>\n");
    if let Some(closed) = number(view.closed_left_out, "closed issue", "closed issues") {
        let _ = writeln!(text, "<p>Not listed: {closed}.</p>");
    }
    let rows: Vec<Vec<String>> = view
        .nodes
        .iter()
        .take(LISTED)
        .map(|node| {
            let needs = node.needs.iter();
            let needs: Vec<String> = needs.map(|id| issue_link(id)).collect();
            vec![
                format!("{} {}", issue_link(&node.id), foreign(&node.title)),
                escaped(&node.state),
                match needs.is_empty() {
                    true => "nothing".to_owned(),
                    false => needs.join(", "),
                },
            ]
        })
        .collect();
    table("Issues and what they wait for", &HEADS, &rows, text);
    if view.nodes.len() > LISTED {
        let _ = writeln!(
            text,
            "<p>Not listed: {} more issues; <code>premath issue list</code> lists all.</p>",
            view.nodes.len() - LISTED
        );
    }
}
