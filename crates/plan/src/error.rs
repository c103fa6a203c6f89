//! Errors when a plan cannot be built: what failed, on which path or key, and what to do about it.

use crate::limit::{Holder, LimitKind};
use palisade_policy::units::show_size;
use std::path::PathBuf;
use thiserror::Error;

pub(crate) type Result<T, E = PlanError> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    #[error("no command given; write it after `--`, as in: sandbox run -- COMMAND")]
    NoCommand,
    #[error("this sandbox cannot run further commands: {why}; {fix}")]
    NoFurtherCommands { why: String, fix: &'static str },
    #[error("`{text}` uses {variable}, which is not set; write the path out")]
    UnsetVariable { text: String, variable: String },
    #[error("`{text}` names another user's home directory; write the path out")]
    OtherHome { text: String },
    #[error(
        "{what} {path}: no such file or directory (ENOENT); the nearest existing directory is {parent}"
    )]
    Missing { what: &'static str, path: PathBuf, parent: PathBuf },
    #[error(
        "{path} must stay read-only (readOnlyPaths, denyWrite) but does not exist, so the command \
         could create it; create it first, or remove it from the policy"
    )]
    CouldBeMade { path: PathBuf },
    #[error("{what} {path} is not a directory (ENOTDIR); name a directory")]
    NotADirectory { what: &'static str, path: PathBuf },
    #[error("{what} {path} is a socket, pipe or device; only files and directories can be shown")]
    NotAFile { what: &'static str, path: PathBuf },
    #[error(
        "{denied} is inside the writable {path} ({what}), where a rename on the host would uncover \
         it; use --ro or --overlay for {path}"
    )]
    DeniedInsideWritable { what: &'static str, path: PathBuf, denied: PathBuf },
    #[error(
        "{what} {path}: {denied} in it must stay hidden, and its {children} other entries are too many to mount \
         one by one; name the directories you need, or use --overlay {path}"
    )]
    TooManyMounts { what: &'static str, path: PathBuf, denied: PathBuf, children: usize },
    #[error("{what} {path} is denied by {denied}; deny or grant it, not both")]
    Contradiction { what: &'static str, path: PathBuf, denied: PathBuf },
    #[error("{path} is requested as {first} and as {second}; choose one")]
    GrantedTwice { path: PathBuf, first: &'static str, second: &'static str },
    #[error(
        "{what} leads to {path} by the link {link}, which a command in a sandbox or whoever wrote the project could \
         have made; if you mean {path}, name it directly in place of the link"
    )]
    PlantedLink { what: &'static str, link: PathBuf, path: PathBuf },
    #[error(
        "{what} {path}: the policy of this run was read from there, so the run must not write to it; \
         use another policy, or remove the grant"
    )]
    OwnPolicy { what: &'static str, path: PathBuf },
    #[error("{what} {path} holds palisade's own records; it is never visible in a sandbox")]
    OwnPath { what: &'static str, path: PathBuf },
    #[error("{what} {path}: {area} is always private to the sandbox; name a path below it")]
    OwnArea { what: &'static str, path: PathBuf, area: &'static str },
    #[error(
        "working directory {path} is not in the sandbox's view; grant it with --ro or --rw, or choose \
         another one with --cwd"
    )]
    WorkingDirectory { path: PathBuf },
    #[error("working directory {path} does not exist; create it, or choose another one with --cwd")]
    NoWorkingDirectory { path: PathBuf },
    #[error(
        "the policy has `view: minimal`, which a view that is listed entry by entry would widen; remove it there, or use \
         `sandbox run`"
    )]
    ListedInMinimalView,
    #[error(
        "the listed place {place} leads to {path} by a link, out of what is shown there; write the place without links"
    )]
    LeadsElsewhere { place: PathBuf, path: PathBuf },
    #[error("{what}: nothing is asked in this run; questions need {needs}")]
    NothingIsAsked { what: &'static str, needs: &'static str },
    #[error(
        "the rule `deny: {rule}` ({place}) is not enforced in static mode, which shows {shown} from the start; use \
         `deniedPaths`, or `mode: dynamic`"
    )]
    RuleNotHeld { rule: String, place: String, shown: PathBuf },
    #[error(
        "{what} has no effect at LEVEL_0, which isolates nothing; remove it or raise the level"
    )]
    NoIsolation { what: &'static str },
    #[error(
        "network mode nat needs a forwarding program, and none is installed; install pasta (Debian package \
         passt) or slirp4netns (package slirp4netns), or use --network proxy"
    )]
    NoNatHelper,
    #[error("{what} needs namespaces; {fix}")]
    NeedsNamespaces { what: &'static str, fix: &'static str },
    #[error(
        "this kernel has no Landlock, and without user namespaces nothing else can restrict files; \
         `sandbox doctor` shows how to get either"
    )]
    NoLandlock,
    #[error(
        "Landlock is not available here (missing in this kernel, or not possible inside another sandbox), and without it \
         files that the host would run later (git hooks, editor and shell settings) cannot be protected in \
         writable directories; accept that risk with --no-protect-names, or see `sandbox doctor`"
    )]
    NamesUnprotected,
    #[error(
        "root can map no other id here (only {ranges}), and the command must not run as root on the \
         host; start as an ordinary user, or map more ids into this container"
    )]
    NoSpareId { ranges: String },
    #[error("{path} is not among `process.allowedExecutables`; add it there, or run one of those")]
    NotAllowed { path: PathBuf },
    #[error(
        "this kernel has no Landlock, and nothing else can tell executables apart; remove \
         `process.allowedExecutables`, or see `sandbox doctor`"
    )]
    ExecutablesUnheld,
    #[error(
        "{} ({}) cannot be enforced strictly here, only by {} (overshoot: {}): {why}; accept that with \
         --best-effort-limits, or run without the limit with --waive-limit {}",
        .what.key(), .what.name(), .holder.name(), .overshoot, .what.name()
    )]
    LimitSampled { what: LimitKind, holder: Holder, overshoot: &'static str, why: String },
    #[error(
        "this host cannot enforce {} ({}): {why}; remove it, or run without the limit with --waive-limit {}",
        .what.key(), .what.name(), .what.name()
    )]
    LimitUnheld { what: LimitKind, why: String },
    #[error(
        "{} cannot be enforced strictly here: {why}; {}",
        names(.sampled.iter().chain(.unheld)), ways_out(.sampled, .unheld)
    )]
    LimitsUnheld { sampled: Vec<LimitKind>, unheld: Vec<LimitKind>, why: String },
    #[error("CPU {cpu} of resources.cpuSet cannot be used here; there are {available}")]
    NoSuchCpu { cpu: u32, available: String },
    #[error(
        "{} is {}, and file systems with a size of their own (tmpSize, varTmpSize) have {}: nothing is left \
         for the rest; raise the one or lower the others",
        .what.key(), show_size(*.most), show_size(*.sized)
    )]
    NoRoomLeft { what: LimitKind, most: u64, sized: u64 },
    #[error("the system call filter: {0}")]
    Seccomp(#[from] palisade_bpf::Error),
}

