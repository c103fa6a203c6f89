//! The JSON Schema of a policy document, generated from the key table that the parser uses.

use crate::decode::document::DOCUMENT_KEYS;
use crate::keys::{self, Key, Order, TOOL_NAMES, ValueKind};
use crate::limit::LimitKind;
use crate::presets::presets;
use serde_json::{Map, Value as Json, json};

/// JSON Schema, draft 2020-12.
pub fn schema() -> Json {
    let mut properties = section("", &|_| true);
    for name in DOCUMENT_KEYS {
        properties.insert(name.to_owned(), document_key(name));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Palisade policy",
        "description": "What a sandboxed command may do. Every key is optional.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "$defs": {
            "size": unit("Bytes, or text such as 512m or 1g.", "^[0-9.]+ *([kmgtKMGT]([iI]?[bB])?|[bB])?$"),
            "time": unit("Milliseconds, or text such as 1500ms, 300s, 2m or 1h.", "^[0-9.]+ *(ms|s|m|h)?$"),
            "tool": object(&section("", &|_| true), "Values for one tool, over those for all."),
        },
    })
}

fn unit(description: &str, pattern: &str) -> Json {
    json!({
        "description": description,
        "oneOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": pattern }],
    })
}

fn object(properties: &Map<String, Json>, description: &str) -> Json {
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": description,
        "properties": properties,
    })
}

fn document_key(name: &str) -> Json {
    let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let preset = json!({ "type": "string", "enum": names });
    match name {
        "version" => json!({ "const": 1, "description": "Version of this format." }),
        "description" => json!({ "type": "string", "description": "One line for people." }),
        "preset" => json!({
            "description": "Built-in policies to start from, in order.",
            "oneOf": [preset, { "type": "array", "items": preset }],
        }),
        "locks" => {
            let paths = keys::KEYS.iter().map(|key| key.path);
            let sections = keys::children("").into_iter().filter(|name| keys::is_section(name));
            let lockable: Vec<&str> = paths.chain(sections).collect();
            json!({
                "description": "Keys and sections that other layers can only tighten. Organisation layer only.",
                "type": "array",
                "items": { "type": "string", "enum": lockable },
            })
        }
        "tools" => json!({
            "description": "Partial policies by tool name.",
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/tool" },
        }),
        _ => object(
            &section("", &|key| key.order.has_maximum()),
            "Maximum values. Organisation layer and presets only.",
        ),
    }
}

fn section(prefix: &str, admits: &dyn Fn(&Key) -> bool) -> Map<String, Json> {
    let mut properties = Map::new();
    for name in keys::children(prefix) {
        let path = crate::decode::join(prefix, name);
        match keys::find(&path) {
            Some(key) if admits(key) => {
                properties.insert(name.to_owned(), leaf(key));
            }
            Some(_) => {}
            None => {
                let inner = section(&path, admits);
                if !inner.is_empty() {
                    properties.insert(name.to_owned(), object(&inner, section_about(name)));
                }
            }
        }
    }
    if prefix == "network" && admits(&ALLOW_NETWORK) {
        properties.insert(ALLOW_NETWORK.path.to_owned(), leaf(&ALLOW_NETWORK));
    }
    properties
}

/// Not in the key table: an older spelling of `network.mode`.
const ALLOW_NETWORK: Key = Key {
    path: "allowNetwork",
    kind: ValueKind::Bool,
    order: Order::FalseIsTighter,
    about: "False is `mode: none`, true is `mode: proxy`.",
};

fn section_about(name: &str) -> &'static str {
    match name {
        "filesystem" => "Which paths are visible, and how much may be written.",
        "process" => "Processes, executables, environment, identity.",
        "network" => "What may be reached.",
        "resources" => {
            "Limits on time, memory, CPU, I/O and output, and how strictly they are enforced."
        }
        _ => "Which system calls pass the filter.",
    }
}

