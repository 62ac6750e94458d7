//! `dep_diagnostics`: whether the graph can end (HARNESS-RUNTIME 3.1).
//!
//! Cycles are looked for over what really holds. An ancestor's holds reach all
//! of its descendants; to stay linear each parent gets a second vertex, its
//! *gate*: a child waits for its parents' gates, a gate waits for what holds
//! the parent from outside its subtree and for the gates above it.

use super::{IssueGraph, Node, NodeIndex, Presence};
use crate::issue::{Dependency, EdgeKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Which issues are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those that are not terminal.
    Active,
    /// All issues.
    Full,
}

/// An edge between two issues.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The issue that has the edge.
    pub issue_id: Arc<str>,
    /// The issue that it points to.
    pub depends_on_id: Arc<str>,
}

/// A duplicate edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DuplicateEdge {
    /// The edge.
    #[serde(flatten)]
    pub edge: Edge,
    /// The word of the dependency's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many times it occurs.
    pub count: usize,
}

/// What the graph's integrity is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Whether anything waits for itself.
    pub has_cycle: bool,
    /// One shortest cycle through the smallest member, the first id again at
    /// the end.
    pub cycle_path: Option<Vec<Arc<str>>>,
    /// Every cycle as its strongly connected component, smallest id first.
    pub cycles: Vec<Vec<Arc<str>>>,
    /// Edges that hold and whose target does not exist.
    pub dangling: Vec<Edge>,
    /// Issues with an edge to themselves.
    pub self_loops: Vec<Arc<str>>,
    /// Edges that stand more than once.
    pub duplicate_edges: Vec<DuplicateEdge>,
    /// Active issues that wait, directly or not, for a cycle or a missing
    /// issue.
    pub never_ready: Vec<Arc<str>>,
}

/// What the edges of the issues in a scope show.
#[derive(Default)]
struct Edges {
    dangling: BTreeSet<Edge>,
    self_loops: BTreeSet<Arc<str>>,
    duplicates: Vec<DuplicateEdge>,
    /// What waits for a missing issue.
    stuck: BTreeSet<Vertex>,
}

/// A vertex of the waiting graph: issue `n` is `2n`, its gate `2n + 1`.
type Vertex = usize;

const fn issue_vertex(node: NodeIndex) -> Vertex {
    node as usize * 2
}

const fn gate_vertex(node: NodeIndex) -> Vertex {
    node as usize * 2 + 1
}

const fn node_of(vertex: Vertex) -> Option<NodeIndex> {
    if vertex.is_multiple_of(2) {
        Some((vertex / 2) as NodeIndex)
    } else {
        None
    }
}

impl IssueGraph {
    /// Diagnoses the graph in time linear in its edges, times the depth of
    /// the tree.
    pub fn diagnose(&self, scope: Scope) -> Diagnosis {
        let waits = self.waiting_graph(scope);
        let cycles = self.cycles_of(&waits);
        let cycle_path = cycles
            .first()
            .map(|cycle| self.shortest_cycle(&waits, cycle));
        let mut edges = self.edges_in(scope);
        let stuck_in_cycles = cycles.iter().flatten().map(|node| issue_vertex(*node));
        edges.stuck.extend(stuck_in_cycles);
        let ids = |cycle: Vec<NodeIndex>| {
            let id = |node: NodeIndex| self.nodes[node as usize].id.clone();
            cycle.into_iter().map(id).collect()
        };
        Diagnosis {
            has_cycle: !cycles.is_empty(),
            cycle_path,
            never_ready: self.waiting_for(&waits, edges.stuck),
            cycles: cycles.into_iter().map(ids).collect(),
            dangling: edges.dangling.into_iter().collect(),
            self_loops: edges.self_loops.into_iter().collect(),
            duplicate_edges: edges.duplicates,
        }
    }

