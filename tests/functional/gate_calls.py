"""Touches one file outside the view by each path call and form of path, and prints what came of it.

    gate_calls.py OUTSIDE

Every case has a directory of its own below OUTSIDE with `file`, `link` (to `file`), `script` and `sub/deep` in it,
so that no answer for one is an answer for another. The calls go to the kernel by number: libraries choose others.
"""

import ctypes
import errno
import os
import platform
import sys

OUTSIDE = sys.argv[1]
ONLY = sys.argv[2:]
HERE = os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
CWD = -100
AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = 0x100, 0x400, 0x1000

# The old calls are numbered on one of the two only.
OLD = {"open": 2, "stat": 4, "lstat": 6, "access": 21, "chdir": 80, "rename": 82, "link": 86, "readlink": 89}
NUMBERS = {
    "x86_64": OLD | {
        "execve": 59, "statfs": 137, "getxattr": 191, "lgetxattr": 192, "listxattr": 194, "llistxattr": 195,
        "openat": 257, "newfstatat": 262, "renameat2": 316, "linkat": 265, "readlinkat": 267, "faccessat": 269,
        "execveat": 322, "statx": 332, "openat2": 437, "faccessat2": 439,
    },
    "aarch64": {
        "chdir": 49, "execve": 221, "statfs": 43, "getxattr": 8, "lgetxattr": 9, "listxattr": 11, "llistxattr": 12,
        "openat": 56, "newfstatat": 79, "renameat2": 276, "linkat": 37, "readlinkat": 78, "faccessat": 48,
        "execveat": 281, "statx": 291, "openat2": 437, "faccessat2": 439,
    },
}[platform.machine()]

buffer = ctypes.create_string_buffer(4096)


def call(name, *arguments):
    """The result, or raises OSError."""
    converted = [os.fsencode(a) if isinstance(a, str) else a for a in arguments]
    result = libc.syscall(NUMBERS[name], *[ctypes.c_long(a) if isinstance(a, int) else a for a in converted])
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def how(flags, mode=0, resolve=0):
    return (ctypes.c_uint64 * 3)(flags, mode, resolve)


def content(descriptor):
    try:
        return os.read(descriptor, 100).decode().strip()
    finally:
        os.close(descriptor)


def succeeded(result):
    return "ok" if result >= 0 else "?"


def entries(descriptor):
    """A directory that was opened: what is in it, and that nothing else can be reached from it."""
    try:
        inside = sorted(os.listdir(descriptor))
        above = os.open("..", os.O_RDONLY, dir_fd=descriptor)
        around = os.listdir(above)
        os.close(above)
        return f"{inside} in {len(around)}"
    finally:
        os.close(descriptor)


