//! Finds and reads declarations of tools: those that are named, the user's, and the project's.
//!
//! A project's file, and any other that a command could have written, counts only once its very content is trusted: it says which
//! program runs. A file that exists and cannot be read is an error and is never skipped.

use crate::app_dirs;
use crate::caller::Caller;
use crate::config::{self, DocumentFile, PROJECT_DIRECTORY, PolicyRequest};
use crate::error::{Result, SessionError};
use crate::trust::TrustStore;
use palisade_policy::nearest;
use palisade_policy::tool::{ToolDeclaration, parse_tool};
use palisade_policy::{LayerKind, PolicyLayer};
use palisade_record::Digest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Below the user's and the project's directory.
const DIRECTORY: &str = "tools";
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// More than any model can choose from.
const MAX_TOOLS: usize = 500;

/// Where a declaration comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolOrigin {
    /// A file that was named.
    Named,
    User,
    Project,
}

impl ToolOrigin {
    pub fn word(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A declaration and its file.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    pub declaration: ToolDeclaration,
    pub file: DocumentFile,
    pub origin: ToolOrigin,
    /// Of the text of its file: what a person trusted or approved.
    pub digest: Digest,
}

/// A declaration that does not count.
#[derive(Clone, Debug, Serialize)]
pub struct Ignored {
    pub name: String,
    pub path: PathBuf,
    pub why: String,
    #[serde(skip)]
    pub needs_trust: bool,
}

/// All tools that are declared, by name.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    pub tools: BTreeMap<String, DeclaredTool>,
    pub ignored: Vec<Ignored>,
}

/// Reads all declarations. `named` are files, or directories of them, that count before the user's own.
pub fn load(caller: &Caller, named: &[PathBuf]) -> Result<ToolSet> {
    let mut set = ToolSet::default();
    let trusted = TrustStore::load(&caller.places)?;
    for path in named {
        let files = match path.is_dir() {
            true => files_in(path)?,
            false => vec![path.clone()],
        };
        for path in files {
            set.add(caller, &trusted, &path, ToolOrigin::Named)?;
        }
    }
    for path in files_in(&caller.places.user.join(DIRECTORY))? {
        set.add(caller, &trusted, &path, ToolOrigin::User)?;
    }
    let project = project_directory(caller)?;
    for path in files_in(&project)? {
        set.add(caller, &trusted, &path, ToolOrigin::Project)?;
    }
    Ok(set)
}

/// The tool of this name.
pub fn find<'a>(set: &'a ToolSet, name: &str) -> Result<&'a DeclaredTool> {
    if let Some(tool) = set.tools.get(name) {
        return Ok(tool);
    }
    if let Some(ignored) = set.ignored.iter().find(|it| it.name == name && it.needs_trust) {
        let (name, path) = (ignored.name.clone(), ignored.path.clone());
        return Err(SessionError::ToolNotTrusted { name, path });
    }
    let names = set.tools.keys().map(String::as_str);
    let nearest = nearest(name, names).map(str::to_owned);
    Err(SessionError::NoSuchTool { name: name.to_owned(), nearest })
}

/// Keeps a declaration as the user's own. An older one of the same name is replaced only if that is wanted.
pub fn declare(caller: &Caller, text: &str, is_json: bool, replace: bool) -> Result<PathBuf> {
    let file = if is_json { "declaration.json" } else { "declaration.yaml" };
    let declaration = parse_tool(text, file).map_err(SessionError::ToolDeclaration)?;
    let directory = caller.places.user.join(DIRECTORY);
    let ending = if is_json { "json" } else { "yaml" };
    let path = directory.join(format!("{}.{ending}", declaration.name));
    let olds = of_name(&directory, &declaration.name)?;
    if let Some(old) = olds.first().filter(|_| !replace) {
        return Err(SessionError::ToolThere { name: declaration.name, path: old.clone() });
    }
    app_dirs::replace_file(&path, text.as_bytes())?;
    for old in olds.iter().filter(|old| **old != path) {
        fs::remove_file(old).map_err(|error| SessionError::io("remove", old, error))?;
    }
    Ok(path)
}

