//! The dependencies of issues as a drawing: layers from what must be done first,
//! the same for the same issues.

use super::{Head, foreign, issue_address, issue_link, table};
use crate::columns::fitted;
use crate::html::escaped;
use premath_kernel::issue::natural;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most issues that are drawn.
const DRAWN: usize = 300;
/// The most issues in a layer of the drawing.
const ROWS: usize = 60;
/// The most issues that are listed below it.
const LISTED: usize = 500;
const BOX_WIDTH: usize = 200;
const BOX_HEIGHT: usize = 46;
const GAP_X: usize = 48;
const GAP_Y: usize = 14;
const MARGIN: usize = 8;
/// How often the order within layers is improved.
const ROUNDS: usize = 4;
/// The longest id and title that have room.
const ID_MAX: usize = 24;
const TITLE_MAX: usize = 26;

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

/// The issues of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphView {
    /// The issues, in any order.
    pub nodes: Vec<GraphNode>,
    /// How many closed issues are left out, for the others are more than enough.
    pub closed_left_out: usize,
}

/// A node's place: its layer, and its row in the layer.
type Places = Vec<(usize, usize)>;

impl GraphView {
    /// Takes the issues of a store; the closed ones are left out where they are
    /// too many to be drawn.
    pub fn of(mut nodes: Vec<GraphNode>) -> Self {
        nodes.sort_by(|a, b| natural::compare(&a.id, &b.id));
        let mut view = Self {
            nodes,
            closed_left_out: 0,
        };
        if view.nodes.len() > DRAWN {
            let before = view.nodes.len();
            view.nodes.retain(|node| node.state != "closed");
            view.closed_left_out = before - view.nodes.len();
        }
        view
    }

    /// Returns the edges between the issues, as places in the list: from what is
    /// needed to what needs it.
    fn edges(&self) -> Vec<(usize, usize)> {
        let places: BTreeMap<&str, usize> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(place, node)| (node.id.as_str(), place))
            .collect();
        let mut edges = BTreeSet::new();
        for (to, node) in self.nodes.iter().enumerate() {
            let known = node.needs.iter().filter_map(|id| places.get(id.as_str()));
            edges.extend(known.filter(|from| **from != to).map(|from| (*from, to)));
        }
        edges.into_iter().collect()
    }
}

/// Puts each issue one layer behind all that it needs. Issues of a cycle are
/// released by id, so that there is always a drawing.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut missing = vec![0_usize; count];
    let mut after = vec![Vec::new(); count];
    for (from, to) in edges {
        missing[*to] += 1;
        after[*from].push(*to);
    }
    let mut layer = vec![0; count];
    let mut is_placed = vec![false; count];
    let mut free: BTreeSet<usize> = (0..count).filter(|node| missing[*node] == 0).collect();
    for _ in 0..count {
        let next = free.pop_first();
        let next = next.or_else(|| (0..count).find(|node| !is_placed[*node]));
        let Some(node) = next else { break };
        is_placed[node] = true;
        for to in &after[node] {
            if is_placed[*to] {
                continue;
            }
            layer[*to] = layer[*to].max(layer[node] + 1);
            missing[*to] = missing[*to].saturating_sub(1);
            if missing[*to] == 0 {
                free.insert(*to);
            }
        }
    }
    layer
}

/// Finds the place of each issue; within a layer, near what it is joined to.
fn places(count: usize, edges: &[(usize, usize)]) -> Places {
    let layer = layers(count, edges);
    let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, column) in layer.iter().enumerate() {
        columns.entry(*column).or_default().push(node);
    }
    let mut joined = vec![Vec::new(); count];
    for (from, to) in edges {
        joined[*from].push(*to);
        joined[*to].push(*from);
    }
    let mut row = vec![0; count];
    let number = |columns: &BTreeMap<usize, Vec<usize>>, row: &mut Vec<usize>| {
        for nodes in columns.values() {
            for (place, node) in nodes.iter().enumerate() {
                row[*node] = place;
            }
        }
    };
    number(&columns, &mut row);
    for _ in 0..ROUNDS {
        for nodes in columns.values_mut() {
            nodes.sort_by_key(|node| {
                let near = &joined[*node];
                let sum: usize = near.iter().map(|other| row[*other] * 1_000).sum();
                (
                    sum.checked_div(near.len()).unwrap_or(row[*node] * 1_000),
                    *node,
                )
            });
        }
        number(&columns, &mut row);
    }
    // A layer that is too high continues in a column of its own.
    let mut found = vec![(0, 0); count];
    let mut column = 0;
    for nodes in columns.values() {
        for (place, node) in nodes.iter().enumerate() {
            found[*node] = (column + place / ROWS, place % ROWS);
        }
        column += nodes.len().div_ceil(ROWS);
    }
    found
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
    if view.closed_left_out > 0 {
        let _ = writeln!(
            text,
            "<p>{} closed issues are left out.</p>",
            view.closed_left_out
        );
    }
    let edges = view.edges();
    if view.nodes.len() > DRAWN {
        let _ = writeln!(
            text,
            "<p class=\"notice warn\">{} issues are too many for a drawing; at most {DRAWN} are \
            drawn. The list has the first {LISTED} of them.</p>",
            view.nodes.len()
        );
    } else if edges.is_empty() {
        text.push_str("<p>No issue waits for another one.</p>\n");
    } else {
        drawing(view, &edges, &mut text);
    }
    list(view, &mut text);
    text
}

