"""Every call of E2B's Python package that `sandbox serve --e2b` serves, as a program would make it."""

import io
import time
from datetime import datetime, timedelta, timezone

from e2b import (
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FileType,
    FilesystemEventType,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    Sandbox,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    TimeoutException,
)


def wait_for(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not in {seconds} seconds"
        time.sleep(0.05)


def refused(kind, call, words=""):
    try:
        call()
    except kind as error:
        assert words in str(error), error
        return error
    raise AssertionError(f"{words}: it was not refused")


def sandboxes():
    sandbox = Sandbox.create(
        timeout=120, metadata={"purpose": "a test & more", "n": "1"}, envs={"FROM_CREATE": "yes"}
    )
    other = Sandbox.create(timeout=60, metadata={"n": "2"})
    assert sandbox.is_running()
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.metadata == {"purpose": "a test & more", "n": "1"}, info
    assert info.template_id == "base"
    left = info.end_at - datetime.now(timezone.utc)
    assert timedelta(seconds=90) < left < timedelta(seconds=121), left
    sandbox.set_timeout(300)
    left = sandbox.get_info().end_at - datetime.now(timezone.utc)
    assert left > timedelta(seconds=250), left

    ids = [found.sandbox_id for found in Sandbox.list().next_items()]
    assert {sandbox.sandbox_id, other.sandbox_id} <= set(ids), ids
    paginator = Sandbox.list(limit=1)
    pages = []
    while paginator.has_next:
        pages += [found.sandbox_id for found in paginator.next_items()]
    assert sorted(pages) == sorted(ids), (pages, ids)
    query = SandboxQuery(metadata={"purpose": "a test & more"})
    found = Sandbox.list(query=query).next_items()
    assert [it.sandbox_id for it in found] == [sandbox.sandbox_id], found

    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.commands.run("echo $FROM_CREATE").stdout == "yes\n"
    assert other.kill() is True
    assert Sandbox.kill(other.sandbox_id) is False, "it is gone"
    assert not other.is_running()
    refused(SandboxNotFoundException, lambda: Sandbox.connect(other.sandbox_id))
    refused(SandboxNotFoundException, lambda: other.get_info())
    gone = refused(SandboxException, lambda: other.commands.run("true"))
    assert "not found" in str(gone), gone
    return sandbox


def commands(sandbox):
    run = sandbox.commands.run
    result = run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0), result
    heard = []
    run("echo one; echo two >&2", on_stdout=lambda it: heard.append(("out", it)),
        on_stderr=lambda it: heard.append(("err", it)))
    assert sorted(heard) == [("err", "two\n"), ("out", "one\n")], heard
    failed = refused(CommandExitException, lambda: run("echo late; exit 3"))
    assert (failed.exit_code, failed.stdout) == (3, "late\n"), failed
    assert run("pwd; echo ~; cd /home/user; pwd").stdout == "/home/user\n" * 3
    assert run("pwd", cwd="/usr").stdout == "/usr\n"
    assert run("echo $A-$FROM_CREATE", envs={"A": "b"}).stdout == "b-yes\n"
    assert run("id -un >/dev/null && echo it", user="root").stdout == "it\n"
    refused(AuthenticationException, lambda: run("true", user="nobody"), "one user")
    refused(InvalidArgumentException, lambda: run("true", cwd="/no/such/place"))
    began = time.monotonic()
    refused(TimeoutException, lambda: run("sleep 100", timeout=1))
    assert time.monotonic() - began < 20
    gone_by = time.monotonic() + 10
    while run("pgrep -x sleep || true").stdout:
        assert time.monotonic() < gone_by, "its time was over, and so was the command's"
    much = run("seq 1 300000", timeout=60).stdout
    assert much == "".join(f"{n}\n" for n in range(1, 300001)), len(much)
    # The second half of a character comes later.
    assert run(r"printf '\342\202'; sleep 0.2; printf '\254\n'").stdout == "€\n"

    background = run("echo started; read line; echo got $line; cat", background=True, stdin=True)
    listed = [it for it in sandbox.commands.list() if it.pid == background.pid]
    assert listed and listed[0].cmd == "/bin/bash" and listed[0].args[-1].startswith("echo st")
    sandbox.commands.send_stdin(background.pid, "words\n")
    background.send_stdin("more\n")
    sandbox.commands.close_stdin(background.pid)
    assert background.wait().stdout == "started\ngot words\nmore\n"
    empty = run("cat; echo over")
    assert empty.stdout == "over\n", "without stdin there is nothing to read"

    streamed = run("wc -c", background=True, stdin=True)
    sandbox.commands.stream_input(streamed.pid, [b"x" * 70000, "end\n"])
    streamed.close_stdin()
    assert streamed.wait().stdout.strip() == "70004"

    left = run("echo before; read x; echo after $x", background=True, stdin=True, timeout=0)
    assert next(iter(left))[0] == "before\n"
    left.disconnect()
    connected = sandbox.commands.connect(left.pid)
    sandbox.commands.send_stdin(left.pid, "here\n")
    assert connected.wait().stdout == "after here\n"
    refused(NotFoundException, lambda: sandbox.commands.connect(left.pid))

    sleeper = run("sleep 1000", background=True, timeout=0)
    assert sandbox.commands.kill(sleeper.pid) is True
    killed = refused(CommandExitException, sleeper.wait)
    assert killed.exit_code == -1 and "killed" in killed.error, killed
    assert sandbox.commands.kill(sleeper.pid) is False
    refused(NotFoundException, lambda: sandbox.commands.send_stdin(sleeper.pid, "x"))


