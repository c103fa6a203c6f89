//! The tools that a person trusts of another server: the hash of each, with its description and schemas. A server that says something
//! else later could tell a model to do something else.

use crate::error::McpError;
use crate::text::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Of one server, trusted or not. It chooses them, so it could fill the disk with them.
const MAX_NAMES: usize = 1024;
/// Of one tool with its description and schemas, in bytes.
const MAX_TOOL: usize = 128 << 10;
/// Of the file.
const MAX_FILE: usize = 4 << 20;

/// What is known of the tools of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// The hash of each tool.
    pub tools: BTreeMap<String, String>,
    /// What differed the last time, and waits to be trusted: the tools as the server describes them.
    #[serde(default)]
    pub waiting: BTreeMap<String, Value>,
}

/// Where the pins of a server are.
#[derive(Clone, Debug)]
pub struct PinFile(PathBuf);

impl PinFile {
    /// `name` has letters, digits and `-_.` only.
    pub fn of(state: &Path, name: &str) -> Result<Self, McpError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty()
            || name.len() > 100
            || name.starts_with('.')
            || !name.chars().all(is_name)
        {
            return Err(McpError::Wrapped(format!(
                "`{name}` is no name for a server: use letters, digits, `-`, `_` and `.`"
            )));
        }
        Ok(Self(state.join("mcp").join("pins").join(format!("{name}.json"))))
    }

    /// None: this server was never used.
    pub fn read(&self) -> Result<Option<Pins>, McpError> {
        match fs::read(&self.0) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| McpError::Config { file: self.0.clone(), why: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(McpError::io("read", &self.0, error)),
        }
    }

    pub fn write(&self, pins: &Pins) -> Result<(), McpError> {
        let failed = |error: io::Error| McpError::io("write", &self.0, error);
        if let Some(directory) = self.0.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        let new = self.0.with_extension(format!("new-{}", std::process::id()));
        let text = serde_json::to_vec_pretty(pins).map_err(|error| failed(error.into()))?;
        if text.len() > MAX_FILE {
            return Err(McpError::Wrapped(format!(
                "the tools of the server need more than {} MiB in {}",
                MAX_FILE >> 20,
                self.0.display()
            )));
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(failed)?;
        io::Write::write_all(&mut file, &text).map_err(failed)?;
        fs::rename(&new, &self.0).map_err(failed)
    }
}

/// The same for the same tool, in whatever order its members are written: serde_json's objects are sorted.
pub fn hash(tool: &Value) -> String {
    let digest = Sha256::digest(tool.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a list of tools differs from what is trusted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) changed: Vec<String>,
    pub(crate) new: Vec<String>,
}

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        self.changed.is_empty() && self.new.is_empty()
    }
}

/// Why a list is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadList {
    Malformed(String),
    /// There is no end to it: the server is not run any longer.
    TooMuch(String),
}

impl Pins {
    /// Compares, and remembers what differs. A list with two tools of one name, or a tool without one, is no list.
    pub(crate) fn compare(&mut self, tools: &[Value]) -> Result<Difference, BadList> {
        let mut difference = Difference::default();
        let mut seen = BTreeSet::new();
        for tool in tools {
            let Some(name) = tool["name"].as_str() else {
                let text = "the server has a tool without a name".to_owned();
                return Err(BadList::Malformed(text));
            };
            if tool.to_string().len() > MAX_TOOL {
                return Err(BadList::TooMuch(format!(
                    "the tool {} of the server has a description of more than {} KiB",
                    named(name),
                    MAX_TOOL >> 10
                )));
            }
            if !seen.insert(name) {
                let text = format!("the server has two tools {}", named(name));
                return Err(BadList::Malformed(text));
            }
            match self.tools.get(name) {
                Some(pinned) if *pinned == hash(tool) => {
                    self.waiting.remove(name);
                    continue;
                }
                Some(_) => difference.changed.push(name.to_owned()),
                None => difference.new.push(name.to_owned()),
            }
            self.waiting.insert(name.to_owned(), tool.clone());
        }
        let new = self.waiting.keys().filter(|name| !self.tools.contains_key(*name)).count();
        if self.tools.len() + new > MAX_NAMES {
            let text = format!("the server has named more than {MAX_NAMES} tools");
            return Err(BadList::TooMuch(text));
        }
        Ok(difference)
    }

    /// Trusts what waits.
    pub fn trust(&mut self) {
        for (name, tool) in std::mem::take(&mut self.waiting) {
            self.tools.insert(name, hash(&tool));
        }
    }

    /// Trusts these alone.
    pub(crate) fn trust_these(&mut self, difference: &Difference) {
        for name in difference.changed.iter().chain(&difference.new) {
            if let Some(tool) = self.waiting.remove(name) {
                self.tools.insert(name.clone(), hash(&tool));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BadList, MAX_FILE, MAX_NAMES, MAX_TOOL, PinFile, Pins, hash};
    use serde_json::json;

    #[test]
    fn a_tool_that_says_something_else_is_noticed() {
        let tool = |text: &str| json!({ "name": "a", "description": text, "inputSchema": {} });
        let mut pins = Pins::default();
        assert_eq!(pins.compare(&[tool("good")]).unwrap().new, ["a"]);
        pins.trust();
        assert!(pins.compare(&[tool("good")]).unwrap().is_none());
        assert_eq!(pins.compare(&[tool("evil")]).unwrap().changed, ["a"]);
        assert!(pins.compare(&[tool("good")]).unwrap().is_none(), "back again");
        assert!(pins.compare(&[tool("good"), tool("good")]).is_err());
        assert!(pins.compare(&[json!({})]).is_err());
        let one: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let other: serde_json::Value = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(hash(&one), hash(&other));
    }

    #[test]
    fn pins_are_kept_and_a_name_leads_nowhere_else() {
        let state = tempfile::tempdir().unwrap();
        let file = PinFile::of(state.path(), "files-1.0").unwrap();
        assert_eq!(file.read().unwrap(), None);
        let pins = Pins { tools: [("a".to_owned(), "1".to_owned())].into(), ..Pins::default() };
        file.write(&pins).unwrap();
        assert_eq!(file.read().unwrap(), Some(pins));
        for wrong in ["", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(PinFile::of(state.path(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_cannot_make_them_grow_without_end() {
        let state = tempfile::tempdir().unwrap();
        let file = PinFile::of(state.path(), "x").unwrap();
        let is_too_much =
            |pins: &mut Pins, tool| matches!(pins.compare(&[tool]), Err(BadList::TooMuch(_)));
        let mut pins = Pins::default();
        for number in 0..MAX_NAMES {
            pins.compare(&[json!({ "name": number.to_string() })]).unwrap();
        }
        assert!(is_too_much(&mut pins, json!({ "name": "one more" })));
        let long = |length: usize| json!({ "name": "a", "description": "x".repeat(length) });
        assert!(is_too_much(&mut Pins::default(), long(MAX_TOOL)));
        let mut pins = Pins::default();
        for number in 0..=MAX_FILE / (MAX_TOOL / 2) {
            pins.waiting.insert(number.to_string(), long(MAX_TOOL / 2));
        }
        assert!(file.write(&pins).unwrap_err().to_string().contains("4 MiB"));
        pins.trust();
        file.write(&pins).unwrap();
    }
}