    /// Returns the issues of each cycle, each sorted by id, by their first one.
    fn cycles_of(&self, waits: &[Vec<Vertex>]) -> Vec<Vec<NodeIndex>> {
        let id = |node: NodeIndex| &self.nodes[node as usize].id;
        let mut cycles: Vec<Vec<NodeIndex>> = components(waits)
            .into_iter()
            .map(|component| component.into_iter().filter_map(node_of).collect())
            .filter(|nodes: &Vec<NodeIndex>| !nodes.is_empty())
            .collect();
        for cycle in &mut cycles {
            cycle.sort_by(|a, b| id(*a).cmp(id(*b)));
        }
        cycles.sort_by(|a, b| id(a[0]).cmp(id(b[0])));
        cycles
    }

    /// Looks at every edge of the issues in a scope.
    fn edges_in(&self, scope: Scope) -> Edges {
        let mut found = Edges::default();
        for (index, node) in self.nodes.iter().enumerate() {
            if !in_scope(node.state, scope) {
                continue;
            }
            for edge in node.edges.iter() {
                let holds = !matches!(edge.kind, EdgeKind::Informs(_));
                if holds && *edge.depends_on == *node.id {
                    found.self_loops.insert(node.id.clone());
                }
                let missing = self
                    .index
                    .get(&*edge.depends_on)
                    .is_some_and(|t| self.nodes[*t as usize].state == Presence::Missing);
                if missing && holds {
                    if matches!(edge.kind, EdgeKind::Holds(_)) {
                        found.stuck.insert(issue_vertex(index as NodeIndex));
                        if node.holds_subtree {
                            found.stuck.insert(gate_vertex(index as NodeIndex));
                        }
                    }
                    found.dangling.insert(edge_of(node, edge));
                }
            }
            found.duplicates.extend(duplicates_of(node));
        }
        found.duplicates.sort();
        found
    }

    /// Returns, vertex by vertex, what it waits for.
    fn waiting_graph(&self, scope: Scope) -> Vec<Vec<Vertex>> {
        let counts = |node: NodeIndex| in_scope(self.nodes[node as usize].state, scope);
        let mut waits = vec![Vec::new(); self.nodes.len() * 2];
        for index in 0..self.nodes.len() as NodeIndex {
            if !counts(index) {
                continue;
            }
            let node = &self.nodes[index as usize];
            let mut issue: Vec<Vertex> = node
                .holds_on
                .iter()
                .chain(&node.children)
                .copied()
                .filter(|target| counts(*target))
                .map(issue_vertex)
                .collect();
            issue.extend(node.parents.iter().map(|parent| gate_vertex(*parent)));
            waits[issue_vertex(index)] = issue;
        }
        // Gates of parents that are over still pass on what holds those above.
        for index in 0..self.nodes.len() as NodeIndex {
            let node = &self.nodes[index as usize];
            if node.children.is_empty() {
                continue;
            }
            let mut gate: Vec<Vertex> = Vec::new();
            if counts(index) {
                gate.extend(
                    node.holds_on
                        .iter()
                        .copied()
                        .filter(|target| counts(*target) && !self.is_within(*target, index))
                        .map(issue_vertex),
                );
            }
            gate.extend(node.parents.iter().map(|parent| gate_vertex(*parent)));
            waits[gate_vertex(index)] = gate;
        }
        waits
    }

