"""A sandbox and a command in the background, found again after the server was killed."""

import sys

from e2b import Sandbox

if sys.argv[1] == "before":
    sandbox = Sandbox.create(timeout=300, metadata={"kept": "yes"}, envs={"KEPT": "too"})
    sandbox.files.write("note", "still here")
    command = sandbox.commands.run(
        "echo ready; read line; echo $KEPT $line >&2; exit 7", background=True, stdin=True, timeout=0
    )
    assert next(iter(command))[0] == "ready\n"
    print(sandbox.sandbox_id, command.pid, flush=True)
    # The server is killed meanwhile.
    sys.stdin.readline()
    try:
        command.wait()
        raise AssertionError("the server is gone")
    except Exception as error:
        print(type(error).__name__)
else:
    sandbox_id, pid = sys.argv[2], int(sys.argv[3])
    listed = Sandbox.list().next_items()
    assert [(it.sandbox_id, it.metadata) for it in listed] == [(sandbox_id, {"kept": "yes"})], listed
    sandbox = Sandbox.connect(sandbox_id)
    assert sandbox.files.read("note") == "still here"
    assert [it.pid for it in sandbox.commands.list()] == [pid]
    command = sandbox.commands.connect(pid)
    sandbox.commands.send_stdin(pid, "words\n")
    try:
        command.wait()
    except Exception as ended:
        assert (ended.exit_code, ended.stderr) == (7, "too words\n"), ended
    sandbox.kill()
    print("all of it works")
