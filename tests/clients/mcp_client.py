"""Drives `sandbox mcp` with the package `mcp`: TRANSPORT MODE HIDDEN-FILE SANDBOX. Prints a line for each thing that worked."""

import asyncio
import json
import os
import subprocess
import sys

import httpx2
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

transport, mode, hidden, sandbox = sys.argv[1:]
asked = []


async def answer(context, parameters):
    asked.append(parameters.message)
    said = "session" if "wants to" in parameters.message else "yes"
    return mcp_types.ElicitResult(action="accept", content={"answer": said})


async def drive(server):
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        print("revision", client.protocol_version)
        print("tools", len((await client.list_tools()).tools))
        result = await client.call_tool("bash", {"command": "echo out; exit 3"})
        print("exit", result.structured_content["exitCode"], result.structured_content["output"].strip())
        result = await client.call_tool("bash", {"command": f"cat {hidden}"})
        print("asked", len(asked))
        print(result.structured_content["output"].strip())
        progress = []

        async def tell(done, total, message):
            progress.append(message)

        await client.call_tool("bash", {"command": "sleep 4"}, progress_callback=tell)
        print("progress", len(progress) > 0)
        await client.call_tool("write", {"path": "made", "content": "x"})
        result = await client.call_tool("sandbox_apply", {})
        print("applied", result.structured_content["applied"])
        result = await client.call_tool("read", {"path": "nothing"})
        print("error", result.is_error)


async def over_http(address, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        await drive(streamable_http_client(address, http_client=http))


if transport == "stdio":
    parameters = StdioServerParameters(command=sandbox, args=["mcp", "--transaction"], env=dict(os.environ))
    asyncio.run(drive(stdio_client(parameters)))
else:
    words = [sandbox, "mcp", "--transaction", "--listen", "tcp:127.0.0.1:0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        text = ""
        while not text.endswith("}\n"):
            text += server.stdout.readline()
        told = json.loads(text)
        token = open(told["tokenFile"]).read().strip()
        try:
            asyncio.run(over_http(told["url"], token))
        finally:
            server.terminate()
            server.wait()
