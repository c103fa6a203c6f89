//! What to do when the host refuses something. One place, so that `run` and `doctor` give the same advice.

use palisade_sys::{Errno, SysError};
use std::path::Path;

const USERNS_CLONE: &str = "/proc/sys/kernel/unprivileged_userns_clone";
const APPARMOR_USERNS: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const MAX_USERNS: &str = "/proc/sys/user/max_user_namespaces";

/// Advice for a failed call, where the cause is known.
pub(crate) fn for_call(error: &SysError) -> Option<String> {
    match error.errno {
        Errno::MFILE => {
            return Some(
                "too many open files: raise the limit (ulimit -n), or name fewer paths".to_owned(),
            );
        }
        Errno::NFILE => {
            return Some(
                "the host's limit on open files is reached: see fs.file-max in sysctl(8)"
                    .to_owned(),
            );
        }
        Errno::NOMEM | Errno::NOBUFS => {
            return Some("the host is out of memory: end other programs, and try again".to_owned());
        }
        _ => {}
    }
    match error.call {
        "fsconfig" | "fsmount"
            if error.subject.starts_with("overlay") && error.errno == Errno::INVAL =>
        {
            Some(
                "this directory cannot be a layer of an overlay (overlays stand on one another here \
                 already, or its file system is of another kind): name smaller directories with --ro"
                    .to_owned(),
            )
        }
        "clone3" | "unshare" => Some(user_namespaces(error.errno)),
        "fsopen" | "fsconfig" | "fsmount" | "open_tree" | "move_mount" | "mount_setattr"
            if error.errno == Errno::NOSYS =>
        {
            Some("this needs Linux 5.12 or newer".to_owned())
        }
        "fsconfig" | "fsmount" if error.subject.starts_with("proc") && error.errno == Errno::PERM => Some(
            "the host's /proc is covered in places (as in a container), so the kernel refuses a \
             new one; run the container with an unmasked /proc \
             (docker: --security-opt systempaths=unconfined)"
                .to_owned(),
        ),
        // The namespace exists without its capabilities: the first call that needs one fails.
        "mount" | "fsopen" | "fsconfig" | "fsmount" | "open_tree" | "move_mount" | "write"
            if matches!(error.errno, Errno::PERM | Errno::ACCESS) && apparmor_restricts() =>
        {
            Some(apparmor())
        }
        "openat2" if error.errno == Errno::NOSYS => {
            Some("this needs Linux 5.6 or newer, or a seccomp profile that allows it".to_owned())
        }
        "open" if error.subject.starts_with("/proc/self/") && error.errno == Errno::NOENT => {
            Some("mount /proc (sudo mount -t proc proc /proc) and try again".to_owned())
        }
        "open" if error.subject.starts_with("/proc/") && error.errno == Errno::ROFS => Some(
            "/proc is mounted read-only here: make it writable (sudo mount -o remount,rw /proc), or run the \
             container with a writable one"
                .to_owned(),
        ),
        "openat2" if error.subject.starts_with("/dev/") && error.errno == Errno::NOENT => Some(format!(
            "the host's /dev has no {}: mount one that has the usual devices (sudo mount -t devtmpfs dev /dev)",
            error.subject
        )),
        // time_namespaces(7): no clock may be set before zero, nor beyond half of KTIME_MAX.
        "write" if error.subject.ends_with("timens_offsets") && error.errno == Errno::RANGE => Some(
            "the time offset may lead back to the start of the host and no further, and forward to \
             4611686018 seconds after it"
                .to_owned(),
        ),
        "openat2" if error.errno == Errno::LOOP => Some(
            "a directory was replaced by a symbolic link during setup; nothing was started".to_owned(),
        ),
        _ => None,
    }
}

/// Why user namespaces cannot be made, and the command that fixes it.
pub(crate) fn user_namespaces(errno: Errno) -> String {
    let cause = if set_to(MAX_USERNS, "0") || errno == Errno::NOSPC {
        "user namespaces are disabled: sudo sysctl -w user.max_user_namespaces=15000"
    } else if set_to(USERNS_CLONE, "0") {
        "unprivileged user namespaces are disabled: \
         sudo sysctl -w kernel.unprivileged_userns_clone=1"
    } else if apparmor_restricts() {
        return apparmor() + no_userns();
    } else if errno == Errno::AGAIN {
        return "the limit on processes is reached: raise it with ulimit -u".to_owned();
    } else if errno == Errno::PERM {
        "user namespaces are refused here: a seccomp profile or a chroot does that (docker: \
         --security-opt seccomp=unconfined; inside another sandbox: not possible)"
    } else {
        "the kernel could not create the namespaces"
    };
    cause.to_owned() + no_userns()
}

/// The alternative without them, which root cannot use: its command would be root on the host.
fn no_userns() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "; or run as an ordinary user with Landlock and seccomp alone: --level 1 --no-userns \
         (weaker: see `sandbox plan`)"
    } else {
        "; or run with Landlock and seccomp alone: --level 1 --no-userns (weaker: see `sandbox plan`)"
    }
}

/// Whether Ubuntu's switch is on; a profile may still exempt this binary.
pub(crate) fn apparmor_restricts() -> bool {
    set_to(APPARMOR_USERNS, "1")
}

pub(crate) fn apparmor() -> String {
    "AppArmor restricts unprivileged user namespaces here (Ubuntu 23.10 and later): \
     sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or allow this binary with a profile"
        .to_owned()
}

fn set_to(path: &str, value: &str) -> bool {
    std::fs::read_to_string(Path::new(path)).is_ok_and(|text| text.trim() == value)
}

#[cfg(test)]
mod tests {
    use super::for_call;
    use palisade_sys::{Errno, SysError};

    #[test]
    fn too_many_files_and_too_many_overlays_are_told_with_what_to_do() {
        let advice = |call, subject: &str, errno| for_call(&SysError::new(call, subject, errno));
        let files = advice("open_tree", "/usr", Errno::MFILE).unwrap();
        assert!(files.contains("ulimit -n"), "{files}");
        let overlay = advice("fsconfig", "overlay", Errno::INVAL).unwrap();
        assert!(overlay.contains("--ro"), "{overlay}");
        assert_eq!(advice("fsconfig", "tmpfs", Errno::INVAL), None);
    }

    #[test]
    fn a_proc_or_a_device_that_cannot_be_used_is_told_with_what_to_do() {
        let advice = |call, subject: &str, errno| for_call(&SysError::new(call, subject, errno));
        let proc = advice("open", "/proc/7/gid_map", Errno::ROFS).unwrap();
        assert!(proc.contains("remount,rw /proc"), "{proc}");
        let device = advice("openat2", "/dev/full", Errno::NOENT).unwrap();
        assert!(device.contains("/dev has no /dev/full"), "{device}");
        assert_eq!(advice("openat2", "/srv/missing", Errno::NOENT), None);
    }
}
