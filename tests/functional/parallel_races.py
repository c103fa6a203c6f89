"""Threads that try to get a protected name between the judging and the performing of each other's calls. What they make is
harmless where it is made; it would not be where others move it.

python3 parallel_races.py SECONDS
"""

import os
import sys
import threading
import time

EVIL = "[core]\n\tfsmonitor = evil\n"
until = time.monotonic() + float(sys.argv[1])
tried = {"hooks": 0, "git directory": 0, "name": 0, "plain": 0}


def quietly(call, *arguments):
    try:
        return call(*arguments)
    except OSError:
        return None


def write(path, content):
    try:
        with open(path, "w") as file:
            file.write(content)
    except OSError:
        pass


def again(deed):
    def work(number):
        while time.monotonic() < until:
            deed(number)
    return work


def make_hooks(_):
    """An empty directory may become `.git/hooks`, and in a plain one a file may have any name."""
    tried["hooks"] += 1
    quietly(os.mkdir, "plain")
    quietly(os.rename, "plain", ".git/hooks")
    quietly(os.rename, ".git/hooks", "plain")
    quietly(os.rmdir, ".git/hooks")


def write_in_plain(_):
    write("plain/pre-commit", "evil")
    quietly(os.unlink, "plain/pre-commit")


def make_git_directory(number):
    """What is no git directory yet may have any configuration; one that is may not."""
    tried["git directory"] += 1
    name = f"bare-{number % 2}"
    quietly(os.mkdir, name)
    for part in ["objects", "refs"]:
        quietly(os.mkdir, f"{name}/{part}")
    write(f"{name}/HEAD", "ref: refs/heads/main\n")
    is_whole = all(os.path.exists(f"{name}/{part}") for part in ["objects", "refs", "HEAD"])
    try:
        with open(f"{name}/config") as file:
            is_evil = "evil" in file.read()
    except OSError:
        is_evil = False
    # Asked in this order it was both at one moment, unless one of the parts was removed meanwhile, which only we do.
    if is_whole and is_evil and all(os.path.exists(f"{name}/{part}") for part in ["objects", "refs", "HEAD"]):
        print("planted", name, flush=True)
    for part in ["objects", "refs"]:
        quietly(os.rmdir, f"{name}/{part}")
    for part in ["HEAD", "config"]:
        quietly(os.unlink, f"{name}/{part}")


def write_config(number):
    write(f"bare-{number % 2}/config", EVIL)


def swap(_):
    """In a directory that was made in this run `.envrc` is nobody's; in one that is older it is the host's."""
    tried["name"] += 1
    quietly(os.mkdir, "fresh")
    quietly(os.rename, "old", "was-old")
    quietly(os.rename, "fresh", "old")
    quietly(os.rename, "old", "fresh")
    quietly(os.rename, "was-old", "old")


def write_name(_):
    for directory in ["fresh", "old", "was-old"]:
        write(f"{directory}/.envrc", "evil")
    quietly(os.unlink, "fresh/.envrc")


def plain(number):
    tried["plain"] += 1
    write(f"noise-{number}-{tried['plain'] % 50}", "")


def main():
    deeds = [make_hooks, write_in_plain, write_in_plain, make_git_directory, write_config, write_config, swap, write_name, plain]
    started = []
    for number, deed in enumerate(deeds):
        # Processes, since threads of this interpreter take turns.
        if (pid := os.fork()) == 0:
            thread = threading.Thread(target=again(deed), args=(number,))
            thread.start()
            thread.join()
            if deed in (make_hooks, make_git_directory, swap) and not any(tried.values()):
                print("nothing was tried", flush=True)
            os._exit(0)
        started.append(pid)
    for pid in started:
        os.waitpid(pid, 0)
    print("done", flush=True)
    sys.stdin.readline()


main()
