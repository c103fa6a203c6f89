//! The options that shape a policy, shared by `run`, `plan` and `policy show`.
//!
//! Words and numbers are kept as typed: the policy crate decides what they mean, so that an option and
//! the same value in a file are checked by one parser.
//!
//! An option that most people never need has `hide_short_help`: `--help` leaves it out, and `--help-all`, manual pages
//! and completions have it. A first paragraph is the text of `--help`; the whole comment is that of `--help-all`.

use clap::{ArgAction, Args, ValueEnum};
use palisade_ask::Store;
use palisade_session::AskIn;
use std::ffi::OsString;
use std::path::PathBuf;

const FILES: &str = "Files";
const QUESTIONS: &str = "Questions";
const NETWORK: &str = "Network";
const LIMITS: &str = "Limits";
const PROCESS: &str = "Process and environment";
const ISOLATION: &str = "Isolation";
const SOURCES: &str = "Policy";
const REPORT: &str = "Report";
const HELP: &str = "Help";

/// The end of a help text: that of `--help`, whose last line names `--help-all`, and that of `--help-all`.
pub(crate) struct HelpEnd {
    pub(crate) short: &'static str,
    pub(crate) all: &'static str,
}

/// The `HelpEnd` of these words; further ones are for `--help-all` only.
macro_rules! help_end {
    ($both:literal $(, $more:literal)?) => {
        $crate::args::HelpEnd {
            short: concat!($both, "\n\nUse `--help-all` to see all options."),
            all: concat!($both $(, $more)?),
        }
    };
}
pub(crate) use help_end;

