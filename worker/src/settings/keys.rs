//! The tables and keys of `harness.toml`: the one place that lists them.
//!
//! The comment of a key is its documentation. The file that `premath init`
//! writes, the page of the documentation and the schema are made from it
//! (`template`). A key without a comment belongs to the one above it. Behind a
//! key are its type and the values that the file shows; `set` marks a key that
//! is not commented out there.

use super::Adapter;
use super::hooks::HookMode;
use super::protect::SensitiveRule;
use super::rules::{IssueChecksRule, OnFailure, OnNoChange, StartupRule};
use super::values::{
    AgentNames, Bytes, Count, Dollars, Hosts, Natural, Period, PortList, Wait, Whole, Word, Words,
};
use premath_kernel::policy::deadline::StopAt;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::network::NetworkWord;
use premath_kernel::policy::provider::LimitLines;
use premath_kernel::policy::sandbox::SandboxMode;
use premath_kernel::policy::until::Until;
use premath_kernel::policy::window::DayWindow;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A key, as the documentation shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    name: &'static str,
    /// The lines of its comment; none for a key that belongs to the one above.
    pub(super) about: &'static [&'static str],
    /// Values to show.
    pub(super) examples: &'static [&'static str],
    /// Whether the template sets the key.
    pub(super) is_set: bool,
}

impl Key {
    /// Returns the name.
    pub(super) fn name(&self) -> &'static str {
        // A keyword of the language is written as in `r#use`.
        self.name.trim_start_matches("r#")
    }
}

/// A table with its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// The name of the table.
    pub(super) name: &'static str,
    /// Its keys, in the order in which they are shown.
    pub(super) keys: &'static [Key],
}

impl Table {
    /// Returns every table, in the order in which they are shown.
    pub(super) fn all() -> &'static [Self] {
        TABLES
    }

    /// Returns the names of its keys.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(Key::name)
    }
}

