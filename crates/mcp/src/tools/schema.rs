//! What clients are told about the tools.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a tool does to the world, for clients that ask people by it.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    /// Only adds, or changes what can be brought back.
    Adds,
    Destroys,
}

struct Row {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    is_idempotent: bool,
    reaches_network: bool,
    input: Value,
    output: Value,
}

/// All tools, in the order in which clients show them.
pub(crate) fn tools() -> Vec<Tool> {
    rows().into_iter().map(Row::into_tool).collect()
}

impl Row {
    fn into_tool(self) -> Tool {
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(matches!(self.effect, Effect::Reads))
            .destructive(matches!(self.effect, Effect::Destroys))
            .idempotent(self.is_idempotent)
            .open_world(self.reaches_network);
        Tool::new(self.name, self.description, Arc::new(object(self.input)))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(object(self.output)))
            .with_annotations(annotations)
    }
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// An object with these properties, of which these are required.
#[expect(clippy::needless_pass_by_value, reason = "written where it is used")]
fn of(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The same for what comes back: more may be added later.
#[expect(clippy::needless_pass_by_value, reason = "written where it is used")]
fn returned(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn path() -> Value {
    text("From the project, or an absolute path")
}

fn command_report() -> Value {
    returned(
        json!({
            "commandId": number("The command's number, for bash_output and bash_kill"),
            "running": flag("Whether it still runs"),
            "exitCode": { "type": "integer", "description": "What it ended with" },
            "signal": { "type": "integer", "description": "The signal that ended it" },
            "timedOut": flag("Whether it was ended because timeoutSeconds were over"),
            "output": text("What it wrote, both streams together; if it is too long, the beginning and the end"),
            "cursor": number("The number of the first byte of output"),
            "nextCursor": number("What to give bash_output as cursor to read on"),
            "truncated": flag("Whether bytes are missing in output, or more is there already"),
        }),
        &["commandId", "running", "timedOut", "output", "cursor", "nextCursor", "truncated"],
    )
}

fn written_report(more: &[(&str, Value)]) -> Value {
    let mut properties = json!({
        "path": text("The file"),
        "size": number("Its size in bytes"),
        "mode": text("Its permissions in octal"),
        "etag": text("This version of it"),
    });
    for (name, schema) in more {
        properties[*name] = schema.clone();
    }
    returned(properties, &["path", "size", "mode", "etag"])
}

fn rows() -> Vec<Row> {
    let mut rows = commands();
    rows.extend(files());
    rows.extend(sandbox());
    rows
}

fn commands() -> Vec<Row> {
    let max_output =
        || number("How much output to return; the rest is read with bash_output. Default 30000");
    vec![
        Row {
            name: "bash",
            title: "Run a command",
            description: "Run a shell command in the sandbox, in the project's directory. Each call is a new shell: directory and variables do not carry over. \
                          Returns when the command has ended, or after waitSeconds with a commandId to read on with. What the sandbox does not allow fails; \
                          the answer then says what was denied and how a person allows it.",
            effect: Effect::Destroys,
            is_idempotent: false,
            reaches_network: true,
            input: of(
                json!({
                    "command": text("For bash, or sh where there is no bash"),
                    "cwd": path(),
                    "environment": { "type": "object", "additionalProperties": { "type": "string" }, "description": "Variables on top of those of the sandbox" },
                    "stdin": text("What the command reads"),
                    "background": flag("Return at once; the command runs on"),
                    "waitSeconds": number("How long to wait for its end; it runs on after that. Default 120, at most 3600"),
                    "timeoutSeconds": number("End the command after this time. Default: never"),
                    "maxOutputBytes": max_output(),
                }),
                &["command"],
            ),
            output: command_report(),
        },
        Row {
            name: "bash_output",
            title: "Read a command's output",
            description: "Read what a command of bash wrote, from the byte `cursor` on, and whether it still runs. The session keeps the last 4 MiB of each command.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "commandId": number("From bash"),
                    "cursor": number("nextCursor of the answer before. Default 0"),
                    "waitSeconds": number("Wait this long for its end first. Default 0"),
                    "maxOutputBytes": max_output(),
                }),
                &["commandId"],
            ),
            output: command_report(),
        },
        Row {
            name: "bash_kill",
            title: "End a command",
            description: "End a command of bash with all its processes: SIGTERM, and SIGKILL after two seconds.",
            effect: Effect::Destroys,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({ "commandId": number("From bash"), "force": flag("SIGKILL at once") }),
                &["commandId"],
            ),
            output: command_report(),
        },
        Row {
            name: "web_fetch",
            title: "Fetch a page",
            description: "Fetch a URL with curl in the sandbox, under its network policy. Follows redirects. Returns the text as it is.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: true,
            input: of(
                json!({ "url": text("http or https"), "maxBytes": number("How much to return. Default 65536") }),
                &["url"],
            ),
            output: returned(
                json!({
                    "status": number("Of HTTP"),
                    "contentType": text("As the server says it"),
                    "url": text("Where redirects led"),
                    "content": text("The body"),
                    "truncated": flag("Whether some of it was left out"),
                }),
                &["status", "contentType", "url", "content", "truncated"],
            ),
        },
    ]
}

