//! The protocol's side of the tools.

use super::context::Context;
use super::tool::{self, TOOLS};
use crate::error::CliError;
use premath_kernel::json::plain::plain;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use std::io;
use std::sync::Arc;

/// The server's description for clients.
const ABOUT: &str = "The issue store of Premath Harness. issue_ready lists ready issues; \
    issue_claim leases one; issue_discover files a follow-up. Changes are authorised by the \
    instruction that the server was started with. A refusal carries failureClasses.";

/// The most characters of a client's name that are recorded.
const NAME_MOST: usize = 64;

/// A server of one repository.
#[derive(Clone, Debug)]
pub(super) struct Server {
    context: Arc<Context>,
}

impl Server {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Serves one client on stdin and stdout until it goes.
    pub(super) async fn serve_stdio(self) -> Result<(), CliError> {
        let running = match self.serve(rmcp::transport::stdio()).await {
            Ok(running) => running,
            // No client connected.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => {
                return Err(crate::http::failed("begin")(io::Error::other(
                    error.to_string(),
                )));
            }
        };
        match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(crate::http::failed("continue")(io::Error::other(error))),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("premath", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(tool::Tool::described).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tool::named(name).map(tool::Tool::described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tool::named(&request.name) else {
            let text = format!("unknown tool {}", plain(&request.name));
            return Err(ErrorData::invalid_params(text, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let asked_by = asked_by(context.client_info().map(|client| client.name).as_deref());
        let served = Arc::clone(&self.context);
        let outcome = tokio::task::spawn_blocking(move || served.call(tool, arguments, &asked_by));
        let result = match outcome.await {
            Ok(Ok(answer)) => CallToolResult::structured(answer),
            Ok(Err(refusal)) => CallToolResult::structured_error(refusal),
            Err(error) => return Err(ErrorData::internal_error(error.to_string(), None)),
        };
        Ok(result.into())
    }
}

/// Returns who asks, as the row of an issue names them.
fn asked_by(client: Option<&str>) -> String {
    let name: String = client.unwrap_or_default().chars().take(NAME_MOST).collect();
    match name.trim() {
        "" => "mcp".to_owned(),
        name => format!("mcp:{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_as_it_calls_itself_within_bounds() {
        assert_eq!(asked_by(None), "mcp");
        assert_eq!(asked_by(Some(" ")), "mcp");
        assert_eq!(asked_by(Some("editor")), "mcp:editor");
        assert_eq!(asked_by(Some(&"x".repeat(900))).len(), 4 + NAME_MOST);
    }
}
