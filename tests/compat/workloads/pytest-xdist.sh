# Tests on two workers, with temporary directories and a cache.
mkdir tests
cat > tests/test_sample.py <<'EOF'
import os
import socket
import subprocess

import pytest


@pytest.mark.parametrize("number", range(40))
def test_file(tmp_path, number):
    path = tmp_path / "deep" / str(number)
    path.mkdir(parents=True)
    (path / "file").write_text("x" * number)
    (path / "file").rename(path / "renamed")
    assert len((path / "renamed").read_text()) == number


def test_socket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = socket.socket(socket.AF_UNIX)
    server.bind("name")
    assert server.getsockname() == "name"
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect("name")


def test_process():
    assert subprocess.check_output(["echo", "x"]) == b"x\n"
EOF
/usr/bin/python3 -m pytest -q -n 2 tests
/usr/bin/python3 -m pytest -q --last-failed tests
