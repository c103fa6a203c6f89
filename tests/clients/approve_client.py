#!/usr/bin/env python3
"""A client of the approval protocol (docs/protocol.md), with nothing but Python's standard library.

    approve_client.py DIRECTORY list
    approve_client.py DIRECTORY approve PATH [--directory] [--lifetime once|session|always]
    approve_client.py DIRECTORY deny PATH [--lifetime once|session|always]

DIRECTORY holds the sockets. `approve` and `deny` wait until somebody asks for PATH, answer that
question and end with 0 once the session has taken the answer. For a host, PATH is HOST:PORT.
"""

import argparse
import fcntl
import json
import os
import pathlib
import selectors
import socket
import sys
import time

PROTOCOL = 1
QUESTIONS = {"event.fs_request", "event.host_request"}


class Session:
    """One connection. `lines` are whole messages that have come in and were not yet looked at."""

    def __init__(self, path):
        self.name = path.stem
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            # An address has room for 107 bytes only.
            self.socket.connect(f"/proc/self/fd/{directory}/{path.name}")
        finally:
            os.close(directory)
        self.received = b""
        self.send({"type": "cmd.hello", "protocol": PROTOCOL, "name": "approve_client.py"})

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self):
        """The messages that one read completes, or None at the end of the session."""
        chunk = self.socket.recv(65536)
        if not chunk:
            return None
        *lines, self.received = (self.received + chunk).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]


class Watch:
    """All sessions of a directory, also those that appear later."""

    def __init__(self, directory, deadline):
        self.directory = pathlib.Path(directory)
        self.deadline = deadline
        self.selector = selectors.DefaultSelector()
        self.known = set()

    def attend(self):
        """Says that somebody is here; without it a session that has nobody to ask denies."""
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self.lock = open(self.directory / "approver.lock", "a+")
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def look(self):
        for path in sorted(self.directory.glob("*.sock")):
            if path in self.known:
                continue
            try:
                session = Session(path)
            except (ConnectionRefusedError, FileNotFoundError):
                continue
            self.known.add(path)
            self.selector.register(session.socket, selectors.EVENT_READ, session)

    def events(self):
        """Every message with its session, until the deadline."""
        while time.monotonic() < self.deadline:
            self.look()
            for key, _ in self.selector.select(timeout=0.1):
                messages = key.data.read()
                if messages is None:
                    self.selector.unregister(key.fileobj)
                    continue
                for message in messages:
                    check(message)
                    yield key.data, message


def check(message):
    if message["type"] == "event.hello" and message["protocol"] != PROTOCOL:
        sys.exit(f"the session speaks protocol {message['protocol']}")


def path_of(question):
    """The exact bytes: `path` is only their text, if they are none."""
    if "host" in question:
        return f"{question['host']}:{question['port']}".encode()
    if "pathBytes" in question:
        return bytes.fromhex(question["pathBytes"])
    return os.fsencode(question["path"])


def list_questions(watch):
    """Prints what is open in the sessions that are there now."""
    expected = {}
    seen = {}
    watch.look()
    if not watch.known:
        return
    for session, message in watch.events():
        if message["type"] == "event.hello":
            expected[session.name] = message["open"]
        elif message["type"] in QUESTIONS:
            seen[(session.name, message["id"])] = message
        counts = {name: sum(key[0] == name for key in seen) for name in expected}
        if len(expected) == len(watch.known) and counts == expected:
            break
    for (name, number), question in sorted(seen.items()):
        about = {key: question[key] for key in ("path", "access", "host", "port") if key in question}
        print(json.dumps({"session": name, "id": number, **about,
                          "requests": question["requests"]}))


def answer(watch, arguments):
    """Answers the question about one path; the session's word on it is the result."""
    wanted = os.fsencode(arguments.path)
    asked = None
    awaited = {"event.audit", "event.reply"}
    for session, message in watch.events():
        if message["type"] in QUESTIONS and asked is None and path_of(message) == wanted:
            asked = (session, message["id"])
            command = {"type": "cmd." + arguments.what, "id": message["id"], "request": 1}
            if arguments.directory:
                command["scope"] = "dir"
            if arguments.lifetime:
                command["lifetime"] = arguments.lifetime
            session.send(command)
        elif message["type"] == "event.audit" and asked == (session, message["id"]):
            print(json.dumps(message))
            awaited.discard("event.audit")
        elif asked and session is asked[0] and message.get("request") == 1:
            if message["type"] == "event.error":
                sys.exit(f"{message['code']}: {message['message']}")
            awaited.discard("event.reply")
        if not awaited:
            return
    sys.exit("nobody asked for it" if asked is None else "the session did not answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory_of_sockets")
    parser.add_argument("what", choices=["list", "approve", "deny"])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--directory", action="store_true")
    parser.add_argument("--lifetime", choices=["once", "session", "always"])
    parser.add_argument("--wait", type=float, default=20, metavar="SECONDS")
    arguments = parser.parse_args()
    watch = Watch(arguments.directory_of_sockets, time.monotonic() + arguments.wait)
    if arguments.what == "list":
        list_questions(watch)
    elif arguments.path is None:
        parser.error("which path?")
    else:
        watch.attend()
        answer(watch, arguments)


if __name__ == "__main__":
    main()
