use super::*;

fn policy() -> TurnPolicy {
    TurnPolicy::embedded().unwrap()
}

fn shell(command: &str) -> AgentCall {
    AgentCall {
        command: Some(command.to_owned()),
        ..AgentCall::of(ToolClass::Shell, "Bash")
    }
}

fn file(class: ToolClass, path: &str) -> AgentCall {
    AgentCall {
        paths: vec![CallPath::of(path, "/lane", "/lane")],
        ..AgentCall::of(class, "Edit")
    }
}

fn rule_of(call: &AgentCall) -> String {
    let verdict = decide(&policy(), call, &CallCounts::default());
    let sign = if verdict.is_denial() { "-" } else { "+" };
    assert_eq!(verdict.is_denial(), !verdict.reason.is_empty());
    format!("{sign}{}", verdict.rule_id)
}

#[test]
fn the_embedded_policy_allows_work_and_denies_harm() {
    for (command, expected) in [
        ("cargo test && git commit -qam done", "+shell"),
        ("ls | wc -l", "+shell"),
        ("rm -rf node_modules", "+shell"),
        ("# nothing", "+shell"),
        ("$CC a.c", "+shell"),
        ("git push", "-no_push"),
        ("cd a && git -C b push origin", "-no_push"),
        ("bash -lc 'git push'", "-no_push"),
        ("echo $(git push)", "-no_push"),
        ("git commit -m 'git push'", "+shell"),
        ("/usr/bin/git push", "-no_push"),
        ("env A=1 git push", "-no_push"),
        ("npm publish", "-no_publish"),
        ("cargo publish --dry-run", "-no_publish"),
        ("yarn npm publish", "-no_publish"),
        ("python3 -m twine upload dist/*", "-no_upload_by_python"),
        ("python3 upload_test.py", "+shell"),
        ("rm -rf /", "-no_delete_outside"),
        ("rm -rf /*", "-no_delete_outside"),
        ("rm -rf /lane/target", "+shell"),
        ("rm -rf ~/x", "-no_delete_outside"),
        ("rm -rf \"$HOME\"", "-no_delete_outside"),
        ("sudo apt install x", "-no_administration"),
        ("git reset --hard HEAD~1", "-no_git_reset"),
        ("git clean -fdx", "-no_git_clean"),
        ("git 'push", "-default"),
        ("git -C a --no-pager push", "-no_push"),
        ("git -c alias.p='push origin' p", "-no_push_by_alias"),
        ("bash <<'E'\ngit push\nE", "-no_push"),
        ("bash -c \"cd $X && git push\"", "-no_push"),
        ("uv run twine upload dist/*", "-no_upload"),
        ("npm run publish", "-no_publish"),
        ("yarn workspace a publish", "-no_publish"),
        ("pnpm --filter a publish", "-no_publish"),
        ("gem push a.gem", "-no_package_push"),
        (
            "docker buildx build --push -t a .",
            "-no_image_push_after_build",
        ),
        ("mvn clean deploy", "-no_deploy"),
        ("./gradlew :a:publish", "-no_gradle_publish"),
        ("gh -R a/b pr create --fill", "-no_forge_changes"),
        ("rm -rf /var/*", "-no_delete_outside"),
        ("git remote add a b", "-no_remotes"),
        ("git worktree remove a", "-no_git_worktrees"),
        // What agents do every day.
        ("git stash push -m push && git grep push", "+shell"),
        ("git commit -m push --no-verify", "+shell"),
        ("git remote -v && git worktree list", "+shell"),
        ("git clean -n", "+shell"),
        ("git config push.default simple", "+shell"),
        ("find . -print0 | xargs -0 grep -n sudo", "+shell"),
        ("git ls-files | xargs grep -l mount", "+shell"),
        ("command -v sudo", "+shell"),
        ("time make mount", "+shell"),
        ("timeout 60 cargo test publish", "+shell"),
        ("npm test -- publish", "+shell"),
        ("gradle publishToMavenLocal :deploy:test", "+shell"),
        ("mvn -pl deploy-all -Dtest=DeployTest test", "+shell"),
        ("gh pr view 1 && gh release list", "+shell"),
        ("docker build . && docker compose up", "+shell"),
        ("rm -rf /srv/project/target ./build", "+shell"),
        ("echo $(( $(date +%s) - START ))", "+shell"),
        ("git commit -m \"$(cat <<'E'\nIt's (done)\nE\n)\"", "+shell"),
        ("python3 - <<'E'\nprint('git push')\nE", "+shell"),
        ("for f in *.rs; do wc -l \"$f\"; done", "+shell"),
    ] {
        assert_eq!(rule_of(&shell(command)), expected, "{command}");
    }
    for (class, path, expected) in [
        (ToolClass::Edit, "src/a.rs", "+edit_in_the_worktree"),
        (ToolClass::Edit, "/lane/src/a.rs", "+edit_in_the_worktree"),
        (ToolClass::Edit, "/tmp/a", "+edit_in_the_worktree"),
        (ToolClass::Edit, "/etc/passwd", "-no_edits_elsewhere"),
        (ToolClass::Edit, "../other/a", "-no_edits_elsewhere"),
        (ToolClass::Edit, ".git/config", "-no_edits_of_the_harness"),
        (
            ToolClass::Edit,
            "a/.git/hooks/x",
            "-no_edits_of_the_harness",
        ),
        (
            ToolClass::Edit,
            ".github/workflows/a.yml",
            "+edit_in_the_worktree",
        ),
        (ToolClass::Edit, "a/.ssh/config", "-no_credentials"),
        (
            ToolClass::Edit,
            "src/../.premath/issues.jsonl",
            "-no_edits_of_the_harness",
        ),
        (ToolClass::Read, "/usr/include/a.h", "+read"),
        (ToolClass::Read, "/root/.codex/auth.json", "-no_credentials"),
        (ToolClass::Subagent, "", "+subagents"),
        (ToolClass::Mcp, "", "+mcp"),
    ] {
        assert_eq!(rule_of(&file(class, path)), expected, "{class:?} {path}");
    }
    // An edit of which no path is known is not an edit in the worktree.
    let unknown = AgentCall::of(ToolClass::Edit, "Edit");
    assert_eq!(rule_of(&unknown), "-no_edits_elsewhere");
}

