//! Applies Landlock as the plan says: completely, or the run fails.
//!
//! The `landlock` crate degrades silently by default. Here every right is a hard requirement, chosen for the
//! ABI in the plan, and the returned status is checked.

use crate::error::{LaunchError, Result};
use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetStatus, Scope,
};
use palisade_plan::model::{Executables, Landlock};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const STEP: &str = "restricting with Landlock";

/// Restricts this process and all its children to come.
pub(crate) fn restrict(plan: &Landlock) -> Result<()> {
    let abi = known_abi(plan.abi);
    let rights = Rights::of(plan, abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(rights.handled)
        .map_err(failed)?;
    if plan.refuse_tcp && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(failed)?;
    }
    if plan.scope && abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(ABI::V6)).map_err(failed)?;
    }
    let mut ruleset = ruleset.create().map_err(failed)?;
    let nothing_listed = Executables::default();
    let executables = plan.executables.listed().unwrap_or(&nothing_listed);
    // Without our own devpts only this run's terminal, not the others.
    let terminals = if plan.restrict_reads { own_terminals() } else { Vec::new() };
    for (paths, granted) in [
        (&plan.readable, rights.read),
        (&plan.writable, rights.read | rights.write),
        // The broker does the rest, because only it checks names.
        (&plan.guarded, rights.read | rights.remove),
        (&plan.devices, rights.read | rights.device),
        (&terminals, rights.read | rights.device),
        (&executables.listed, rights.execute),
        (&executables.needed, rights.execute),
    ] {
        for path in paths {
            ruleset = allow(ruleset, path, granted, abi)?;
        }
    }
    for path in &plan.build_dirs {
        // What changes its directory is judged by the broker.
        let granted = rights.read | (rights.write & !AccessFs::Refer);
        let directory = without_links(path, OFlags::DIRECTORY)?;
        ruleset = ruleset.add_rule(PathBeneath::new(directory, granted)).map_err(failed)?;
    }
    for path in &executables.built {
        let built = without_links(path, OFlags::empty())?;
        ruleset = ruleset.add_rule(PathBeneath::new(built, rights.execute)).map_err(failed)?;
    }
    let status = ruleset.restrict_self().map_err(failed)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        other => {
            Err(LaunchError::new(STEP, format!("the kernel enforced only part of it: {other:?}")))
        }
    }
}

struct Rights {
    handled: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
    write: BitFlags<AccessFs>,
    remove: BitFlags<AccessFs>,
    device: BitFlags<AccessFs>,
    /// Only where the policy lists programs.
    execute: BitFlags<AccessFs>,
}

impl Rights {
    fn of(plan: &Landlock, abi: ABI) -> Self {
        let mut write = AccessFs::from_write(abi);
        if !plan.refuse_truncation {
            write.remove(AccessFs::Truncate);
        }
        let mut read =
            if plan.restrict_reads { AccessFs::from_read(abi) } else { BitFlags::empty() };
        let mut execute = BitFlags::empty();
        if plan.executables.listed().is_some() {
            execute.insert(AccessFs::Execute);
            read.remove(AccessFs::Execute);
        }
        let device = write & (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev);
        write.remove(AccessFs::IoctlDev);
        let remove = AccessFs::RemoveFile | AccessFs::RemoveDir;
        let handled = read | write | device | execute;
        Self { handled, read, write, remove, device, execute }
    }
}

fn own_terminals() -> Vec<PathBuf> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let names = streams.into_iter().filter_map(|fd| rustix::termios::ttyname(fd, Vec::new()).ok());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name.as_bytes()))).collect()
}

fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    granted: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated> {
    let fd = match PathFd::new(path) {
        // What nobody named may be gone since the plan was made (`may_vanish`). A rule only ever allows.
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(ruleset);
        }
        opened => opened.map_err(failed)?,
    };
    let is_dir = path.is_dir();
    // The kernel would reject rights for directories on a file.
    let granted = if is_dir { granted } else { granted & AccessFs::from_file(abi) };
    if granted.is_empty() {
        return Ok(ruleset);
    }
    ruleset.add_rule(PathBeneath::new(fd, granted)).map_err(failed)
}

/// Another run in the same project may have put a link in its place since the plan was made, and the rule would be
/// about where that leads.
fn without_links(path: &Path, kind: OFlags) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(|errno| {
        let changed = format!("{} has changed since the plan was made: {errno}", path.display());
        LaunchError::new(STEP, changed)
    })
}

/// The newest ABI we know that the host has.
fn known_abi(abi: u32) -> ABI {
    match abi {
        0 | 1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}

fn failed(error: impl std::error::Error) -> LaunchError {
    LaunchError::new(STEP, error.to_string())
}
