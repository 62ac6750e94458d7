//! What the table of operations must hold: no operation has two ids or two
//! routes, and each way to reach one leads to one.

use crate::authority::claim::ChangeMorphism;
use crate::authority::operation::{Operation, RouteFamily};
use crate::authority::transport::TransportAction;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The operations that the contracts name: HARNESS-RUNTIME 8, `contracts.md` 9.
pub(crate) const NAMED: [&str; 12] = [
    "op/harness.session_bootstrap",
    "op/harness.session_read",
    "op/harness.session_write",
    "op/mcp.dep_diagnostics",
    "op/mcp.issue_claim",
    "op/mcp.issue_discover",
    "op/mcp.issue_lease_projection",
    "op/mcp.issue_lease_release",
    "op/mcp.issue_lease_renew",
    "op/mcp.issue_ready",
    "op/mcp.issue_update",
    "op/transport.issue_claim_next",
];

/// The tools that an MCP server must have.
pub(crate) const NAMED_TOOLS: [&str; 15] = [
    "dep_add",
    "dep_diagnostics",
    "dep_remove",
    "harness_session_read",
    "harness_trajectory_query",
    "issue_blocked",
    "issue_claim",
    "issue_discover",
    "issue_lease_projection",
    "issue_lease_release",
    "issue_lease_renew",
    "issue_list",
    "issue_ready",
    "issue_update",
    "join_check",
];

/// A tool as the MCP server serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedTool {
    /// The name of the tool.
    pub name: &'static str,
    /// The claim that it asks of an instruction; absent where it only reads.
    pub claim: Option<ChangeMorphism>,
}

/// What is wrong with the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctrineFault {
    /// The rule that is broken.
    pub fault: DoctrineRule,
    /// The operation, command, tool, action or route.
    pub at: String,
    /// What is wrong, in a few words.
    pub detail: String,
}

/// A rule of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctrineRule {
    /// An id has the form `op/<surface>.<name>`.
    IdMalformed,
    /// An id appears once, so that an operation has one route.
    IdTwice,
    /// A command, tool or action leads to one operation.
    TwoOperations,
    /// An operation can be reached.
    Unreachable,
    /// Two families of routes do not bear one id.
    RouteTwice,
    /// What needs a claim changes something, and what changes an issue by a
    /// tool or an action needs a claim.
    ClaimMissing,
    /// An operation or a tool that the contracts name is there.
    NamedMissing,
    /// A command of the command line has an operation.
    CommandUnknown,
    /// An operation's command is one of the command line.
    CommandMissing,
    /// A tool that is served has an operation.
    ToolUnknown,
    /// An operation's tool is served.
    ToolMissing,
    /// A tool asks for the claim of its operation, and only reads where that
    /// changes nothing.
    ToolClaim,
    /// A dispatch action has the operation that it is bound to.
    ActionUnbound,
}

impl DoctrineRule {
    /// Returns the text used in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdMalformed => "id_malformed",
            Self::IdTwice => "id_twice",
            Self::TwoOperations => "two_operations",
            Self::Unreachable => "unreachable",
            Self::RouteTwice => "route_twice",
            Self::ClaimMissing => "claim_missing",
            Self::NamedMissing => "named_missing",
            Self::CommandUnknown => "command_unknown",
            Self::CommandMissing => "command_missing",
            Self::ToolUnknown => "tool_unknown",
            Self::ToolMissing => "tool_missing",
            Self::ToolClaim => "tool_claim",
            Self::ActionUnbound => "action_unbound",
        }
    }
}

/// Returns everything that is wrong with a table, sorted; `commands` are those
/// of the command line, as in `issue claim`, and `served` is what the MCP server
/// has.
pub fn faults(
    operations: &[Operation],
    commands: &BTreeSet<String>,
    served: &[ServedTool],
) -> Vec<DoctrineFault> {
    let mut faults = Faults::default();
    faults.of_operations(operations);
    faults.of_ways(operations);
    faults.of_routes();
    faults.of_names(operations);
    faults.of_commands(operations, commands);
    faults.of_tools(operations, served);
    faults.of_actions(operations);
    faults.0.into_iter().collect()
}

