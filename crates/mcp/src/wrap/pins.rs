//! The tools that a person trusts of another server: the hash of each, with its description and schemas. A server that says something
//! else later could tell a model to do something else.

use crate::error::McpError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const MAX_TOOLS: usize = 4096;

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

impl Pins {
    /// Compares, and remembers what differs. A list with two tools of one name, or a tool without one, is no list.
    pub(crate) fn compare(&mut self, tools: &[Value]) -> Result<Difference, String> {
        let mut difference = Difference::default();
        if tools.len() > MAX_TOOLS {
            return Err("the server has too many tools".to_owned());
        }
        let mut seen = Vec::new();
        for tool in tools {
            let Some(name) = tool["name"].as_str() else {
                return Err("the server has a tool without a name".to_owned());
            };
            if seen.contains(&name) {
                return Err(format!("the server has two tools `{name}`"));
            }
            seen.push(name);
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
        Ok(difference)
    }

    /// Trusts what waits.
    pub fn trust(&mut self) {
        for (name, tool) in std::mem::take(&mut self.waiting) {
            self.tools.insert(name, hash(&tool));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PinFile, Pins, hash};
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
}
