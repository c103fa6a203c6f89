//! Executes the command: which file its name resolves to in the sandbox, and why it could not be started. Must
//! never look outside the sandbox's view.

use crate::error::{FailureKind, LaunchError, Result};
use palisade_plan::model::Command;
use palisade_sys::{Errno, SysError, proc};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const STEP: &str = "starting the command";

type CStrings = Vec<CString>;

/// Arguments and environment in the form exec takes.
pub(crate) fn c_strings(command: &Command) -> Result<(CStrings, CStrings)> {
    let refused = |_| LaunchError::new(STEP, "an argument holds a NUL byte");
    let argv =
        command.argv.iter().map(|arg| CString::new(arg.as_bytes())).collect::<Result<_, _>>();
    let env = command
        .env
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>();
    Ok((argv.map_err(refused)?, env.map_err(refused)?))
}

/// The program that `PATH` leads to inside. Looked up before the filter is installed: after that, every missing
/// directory would be asked about.
pub(crate) fn visible(command: &Command) -> Option<PathBuf> {
    let name = command.argv.first().filter(|name| !name.is_empty())?;
    if name.as_bytes().contains(&b'/') {
        return None;
    }
    let is_program = |file: &PathBuf| {
        rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
    };
    directories(command).map(|directory| directory.join(name)).find(is_program)
}

/// Looks the command up as execvp(3) does, in the sandbox's own `PATH` and view, starting with the place where
/// it was found before. Returns only on failure.
pub(crate) fn exec(
    command: &Command,
    seen: Option<&Path>,
    argv: &[CString],
    env: &[CString],
) -> LaunchError {
    let Some(name) = command.argv.first() else {
        return LaunchError::new(STEP, "there is no command");
    };
    // An empty name names no program, though joined to a directory of `PATH` it would name the directory.
    if name.is_empty() {
        return refusal(name, Path::new(name), Errno::NOENT);
    }
    if name.as_bytes().contains(&b'/') {
        let errno = exec_file(Path::new(name), argv, env);
        return refusal(name, Path::new(name), errno);
    }
    if let Some(seen) = seen {
        exec_file(seen, argv, env);
    }
    let mut found = None;
    for directory in directories(command) {
        let candidate = directory.join(name);
        match exec_file(&candidate, argv, env) {
            Errno::NOENT | Errno::NOTDIR if !candidate.exists() => {}
            // As in execvp: a later directory may hold an executable one.
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

fn directories(command: &Command) -> impl Iterator<Item = PathBuf> {
    let path = command.env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new("/usr/bin:/bin"), |(_, value)| value.as_os_str());
    std::env::split_paths(path)
}

fn exec_file(path: &Path, argv: &[CString], env: &[CString]) -> Errno {
    let Ok(file) = CString::new(path.as_os_str().as_bytes()) else { return Errno::INVAL };
    match proc::exec(&file, argv, env) {
        // A script without an interpreter line is run by the shell.
        Errno::NOEXEC => {
            let mut shell_argv = vec![c"sh".to_owned(), file];
            shell_argv.extend(argv.iter().skip(1).cloned());
            proc::exec(c"/bin/sh", &shell_argv, env)
        }
        errno => errno,
    }
}

fn refusal(name: &OsStr, path: &Path, errno: Errno) -> LaunchError {
    let error = SysError::new("exec", PathBuf::from(name).display().to_string(), errno);
    if errno == Errno::NOENT && path.exists() {
        return LaunchError::new(STEP, error.to_string())
            .with_fix(format!(
                "{} is there, but the interpreter or loader it names is not in the sandbox's view",
                path.display()
            ))
            .with_kind(FailureKind::NotFound);
    }
    let is_line = name.as_encoded_bytes().contains(&b' ');
    match errno {
        Errno::NOENT | Errno::NOTDIR if is_line => LaunchError::new(STEP, error.to_string())
            .with_fix(
                "the quotes make it one word, the name of a program: leave them out, or give the line to a shell \
                 (sh -c)",
            )
            .with_kind(FailureKind::NotFound),
        Errno::NOENT | Errno::NOTDIR => LaunchError::new(STEP, error.to_string())
            .with_fix(
                "is it installed, and in the sandbox's view? `sandbox plan -- CMD` lists the view, \
                 --ro adds to it",
            )
            .with_kind(FailureKind::NotFound),
        Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::ISDIR => {
            LaunchError::new(STEP, error.to_string())
                .with_fix("is it executable, and on a mount that allows it?")
                .with_kind(FailureKind::NotExecutable)
        }
        _ => LaunchError::new(STEP, error.to_string()),
    }
}