/// Makes a table from its keys.
macro_rules! keys {
    (
        $(#[doc = $table:literal])+
        $name:ident {
            $(
                $(#[doc = $about:literal])*
                $key:ident: $type:ty = [$($example:literal),+] $($set:ident)?;
            )+
        }
    ) => {
        $(#[doc = $table])+
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(default)]
        pub(super) struct $name {
            $(
                $(#[doc = $about])*
                pub(super) $key: Option<$type>,
            )+
        }

        impl $name {
            const KEYS: &'static [Key] = &[
                $(Key {
                    name: stringify!($key),
                    about: &[$($about),*],
                    examples: &[$($example),+],
                    is_set: !<[&str]>::is_empty(&[$(stringify!($set))?]),
                },)+
            ];
        }
    };
}

/// Makes the file from its tables.
macro_rules! tables {
    ($($table:ident: $keys:ident,)+) => {
        /// `harness.toml`.
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(default)]
        pub(super) struct HarnessToml {
            $(
                pub(super) $table: $keys,
            )+
            /// Other repositories on this machine, by name.
            pub(super) worlds: BTreeMap<String, String>,
        }

        const TABLES: &[Table] = &[
            $(Table { name: stringify!($table), keys: $keys::KEYS },)+
            Table { name: "worlds", keys: WORLDS },
        ];
    };
}

tables! {
    agent: AgentKeys,
    batch: BatchKeys,
    coordinator: CoordinatorKeys,
    supervision: SupervisionKeys,
    breaker: BreakerKeys,
    budget: BudgetKeys,
    backoff: BackoffKeys,
    env: EnvironmentKeys,
    limits: LimitsKeys,
    worktrees: WorktreesKeys,
    protect: ProtectKeys,
    sandbox: SandboxKeys,
    network: NetworkKeys,
    verify: VerifyKeys,
    landing: LandingKeys,
    signing: SigningKeys,
    notify: NotifyKeys,
    telemetry: TelemetryKeys,
    governance: GovernanceKeys,
    prompt: PromptKeys,
    issues: IssuesKeys,
}

/// The names of `[worlds]` are the user's; this is one of them.
const WORLDS: &[Key] = &[Key {
    name: "docs",
    about: &[
        "Other repositories on this machine, by name. An issue with the label `world:docs`",
        "is worked on in that repository, and closes when that repository's gate admits the",
        "turn. Both identify themselves in policies/control/harness-world-v1.json.",
    ],
    examples: &["\"../docs\""],
    is_set: false,
}];

keys! {
    /// The `[agent]` table.
    AgentKeys {
        /// The coding agent: {agents}, or a list that is
        /// distributed over the lanes. It must be installed and logged in. Its event stream
        /// is the evidence for closing an issue. `premath agents check` lists installed ones.
        r#use: AgentNames = [r#""codex""#];
        /// Agents to use while a provider is parked because its usage limit is reached. The
        /// attempt that hit the limit does not count.
        fallback: Words = [r#"["gemini"]"#];
        /// Maximum parking time if the provider does not report when the limit resets. It
        /// starts at 5 minutes at most and doubles with each refused probe.
        limit_pause: Period = [r#""1h""#];
        /// Whether a `usage_limit:` line on a command's stderr parks the provider: "ignore"
        /// or "park". Any program in a step can print such a line.
        limit_lines: Word<LimitLines> = [r#""ignore""#];
        /// Whether the turn policy is asked before each tool call of an agent: "on" or
        /// "off". Default: on where the command begins with the agent's program and ends
        /// with `< "$PREMATH_PROMPT_FILE"`, and off in containers.
        hooks: Word<HookMode> = [r#""off""#];
        /// Resume the agent's session in a retry that the same lane of the same
        /// batch makes after a failed verification. Otherwise it begins a new one.
        /// [default: false]
        resume: bool = ["true"];
        /// The source of evidence for a work command that is not an agent: "shell" (its exit
        /// status) or "evidence-file" (the file PREMATH_EVIDENCE_PATH that it writes, in the
        /// format of `premath harness-join-check`).
        adapter: Word<Adapter> = [r#""evidence-file""#];
    }
}

keys! {
    /// The `[batch]` table.
    BatchKeys {
        /// The command of an attempt, run with `sh -c` in the lane's worktree, instead of an
        /// agent. It receives its issue in PREMATH_ISSUE_ID, PREMATH_ISSUE_FILE (JSON) and
        /// PREMATH_PROMPT_FILE (text). An agent or a command is required.
        work_cmd: String = ["'./scripts/work-on-issue.sh'"];
        /// The verification. An issue closes only if this command exits with 0. Required.
        verify_cmd: String = ["'cargo test --quiet'", "'./scripts/verify.sh'"];
        /// Hooks at the start and end of a lane, and a check before the first change.
        boot_cmd: String = ["'./scripts/lane-boot.sh'"];
        stop_cmd: String = ["'./scripts/lane-stop.sh'"];
        startup_cmd: String = ["'cargo check --quiet'"];
        /// The instruction that authorises the batch's changes, under the policy in
        /// policies/control/harness-instruction-policy-v1.json. Edit its intent, or create
        /// another with `premath instruction new`; `check` lists what it covers.
        instruction: String = [r#""instructions/FIRST.json""#] set;
        /// Alternatively an operator override without an instruction. The reason is recorded
        /// with every attempt.
        mutation_mode: String = [r#""human-override""#];
        override_reason: String = [r#""unattended batch, started by its owner""#];
        /// The last month in which the override is valid.
        support_until: String = [r#""2027-12""#];
        /// Replace the built-in retry policy. Its digest is checked. Default:
        /// policies/control/harness-retry-policy-v1.json, if it exists.
        retry_policy: String = [r#""policies/control/harness-retry-policy-v1.json""#];
        /// Replace the built-in turn policy: which tool calls agents may make. Its digest is
        /// checked. Default: policies/control/harness-turn-policy-v1.json, if it exists.
        turn_policy: String = [r#""policies/control/harness-turn-policy-v1.json""#];
        /// Issue types to work on: "all", or a list. Default: all except epics, gates and
        /// other types that are not work.
        issue_types: Words = [r#""all""#, r#"["task", "bug"]"#];
        /// Work only on issues with one of these labels.
        labels: Words = [r#"["night"]"#];
        /// Assignee filter: "none" (unassigned, or assigned to this worker), "any", or a
        /// name.
        assignee: String = [r#""none""#];
        /// Lifetime of a lease without renewal, 30s to 24h.
        lease_ttl: Wait = [r#""1h""#];
        /// After a failure: "continue" with other issues, or "stop".
        on_failure: OnFailure = [r#""continue""#];
        /// Whether an attempt without changes may close its issue by the verification alone:
        /// "refuse" or "allow". An issue with the label `no-change` always may.
        on_no_change: OnNoChange = [r#""refuse""#];
        /// Set an issue aside that failed in so many batches in a row: no batch works on it
        /// until an operator changes it or `premath retry` takes it up. 0 for never.
        set_aside_after: Natural = ["3"];
        /// Whether the verification command of an issue runs after `verify_cmd`, and must pass
        /// too: "run" or "ignore". Only one that an operator wrote by a command of `premath`
        /// runs, as it was when the batch began.
        issue_checks: IssueChecksRule = [r#""run""#];
        /// The prefix of the references to witnesses in the trajectory.
        witness_ref_prefix: String = [r#""worker://loop""#];
    }
}

keys! {
    /// The `[coordinator]` table.
    CoordinatorKeys {
        /// Worktrees to use as lanes, relative to the repository root (`git worktree add ../lane-1`).
        worktrees: Words = [r#"["../lane-1", "../lane-2"]"#];
        /// Workers are named <prefix>.1, <prefix>.2, … in sorted worktree order.
        worker_prefix: String = [r#""worker""#];
        /// Attempts that a lane makes per dispatch.
        max_steps_per_worker: Count = ["1"];
        /// Maximum dispatches per lane. Default: run until no issue is ready.
        rounds: Count = ["3"];
        /// Time for running attempts to finish after the first Ctrl-C.
        drain_grace: Wait = [r#""10m""#];
        /// When the batch ends: "done" if no issue can run any more, also not after its
        /// retry time; "idle" as soon as no issue is ready; "forever" only when it is
        /// stopped.
        until: Word<Until> = [r#""done""#];
        /// Start attempts only between these local times, also over midnight. Running
        /// attempts finish. The batch ends at the end of the window, unless `until` is
        /// "forever".
        window: Word<DayWindow> = [r#""22:00-07:00""#];
        /// Drain the batch at this time: the next occurrence of a local time, or an RFC 3339
        /// time.
        stop_at: Word<StopAt> = [r#""07:00""#];
        /// Drain the batch after this duration.
        max_duration: Period = [r#""9h""#];
    }
}

keys! {
    /// The `[supervision]` table.
    SupervisionKeys {
        /// A command over its limit receives SIGTERM, and is killed with all its children
        /// after the grace period.
        step_limit: Period = [r#""45m""#];
        verify_limit: Period = [r#""45m""#];
        grace: Wait = [r#""10s""#];
        /// Bytes kept of each output stream of a command.
        output_cap_bytes: Count = ["8388608"];
        /// Maximum size of an agent's event stream. A longer stream fails the attempt.
        stream_cap_bytes: Count = ["268435456"];
        /// Maximum silence of an agent: before its first event, during a tool call, and
        /// otherwise. A thinking model can be silent for minutes.
        first_event_limit: Period = [r#""10m""#];
        call_silence: Period = [r#""30m""#];
        silence: Period = [r#""10m""#];
        /// Time for an agent to exit after its final event.
        after_end: Period = [r#""1m""#];
        /// Free disk space and memory required to start an attempt; 0 disables the check. If
        /// no attempt is running, the batch waits `room_wait` for them and then ends.
        free_disk: Bytes = [r#""1GiB""#];
        free_memory: Bytes = [r#""512MiB""#];
        room_wait: Wait = [r#""1h""#];
    }
}

keys! {
    /// The `[breaker]` table.
    BreakerKeys {
        /// After this many consecutive failures with the same environment class, dispatch
        /// pauses; then one attempt probes recovery. After this many failed verifications,
        /// `startup_cmd` (or `verify_cmd`) runs without changes, and dispatch pauses if that
        /// fails. 0 disables both.
        failures: Whole<0, 1_000> = ["3"];
        pause: Period = [r#""5m""#];
    }
}

keys! {
    /// The `[budget]` table.
    BudgetKeys {
        /// Budgets of a batch and of an issue, by what the agents report. `issue_time`
        /// leaves out the time in which the issue waits for others to land.
        batch_tokens: Count = ["50_000_000"];
        batch_usd: Dollars = ["100"];
        issue_tokens: Count = ["5_000_000"];
        issue_usd: Dollars = ["10"];
        issue_time: Period = [r#""3h""#];
    }
}

keys! {
    /// The `[backoff]` table.
    BackoffKeys {
        /// Jitter added to each wait, in percent. It is derived from the step id, so it is
        /// deterministic.
        jitter_percent: Whole<0, 100> = ["10"];
    }
}

keys! {
    /// The `[env]` table.
    EnvironmentKeys {
        /// Commands inherit an allow-list of variables: search paths, locale and build
        /// settings, and for an agent its sign-in variables. `allow` adds names, `drop`
        /// removes names. Values are never recorded.
        allow: Words = [r#"["DATABASE_URL"]"#];
        drop: Words = [r#"["NODE_OPTIONS"]"#];
    }
}

keys! {
    /// The `[limits]` table.
    LimitsKeys {
        /// Limits for all processes of a command together; 0 means unlimited. A command over
        /// a limit is killed, with the class `resource_exceeded`. The default of `memory` is
        /// three quarters of the machine's memory.
        memory: Bytes = [r#""8GiB""#];
        processes: Whole<0, 4_194_304> = ["4096"];
        open_files: Whole<0, 1_073_741_824> = ["65536"];
        /// Bytes written to its worktree, temporary folder and private home.
        disk: Bytes = [r#""50GiB""#];
    }
}

keys! {
    /// The `[worktrees]` table.
    WorktreesKeys {
        /// Number of lanes that the coordinator creates, repairs and removes, if no worktrees
        /// are given. {repo} is the name of this repository's folder.
        count: Whole<1, 1_000> = ["2"] set;
        root: String = [r#""../{repo}-lanes""#];
        /// Prepares a worktree, for example installs dependencies. Runs once, and again when
        /// one of the input files changes.
        setup_cmd: String = ["'npm ci'"];
        setup_inputs: Words = [r#"["package-lock.json"]"#];
    }
}

keys! {
    /// The `[protect]` table.
    ProtectKeys {
        /// An attempt that changes one of these files fails by default: {protected},
        /// the folder that git takes hooks from,
        /// and the scripts that the commands of this file run.
        /// This key protects additional files, as .gitignore patterns.
        paths: Words = [r#"["*.lock", "/tests/golden/"]"#];
        /// Files that are protected by default and that attempts may change.
        allow: Words = [r#"["CLAUDE.md"]"#];
        /// Changes to CI, hooks, build and dependencies: "report" lists them first in the
        /// report, "refuse" fails the attempt.
        sensitive: Word<SensitiveRule> = [r#""report""#];
    }
}

keys! {
    /// The `[sandbox]` table.
    SandboxKeys {
        /// Confinement of commands: "namespaces" (private files, processes and network),
        /// "container" (the same, with the system folders of an image), "landlock" (Linux
        /// 6.2 and later; files only), or "none". Default: "container" if an image is set,
        /// else the strongest of the others that works. If the given mode does not work,
        /// the batch is refused. List what a command may do with `premath sandbox explain`.
        mode: Word<SandboxMode> = [r#""namespaces""#];
        /// The image of the mode "container". Podman or docker provides its files when the
        /// batch begins, and pulls it if it is missing; no container runs.
        image: String = [r#""docker.io/library/debian:12""#];
        /// Additional readable and writable paths. `~` is the home; relative paths start at
        /// this file's folder. If the whole home is opened, commands use it as their home.
        read: Words = [r#"["~/models"]"#];
        write: Words = [r#"["~/.local/share/some-tool"]"#];
    }
}

keys! {
    /// The `[network]` table.
    NetworkKeys {
        /// Hosts that commands may reach if the sandbox has a private network: "off", "allow"
        /// (the listed hosts), "registries" (package registries and the listed hosts), "public"
        /// (all public addresses and the listed hosts) or "open". If the sandbox cannot enforce
        /// a policy that is set here, the batch is refused.
        work: Word<NetworkWord> = [r#""public""#];
        verify: Word<NetworkWord> = [r#""registries""#];
        /// The listed hosts. An entry without a port uses `ports`. A private address must be
        /// listed by address, or by name and port.
        allow: Hosts = [r#"["example.com", "*.example.org", "git.corp.example:443", "127.0.0.1:8080"]"#];
        verify_allow: Hosts = [r#"["packages.corp.example:443"]"#];
        ports: PortList = ["[80, 443]"];
    }
}

keys! {
    /// The `[verify]` table.
    VerifyKeys {
        /// Files that git does not track and that verifications need, such as `.env.test`,
        /// as they are when the batch begins. The work command does not get
        /// these files.
        provide: Words = [r#"[".env.test"]"#];
        /// Whether verifications begin with the build state that the verify command leaves
        /// on the operator's base, each in a layer of its own that is thrown away. The last
        /// commit that lands is then verified once more without it. The work command
        /// begins with the cache folders of that build state, such as cargo's `target`.
        /// Only in the modes "namespaces" and "container", and in a batch of at least
        /// three issues.
        warm: bool = ["true"];
        /// Whether the verify command runs once on the base of the batch before the first
        /// attempt, if there is no `startup_cmd`: "run" or "off". A base that fails refuses
        /// the batch. PREMATH_ISSUE_ID is not set in this run.
        startup: StartupRule = [r#""run""#];
        /// How often a verify command, or `check_cmd`, that fails is repeated on the same
        /// tree, 0 to 3. A verification that then passes counts; the report lists it as
        /// flaky.
        flaky_reruns: Natural = ["1"];
        /// How many attempts in the landing queue are verified at once. Default: the number
        /// of lanes. An attempt keeps its worktree until its work has landed or failed; its
        /// lane meanwhile begins the next issue in a spare worktree. The coordinator makes
        /// spare worktrees for the lanes that it creates, at most one per slot: as soon as
        /// work waits if this key is set, otherwise when work has waited for 30 s. 0: no
        /// spare worktrees.
        slots: Natural = ["4"];
    }
}

keys! {
    /// The `[landing]` table.
    LandingKeys {
        /// What happens to closed work. "merge" (default): each attempt starts at the target's
        /// tip on a separate branch, and its work lands on the target before the issue closes.
        /// "branch": the same, but the work stays on its branch. "none": the work is a commit on
        /// the lane's branch (the default if a lane is the main worktree).
        mode: Word<LandingMode> = [r#""merge""#];
        /// The target branch, created from the main worktree's HEAD if missing. It must not be
        /// checked out in any worktree.
        target: String = [r#""harness/integration""#];
        /// A check of each commit on the target. Other work lands meanwhile. An issue closes
        /// after its check and all earlier ones. If a check fails, its landing is taken back;
        /// what landed on top of it lands again without it.
        check_cmd: String = ["'./scripts/full-test.sh'"];
        /// How many attempts behind the first one in the landing queue are verified on the state
        /// that the work ahead of them makes, all at once. Work that fails supersedes the
        /// verifications behind it. Each charged failure halves the number, down to 3; each
        /// landing raises it by one. 0: work is verified by itself and, in its turn, again.
        speculation: Natural = ["19"];
        /// How many attempts in the landing queue may be verified as one, 1 to 64. Only the
        /// tree of the last one is verified; the others land as commits of their own before it.
        /// If the verification fails, halves are verified. Worth it if verifications take much
        /// longer than work takes to arrive, and mostly pass. 1 (default): each tree that lands
        /// is verified.
        batch: Natural = ["1"];
        /// Push the target to this remote after each landing, never forced.
        push: String = [r#""origin""#];
    }
}

keys! {
    /// The `[signing]` table.
    SigningKeys {
        /// The private SSH key that signs landing commits, as git does with `gpg.format = ssh`.
        /// `~` is the home; relative paths start at this file's folder. The key must have mode
        /// 0600 and no passphrase; create one with `ssh-keygen -t ed25519 -N '' -f FILE`. An
        /// unusable key refuses the batch. `premath audit` then requires a valid signature on
        /// every landing commit. `git log --show-signature` shows it if
        /// `gpg.ssh.allowedSignersFile` lists the public key.
        key: String = [r#""~/.ssh/premath-harness""#];
        /// Use git's `user.signingkey` instead.
        use_git: bool = ["true"];
    }
}

keys! {
    /// The `[notify]` table.
    NotifyKeys {
        /// A command that the coordinator runs for an event, unconfined, at the repository
        /// root. $PREMATH_NOTIFY_TEXT has a line for a person, $PREMATH_NOTIFY_KIND the event,
        /// and stdin a JSON document. A run that fails is reported and delays nothing.
        command: String = [r#"'mail -s "$PREMATH_NOTIFY_TEXT" me@example.org'"#];
        /// A URL that the same document is posted to: https, or http on this machine.
        webhook: String = [r#""https://example.org/premath""#];
        /// The environment variable of the coordinator that holds the secret by which the
        /// webhook is signed: header X-Premath-Signature-256, HMAC-SHA256 over time and body.
        /// Without it nothing is sent. It never passes to a command.
        webhook_secret_env: String = [r#""WEBHOOK_SECRET""#];
        /// The events: done, blocked, budget, parked, red_baseline, failed_check. Default: all.
        events: Words = [r#"["done", "blocked"]"#];
        /// How long the command may run, and the webhook may take, at most 60s.
        timeout: Period = [r#""10s""#];
    }
}

keys! {
    /// The `[telemetry]` table.
    TelemetryKeys {
        /// The base URL of an OpenTelemetry receiver (OTLP over HTTP, protobuf): https, or
        /// http on this machine. Spans go to `/v1/traces` below it, sums to `/v1/metrics`.
        otlp_endpoint: String = [r#""http://127.0.0.1:4318""#];
        /// The environment variable of the coordinator that holds headers for the receiver,
        /// as `key=value,key=value` with percent-encoded values. Where it is named and not
        /// set, the batch is refused. It never passes to a command.
        headers_env: String = [r#""OTLP_HEADERS""#];
        /// How long one request may take, and the end of the batch waits for the last, at
        /// most 60s.
        timeout: Period = [r#""10s""#];
    }
}

keys! {
    /// The `[governance]` table.
    GovernanceKeys {
        /// If this repository claims `profile.doctrine_inf_governance.v0` (profileOverlayClaims
        /// of draft/CAPABILITY-REGISTRY.json): the policy package that turns are bound to, and
        /// its expected SHA-256 digest.
        package: String = [r#""policies/governance/package.json""#];
        package_ref: String = [r#""governance@1.2.0""#];
        expected_digest: String = [r#""sha256:0000000000000000000000000000000000000000000000000000000000000000""#];
    }
}

keys! {
    /// The `[issues]` table.
    IssuesKeys {
        /// The prefix of the ids of new issues while the issue store has none: `<prefix>-1`.
        /// Later ones take the prefix that most ids have. Default: bd.
        prefix: String = [r#""gl""#];
    }
}

keys! {
    /// The `[prompt]` table.
    PromptKeys {
        /// Replace the built-in template of PREMATH_PROMPT_FILE.
        template: String = [r#""prompts/issue.md""#];
    }
}