#[test]
fn limits_deny_before_any_rule() {
    let limits = *policy().calls();
    let of =
        |counts: CallCounts, class| decide(&policy(), &AgentCall::of(class, "x"), &counts).rule_id;
    let counts = CallCounts {
        calls: limits.max_calls,
        ..CallCounts::default()
    };
    assert_eq!(of(counts, ToolClass::Read), "calls.maxCalls");
    let counts = CallCounts {
        open: limits.max_open,
        ..CallCounts::default()
    };
    assert_eq!(of(counts, ToolClass::Read), "calls.maxOpen");
    let counts = CallCounts {
        depth: limits.max_depth,
        ..CallCounts::default()
    };
    assert_eq!(of(counts, ToolClass::Read), "read");
    assert_eq!(of(counts, ToolClass::Subagent), "calls.maxDepth");
    let counts = CallCounts {
        subagents: limits.max_branches,
        ..CallCounts::default()
    };
    assert_eq!(of(counts, ToolClass::Subagent), "calls.maxBranches");
}

#[test]
fn a_policy_without_subagents_denies_them_before_they_begin() {
    let policy = TurnPolicy::parse(&sealed(|document| {
        document["calls"]["subagents"] = false.into();
    }));
    let policy = policy.unwrap();
    let of = |class| {
        let call = AgentCall::of(class, "x");
        decide(&policy, &call, &CallCounts::default()).rule_id
    };
    assert_eq!(of(ToolClass::Subagent), "calls.subagents");
    assert_eq!(of(ToolClass::Read), "read");
}

fn sealed(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut document = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    change(&mut document);
    let digest = TurnPolicy::digest(document.to_string().as_bytes()).unwrap();
    document["policyDigest"] = digest.into();
    document.to_string().into_bytes()
}

fn fault(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let error = TurnPolicy::parse(&sealed(change)).unwrap_err();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

#[test]
fn a_policy_with_a_fault_is_refused_by_its_name() {
    assert_contains(
        &fault(|policy| policy["tools"][0]["argument"] = "push".into()),
        "`tools[0].argument`",
    );
    assert_contains(
        &fault(|policy| policy["tools"][0]["reason"] = " ".into()),
        "`no_credentials` of the turn policy denies without a reason",
    );
    assert_contains(
        &fault(|policy| policy["tools"][0]["ruleId"] = "no_push".into()),
        "two rules `no_push`",
    );
    assert_contains(
        &fault(|policy| policy["stop"]["repairRounds"] = 8.into()),
        "found 8",
    );
    assert_contains(
        &fault(|policy| policy["tools"][0]["decision"] = "ask".into()),
        "`tools[0].decision`",
    );
    let text = TurnPolicy::embedded_text().replace("\"push\",", "\"pull\",");
    let error = TurnPolicy::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error, TurnPolicyError::DigestMismatch { .. }));
    assert!(TurnPolicy::parse(&sealed(|_| ())).is_ok());
}

#[test]
fn an_allow_rule_needs_every_part_of_a_call() {
    let bytes = sealed(|policy| {
        policy["tools"] = serde_json::json!([
            {"ruleId": "npm", "tool": "shell", "programs": ["npm"], "arguments": ["test"],
             "decision": "allow"},
            {"ruleId": "git", "tool": "shell", "programs": ["git"], "subcommands": ["status|log"],
             "decision": "allow"},
            {"ruleId": "host", "tool": "web_fetch", "hosts": ["*.example.com"],
             "decision": "allow"},
        ]);
    });
    let policy = TurnPolicy::parse(&bytes).unwrap();
    let denied = |call: &AgentCall| decide(&policy, call, &CallCounts::default()).is_denial();
    assert!(!denied(&shell("npm test")));
    assert!(!denied(&shell("npm run test; npm test")));
    assert!(denied(&shell("npm test; ls")));
    assert!(denied(&shell("npm $X")));
    assert!(!denied(&shell("git -C a --no-pager status")));
    for text in [
        "git push",
        "git -c alias.status=push push status",
        "git $X status",
        "git push status",
        "git status; git push",
        "git status $(git push)",
    ] {
        assert!(denied(&shell(text)), "{text}");
    }
    assert!(denied(&shell("$NPM test")));
    let fetch = |hosts: &[&str]| AgentCall {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..AgentCall::of(ToolClass::WebFetch, "WebFetch")
    };
    assert!(!denied(&fetch(&["a.example.com"])));
    assert!(denied(&fetch(&["a.example.com", "b.org"])));
    assert!(denied(&fetch(&[])));
}
