"""Makes another process perform system calls, as one that was taken over would: with its own rights, mounts and filter.

inject_calls.py PID|bare CALL..., each CALL a JSON list of a name and its arguments. Prints a line for each: its result, the
name of its errno, or the signal that ended the process. `bare` stands for a process of no particular kind. For x86-64.
"""
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys

NUMBERS = {"openat": 257, "mkdirat": 258, "unlinkat": 263, "socket": 41, "execve": 59, "mount": 165,
           "process_vm_readv": 310, "close": 3}
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
             "ds es fs gs").split()
ARGUMENTS = "rdi rsi rdx r10 r8 r9".split()
GETREGS, SETREGS, SINGLESTEP, ATTACH, DETACH = 12, 13, 9, 16, 17
# Below what the process may use of its stack without having said so.
ROOM_FOR_TEXT = 4096


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in REGISTERS]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, errno.errorcode[number])


def perform(pid, name, arguments):
    before = Registers()
    trace(GETREGS, pid, ctypes.byref(before))
    registers = Registers.from_buffer_copy(before)
    text = registers.rsp - ROOM_FOR_TEXT
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(before.rip - 2)
        assert memory.read(2) == b"\x0f\x05", "the process is not in a system call"
        for register, argument in zip(ARGUMENTS, arguments):
            if isinstance(argument, str):
                memory.seek(text)
                memory.write(argument.encode() + b"\0")
                setattr(registers, register, text)
                text -= ROOM_FOR_TEXT
            else:
                setattr(registers, register, argument % 2**64)
    registers.rip -= 2
    registers.rax = NUMBERS[name]
    # Otherwise the kernel would restart the call that the process was in.
    registers.orig_rax = 2**64 - 1
    trace(SETREGS, pid, ctypes.byref(registers))
    trace(SINGLESTEP, pid)
    _, status = os.waitpid(pid, 0x40000000)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    trace(GETREGS, pid, ctypes.byref(registers))
    # The call that was interrupted is restarted from these.
    trace(SETREGS, pid, ctypes.byref(before))
    result = ctypes.c_longlong(registers.rax).value
    return errno.errorcode[-result] if result < 0 else str(result)


def main():
    bare = subprocess.Popen(["sleep", "60"]) if sys.argv[1] == "bare" else None
    pid = bare.pid if bare else int(sys.argv[1])
    try:
        if bare:
            while "nanosleep" not in open(f"/proc/{pid}/wchan").read():
                pass
        try:
            trace(ATTACH, pid)
        except OSError as error:
            print(f"attach {error.strerror}")
            return
        os.waitpid(pid, 0x40000000)
        for call in sys.argv[2:]:
            name, *arguments = json.loads(call)
            result = perform(pid, name, arguments)
            print(f"{name} {result}", flush=True)
            if result.startswith("SIG"):
                return
        trace(DETACH, pid)
    finally:
        if bare:
            bare.kill()
            bare.wait()


main()
