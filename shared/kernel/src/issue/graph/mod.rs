//! The dependency graph: what is ready, what holds what, and whether it can
//! ever end (`contracts.md` 3).
//!
//! Readiness is kept up to date edge by edge: a change of one issue costs its
//! own edges and, where a parent's hold begins or ends, its subtree.

mod diagnosis;

pub use diagnosis::{Diagnosis, DuplicateEdge, Edge, Scope};

use crate::issue::{Dependency, EdgeKind, Issue, Status};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// A node's place in the graph.
type NodeIndex = u32;

/// The graph over all issues, and their ready frontier.
#[derive(Debug, Default)]
pub struct IssueGraph {
    /// Looked up, never iterated: its order reaches no output.
    index: HashMap<Arc<str>, NodeIndex>,
    nodes: Vec<Node>,
    ready: BTreeSet<(i64, Arc<str>)>,
    /// Counts changes after which a diagnosis may come out otherwise.
    revision: u64,
}

#[derive(Debug)]
struct Node {
    id: Arc<str>,
    state: Presence,
    priority: i64,
    edges: Arc<[Dependency]>,
    /// Targets of edges that hold, each once.
    holds_on: Vec<NodeIndex>,
    /// Issues that this one holds.
    held: Vec<NodeIndex>,
    parents: Vec<NodeIndex>,
    children: Vec<NodeIndex>,
    /// How many of `holds_on` are not terminal.
    open_holds: u32,
    /// How many of `children` are not terminal.
    open_children: u32,
    /// Whether something outside its subtree holds it, which holds the subtree.
    holds_subtree: bool,
    is_ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Named by an edge, but there is no row.
    Missing,
    Open,
    /// Neither open nor terminal.
    Busy,
    Terminal,
}

impl Presence {
    const fn of(status: &Status) -> Self {
        match status {
            Status::Open => Self::Open,
            Status::Closed | Status::Tombstone => Self::Terminal,
            Status::InProgress | Status::Blocked | Status::Other(_) => Self::Busy,
        }
    }

    /// Whether an issue that waits for this one still waits.
    const fn holds_others(self) -> bool {
        !matches!(self, Self::Terminal)
    }

    const fn is_active(self) -> bool {
        matches!(self, Self::Open | Self::Busy)
    }
}

/// What holds an issue back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// An edge to an issue that is not terminal.
    On(Arc<str>),
    /// An edge to an issue that does not exist.
    OnMissing(Arc<str>),
    /// A child that is not terminal.
    Child(Arc<str>),
    /// An ancestor that is held from outside its own subtree.
    Ancestor(Arc<str>),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On(id) => f.write_str(id),
            Self::OnMissing(id) => write!(f, "{id} (missing)"),
            Self::Child(id) => write!(f, "{id} (child)"),
            Self::Ancestor(id) => write!(f, "{id} (ancestor)"),
        }
    }
}

