# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_premath_global_optspecs
    string join \n json h/help V/version
end

function __fish_premath_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_premath_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_premath_using_subcommand
    set -l cmd (__fish_premath_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c premath -n "__fish_premath_needs_command" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_needs_command" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_needs_command" -f -a "init" -d 'Set up a repository: harness.toml, issue store, instruction, tasks'
complete -c premath -n "__fish_premath_needs_command" -f -a "agents" -d 'Check which coding agents are installed and usable'
complete -c premath -n "__fish_premath_needs_command" -f -a "issue" -d 'List, show and change issues'
complete -c premath -n "__fish_premath_needs_command" -f -a "dep" -d 'Change dependencies between issues and diagnose the graph'
complete -c premath -n "__fish_premath_needs_command" -f -a "instruction" -d 'Write, check and show the instructions that authorise batches'
complete -c premath -n "__fish_premath_needs_command" -f -a "harness-session" -d 'Read and write a worktree\'s session'
complete -c premath -n "__fish_premath_needs_command" -f -a "harness-feature" -d 'Read, write and check a worktree\'s feature ledger'
complete -c premath -n "__fish_premath_needs_command" -f -a "plan" -d 'Print what a batch would do now, and change nothing'
complete -c premath -n "__fish_premath_needs_command" -f -a "batch" -d 'Pause, resume, drain or stop the running batch; change its lanes'
complete -c premath -n "__fish_premath_needs_command" -f -a "cancel" -d 'End the running attempts of issues; their work is saved'
complete -c premath -n "__fish_premath_needs_command" -f -a "say" -d 'Give the agent that works on an issue a text'
complete -c premath -n "__fish_premath_needs_command" -f -a "status" -d 'Show the batches that run: lanes, queue, pace, cost'
complete -c premath -n "__fish_premath_needs_command" -f -a "serve" -d 'Show the batch in a browser: a web page on loopback'
complete -c premath -n "__fish_premath_needs_command" -f -a "watch" -d 'Watch the batch that runs, and control it by keys'
complete -c premath -n "__fish_premath_needs_command" -f -a "why" -d 'Say why an issue is not worked on, or why it did not close'
complete -c premath -n "__fish_premath_needs_command" -f -a "logs" -d 'Print what an attempt of an issue, or a lane, prints'
complete -c premath -n "__fish_premath_needs_command" -f -a "diff" -d 'Show what an attempt of an issue changed, also while it runs'
complete -c premath -n "__fish_premath_needs_command" -f -a "report" -d 'Print the report of a batch'
complete -c premath -n "__fish_premath_needs_command" -f -a "review" -d 'Go through what landed or was salvaged, one change at a time'
complete -c premath -n "__fish_premath_needs_command" -f -a "observe" -d 'Show what the last batch left, for the session that follows'
complete -c premath -n "__fish_premath_needs_command" -f -a "trust" -d 'Show changed governing files and accept them'
complete -c premath -n "__fish_premath_needs_command" -f -a "sandbox" -d 'Show and try the sandbox of a step\'s commands'
complete -c premath -n "__fish_premath_needs_command" -f -a "doctor" -d 'Check that closed work has landed and that nothing is left over'
complete -c premath -n "__fish_premath_needs_command" -f -a "audit" -d 'Check that issues, rows, witnesses and commits agree'
complete -c premath -n "__fish_premath_needs_command" -f -a "clean" -d 'Remove unused branches, worktrees and old output'
complete -c premath -n "__fish_premath_needs_command" -f -a "uninstall" -d 'Remove what the harness has in a repository'
complete -c premath -n "__fish_premath_needs_command" -f -a "harness-trajectory" -d 'Append to the trajectory or query it'
complete -c premath -n "__fish_premath_needs_command" -f -a "kpi" -d 'Report the throughput of the worker loops from the trajectory'
complete -c premath -n "__fish_premath_needs_command" -f -a "harness-join-check" -d 'Judge the evidence of one turn by the typestate gate'
complete -c premath -n "__fish_premath_needs_command" -f -a "transport-dispatch" -d 'Perform a lease action on behalf of another program'
complete -c premath -n "__fish_premath_needs_command" -f -a "world" -d 'Submit a step\'s turn to another repository on this machine'
complete -c premath -n "__fish_premath_needs_command" -f -a "mcp-serve" -d 'Serve the issue store over the Model Context Protocol'
complete -c premath -n "__fish_premath_needs_command" -f -a "doctrine" -d 'Check the table of operations against the contracts and the command line'
complete -c premath -n "__fish_premath_needs_command" -f -a "policy" -d 'Show, explain, check, compare and seal the policies of turns and retries'
complete -c premath -n "__fish_premath_needs_command" -f -a "retry" -d 'Open issues for another attempt, or query the retry policy'
complete -c premath -n "__fish_premath_needs_command" -f -a "escalate" -d 'Escalate the active issue: block it or file a follow-up'
complete -c premath -n "__fish_premath_needs_command" -f -a "classes" -d 'List the failure classes with their meaning and retry rule'
complete -c premath -n "__fish_premath_needs_command" -f -a "schema" -d 'Print the JSON Schema of every document'
complete -c premath -n "__fish_premath_needs_command" -f -a "conformance" -d 'Run the conformance vectors of the gate'
complete -c premath -n "__fish_premath_needs_command" -f -a "service" -d 'Run batches as a service of systemd: write, delete or show its units'
complete -c premath -n "__fish_premath_needs_command" -f -a "completions" -d 'Print the completions of a program for a shell'
complete -c premath -n "__fish_premath_needs_command" -f -a "man" -d 'Print a man page, or write all of them to a folder'
complete -c premath -n "__fish_premath_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand init" -l agent -d 'Set up the command line and the evidence of this agent' -r
complete -c premath -n "__fish_premath_using_subcommand init" -l verify -d 'Set the command that verifies the work' -r
complete -c premath -n "__fish_premath_using_subcommand init" -l lanes -d 'Set the number of lanes [default: 2]' -r
complete -c premath -n "__fish_premath_using_subcommand init" -l id-prefix -d 'Set the prefix of issue ids [default: from the name of the repository\'s folder]' -r
complete -c premath -n "__fish_premath_using_subcommand init" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand init" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand init" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand agents; and not __fish_seen_subcommand_from check help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand agents; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand agents; and not __fish_seen_subcommand_from check help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand agents; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'List installed agents and versions; with --try, run each one once'
complete -c premath -n "__fish_premath_using_subcommand agents; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from check" -l limit -d 'Set the time limit of such a run' -r
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from check" -l try -d 'Run each agent once on a one-line prompt; this calls its provider'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from help" -f -a "check" -d 'List installed agents and versions; with --try, run each one once'
complete -c premath -n "__fish_premath_using_subcommand agents; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "add" -d 'File an issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "list" -d 'List issues by id, closed ones included'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "show" -d 'Show one issue, its blockers and its attempts over all batches'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "ready" -d 'List ready issues by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "blocked" -d 'List blocked issues and their blockers'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "check" -d 'Check the issue store: cycles, edges, leases, acceptance criteria'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "update" -d 'Set fields of an issue; an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "edit" -d 'Change an issue in your editor: $VISUAL, else $EDITOR, else vi'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "close" -d 'Close issues without a turn'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "reopen" -d 'Open closed, blocked, deferred or deleted issues again'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "defer" -d 'Set issues aside: no batch takes them until they are reopened'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "delete" -d 'Delete issues; each is kept as a tombstone, which `reopen` restores'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "import" -d 'File the issues of another tracker: beads, GitHub, CSV, Markdown tasks'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "claim" -d 'Lease an issue to work on it'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "claim-next" -d 'Lease the next ready issue, by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "renew" -d 'Move a lease\'s expiry'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "release" -d 'Release a lease and reopen its issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "discover" -d 'File an issue discovered from another'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "compact" -d 'Rewrite the issue store sorted, one row per issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "accept-changes" -d 'Accept rows that changed outside a transaction'
complete -c premath -n "__fish_premath_using_subcommand issue; and not __fish_seen_subcommand_from add list show ready blocked check update edit close reopen defer delete import claim claim-next renew release discover compact accept-changes help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l file -d 'Read the description from a file; `-` reads stdin' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l depends-on -d 'Wait for this issue; may be repeated' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l parent -d 'Make it a part of this issue' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l design -d 'Set how it is to be done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l status -d 'Set the status' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l id -d 'Set the id [default: the next free number]' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l description -d 'Set what is to be done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l verification -l verify -d 'Set the command that verifies it, beside the batch\'s own' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l acceptance-criteria -l acceptance -d 'Set when it counts as done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l notes -d 'Set the notes' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l priority -d 'Set the priority: 0 to 4, or critical, high, medium, low, backlog; lower runs first' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l type -d 'Set the type; any word' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l labels -d 'Set the labels, separated by commas' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l assignee -d 'Set who it is assigned to' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l owner -d 'Set the owner' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l edit -d 'Write it in your editor: $VISUAL, else $EDITOR, else vi'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from add" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l status -d 'List only issues with this status' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l assignee -d 'List only issues assigned to this name; "" for unassigned ones' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l type -d 'List only issues of this type' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l label -d 'List only issues with this label' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l limit -d 'List at most this many' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from show" -l limit -d 'Show at most this many attempts, the latest [default: 50]' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from show" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from show" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from ready" -l limit -d 'List at most this many' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from ready" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from ready" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from ready" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from ready" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from blocked" -l limit -d 'List at most this many' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from blocked" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from blocked" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from blocked" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from blocked" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from check" -l note-warn-threshold -d 'Warn of notes longer than this many characters' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from check" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l title -d 'Set what it is about, in a line' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l description -d 'Set what is to be done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l file -d 'Read the description from a file; `-` reads stdin' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l verification -l verify -d 'Set the command that verifies it; an empty text clears it' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l design -d 'Set how it is to be done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l acceptance-criteria -l acceptance -d 'Set when it counts as done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l notes -d 'Replace the notes' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l notes-file -d 'Replace the notes by those of a file; `-` reads stdin' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l status -d 'Set the status; closed, blocked and tombstone require --reason' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l priority -d 'Set the priority: 0 to 4, or critical, high, medium, low, backlog; lower runs first' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l type -d 'Set the type; any word' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l labels -d 'Replace the labels, separated by commas; "" removes them' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l assignee -d 'Set who it is assigned to' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l owner -d 'Set the owner' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from update" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from edit" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from edit" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from edit" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from edit" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from edit" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -l epics -d 'Close every open epic whose children are all over'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from close" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from reopen" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from reopen" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from reopen" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from reopen" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from reopen" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from defer" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from defer" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from defer" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from defer" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from defer" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -l force -d 'Delete them although open issues depend on them, which then no longer wait'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from delete" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -l format -d 'Set the format: beads, github, csv or markdown [default: detected]' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -l dry-run -d 'Show what would be filed, and change nothing'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from import" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l assignee -d 'Set the owner of the lease, who becomes the issue\'s assignee' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l lease-id -d 'Set the id of the lease; by default made of issue and owner' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l lease-ttl-seconds -d 'Set the lifetime of the lease in seconds, 30 to 86400' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l any-assignee -d 'Also claim issues that are assigned to another name'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l assignee -d 'Set the owner of the lease, who becomes the issue\'s assignee' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l lease-id -d 'Set the id of the lease; by default made of issue and owner' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l lease-ttl-seconds -d 'Set the lifetime of the lease in seconds, 30 to 86400' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l issue-types -d 'Claim only issues of these types, separated by commas; `all` for every type' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l labels -d 'Claim only issues with one of these labels, separated by commas' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l any-assignee -d 'Also claim issues that are assigned to another name'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from claim-next" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l lease-id -d 'Require this id of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l owner -d 'Require this owner of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l generation -d 'Require this generation of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l lease-ttl-seconds -d 'Set the lifetime of the lease in seconds, 30 to 86400' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from renew" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -l lease-id -d 'Require this id of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -l owner -d 'Require this owner of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -l generation -d 'Require this generation of the lease' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from release" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l id -d 'Set the id [default: the next free number]' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l description -d 'Set what is to be done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l verification -l verify -d 'Set the command that verifies it, beside the batch\'s own' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l acceptance-criteria -l acceptance -d 'Set when it counts as done' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l notes -d 'Set the notes' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l priority -d 'Set the priority: 0 to 4, or critical, high, medium, low, backlog; lower runs first' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l type -d 'Set the type; any word' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l labels -d 'Set the labels, separated by commas' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l assignee -d 'Set who it is assigned to' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l owner -d 'Set the owner' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from discover" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from compact" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from compact" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from compact" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from compact" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -l all -d 'Accept every row that changed outside a transaction'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from accept-changes" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "add" -d 'File an issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "list" -d 'List issues by id, closed ones included'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one issue, its blockers and its attempts over all batches'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "ready" -d 'List ready issues by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "blocked" -d 'List blocked issues and their blockers'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check the issue store: cycles, edges, leases, acceptance criteria'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "update" -d 'Set fields of an issue; an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "edit" -d 'Change an issue in your editor: $VISUAL, else $EDITOR, else vi'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "close" -d 'Close issues without a turn'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "reopen" -d 'Open closed, blocked, deferred or deleted issues again'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "defer" -d 'Set issues aside: no batch takes them until they are reopened'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete issues; each is kept as a tombstone, which `reopen` restores'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "import" -d 'File the issues of another tracker: beads, GitHub, CSV, Markdown tasks'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "claim" -d 'Lease an issue to work on it'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "claim-next" -d 'Lease the next ready issue, by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "renew" -d 'Move a lease\'s expiry'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "release" -d 'Release a lease and reopen its issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "discover" -d 'File an issue discovered from another'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "compact" -d 'Rewrite the issue store sorted, one row per issue'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "accept-changes" -d 'Accept rows that changed outside a transaction'
complete -c premath -n "__fish_premath_using_subcommand issue; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -f -a "add" -d 'Make an issue depend on another; refuse an edge that closes a cycle'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -f -a "remove" -d 'Remove a dependency'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -f -a "replace" -d 'Change the type of a dependency'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -f -a "diagnostics" -d 'Report cycles, dangling edges and issues that can never be ready'
complete -c premath -n "__fish_premath_using_subcommand dep; and not __fish_seen_subcommand_from add remove replace diagnostics help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -l type -d 'Set the type of the dependency' -r -f -a "blocks\t''
conditional-blocks\t''
waits-for\t''
parent-child\t''
related\t''
relates-to\t''
discovered-from\t''
duplicates\t''
supersedes\t''
replies-to\t''"
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -l created-by -d 'Record who adds it' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from add" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -l type -d 'Remove the dependency of this type (any word) between the two' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from remove" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l from-type -d 'Replace the dependency of this type' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l to-type -d 'Set the new type of the dependency' -r -f -a "blocks\t''
conditional-blocks\t''
waits-for\t''
parent-child\t''
related\t''
relates-to\t''
discovered-from\t''
duplicates\t''
supersedes\t''
replies-to\t''"
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l created-by -d 'Record who replaces it' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from replace" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -l graph-scope -d 'Check these issues' -r -f -a "active\t'Issues that are not closed'
full\t'All issues'"
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -l require -d 'Exit 1 if this does not hold' -r -f -a "acyclic\t'No issue waits for itself'"
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from diagnostics" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from help" -f -a "add" -d 'Make an issue depend on another; refuse an edge that closes a cycle'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove a dependency'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from help" -f -a "replace" -d 'Change the type of a dependency'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from help" -f -a "diagnostics" -d 'Report cycles, dangling edges and issues that can never be ready'
complete -c premath -n "__fish_premath_using_subcommand dep; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -l policy -d 'Use this instruction policy [default: policies/control/harness-instruction-policy-v1.json of the repository root where there is one, else the embedded one]' -r -F
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -f -a "new" -d 'Write an instruction bound to the active policy into instructions/'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -f -a "check" -d 'Check an instruction against the active policy and list what it covers'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -f -a "show" -d 'Show an instruction, its digest and its classification'
complete -c premath -n "__fish_premath_using_subcommand instruction; and not __fish_seen_subcommand_from new check show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l intent -d 'Set the intent, in your words' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l id -d 'Set the last part of the file name, after the timestamp' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-kind -d 'Set the kind of the scope, for people' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-target -d 'Set the target of the scope [default: the name of the repository root\'s folder]' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-issue -d 'Cover only this issue (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-label -d 'Cover only issues with this label, or another one given (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-type -d 'Cover only issues of this type, or another one given (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l scope-path -d 'Let work change only files that this pattern matches, from the root (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l type -d 'Set the type, as the active policy names it' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l normalizer -d 'Bind evidence to this normaliser [default: premath.harness.shell.v1, or the first that the policy allows]' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l claim -d 'Claim this change: issue_update, … or all (repeatable) [default: what a batch does, and issue_discover]' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l check -d 'Request this check: verify or startup (repeatable) [default: verify]' -r
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l policy -d 'Use this instruction policy [default: policies/control/harness-instruction-policy-v1.json of the repository root where there is one, else the embedded one]' -r -F
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l allow-unknown -d 'Execute the instruction even if its type is unknown'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l set -d 'Name it in harness.toml, in the place of the one there'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from new" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from check" -l policy -d 'Use this instruction policy [default: policies/control/harness-instruction-policy-v1.json of the repository root where there is one, else the embedded one]' -r -F
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from show" -l policy -d 'Use this instruction policy [default: policies/control/harness-instruction-policy-v1.json of the repository root where there is one, else the embedded one]' -r -F
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from show" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from help" -f -a "new" -d 'Write an instruction bound to the active policy into instructions/'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check an instruction against the active policy and list what it covers'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show an instruction, its digest and its classification'
complete -c premath -n "__fish_premath_using_subcommand instruction; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -l path -d 'Set the session file' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -f -a "read" -d 'Show the session'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -f -a "write" -d 'Write the session; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -f -a "bootstrap" -d 'Report whether the next session resumes a stopped one or attaches'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and not __fish_seen_subcommand_from read write bootstrap help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from read" -l path -d 'Set the session file' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from read" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from read" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l session-id -d 'Override the session\'s id' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l state -d 'Set the state of the session' -r -f -a "active\t'Work is in progress'
stopped\t'Work was handed off'"
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l issue-id -d 'Set the issue of the session' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l summary -d 'Set the summary' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l next-step -d 'Set the next step' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l instruction-ref -d 'Set the instructions (repeatable; replaces the old ones)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l witness-ref -d 'Set the witnesses (repeatable; replaces the old ones)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l lineage-ref -d 'Set the site lineage (repeatable; replaces the old one)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l issues -d 'Record the path of this issue store and its current digest' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l path -d 'Set the session file' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from write" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from bootstrap" -l feature-ledger -d 'Use this feature ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from bootstrap" -l path -d 'Set the session file' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from bootstrap" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from bootstrap" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from bootstrap" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from help" -f -a "read" -d 'Show the session'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from help" -f -a "write" -d 'Write the session; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from help" -f -a "bootstrap" -d 'Report whether the next session resumes a stopped one or attaches'
complete -c premath -n "__fish_premath_using_subcommand harness-session; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -l path -d 'Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -f -a "read" -d 'Show the ledger'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -f -a "write" -d 'Write one feature; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -f -a "check" -d 'Check the ledger\'s rules'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -f -a "next" -d 'Print the next feature: in progress first, then pending, by id'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and not __fish_seen_subcommand_from read write check next help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from read" -l path -d 'Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from read" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from read" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l feature-id -d 'Write this feature' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l status -d 'Set the status [default for a new feature: pending]' -r -f -a "pending\t''
in_progress\t''
blocked\t''
completed\t''"
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l issue-id -d 'Set the issue of the feature' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l summary -d 'Set the summary' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l session-ref -d 'Set the ledger\'s session' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l instruction-ref -d 'Set the instructions of the feature (repeatable; replaces the old ones)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l verification-ref -d 'Set the verification witnesses (repeatable; replaces the old ones)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l path -d 'Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from write" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from check" -l path -d 'Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from check" -l require-closure -d 'Also require that every feature is completed'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from next" -l path -d 'Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from next" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from next" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from next" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from help" -f -a "read" -d 'Show the ledger'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from help" -f -a "write" -d 'Write one feature; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check the ledger\'s rules'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from help" -f -a "next" -d 'Print the next feature: in progress first, then pending, by id'
complete -c premath -n "__fish_premath_using_subcommand harness-feature; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand plan" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l issues-path -d 'Set the issue store file' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l session-path -d 'Set the session file [default: .premath/harness_session.json]' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l feature-ledger-path -d 'Set the feature ledger file' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l trajectory-path -d 'Set the trajectory file' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l lease-ttl-seconds -d 'Set the lifetime of a lease, 30 to 86400 seconds [default: 3600]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l work-cmd -d 'Set the command that works on an issue [default: $PREMATH_WORK_CMD]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l agent -d 'Distribute these agents over the lanes, for example codex,claude' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l adapter -d 'Set the evidence adapter of the work command' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l verify-cmd -d 'Set the verification command [default: $PREMATH_VERIFY_CMD]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l startup -d 'Run the verify command on the base first, or not: run or off' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l witness-ref-prefix -d 'Set the prefix of work witnesses' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l instruction -d 'Set the instruction of the batch [default: $PREMATH_INSTRUCTION]' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l mutation-mode -d 'Authorise changes by instruction-linked or human-override' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l override-reason -d 'Give the reason for a human override' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l support-until -d 'Set the last month in which the override is valid, YYYY-MM' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l host-action-transport -d 'Set the transport of lease recovery: mcp or local-repl' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l issue-types -d 'Work only on these issue types: all, or a list' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l labels -d 'Work only on issues with one of these labels' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l assignee -d 'Filter by assignee: none, any, or a name [default: none]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l landing -d 'Set what happens to closed work: merge, branch or none' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l landing-target -d 'Set the landing target [default: harness/integration]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l sandbox -d 'Confine commands by namespaces, container, landlock or none' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l sandbox-image -d 'Set the image of the sandbox mode container' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l network-work -d 'Set the network policy of the work command' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l network-verify -d 'Set the network policy of the verification' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l trust -d 'Accept the governing files if they have this digest' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l on-no-change -d 'Refuse or allow closing an issue without a change [default: refuse]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l stop-at -d 'Drain the batch at this time: local, as 07:00, or RFC 3339' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l max-duration -d 'Drain the batch after this duration, for example 9h' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l worktree -l worktree-root -d 'Use this worktree as a lane (repeatable)' -r -F
complete -c premath -n "__fish_premath_using_subcommand plan" -l lanes -d 'Create N lanes' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l rounds -d 'Limit the dispatches per lane' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l until -d 'Set when the batch ends: done, idle or forever [default: done]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l window -d 'Start attempts only between these local times, as 22:00-07:00' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l worker-prefix -d 'Set the prefix of worker ids [default: worker]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l max-steps-per-worker -d 'Limit the attempts per dispatch [default: 1]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l width -d 'Use lines of this many columns [default: those of the terminal, or 120]' -r
complete -c premath -n "__fish_premath_using_subcommand plan" -l continue-on-failure -d 'Continue with other issues after a failure (the default)'
complete -c premath -n "__fish_premath_using_subcommand plan" -l stop-on-failure -d 'End the batch at the first failed issue'
complete -c premath -n "__fish_premath_using_subcommand plan" -l until-done -d 'Run until no issue is ready, waiting or running (default without --rounds)'
complete -c premath -n "__fish_premath_using_subcommand plan" -l new-batch -d 'Start a new batch instead of resuming the interrupted one'
complete -c premath -n "__fish_premath_using_subcommand plan" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand plan" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "pause" -d 'Start no new attempts; running ones continue'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "resume" -d 'Start attempts again'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "drain" -d 'Finish the running attempts, then end the batch, as SIGTERM does'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "stop" -d 'End the running attempts now, then the batch; their work is saved'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "lanes" -d 'Add and remove lanes of the running batch'
complete -c premath -n "__fish_premath_using_subcommand batch; and not __fish_seen_subcommand_from pause resume drain stop lanes help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from pause" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from pause" -l reason -d 'Give the reason; recorded in the trajectory' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from pause" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from pause" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from resume" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from resume" -l reason -d 'Give the reason; recorded in the trajectory' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from resume" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from resume" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from drain" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from drain" -l reason -d 'Give the reason; recorded in the trajectory' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from drain" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from drain" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from drain" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from stop" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from stop" -l reason -d 'Give the reason; recorded in the trajectory' -r
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from stop" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from stop" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -f -a "add" -d 'Create lanes that work beside the others'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -f -a "remove" -d 'End a lane after its running attempt'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from lanes" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "pause" -d 'Start no new attempts; running ones continue'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "resume" -d 'Start attempts again'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "drain" -d 'Finish the running attempts, then end the batch, as SIGTERM does'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "stop" -d 'End the running attempts now, then the batch; their work is saved'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "lanes" -d 'Add and remove lanes of the running batch'
complete -c premath -n "__fish_premath_using_subcommand batch; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand cancel" -l label -d 'Cancel the running attempts of issues with one of these labels' -r
complete -c premath -n "__fish_premath_using_subcommand cancel" -l then -d 'Set the issue\'s status: deferred until it is reopened, or open for the next attempt' -r -f -a "open\t'The batch may take it again'
deferred\t'No batch takes it until it is reopened'"
complete -c premath -n "__fish_premath_using_subcommand cancel" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand cancel" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand cancel" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand cancel" -l all -d 'Cancel every running attempt'
complete -c premath -n "__fish_premath_using_subcommand cancel" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand cancel" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand say" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand say" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand say" -l reason -d 'Give the reason; recorded in the trajectory' -r
complete -c premath -n "__fish_premath_using_subcommand say" -l no-wait -d 'Do not wait until the agent is given the text'
complete -c premath -n "__fish_premath_using_subcommand say" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand say" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand say" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand status" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand status" -l width -d 'Use lines of this many columns [default: those of the terminal, or 120]' -r
complete -c premath -n "__fish_premath_using_subcommand status" -l watch -d 'Show it again every second until interrupted'
complete -c premath -n "__fish_premath_using_subcommand status" -l metrics -d 'Print the figures as metrics of Prometheus'
complete -c premath -n "__fish_premath_using_subcommand status" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand status" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand status" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand serve" -l repo-root -d 'Serve this repository' -r -F
complete -c premath -n "__fish_premath_using_subcommand serve" -l port -d 'Listen at this port [default: a free one]' -r
complete -c premath -n "__fish_premath_using_subcommand serve" -l bind -d 'Listen at this address: 127.0.0.1 or ::1, or with --tls-cert any' -r
complete -c premath -n "__fish_premath_using_subcommand serve" -l tls-cert -d 'Serve by TLS, with the certificate chain in this PEM file' -r -F
complete -c premath -n "__fish_premath_using_subcommand serve" -l tls-key -d 'The key of the certificate, in a PEM file that others and steps cannot read' -r -F
complete -c premath -n "__fish_premath_using_subcommand serve" -l host -d 'The name by which browsers reach the server, as in the certificate' -r
complete -c premath -n "__fish_premath_using_subcommand serve" -l token-file -d 'Let programs read by the token in this file, which steps must not be able to read [default: the one of the printed address]' -r -F
complete -c premath -n "__fish_premath_using_subcommand serve" -l control -d 'Let the page pause, resume, drain and stop the batch, cancel attempts and retry issues'
complete -c premath -n "__fish_premath_using_subcommand serve" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand serve" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand serve" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand watch" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand watch" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand watch" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand why" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand why" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand why" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand why" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand logs" -s n -l lines -d 'Print only the last lines [default: 200]' -r
complete -c premath -n "__fish_premath_using_subcommand logs" -l stream -d 'Print one stream only' -r -f -a "stdout\t'The output'
stderr\t'The error output'"
complete -c premath -n "__fish_premath_using_subcommand logs" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand logs" -s f -l follow -d 'Print what comes until the attempt ends'
complete -c premath -n "__fish_premath_using_subcommand logs" -l raw -d 'Print an agent\'s event stream as it is'
complete -c premath -n "__fish_premath_using_subcommand logs" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand logs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand logs" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand diff" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand diff" -l stat -d 'Print the changed files with how many lines changed'
complete -c premath -n "__fish_premath_using_subcommand diff" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand diff" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand diff" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand report" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand report" -l batch -d 'Take this batch [default: the last one that did work]' -r
complete -c premath -n "__fish_premath_using_subcommand report" -l since -d 'Take all batches since this time, or for this long, as in 12h or 7d' -r
complete -c premath -n "__fish_premath_using_subcommand report" -l issue -d 'Report on this issue alone; without a batch, over all batches' -r
complete -c premath -n "__fish_premath_using_subcommand report" -l width -d 'Use lines of this many columns [default: those of the terminal, or 120]' -r
complete -c premath -n "__fish_premath_using_subcommand report" -l markdown -d 'Print Markdown'
complete -c premath -n "__fish_premath_using_subcommand report" -l html -d 'Print one HTML page, without scripts'
complete -c premath -n "__fish_premath_using_subcommand report" -l list -d 'List the texts that batches saved at their end, latest first'
complete -c premath -n "__fish_premath_using_subcommand report" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand report" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand report" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand review" -l batch -d 'Take this batch [default: the last one that did work]' -r
complete -c premath -n "__fish_premath_using_subcommand review" -l since -d 'Take all batches since this time, or for this long, as in 12h or 7d' -r
complete -c premath -n "__fish_premath_using_subcommand review" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand review" -l all -d 'Also what was accepted, reopened or reverted before'
complete -c premath -n "__fish_premath_using_subcommand review" -l list -d 'List what there is to review, and ask nothing'
complete -c premath -n "__fish_premath_using_subcommand review" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand review" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand review" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -f -a "latest" -d 'Show the observation of the last batch'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -f -a "needs_attention" -d 'List what a person should look at'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -f -a "needs-attention" -d 'List what a person should look at'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -f -a "instruction" -d 'Show the observation if the last batch acted under an instruction'
complete -c premath -n "__fish_premath_using_subcommand observe; and not __fish_seen_subcommand_from latest needs_attention needs-attention instruction help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from latest" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from latest" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from latest" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from latest" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs_attention" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs_attention" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs_attention" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs_attention" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs-attention" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs-attention" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs-attention" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from needs-attention" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from instruction" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from instruction" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from instruction" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from instruction" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from help" -f -a "latest" -d 'Show the observation of the last batch'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from help" -f -a "needs_attention" -d 'List what a person should look at'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from help" -f -a "instruction" -d 'Show the observation if the last batch acted under an instruction'
complete -c premath -n "__fish_premath_using_subcommand observe; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand trust" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand trust" -l trust -d 'Accept if the files have this digest' -r
complete -c premath -n "__fish_premath_using_subcommand trust" -l check -d 'Exit 1 if the files are not accepted, and change nothing'
complete -c premath -n "__fish_premath_using_subcommand trust" -l yes -d 'Accept without asking'
complete -c premath -n "__fish_premath_using_subcommand trust" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand trust" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand trust" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -f -a "explain" -d 'List what a step\'s command may read, write and reach, and why'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -f -a "try" -d 'Run a command in a step\'s sandbox, on the files of HEAD'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and not __fish_seen_subcommand_from explain try help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -l sandbox -d 'Confine commands by namespaces, container, landlock or none [default: as in a batch]' -r
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -l sandbox-image -d 'Set the image of the mode container [default: as in a batch]' -r
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from explain" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -l sandbox -d 'Confine commands by namespaces, container, landlock or none [default: as in a batch]' -r
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -l sandbox-image -d 'Set the image of the mode container [default: as in a batch]' -r
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -l verify -d 'Use the network policy and variables of a verification'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from try" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from help" -f -a "explain" -d 'List what a step\'s command may read, write and reach, and why'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from help" -f -a "try" -d 'Run a command in a step\'s sandbox, on the files of HEAD'
complete -c premath -n "__fish_premath_using_subcommand sandbox; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand doctor" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand doctor" -l repair-into -d 'Write the readable rows of the issue store into this new file' -r -F
complete -c premath -n "__fish_premath_using_subcommand doctor" -l fix -d 'Repair what can be repaired safely, and say what is left'
complete -c premath -n "__fish_premath_using_subcommand doctor" -l verify -d 'Run the verification without any work, also where `startup` is off'
complete -c premath -n "__fish_premath_using_subcommand doctor" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand doctor" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand audit" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand audit" -l allowed-signers -d 'Allow only these signing keys; the format is git\'s allowed signers file' -r -F
complete -c premath -n "__fish_premath_using_subcommand audit" -l since -d 'Compare only commits after this one' -r
complete -c premath -n "__fish_premath_using_subcommand audit" -l all -d 'List every contradiction, not only the first'
complete -c premath -n "__fish_premath_using_subcommand audit" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand audit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand audit" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand clean" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand clean" -l older-than -d 'Remove only output, temporary files and salvage older than this' -r
complete -c premath -n "__fish_premath_using_subcommand clean" -l disk-budget -d 'Keep old output while everything fits in this size, for example 20GiB' -r
complete -c premath -n "__fish_premath_using_subcommand clean" -l dry-run -d 'Print what would be removed without removing it'
complete -c premath -n "__fish_premath_using_subcommand clean" -l salvage -d 'Also remove salvage branches and folders of failed steps'
complete -c premath -n "__fish_premath_using_subcommand clean" -l lanes -d 'Also remove free lanes without changes, and their checkouts for verification'
complete -c premath -n "__fish_premath_using_subcommand clean" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand clean" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand clean" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand uninstall" -l dry-run -d 'Print what would be removed without removing it'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -l yes -d 'Do not ask'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -l discard-work -d 'Also delete branches of the harness with commits that no other branch has'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand uninstall" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -l path -d 'Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -f -a "append" -d 'Append a row'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -f -a "query" -d 'List rows, latest first'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and not __fish_seen_subcommand_from append query help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l step-id -d 'Set the step id; a repeated one is appended too' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l action -d 'Set the action of the row, for example worker.loop' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l result-class -d 'Set the result class, for example completed' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l issue-id -d 'Set the issue of the step' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l instruction-ref -d 'Add an instruction of the step (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l witness-ref -d 'Add a witness of the step (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l lineage-ref -d 'Add a part of the site lineage (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l started-at -d 'Set the start time, RFC 3339' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l finished-at -d 'Set the end time, RFC 3339 [default: now]' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l path -d 'Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from append" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -l mode -d 'List these rows' -r -f -a "latest\t'All rows'
failed\t'Those that did not succeed'
retry-needed\t'Those that ask for a retry'"
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -l limit -d 'List at most this many' -r
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -l path -d 'Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from query" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from help" -f -a "append" -d 'Append a row'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from help" -f -a "query" -d 'List rows, latest first'
complete -c premath -n "__fish_premath_using_subcommand harness-trajectory; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand kpi" -l path -d 'Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand kpi" -l window -d 'Look back this far from the newest row, for example 24h [default: 24h]' -r
complete -c premath -n "__fish_premath_using_subcommand kpi" -l require -d 'Exit 1 if the verdict is worse' -r -f -a "pass\t'0.8 and above'
watch\t'0.4 and above'"
complete -c premath -n "__fish_premath_using_subcommand kpi" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand kpi" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand kpi" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -l input -d 'Read the evidence and its constraints, or a step\'s `….turn.json`; `-` reads stdin' -r -F
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -l require -d 'Exit 1 if the verdict is worse' -r -f -a "accepted\t'The join is closed'
mutation-ready\t'The join is closed and the turn may change issues'"
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -l explain -d 'List the rows that broke a rule, what would satisfy it, and ignored fields'
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand harness-join-check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -l action -d 'Perform this action: issue.claim, issue.claim_next, issue.lease_renew, issue.lease_release or issue.lease.state' -r
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -l payload -d 'Set the payload, a JSON object: id, assignee, leaseId, leaseTtlSeconds or leaseExpiresAt, generation, issuesPath' -r
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -l host-action-transport -d 'Set the transport: mcp or local-repl [default: $PREMATH_HOST_ACTION_TRANSPORT, else mcp]' -r
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand transport-dispatch" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -l path -d 'Record the crossing in this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -f -a "submit" -d 'Submit a step\'s turn to the gate of another repository'
complete -c premath -n "__fish_premath_using_subcommand world; and not __fish_seen_subcommand_from submit help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -l world -d 'Submit to the repository that contains this folder' -r -F
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -l turn -d 'Submit this turn witness, artifacts/ciwitness/STEP.turn.json' -r -F
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -l require -d 'Exit 1 unless the crossing reaches this' -r -f -a "accepted\t'The other world\'s gate admits the turn'"
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -l path -d 'Record the crossing in this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from submit" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from help" -f -a "submit" -d 'Submit a step\'s turn to the gate of another repository'
complete -c premath -n "__fish_premath_using_subcommand world; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l repo-root -d 'Serve this repository; relative paths are below it' -r -F
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l instruction -d 'Authorise changes by this instruction [default: $PREMATH_INSTRUCTION, else batch.instruction of harness.toml]; without one the tools only read' -r -F
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l lease -d 'Serve one step: tools read everything, file follow-up issues in the step\'s outbox, and change nothing else; a `:` or `%` within a part is percent-encoded [default: the step that the environment names]' -r
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l http -d 'Serve HTTP at this loopback address instead of stdin and stdout; port 0 takes a free one' -r
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l token-file -d 'Require the token in this file from every HTTP request; steps must not be able to read it [default: $PREMATH_MCP_TOKEN, else .premath/private/mcp-token, created if missing]' -r -F
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand mcp-serve" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and not __fish_seen_subcommand_from check help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and not __fish_seen_subcommand_from check help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Check that every command has one operation id and one route'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check that every command has one operation id and one route'
complete -c premath -n "__fish_premath_using_subcommand doctrine; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "show" -d 'Show the policy that is in force'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "explain" -d 'Explain the policy, or what it decides about a tool call'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "seal" -d 'Write the digest of an edited policy into its file'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "check" -d 'Check a policy file and name what is wrong with it'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "diff" -d 'Show which rules and limits of two policies differ'
complete -c premath -n "__fish_premath_using_subcommand policy; and not __fish_seen_subcommand_from show explain seal check diff help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -l kind -d 'Read the policy of this kind that is in force' -r -f -a "turn\t'Which tool calls agents may make'
retry\t'What follows a failure'"
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -l policy -d 'Read this file, sealed or not, instead of the policy in force' -r -F
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l kind -d 'Read the policy of this kind that is in force' -r -f -a "turn\t'Which tool calls agents may make'
retry\t'What follows a failure'"
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l policy -d 'Read this file, sealed or not, instead of the policy in force' -r -F
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l tool -d 'Decide about a call of a tool of this class [default: shell, if there is a command]' -r -f -a "shell\t''
edit\t''
read\t''
search\t''
web_fetch\t''
web_search\t''
subagent\t''
plan\t''
mcp\t''
other\t''"
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l caller -d 'Say who makes the call [default: agent]' -r -f -a "agent\t''
subagent\t''"
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l name -d 'Set the agent\'s name of the tool; of an MCP tool, server/tool' -r
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l path -d 'Add a file of the call, from the worktree\'s root, or absolute' -r
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l host -d 'Add a host that the call reaches' -r
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from explain" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from seal" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from seal" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from seal" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from check" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from check" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from diff" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from diff" -l replay -d 'Also judge the calls of earlier turns by the policy after, from the journals of their hooks'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from diff" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from diff" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the policy that is in force'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Explain the policy, or what it decides about a tool call'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "seal" -d 'Write the digest of an edited policy into its file'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check a policy file and name what is wrong with it'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Show which rules and limits of two policies differ'
complete -c premath -n "__fish_premath_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l label -d 'Retry blocked and deferred issues with one of these labels' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l note -d 'Add a hint to the issue\'s notes; the next prompt has it' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l batch -d 'Ask this batch [default: the only one that runs in the repository]' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l reason -l override-reason -d 'Give the reason for the change; recorded in the issue\'s row' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l blocked -d 'Retry every blocked issue'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -a "decide" -d 'Decide whether to retry or escalate a failed attempt'
complete -c premath -n "__fish_premath_using_subcommand retry; and not __fish_seen_subcommand_from decide help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -l class -d 'Add a class of the failure; the first that a rule names decides' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -l policy -d 'Set the retry policy' -r -F
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -l attempt -d 'Set the number of the failed attempt, from 1' -r
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from decide" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from help" -f -a "decide" -d 'Decide whether to retry or escalate a failed attempt'
complete -c premath -n "__fish_premath_using_subcommand retry; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand escalate" -l class -d 'Add a class of the failure; the first that a rule names decides' -r
complete -c premath -n "__fish_premath_using_subcommand escalate" -l policy -d 'Set the retry policy' -r -F
complete -c premath -n "__fish_premath_using_subcommand escalate" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c premath -n "__fish_premath_using_subcommand escalate" -l attempt -d 'Set the number of the failed attempt, from 1 [default: the last one that the rule gives]' -r
complete -c premath -n "__fish_premath_using_subcommand escalate" -l witness-ref -d 'Add a witness of the failure (repeatable)' -r
complete -c premath -n "__fish_premath_using_subcommand escalate" -l assignee -d 'Set who escalates: the owner of the lease on the issue, or of a lease taken for the change' -r
complete -c premath -n "__fish_premath_using_subcommand escalate" -l override-reason -d 'Give the reason to change issues without an instruction [default: `override_reason` of harness.toml]' -r
complete -c premath -n "__fish_premath_using_subcommand escalate" -l issues -d 'Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand escalate" -l trajectory -d 'Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]' -r -F
complete -c premath -n "__fish_premath_using_subcommand escalate" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand escalate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand escalate" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand classes" -l family -d 'List one family' -r -f -a "typestate\t'The turn: tool calls, protocol, context, mutation, governance'
lease\t'Leases and the storage that holds them'
execution\t'What a command of the step did'
instruction\t'Instruction envelopes and the policy that admits them'
loop\t'The loop itself: lanes, worktrees, policy, escalation'
world\t'The way of a turn to another world'
ledger\t'The feature ledger\'s check'
issue-graph\t'The check of the issue store'"
complete -c premath -n "__fish_premath_using_subcommand classes" -l config -d 'Use the policy that this configuration names [default: harness.toml of the main worktree, where there is one]' -r -F
complete -c premath -n "__fish_premath_using_subcommand classes" -l markdown -d 'Print the documentation page, with the embedded policy'
complete -c premath -n "__fish_premath_using_subcommand classes" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand classes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand classes" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand schema" -l dir -d 'Write every schema into this folder, each as KIND.schema.json' -r -F
complete -c premath -n "__fish_premath_using_subcommand schema" -l check -d 'Check that this folder holds exactly the current schemas' -r -F
complete -c premath -n "__fish_premath_using_subcommand schema" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand schema" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand schema" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -f -a "run" -d 'Run every vector and check the suite; exit 1 on any failure'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -f -a "slices" -d 'List the typestate slices with their rules and vectors'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -f -a "documents" -d 'Write each vector\'s document as a harness-join-check input file'
complete -c premath -n "__fish_premath_using_subcommand conformance; and not __fish_seen_subcommand_from run slices documents help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from run" -l suite -d 'Judge the vectors of one suite, and ask for no coverage' -r -f -a "golden\t'Turns that are accepted'
adversarial\t'Turns with exactly one root class'
invariance\t'Two spellings of one turn'
refusal\t'Inputs that cannot be read'"
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from run" -l vectors -d 'Use the suite in this folder [default: the one that this binary was built with]' -r -F
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from run" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from run" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from slices" -l vectors -d 'Use the suite in this folder [default: the one that this binary was built with]' -r -F
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from slices" -l markdown -d 'Print the documentation page'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from slices" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from slices" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from slices" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from documents" -l dir -d 'Write the documents into this folder' -r -F
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from documents" -l vectors -d 'Use the suite in this folder [default: the one that this binary was built with]' -r -F
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from documents" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from documents" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from documents" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run every vector and check the suite; exit 1 on any failure'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from help" -f -a "slices" -d 'List the typestate slices with their rules and vectors'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from help" -f -a "documents" -d 'Write each vector\'s document as a harness-join-check input file'
complete -c premath -n "__fish_premath_using_subcommand conformance; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -f -a "install" -d 'Write a service, and a timer, of systemd for this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -f -a "uninstall" -d 'Delete the units of this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -f -a "show" -d 'Show the units of this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and not __fish_seen_subcommand_from install uninstall show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l name -d 'The name of the units, without an ending [default: premath-REPOSITORY]' -r
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l every-night -d 'Start a batch every day at this local time' -r
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l program -d 'Run this program [default: harness-coordinator beside premath, or in PATH]' -r -F
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l user -d 'Write units of this user; there are no others'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l forever -d 'Run one batch that stays and works on issues as they are added'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l dry-run -d 'Print the units and write nothing'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l force -d 'Overwrite units that a person changed, or that are another repository\'s'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from install" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -l name -d 'The name of the units, without an ending [default: premath-REPOSITORY]' -r
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -l force -d 'Delete units that a person changed, too'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from uninstall" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from show" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from show" -l name -d 'The name of the units, without an ending [default: premath-REPOSITORY]' -r
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from show" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from help" -f -a "install" -d 'Write a service, and a timer, of systemd for this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from help" -f -a "uninstall" -d 'Delete the units of this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the units of this repository'
complete -c premath -n "__fish_premath_using_subcommand service; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand completions" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand completions" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand completions" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand man" -l dir -d 'Write every page to this folder instead, for example ~/.local/share/man/man1' -r -F
complete -c premath -n "__fish_premath_using_subcommand man" -l json -d 'Answer with one JSON document on stdout'
complete -c premath -n "__fish_premath_using_subcommand man" -s h -l help -d 'Print help'
complete -c premath -n "__fish_premath_using_subcommand man" -s V -l version -d 'Print version'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "init" -d 'Set up a repository: harness.toml, issue store, instruction, tasks'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "agents" -d 'Check which coding agents are installed and usable'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "issue" -d 'List, show and change issues'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "dep" -d 'Change dependencies between issues and diagnose the graph'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "instruction" -d 'Write, check and show the instructions that authorise batches'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "harness-session" -d 'Read and write a worktree\'s session'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "harness-feature" -d 'Read, write and check a worktree\'s feature ledger'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "plan" -d 'Print what a batch would do now, and change nothing'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "batch" -d 'Pause, resume, drain or stop the running batch; change its lanes'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "cancel" -d 'End the running attempts of issues; their work is saved'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "say" -d 'Give the agent that works on an issue a text'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "status" -d 'Show the batches that run: lanes, queue, pace, cost'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "serve" -d 'Show the batch in a browser: a web page on loopback'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "watch" -d 'Watch the batch that runs, and control it by keys'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "why" -d 'Say why an issue is not worked on, or why it did not close'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "logs" -d 'Print what an attempt of an issue, or a lane, prints'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "diff" -d 'Show what an attempt of an issue changed, also while it runs'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "report" -d 'Print the report of a batch'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "review" -d 'Go through what landed or was salvaged, one change at a time'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "observe" -d 'Show what the last batch left, for the session that follows'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "trust" -d 'Show changed governing files and accept them'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "sandbox" -d 'Show and try the sandbox of a step\'s commands'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "doctor" -d 'Check that closed work has landed and that nothing is left over'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "audit" -d 'Check that issues, rows, witnesses and commits agree'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "clean" -d 'Remove unused branches, worktrees and old output'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "uninstall" -d 'Remove what the harness has in a repository'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "harness-trajectory" -d 'Append to the trajectory or query it'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "kpi" -d 'Report the throughput of the worker loops from the trajectory'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "harness-join-check" -d 'Judge the evidence of one turn by the typestate gate'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "transport-dispatch" -d 'Perform a lease action on behalf of another program'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "world" -d 'Submit a step\'s turn to another repository on this machine'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "mcp-serve" -d 'Serve the issue store over the Model Context Protocol'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "doctrine" -d 'Check the table of operations against the contracts and the command line'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "policy" -d 'Show, explain, check, compare and seal the policies of turns and retries'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "retry" -d 'Open issues for another attempt, or query the retry policy'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "escalate" -d 'Escalate the active issue: block it or file a follow-up'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "classes" -d 'List the failure classes with their meaning and retry rule'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "schema" -d 'Print the JSON Schema of every document'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "conformance" -d 'Run the conformance vectors of the gate'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "service" -d 'Run batches as a service of systemd: write, delete or show its units'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "completions" -d 'Print the completions of a program for a shell'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "man" -d 'Print a man page, or write all of them to a folder'
complete -c premath -n "__fish_premath_using_subcommand help; and not __fish_seen_subcommand_from init agents issue dep instruction harness-session harness-feature plan batch cancel say status serve watch why logs diff report review observe trust sandbox doctor audit clean uninstall harness-trajectory kpi harness-join-check transport-dispatch world mcp-serve doctrine policy retry escalate classes schema conformance service completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from agents" -f -a "check" -d 'List installed agents and versions; with --try, run each one once'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "add" -d 'File an issue'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "list" -d 'List issues by id, closed ones included'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "show" -d 'Show one issue, its blockers and its attempts over all batches'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "ready" -d 'List ready issues by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "blocked" -d 'List blocked issues and their blockers'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "check" -d 'Check the issue store: cycles, edges, leases, acceptance criteria'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "update" -d 'Set fields of an issue; an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "edit" -d 'Change an issue in your editor: $VISUAL, else $EDITOR, else vi'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "close" -d 'Close issues without a turn'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "reopen" -d 'Open closed, blocked, deferred or deleted issues again'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "defer" -d 'Set issues aside: no batch takes them until they are reopened'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "delete" -d 'Delete issues; each is kept as a tombstone, which `reopen` restores'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "import" -d 'File the issues of another tracker: beads, GitHub, CSV, Markdown tasks'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "claim" -d 'Lease an issue to work on it'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "claim-next" -d 'Lease the next ready issue, by priority, then id'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "renew" -d 'Move a lease\'s expiry'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "release" -d 'Release a lease and reopen its issue'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "discover" -d 'File an issue discovered from another'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "compact" -d 'Rewrite the issue store sorted, one row per issue'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from issue" -f -a "accept-changes" -d 'Accept rows that changed outside a transaction'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from dep" -f -a "add" -d 'Make an issue depend on another; refuse an edge that closes a cycle'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from dep" -f -a "remove" -d 'Remove a dependency'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from dep" -f -a "replace" -d 'Change the type of a dependency'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from dep" -f -a "diagnostics" -d 'Report cycles, dangling edges and issues that can never be ready'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from instruction" -f -a "new" -d 'Write an instruction bound to the active policy into instructions/'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from instruction" -f -a "check" -d 'Check an instruction against the active policy and list what it covers'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from instruction" -f -a "show" -d 'Show an instruction, its digest and its classification'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-session" -f -a "read" -d 'Show the session'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-session" -f -a "write" -d 'Write the session; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-session" -f -a "bootstrap" -d 'Report whether the next session resumes a stopped one or attaches'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-feature" -f -a "read" -d 'Show the ledger'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-feature" -f -a "write" -d 'Write one feature; omitted fields stay, an empty text clears a field'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-feature" -f -a "check" -d 'Check the ledger\'s rules'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-feature" -f -a "next" -d 'Print the next feature: in progress first, then pending, by id'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from batch" -f -a "pause" -d 'Start no new attempts; running ones continue'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from batch" -f -a "resume" -d 'Start attempts again'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from batch" -f -a "drain" -d 'Finish the running attempts, then end the batch, as SIGTERM does'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from batch" -f -a "stop" -d 'End the running attempts now, then the batch; their work is saved'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from batch" -f -a "lanes" -d 'Add and remove lanes of the running batch'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from observe" -f -a "latest" -d 'Show the observation of the last batch'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from observe" -f -a "needs_attention" -d 'List what a person should look at'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from observe" -f -a "instruction" -d 'Show the observation if the last batch acted under an instruction'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from sandbox" -f -a "explain" -d 'List what a step\'s command may read, write and reach, and why'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from sandbox" -f -a "try" -d 'Run a command in a step\'s sandbox, on the files of HEAD'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-trajectory" -f -a "append" -d 'Append a row'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from harness-trajectory" -f -a "query" -d 'List rows, latest first'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from world" -f -a "submit" -d 'Submit a step\'s turn to the gate of another repository'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from doctrine" -f -a "check" -d 'Check that every command has one operation id and one route'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "show" -d 'Show the policy that is in force'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "explain" -d 'Explain the policy, or what it decides about a tool call'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "seal" -d 'Write the digest of an edited policy into its file'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "check" -d 'Check a policy file and name what is wrong with it'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "diff" -d 'Show which rules and limits of two policies differ'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from retry" -f -a "decide" -d 'Decide whether to retry or escalate a failed attempt'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from conformance" -f -a "run" -d 'Run every vector and check the suite; exit 1 on any failure'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from conformance" -f -a "slices" -d 'List the typestate slices with their rules and vectors'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from conformance" -f -a "documents" -d 'Write each vector\'s document as a harness-join-check input file'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from service" -f -a "install" -d 'Write a service, and a timer, of systemd for this repository'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from service" -f -a "uninstall" -d 'Delete the units of this repository'
complete -c premath -n "__fish_premath_using_subcommand help; and __fish_seen_subcommand_from service" -f -a "show" -d 'Show the units of this repository'