impl PlanError {
    /// Whether the policy forbids what was asked (exit 126), or the run failed for another reason (exit 125).
    pub fn refused_by_policy(&self) -> bool {
        match self {
            Self::CouldBeMade { .. }
            | Self::DeniedInsideWritable { .. }
            | Self::TooManyMounts { .. }
            | Self::Contradiction { .. }
            | Self::GrantedTwice { .. }
            | Self::PlantedLink { .. }
            | Self::OwnPath { .. }
            | Self::OwnPolicy { .. }
            | Self::OwnArea { .. }
            | Self::WorkingDirectory { .. }
            | Self::NoWorkingDirectory { .. }
            | Self::ListedInMinimalView
            | Self::LeadsElsewhere { .. }
            | Self::NothingIsAsked { .. }
            | Self::RuleNotHeld { .. }
            | Self::NotAllowed { .. }
            | Self::NoRoomLeft { .. }
            | Self::NoIsolation { .. } => true,
            Self::NoCommand
            | Self::NoFurtherCommands { .. }
            | Self::UnsetVariable { .. }
            | Self::OtherHome { .. }
            | Self::Missing { .. }
            | Self::NotADirectory { .. }
            | Self::NotAFile { .. }
            | Self::NeedsNamespaces { .. }
            | Self::NoNatHelper
            | Self::NoLandlock
            | Self::NamesUnprotected
            | Self::ExecutablesUnheld
            | Self::NoSpareId { .. }
            | Self::LimitSampled { .. }
            | Self::LimitUnheld { .. }
            | Self::LimitsUnheld { .. }
            | Self::NoSuchCpu { .. }
            | Self::Seccomp(_) => false,
        }
    }
}

fn names<'l>(limits: impl Iterator<Item = &'l LimitKind>) -> String {
    limits.map(|limit| limit.name()).collect::<Vec<_>>().join(", ")
}

fn ways_out(sampled: &[LimitKind], unheld: &[LimitKind]) -> String {
    let accept = match (sampled, unheld) {
        ([], _) => None,
        (_, []) => Some("accept polling with --best-effort-limits".to_owned()),
        _ => Some(format!("accept polling of {} with --best-effort-limits", names(sampled.iter()))),
    };
    let all = sampled.iter().chain(unheld);
    let waived: Vec<String> = all.map(|limit| format!("--waive-limit {}", limit.name())).collect();
    let waive = format!("run without with {}", waived.join(" "));
    accept.into_iter().chain([waive]).collect::<Vec<_>>().join(", or ")
}