fn leaf(key: &Key) -> Json {
    let strings = || json!({ "type": "array", "items": { "type": "string", "minLength": 1 } });
    let mut schema = match key.kind {
        ValueKind::Word(words) => {
            let mut accepted: Vec<Json> = words.iter().map(|(word, _)| json!(word)).collect();
            accepted.extend(
                words.iter().filter_map(|(word, _)| word.parse::<u8>().ok()).map(|n| json!(n)),
            );
            accepted.extend(
                words.iter().filter_map(|(word, _)| word.parse::<bool>().ok()).map(|b| json!(b)),
            );
            json!({ "enum": accepted })
        }
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Size => json!({ "$ref": "#/$defs/size" }),
        ValueKind::SizeOrZero => json!({ "oneOf": [{ "const": 0 }, { "$ref": "#/$defs/size" }] }),
        ValueKind::Millis => json!({ "$ref": "#/$defs/time" }),
        ValueKind::Count => json!({ "type": "integer", "minimum": 1 }),
        ValueKind::CountOrZero => json!({ "type": "integer", "minimum": 0 }),
        ValueKind::Cpus => json!({
            "oneOf": [
                { "type": "number", "exclusiveMinimum": 0 },
                { "type": "string", "pattern": "^[0-9.]+m?$" },
            ],
        }),
        ValueKind::CpuSet => json!({
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^ *[0-9]+(-[0-9]+)?( *, *[0-9]+(-[0-9]+)?)* *$" },
            ],
        }),
        ValueKind::LimitNames => {
            let names = LimitKind::ALL.map(LimitKind::name);
            json!({ "type": "array", "items": { "type": "string", "enum": names } })
        }
        ValueKind::Seconds => json!({ "type": "integer" }),
        ValueKind::Id => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        ValueKind::Path => json!({ "type": "string", "minLength": 1 }),
        ValueKind::Hostname => json!({ "type": "string", "pattern": "^[A-Za-z0-9.-]{1,64}$" }),
        ValueKind::Paths
        | ValueKind::Hosts
        | ValueKind::PrivateRanges
        | ValueKind::EnvNames
        | ValueKind::Executables => strings(),
        ValueKind::Tools => {
            json!({ "type": "array", "items": { "type": "string", "enum": TOOL_NAMES } })
        }
        ValueKind::Upstream => json!({ "type": "string", "pattern": "^http://[^/]+:[0-9]+/?$" }),
        ValueKind::Webhook => json!({ "type": "string", "pattern": "^https?://[^@\\s]+$" }),
        ValueKind::Published => json!({
            "type": "array",
            "items": { "type": "string", "pattern": "^((\\[[0-9a-fA-F:.]+\\]|[0-9.]+):)?[0-9]+:[0-9]+$" },
        }),
        ValueKind::Credentials => credentials(),
        ValueKind::SyscallNames => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "^[a-z0-9_]+$" } })
        }
        ValueKind::Ports => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": 1, "maximum": u16::MAX },
        }),
        ValueKind::EnvMap => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        ValueKind::Rules => rules(),
        ValueKind::Approvals => json!({
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["what", "reason"],
                "properties": {
                    "what": { "type": "string", "description": "no-isolation, network:host, network:nat, network:private, TOOL:no-sandbox or TOOL:network." },
                    "reason": { "type": "string", "minLength": 1, "description": "In the approver's own words." },
                },
            },
        }),
    };
    if let Json::Object(map) = &mut schema {
        map.insert("description".to_owned(), json!(key.about));
    }
    schema
}

fn credentials() -> Json {
    let text = |about: &str| json!({ "type": "string", "minLength": 1, "description": about });
    let host = text("A host such as api.example, or a glob such as *.api.example.");
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["name", "from"],
            "oneOf": [{ "required": ["host"] }, { "required": ["hosts"] }],
            "properties": {
                "name": text("The variable that holds a placeholder inside."),
                "from": {
                    "type": "string",
                    "pattern": "^(env|file):.+$",
                    "description": "Where the secret is outside: env:VARIABLE or file:PATH.",
                },
                "host": host,
                "hosts": { "type": "array", "minItems": 1, "items": host },
                "header": text("The header that gets it; authorization if left out."),
                "format": text("The header's value, {} for the secret; Bearer {} if left out."),
            },
        },
    })
}

fn rules() -> Json {
    let text = |about: &str| json!({ "type": "string", "minLength": 1, "description": about });
    let path = |about: &str| json!({ "type": "string", "pattern": "^~?/", "description": about });
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "oneOf": [{ "required": ["allow"] }, { "required": ["deny"] }],
            "properties": {
                "allow": path("A path, a directory with everything below (/x/**), or a glob (/x/*.h)."),
                "deny": path("The same, for what is never granted nor asked about."),
                "access": { "enum": ["read", "execute", "write"], "description": "Executing and writing include reading; read if left out." },
                "until": text("The last day, or the moment from which on the rule says nothing."),
                "by": text("Who made the rule."),
                "at": text("When it was made."),
                "note": text("Why, for people."),
            },
        },
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