fn files() -> Vec<Row> {
    vec![
        Row {
            name: "read",
            title: "Read a file",
            description: "Read a text file as commands of the sandbox see it, up to 2000 lines at a time.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "path": path(),
                    "offset": number("The first line, counted from 1"),
                    "limit": number("How many lines. Default 2000"),
                }),
                &["path"],
            ),
            output: returned(
                json!({
                    "content": text("The lines"),
                    "size": number("Of the whole file, in bytes"),
                    "firstLine": number("The number of the first line"),
                    "lines": number("How many lines these are"),
                    "truncated": flag("Whether there is more"),
                    "nextLine": number("What to give as offset to read on"),
                    "etag": text("This version of the file, for write"),
                }),
                &["content", "size", "firstLine", "lines", "truncated", "etag"],
            ),
        },
        Row {
            name: "write",
            title: "Write a file",
            description: "Write a whole file, or append to it. Missing directories are made. A file that is there keeps its permissions. Until everything is written the file stays as it was.",
            effect: Effect::Destroys,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "path": path(),
                    "content": text("Everything that is to be in the file, or to be appended"),
                    "append": flag("Append instead of replacing"),
                    "etag": text("Replace only this version, from read"),
                }),
                &["path", "content"],
            ),
            output: written_report(&[]),
        },
        Row {
            name: "edit",
            title: "Edit a file",
            description: "Replace text in a file. oldText has to occur exactly once, unless replaceAll is set. A change by somebody else in between is not overwritten: the call fails.",
            effect: Effect::Destroys,
            is_idempotent: false,
            reaches_network: false,
            input: of(
                json!({
                    "path": path(),
                    "oldText": text("The exact text, with all spaces and line ends"),
                    "newText": text("What stands there instead"),
                    "replaceAll": flag("Replace every occurrence"),
                }),
                &["path", "oldText", "newText"],
            ),
            output: written_report(&[("replacements", number("How many places were changed"))]),
        },
        Row {
            name: "list",
            title: "List a directory",
            description: "List the entries of a directory as commands of the sandbox see it, up to 1000. Links are not followed.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({ "path": path(), "depth": number("Levels of directories. Default 1") }),
                &[],
            ),
            output: returned(
                json!({
                    "entries": { "type": "array", "items": returned(json!({
                        "path": text("From the directory"),
                        "type": { "type": "string", "enum": ["file", "directory", "link", "other"] },
                        "size": number("In bytes"),
                    }), &["path", "type", "size"]) },
                    "total": number("How many there are"),
                    "truncated": flag("Whether some were left out"),
                }),
                &["entries", "total", "truncated"],
            ),
        },
        Row {
            name: "grep",
            title: "Search in files",
            description: "Search files below a directory for a regular expression (POSIX extended), with grep in the sandbox. Binary files and .git are left out.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "pattern": text("What to look for"),
                    "path": path(),
                    "glob": text("Only files with such names, such as *.rs"),
                    "ignoreCase": flag("Upper and lower case are the same"),
                    "literal": flag("The pattern is text, not a regular expression"),
                    "maxMatches": number("Default 200, at most 2000"),
                }),
                &["pattern"],
            ),
            output: returned(
                json!({
                    "matches": { "type": "array", "items": returned(json!({
                        "path": text("The file"), "line": number("Its line"), "text": text("The line"),
                    }), &["path", "line", "text"]) },
                    "truncated": flag("Whether there are more"),
                }),
                &["matches", "truncated"],
            ),
        },
    ]
}