/// Every option has a twin in the environment: `--env-mode clean` is `SANDBOX_ENV_MODE=clean`, a
/// repeatable path option is a list with `:` between (`,` for hosts and ports, `;` for credentials), a switch is
/// `1` or `0`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// Make a path readable
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) ro: Vec<String>,

    /// Make a path writable; a missing directory is created
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) rw: Vec<String>,

    /// Make a path look writable; changes are discarded when the run ends
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) overlay: Vec<String>,

    /// Keep the project's files as they are: changes wait until `sandbox apply` or `sandbox discard`
    ///
    /// The command sees its changes; the files outside stay the same. Look at them with `sandbox diff`. auto: apply them at
    /// the end if the command succeeds. copy: work in a copy of the project, as is done where the kernel mounts no overlay.
    /// auto,copy: both.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "keep", help_heading = FILES)]
    pub(crate) transaction: Option<String>,

    /// With --transaction: keep the state of the project before each command of a session, whoever starts it
    ///
    /// `sandbox checkpoints` lists these states, and `sandbox rollback` brings one back. The last 50 are kept.
    #[arg(long, hide_short_help = true, help_heading = FILES)]
    pub(crate) checkpoint_each: bool,

    /// Whose caches of build tools are written: host, own or off [default: own]
    ///
    /// own: the host's caches are read, and what is written is kept for later sandboxes of this project only. host: the
    /// host's are written, so a later build outside uses what the command put there. off: empty at the start of each run.
    #[arg(long, value_name = "WHOSE", hide_short_help = true, help_heading = FILES)]
    pub(crate) caches: Option<String>,

    /// Hide a path
    ///
    /// It is hidden under every name that leads to it, such as links and bind mounts.
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) blacklist: Vec<String>,

    /// Allow writing to a protected name, such as .vscode or .git/hooks, and to everything in it
    #[arg(long, value_name = "PATH", hide_short_help = true, help_heading = FILES)]
    pub(crate) allow_write: Vec<String>,

    /// Write a directory of build output at full speed, such as target or node_modules; names in it are not protected
    ///
    /// A relative path is in the project and in the working directory. The directory must exist when the run starts.
    #[arg(long, value_name = "PATH", hide_short_help = true, help_heading = FILES)]
    pub(crate) build_dir: Vec<String>,

    /// Do not protect the files that the host would run later: hooks, editor and shell settings
    #[arg(long, hide_short_help = true, help_heading = FILES)]
    pub(crate) no_protect_names: bool,

    /// What to do about a path that is not granted: ask, wait, deny or allow
    ///
    /// ask: ask in the terminal or `sandbox approve`; deny if nobody can be asked (default). wait: wait until somebody
    /// answers. deny: deny without asking. allow: allow reading everything except secrets.
    #[arg(long, value_name = "MODE", help_heading = QUESTIONS)]
    pub(crate) on_ask: Option<String>,

    /// How long a question waits for an answer, such as 30s or 10m; then access is denied [default: 5m]
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = QUESTIONS)]
    pub(crate) ask_timeout: Option<String>,

    /// The key that hides a question in the terminal and shows it again, such as ctrl-o [default: ctrl-g]
    #[arg(long, value_name = "KEY", hide_short_help = true, help_heading = QUESTIONS)]
    pub(crate) ask_key: Option<String>,

    /// What notices the first use of a path: auto, fuse or notify [default: auto]
    ///
    /// fuse: what is not granted is a file system served outside the sandbox, and granted paths cost nothing. notify: the
    /// system call filter notifies every call that names a path. Both ask the same questions. auto: fuse where you can open
    /// /dev/fuse, and notify elsewhere.
    #[arg(long, value_name = "TRIGGER", hide_short_help = true, help_heading = QUESTIONS)]
    pub(crate) gate: Option<String>,

    #[command(flatten)]
    pub(crate) egress: EgressArgs,

    /// Network access: none, proxy, nat or host [default: none]
    ///
    /// none: only the loopback device of the sandbox (default). proxy: the hosts that --allow-host and the policy allow.
    /// nat: every host except private addresses. host: the network of the host. All modes but none are recorded as an
    /// approval.
    #[arg(long, value_name = "MODE", help_heading = NETWORK)]
    pub(crate) network: Option<String>,

    /// Why the network of the host is needed; the reason is recorded
    #[arg(long, value_name = "REASON", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) approve_network_host: Option<String>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Set a variable, or pass yours on although its name looks secret
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = PROCESS)]
    pub(crate) env: Vec<String>,

    /// Which environment variables to pass on: inherit, clean or explicit [default: inherit]
    ///
    /// inherit: all of yours except those that look like secrets (default). clean: a minimal set. explicit: only those
    /// that --env names.
    #[arg(long, value_name = "MODE", hide_short_help = true, help_heading = PROCESS)]
    pub(crate) env_mode: Option<String>,

    /// Working directory of the command [default: yours]
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = PROCESS)]
    pub(crate) cwd: Option<String>,

    /// Host name in the sandbox [default: sandbox]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = PROCESS)]
    pub(crate) hostname: Option<String>,

    /// Deny ptrace and process_vm_* between the processes of the sandbox
    #[arg(long, hide_short_help = true, help_heading = PROCESS)]
    pub(crate) no_debug: bool,

    /// Shift the monotonic and boot clocks
    #[arg(
        long,
        value_name = "SECONDS",
        allow_hyphen_values = true,
        hide_short_help = true,
        help_heading = PROCESS
    )]
    pub(crate) time_offset: Option<String>,

    /// Record operations on files in the audit log, as far as they are seen [policy: audit.fileOperations]
    ///
    /// Files that are created, opened for writing, renamed or linked in writable directories of the host; at the end of a
    /// transaction, what it changed. Reads are not seen.
    #[arg(long, hide_short_help = true, help_heading = FILES)]
    pub(crate) audit_files: bool,

    /// Never ask; only secrets, denied paths and homes of other accounts are hidden
    #[arg(long = "static", help_heading = ISOLATION)]
    pub(crate) static_mode: bool,

    /// What happens to paths that are not granted: dynamic or static [default: dynamic]
    ///
    /// dynamic: hidden, and asked about when the command uses them (default). static: readable, except secrets, denied
    /// paths and homes of other accounts; nothing is asked. Your own home needs the gate as a file system (--gate).
    #[arg(long, value_name = "MODE", hide_short_help = true, help_heading = ISOLATION)]
    pub(crate) mode: Option<String>,

    /// Isolation level: 0 (none), 1 (process) or 2 (full; default); also container, bwrap, nsjail
    #[arg(long, value_name = "LEVEL", hide_short_help = true, help_heading = ISOLATION)]
    pub(crate) level: Option<String>,

    /// Which file system the command sees: host or minimal [default: host]
    ///
    /// host: the same paths as outside (default). minimal: system directories, and the project at /workspace.
    #[arg(long, value_name = "VIEW", hide_short_help = true, help_heading = ISOLATION)]
    pub(crate) view: Option<String>,

    /// Use no namespaces: Landlock and seccomp only, at level 1, for hosts that forbid user namespaces
    #[arg(long, hide_short_help = true, help_heading = ISOLATION)]
    pub(crate) no_userns: bool,

    /// Approve running at level 0; the reason is recorded
    #[arg(long, value_name = "REASON", hide_short_help = true, help_heading = ISOLATION)]
    pub(crate) approve_no_isolation: Option<String>,

    /// Start from a built-in policy; `sandbox policy presets` lists them
    #[arg(long, value_name = "NAME", help_heading = SOURCES)]
    pub(crate) preset: Vec<String>,

    /// Also read this policy file; it overrides your own
    #[arg(long, value_name = "FILE", help_heading = SOURCES)]
    pub(crate) policy: Vec<PathBuf>,

    /// Apply the defaults and limits that the policy declares for this tool
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = SOURCES)]
    pub(crate) tool: Option<String>,

    /// Record the terminal to a file, which `sandbox replay` shows [policy: recording.terminal]
    ///
    /// An asciicast file with what the command writes, and markers for questions and network verdicts. Without FILE, it is
    /// kept in the state directory. A session has a file for each command.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", hide_short_help = true, help_heading = REPORT)]
    pub(crate) record: Option<String>,

    /// With --record: what is typed as well, while the terminal echoes it
    #[arg(long, hide_short_help = true, help_heading = REPORT)]
    pub(crate) record_input: bool,

    /// Limit the size of a recording, such as 10m [default: 64m] [policy: recording.maxSize]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = REPORT)]
    pub(crate) record_limit: Option<String>,
}

