//! Attack 10: the tools that serve issue memory.

use crate::ground::Ground;
use premath_tests::{PATIENCE, skipped, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

attacks! {
    a_server_of_the_steps_own_changes_nothing,
    the_command_changes_nothing,
    the_users_server_is_not_reached,
    a_tool_closes_nothing_without_evidence,
}

/// What closes an issue by a server: three messages.
fn messages(id: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "escape", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let close = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "issue_update", "arguments": {"id": id, "status": "closed"}}});
    format!("{hello}\n{ready}\n{close}\n")
}

/// Writes the user's instruction, with every change claimed.
fn instructed(ground: &Ground) {
    let settings = ground.read("repo/harness.toml");
    ground.premath(&["init"]);
    ground.write("repo/harness.toml", &settings);
    for entry in fs::read_dir(ground.path("repo/instructions")).unwrap() {
        let entry = entry.unwrap();
        let name = format!("repo/instructions/{}", entry.file_name().to_string_lossy());
        let mut envelope: Value = serde_json::from_str(&ground.read(&name)).unwrap();
        envelope["capabilityClaims"] = json!(["capabilities.change_morphisms.all"]);
        ground.write(&name, &envelope.to_string());
    }
    ground.commits("instructions");
}

/// Returns the user's instruction.
fn instruction(ground: &Ground) -> PathBuf {
    let mut found = fs::read_dir(ground.path("repo/instructions")).unwrap();
    found.next().unwrap().unwrap().path()
}

/// An issue that no step works on.
fn victim(ground: &mut Ground) {
    ground.row("victim", "epic");
}

fn is_untouched(ground: &mut Ground) {
    let status = ground.status("victim");
    ground.harm(
        status != "open",
        format!("an issue without evidence is {status}"),
    );
}

/// The variables of the step are gone, so the server is bound to none.
const UNBOUND: &str = "env -u PREMATH_STEP_ID -u PREMATH_LEASE_ID -u PREMATH_ISSUE_ID -u PREMATH_LEASE_GENERATION -u PREMATH_OUTBOX -u PREMATH_WORKER_ID -u PREMATH_SUPERVISOR -u PREMATH_WORKTREE";

fn a_server_of_the_steps_own_changes_nothing(ground: &mut Ground) {
    instructed(ground);
    victim(ground);
    let script = format!(
        r#"cat > "$TMPDIR/messages" <<'END'
{}END
for envelope in "$ROOT"/instructions/*.json; do
  ( cat "$TMPDIR/messages"; sleep 0.5 ) | {UNBOUND} premath mcp-serve --repo-root "$ROOT" --instruction "$envelope"
done; :"#,
        messages("victim")
    );
    ground.hostile("h", &script);
    ground.nights();
    is_untouched(ground);
}

fn the_command_changes_nothing(ground: &mut Ground) {
    victim(ground);
    let script = format!(
        "{UNBOUND} premath issue update victim --status closed --override-reason me --issues \"$ROOT/.premath/issues.jsonl\"; premath issue update victim --status closed --override-reason me; :"
    );
    ground.hostile("h", &script);
    ground.nights();
    is_untouched(ground);
}

/// The user's editor has a server; the step reads its token.
fn the_users_server_is_not_reached(ground: &mut Ground) {
    if premath_tests::command("curl").arg("-V").output().is_err() {
        return skipped("the user's server", "curl is not installed");
    }
    instructed(ground);
    victim(ground);
    let place = "repo/.premath/private/mcp-token";
    ground.write(place, "0123456789abcdef0123456789abcdef0123456789abcdef\n");
    let token = ground.path(place);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let folder = fs::Permissions::from_mode(0o700);
    fs::set_permissions(token.parent().unwrap(), folder).unwrap();
    // Issue memory must be there before a server serves it.
    ground.hostile("h", "true");
    ground.begins();
    let server = ground
        .run(&premath_tests::binaries().premath)
        .args([
            "mcp-serve",
            "--http",
            "127.0.0.1:0",
            "--json",
            "--token-file",
        ])
        .arg(token)
        .arg("--instruction")
        .arg(instruction(ground));
    let server = ground.run_beside(server);
    let address = until(PATIENCE / 10, || {
        let said = ground.output_by(server);
        let at = said.find("127.0.0.1:")?;
        let rest = &said[at..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':');
        Some(rest[..end.unwrap_or(rest.len())].to_owned()).filter(|found| found.len() > 10)
    });
    let address =
        address.unwrap_or_else(|| panic!("the server says where: {}", ground.output_by(server)));
    let script = format!(
        r#"token=$(cat "$ROOT/.premath/private/mcp-token"); cat > "$TMPDIR/messages" <<'END'
{}END
session=; while read -r message; do
  curl -sS -m 5 -D "$TMPDIR/headers" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' ${{session:+-H "$session"}} --data "$message" "http://{address}/mcp"
  [ -n "$session" ] || session=$(grep -i '^mcp-session-id' "$TMPDIR/headers" | tr -d '\r')
done < "$TMPDIR/messages"; :"#,
        messages("victim")
    );
    ground.script_of("h", &script);
    ground.night();
    is_untouched(ground);
}

/// A terminal status requires evidence from every caller.
fn a_tool_closes_nothing_without_evidence(ground: &mut Ground) {
    instructed(ground);
    victim(ground);
    ground.hostile("h", "true");
    ground.nights();
    let feed = format!(
        "( cat <<'END'\n{}END\nsleep 0.5 ) | premath mcp-serve",
        messages("victim")
    );
    let instruction = instruction(ground);
    ground
        .run(std::path::Path::new("sh"))
        .args([
            "-c",
            &format!("{feed} --instruction '{}'", instruction.display()),
        ])
        .end();
    is_untouched(ground);
}
