//! The options that shape a policy, shared by `run`, `plan` and `policy show`.
//!
//! Words and numbers are kept as typed: the policy crate decides what they mean, so that a flag and
//! the same value in a file are judged by one parser.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const ISOLATION: &str = "Isolation";
const FILES: &str = "Files";
const PROCESS: &str = "Process and environment";
const NETWORK: &str = "Network";
const SOURCES: &str = "Where the policy comes from";
const REPORT: &str = "Report";

/// Every option has a twin in the environment: `--env-mode clean` is `SANDBOX_ENV_MODE=clean`, a
/// repeatable path option is a list with `:` between, a switch is `1` or `0`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// Isolation: 0 (none), 1 (process) or 2 (full, the default); also container, bwrap, nsjail
    #[arg(long, value_name = "LEVEL", help_heading = ISOLATION)]
    pub(crate) level: Option<String>,

    /// What happens to a path nobody granted: dynamic (hidden; the default) or static (readable
    /// unless it is a secret or denied)
    #[arg(long, value_name = "MODE", help_heading = ISOLATION)]
    pub(crate) mode: Option<String>,

    /// Short for --mode static
    #[arg(long = "static", help_heading = ISOLATION)]
    pub(crate) static_mode: bool,

    /// host (same paths as outside; the default) or minimal (system directories, and the project at
    /// /workspace)
    #[arg(long, value_name = "VIEW", help_heading = ISOLATION)]
    pub(crate) view: Option<String>,

    /// What happens at the first touch of something not granted: ask (the default: whoever
    /// is there; nobody means no), wait (until somebody answers), deny, or allow (all but secrets)
    #[arg(long, value_name = "WORD", help_heading = ISOLATION)]
    pub(crate) on_ask: Option<String>,

    /// How long a question waits for its answer, such as 30s or 10m; then it is denied [default: 5m]
    #[arg(long, value_name = "TIME", help_heading = ISOLATION)]
    pub(crate) ask_timeout: Option<String>,

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

    /// End the run with exit code 124 after this long, such as 90s or 5m: SIGTERM, and after the grace
    /// time SIGKILL
    #[arg(long, value_name = "TIME", help_heading = PROCESS)]
    pub(crate) timeout: Option<String>,

    /// How long the command may take to end once it was asked to [default: 10s after a signal, 2s at
    /// the time limit]
    #[arg(long, value_name = "TIME", help_heading = PROCESS)]
    pub(crate) grace: Option<String>,

    /// none (own loopback only; the default) or host, which is recorded as an approval; proxy and
    /// nat are not in this version
    #[arg(long, value_name = "MODE", help_heading = NETWORK)]
    pub(crate) network: Option<String>,

    /// Say why the host's network is needed; the reason is recorded
    #[arg(long, value_name = "REASON", help_heading = NETWORK)]
    pub(crate) approve_network_host: Option<String>,

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

/// What `run` tells of itself.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArgs {
    /// Write the run report to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) report: Option<PathBuf>,

    /// Print the run report to standard error at the end, as one line of JSON
    #[arg(long, help_heading = REPORT)]
    pub(crate) json: bool,

    /// Say nothing but errors
    #[arg(long, short, help_heading = REPORT)]
    pub(crate) quiet: bool,
}

impl ReportArgs {
    /// These, and where they say nothing, those.
    pub(crate) fn or(self, inherited: Self) -> Self {
        Self {
            report: self.report.or(inherited.report),
            json: self.json || inherited.json,
            quiet: self.quiet || inherited.quiet,
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
