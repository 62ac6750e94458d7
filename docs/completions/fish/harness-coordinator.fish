# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_harness_coordinator_global_optspecs
    string join \n repo-root= issues-path= session-path= feature-ledger-path= trajectory-path= lease-ttl-seconds= work-cmd= agent= adapter= verify-cmd= startup= witness-ref-prefix= instruction= mutation-mode= override-reason= support-until= host-action-transport= issue-types= labels= assignee= landing= landing-target= sandbox= sandbox-image= network-work= network-verify= trust= continue-on-failure stop-on-failure on-no-change= stop-at= max-duration= config= worktree= lanes= rounds= until-done until= window= worker-prefix= max-steps-per-worker= new-batch dry-run json quiet plain h/help V/version
end

function __fish_harness_coordinator_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_harness_coordinator_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_harness_coordinator_using_subcommand
    set -l cmd (__fish_harness_coordinator_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l repo-root -d 'Use the repository that contains this folder [default: .]' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l issues-path -d 'Set the issue store file' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l session-path -d 'Set the session file [default: .premath/harness_session.json]' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l feature-ledger-path -d 'Set the feature ledger file' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l trajectory-path -d 'Set the trajectory file' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l lease-ttl-seconds -d 'Set the lifetime of a lease, 30 to 86400 seconds [default: 3600]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l work-cmd -d 'Set the command that works on an issue [default: $PREMATH_WORK_CMD]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l agent -d 'Distribute these agents over the lanes, for example codex,claude' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l adapter -d 'Set the evidence adapter of the work command' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l verify-cmd -d 'Set the verification command [default: $PREMATH_VERIFY_CMD]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l startup -d 'Run the verify command on the base first, or not: run or off' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l witness-ref-prefix -d 'Set the prefix of work witnesses' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l instruction -d 'Set the instruction of the batch [default: $PREMATH_INSTRUCTION]' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l mutation-mode -d 'Authorise changes by instruction-linked or human-override' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l override-reason -d 'Give the reason for a human override' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l support-until -d 'Set the last month in which the override is valid, YYYY-MM' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l host-action-transport -d 'Set the transport of lease recovery: mcp or local-repl' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l issue-types -d 'Work only on these issue types: all, or a list' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l labels -d 'Work only on issues with one of these labels' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l assignee -d 'Filter by assignee: none, any, or a name [default: none]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l landing -d 'Set what happens to closed work: merge, branch or none' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l landing-target -d 'Set the landing target [default: harness/integration]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l sandbox -d 'Confine commands by namespaces, container, landlock or none' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l sandbox-image -d 'Set the image of the sandbox mode container' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l network-work -d 'Set the network policy of the work command' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l network-verify -d 'Set the network policy of the verification' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l trust -d 'Accept the governing files if they have this digest' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l on-no-change -d 'Refuse or allow closing an issue without a change [default: refuse]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l stop-at -d 'Drain the batch at this time: local, as 07:00, or RFC 3339' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l max-duration -d 'Drain the batch after this duration, for example 9h' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l config -d 'Set the configuration file [default: harness.toml, if it exists]' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l worktree -l worktree-root -d 'Use this worktree as a lane (repeatable)' -r -F
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l lanes -d 'Create N lanes' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l rounds -d 'Limit the dispatches per lane' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l until -d 'Set when the batch ends: done, idle or forever [default: done]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l window -d 'Start attempts only between these local times, as 22:00-07:00' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l worker-prefix -d 'Set the prefix of worker ids [default: worker]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l max-steps-per-worker -d 'Limit the attempts per dispatch [default: 1]' -r
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l continue-on-failure -d 'Continue with other issues after a failure (the default)'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l stop-on-failure -d 'End the batch at the first failed issue'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l until-done -d 'Run until no issue is ready, waiting or running (default without --rounds)'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l new-batch -d 'Start a new batch instead of resuming the interrupted one'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l dry-run -d 'Print what the batch would do, and change nothing'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l json -d 'Print events as JSON lines on stdout'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l quiet -d 'Print only the report at the end'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -l plain -d 'Print lines, also on a terminal'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -s V -l version -d 'Print version'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -f -a "example" -d 'Create a small repository and run a batch on it'
complete -c harness-coordinator -n "__fish_harness_coordinator_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c harness-coordinator -n "__fish_harness_coordinator_using_subcommand example" -l json -d 'Print events as JSON lines on stdout'
complete -c harness-coordinator -n "__fish_harness_coordinator_using_subcommand example" -s h -l help -d 'Print help'
complete -c harness-coordinator -n "__fish_harness_coordinator_using_subcommand help; and not __fish_seen_subcommand_from example help" -f -a "example" -d 'Create a small repository and run a batch on it'
complete -c harness-coordinator -n "__fish_harness_coordinator_using_subcommand help; and not __fish_seen_subcommand_from example help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