/// The faults that were found so far.
#[derive(Default)]
struct Faults(BTreeSet<DoctrineFault>);

impl Faults {
    fn add(&mut self, fault: DoctrineRule, at: &str, detail: impl Into<String>) {
        let (at, detail) = (at.to_owned(), detail.into());
        self.0.insert(DoctrineFault { fault, at, detail });
    }

    fn of_operations(&mut self, operations: &[Operation]) {
        let mut ids: BTreeMap<&str, &Operation> = BTreeMap::new();
        for operation in operations {
            let id = operation.id;
            if !is_well_formed(id) {
                let detail = "an id is op/<surface>.<name>, in lower case";
                self.add(DoctrineRule::IdMalformed, id, detail);
            }
            if let Some(first) = ids.insert(id, operation) {
                let detail = format!(
                    "it is there as {} and as {}",
                    first.route.id(),
                    operation.route.id()
                );
                self.add(DoctrineRule::IdTwice, id, detail);
            }
            let reached = [operation.command, operation.tool, operation.action];
            if reached.iter().all(Option::is_none) {
                let detail = "no command, tool or action performs it";
                self.add(DoctrineRule::Unreachable, id, detail);
            }
            if operation.claim.is_some() && !operation.mutates {
                let detail = "it changes nothing, and needs a claim";
                self.add(DoctrineRule::ClaimMissing, id, detail);
            }
            let by_others = operation.tool.is_some() || operation.action.is_some();
            if operation.mutates && by_others && operation.claim.is_none() {
                let detail = "others change issues by it, and need no claim";
                self.add(DoctrineRule::ClaimMissing, id, detail);
            }
        }
    }

    /// A command, tool or action of two operations.
    fn of_ways(&mut self, operations: &[Operation]) {
        type Way = fn(&Operation) -> Option<&'static str>;
        let ways: [(&str, Way); 3] = [
            ("command", |op| op.command),
            ("tool", |op| op.tool),
            ("action", |op| op.action),
        ];
        for (kind, way) in ways {
            let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
            for operation in operations {
                let Some(name) = way(operation) else { continue };
                if let Some(first) = seen.insert(name, operation.id) {
                    let detail = format!("the {kind} is of {first} and of {}", operation.id);
                    self.add(DoctrineRule::TwoOperations, name, detail);
                }
            }
        }
    }

    fn of_routes(&mut self) {
        let mut routes = BTreeSet::new();
        for route in RouteFamily::ALL {
            if !routes.insert(route.id()) {
                let detail = "two families bear this id";
                self.add(DoctrineRule::RouteTwice, route.id(), detail);
            }
        }
    }

    /// Operations and tools that the contracts name.
    fn of_names(&mut self, operations: &[Operation]) {
        for named in NAMED {
            if !operations.iter().any(|op| op.id == named) {
                let detail = "the contracts name it, and the table does not";
                self.add(DoctrineRule::NamedMissing, named, detail);
            }
        }
        for tool in NAMED_TOOLS {
            if !operations.iter().any(|op| op.tool == Some(tool)) {
                let detail = "the contracts name this tool, and no operation has it";
                self.add(DoctrineRule::NamedMissing, tool, detail);
            }
        }
    }

    fn of_commands(&mut self, operations: &[Operation], commands: &BTreeSet<String>) {
        let known: BTreeSet<&str> = operations.iter().filter_map(|op| op.command).collect();
        for command in commands {
            if !known.contains(&**command) {
                let detail = "no operation has this command";
                self.add(DoctrineRule::CommandUnknown, command, detail);
            }
        }
        for command in known {
            if !commands.contains(command) {
                let detail = "the command line has no such command";
                self.add(DoctrineRule::CommandMissing, command, detail);
            }
        }
    }