def files(sandbox):
    f = sandbox.files
    written = f.write("notes/a.txt", "text é\n")
    assert (written.name, written.type) == ("a.txt", FileType.FILE), written
    assert written.path == "/home/user/notes/a.txt", written
    assert f.read("notes/a.txt") == "text é\n"
    assert f.read(written.path, format="bytes") == "text é\n".encode()
    assert b"".join(f.read("notes/a.txt", format="stream")) == "text é\n".encode()
    assert sandbox.commands.run("cat notes/a.txt").stdout == "text é\n"
    f.write("/home/user/notes/b.bin", bytes(range(256)))
    assert bytes(f.read("notes/b.bin", format="bytes")) == bytes(range(256))
    assert sandbox.commands.run("stat -c %s /home/user/notes/b.bin").stdout == "256\n"
    several = f.write_files(
        [{"path": "many/1 \"one\".txt", "data": "1"}, {"path": "many/2", "data": b"2"}]
    )
    assert [it.name for it in several] == ['1 "one".txt', "2"], several
    assert f.read('many/1 "one".txt') == "1"
    big = bytes(i % 251 for i in range(3 << 20))
    f.write("big", io.BytesIO(big))
    assert bytes(f.read("big", format="bytes")) == big
    f.write("empty", "")
    assert f.read("empty") == ""

    assert sorted(it.name for it in f.list("notes")) == ["a.txt", "b.bin"]
    assert "many/2" not in [it.name for it in f.list(".")]
    deep = [it.path for it in f.list(".", depth=2)]
    assert any(path.endswith("/many/2") for path in deep), deep
    info = f.get_info("notes/a.txt")
    assert (info.type, info.size, info.mode & 0o400) == (FileType.FILE, 8, 0o400), info
    assert abs(info.modified_time.timestamp() - time.time()) < 300, info
    assert f.get_info("notes").type == FileType.DIR
    sandbox.commands.run("ln -s notes/a.txt link")
    link = f.get_info("link")
    assert (link.type, link.symlink_target) == (FileType.SYMLINK, "notes/a.txt"), link
    assert f.exists("notes/a.txt") and not f.exists("notes/c.txt")
    moved = f.rename("notes/a.txt", "new/place/c.txt")
    assert moved.name == "c.txt" and f.exists("new/place/c.txt") and not f.exists("notes/a.txt")
    assert f.make_dir("made/below") is True and f.make_dir("made/below") is False
    f.remove("made")
    assert not f.exists("made")
    f.remove("made")
    refused(FileNotFoundException, lambda: f.read("nothing"))
    refused(FileNotFoundException, lambda: f.list("nothing"))
    refused(FileNotFoundException, lambda: f.rename("nothing", "else"))
    refused(SandboxException, lambda: f.write("/usr/bin/evil", "x"))
    refused(SandboxException, lambda: f.write("m", "x", metadata={"a": "b"}), "not supported here")

    f.make_dir("watched/below")
    watch = f.watch_dir("watched", recursive=True, include_entry=True)
    f.write("watched/new.txt", "1")
    f.write("watched/below/deep.txt", "1")
    f.remove("watched/new.txt")
    seen = []

    def has_all():
        seen.extend(watch.get_new_events())
        kinds = {(event.name, event.type) for event in seen}
        return {
            ("new.txt", FilesystemEventType.CREATE),
            ("below/deep.txt", FilesystemEventType.CREATE),
            ("new.txt", FilesystemEventType.REMOVE),
        } <= kinds

    wait_for("changes of the watched directory", has_all)
    watch.stop()
    refused(FileNotFoundException, lambda: f.watch_dir("nothing"))

    import urllib.request

    url = sandbox.download_url("notes/b.bin", use_signature_expiration=60)
    assert urllib.request.urlopen(url).read() == bytes(range(256))
    try:
        urllib.request.urlopen(url.replace("b.bin", "c.bin"))
        raise AssertionError("the signature is for another file")
    except urllib.error.HTTPError as error:
        assert error.code == 401, error