    /// Returns a shortest cycle through the first node, by ids.
    fn shortest_cycle(&self, waits: &[Vec<Vertex>], cycle: &[NodeIndex]) -> Vec<Arc<str>> {
        let start = issue_vertex(cycle[0]);
        let mut from: BTreeMap<Vertex, Vertex> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        'search: while let Some(vertex) = queue.pop_front() {
            let mut targets = waits[vertex].clone();
            targets.sort_by(|a, b| {
                let key = |v: &Vertex| (&self.nodes[v / 2].id, v % 2);
                key(a).cmp(&key(b))
            });
            for target in targets {
                if target == start {
                    from.insert(start, vertex);
                    break 'search;
                }
                if let Entry::Vacant(entry) = from.entry(target) {
                    entry.insert(vertex);
                    queue.push_back(target);
                }
            }
        }
        let mut path = vec![start];
        let mut vertex = start;
        while let Some(&before) = from.get(&vertex) {
            path.push(before);
            if before == start {
                break;
            }
            vertex = before;
        }
        path.reverse();
        path.into_iter()
            .filter_map(node_of)
            .map(|node| self.nodes[node as usize].id.clone())
            .collect()
    }

    /// Returns the active issues that are stuck or wait for one that is.
    fn waiting_for(&self, waits: &[Vec<Vertex>], stuck: BTreeSet<Vertex>) -> Vec<Arc<str>> {
        if stuck.is_empty() {
            return Vec::new();
        }
        let mut waited_on = vec![Vec::new(); waits.len()];
        for (vertex, targets) in waits.iter().enumerate() {
            for target in targets {
                waited_on[*target].push(vertex);
            }
        }
        let mut reached = vec![false; waits.len()];
        let mut stack: Vec<Vertex> = stuck.into_iter().collect();
        while let Some(vertex) = stack.pop() {
            if !std::mem::replace(&mut reached[vertex], true) {
                stack.extend(&waited_on[vertex]);
            }
        }
        self.ids(
            reached
                .iter()
                .enumerate()
                .filter(|(_, reached)| **reached)
                .filter_map(|(vertex, _)| node_of(vertex))
                .filter(|node| self.nodes[*node as usize].state.is_active()),
        )
    }
}

fn edge_of(node: &Node, edge: &Dependency) -> Edge {
    Edge {
        issue_id: node.id.clone(),
        depends_on_id: Arc::from(&*edge.depends_on),
    }
}

/// Returns the edges that an issue has more than once.
fn duplicates_of(node: &Node) -> Vec<DuplicateEdge> {
    if node.edges.len() < 2 {
        return Vec::new();
    }
    let mut edges: Vec<&Dependency> = node.edges.iter().collect();
    edges.sort();
    edges
        .chunk_by(|a, b| a.depends_on == b.depends_on && a.kind.as_str() == b.kind.as_str())
        .filter(|same| same.len() > 1)
        .map(|same| DuplicateEdge {
            edge: edge_of(node, same[0]),
            kind: same[0].kind.as_str().to_owned(),
            count: same.len(),
        })
        .collect()
}

const fn in_scope(state: Presence, scope: Scope) -> bool {
    match scope {
        Scope::Active => state.is_active(),
        Scope::Full => !matches!(state, Presence::Missing),
    }
}

/// Returns the strongly connected components that have an edge inside
/// (Tarjan's algorithm, without recursion: chains are as long as the graph).
fn components(edges: &[Vec<Vertex>]) -> Vec<Vec<Vertex>> {
    const UNSEEN: usize = usize::MAX;
    let mut order = vec![UNSEEN; edges.len()];
    let mut low = vec![0usize; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let mut stack = Vec::new();
    let mut found = Vec::new();
    let mut next = 0;
    let mut calls: Vec<(Vertex, usize)> = Vec::new();
    for root in 0..edges.len() {
        if order[root] != UNSEEN || edges[root].is_empty() {
            continue;
        }
        calls.push((root, 0));
        while let Some((vertex, edge)) = calls.pop() {
            if edge == 0 {
                order[vertex] = next;
                low[vertex] = next;
                next += 1;
                stack.push(vertex);
                on_stack[vertex] = true;
            }
            if let Some(&target) = edges[vertex].get(edge) {
                calls.push((vertex, edge + 1));
                if order[target] == UNSEEN {
                    calls.push((target, 0));
                } else if on_stack[target] {
                    low[vertex] = low[vertex].min(order[target]);
                }
                continue;
            }
            if stack.last() == Some(&vertex)
                && low[vertex] == order[vertex]
                && !edges[vertex].contains(&vertex)
            {
                stack.pop();
                on_stack[vertex] = false;
            } else if low[vertex] == order[vertex] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == vertex {
                        break;
                    }
                }
                found.push(component);
            }
            if let Some((parent, _)) = calls.last() {
                low[*parent] = low[*parent].min(low[vertex]);
            }
        }
    }
    found
}
