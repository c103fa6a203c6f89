"""What must be over when a descriptor is closed: a program can be executed, a lock is free, a watcher has heard of it.
Prints one line when all went well.

python3 descriptor_ends.py WHAT ROUNDS
"""

import ctypes
import fcntl
import os
import struct
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)


def program(rounds):
    """Written, closed, executed: never ETXTBSY. The mode is that of a program only at the end, as linkers do it."""
    for index in range(rounds):
        path = f"./program-{index}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(fd, b"#!/bin/true\n")
        os.close(fd)
        os.chmod(path, 0o755)
        child = os.posix_spawn(path, [path], {})
        assert os.waitpid(child, 0)[1] == 0, index
        # Once more, opened for a moment only.
        os.close(os.open(path, os.O_WRONLY))
        child = os.posix_spawn(path, [path], {})
        assert os.waitpid(child, 0)[1] == 0, index
        os.unlink(path)


def lock(rounds):
    """Held by one, closed, taken by another that has had the file open all along: never EWOULDBLOCK."""
    other = os.open("locked", os.O_RDWR | os.O_CREAT, 0o644)
    for index in range(rounds):
        fd = os.open("locked", os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AssertionError(f"still locked in round {index}") from None
        fcntl.flock(other, fcntl.LOCK_UN)


def watched(rounds):
    """IN_CLOSE_WRITE (8) is there as soon as close(2) has returned."""
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, b".", 8) >= 0
    for index in range(rounds):
        fd = os.open("watched", os.O_WRONLY | os.O_CREAT, 0o644)
        os.close(fd)
        try:
            heard = os.read(watch, 4096)
        except BlockingIOError:
            raise AssertionError(f"nothing heard in round {index}") from None
        assert struct.unpack_from("iI", heard)[1] == 8, heard


def pipe(rounds):
    """A pipe that a helper opened has no writer left when its own is closed."""
    os.mkfifo("pipe")
    for index in range(rounds):
        def write():
            fd = os.open("pipe", os.O_WRONLY)
            os.write(fd, b"x")
            os.close(fd)
        writer = threading.Thread(target=write)
        writer.start()
        reader = os.open("pipe", os.O_RDONLY)
        assert os.read(reader, 1) == b"x", index
        writer.join()
        os.set_blocking(reader, False)
        try:
            assert os.read(reader, 1) == b"", index
        except BlockingIOError:
            raise AssertionError(f"still a writer in round {index}") from None
        os.close(reader)


WHAT = {"program": program, "lock": lock, "watched": watched, "pipe": pipe}

if __name__ == "__main__":
    WHAT[sys.argv[1]](int(sys.argv[2]))
    print("well")
