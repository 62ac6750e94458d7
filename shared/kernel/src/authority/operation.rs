//! Every operation of the harness, once (`contracts.md` 9, HARNESS-RUNTIME 8).
//!
//! Commands, MCP tools and dispatch are ways to reach an operation; each has
//! one id, one route and one world, whichever way it is reached. The table
//! states this, and [`doctrine`](crate::authority::doctrine) proves it.

mod table;

pub use table::OPERATIONS;

use crate::authority::claim::ChangeMorphism;

/// An operation, with its command, tool and route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its id, as in `op/mcp.issue_claim`.
    pub id: &'static str,
    /// The command of `premath` that performs it, as in `issue claim`.
    pub command: Option<&'static str>,
    /// The MCP tool that performs it, as in `issue_claim`.
    pub tool: Option<&'static str>,
    /// The dispatch action that performs it, as in `issue.claim`.
    pub action: Option<&'static str>,
    /// The route family that it is reached by.
    pub route: RouteFamily,
    /// Whether it changes what others rely on: issues, projections, or files
    /// of the repository.
    pub mutates: bool,
    /// The claim that an instruction must make for it; absent where it changes
    /// no issue.
    pub claim: Option<ChangeMorphism>,
}

impl Operation {
    /// Returns the world that the operation belongs to.
    pub(crate) const fn world(&self) -> &'static str {
        self.route.world()
    }
}

macro_rules! routes {
    ($( $(#[$doc:meta])* $variant:ident = $id:literal, $world:literal; )+) => {
        /// A family of routes, which is in one world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RouteFamily { $( $(#[$doc])* $variant, )+ }

        impl RouteFamily {
            /// All families of routes.
            pub(crate) const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the family's id.
            pub(crate) const fn id(self) -> &'static str {
                match self { $( Self::$variant => $id, )+ }
            }

            /// Returns the world that the family is in.
            pub(crate) const fn world(self) -> &'static str {
                match self { $( Self::$variant => $world, )+ }
            }
        }
    };
}

routes! {
    /// Leases of issues, and what is found while one is held.
    IssueClaimLease = "route.issue_claim_lease", "world.lease.v1";
    /// Issues and their edges, beside leases.
    IssueGraph = "route.issue_graph", "world.issue_graph.v1";
    /// Sessions, features and the trajectory.
    SessionProjection = "route.session_projection", "world.projection.v1";
    /// Turns and the gate that judges them.
    GateExecution = "route.gate_execution", "world.gate.v1";
    /// Instructions and their policy.
    InstructionExecution = "route.instruction_execution", "world.instruction.v1";
    /// The dispatch of actions that others name.
    TransportDispatch = "route.transport.dispatch", "world.transport.v1";
    /// What a person looks up or creates, and no loop asks for.
    OperatorSurface = "route.operator_surface", "world.operator.v1";
}

/// Returns the operation that a dispatch action performs.
pub(crate) fn by_action(action: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|op| op.action == Some(action))
}
