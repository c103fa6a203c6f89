"""What programs do to a broker without meaning it: crowds, signals, deaths, waits. Prints one line when all went well.

python3 broker_load.py WHAT
"""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time


def create(path):
    """Exclusively: a call that is made twice fails the second time."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def until_done(call, *words):
    while True:
        try:
            return call(*words)
        except InterruptedError:
            pass


def signals(restart):
    """A thousand signals a second. An interrupted call is made again, so one that was made all the same shows as EEXIST.
    Only without SA_RESTART is a caller told: before its call is received it can be interrupted, as nowhere else."""
    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1

    signal.signal(signal.SIGALRM, count)
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    insist = (lambda call, *words: call(*words)) if restart else until_done
    for index in range(2000):
        insist(create, f"file-{index}")
        insist(os.rename, f"file-{index}", f"renamed-{index}")
        if index % 4 == 0:
            insist(os.mkdir, f"directory-{index}")
            insist(os.link, f"renamed-{index}", f"linked-{index}")
            insist(os.symlink, "x", f"symbolic-{index}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen > 20, seen
    assert len(os.listdir(".")) == 2000 + 3 * 500, len(os.listdir("."))


def blocked_in_open(path, flags):
    """A child that waits in open(2)."""
    child = os.fork()
    if child == 0:
        try:
            os.close(os.open(path, flags))
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    return child


def waits_long_enough(child):
    """Until the child is in its call; it can only get further if somebody lets it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with open(f"/proc/{child}/syscall", encoding="ascii") as file:
            if file.read().split()[0] in ("257", "56", "2"):
                return
        time.sleep(0.005)
    raise AssertionError("the child never got to its call")


def killed():
    """Callers that die while they wait for the broker."""
    os.mkfifo("pipe")
    for index in range(40):
        child = blocked_in_open("pipe", os.O_WRONLY)
        if index % 2:
            waits_long_enough(child)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), status
        create(f"after-{index}")


def interrupted():
    """A signal handler runs in a caller that waits for long, and the wait ends with EINTR or goes on."""
    os.mkfifo("pipe")
    child = os.fork()
    if child == 0:
        def leave(*_):
            os._exit(42)
        signal.signal(signal.SIGUSR1, leave)
        os.open("pipe", os.O_WRONLY)
        os._exit(1)
    waits_long_enough(child)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM, status


def pipes():
    """Pipes without a reader keep only those waiting who opened them."""
    os.mkfifo("pipe")
    waiting = [blocked_in_open("pipe", os.O_WRONLY) for _ in range(8)]
    for child in waiting:
        waits_long_enough(child)
    for index in range(200):
        create(f"file-{index}")
    reader = os.open("pipe", os.O_RDONLY)
    for child in waiting:
        assert os.waitpid(child, 0)[1] == 0
    os.close(reader)
    # More than the broker keeps waiting for: some are told so, and nobody hangs.
    crowd = [blocked_in_open("pipe", os.O_WRONLY) for _ in range(50)]
    create("last")
    for child in crowd:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    create("very-last")
    # Those that died leave their places, and no writer in their stead.
    child = blocked_in_open("pipe", os.O_WRONLY)
    waits_long_enough(child)
    reader = os.open("pipe", os.O_RDONLY)
    assert os.waitpid(child, 0)[1] == 0
    os.close(reader)


def lease():
    """A file under a lease keeps only the one waiting who breaks it."""
    create("leased")
    holder = os.open("leased", os.O_RDWR)
    broken = threading.Event()
    signal.signal(signal.SIGIO, lambda *_: broken.set())
    fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    child = blocked_in_open("leased", os.O_WRONLY)
    while not broken.is_set():
        time.sleep(0.002)
    for index in range(100):
        create(f"file-{index}")
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    assert os.waitpid(child, 0)[1] == 0


def threads():
    """64 threads, a directory each, all in one."""
    failures = []

    def work(number):
        try:
            os.mkdir(f"of-{number}")
            for index in range(40):
                create(f"of-{number}/{index}")
                create(f"shared-{number}-{index}")
        except OSError as error:
            failures.append(error)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert not failures, failures
    assert len(os.listdir(".")) == 64 + 64 * 40


def races():
    """Of many who create the same name exclusively, one wins."""
    for index in range(30):
        children = [blocked_in_open(f"one-{index}", os.O_WRONLY | os.O_CREAT | os.O_EXCL) for _ in range(8)]
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        assert codes == [0] + [errno.EEXIST] * 7, codes


def children():
    """Programs started by vfork, whose parents wait for their exec, and a storm of forks."""
    for index in range(60):
        subprocess.run(["/usr/bin/touch", f"touched-{index}"], check=True)
    storm = []
    for number in range(150):
        child = os.fork()
        if child == 0:
            for index in range(10):
                create(f"storm-{number}-{index}")
            os._exit(0)
        storm.append(child)
    for child in storm:
        assert os.waitpid(child, 0)[1] == 0
    assert len(os.listdir(".")) == 60 + 1500


def umasks():
    """A new umask counts from the next call on, in whichever thread."""
    for index in range(300):
        umask = [0, 0o022, 0o077, 0o027][index % 4]
        os.umask(umask)
        os.close(os.open(f"file-{index}", os.O_WRONLY | os.O_CREAT, 0o666))
        mode = os.stat(f"file-{index}").st_mode & 0o777
        assert mode == 0o666 & ~umask, (index, oct(mode), oct(umask))


def refused():
    """A flood of refused writes, with others in between."""
    for index in range(int(sys.argv[2])):
        try:
            os.open(".envrc", os.O_WRONLY | os.O_CREAT)
            raise AssertionError("it was not refused")
        except PermissionError:
            pass
        if index % 1000 == 0:
            create(f"file-{index}")


def deep():
    """Down as far as the working directory can be told."""
    for _ in range(35):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
    create("file")
    os.rename("file", "other")


WHAT = {
    "signals": lambda: signals(False), "signals-restart": lambda: signals(True), "killed": killed, "pipes": pipes,
    "interrupted": interrupted, "lease": lease, "threads": threads, "races": races, "children": children,
    "umasks": umasks, "refused": refused, "deep": deep,
}

if __name__ == "__main__":
    os.mkdir("load")
    os.chdir("load")
    WHAT[sys.argv[1]]()
    print("well")
