"""Threads that make, fill and take down the same tree at once, as package managers do. What one finds missing another is
just making: the kernel says ENOENT, EEXIST or nothing at all, and never EACCES. Prints one line when all went well.

python3 thread_races.py SECONDS
"""

import collections
import ctypes
import errno
import os
import random
import stat
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
CWD = -100
# What a call may find when others are at the same names; all of it happens bare.
HONEST = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.ENOTEMPTY, errno.EISDIR, errno.EINVAL, errno.ENXIO,
          errno.ELOOP, errno.EPERM}
TRIED = ["mkdir", "create", "link", "symlink", "mkfifo", "rename"]
answers = collections.Counter()
failures = []


def called(name, value):
    code = 0 if value >= 0 else ctypes.get_errno()
    answers[name, errno.errorcode.get(code, "ok")] += 1
    if code and code not in HONEST:
        failures.append(f"{name}: {errno.errorcode[code]}")
    return value


def closing(fd):
    if fd >= 0:
        os.close(fd)


def make_parents(path):
    """mkdir -p, as everybody writes it."""
    at = ""
    for name in path.split("/")[:-1]:
        at += name
        called("mkdir", libc.mkdir(at.encode(), 0o777))
        at += "/"


def is_enough():
    """Each call has met both, what was there and what was missing."""
    return all(answers[name, told] > 4 for name in TRIED for told in ("ok", "ENOENT"))


def work(seed, until):
    choose = random.Random(seed)
    while not failures and (time.monotonic() < until or not is_enough()) and time.monotonic() < until + 120:
        top = f"tree-{choose.randrange(3)}"
        path = f"{top}/a{choose.randrange(2)}/b{choose.randrange(2)}/f{choose.randrange(3)}"
        other = f"{top}/a{choose.randrange(2)}/b{choose.randrange(2)}/f{choose.randrange(3)}"
        name, new = path.encode(), other.encode()
        deed = choose.randrange(13)
        if deed == 0:
            make_parents(path)
        elif deed in (1, 2):
            closing(called("create", libc.openat(CWD, name, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o666)))
        elif deed == 3:
            closing(called("create exclusively", libc.openat(CWD, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)))
        elif deed == 4:
            called("link", libc.link(name, new))
        elif deed == 5:
            called("symlink", libc.symlink(b"f0", name))
        elif deed == 6:
            called("mkfifo", libc.mkfifo(name, 0o666))
        elif deed == 7:
            called("rename", libc.rename(name, new))
        elif deed == 8:
            called("mkdir", libc.mkdir(name, 0o777))
            called("rmdir", libc.rmdir(name))
        elif deed == 9:
            called("truncate", libc.truncate(name, ctypes.c_long(1)))
        elif deed == 10:
            called("mknod", libc.mknod(name, stat.S_IFREG | 0o666, 0))
        elif deed == 11:
            called("unlink", libc.unlink(name))
        else:
            # The whole tree, so that parents go missing again and again.
            for directory, _, files in os.walk(top, topdown=False):
                for file in files:
                    called("unlink", libc.unlink(os.path.join(directory, file).encode()))
                called("rmdir", libc.rmdir(directory.encode()))


if __name__ == "__main__":
    os.mkdir("races")
    os.chdir("races")
    end = time.monotonic() + float(sys.argv[1])
    crowd = [threading.Thread(target=work, args=(seed, end)) for seed in range(12)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert not failures, failures[:20]
    assert is_enough(), answers
    print("well")
