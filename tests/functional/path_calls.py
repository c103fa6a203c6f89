"""Makes path calls with odd arguments and prints what came of each: run bare and inside, the two must say the same.

Every call starts from the same few files in a directory of its own. A line tells the call, its result, and what
has changed in that directory. The calls go to libc by ctypes: Python's own add flags, try again, and lend a hand.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)
CWD = -100
HERE = os.getcwd()
# Another file system, bare and inside.
ELSEWHERE = f"/dev/shm/palisade-elsewhere-{os.getpid()}"
HOW_READ = {os.O_RDONLY: "r", os.O_WRONLY: "w", os.O_RDWR: "rw"}

PATHS = [
    "new", "file", "dir", "empty", "link", "dangling", "loop", "dirlink", "outlink", "fifo", "read-only", "sticky/new",
    "new/", "new//", "file/", "dir/", "link/", "dangling/", "dirlink/", "loop/",
    "./new", "dir/../new", "dir/./new", "dir/.", "dir/..", ".", "..", "", "/", "//", "dir//inner",
    "missing/new", "missing/../new", "file/new", "file/..", "dir/new", "dir/inner", "dirlink/new", "dirlink/inner",
    "dangling/new", "loop/new", "linkdir-dangling", "chain", "chain-new",
    "n" * 255, "n" * 256, "./" * 2047 + "n", "./" * 2048 + "n", "d/" * 3000, "\u00e9\n\t x",
    "@HERE/new", "@HERE//dir///new", "@HERE/file", "@HERE/../here/new", "/proc/self/cwd/new",
    ELSEWHERE, "/dev/null", "/nowhere/new",
]


def fixture():
    """What every call finds. Umask 022."""
    write("file", "content")
    os.chmod("file", 0o644)
    os.mkdir("dir")
    write("dir/inner", "inner")
    os.mkdir("empty")
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    os.symlink("file", "link")
    os.symlink("nowhere", "dangling")
    os.symlink("loop2", "loop")
    os.symlink("loop", "loop2")
    os.symlink("dir", "dirlink")
    os.symlink(ELSEWHERE, "outlink")
    os.symlink("missing/deep", "linkdir-dangling")
    os.symlink("link", "chain")
    os.symlink("dangling", "chain-new")
    os.mkfifo("fifo")
    write("read-only", "fixed")
    os.chmod("read-only", 0o444)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def snapshot():
    found = {}
    for top, directories, files in os.walk("."):
        for name in directories + files:
            path = os.path.join(top, name)
            status = os.lstat(path)
            what = f"{stat.filemode(status.st_mode)} links={status.st_nlink}"
            if stat.S_ISLNK(status.st_mode):
                what += f" -> {os.readlink(path)!a}"
            elif stat.S_ISREG(status.st_mode) and status.st_mode & 0o400:
                with open(path, "rb") as file:
                    what += " " + repr(file.read(40))
            found[path] = what
    return found


def changes(before, after):
    told = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            told.append(f"{path!a}: {before.get(path)} => {after.get(path)}")
    return "; ".join(told).replace(HERE, "@HERE")


def result(value):
    return "ok" if value >= 0 else errno.errorcode[ctypes.get_errno()]


def opened(fd):
    """What a program can see of the descriptor it got; closes it."""
    if fd < 0:
        return errno.errorcode[ctypes.get_errno()]
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    told = ["fd", HOW_READ.get(flags & os.O_ACCMODE, "path")]
    for name in ["O_APPEND", "O_NONBLOCK", "O_SYNC", "O_DSYNC", "O_NOATIME", "O_DIRECTORY", "O_PATH"]:
        if flags & getattr(os, name):
            told.append(name)
    if fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
        told.append("cloexec")
    status = os.fstat(fd)
    told.append(stat.filemode(status.st_mode))
    told.append(f"number={fd}")
    if stat.S_ISREG(status.st_mode) and not flags & os.O_PATH:
        told.append(f"at={os.lseek(fd, 0, os.SEEK_CUR)} size={status.st_size}")
        if flags & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR):
            told.append(f"wrote={os.write(fd, b'W')} at={os.lseek(fd, 0, os.SEEK_CUR)}")
    os.close(fd)
    return " ".join(told)


def text(path):
    return path.replace("@HERE", HERE + "/here").encode()


def c_open(flags, mode=0o666, at=CWD):
    return lambda path: opened(libc.openat(at, text(path), flags, mode))


def in_dir(call):
    """The same call with the directory as a descriptor, and another working directory."""
    def run(path):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        here = os.getcwd()
        os.chdir("dir")
        try:
            return call(fd, path)
        finally:
            os.chdir(here)
            os.close(fd)
    return run


# Named by what is asked; {} is the odd path.
CALLS = {
    "open({}, O_WRONLY)": c_open(os.O_WRONLY | os.O_NONBLOCK),
    "open({}, O_RDWR)": c_open(os.O_RDWR),
    "open({}, O_RDWR|O_CLOEXEC|O_APPEND)": c_open(os.O_RDWR | os.O_CLOEXEC | os.O_APPEND),
    "open({}, O_RDWR|O_TRUNC)": c_open(os.O_RDWR | os.O_TRUNC),
    "open({}, O_RDONLY|O_TRUNC)": c_open(os.O_RDONLY | os.O_TRUNC | os.O_NONBLOCK),
    "open({}, O_RDONLY|O_CREAT)": c_open(os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK),
    "open({}, O_RDWR|O_CREAT)": c_open(os.O_RDWR | os.O_CREAT),
    "open({}, O_RDWR|O_CREAT, 7777)": c_open(os.O_RDWR | os.O_CREAT, 0o1777),
    "open({}, O_RDWR|O_CREAT, 0)": c_open(os.O_RDWR | os.O_CREAT, 0),
    "open({}, O_RDWR|O_CREAT|O_EXCL)": c_open(os.O_RDWR | os.O_CREAT | os.O_EXCL),
    "open({}, O_RDWR|O_CREAT|O_TRUNC)": c_open(os.O_RDWR | os.O_CREAT | os.O_TRUNC),
    "open({}, O_RDWR|O_CREAT|O_NOFOLLOW)": c_open(os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW),
    "open({}, O_RDWR|O_NOFOLLOW)": c_open(os.O_RDWR | os.O_NOFOLLOW),
    "open({}, O_RDWR|O_CREAT|O_NONBLOCK|O_SYNC)": c_open(os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_SYNC),
    "open({}, O_RDWR|O_DIRECTORY)": c_open(os.O_RDWR | os.O_DIRECTORY),
    "open({}, O_PATH|O_CREAT)": c_open(os.O_PATH | os.O_CREAT),
    "open({}, O_RDONLY|O_NONBLOCK)": c_open(os.O_RDONLY | os.O_NONBLOCK),
    "open({}, 3)": c_open(3 | os.O_NONBLOCK),
    "creat({})": lambda path: opened(libc.creat(text(path), 0o640)) if path != "fifo" else "",
    "openat(fd, {}, O_RDWR|O_CREAT)": in_dir(
        lambda fd, path: opened(libc.openat(fd, text(path), os.O_RDWR | os.O_CREAT, 0o600))),
    "truncate({}, 3)": lambda path: result(libc.truncate(text(path), ctypes.c_long(3))),
    "truncate({}, 99)": lambda path: result(libc.truncate(text(path), ctypes.c_long(99))),
    "truncate({}, -1)": lambda path: result(libc.truncate(text(path), ctypes.c_long(-1))),
    "mkdir({})": lambda path: result(libc.mkdir(text(path), 0o777)),
    "mkdir({}, 1700)": lambda path: result(libc.mkdir(text(path), 0o1700)),
    "mkdirat(fd, {})": in_dir(lambda fd, path: result(libc.mkdirat(fd, text(path), 0o755))),
    "mknod({}, S_IFREG)": lambda path: result(libc.mknod(text(path), stat.S_IFREG | 0o666, 0)),
    "mknod({}, 0)": lambda path: result(libc.mknod(text(path), 0o640, 0)),
    "mknod({}, S_IFIFO)": lambda path: result(libc.mknod(text(path), stat.S_IFIFO | 0o666, 0)),
    "mknod({}, S_IFSOCK)": lambda path: result(libc.mknod(text(path), stat.S_IFSOCK | 0o666, 0)),
    "mknod({}, S_IFDIR)": lambda path: result(libc.mknod(text(path), stat.S_IFDIR | 0o666, 0)),
    "symlink(target, {})": lambda path: result(libc.symlink(b"target", text(path))),
    "symlink('', {})": lambda path: result(libc.symlink(b"", text(path))),
    "symlink({}, made)": lambda path: result(libc.symlink(text(path), b"made")),
    "symlinkat(target, fd, {})": in_dir(lambda fd, path: result(libc.symlinkat(b"target", fd, text(path)))),
    "link(file, {})": lambda path: result(libc.link(b"file", text(path))),
    "link(dir, {})": lambda path: result(libc.link(b"dir", text(path))),
    "link({}, made)": lambda path: result(libc.link(text(path), b"made")),
    "linkat({}, made, FOLLOW)": lambda path: result(libc.linkat(CWD, text(path), CWD, b"made", 0x400)),
    "linkat({}, made, 1)": lambda path: result(libc.linkat(CWD, text(path), CWD, b"made", 1)),
    "linkat(missing, {})": lambda path: result(libc.linkat(CWD, b"missing", CWD, text(path), 0)),
    "rename(file, {})": lambda path: result(libc.rename(b"file", text(path))),
    "rename(dir, {})": lambda path: result(libc.rename(b"dir", text(path))),
    "rename(empty, {})": lambda path: result(libc.rename(b"empty", text(path))),
    "rename(link, {})": lambda path: result(libc.rename(b"link", text(path))),
    "rename(missing, {})": lambda path: result(libc.rename(b"missing", text(path))),
    "rename({}, made)": lambda path: result(libc.rename(text(path), b"made")),
    "rename({}, made/)": lambda path: result(libc.rename(text(path), b"made/")),
    "rename({}, file)": lambda path: result(libc.rename(text(path), b"file")),
    "rename({}, dir)": lambda path: result(libc.rename(text(path), b"dir")),
    "rename({}, empty)": lambda path: result(libc.rename(text(path), b"empty")),
    "renameat2(file, {}, NOREPLACE)": lambda path: result(libc.renameat2(CWD, b"file", CWD, text(path), 1)),
    "renameat2(file, {}, EXCHANGE)": lambda path: result(libc.renameat2(CWD, b"file", CWD, text(path), 2)),
    "renameat2(dir, {}, EXCHANGE)": lambda path: result(libc.renameat2(CWD, b"dir", CWD, text(path), 2)),
    "renameat2(file, {}, 3)": lambda path: result(libc.renameat2(CWD, b"file", CWD, text(path), 3)),
    "renameat2(file, {}, 64)": lambda path: result(libc.renameat2(CWD, b"file", CWD, text(path), 64)),
    "renameat(fd, {}, fd, made)": in_dir(lambda fd, path: result(libc.renameat(fd, text(path), fd, b"made"))),
}


def once(name, call):
    """One call in a directory that is as `fixture` made it."""
    if not os.path.isdir("here"):
        os.mkdir("here")
        os.chdir("here")
        fixture()
    os.chdir(HERE + "/here")
    before = snapshot()
    try:
        told = call()
    finally:
        os.chdir(HERE + "/here")
    changed = changes(before, snapshot())
    print(f"{name} = {told} [{changed}]".replace(ELSEWHERE, "@ELSEWHERE"))
    os.chdir(HERE)
    if changed:
        for entry in os.scandir("here"):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
        shutil.rmtree("here")
    if os.path.lexists(ELSEWHERE):
        os.rename(ELSEWHERE, ELSEWHERE + "-gone")
        remove = shutil.rmtree if os.path.isdir(ELSEWHERE + "-gone") else os.unlink
        remove(ELSEWHERE + "-gone")


def odd_paths():
    for name, call in CALLS.items():
        for path in PATHS:
            shown = path if len(path) < 40 else f"{path[:4]}…{len(path)}"
            once(name.replace("{}", shown.encode("unicode_escape").decode()), lambda: call(path))


def odd_pointers():
    bad = ctypes.c_void_p(8)
    once("open(bad)", lambda: opened(libc.openat(CWD, bad, os.O_RDWR | os.O_CREAT, 0o600)))
    once("mkdir(bad)", lambda: result(libc.mkdir(bad, 0o700)))
    once("rename(bad, made)", lambda: result(libc.rename(bad, b"made")))
    once("rename(file, bad)", lambda: result(libc.rename(b"file", bad)))
    once("link(file, bad)", lambda: result(libc.link(b"file", bad)))
    once("symlink(bad, made)", lambda: result(libc.symlink(bad, b"made")))
    once("open(NULL)", lambda: opened(libc.openat(CWD, None, os.O_RDWR | os.O_CREAT, 0o600)))


def odd_descriptors():
    creating = os.O_RDWR | os.O_CREAT
    for shown, number in [("-1", -1), ("-2", -2), ("999", 999), ("stdin", 0)]:
        once(f"openat({shown}, new)", lambda: opened(libc.openat(number, b"new", creating, 0o600)))
        once(f"openat({shown}, @HERE/new)", lambda: opened(libc.openat(number, text("@HERE/new"), creating, 0o600)))
        once(f"openat({shown}, '')", lambda: opened(libc.openat(number, b"", creating, 0o600)))
        once(f"mkdirat({shown}, new)", lambda: result(libc.mkdirat(number, b"new", 0o700)))
        once(f"renameat({shown}, file)", lambda: result(libc.renameat(number, b"file", CWD, b"made")))
        once(f"renameat(to {shown})", lambda: result(libc.renameat(CWD, b"file", number, b"made")))
        once(f"linkat({shown}, file)", lambda: result(libc.linkat(number, b"file", CWD, b"made", 0)))
        once(f"symlinkat({shown})", lambda: result(libc.symlinkat(b"target", number, b"made")))

    def with_file(flags, call):
        fd = os.open("file", flags)
        try:
            return call(fd)
        finally:
            os.close(fd)

    once("openat(file as directory)", lambda: with_file(
        os.O_RDONLY, lambda fd: opened(libc.openat(fd, b"new", creating, 0o600))))
    once("openat(O_PATH directory)", lambda: with_directory(
        os.O_PATH, lambda fd: opened(libc.openat(fd, b"new", creating, 0o600))))
    once("openat(removed directory)", removed_directory)
    once("open(in a removed working directory)", removed_working_directory)
    for held in ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_PATH"]:
        for again in ["O_RDONLY", "O_WRONLY", "O_RDWR"]:
            for form in ["/proc/self/fd/{}", "/dev/fd/{}", "/proc/thread-self/fd/{}"]:
                once(f"open({form} of {held}, {again})", lambda: with_file(
                    getattr(os, held),
                    lambda fd: opened(libc.openat(CWD, form.format(fd).encode(), getattr(os, again), 0))))
    once("open(/proc/self/fd/N, O_TRUNC)", lambda: with_file(
        os.O_WRONLY, lambda fd: opened(libc.openat(CWD, f"/proc/self/fd/{fd}".encode(), 0o1001, 0))))
    once("open(/proc/self/fd/N of a removed file)", removed_file)
    once("open(/proc/self/fd/DIR/new)", lambda: with_directory(
        os.O_RDONLY, lambda fd: opened(libc.openat(CWD, f"/proc/self/fd/{fd}/new".encode(), creating, 0o600))))
    once("linkat(fd, '', AT_EMPTY_PATH)", lambda: with_file(
        os.O_RDONLY, lambda fd: result(libc.linkat(fd, b"", CWD, b"made", 0x1000))))
    once("linkat(/proc/self/fd/N, FOLLOW)", lambda: with_file(
        os.O_RDONLY, lambda fd: result(libc.linkat(CWD, f"/proc/self/fd/{fd}".encode(), CWD, b"made", 0x400))))
    once("linkat(/proc/self/fd/N)", lambda: with_file(
        os.O_RDONLY, lambda fd: result(libc.linkat(CWD, f"/proc/self/fd/{fd}".encode(), CWD, b"made", 0))))


def with_directory(flags, call):
    fd = os.open("dir", flags | os.O_DIRECTORY)
    try:
        return call(fd)
    finally:
        os.close(fd)


def removed_directory():
    fd = os.open("empty", os.O_RDONLY)
    os.rmdir("empty")
    told = opened(libc.openat(fd, b"new", os.O_RDWR | os.O_CREAT, 0o600))
    os.close(fd)
    return told


def removed_working_directory():
    os.chdir("empty")
    os.rmdir("../empty")
    return opened(libc.openat(CWD, b"new", os.O_RDWR | os.O_CREAT, 0o600))


def removed_file():
    fd = os.open("file", os.O_RDWR)
    os.unlink("file")
    told = opened(libc.openat(CWD, f"/proc/self/fd/{fd}".encode(), os.O_RDWR, 0))
    os.close(fd)
    return told


def modes():
    for umask in [0, 0o22, 0o77, 0o777]:
        def made():
            before = os.umask(umask)
            fd = libc.openat(CWD, b"new", os.O_RDWR | os.O_CREAT, 0o1777)
            libc.mkdir(b"newdir", 0o1777)
            libc.mknod(b"newfifo", stat.S_IFIFO | 0o777, 0)
            server = socket.socket(socket.AF_UNIX)
            server.bind("newsock")
            os.umask(before)
            told = "writable" if os.write(fd, b"x") == 1 else "not"
            os.close(fd)
            server.close()
            return told
        once(f"umask {umask:o}", made)
    once("umask after fork", umask_after_fork)
    once("set-group-id directory", set_group_id)


def umask_after_fork():
    libc.mkdir(b"one", 0o777)
    child = os.fork()
    if child == 0:
        os.umask(0o70)
        libc.mkdir(b"two", 0o777)
        os._exit(0)
    os.waitpid(child, 0)
    return result(libc.mkdir(b"three", 0o777))


def set_group_id():
    libc.mkdir(b"shared", 0o777)
    return result(libc.mkdir(b"shared/below", 0o777))


def sockets():
    def bound(address):
        def run():
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                server.bind(address)
                server.listen()
                name = server.getsockname()
                client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    client.connect(address)
                    return f"connected {os.fsdecode(name).replace(HERE, '@HERE')!a}"
                finally:
                    client.close()
            except OSError as error:
                return errno.errorcode.get(error.errno, str(error))
            finally:
                server.close()
        return run
    for address in ["sock", "dir/sock", "file", "dangling", "missing/sock", "./sock", "sock/", "\0abstract", "n" * 107]:
        once(f"bind({address[:9]!a})", bound(address))
    once("bind(inet)", bind_inet)


def bind_inet():
    with socket.socket() as server:
        try:
            server.bind(("127.0.0.1", 0))
            return "ok"
        except OSError as error:
            return errno.errorcode[error.errno]


def full_table():
    """No descriptor is left for a new file. What the call made on the way is not compared."""
    os.mkdir("full")
    os.chdir("full")
    write("file", "content")
    import resource
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, most))
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    told = [opened(libc.openat(CWD, b"file", os.O_RDWR, 0)), opened(libc.openat(CWD, b"new", os.O_RDWR | os.O_CREAT, 0o600))]
    for fd in held:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.chdir(HERE)
    shutil.rmtree("full")
    print("full table =", told)


def quiet():
    """What a program does all day."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.umask(0o022)


if __name__ == "__main__":
    quiet()
    odd_pointers()
    odd_descriptors()
    modes()
    sockets()
    full_table()
    odd_paths()
    shutil.rmtree("here", ignore_errors=True)
    sys.stdout.flush()
