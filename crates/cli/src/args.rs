//! The options that shape a policy, shared by `run`, `plan` and `policy show`.
//!
//! Words and numbers are kept as typed: the policy crate decides what they mean, so that a flag and
//! the same value in a file are judged by one parser.

use clap::{Args, ValueEnum};
use palisade_session::AskIn;
use std::ffi::OsString;
use std::path::PathBuf;

const ISOLATION: &str = "Isolation";
const FILES: &str = "Files";
const PROCESS: &str = "Process and environment";
const NETWORK: &str = "Network";
const LIMITS: &str = "Limits";
const SOURCES: &str = "Where the policy comes from";
const REPORT: &str = "Report";

/// Every option has a twin in the environment: `--env-mode clean` is `SANDBOX_ENV_MODE=clean`, a
/// repeatable path option is a list with `:` between (`,` for hosts and ports, `;` for credentials), a switch is
/// `1` or `0`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail
    #[arg(long, value_name = "LEVEL", help_heading = ISOLATION)]
    pub(crate) level: Option<String>,

    /// What happens to a path nobody granted: dynamic (hidden; the default) or static (readable outside of
    /// home directories unless it is a secret or denied)
    #[arg(long, value_name = "MODE", help_heading = ISOLATION)]
    pub(crate) mode: Option<String>,

    /// Short for --mode static
    #[arg(long = "static", help_heading = ISOLATION)]
    pub(crate) static_mode: bool,

    /// host (same paths as outside; the default) or minimal (system directories, and the project at
    /// /workspace)
    #[arg(long, value_name = "VIEW", help_heading = ISOLATION)]
    pub(crate) view: Option<String>,

    /// What happens when the command uses a path that is not granted: ask (in the terminal or `sandbox approve`; deny if
    /// nobody can be asked; the default), wait (until somebody answers), deny, or allow (reading; all but secrets)
    #[arg(long, value_name = "WORD", help_heading = ISOLATION)]
    pub(crate) on_ask: Option<String>,

    /// How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]
    #[arg(long, value_name = "TIME", help_heading = ISOLATION)]
    pub(crate) ask_timeout: Option<String>,

    /// The key that puts a question in the terminal aside and brings it back, such as ctrl-o [default: ctrl-g]
    #[arg(long, value_name = "KEY", help_heading = ISOLATION)]
    pub(crate) ask_key: Option<String>,

    /// Do without namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user
    /// namespaces
    #[arg(long, help_heading = ISOLATION)]
    pub(crate) no_userns: bool,

    /// Answer for running at level 0; the reason is recorded
    #[arg(long, value_name = "REASON", help_heading = ISOLATION)]
    pub(crate) approve_no_isolation: Option<String>,

    /// Make a path writable; a missing directory is created
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) rw: Vec<String>,

    /// Make a path readable
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) ro: Vec<String>,

    /// Make a path look writable; what is written there is thrown away
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) overlay: Vec<String>,

    /// Hide a path, by every alias
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) blacklist: Vec<String>,

    /// Let a protected name be written, such as .vscode or .git/hooks, with everything in it
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) allow_write: Vec<String>,

    /// Let every name be written that the host would run later: hooks, editor and shell settings
    #[arg(long, help_heading = FILES)]
    pub(crate) no_protect_names: bool,

    /// Working directory inside
    #[arg(long, value_name = "DIR", help_heading = PROCESS)]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or pass the caller's own on even if it looks like a secret
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = PROCESS)]
    pub(crate) env: Vec<String>,

    /// inherit (less what looks like a secret; the default), clean or explicit (only what --env
    /// names)
    #[arg(long, value_name = "MODE", help_heading = PROCESS)]
    pub(crate) env_mode: Option<String>,

    /// Host name inside [default: sandbox]
    #[arg(long, value_name = "NAME", help_heading = PROCESS)]
    pub(crate) hostname: Option<String>,

    /// Forbid ptrace and process_vm_* among the sandbox's own processes
    #[arg(long, help_heading = PROCESS)]
    pub(crate) no_debug: bool,

    /// Shift the monotonic and boot clocks
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true, help_heading = PROCESS)]
    pub(crate) time_offset: Option<String>,

    /// none (own loopback only; the default), proxy (what --allow-host and the policy allow), nat (any host but
    /// private addresses) or host (the host's own network); all but none are recorded as an approval
    #[arg(long, value_name = "MODE", help_heading = NETWORK)]
    pub(crate) network: Option<String>,

    /// Say why the host's network is needed; the reason is recorded
    #[arg(long, value_name = "REASON", help_heading = NETWORK)]
    pub(crate) approve_network_host: Option<String>,

    #[command(flatten)]
    pub(crate) egress: EgressArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Read this policy file too, above the user's own
    #[arg(long, value_name = "FILE", help_heading = SOURCES)]
    pub(crate) policy: Vec<PathBuf>,

    /// Start from a shipped policy; see `sandbox policy presets`
    #[arg(long, value_name = "NAME", help_heading = SOURCES)]
    pub(crate) preset: Vec<String>,

    /// Apply the defaults and limits of this declared tool
    #[arg(long, value_name = "NAME", help_heading = SOURCES)]
    pub(crate) tool: Option<String>,
}

