//! Issues: their rows, the graph of their dependencies, and the leases that
//! workers hold on them.

pub mod contract;
pub mod dispatch;
pub mod graph;
pub mod handoff;
pub mod import;
pub mod lease;
pub mod natural;
pub mod outbox;
pub mod own_check;
pub mod prefix;
mod row;
pub mod word;

pub use row::{
    DEFAULT_PRIORITY, DEFAULT_TYPE, Dependency, EdgeKind, HoldKind, Holder, Issue, IssueScope,
    Lease, RowChange, Selection, Status, TypeSelection,
};
