//! The last steps of the process that becomes the command.
//!
//! From the fork of pid 1 to exec: streams, limits, privileges, Landlock, the self-check, the
//! filter. The order matters and is argued at each step. Nothing of the caller may be left open.

use crate::control::{Checked, FromInit};
use crate::error::{During, LaunchError, Mistake};
use crate::landlock;
use crate::mounts::detach_old_root;
use crate::selfcheck::{self, Moment, Targets};
use crate::streams::Chosen;
use palisade_bpf::Insn;
use palisade_plan::model::{Command, Confinement, Namespaced, Plan, Resource};
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds};
use palisade_sys::proc::{self, Limit};
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use palisade_sys::{Errno, Mode, SysError, creds, net, tty};
use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// From pid 1: the new root is `/`.
pub(crate) const ROOT_CHANGED: &[u8] = b"root changed";
/// From pid 1: everything stands, go on.
pub(crate) const GO: &[u8] = b"go";
/// To pid 1: the network namespace is made.
pub(crate) const NETWORK_READY: &[u8] = b"network ready";
/// To pid 1: nothing of the host's tree is left but what was taken.
pub(crate) const OLD_ROOT_GONE: &[u8] = b"old root gone";
/// No report to pid 1 is longer.
pub(crate) const LONGEST_REPORT: usize = 16 * 1024;

/// What the command process starts from.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) chosen: &'a Chosen,
    pub(crate) terminal: Option<BorrowedFd<'a>>,
    pub(crate) targets: Targets,
    /// To and from pid 1; closes by itself when exec succeeds.
    pub(crate) report: OwnedFd,
    pub(crate) umask: Mode,
}

/// Ends in exec, or in a report to pid 1 why not.
pub(crate) fn become_command(start: &Start<'_>) -> ! {
    let Err(error) = attempt(start);
    send(start, &FromInit::Failed(error));
    proc::exit_now(125)
}

fn attempt(start: &Start<'_>) -> Result<Infallible, LaunchError> {
    let plan = start.plan;
    // While pid 1 builds the view: what needs nothing of it.
    proc::setpgid(None, None).during("making the command's process group")?;
    rustix::process::umask(start.umask);
    proc::reset_handlers();
    let (argv, env) = c_strings(&plan.command)?;
    if let Confinement::Namespaces(inside) = &plan.confinement {
        make_network(start, inside)?;
        wait_for_pid_1(start, ROOT_CHANGED);
        detach_old_root()?;
        tell_pid_1(start, OLD_ROOT_GONE)?;
    }
    // Privileges before Landlock: securebits need a capability, and Landlock needs no_new_privs.
    drop_privileges(plan)?;
    wait_for_pid_1(start, GO);
    // In the foreground of its terminal.
    if let Some(terminal) = start.terminal {
        tty::tcsetpgrp(terminal, rustix::process::getpid()).during("taking the terminal")?;
    }
    start.chosen.connect(start.terminal)?;
    limit(plan)?;
    // As the command itself would: a directory it may not enter is no working directory.
    enter_directory(&plan.command.cwd)?;
    if let Some(rules) = &plan.landlock {
        landlock::restrict(rules)?;
    }
    if plan.hardening.close_descriptors {
        // Marked, not closed: the report to pid 1 is still needed until exec.
        proc::close_range_cloexec(3, i32::MAX).during("closing descriptors")?;
    }
    let begun = Instant::now();
    let mut observations = selfcheck::run(&plan.self_check, Moment::BeforeFilter, start.targets)?;
    let mut took = begun.elapsed();
    proc::unblock_all().during("unblocking signals")?;
    if let Some(filter) = &plan.seccomp {
        install(&filter.program)?;
    }
    let begun = Instant::now();
    observations.extend(selfcheck::run(&plan.self_check, Moment::AfterFilter, start.targets)?);
    took += begun.elapsed();
    send(start, &FromInit::Checked(Checked { took, observations }));
    Err(exec(&plan.command, &argv, &env))
}

/// By write(2): the one way to send that even a narrow custom filter leaves open.
fn send(start: &Start<'_>, message: &FromInit) {
    // If pid 1 is gone there is nobody to tell, and we go with it.
    let _ = rustix::io::write(&start.report, &message.encode());
}

/// The network namespace, with its loopback up, for us and for pid 1 to follow into.
fn make_network(start: &Start<'_>, inside: &Namespaced) -> Result<(), LaunchError> {
    if !inside.namespaces.net {
        return Ok(());
    }
    unshare(CloneFlags::NEWNET).during("creating the network namespace")?;
    if inside.loopback {
        net::loopback_up().during("bringing up the loopback interface")?;
    }
    tell_pid_1(start, NETWORK_READY)
}

fn tell_pid_1(start: &Start<'_>, part: &[u8]) -> Result<(), LaunchError> {
    send_with_fds(&start.report, part, &[]).during("talking to pid 1")
}

/// Until pid 1 says so.
fn wait_for_pid_1(start: &Start<'_>, word: &[u8]) {
    let mut packet = [0; 32];
    let heard = recv_with_fds(&start.report, &mut packet);
    if !heard.is_ok_and(|(length, _)| &packet[..length] == word) {
        // Pid 1 failed, has said why, and is gone.
        proc::exit_now(125);
    }
}

