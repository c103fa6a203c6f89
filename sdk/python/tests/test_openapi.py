"""The clients follow the document: every operation has a method, and every schema a model with these fields and no others."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import typing
import unittest
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Literal, Union

import palisade
from palisade import _models as models
from palisade._models import spelling

DOCUMENT: Dict[str, Any] = json.loads(Path(os.environ["PALISADE_OPENAPI"]).read_text())
SCHEMAS: Dict[str, Any] = DOCUMENT["components"]["schemas"]

#: The method for each operation.
METHODS = {
    "healthz": "Palisade.healthz",
    "readyz": "Palisade.readyz",
    "read_metrics": "Palisade.metrics",
    "read_document": "Palisade.document",
    "read_audit": "Palisade.audit",
    "follow_audit": "Palisade.follow_audit",
    "read_usage": "Palisade.usage",
    "start_run": "Palisade.run",
    "list_recordings": "Recordings.list",
    "read_recording": "Recordings.read",
    "list_tools": "Tools.list",
    "declare_tool": "Tools.declare",
    "get_tool": "Tools.get",
    "remove_tool": "Tools.remove",
    "run_tool": "Tools.run",
    "list_approvals": "Approvals.list",
    "follow_approvals": "Approvals.stream",
    "decide_approval": "Approvals.decide",
    "list_sandboxes": "Sandbox.list",
    "create_sandbox": "Sandbox.create",
    "get_sandbox": "Sandbox.get_info",
    "end_sandbox": "Sandbox.kill",
    "extend_sandbox": "Sandbox.set_timeout",
    "fork_sandbox": "Sandbox.fork",
    "show_diff": "Sandbox.diff",
    "apply_changes": "Sandbox.apply",
    "discard_changes": "Sandbox.discard",
    "list_checkpoints": "Sandbox.checkpoints",
    "make_checkpoint": "Sandbox.checkpoint",
    "roll_back": "Sandbox.rollback",
    "list_commands": "Commands.list",
    "start_command": "Commands.run",
    "get_command": "CommandHandle.info",
    "cancel_command": "CommandHandle.kill",
    "read_output": "CommandHandle.output",
    "write_stdin": "CommandHandle.send_stdin",
    "signal_command": "CommandHandle.send_signal",
    "resize_terminal": "CommandHandle.resize",
    "stat_file": "Files.stat",
    "remove_file": "Files.remove",
    "read_file": "Files.read",
    "write_file": "Files.write",
    "list_directory": "Files.list",
    "make_directory": "Files.make_dir",
    "rename_file": "Files.rename",
    "watch_directory": "Files.watch",
}

#: Operations without a method, and why.
NO_METHOD = {
    "log_in": "for browsers with the web page: a program has the socket or the token",
    "log_out": "for browsers with the web page: a program has no cookie",
}

#: What a field of a request or a parameter is called in the methods, where it is not the same word.
ARGUMENTS = {
    ("create_sandbox", "timeToLiveSeconds"): "timeout",
    ("create_sandbox", "idleTimeToLiveSeconds"): "idle_timeout",
    ("end_sandbox", "kill"): "at_once",
    ("cancel_command", "kill"): "at_once",
    ("show_diff", "from"): "from_",
    ("start_command", "argv"): "cmd",
    ("start_command", "environment"): "envs",
    ("start_command", "timeoutSeconds"): "timeout",
    ("start_command", "wait"): "background",
    ("rename_file", "from"): "old",
    ("rename_file", "to"): "new",
    ("roll_back", "number"): "number",
    ("apply_changes", "onConflict"): "on_conflict",
}

#: What the clients do by themselves.
BY_ITSELF = {
    ("list_sandboxes", "limit"),
    ("list_sandboxes", "after"),
    ("show_diff", "format"),  # Sandbox.patch
    ("apply_changes", "dryRun"),  # Sandbox.preview_apply
    ("start_command", "separateStderr"),
    ("write_stdin", "encoding"),
    ("write_stdin", "close"),  # CommandHandle.close_stdin
    ("declare_tool", "version"),
    ("follow_audit", "limit"),  # Not for the stream.
}

#: Models with another name than their schema.
NAMES = {"Sandbox": "SandboxInfo"}

#: Bodies of requests, which are checked with the arguments of methods; bytes of files; what only NO_METHOD sends.
NO_MODEL = {
    "ApplyRequest", "ApprovalAnswer", "FileContent", "Input", "LoggedIn", "LoginProof", "MoreTime", "NewCheckpoint",
    "NewCommand", "NewDirectory", "NewFork", "NewRun", "NewSandbox", "NewToolCall", "Renaming", "RollbackRequest", "SignalName", "ToolDeclaration",
}


def operations() -> Dict[str, Any]:
    found = {}
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            found[operation["operationId"]] = operation
    return found


def resolved(schema: Dict[str, Any]) -> Dict[str, Any]:
    while "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].split("/")[-1]]
    return schema


def same(python: Any, schema: Dict[str, Any]) -> bool:
    """Whether a type of Python is that of the document."""
    origin, arguments = typing.get_origin(python), typing.get_args(python)
    if origin is Union and type(None) in arguments:
        rest: Any = Union[tuple(part for part in arguments if part is not type(None))]
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return "null" in kinds and same(rest, {**schema, "type": [kind for kind in kinds if kind != "null"][0]})
        choices = schema.get("oneOf")
        if choices is not None:
            others = [choice for choice in choices if choice.get("type") != "null"]
            return same(rest, others[0] if len(others) == 1 else {"oneOf": others})
        # Left out where there is none.
        return same(rest, schema)
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        if dataclasses.is_dataclass(python):
            return bool(getattr(python, "__name__", "") == NAMES.get(name, name))
        return same(python, resolved(schema))
    if "oneOf" in schema:
        words = {word for choice in schema["oneOf"] for word in choice.get("enum", ())}
        objects = [choice for choice in schema["oneOf"] if "enum" not in choice]
        given = set()
        classes = 0
        for argument in arguments:
            if typing.get_origin(argument) is Literal:
                given |= set(typing.get_args(argument))
            else:
                classes += 1
        return given == words and classes == len(objects)
    if "enum" in schema:
        return origin is Literal and set(arguments) == set(schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return origin is list and same(arguments[0], schema["items"])
    if kind == "string":
        return python is (datetime if schema.get("format") == "date-time" else str)
    if kind == "object":
        return origin is dict
    return {"integer": int, "boolean": bool, "number": float}.get(str(kind)) is python


class Document(unittest.TestCase):
    def test_every_operation_has_a_method_in_both_clients(self) -> None:
        self.assertEqual({*METHODS, *NO_METHOD}, set(operations()))
        self.assertFalse(set(METHODS) & set(NO_METHOD))
        for method in METHODS.values():
            owner, name = method.split(".")
            for prefix in ("", "Async"):
                self.assertTrue(callable(getattr(getattr(palisade, prefix + owner), name)), prefix + method)

    def test_every_parameter_and_every_field_of_a_request_is_an_argument(self) -> None:
        for operation_id, operation in operations().items():
            if operation_id in NO_METHOD:
                continue
            owner, name = METHODS[operation_id].split(".")
            arguments = set(inspect.signature(getattr(getattr(palisade, owner), name)).parameters)
            wanted = {item["name"] for item in operation.get("parameters", []) if item["in"] == "query"}
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                schema = body["schema"]
                schema = next((part for part in schema.get("oneOf", [schema]) if "$ref" in part), schema)
                wanted |= set(resolved(schema)["properties"])
            for field in wanted:
                if (operation_id, field) in BY_ITSELF:
                    continue
                import re

                spelled = re.sub("([A-Z])", lambda found: "_" + found.group(1).lower(), field)
                argument = ARGUMENTS.get((operation_id, field), spelled)
                self.assertIn(argument, arguments, f"{METHODS[operation_id]}: {field}")

    def test_every_schema_has_a_model_with_the_same_fields_and_types(self) -> None:
        for name, schema in SCHEMAS.items():
            if name in NO_MODEL:
                continue
            model = getattr(models, NAMES.get(name, name), None)
            self.assertIsNotNone(model, f"no model for {name}")
            if not dataclasses.is_dataclass(model):
                self.assertTrue(same(model, schema), f"{name}: {model} is not {schema}")
                continue
            parts = [resolved(part) for part in schema.get("allOf", [schema])]
            properties = {key: value for part in parts for key, value in part["properties"].items()}
            required = {key for part in parts for key in part.get("required", ())}
            hints = typing.get_type_hints(model)
            fields = {spelling(item.name): item for item in dataclasses.fields(model)}
            self.assertEqual(set(fields), set(properties), name)
            for key, item in fields.items():
                has_default = (
                    item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
                )
                self.assertEqual(has_default, key not in required, f"{name}.{key}")
                self.assertTrue(same(hints[item.name], properties[key]), f"{name}.{key}: {hints[item.name]}")


if __name__ == "__main__":
    unittest.main()
