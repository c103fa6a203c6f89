//! Finds and reads declarations of tools: those that are named, the user's, and the project's.
//!
//! A project's file, and any other that a command could have written, counts only once its very content is trusted: it says which
//! program runs. A file of a person's that exists and cannot be read is an error and is never skipped. What is wrong with a project's
//! directory is said, and keeps no other tool from running: any command could have put it there.

use crate::app_dirs;
use crate::caller::Caller;
use crate::config::{self, DocumentFile, PROJECT_DIRECTORY, PolicyRequest};
use crate::error::{Result, SessionError};
use crate::trust::TrustStore;
use palisade_policy::nearest;
use palisade_policy::tool::{ToolDeclaration, declared_name, parse_tool};
use palisade_policy::{LayerKind, PolicyLayer};
use palisade_record::Digest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Below the user's and the project's directory.
const DIRECTORY: &str = "tools";
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// More than any model can choose from.
const MAX_TOOLS: usize = 500;
/// As many as the kernel follows in one name.
const MAX_LINKS: usize = 40;

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
    pub because: IgnoredBecause,
}

/// What a person can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredBecause {
    /// Nobody has trusted it.
    Untrusted,
    /// Another one of the same name counts before it.
    Shadowed,
    /// Its file has to be put right.
    Unusable,
}

/// All tools that are declared, by name.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    pub tools: BTreeMap<String, DeclaredTool>,
    pub ignored: Vec<Ignored>,
}

/// Reads all declarations. `named` are files, or directories of them, that count before the user's own. `request` is what the policies of
/// calls are made of: a declaration that they make writable counts only once it is trusted.
pub fn load(caller: &Caller, named: &[PathBuf], request: &PolicyRequest) -> Result<ToolSet> {
    let mut set = ToolSet::default();
    let judge = Judge::new(caller, request)?;
    for path in named {
        let files = match path.is_dir() {
            true => files_in(path)?,
            false => vec![path.clone()],
        };
        for path in files {
            set.add(&judge, &path, ToolOrigin::Named)?;
        }
    }
    for path in files_in(&caller.places.user.join(DIRECTORY))? {
        set.add(&judge, &path, ToolOrigin::User)?;
    }
    let project = judge.project.join(PROJECT_DIRECTORY).join(DIRECTORY);
    match files_in(&project) {
        Ok(files) => {
            for path in files {
                set.add(&judge, &path, ToolOrigin::Project)?;
            }
        }
        Err(error) => set.unusable(&project, &error),
    }
    set.withdraw_written(&judge);
    Ok(set)
}

/// The tool of this name.
pub fn find<'a>(set: &'a ToolSet, name: &str) -> Result<&'a DeclaredTool> {
    if let Some(tool) = set.tools.get(name) {
        return Ok(tool);
    }
    for ignored in set.ignored.iter().filter(|it| it.name == name) {
        let (name, path) = (ignored.name.clone(), ignored.path.clone());
        match ignored.because {
            IgnoredBecause::Untrusted => return Err(SessionError::ToolNotTrusted { name, path }),
            IgnoredBecause::Unusable => {
                return Err(SessionError::ToolUnusable { name, why: ignored.why.clone() });
            }
            IgnoredBecause::Shadowed => {}
        }
    }
    let names = set.tools.keys().map(String::as_str);
    let nearest = nearest(name, names).map(str::to_owned);
    Err(SessionError::NoSuchTool { name: name.to_owned(), nearest })
}

/// Refuses a tool whose file is not that which was offered: who offered it, and who agreed to its calls, saw another declaration.
pub fn refuse_changed(tool: &DeclaredTool, offered_sha256: &str) -> Result<()> {
    if tool.digest.to_string() == offered_sha256 {
        return Ok(());
    }
    let (name, path) = (tool.declaration.name.clone(), tool.file.path.clone());
    Err(SessionError::ToolChanged { name, path })
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

/// Decides which declarations count.
struct Judge<'a> {
    caller: &'a Caller,
    trusted: TrustStore,
    /// The root of the project, without links.
    project: PathBuf,
    /// What the policies of runs make writable.
    written: Vec<String>,
}

impl<'a> Judge<'a> {
    fn new(caller: &'a Caller, request: &PolicyRequest) -> Result<Self> {
        Ok(Self {
            caller,
            trusted: TrustStore::load(&caller.places)?,
            project: config::project_root(caller, None)?,
            written: config::read_write_paths(caller, request)?,
        })
    }

    fn is_trusted(&self, file: &DocumentFile) -> bool {
        self.trusted.is_trusted(&file.path, &file.text)
    }

