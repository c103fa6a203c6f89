"""Processes and threads that make, write, rename and remove files at once, each in directories of its own and all in one.
Prints what is left, which does not depend on who came first, and stays until it reads a line.

python3 parallel_calls.py ROUNDS
"""

import hashlib
import multiprocessing
import os
import sys
import threading

PROCESSES, THREADS = 4, 2
UMASKS = [0o022, 0o077, 0o027, 0o002]


def write(path, content):
    with open(path, "x") as file:
        file.write(content)


def own(name, rounds):
    """Nobody else is here, so every call succeeds."""
    os.mkdir(name)
    for number in range(rounds):
        os.mkdir(f"{name}/made-{number}")
        write(f"{name}/made-{number}/file", f"{name} {number}")
        os.rename(f"{name}/made-{number}/file", f"{name}/kept-{number}")
        os.symlink(f"kept-{number}", f"{name}/link-{number}")
        os.link(f"{name}/kept-{number}", f"{name}/second")
        os.unlink(f"{name}/second")
        os.rmdir(f"{name}/made-{number}")
        with open(f"{name}/link-{number}") as file:
            assert file.read() == f"{name} {number}"


def shared(name, rounds, wins):
    """All make the same names, and of each one of them succeeds."""
    for number in range(rounds):
        write(f"shared/{name}-{number}", name)
        try:
            write(f"shared/raced-{number}", name)
            wins.append(number)
        except FileExistsError:
            pass
        os.makedirs(f"shared/deep-{number}/er", exist_ok=True)


def thread(name, rounds, wins, failures):
    try:
        own(name, rounds)
        shared(name, rounds, wins)
    except BaseException as error:
        failures.append(f"{name}: {error!r}")


def process(number, rounds, results):
    os.umask(UMASKS[number])
    wins, failures = [], []
    arguments = [(f"own-{number}-{index}", rounds, wins, failures) for index in range(THREADS)]
    threads = [threading.Thread(target=thread, args=each) for each in arguments]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    results.put((wins, failures))


def left():
    """Every name with its mode and content, but for what the winner of a race gave."""
    for directory, directories, files in os.walk("."):
        directories.sort()
        for name in sorted(directories + files):
            path = os.path.join(directory, name)
            is_raced = name.startswith("raced-") or "/deep-" in path
            mode = 0 if is_raced else os.lstat(path).st_mode
            content = b""
            if os.path.isfile(path) and not is_raced:
                with open(path, "rb") as file:
                    content = file.read()
            yield f"{path} {mode:o} {hashlib.sha256(content).hexdigest()}"


def main():
    rounds = int(sys.argv[1])
    os.mkdir("shared")
    results = multiprocessing.SimpleQueue()
    arguments = [(number, rounds, results) for number in range(PROCESSES)]
    processes = [multiprocessing.Process(target=process, args=each) for each in arguments]
    for each in processes:
        each.start()
    told = [results.get() for _ in processes]
    for each in processes:
        each.join()
    wins = sorted(number for wins, _ in told for number in wins)
    print([failure for _, failures in told for failure in failures])
    print("each race has one winner:", wins == list(range(rounds)))
    entries = list(left())
    print(len(entries), hashlib.sha256("\n".join(entries).encode()).hexdigest())
    print("done", flush=True)
    sys.stdin.readline()


main()