/// What may be reached, and what may come in.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EgressArgs {
    /// Short for --network proxy: reach what the policy allows
    #[arg(long, help_heading = NETWORK)]
    pub(crate) allow_network: bool,

    /// Let a host be reached, such as api.example, '*.example' (below it), '**.example' (with itself),
    /// api.example:22,8443 or 203.0.113.0/24; implies --network proxy; repeatable [ports: 80 and 443]
    /// [policy: network.allowedHosts]
    #[arg(long, value_name = "HOST[:PORT[,PORT]]", help_heading = NETWORK)]
    pub(crate) allow_host: Vec<String>,

    /// Never let a host be reached, whatever is allowed, in the same forms; repeatable [policy:
    /// network.deniedHosts]
    #[arg(long, value_name = "HOST[:PORT[,PORT]]", help_heading = NETWORK)]
    pub(crate) deny_host: Vec<String>,

    /// Let the hosts be reached that tools are set up to use: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven,
    /// gradle, gem or git, such as npm,git; implies --network proxy [policy: network.allowedFor]
    #[arg(long, value_name = "TOOL", help_heading = NETWORK)]
    pub(crate) allow_for: Vec<String>,

    /// Let allowed names stand for private addresses of this range, such as 10.20.0.0/16; recorded as an approval;
    /// repeatable [policy: network.allowedPrivate]
    #[arg(long, value_name = "CIDR", help_heading = NETWORK)]
    pub(crate) allow_private: Vec<String>,

    /// Let a port of this machine lead to one inside, such as 8080:80 or 0.0.0.0:8080:80; repeatable [address:
    /// 127.0.0.1] [policy: network.publish]
    #[arg(long, value_name = "[ADDRESS:]PORT:INNER", help_heading = NETWORK)]
    pub(crate) publish: Vec<String>,

    /// Add a secret to requests to a host on the way out; inside, NAME holds a placeholder. Such as
    /// 'API_TOKEN=env:API_TOKEN,host=api.example' or 'KEY=file:~/.key,host=api.example,header=x-api-key,format={}'; for TLS
    /// with --intercept; repeatable [policy: network.credentials]
    #[arg(long, value_name = "NAME=SOURCE,host=HOST", help_heading = NETWORK)]
    pub(crate) credential: Vec<String>,

    /// Open TLS to the hosts of credentials, with an authority of the run's own that only the sandbox trusts
    /// [policy: network.intercept]
    #[arg(long, help_heading = NETWORK)]
    pub(crate) intercept: bool,

    /// Go through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    pub(crate) upstream_proxy: Option<String>,

    /// Let the proxy follow redirects of plain HTTP itself, each judged anew [policy: network.followRedirects]
    #[arg(long, help_heading = NETWORK)]
    pub(crate) follow_redirects: bool,

    /// Connections at any moment, such as 50 [default: 512] [policy: network.maxConnections]
    #[arg(long, value_name = "NUMBER", help_heading = NETWORK)]
    pub(crate) max_connections: Option<String>,

    /// Bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]
    #[arg(long, value_name = "SIZE", help_heading = NETWORK)]
    pub(crate) max_bytes: Option<String>,
}