fn sandbox() -> Vec<Row> {
    let details =
        || json!({ "type": "object", "description": "As `sandbox` prints it with --json" });
    vec![
        Row {
            name: "sandbox_diff",
            title: "Show changes",
            description: "Show what the sandbox changed in the project, as a patch. Only if the project is kept as it is (--transaction).",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "path": text("Only what is below this path of the project"),
                    "from": number("From this checkpoint on; 0 is the project without changes"),
                    "to": number("Up to this checkpoint"),
                }),
                &[],
            ),
            output: returned(
                json!({ "diff": text("The patch"), "truncated": flag("Whether some was left out") }),
                &["diff", "truncated"],
            ),
        },
        Row {
            name: "sandbox_apply",
            title: "Apply changes",
            description: "Apply what the sandbox changed to the project outside. A person is asked first.",
            effect: Effect::Destroys,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "paths": { "type": "array", "items": { "type": "string" }, "description": "Only these paths of the project, and what is below them" },
                    "onConflict": { "type": "string", "enum": ["refuse", "force", "ours", "merge"], "description": "For files that changed outside, too. Default refuse: nothing is applied" },
                    "dryRun": flag("Apply nothing; say what stands in the way"),
                }),
                &[],
            ),
            output: returned(
                json!({ "applied": flag("Whether the project was changed"), "details": details() }),
                &["applied", "details"],
            ),
        },
        Row {
            name: "sandbox_checkpoint",
            title: "Keep a state",
            description: "Keep the present state of the project's changes, to come back to with sandbox_rollback. Only with --transaction.",
            effect: Effect::Adds,
            is_idempotent: false,
            reaches_network: false,
            input: of(json!({ "message": text("What it is, for people") }), &[]),
            output: returned(json!({ "checkpoint": details() }), &["checkpoint"]),
        },
        Row {
            name: "sandbox_rollback",
            title: "Bring a state back",
            description: "Bring a kept state of the project's changes back. The present state is kept first. The project outside does not change.",
            effect: Effect::Destroys,
            is_idempotent: true,
            reaches_network: false,
            input: of(
                json!({
                    "checkpoint": number("Its number; 0 is the project without changes"),
                    "dryRun": flag("Change nothing; show what would change"),
                    "killCommands": flag("Kill commands that run; otherwise nothing is done while there are any"),
                }),
                &["checkpoint"],
            ),
            output: returned(
                json!({ "rolledBack": flag("Whether something was changed"), "details": details() }),
                &["rolledBack", "details"],
            ),
        },
        Row {
            name: "sandbox_status",
            title: "Show the sandbox",
            description: "Show the sandbox: its id, project, commands that run, questions that wait for a person, checkpoints.",
            effect: Effect::Reads,
            is_idempotent: true,
            reaches_network: false,
            input: of(json!({}), &[]),
            output: returned(
                json!({
                    "id": text("The session's id"),
                    "project": text("The project's directory"),
                    "isRunning": flag("Whether it runs"),
                    "hasTransaction": flag("Whether changes wait to be applied"),
                    "status": details(),
                }),
                &["id", "project", "isRunning", "hasTransaction"],
            ),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::tools;
    use crate::tools::{BadCall, ToolCall};
    use serde_json::{Map, Value, json};

    /// Every property of a schema is an argument that is read, and every required one has to be there.
    #[test]
    fn schemas_say_what_is_read() {
        let tools = tools();
        assert_eq!(tools.len(), 14);
        for tool in &tools {
            let properties = tool.input_schema["properties"].as_object().unwrap();
            let example = |schema: &Value| match schema["type"].as_str().unwrap() {
                "string" if schema.get("enum").is_some() => schema["enum"][0].clone(),
                "string" => json!("x"),
                "integer" => json!(1),
                "boolean" => json!(true),
                "array" => json!(["x"]),
                _ => json!({}),
            };
            let all: Map<String, Value> =
                properties.iter().map(|(name, schema)| (name.clone(), example(schema))).collect();
            assert!(ToolCall::parse(&tool.name, Some(all.clone())).is_ok(), "{}", tool.name);
            for required in tool.input_schema["required"].as_array().unwrap() {
                let mut less = all.clone();
                less.remove(required.as_str().unwrap()).unwrap();
                let parsed = ToolCall::parse(&tool.name, Some(less));
                assert!(matches!(parsed, Err(BadCall::Arguments(_))), "{}: {required}", tool.name);
            }
            let mut more = all;
            more.insert("unheardOf".to_owned(), json!(1));
            assert!(matches!(ToolCall::parse(&tool.name, Some(more)), Err(BadCall::Arguments(_))));
            assert!(tool.output_schema.is_some() && tool.annotations.is_some());
        }
        assert!(matches!(ToolCall::parse("nothing", None), Err(BadCall::UnknownTool)));
    }
}