/// What may be reached, and what may come in.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EgressArgs {
    /// Allow a host, such as api.example or '*.example:8443'
    ///
    /// '*.example' allows the names below example, '**.example' example itself too, and 203.0.113.0/24 a range of
    /// addresses. Ports are 80 and 443 unless you name others, as in api.example:22,8443. Implies --network proxy.
    /// Repeatable. [policy: network.allowedHosts]
    #[arg(long, value_name = "HOST[:PORT]", help_heading = NETWORK)]
    pub(crate) allow_host: Vec<String>,

    /// Allow the hosts that these tools use, such as npm,pip,cargo,git
    ///
    /// The hosts come from the settings of the tools: npm, yarn, pnpm, bun, pip, uv, poetry, cargo, go, maven, gradle, gem
    /// and git. Implies --network proxy.
    /// [policy: network.allowedFor]
    #[arg(long, value_name = "TOOL,…", help_heading = NETWORK)]
    pub(crate) allow_for: Vec<String>,

    /// Deny a host even if another rule allows it; same forms as --allow-host; repeatable [policy:
    /// network.deniedHosts]
    #[arg(long, value_name = "HOST[:PORT]", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) deny_host: Vec<String>,

    /// Allow the hosts that the policy lists; the same as --network proxy
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(crate) allow_network: bool,

    /// Allow names to resolve to private addresses in this range, such as 10.20.0.0/16; recorded as an approval;
    /// repeatable [policy: network.allowedPrivate]
    #[arg(long, value_name = "CIDR", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) allow_private: Vec<String>,

    /// Forward a port of this machine to a port in the sandbox, such as 8080:80 or 0.0.0.0:8080:80; repeatable
    /// [default address: 127.0.0.1] [policy: network.publish]
    #[arg(long, value_name = "[ADDRESS:]PORT:INNER", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) publish: Vec<String>,

    /// Add a secret to requests to a host after they leave the sandbox; in the sandbox, NAME holds a placeholder
    ///
    /// Such as 'API_TOKEN=env:API_TOKEN,host=api.example' or
    /// 'KEY=file:~/.key,host=api.example,header=x-api-key,format={}'. TLS needs --intercept. Repeatable.
    /// [policy: network.credentials]
    #[arg(long, value_name = "NAME=SOURCE,host=HOST", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) credential: Vec<String>,

    /// Decrypt TLS to the hosts that have credentials, with a certificate authority made for this run, which only the
    /// sandbox trusts [policy: network.intercept]
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(crate) intercept: bool,

    /// Connect through this proxy, such as http://proxy.example:3128 [policy: network.upstreamProxy]
    #[arg(long, value_name = "URL", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) upstream_proxy: Option<String>,

    /// Let the proxy follow redirects of plain HTTP itself; it checks each one [policy: network.followRedirects]
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(crate) follow_redirects: bool,

    /// Limit open connections, such as 50 [default: 512] [policy: network.maxConnections]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) max_connections: Option<String>,

    /// Limit the bytes sent and received in the whole run, such as 2g [default: no limit] [policy: network.maxBytes]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = NETWORK)]
    pub(crate) max_bytes: Option<String>,
}