    fn of_tools(&mut self, operations: &[Operation], served: &[ServedTool]) {
        for tool in served {
            let Some(operation) = operations.iter().find(|op| op.tool == Some(tool.name)) else {
                let detail = "the server has this tool, and no operation has it";
                self.add(DoctrineRule::ToolUnknown, tool.name, detail);
                continue;
            };
            if operation.claim != tool.claim || operation.mutates != tool.claim.is_some() {
                let detail = "the server asks for another claim than its operation";
                self.add(DoctrineRule::ToolClaim, tool.name, detail);
            }
        }
        for name in operations.iter().filter_map(|op| op.tool) {
            if !served.iter().any(|tool| tool.name == name) {
                let detail = "the server has no such tool";
                self.add(DoctrineRule::ToolMissing, name, detail);
            }
        }
    }

    fn of_actions(&mut self, operations: &[Operation]) {
        let actions: BTreeSet<&str> = TransportAction::ALL.iter().map(|a| a.as_str()).collect();
        let bound: BTreeSet<&str> = operations.iter().filter_map(|op| op.action).collect();
        for action in actions.symmetric_difference(&bound) {
            let detail = "dispatch and the table do not both know it";
            self.add(DoctrineRule::ActionUnbound, action, detail);
        }
    }
}

fn is_well_formed(id: &str) -> bool {
    let word =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    id.strip_prefix("op/")
        .and_then(|rest| rest.split_once('.'))
        .is_some_and(|(surface, name)| word(surface) && word(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::operation::OPERATIONS;

    fn commands() -> BTreeSet<String> {
        let all = OPERATIONS.iter().filter_map(|op| op.command);
        all.map(str::to_owned).collect()
    }

    fn served() -> Vec<ServedTool> {
        let tool = |op: &Operation| {
            Some(ServedTool {
                name: op.tool?,
                claim: op.claim,
            })
        };
        OPERATIONS.iter().filter_map(tool).collect()
    }

    fn rules(operations: &[Operation], commands: &BTreeSet<String>) -> Vec<&'static str> {
        let found = faults(operations, commands, &served());
        found.into_iter().map(|f| f.fault.as_str()).collect()
    }

    #[test]
    fn the_table_holds() {
        assert_eq!(faults(OPERATIONS, &commands(), &served()), []);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn each_planted_fault_is_found() {
        let at = |id: &str| OPERATIONS.iter().position(|op| op.id == id).unwrap();
        let claim = at("op/mcp.issue_claim");
        let ready = at("op/mcp.issue_ready");
        type Plant<'a> = &'a dyn Fn(&mut Vec<Operation>);
        let planted: [(Plant<'_>, &[&str]); 9] = [
            (
                &|t| t[claim].id = "mcp.issue_claim",
                &["id_malformed", "named_missing"],
            ),
            (
                &|t| {
                    let mut again = t[ready];
                    again.command = None;
                    again.tool = Some("issue_ready_too");
                    again.route = RouteFamily::OperatorSurface;
                    t.push(again);
                },
                &["id_twice", "tool_missing"],
            ),
            (
                &|t| {
                    let mut again = t[ready];
                    again.id = "op/premath.issue_ready";
                    t.push(again);
                },
                &["two_operations", "two_operations"],
            ),
            (&|t| t[claim].claim = None, &["claim_missing", "tool_claim"]),
            (
                &|t| t[claim].mutates = false,
                &["claim_missing", "tool_claim"],
            ),
            (&|t| t[claim].action = None, &["action_unbound"]),
            (
                &|t| t[claim].action = Some("issue.take"),
                &["action_unbound"; 2],
            ),
            (
                &|t| {
                    let lost = at("op/mcp.issue_lease_projection");
                    t[lost].tool = None;
                    t[lost].action = None;
                },
                &[
                    "unreachable",
                    "named_missing",
                    "tool_unknown",
                    "action_unbound",
                ],
            ),
            (
                &|t| t.retain(|op| op.id != "op/mcp.issue_ready"),
                &[
                    "named_missing",
                    "named_missing",
                    "command_unknown",
                    "tool_unknown",
                ],
            ),
        ];
        for (plant, expected) in planted {
            let mut table = OPERATIONS.to_vec();
            plant(&mut table);
            assert_eq!(rules(&table, &commands()), expected);
        }
        let mut line = commands();
        line.insert("issue burn".to_owned());
        line.remove("issue add");
        assert_eq!(
            rules(OPERATIONS, &line),
            ["command_unknown", "command_missing"]
        );
    }
}
