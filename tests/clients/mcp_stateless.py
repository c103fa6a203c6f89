"""A client of revision 2026-07-28 in the standard library only: FILE-A FILE-B SANDBOX, both files hidden. Prints a line for each thing."""

import json
import subprocess
import sys
import time

first, second, sandbox = sys.argv[1:]
META = "io.modelcontextprotocol/"
EXTENSIONS = {META + "tasks": {}}
YES = {"action": "accept", "content": {"answer": "once"}}
server = subprocess.Popen([sandbox, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
count = 0


def ask(method, **parameters):
    global count
    count += 1
    parameters["_meta"] = {
        META + "protocolVersion": "2026-07-28",
        META + "clientInfo": {"name": "test", "version": "1"},
        META + "clientCapabilities": {"elicitation": {"form": {}}, "extensions": EXTENSIONS},
    }
    request = {"jsonrpc": "2.0", "id": count, "method": method, "params": parameters}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == count:
            return message.get("result") or message["error"]["message"]


def bash(command, **more):
    return ask("tools/call", name="bash", arguments={"command": command}, **more)


print("discovered", "2026-07-28" in ask("server/discover")["supportedVersions"])
asked = bash(f"cat {first}")
state = {"inputResponses": {"approval": YES}, "requestState": asked["requestState"]}
print(asked["resultType"], list(asked["inputRequests"]))
print("other arguments:", bash(f"cat {second}", **state))
forged = dict(state, requestState=state["requestState"][:-4] + "AAAA")
print("forged:", bash(f"cat {first}", **forged))
print(bash(f"cat {first}", **state)["structuredContent"]["output"].strip())
print("again:", bash(f"cat {first}", **state))

task = bash(f"sleep 11; cat {second}")
print(task["resultType"], task["status"])
while True:
    seen = ask("tasks/get", taskId=task["taskId"])
    if seen["status"] == "input_required":
        ask("tasks/update", taskId=task["taskId"], inputResponses={key: YES for key in seen["inputRequests"]})
    if seen["status"] == "completed":
        break
    time.sleep(0.2)
print(seen["result"]["structuredContent"]["output"].strip())

task = bash("sleep 1000")
ask("tasks/cancel", taskId=task["taskId"])
print(ask("tasks/get", taskId=task["taskId"])["status"])
while ask("tools/call", name="sandbox_status", arguments={})["structuredContent"]["status"]["runningCommands"] > 0:
    time.sleep(0.1)
print("its command has ended")
server.stdin.close()
print("end", server.wait())