impl IssueGraph {
    /// Builds the graph of all issues at once, in time linear in their edges
    /// (times the depth of the tree for the ancestors' holds).
    pub fn build<'a>(issues: impl IntoIterator<Item = &'a Issue>) -> Self {
        let issues = issues.into_iter();
        let mut graph = Self::default();
        graph.index.reserve(issues.size_hint().0);
        graph.nodes.reserve(issues.size_hint().0);
        for issue in issues {
            let node = graph.node(&issue.id);
            graph.set_row(node, issue);
        }
        graph.rebuild();
        graph
    }

    /// Takes over an issue's new row.
    pub fn upsert(&mut self, issue: &Issue) {
        let node = self.node(&issue.id);
        let old = &self.nodes[node as usize];
        let (was, priority) = (old.state, old.priority);
        let same_edges = old.edges == issue.dependencies;
        if same_edges && was == Presence::of(&issue.status) && priority == issue.priority {
            return;
        }
        if !same_edges {
            let moves_tree = old
                .edges
                .iter()
                .chain(issue.dependencies.iter())
                .any(|edge| edge.kind == EdgeKind::ParentChild);
            self.revision += 1;
            self.unlink(node);
            self.set_row(node, issue);
            if moves_tree {
                self.rebuild();
                return;
            }
            self.recount(node);
        } else {
            self.withdraw(node);
            let entry = &mut self.nodes[node as usize];
            entry.state = Presence::of(&issue.status);
            entry.priority = issue.priority;
        }
        self.recompute_subtree_hold(node);
        self.propagate(node, was);
        self.recheck(node);
        // An issue that ends can break a cycle and never make one.
        if !self.nodes[node as usize].state.is_active() {
            self.revision += u64::from(was.is_active() || was == Presence::Missing);
        } else if !was.is_active() {
            self.revision += 1;
        }
    }

    /// Returns a number that changes whenever a diagnosis may.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the ready issues by priority, then id.
    pub fn frontier(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ready.iter().map(|(_, id)| id)
    }

    /// Returns whether an issue is open and nothing holds it.
    pub fn is_ready(&self, id: &str) -> bool {
        self.index
            .get(id)
            .is_some_and(|node| self.nodes[*node as usize].is_ready)
    }

    /// Returns all that holds an issue, sorted.
    pub fn holds(&self, id: &str) -> Vec<Hold> {
        let Some(&index) = self.index.get(id) else {
            return Vec::new();
        };
        let node = &self.nodes[index as usize];
        let mut holds = BTreeSet::new();
        for &target in &node.holds_on {
            let target = &self.nodes[target as usize];
            match target.state {
                Presence::Terminal => {}
                Presence::Missing => {
                    holds.insert(Hold::OnMissing(target.id.clone()));
                }
                Presence::Open | Presence::Busy => {
                    holds.insert(Hold::On(target.id.clone()));
                }
            }
        }
        for &child in &node.children {
            if self.nodes[child as usize].state.is_active() {
                holds.insert(Hold::Child(self.nodes[child as usize].id.clone()));
            }
        }
        for ancestor in self.ancestors(index) {
            if self.nodes[ancestor as usize].holds_subtree {
                holds.insert(Hold::Ancestor(self.nodes[ancestor as usize].id.clone()));
            }
        }
        holds.into_iter().collect()
    }

    fn node(&mut self, id: &Arc<str>) -> NodeIndex {
        match self.index.get(id) {
            Some(&node) => node,
            None => self.new_node(id),
        }
    }

    /// Finds or makes the node that an edge points to.
    fn target(&mut self, id: &str) -> NodeIndex {
        match self.index.get(id) {
            Some(&node) => node,
            None => self.new_node(&Arc::from(id)),
        }
    }

    fn new_node(&mut self, id: &Arc<str>) -> NodeIndex {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "4 billion issues do not fit in memory"
        )]
        let node = self.nodes.len() as NodeIndex;
        self.nodes.push(Node {
            id: id.clone(),
            state: Presence::Missing,
            priority: 0,
            edges: Arc::default(),
            holds_on: Vec::new(),
            held: Vec::new(),
            parents: Vec::new(),
            children: Vec::new(),
            open_holds: 0,
            open_children: 0,
            holds_subtree: false,
            is_ready: false,
        });
        self.index.insert(id.clone(), node);
        node
    }

    /// Enters a row's state and edges; counts are left to the caller.
    fn set_row(&mut self, node: NodeIndex, issue: &Issue) {
        self.withdraw(node);
        let mut holds_on = Vec::new();
        let mut parents = Vec::new();
        for edge in issue.dependencies.iter() {
            match edge.kind {
                EdgeKind::Holds(_) => holds_on.push(self.target(&edge.depends_on)),
                EdgeKind::ParentChild => parents.push(self.target(&edge.depends_on)),
                EdgeKind::Informs(_) => {}
            }
        }
        for targets in [&mut holds_on, &mut parents] {
            targets.sort_unstable();
            targets.dedup();
        }
        for &target in &holds_on {
            self.nodes[target as usize].held.push(node);
        }
        for &parent in &parents {
            self.nodes[parent as usize].children.push(node);
        }
        let entry = &mut self.nodes[node as usize];
        entry.state = Presence::of(&issue.status);
        entry.priority = issue.priority;
        entry.edges = issue.dependencies.clone();
        entry.holds_on = holds_on;
        entry.parents = parents;
    }

    fn unlink(&mut self, node: NodeIndex) {
        let entry = &mut self.nodes[node as usize];
        let holds_on = std::mem::take(&mut entry.holds_on);
        let parents = std::mem::take(&mut entry.parents);
        for target in holds_on {
            self.nodes[target as usize].held.retain(|n| *n != node);
        }
        for parent in parents {
            self.nodes[parent as usize].children.retain(|n| *n != node);
        }
    }

    /// Computes every count afresh.
    fn rebuild(&mut self) {
        self.revision += 1;
        self.ready.clear();
        for node in 0..self.nodes.len() {
            self.nodes[node].is_ready = false;
            self.recount(node as NodeIndex);
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].holds_subtree = self.is_held_from_outside(node as NodeIndex);
        }
        for node in 0..self.nodes.len() {
            self.recheck(node as NodeIndex);
        }
    }

    fn recount(&mut self, node: NodeIndex) {
        let entry = &self.nodes[node as usize];
        let waiting = |nodes: &[NodeIndex], rule: fn(Presence) -> bool| {
            nodes
                .iter()
                .filter(|n| rule(self.nodes[**n as usize].state))
                .count() as u32
        };
        let open_holds = waiting(&entry.holds_on, Presence::holds_others);
        let open_children = waiting(&entry.children, Presence::is_active);
        let entry = &mut self.nodes[node as usize];
        entry.open_holds = open_holds;
        entry.open_children = open_children;
    }

    /// Tells those that look at a node what it was before.
    fn propagate(&mut self, node: NodeIndex, was: Presence) {
        let now = self.nodes[node as usize].state;
        if was.holds_others() != now.holds_others() {
            for other in self.nodes[node as usize].held.clone() {
                let count = &mut self.nodes[other as usize].open_holds;
                *count = moved(*count, now.holds_others());
                self.recompute_subtree_hold(other);
                self.recheck(other);
            }
        }
        if was.is_active() != now.is_active() {
            for parent in self.nodes[node as usize].parents.clone() {
                let count = &mut self.nodes[parent as usize].open_children;
                *count = moved(*count, now.is_active());
                self.recheck(parent);
            }
        }
    }

    fn recompute_subtree_hold(&mut self, node: NodeIndex) {
        if self.nodes[node as usize].children.is_empty() {
            return;
        }
        let now = self.is_held_from_outside(node);
        if now == self.nodes[node as usize].holds_subtree {
            return;
        }
        self.nodes[node as usize].holds_subtree = now;
        for below in self.descendants(node) {
            self.recheck(below);
        }
    }

    fn is_held_from_outside(&self, node: NodeIndex) -> bool {
        let entry = &self.nodes[node as usize];
        !entry.children.is_empty()
            && entry.state.is_active()
            && entry.holds_on.iter().any(|target| {
                self.nodes[*target as usize].state.holds_others() && !self.is_within(*target, node)
            })
    }

    /// Returns whether a node is the root of a subtree or below it.
    fn is_within(&self, node: NodeIndex, root: NodeIndex) -> bool {
        node == root || self.ancestors(node).any(|ancestor| ancestor == root)
    }

    fn ancestors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> {
        Walk::new(self, node, |entry| &entry.parents)
    }

    fn descendants(&self, node: NodeIndex) -> Vec<NodeIndex> {
        Walk::new(self, node, |entry| &entry.children).collect()
    }

    fn withdraw(&mut self, node: NodeIndex) {
        let entry = &mut self.nodes[node as usize];
        if entry.is_ready {
            entry.is_ready = false;
            let key = (entry.priority, entry.id.clone());
            self.ready.remove(&key);
        }
    }

    fn recheck(&mut self, node: NodeIndex) {
        self.withdraw(node);
        let entry = &self.nodes[node as usize];
        let ready = entry.state == Presence::Open
            && entry.open_holds == 0
            && entry.open_children == 0
            && !self
                .ancestors(node)
                .any(|ancestor| self.nodes[ancestor as usize].holds_subtree);
        if ready {
            let entry = &mut self.nodes[node as usize];
            entry.is_ready = true;
            self.ready.insert((entry.priority, entry.id.clone()));
        }
    }

    /// Returns the ids of nodes, sorted.
    fn ids(&self, nodes: impl IntoIterator<Item = NodeIndex>) -> Vec<Arc<str>> {
        let set: BTreeSet<_> = nodes
            .into_iter()
            .map(|node| self.nodes[node as usize].id.clone())
            .collect();
        set.into_iter().collect()
    }
}

/// Moves a count by one.
const fn moved(count: u32, up: bool) -> u32 {
    if up {
        count + 1
    } else {
        count.saturating_sub(1)
    }
}

/// A walk over all that is above or below a node, each node once, the node
/// itself only where a cycle leads back to it.
struct Walk<'a> {
    graph: &'a IssueGraph,
    next: fn(&Node) -> &Vec<NodeIndex>,
    stack: Vec<NodeIndex>,
    visited: BTreeSet<NodeIndex>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a IssueGraph, start: NodeIndex, next: fn(&Node) -> &Vec<NodeIndex>) -> Self {
        Self {
            graph,
            next,
            stack: next(&graph.nodes[start as usize]).clone(),
            visited: BTreeSet::new(),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = NodeIndex;

    fn next(&mut self) -> Option<NodeIndex> {
        while let Some(node) = self.stack.pop() {
            if self.visited.insert(node) {
                self.stack
                    .extend((self.next)(&self.graph.nodes[node as usize]));
                return Some(node);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