def connections(sandbox):
    """What is refused does not spoil the connection for the next request."""
    for _ in range(20):
        refused(AuthenticationException, lambda: sandbox.commands.run("true", user="nobody"))
        assert sandbox.commands.run("echo 1").stdout == "1\n"
        refused(SandboxException, lambda: sandbox.files.write("/usr/bin/evil", "x" * 100_000))
        refused(SandboxException, lambda: sandbox.files.write("m", "x", metadata={"a": "b"}))
        sandbox.files.write("m", "x")


def repositories(sandbox):
    git = sandbox.git
    git.init("repo", initial_branch="main")
    git.configure_user("A Name", "name@example.org")
    sandbox.files.write("repo/a.txt", "1")
    git.add("repo")
    git.commit("repo", "first")
    assert git.status("repo").is_clean
    assert "first" in sandbox.commands.run("git -C repo log --oneline").stdout


def terminals(sandbox):
    pty = sandbox.pty.create(PtySize(rows=24, cols=80), envs={"PS1": "$ "}, timeout=60)
    sandbox.pty.resize(pty.pid, PtySize(rows=50, cols=132))
    sandbox.pty.send_stdin(pty.pid, b"stty size; exit 4\n")
    shown = []
    ended = refused(CommandExitException, lambda: pty.wait(on_pty=shown.append))
    assert ended.exit_code == 4 and b"50 132" in b"".join(shown), shown
    other = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0)
    assert sandbox.pty.kill(other.pid) is True


def unsupported(sandbox):
    refused(SandboxException, lambda: sandbox.pause(), "not supported here")
    refused(SandboxException, lambda: sandbox.create_snapshot(), "not supported here")
    refused(SandboxException, lambda: Sandbox.create("code-interpreter-v1"), "no template")


def ends(sandbox):
    short = Sandbox.create(timeout=1)
    wait_for("the end of its time", lambda: not short.is_running())
    refused(SandboxNotFoundException, lambda: short.set_timeout(10))
    assert sandbox.kill() is True


def main():
    began = time.monotonic()
    sandbox = sandboxes()
    for part in [commands, files, connections, repositories, terminals, unsupported, ends]:
        print(f"{part.__name__} ({time.monotonic() - began:.1f}s)", flush=True)
        part(sandbox)
    print("all of it works")


main()
