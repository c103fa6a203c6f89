"""Processes that try to get a protected name between the judging and the performing of each other's calls. What they make
is harmless where it is made; it would not be where others move it.

python3 parallel_races.py SECONDS
"""

import ctypes
import os
import sys
import time

EVIL = b"[core]\n\tfsmonitor = evil\n"
WRITE = os.O_WRONLY | os.O_CREAT
libc = ctypes.CDLL(None, use_errno=True)


def write(path, content=b""):
    fd = libc.open(path, WRITE, 0o644)
    if fd >= 0:
        libc.write(fd, content, len(content))
        libc.close(fd)


def exists(path):
    return libc.access(path, os.F_OK) == 0


def make_hooks():
    """An empty directory may become `.git/hooks`, and in a plain one a file may have any name."""
    libc.mkdir(b"plain", 0o755)
    if libc.rename(b"plain", b".git/hooks") == 0:
        # Whoever was about to make a file in it has made it by now.
        for _ in range(20):
            if exists(b".git/hooks/pre-commit"):
                print("planted a hook", flush=True)
                break
        libc.rename(b".git/hooks", b"plain")


def write_in_plain():
    write(b"plain/pre-commit", b"evil")
    libc.unlink(b"plain/pre-commit")


def make_git_directory():
    """What is no git directory yet may have any configuration; one that is may not."""
    libc.mkdir(b"bare", 0o755)
    parts = [b"bare/objects", b"bare/refs", b"bare/HEAD"]
    for part in parts[:2]:
        libc.mkdir(part, 0o755)
    write(parts[2], b"ref: refs/heads/main\n")
    for _ in range(20):
        is_whole = all(map(exists, parts))
        try:
            with open("bare/config") as file:
                is_evil = "evil" in file.read()
        except OSError:
            is_evil = False
        # Nobody else takes the parts away, so it was both at one moment.
        if is_whole and is_evil:
            print("planted a setting", flush=True)
            break
    for part in parts[:2]:
        libc.rmdir(part)
    libc.unlink(parts[2])
    libc.unlink(b"bare/config")


def write_config():
    write(b"bare/config", EVIL)


def swap():
    """A directory that is older than the run and one that is made in it have each other's names in turns."""
    libc.mkdir(b"fresh", 0o755)
    for old, new in [(b"old", b"was-old"), (b"fresh", b"old"), (b"old", b"fresh"), (b"was-old", b"old")]:
        libc.rename(old, new)
        if exists(new + b"/older") and exists(new + b"/.envrc"):
            print("planted .envrc", flush=True)


def write_name():
    for directory in [b"fresh", b"old", b"was-old"]:
        write(directory + b"/.envrc", b"evil")


RACES = [
    (make_hooks, write_in_plain, write_in_plain),
    (make_git_directory, write_config, write_config),
    (swap, write_name, write_name),
    (make_hooks, write_in_plain, make_git_directory, write_config, swap, write_name),
]


def main():
    for race in RACES:
        until = time.monotonic() + float(sys.argv[1]) / len(RACES)
        for deed in race:
            if os.fork() == 0:
                while time.monotonic() < until:
                    deed()
                os._exit(0)
        for _ in race:
            os.wait()
    print("done", flush=True)
    sys.stdin.readline()


main()