fn limit(plan: &Plan) -> Result<(), LaunchError> {
    for rlimit in &plan.rlimits {
        let resource = match rlimit.resource {
            Resource::Core => proc::Resource::Core,
            Resource::FileSize => proc::Resource::Fsize,
            Resource::OpenFiles => proc::Resource::Nofile,
            Resource::Processes => proc::Resource::Nproc,
        };
        let value = Limit { soft: Some(rlimit.value), hard: Some(rlimit.value) };
        proc::set_rlimit(resource, value).during("setting a limit")?;
    }
    Ok(())
}

fn drop_privileges(plan: &Plan) -> Result<(), LaunchError> {
    const STEP: &str = "dropping privileges";
    if plan.hardening.drop_capabilities {
        if matches!(plan.confinement, Confinement::Namespaces(_)) {
            creds::lock_securebits().during(STEP)?;
            creds::drop_all_capabilities().during(STEP)?;
        }
        let held = creds::capability_sets().during(STEP)?;
        if held.effective | held.permitted | held.inheritable != 0 {
            return Err(LaunchError::new(STEP, "capabilities are left")
                .with_mend("start as an ordinary user, or with user namespaces"));
        }
    }
    #[cfg(feature = "layers-off")]
    if !plan.hardening.drop_capabilities {
        crate::layers_off::keep_capabilities()?;
    }
    if plan.hardening.no_new_privs {
        creds::set_no_new_privs().during(STEP)?;
    }
    Ok(())
}

fn enter_directory(cwd: &Path) -> Result<(), LaunchError> {
    rustix::process::chdir(cwd)
        .map_err(|errno| SysError::new("chdir", cwd.display().to_string(), errno))
        .during("entering the working directory")
        .map_err(|error| error.with_mend("choose another one with --cwd, or grant it"))
}

/// Installs a filter on this process and all its children to come.
pub(crate) fn install(program: &[Insn]) -> Result<(), LaunchError> {
    let filter: Vec<SockFilter> = program
        .iter()
        .map(|insn| SockFilter { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k })
        .collect();
    seccomp::install(&filter, SeccompFlags::NONE).during("installing the system call filter")?;
    Ok(())
}

type CStrings = Vec<CString>;

fn c_strings(command: &Command) -> Result<(CStrings, CStrings), LaunchError> {
    let refused = |_| LaunchError::new("starting the command", "an argument holds a NUL byte");
    let argv =
        command.argv.iter().map(|arg| CString::new(arg.as_bytes())).collect::<Result<_, _>>();
    let env = command
        .env
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>();
    Ok((argv.map_err(refused)?, env.map_err(refused)?))
}

/// Looks the command up as execvp(3) does, in the sandbox's own `PATH` and view.
fn exec(command: &Command, argv: &[CString], env: &[CString]) -> LaunchError {
    let Some(name) = command.argv.first() else {
        return LaunchError::new("starting the command", "there is no command");
    };
    // An empty name is no directory of `PATH`, though joined to one it would be.
    if name.is_empty() {
        return refusal(name, Path::new(name), Errno::NOENT);
    }
    if name.as_bytes().contains(&b'/') {
        let errno = exec_file(Path::new(name), argv, env);
        return refusal(name, Path::new(name), errno);
    }
    let path =
        command.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let mut found = None;
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin"))) {
        let candidate = directory.join(name);
        match exec_file(&candidate, argv, env) {
            Errno::NOENT | Errno::NOTDIR if !candidate.exists() => {}
            // Like execvp: a later directory may hold one that may be executed.
            errno => {
                found.get_or_insert((candidate, errno));
            }
        }
    }
    match found {
        Some((candidate, errno)) => refusal(name, &candidate, errno),
        None => refusal(name, Path::new(name), Errno::NOENT),
    }
}

fn exec_file(path: &Path, argv: &[CString], env: &[CString]) -> Errno {
    let Ok(file) = CString::new(path.as_os_str().as_bytes()) else { return Errno::INVAL };
    match proc::exec(&file, argv, env) {
        // A script without a first line that names its interpreter is the shell's.
        Errno::NOEXEC => {
            let mut shell_argv = vec![c"sh".to_owned(), file];
            shell_argv.extend(argv.iter().skip(1).cloned());
            proc::exec(c"/bin/sh", &shell_argv, env)
        }
        errno => errno,
    }
}

fn refusal(name: &OsStr, path: &Path, errno: Errno) -> LaunchError {
    const STEP: &str = "starting the command";
    let error = SysError::new("exec", PathBuf::from(name).display().to_string(), errno);
    if errno == Errno::NOENT && path.exists() {
        return LaunchError::new(STEP, error.to_string())
            .with_mend(format!(
                "{} is there, but the interpreter or loader it names is not in the sandbox's view",
                path.display()
            ))
            .with_mistake(Mistake::NotFound);
    }
    match errno {
        Errno::NOENT | Errno::NOTDIR => LaunchError::new(STEP, error.to_string())
            .with_mend(
                "is it installed, and in the sandbox's view? `sandbox plan -- CMD` lists the view, \
                 --ro adds to it",
            )
            .with_mistake(Mistake::NotFound),
        Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::ISDIR => {
            LaunchError::new(STEP, error.to_string())
                .with_mend("is it executable, and on a mount that allows it?")
                .with_mistake(Mistake::NotExecutable)
        }
        _ => LaunchError::new(STEP, error.to_string()),
    }
}