/// Removes a declaration of the user's own.
pub fn remove(caller: &Caller, name: &str) -> Result<Vec<PathBuf>> {
    let olds = of_name(&caller.places.user.join(DIRECTORY), name)?;
    if olds.is_empty() {
        return Err(SessionError::NoSuchTool { name: name.to_owned(), nearest: None });
    }
    for old in &olds {
        fs::remove_file(old).map_err(|error| SessionError::io("remove", old, error))?;
    }
    Ok(olds)
}

/// What a call of this tool asks of a policy. The declaration is a layer of its own, below the user's.
pub fn request_of(tool: &DeclaredTool, request: PolicyRequest) -> PolicyRequest {
    let document = tool.declaration.policy.clone();
    PolicyRequest {
        tool: Some(tool.declaration.name.clone()),
        declared: Some((PolicyLayer { kind: LayerKind::Declaration, document }, tool.file.clone())),
        ..request
    }
}

impl ToolSet {
    fn add(
        &mut self,
        caller: &Caller,
        trusted: &TrustStore,
        path: &Path,
        origin: ToolOrigin,
    ) -> Result<()> {
        let file = config::read(path)?;
        let is_linked = origin == ToolOrigin::Project
            && file.path.parent().map(Path::to_owned)
                != path.parent().and_then(|it| it.canonicalize().ok());
        if is_linked {
            let directory = path.parent().unwrap_or(path).to_owned();
            return Err(SessionError::LinkedPolicy { directory, target: file.path });
        }
        let needs_trust =
            origin == ToolOrigin::Project || config::could_be_written(caller, &file.named);
        let is_trusted = !needs_trust || trusted.is_trusted(&file.path, &file.text);
        let parsed = parse_tool(&file.text, &file.path.to_string_lossy());
        let declaration = match parsed {
            Ok(declaration) => declaration,
            // An untrusted file must not keep other tools from running.
            Err(problems) if !is_trusted => {
                let why = problems.first().map(ToString::to_string).unwrap_or_default();
                self.ignored.push(Ignored {
                    name: stem(path),
                    path: file.path,
                    why,
                    needs_trust: false,
                });
                return Ok(());
            }
            Err(problems) => return Err(SessionError::ToolDeclaration(problems)),
        };
        let name = declaration.name.clone();
        if !is_trusted {
            let why = "a command in a sandbox could have written it, and it is not trusted; read it, then run \
                       `sandbox tool trust`"
                .to_owned();
            self.ignored.push(Ignored { name, path: file.path, why, needs_trust: true });
            return Ok(());
        }
        if let Some(first) = self.tools.get(&name) {
            if first.origin == origin {
                let (first, second) = (first.file.path.clone(), file.path);
                return Err(SessionError::ToolTwice { name, first, second });
            }
            let why = format!(
                "{} declares a tool of this name and counts before it",
                first.file.path.display()
            );
            self.ignored.push(Ignored { name, path: file.path, why, needs_trust: false });
            return Ok(());
        }
        if self.tools.len() >= MAX_TOOLS {
            return Err(SessionError::TooManyTools { limit: MAX_TOOLS });
        }
        let digest = Digest::of(file.text.as_bytes());
        self.tools.insert(name, DeclaredTool { declaration, file, origin, digest });
        Ok(())
    }
}

fn project_directory(caller: &Caller) -> Result<PathBuf> {
    Ok(config::project_root(caller, None)?.join(PROJECT_DIRECTORY).join(DIRECTORY))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The declarations in a directory, by name; none if it does not exist.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| SessionError::io("read", directory, error);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if ENDINGS.contains(&ending) && !is_hidden {
            files.push(path);
        }
        if files.len() > MAX_TOOLS {
            return Err(SessionError::TooManyTools { limit: MAX_TOOLS });
        }
    }
    files.sort();
    Ok(files)
}

/// The user's files that declare this tool.
fn of_name(directory: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files_in(directory)? {
        let file = config::read(&path)?;
        let declares = parse_tool(&file.text, &path.to_string_lossy());
        if declares.map_or_else(|_| stem(&path) == name, |it| it.name == name) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