fn drawing(view: &GraphView, edges: &[(usize, usize)], text: &mut String) {
    let places = places(view.nodes.len(), edges);
    let columns = places.iter().map(|place| place.0).max().unwrap_or(0) + 1;
    let rows = places.iter().map(|place| place.1).max().unwrap_or(0) + 1;
    let width = columns * (BOX_WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
    let height = rows * (BOX_HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN;
    let left = |column: usize| MARGIN + column * (BOX_WIDTH + GAP_X);
    let top = |row: usize| MARGIN + row * (BOX_HEIGHT + GAP_Y);
    let _ = writeln!(
        text,
        "<p class=\"faint\">An arrow goes from an issue to one that waits for it. The list below \
        says the same in words.</p>\n\
        <div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of the \
        dependencies\"><svg class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
        {width} {height}\" role=\"group\" aria-label=\"Dependencies of {} issues\">\n\
        <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
        markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>",
        view.nodes.len()
    );
    for (from, to) in edges {
        let (from, to) = (places[*from], places[*to]);
        let (x1, y1) = (left(from.0) + BOX_WIDTH, top(from.1) + BOX_HEIGHT / 2);
        let (x2, y2) = (left(to.0), top(to.1) + BOX_HEIGHT / 2);
        let (c1, c2) = (x1 + GAP_X / 2, x2.saturating_sub(GAP_X / 2));
        let _ = writeln!(
            text,
            "<path class=\"edge\" d=\"M{x1} {y1}C{c1} {y1} {c2} {y2} {x2} {y2}\" \
            marker-end=\"url(#tip)\"/>"
        );
    }
    for (node, place) in view.nodes.iter().zip(&places) {
        let _ = writeln!(
            text,
            "<a href=\"{}\"><title>{}</title><svg x=\"{}\" y=\"{}\" width=\"{BOX_WIDTH}\" \
            height=\"{BOX_HEIGHT}\"><rect class=\"node {}\" x=\"1.5\" y=\"1.5\" width=\"{}\" \
            height=\"{}\" rx=\"6\"/><text class=\"id\" x=\"10\" y=\"19\">{}</text>\
            <text class=\"word\" x=\"{}\" y=\"19\" text-anchor=\"end\">{}</text>\
            <text x=\"10\" y=\"36\">{}</text></svg></a>",
            issue_address(&node.id),
            escaped(&format!("{}: {} ({})", node.id, node.title, node.state)),
            left(place.0),
            top(place.1),
            class(&node.state),
            BOX_WIDTH - 3,
            BOX_HEIGHT - 3,
            escaped(&fitted(&node.id, ID_MAX.saturating_sub(node.state.len()))),
            BOX_WIDTH - 10,
            escaped(&fitted(&node.state, 12)),
            escaped(&fitted(&node.title, TITLE_MAX)),
        );
    }
    text.push_str("</svg></div>\n");
}

/// Returns the class of a state, which the style colours.
fn class(state: &str) -> &'static str {
    match state {
        "closed" => "closed",
        "in progress" => "runs",
        "ready" => "ready",
        "blocked" => "blocked",
        _ => "waits",
    }
}

fn list(view: &GraphView, text: &mut String) {
    const HEADS: [Head; 3] = [("Issue", false), ("State", false), ("Waits for", false)];
    text.push_str("<h2>Issues</h2>\n");
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
            "<p>{} more issues are not listed; <code>premath issue list</code> lists all.</p>",
            view.nodes.len() - LISTED
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, needs: &[&str]) -> GraphNode {
        GraphNode {
            id: id.to_owned(),
            title: format!("<b>{id}</b>"),
            state: "open".to_owned(),
            needs: needs.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    #[test]
    fn an_issue_is_drawn_behind_all_that_it_needs() {
        let view = GraphView::of(vec![
            node("d", &["b", "c", "gone"]),
            node("b", &["a"]),
            node("c", &[]),
            node("a", &[]),
        ]);
        let edges = view.edges();
        let found = places(view.nodes.len(), &edges);
        let layer: Vec<usize> = found.iter().map(|place| place.0).collect();
        assert_eq!(layer, [0, 1, 0, 2]);
        for (from, to) in edges {
            assert!(found[from].0 < found[to].0);
        }
    }

    #[test]
    fn the_drawing_is_the_same_for_the_same_issues_and_has_no_foreign_markup() {
        let nodes = vec![node("a", &[]), node("b", &["a"]), node("c", &["a"])];
        let mut turned = nodes.clone();
        turned.reverse();
        let drawn = graph(&GraphView::of(nodes));
        assert_eq!(drawn, graph(&GraphView::of(turned)));
        assert!(drawn.contains("<svg") && !drawn.contains("<b>"), "{drawn}");
    }

    #[test]
    fn a_cycle_is_drawn_and_too_many_issues_are_listed_in_words() {
        let cycle = vec![node("a", &["b"]), node("b", &["a"]), node("c", &["b"])];
        assert!(graph(&GraphView::of(cycle)).contains("<svg"));
        let many = (0..=DRAWN).map(|n| node(&n.to_string(), &["0"]));
        let text = graph(&GraphView::of(many.collect()));
        assert!(
            !text.contains("<svg") && text.contains("too many"),
            "{text}"
        );
    }
}