def execute(name, *arguments):
    child = os.fork()
    if child == 0:
        argv = (ctypes.c_char_p * 2)(b"script", None)
        envp = (ctypes.c_char_p * 1)(None)
        try:
            if name == "execve":
                call("execve", *arguments, argv, envp)
            else:
                call("execveat", *arguments[:-1], argv, envp, arguments[-1])
        except OSError as error:
            os._exit(error.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 77:
        return "ran"
    raise OSError(status, name)


def in_directory(path, function):
    """The working directory is `path` meanwhile."""
    os.chdir(path)
    try:
        return function()
    finally:
        os.chdir(HERE)


def with_descriptor(path, function):
    descriptor = os.open(path, os.O_PATH)
    try:
        return function(descriptor)
    finally:
        os.close(descriptor)


def above(path):
    """The nearest directory that is there, and the rest."""
    top = os.path.dirname(OUTSIDE)
    return top, os.path.relpath(path, top)


def target(name, *arguments):
    length = call(name, *arguments)
    return buffer.raw[:length].decode()


def entering(path):
    call("chdir", path)
    names = sorted(os.listdir("."))
    os.chdir(HERE)
    return str(names)


CASES = {
    "openat": lambda d: content(call("openat", CWD, d + "/file", os.O_RDONLY, 0)),
    "openat-path": lambda d: content(os.open(f"/proc/self/fd/{call('openat', CWD, d + '/file', os.O_PATH, 0)}", os.O_RDONLY)),
    "openat-directory": lambda d: entries(call("openat", CWD, d + "/sub", os.O_RDONLY | os.O_DIRECTORY, 0)),
    "openat-slash": lambda d: entries(call("openat", CWD, d + "/sub/", os.O_RDONLY, 0)),
    "newfstatat": lambda d: succeeded(call("newfstatat", CWD, d + "/file", buffer, 0)),
    "newfstatat-nofollow": lambda d: succeeded(call("newfstatat", CWD, d + "/link", buffer, AT_SYMLINK_NOFOLLOW)),
    "statx": lambda d: succeeded(call("statx", CWD, d + "/file", 0, 0x7FF, buffer)),
    "faccessat": lambda d: succeeded(call("faccessat", CWD, d + "/file", os.R_OK)),
    "faccessat2": lambda d: succeeded(call("faccessat2", CWD, d + "/file", os.R_OK, 0)),
    "readlinkat": lambda d: target("readlinkat", CWD, d + "/link", buffer, 4096),
    "chdir": lambda d: entering(d + "/sub"),
    "statfs": lambda d: succeeded(call("statfs", d + "/file", buffer)),
    "getxattr": lambda d: no_attribute("getxattr", d + "/file"),
    "lgetxattr": lambda d: no_attribute("lgetxattr", d + "/file"),
    "listxattr": lambda d: succeeded(call("listxattr", d + "/file", buffer, 4096)),
    "llistxattr": lambda d: succeeded(call("llistxattr", d + "/file", buffer, 4096)),
    "execve": lambda d: execute("execve", d + "/script"),
    "execveat": lambda d: execute("execveat", CWD, d + "/script", 0),
    # Grants are read-only, and of another mount: the source is seen, and stays where it is.
    "linkat": lambda d: call("linkat", CWD, d + "/file", CWD, HERE + "/linked", 0),
    "renameat2": lambda d: call("renameat2", CWD, d + "/file", CWD, HERE + "/renamed", 0),
    # Forms of paths, by one call.
    "relative": lambda d: content(os.open(os.path.relpath(d + "/file"), os.O_RDONLY)),
    "relative-to-descriptor": lambda d: with_descriptor(
        above(d)[0], lambda fd: content(os.open(above(d)[1] + "/file", os.O_RDONLY, dir_fd=fd))),
    "relative-to-root": lambda d: with_descriptor(
        "/", lambda fd: content(os.open((d + "/file")[1:], os.O_RDONLY, dir_fd=fd))),
    "dots": lambda d: content(os.open(HERE + "/.././" + os.path.relpath(d, os.path.dirname(HERE)) + "/file", os.O_RDONLY)),
    "double-slashes": lambda d: content(os.open("/" + d.replace("/", "//") + "//file", os.O_RDONLY)),
    "project-link": lambda d: content(os.open(HERE + "/leads-to-" + os.path.basename(d), os.O_RDONLY)),
    "project-link-stat": lambda d: succeeded(call("newfstatat", CWD, HERE + "/leads-to-" + os.path.basename(d), buffer, 0)),
    "project-directory-link": lambda d: content(os.open(HERE + "/dir-of-" + os.path.basename(d) + "/file", os.O_RDONLY)),
    "link-outside": lambda d: content(os.open(d + "/link", os.O_RDONLY)),
    "proc-self-cwd": lambda d: in_directory(
        above(d)[0], lambda: content(os.open("/proc/self/cwd/" + above(d)[1] + "/file", os.O_RDONLY))),
    "proc-thread-self-cwd": lambda d: in_directory(
        above(d)[0], lambda: content(os.open("/proc/thread-self/cwd/" + above(d)[1] + "/file", os.O_RDONLY))),
    "proc-self-fd": lambda d: with_descriptor(
        above(d)[0], lambda fd: content(os.open(f"/proc/self/fd/{fd}/{above(d)[1]}/file", os.O_RDONLY))),
    "proc-self-root": lambda d: content(os.open("/proc/self/root" + d + "/file", os.O_RDONLY)),
    "proc-pid-cwd": lambda d: in_directory(
        above(d)[0], lambda: content(os.open(f"/proc/{os.getpid()}/cwd/{above(d)[1]}/file", os.O_RDONLY))),
    "openat2": lambda d: content(call("openat2", CWD, d + "/file", how(os.O_RDONLY), 24)),
    "openat2-dirfd": lambda d: with_descriptor(
        above(d)[0], lambda fd: content(call("openat2", fd, above(d)[1] + "/file", how(os.O_CLOEXEC), 24))),
}
LEGACY = {
    "open": lambda d: content(call("open", d + "/file", os.O_RDONLY, 0)),
    "stat": lambda d: succeeded(call("stat", d + "/file", buffer)),
    "lstat": lambda d: succeeded(call("lstat", d + "/link", buffer)),
    "access": lambda d: succeeded(call("access", d + "/file", os.R_OK)),
    "readlink": lambda d: target("readlink", d + "/link", buffer, 4096),
    "link": lambda d: call("link", d + "/file", HERE + "/linked-too"),
    "rename": lambda d: call("rename", d + "/file", HERE + "/renamed-too"),
}
# Asked about like the others, and granted for reading.
WRITING = {
    "create": lambda d: content(call("openat", CWD, d + "/made", os.O_WRONLY | os.O_CREAT, 0o600)),
    "create-over": lambda d: content(call("openat", CWD, d + "/file", os.O_RDWR | os.O_CREAT, 0o600)),
    "write": lambda d: content(call("openat", CWD, d + "/file", os.O_WRONLY, 0)),
    "open-truncate": lambda d: content(call("openat", CWD, d + "/file", os.O_RDONLY | os.O_TRUNC, 0)),
    "mkdir": lambda d: os.mkdir(d + "/made"),
    "mkdir-deep": lambda d: os.mkdir(d + "/made/deep"),
    "symlink": lambda d: os.symlink("x", d + "/made"),
    "mkfifo": lambda d: os.mkfifo(d + "/made"),
    "rename-into": lambda d: (open(HERE + "/moved", "w").close(), os.rename(HERE + "/moved", d + "/made")),
    "link-into": lambda d: os.link(HERE + "/calls.py", d + "/made"),
}
# Never asked about, whatever the answers would be.
SILENT = {
    "openat2-write": lambda d: call("openat2", CWD, d + "/file", how(os.O_WRONLY), 24),
    "absent": lambda d: succeeded(call("newfstatat", CWD, d + "/no-such-file", buffer, 0)),
    "absent-below-file": lambda d: succeeded(call("newfstatat", CWD, "/usr/bin/env/x", buffer, 0)),
    "proc": lambda d: succeeded(call("newfstatat", CWD, "/proc/no-such", buffer, 0)),
    "sys": lambda d: succeeded(call("newfstatat", CWD, "/sys/no-such", buffer, 0)),
    "dev": lambda d: succeeded(call("newfstatat", CWD, "/dev/kmsg", buffer, 0)),
    "run": lambda d: succeeded(call("newfstatat", CWD, "/run/no-such", buffer, 0)),
    "tmp": lambda d: succeeded(call("newfstatat", CWD, "/tmp/no-such", buffer, 0)),
    "fstat": lambda d: with_descriptor("/", lambda fd: succeeded(call("newfstatat", fd, "", buffer, AT_EMPTY_PATH))),
    "fstatx": lambda d: with_descriptor("/", lambda fd: succeeded(call("statx", fd, "", AT_EMPTY_PATH, 0x7FF, buffer))),
    "empty": lambda d: succeeded(call("newfstatat", CWD, "", buffer, 0)),
    "too-long": lambda d: succeeded(call("newfstatat", CWD, "/x" * 3000, buffer, 0)),
    "long-name": lambda d: succeeded(call("newfstatat", CWD, "/" + "x" * 300, buffer, 0)),
    "no-memory": lambda d: succeeded(call("newfstatat", CWD, 8, buffer, 0)),
}


def no_attribute(name, path):
    """That there is no such attribute is told only of a file that is seen."""
    try:
        return succeeded(call(name, path, b"user.palisade-none", buffer, 4096))
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return "ok"
        raise


def main():
    cases = CASES | (LEGACY if platform.machine() == "x86_64" else {})
    if ONLY == ["--silent"]:
        cases = SILENT
    elif ONLY == ["--writing"]:
        cases = WRITING
    elif ONLY == ["--writing-names"]:
        print("\n".join(WRITING))
        return
    elif ONLY == ["--names"]:
        print("\n".join(cases))
        return
    for name, case in cases.items():
        try:
            result = case(f"{OUTSIDE}/{name}")
        except OSError as error:
            result = errno.errorcode.get(error.errno, error.errno)
        print(f"{name} = {result}", flush=True)


if __name__ == "__main__":
    main()