/// What the whole run may use, all its processes together. None of these has a default, except for declared
/// tools.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LimitArgs {
    /// Stop the run after this time, such as 90s or 5m (exit code 124)
    ///
    /// A number alone is seconds. The command gets SIGTERM, and SIGKILL after the grace time. [default: no limit]
    /// [policy: resources.timeout]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub(crate) timeout: Option<String>,

    /// Kill a run that needs more memory, such as 512m or 2g (exit code 137)
    ///
    /// [default: no limit] [policy: resources.maxMemory]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) memory: Option<String>,

    /// Slow the run down and reclaim its pages above this much memory, such as 400m; needs control groups version 2
    /// [default: no limit] [policy: resources.memoryHigh]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) memory_high: Option<String>,

    /// Limit swap, in addition to --memory, such as 1g [default: 0] [policy: resources.maxSwap]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) swap: Option<String>,

    /// Limit CPU use to this many CPUs, such as 2 or 0.5; a run that needs more is slowed down [default: no
    /// limit] [policy: resources.cpus]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) cpus: Option<String>,

    /// Run on these CPUs only, by number, such as 0-3,5 [default: all] [policy: resources.cpuSet]
    #[arg(long, value_name = "CPUS", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) cpuset: Option<String>,

    /// Limit CPU time, such as 90s or 5m (a number alone is seconds); a run that needs more is killed (exit code 137)
    /// [default: no limit] [policy: resources.maxCPU]
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) cpu_time: Option<String>,

    /// Limit the number of processes, such as 100; starting another one fails [default: no limit] [policy:
    /// process.maxProcesses]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) pids: Option<String>,

    /// Limit the number of threads of all processes together, such as 400 [default: no limit] [policy:
    /// resources.maxThreads]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) threads: Option<String>,

    /// Limit the open files of each process, such as 1024 [default: the same as outside] [policy:
    /// resources.maxFileDescriptors]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) open_files: Option<String>,

    /// Limit the bytes read from disks per second, and the bytes written, such as 50m [default: no limit] [policy:
    /// resources.maxIOBandwidth]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) io_bandwidth: Option<String>,

    /// Limit the reads from disks per second, and the writes, such as 500 [default: no limit] [policy:
    /// resources.maxIOPS]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) iops: Option<String>,

    /// Limit the size of a single file, such as 100m; writing more fails [default: no limit] [policy:
    /// filesystem.maxFileSize]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) file_size: Option<String>,

    /// Limit the disk space that the run adds, /tmp included, such as 2g; deleted files no longer count [default: no
    /// limit] [policy: filesystem.maxTotalSize]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) disk: Option<String>,

    /// Limit the number of files and directories that the run adds, such as 50000 [default: no limit] [policy:
    /// filesystem.maxInodes]
    #[arg(long, value_name = "NUMBER", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) inodes: Option<String>,

    /// Keep this much output of each stream, such as 1m: the beginning and the end, with a note of how much was cut
    /// [default: all] [policy: resources.maxOutputSize]
    #[arg(long, value_name = "SIZE", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) max_output: Option<String>,

    /// How long the command may take to end after it was asked to [default: 10s after a signal, 2s at
    /// the time limit] [policy: resources.grace]
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) grace: Option<String>,

    /// End a session after this time, such as 8h; `sandbox extend` gives it more [default: never] [policy:
    /// resources.timeToLive]
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) ttl: Option<String>,

    /// End a session when no command has run in it for this time, such as 30m [default: never] [policy:
    /// resources.idleTimeToLive]
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) idle_ttl: Option<String>,

    /// What happens to the changes of a transaction when a session's time to live is over: keep or discard [default: keep]
    /// [policy: filesystem.onExpiry]
    ///
    /// discard: its checkpoints are discarded, too. Changes of a session that ends in any other way are always kept.
    #[arg(long, value_name = "ACTION", hide_short_help = true, help_heading = FILES)]
    pub(crate) on_expiry: Option<String>,

    /// Accept limits that are only polled, where this host cannot enforce them strictly; the report names them
    /// [policy: resources.bestEffort]
    #[arg(long, hide_short_help = true, help_heading = LIMITS)]
    pub(crate) best_effort_limits: bool,

    /// Run even if this host cannot enforce this limit, named like its option, such as memory or io-bandwidth;
    /// recorded in the report; repeatable [policy: resources.waived]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) waive_limit: Vec<String>,

    /// Round the duration of the run, and what is reported of it, up to a multiple of this, such as 500ms or 5s, so
    /// that it reveals less [default: off] [policy: resources.normalizeTime]
    #[arg(long, value_name = "STEP", hide_short_help = true, help_heading = LIMITS)]
    pub(crate) normalize_time: Option<String>,
}

