# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sandbox_global_optspecs
    string join \n h/help V/version
end

function __fish_sandbox_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_sandbox_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_sandbox_using_subcommand
    set -l cmd (__fish_sandbox_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c sandbox -n "__fish_sandbox_needs_command" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_needs_command" -s V -l version -d 'Print version'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "run" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "learn" -d 'Run a command with what it touches granted, and write the policy it would have needed'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "plan" -d 'Show what `run` would do with the same options, without doing it'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "doctor" -d 'Try what this host can do, and say how to mend what it can not'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "explain-syscall" -d 'Say what a system call is answered inside, by which rule and why'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "why" -d 'Say what decides about a path inside, and where that was said'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "policy" -d 'Show, check, trust, import and export policies, and save answers to them'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "proxy" -d 'Serve the egress proxy alone, for containers that have no other way out'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "approve" -d 'Answer what running sessions ask'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "top" -d 'Show what running sandboxes use'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "net" -d 'Show what a run tries to reach, and what becomes of it'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "audit" -d 'Check and read the audit log'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "check-path" -d 'Say whether a path stays below a directory and reaches nothing that is denied'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "generate" -d 'Write shell completions and manual pages'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l report -d 'Write the run report to this file, as JSON' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l metrics-file -d 'Add this run to the counters in this file, in Prometheus text format; it is made if missing, and many runs may share it' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l json -d 'Print the run report to standard error at the end, as one line of JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -s q -l quiet -d 'Say nothing but errors'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l output -d 'Where to write the policy; rules are added to one that is there' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l report -d 'Write the run report to this file, as JSON' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l metrics-file -d 'Add this run to the counters in this file, in Prometheus text format; it is made if missing, and many runs may share it' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -l json -d 'Print the run report to standard error at the end, as one line of JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -s q -l quiet -d 'Say nothing but errors'
complete -c sandbox -n "__fish_sandbox_using_subcommand learn" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -l json -d 'Print the plan as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand plan" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -l json -d 'Print the findings as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l arch -d 'Ask for a program of this architecture [default: this machine\'s]' -r -f -a "x86_64\t''
aarch64\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l json -d 'Print it as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -l list -d 'Print all groups of calls instead'
complete -c sandbox -n "__fish_sandbox_using_subcommand explain-syscall" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l execute -d 'Ask for executing, not only for reading'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -l json -d 'Print it as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand why" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "show" -d 'Print the policy that all layers make together, and where each value comes from'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "check" -d 'Check policy files, or all layers in their usual places; ends with 1 if something is wrong'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "schema" -d 'Print the JSON Schema of a policy document'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "presets" -d 'List the shipped policies'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "trust" -d 'Let a project\'s own policy loosen what it asks to, as long as its content stays the same'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "export" -d 'Print the merged policy as one document'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "import" -d 'Convert a policy of any known kind into a document of ours, and put it in place'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "save" -d 'Save what was answered in a session to a policy file, for good'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "diff" -d 'Show what a policy file would change, without using it'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and not __fish_seen_subcommand_from show check schema presets trust export import save diff help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Print it as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from check" -l json -d 'Print the findings as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from presets" -l json -d 'Print them as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from presets" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from trust" -l revoke -d 'Trust it no longer'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from trust" -l list -d 'List what is trusted'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from trust" -s y -l yes -d 'Do not ask; for scripts'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from trust" -l json -d 'With --list: print it as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from trust" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l format -r -f -a "yaml\t''
json\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from import" -l to -d 'Whose policy it becomes' -r -f -a "user\t''
project\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from import" -l dry-run -d 'Show the converted document and what it would change, and write nothing'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from import" -l force -d 'Write it even if something in it is lost on the way, or is refused when it is used'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from save" -l session -d 'The session whose answers are saved' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from save" -l to -d 'Whose policy they become' -r -f -a "user\t''
project\t''
organisation\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from save" -l last -d 'The last session that has answers; the default'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from save" -l dry-run -d 'Show what would be added, and write nothing'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from save" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l level -d 'Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l mode -d 'What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of home directories unless it is a secret or denied)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l view -d 'host (same paths as outside; the default) or minimal (system directories, and the project at /workspace)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l on-ask -d 'What happens at the first touch of something not granted: ask (the default: whoever is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l ask-timeout -d 'How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l approve-no-isolation -d 'Answer for running at level 0; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l rw -d 'Make a path writable; a missing directory is created' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l ro -d 'Make a path readable' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l overlay -d 'Make a path look writable; what is written there is thrown away' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l blacklist -d 'Hide a path, by every alias' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow-write -d 'Let a protected name be written, such as .vscode or .git/hooks, with everything in it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l cwd -d 'Working directory inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l env -d 'Set a variable, or pass the caller\'s own on even if it looks like a secret' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l env-mode -d 'inherit (less what looks like a secret; the default), clean or explicit (only what --env names)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l hostname -d 'Host name inside [default: sandbox]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l time-offset -d 'Shift the monotonic and boot clocks' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l network -d 'none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but private addresses) or host (the host\'s own network); all but none are recorded as an approval' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l approve-network-host -d 'Say why the host\'s network is needed; the reason is recorded' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow-host -d 'Let a host be reached, such as api.example, \'*.example\' (below it), \'**.example\' (with itself), api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443] [policy: network.allowedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l deny-host -d 'Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy: network.deniedHosts]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow-for -d 'Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow-private -d 'Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval; repeatable [policy: network.allowedPrivate]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l publish -d 'Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address: 127.0.0.1] [policy: network.publish]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l credential -d 'Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as \'API_TOKEN=env:API_TOKEN,host=api.example\' or \'KEY=file:~/.key,host=api.example,header=x-api-key,format={}\'; for TLS with --intercept; repeatable [policy: network.credentials]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l upstream-proxy -d 'Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l max-connections -d 'Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l max-bytes -d 'Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l memory -d 'Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no limit] [policy: resources.maxMemory]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l memory-high -d 'Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups of version 2 [default: no limit] [policy: resources.memoryHigh]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l swap -d 'Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l cpus -d 'CPUs\' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no limit] [policy: resources.cpus]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l cpuset -d 'The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l cpu-time -d 'CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit code 137 [default: no limit] [policy: resources.maxCPU]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l pids -d 'Processes at any moment, such as 100; no further one is made [default: no limit] [policy: process.maxProcesses]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l threads -d 'Threads at any moment, those of all processes, such as 400 [default: no limit] [policy: resources.maxThreads]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l open-files -d 'Open files of each process, such as 1024 [default: as outside] [policy: resources.maxFileDescriptors]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l io-bandwidth -d 'Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy: resources.maxIOBandwidth]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l iops -d 'Operations a second of reading from disks, and as many of writing, such as 500 [default: no limit] [policy: resources.maxIOPS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l file-size -d 'Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy: filesystem.maxFileSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l disk -d 'Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g; deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l inodes -d 'Files and directories that the run holds at any moment beyond those that were there, such as 50000 [default: no limit] [policy: filesystem.maxInodes]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l timeout -d 'End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds): SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l grace -d 'How long the command may take to end once it was asked to [default: 10s after a signal, 2s at the time limit] [policy: resources.grace]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l max-output -d 'Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut between [default: all] [policy: resources.maxOutputSize]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l waive-limit -d 'Run even if nothing here can hold this limit, named as its option is, such as memory or io-bandwidth; recorded in the report; repeatable [policy: resources.waived]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l normalize-time -d 'Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s, so that its duration tells less [default: off] [policy: resources.normalizeTime]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l policy -d 'Read this policy file too, above the user\'s own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l preset -d 'Start from a shipped policy; see `sandbox policy presets`' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l tool -d 'Apply the defaults and limits of this declared tool' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l static -d 'Short for --mode static'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l no-userns -d 'Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l no-protect-names -d 'Let every name be written that the host would run later: hooks, editor and shell settings'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l no-debug -d 'Forbid ptrace and process_vm_* among the sandbox\'s own processes'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow-network -d 'Short for --network proxy: reach what the policy allows'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l intercept -d 'Open TLS to the hosts of credentials, with an authority of the run\'s own that only the sandbox trusts [policy: network.intercept]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l follow-redirects -d 'Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l best-effort-limits -d 'Accept a limit that is only looked at now and then, where this host has nothing firmer; the report says for which [policy: resources.bestEffort]'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -l json -d 'Print the changes as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the policy that all layers make together, and where each value comes from'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check policy files, or all layers in their usual places; ends with 1 if something is wrong'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON Schema of a policy document'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "presets" -d 'List the shipped policies'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "trust" -d 'Let a project\'s own policy loosen what it asks to, as long as its content stays the same'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "export" -d 'Print the merged policy as one document'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "import" -d 'Convert a policy of any known kind into a document of ours, and put it in place'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "save" -d 'Save what was answered in a session to a policy file, for good'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "diff" -d 'Show what a policy file would change, without using it'
complete -c sandbox -n "__fish_sandbox_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand proxy" -l config -d 'The rules, in any form that a policy is loaded from' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand proxy" -l listen -d 'Where to listen; otherwise what the file\'s `listenAddr` says, or 127.0.0.1:3128' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand proxy" -l json -d 'Tell events as JSON, one object a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand proxy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l yes -d 'Allow what this question asks for; once, if nothing else is said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l no -d 'Deny what this question asks for; for the session, if nothing else is said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l store -d 'Where an answer for good is kept [default: user]' -r -f -a "user\t''
project\t''
organisation\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l sockets -d 'Look for sessions in this directory instead of your own' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l json -d 'Print the open questions as one JSON document'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l watch -d 'With --json: print what happens, one JSON object a line, until interrupted; meanwhile sessions wait for an answer'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l once -d 'Answer for the calls that wait now'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l session -d 'Answer until the session ends'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l always -d 'Answer for good'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l directory -d 'Allow the directory that the question offers, with everything below it'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l secret -d 'Allow it though it is a secret'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -l no-notify -d 'Send no desktop notifications'
complete -c sandbox -n "__fish_sandbox_using_subcommand approve" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand top" -l interval -d 'How often to look, such as 500ms, 2s or 1m' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand top" -l json -d 'Print one JSON document'
complete -c sandbox -n "__fish_sandbox_using_subcommand top" -l watch -d 'With --json: print one document a line at every interval, until interrupted or until the run that was named is over'
complete -c sandbox -n "__fish_sandbox_using_subcommand top" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand net" -s f -l follow -d 'Print every attempt as it happens, until the run is over'
complete -c sandbox -n "__fish_sandbox_using_subcommand net" -l json -d 'Print one JSON document; with --follow, one record of the audit log a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand net" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and not __fish_seen_subcommand_from verify show help" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and not __fish_seen_subcommand_from verify show help" -f -a "verify" -d 'Check every record against the one before it, and the last one against the head'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and not __fish_seen_subcommand_from verify show help" -f -a "show" -d 'Print the records of one run, or of all'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and not __fish_seen_subcommand_from verify show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'Print the result as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from show" -l json -d 'Print the records as they are in the log, one JSON object a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Check every record against the one before it, and the last one against the head'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the records of one run, or of all'
complete -c sandbox -n "__fish_sandbox_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand check-path" -l root -d 'The directory to stay below' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand check-path" -l deny -d 'What must not be reached: a path, relative to the root or absolute, or a pattern (repeatable)' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand check-path" -l json -d 'Print the answers as JSON'
complete -c sandbox -n "__fish_sandbox_using_subcommand check-path" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and not __fish_seen_subcommand_from completions man help" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and not __fish_seen_subcommand_from completions man help" -f -a "completions" -d 'For bash, zsh and fish'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and not __fish_seen_subcommand_from completions man help" -f -a "man" -d 'A page for `sandbox` and one for each of its commands'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and not __fish_seen_subcommand_from completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and __fish_seen_subcommand_from completions" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "completions" -d 'For bash, zsh and fish'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "man" -d 'A page for `sandbox` and one for each of its commands'
complete -c sandbox -n "__fish_sandbox_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "run" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "learn" -d 'Run a command with what it touches granted, and write the policy it would have needed'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "plan" -d 'Show what `run` would do with the same options, without doing it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "doctor" -d 'Try what this host can do, and say how to mend what it can not'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "explain-syscall" -d 'Say what a system call is answered inside, by which rule and why'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "why" -d 'Say what decides about a path inside, and where that was said'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "policy" -d 'Show, check, trust, import and export policies, and save answers to them'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "proxy" -d 'Serve the egress proxy alone, for containers that have no other way out'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "approve" -d 'Answer what running sessions ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "top" -d 'Show what running sandboxes use'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "net" -d 'Show what a run tries to reach, and what becomes of it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "audit" -d 'Check and read the audit log'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "check-path" -d 'Say whether a path stays below a directory and reaches nothing that is denied'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "generate" -d 'Write shell completions and manual pages'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from run learn plan doctor explain-syscall why policy proxy approve top net audit check-path generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "show" -d 'Print the policy that all layers make together, and where each value comes from'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "check" -d 'Check policy files, or all layers in their usual places; ends with 1 if something is wrong'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "schema" -d 'Print the JSON Schema of a policy document'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "presets" -d 'List the shipped policies'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "trust" -d 'Let a project\'s own policy loosen what it asks to, as long as its content stays the same'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "export" -d 'Print the merged policy as one document'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "import" -d 'Convert a policy of any known kind into a document of ours, and put it in place'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "save" -d 'Save what was answered in a session to a policy file, for good'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "diff" -d 'Show what a policy file would change, without using it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "verify" -d 'Check every record against the one before it, and the last one against the head'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "show" -d 'Print the records of one run, or of all'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "completions" -d 'For bash, zsh and fish'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "man" -d 'A page for `sandbox` and one for each of its commands'