/// What the whole run may use, all its processes together. None of these has a default, but for declared
/// tools.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LimitArgs {
    /// Memory, such as 512m or 2g; a run that needs more is ended with exit code 137 [default: no
    /// limit] [policy: resources.maxMemory]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) memory: Option<String>,

    /// Memory above which the run is slowed down and its pages are reclaimed, such as 400m; needs control groups
    /// of version 2 [default: no limit] [policy: resources.memoryHigh]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) memory_high: Option<String>,

    /// Swap beyond --memory, such as 1g [default: 0] [policy: resources.maxSwap]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) swap: Option<String>,

    /// CPUs' worth of time at once, such as 2 or 0.5; what needs more is slowed down [default: no
    /// limit] [policy: resources.cpus]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) cpus: Option<String>,

    /// The only CPUs to run on, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]
    #[arg(long, value_name = "CPUS", help_heading = LIMITS)]
    pub(crate) cpuset: Option<String>,

    /// CPU time, such as 90s or 5m (a bare number is seconds); at its end the run is ended with exit
    /// code 137 [default: no limit] [policy: resources.maxCPU]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub(crate) cpu_time: Option<String>,

    /// Processes at any moment, such as 100; no further one is made [default: no limit] [policy:
    /// process.maxProcesses]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) pids: Option<String>,

    /// Threads at any moment, those of all processes, such as 400 [default: no limit] [policy:
    /// resources.maxThreads]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) threads: Option<String>,

    /// Open files of each process, such as 1024 [default: as outside] [policy:
    /// resources.maxFileDescriptors]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) open_files: Option<String>,

    /// Bytes a second read from disks, and as many written, such as 50m [default: no limit] [policy:
    /// resources.maxIOBandwidth]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) io_bandwidth: Option<String>,

    /// Operations a second of reading from disks, and as many of writing, such as 500 [default: no
    /// limit] [policy: resources.maxIOPS]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) iops: Option<String>,

    /// Size of a single file, such as 100m; writing beyond it fails [default: no limit] [policy:
    /// filesystem.maxFileSize]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) file_size: Option<String>,

    /// Space on disk and in /tmp that the run holds at any moment beyond what was there, such as 2g;
    /// deleting gives back [default: no limit] [policy: filesystem.maxTotalSize]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) disk: Option<String>,

    /// Files and directories that the run holds at any moment beyond those that were there, such as
    /// 50000 [default: no limit] [policy: filesystem.maxInodes]
    #[arg(long, value_name = "NUMBER", help_heading = LIMITS)]
    pub(crate) inodes: Option<String>,

    /// End the run with exit code 124 after this long, such as 90s or 5m (a bare number is seconds):
    /// SIGTERM, and after the grace time SIGKILL [default: no limit] [policy: resources.timeout]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub(crate) timeout: Option<String>,

    /// How long the command may take to end once it was asked to [default: 10s after a signal, 2s at
    /// the time limit] [policy: resources.grace]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub(crate) grace: Option<String>,

    /// Output kept, of each stream, such as 1m: its beginning and its end, and how much was cut
    /// between [default: all] [policy: resources.maxOutputSize]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) max_output: Option<String>,

    /// Accept a limit that is only looked at now and then, where this host has nothing firmer; the
    /// report says for which [policy: resources.bestEffort]
    #[arg(long, help_heading = LIMITS)]
    pub(crate) best_effort_limits: bool,

    /// Run even if nothing here can hold this limit, named as its option is, such as memory or
    /// io-bandwidth; recorded in the report; repeatable [policy: resources.waived]
    #[arg(long, value_name = "NAME", help_heading = LIMITS)]
    pub(crate) waive_limit: Vec<String>,

    /// Let the run end, and be reported to end, only at whole multiples of this, such as 500ms or 5s,
    /// so that its duration tells less [default: off] [policy: resources.normalizeTime]
    #[arg(long, value_name = "STEP", help_heading = LIMITS)]
    pub(crate) normalize_time: Option<String>,
}

/// What `run` tells of itself, and where it asks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArgs {
    /// Write the run report to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) report: Option<PathBuf>,

    /// Add this run to the counters in this file, in Prometheus text format; it is made if missing, and
    /// many runs may share it
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) metrics_file: Option<PathBuf>,

    /// Print the run report to standard error at the end, as one line of JSON
    #[arg(long, help_heading = REPORT)]
    pub(crate) json: bool,

    /// Say nothing but errors
    #[arg(long, short, help_heading = REPORT)]
    pub(crate) quiet: bool,

    /// Where you are asked: terminal (a panel over this one; the default), approve (only in `sandbox approve`),
    /// tmux (opens `sandbox approve` in a popup or pane) or none (nobody is asked)
    #[arg(long, value_name = "WHERE", help_heading = ISOLATION)]
    pub(crate) ask_in: Option<AskInWord>,
}

/// Where a person is asked, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskInWord {
    Terminal,
    Approve,
    Tmux,
    None,
}

impl From<AskInWord> for AskIn {
    fn from(word: AskInWord) -> Self {
        match word {
            AskInWord::Terminal => Self::Terminal,
            AskInWord::Approve => Self::Approve,
            AskInWord::Tmux => Self::Tmux,
            AskInWord::None => Self::None,
        }
    }
}

impl ReportArgs {
    /// These, and where they say nothing, those.
    pub(crate) fn or(self, inherited: Self) -> Self {
        Self {
            report: self.report.or(inherited.report),
            metrics_file: self.metrics_file.or(inherited.metrics_file),
            json: self.json || inherited.json,
            quiet: self.quiet || inherited.quiet,
            ask_in: self.ask_in.or(inherited.ask_in),
        }
    }
}

/// A command line of its own, taken literally.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommandArgs {
    /// The command and its arguments; put `--` before it, and nothing in it is read as an option
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}