    fn counts(&self, file: &DocumentFile, origin: ToolOrigin) -> bool {
        let needs_trust = origin == ToolOrigin::Project
            || config::could_be_written_with(self.caller, &file.named, &self.written);
        !needs_trust || self.is_trusted(file)
    }

    /// Trust and approvals cover a file's path and content: through a link in this project, it would use another's. Commands cannot write
    /// to the user's own directory, wherever it is.
    fn refuse_linked(&self, file: &DocumentFile, origin: ToolOrigin) -> Result<()> {
        if origin != ToolOrigin::User && is_behind_link(&self.project, &file.named, &file.path) {
            let (path, target) = (file.named.clone(), file.path.clone());
            return Err(SessionError::LinkedTool { path, target });
        }
        Ok(())
    }
}

/// Whether a name led to this file through a link within the project, also one behind a link elsewhere. Looked at again after the file was
/// read: a name that leads elsewhere now has such a link, too.
fn is_behind_link(project: &Path, named: &Path, file: &Path) -> bool {
    let mut left = Vec::new();
    push_parts(&mut left, named);
    let mut reached = PathBuf::new();
    let mut was_in_project = false;
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            reached.pop();
        } else {
            // The root takes the place of all before it.
            reached.push(part);
        }
        let is_in_project = reached.starts_with(project) && reached != project;
        was_in_project |= is_in_project;
        let Ok(target) = fs::read_link(&reached) else { continue };
        links += 1;
        if is_in_project || links > MAX_LINKS {
            return true;
        }
        reached.pop();
        push_parts(&mut left, &target);
    }
    was_in_project && reached != file
}

/// Puts the parts of a path before those that are left: the next one is at the end.
fn push_parts(left: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    left.extend(parts.rev().map(|part| part.as_os_str().to_owned()));
}

impl ToolSet {
    fn add(&mut self, judge: &Judge<'_>, path: &Path, origin: ToolOrigin) -> Result<()> {
        let read =
            config::read(path).and_then(|file| judge.refuse_linked(&file, origin).map(|()| file));
        let file = match read {
            Ok(file) => file,
            Err(error) if origin == ToolOrigin::Project => {
                self.unusable(path, &error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let shown = file.path.to_string_lossy().into_owned();
        if !judge.counts(&file, origin) {
            match declared_name(&file.text, &shown) {
                Ok(name) => self.ignored.push(untrusted(name, file.path)),
                Err(problems) => self.unusable(path, &SessionError::ToolDeclaration(problems)),
            }
            return Ok(());
        }
        let declaration = parse_tool(&file.text, &shown).map_err(SessionError::ToolDeclaration)?;
        let name = declaration.name.clone();
        if let Some(first) = self.tools.get(&name) {
            if first.origin == origin {
                let (first, second) = (first.file.path.clone(), file.path);
                return Err(SessionError::ToolTwice { name, first, second });
            }
            let why = format!(
                "{} declares a tool of this name and counts before it",
                first.file.path.display()
            );
            let because = IgnoredBecause::Shadowed;
            self.ignored.push(Ignored { name, path: file.path, why, because });
            return Ok(());
        }
        if self.tools.len() >= MAX_TOOLS {
            return Err(SessionError::TooManyTools { limit: MAX_TOOLS });
        }
        let digest = Digest::of(file.text.as_bytes());
        self.tools.insert(name, DeclaredTool { declaration, file, origin, digest });
        Ok(())
    }

    fn unusable(&mut self, path: &Path, error: &SessionError) {
        self.ignored.push(Ignored {
            name: stem(path),
            path: path.to_owned(),
            why: error.to_string(),
            because: IgnoredBecause::Unusable,
        });
    }

    /// A tool is a layer of its calls' policies, too: what one may write must not say what another runs.
    fn withdraw_written(&mut self, judge: &Judge<'_>) {
        let paths = self.tools.values().flat_map(|tool| tool.declaration.policy.read_write_paths());
        let written: Vec<String> = paths.map(str::to_owned).collect();
        if written.is_empty() {
            return;
        }
        let is_withdrawn = |tool: &DeclaredTool| {
            config::could_be_written_with(judge.caller, &tool.file.named, &written)
                && !judge.is_trusted(&tool.file)
        };
        let names = self.tools.iter().filter(|(_, tool)| is_withdrawn(tool));
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(tool) = self.tools.remove(&name) {
                self.ignored.push(untrusted(name, tool.file.path));
            }
        }
    }
}

fn untrusted(name: String, path: PathBuf) -> Ignored {
    let why = format!(
        "a command in a sandbox could have written it, and it is not trusted; read it, then run `sandbox tool trust {}`",
        path.display()
    );
    Ignored { name, path, why, because: IgnoredBecause::Untrusted }
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