/// What `run` reports, and where it asks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArgs {
    /// Write a JSON report of the run to this file
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) report: Option<PathBuf>,

    /// Print the JSON report to standard error at the end, on one line
    #[arg(long, hide_short_help = true, help_heading = REPORT)]
    pub(crate) json: bool,

    /// Add this run to the counters in this file, in Prometheus text format; runs may share the file
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = REPORT)]
    pub(crate) metrics_file: Option<PathBuf>,

    /// Print errors only
    #[arg(long, short, hide_short_help = true, help_heading = REPORT)]
    pub(crate) quiet: bool,

    /// Where you are asked [default: terminal]
    ///
    /// terminal: in a panel over this terminal (default). approve: only in `sandbox approve`. tmux: `sandbox approve` is
    /// opened in a popup or pane. none: nobody is asked.
    #[arg(long, value_name = "WHERE", hide_short_help = true, help_heading = QUESTIONS)]
    pub(crate) ask_in: Option<AskInWord>,
}

/// The two lists of options. Commands that flatten it say `disable_help_flag`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct HelpArgs {
    /// Show the most used options
    #[arg(long, short, action = ArgAction::HelpShort, help_heading = HELP)]
    help: Option<bool>,

    /// Show all options
    #[arg(long, action = ArgAction::HelpLong, help_heading = HELP)]
    help_all: Option<bool>,
}

/// Where a person is asked, as typed.
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

/// Whose policy gets a permanent answer, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreWord {
    User,
    Project,
    Organisation,
}

impl From<StoreWord> for Store {
    fn from(word: StoreWord) -> Self {
        match word {
            StoreWord::User => Self::User,
            StoreWord::Project => Self::Project,
            StoreWord::Organisation => Self::Organisation,
        }
    }
}

impl ReportArgs {
    /// These options, completed by the inherited ones.
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

/// The command line to run, taken literally.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommandArgs {
    /// The command and its arguments, after `--`
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}
