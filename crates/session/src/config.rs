//! Finds and reads the layers of policy, and merges them (POL-4).
//!
//! Must never skip a policy silently: a file that exists and cannot be read or parsed is an error.

use crate::app_dirs::{read_document, replace_file};
use crate::caller::Caller;
use crate::error::{Result, SessionError};
use crate::trust::TrustStore;
use palisade_launch::probe::RealTree;
use palisade_plan::Located;
use palisade_plan::facts::HostFacts;
use palisade_plan::limit::LimitKind;
use palisade_policy::{
    Diagnostic, Flag, LayerKind, Merged, PolicyDocument, PolicyLayer, Subject, Trust, merge,
    not_enforced,
};
use rustix::process::Resource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file names of a layer, in order; two of them at once are refused.
pub(crate) const NAMES: [&str; 3] = ["policy.yaml", "policy.yml", "policy.json"];
pub(crate) const PROJECT_DIRECTORY: &str = ".palisade";

/// What the caller requests in addition to the policy files in their usual locations.
#[derive(Clone, Debug, Default)]
pub struct PolicyRequest {
    /// Values from `SANDBOX_*` variables that mirror options.
    pub environment: Vec<Flag>,
    pub command_line: Vec<Flag>,
    /// Documents that take precedence over the user's own.
    pub files: Vec<PathBuf>,
    /// A declared tool's name.
    pub tool: Option<String>,
    /// Its declaration, which is a layer of its own, and the file.
    pub declared: Option<(PolicyLayer, DocumentFile)>,
    /// A project other than that of the working directory.
    pub project: Option<PathBuf>,
    /// The writable paths above that come from a preset and not from a person.
    pub preset_paths: Vec<String>,
}

/// The merged policy and its sources.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    pub merged: Merged,
    /// Where a project's policy was looked for, if it is the caller's own project.
    pub project: Option<Located>,
    pub sources: Vec<PolicySource>,
    /// The paths under which those files were opened, so that the plan can seal every link on the way.
    pub read_from: Vec<PathBuf>,
    /// Warnings about the files; none of them stops a run.
    pub notes: Vec<Diagnostic>,
}

/// A file that is part of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    pub kind: LayerKind,
    pub path: PathBuf,
}

/// A document, read once.
#[derive(Clone, Debug)]
pub struct DocumentFile {
    /// Absolute, with links unresolved.
    pub named: PathBuf,
    /// Canonical.
    pub path: PathBuf,
    pub text: String,
}

impl DocumentFile {
    /// A document whose file does not exist, or not yet: to try out a change.
    pub fn supposed(path: PathBuf, text: String) -> Self {
        Self { named: path.clone(), path, text }
    }
}

/// A hypothetical change to the files, to see its effect (POL-5).
#[derive(Clone, Debug)]
pub enum Supposing {
    /// The project's file is trusted, or is not.
    Project(Trust),
    /// The project has no file.
    WithoutProject,
    /// The same for files in the user's directory that commands could have written.
    Writable(Trust),
    /// This is the user's file.
    User(DocumentFile),
    /// This is the project's file.
    ProjectFile(DocumentFile),
}

/// Reads and merges every layer.
pub fn load(caller: &Caller, request: &PolicyRequest) -> Result<LoadedPolicy> {
    load_supposing(caller, request, None)
}

/// The same with a hypothetical change.
pub fn load_supposing(
    caller: &Caller,
    request: &PolicyRequest,
    supposing: Option<&Supposing>,
) -> Result<LoadedPolicy> {
    let (mut reading, own) = read_layers(caller, request, supposing)?;
    for (layer, file) in own {
        if reading.could_be_written(&file, caller) {
            let trust = match supposing {
                Some(Supposing::Writable(trust)) => *trust,
                _ => trust_of(&TrustStore::load(&caller.places)?, &file),
            };
            reading.is_writable(layer, &file, trust);
        }
    }

    let subject = request.tool.clone().map_or(Subject::Run, Subject::Tool);
    let merged = merge(&subject, reading.layers).map_err(SessionError::Policy)?;
    reading.notes.extend(merged.notes.iter().cloned());
    let Reading { project, sources, read_from, notes, .. } = reading;
    Ok(LoadedPolicy { merged, project, sources, read_from, notes })
}

/// The writable paths of every layer but an untrusted project's.
pub fn read_write_paths(caller: &Caller, request: &PolicyRequest) -> Result<Vec<String>> {
    Ok(read_layers(caller, request, None)?.0.read_write_paths())
}

/// Reads every layer. Also returns the user's files with the numbers of their layers: what could have been written is known only once
/// all of them are there.
fn read_layers(
    caller: &Caller,
    request: &PolicyRequest,
    supposing: Option<&Supposing>,
) -> Result<(Reading, Vec<(usize, DocumentFile)>)> {
    let mut reading = Reading::default();
    if let Some(file) = find(&caller.places.organisation)? {
        reading.add(LayerKind::Organisation, &file)?;
    }
    let project = match supposing {
        Some(Supposing::ProjectFile(file)) => Some(file.clone()),
        Some(Supposing::WithoutProject) => None,
        _ if request.project.is_some() => project_document(caller, request)?,
        _ => {
            let located = palisade_plan::locate_project(&caller.facts, &RealTree);
            document_of(&reading.project.insert(located).root)?
        }
    };
    if let Some(file) = project {
        let trust = match supposing {
            Some(Supposing::Project(trust)) => *trust,
            _ => trust_of(&TrustStore::load(&caller.places)?, &file),
        };
        reading.add(LayerKind::Project(trust), &file)?;
    }
    if let Some((layer, file)) = &request.declared {
        reading.sources.push(PolicySource { kind: layer.kind, path: file.path.clone() });
        reading.read_from.push(file.named.clone());
        reading.layers.push(layer.clone());
    }
    let user = match supposing {
        Some(Supposing::User(file)) => Some(file.clone()),
        _ => find(&caller.places.user)?,
    };
    let mut own: Vec<(usize, DocumentFile)> = Vec::new();
    let named = request.files.iter().map(|path| read(path));
    for file in user.into_iter().map(Ok).chain(named) {
        let file = file?;
        reading.add(LayerKind::User, &file)?;
        own.push((reading.layers.len() - 1, file));
    }
    reading.environment(caller, request)?;
    let document =
        PolicyDocument::from_flags(request.command_line.clone()).map_err(SessionError::Policy)?;
    reading.layers.push(PolicyLayer { kind: LayerKind::CommandLine, document });
    Ok((reading, own))
}

/// The project's file, if it exists, is valid, and is not trusted.
pub(crate) fn untrusted_project(caller: &Caller, request: &PolicyRequest) -> Option<DocumentFile> {
    let file = project_document(caller, request).ok()??;
    decode(&file.text, &file.path.to_string_lossy()).ok()?;
    let store = TrustStore::load(&caller.places).ok()?;
    (trust_of(&store, &file) == Trust::Untrusted).then_some(file)
}

/// A key that nothing enforces yet stops the run; it is never ignored (POL-2).
pub fn refuse_unenforced(loaded: &LoadedPolicy) -> Result<()> {
    let complaints = not_enforced(&loaded.merged);
    if !complaints.is_empty() {
        return Err(SessionError::Policy(complaints));
    }
    refuse_beyond_own(loaded)
}

/// A process cannot give its children more than it has itself (setrlimit(2)), and silently granting less than requested
/// would hide that.
fn refuse_beyond_own(loaded: &LoadedPolicy) -> Result<()> {
    let policy = &loaded.merged.policy;
    for (what, resource, asked) in [
        (LimitKind::OpenFiles, Resource::Nofile, policy.resources.max_file_descriptors),
        (LimitKind::FileSize, Resource::Fsize, policy.filesystem.max_file_size),
    ] {
        let most = rustix::process::getrlimit(resource).maximum;
        if let Some((asked, most)) = asked.zip(most).filter(|(asked, most)| asked > most) {
            return Err(SessionError::BeyondOwnLimit { what, asked, most });
        }
    }
    Ok(())
}

/// The policy file of the caller's project, if there is one.
pub fn project_document(caller: &Caller, request: &PolicyRequest) -> Result<Option<DocumentFile>> {
    document_of(&project_root(caller, request.project.as_deref())?)
}

fn document_of(project: &Path) -> Result<Option<DocumentFile>> {
    let directory = project.join(PROJECT_DIRECTORY);
    let found = find(&directory)?;
    // Trust covers a file's path and content: through a link, one project would use another's.
    match found {
        Some(file) if file.path.parent() != Some(directory.as_path()) => {
            Err(SessionError::LinkedPolicy { directory, target: file.path })
        }
        found => Ok(found),
    }
}

/// Reads a document that was named explicitly.
pub fn read(path: &Path) -> Result<DocumentFile> {
    let text =
        read_document(path)?.ok_or_else(|| SessionError::NoSuchPolicy { path: path.to_owned() })?;
    Ok(DocumentFile { named: absolute(path)?, path: canonical(path)?, text })
}

/// Whether a command of an earlier run could have written this file. If so, it can only tighten until it is trusted.
pub fn could_be_written(caller: &Caller, named: &Path) -> bool {
    could_be_written_with(caller, named, &[])
}

/// The same, where runs could also write to these paths, as policies name them.
pub(crate) fn could_be_written_with(
    caller: &Caller,
    named: &Path,
    read_write_paths: &[String],
) -> bool {
    palisade_plan::could_be_written(named, read_write_paths, &caller.facts, &RealTree)
}

/// Decodes a document of any known format. Looks up the system calls it names, since only here both the document and
/// the tables are known.
pub fn decode(text: &str, name: &str) -> Result<palisade_policy::LoadedDocument, Vec<Diagnostic>> {
    let loaded = palisade_policy::load(text, name)?;
    let unknown = loaded.document.unknown_syscalls(|call| match palisade_bpf::known_name(call) {
        Err(palisade_bpf::Error::UnknownSyscall { nearest, .. }) => Err(nearest),
        _ => Ok(()),
    });
    if unknown.is_empty() { Ok(loaded) } else { Err(unknown) }
}

/// The layer whose file a new document becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyTarget {
    User,
    Project,
}

/// The path for a new document of that layer; an error if the layer already has one.
pub fn free_place(caller: &Caller, target: PolicyTarget) -> Result<PathBuf> {
    let directory = match target {
        PolicyTarget::User => caller.places.user.clone(),
        PolicyTarget::Project => project_root(caller, None)?.join(PROJECT_DIRECTORY),
    };
    match find(&directory)? {
        Some(existing) => Err(SessionError::AlreadyThere { path: existing.path }),
        None => Ok(directory.join("policy.json")),
    }
}

/// Writes a document atomically.
pub fn write(path: &Path, text: &str) -> Result<()> {
    replace_file(path, text.as_bytes())
}

#[derive(Default)]
struct Reading {
    project: Option<Located>,
    layers: Vec<PolicyLayer>,
    sources: Vec<PolicySource>,
    read_from: Vec<PathBuf>,
    notes: Vec<Diagnostic>,
}

impl Reading {
    fn add(&mut self, kind: LayerKind, file: &DocumentFile) -> Result<()> {
        let name = file.path.to_string_lossy();
        let loaded = decode(&file.text, &name).map_err(SessionError::Policy)?;
        self.notes.extend(loaded.warnings);
        self.layers.push(PolicyLayer { kind, document: loaded.document });
        self.sources.push(PolicySource { kind, path: file.path.clone() });
        self.read_from.push(file.named.clone());
        Ok(())
    }

    /// Judged by what all layers make writable, except an untrusted project: it could otherwise weaken the user's own
    /// file.
    fn could_be_written(&self, file: &DocumentFile, caller: &Caller) -> bool {
        could_be_written_with(caller, &file.named, &self.read_write_paths())
    }

    fn read_write_paths(&self) -> Vec<String> {
        let layers = self.layers.iter().filter(|layer| !layer.kind.is_untrusted());
        layers.flat_map(|layer| layer.document.read_write_paths()).map(str::to_owned).collect()
    }

    fn is_writable(&mut self, layer: usize, file: &DocumentFile, trust: Trust) {
        let kind = LayerKind::Writable(trust);
        if let Some(layer) = self.layers.get_mut(layer) {
            layer.kind = kind;
        }
        for source in self.sources.iter_mut().filter(|source| source.path == file.path) {
            if source.kind == LayerKind::User {
                source.kind = kind;
            }
        }
    }

    fn environment(&mut self, caller: &Caller, request: &PolicyRequest) -> Result<()> {
        let kind = LayerKind::Environment;
        let variables: BTreeMap<String, String> = caller
            .facts
            .env
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.into(), value.to_str()?.into())))
            .collect();
        let loaded = palisade_policy::load_environment(&variables).map_err(SessionError::Policy)?;
        self.notes.extend(loaded.warnings);
        self.layers.push(PolicyLayer { kind, document: loaded.document });
        let document = PolicyDocument::from_flags(request.environment.clone())
            .map_err(SessionError::Policy)?;
        self.layers.push(PolicyLayer { kind, document });
        Ok(())
    }
}

/// The only policy file of a directory.
pub(crate) fn find(directory: &Path) -> Result<Option<DocumentFile>> {
    let mut found: Option<DocumentFile> = None;
    for name in NAMES {
        let path = directory.join(name);
        let Some(text) = read_document(&path)? else { continue };
        if let Some(first) = found {
            return Err(SessionError::Ambiguous { first: first.path, second: path });
        }
        found = Some(DocumentFile { path: canonical(&path)?, named: absolute(&path)?, text });
    }
    Ok(found)
}

fn canonical(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|source| SessionError::io("resolve", path, source))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|source| SessionError::io("resolve", path, source))
}

fn trust_of(store: &TrustStore, file: &DocumentFile) -> Trust {
    if store.is_trusted(&file.path, &file.text) { Trust::Trusted } else { Trust::Untrusted }
}

/// Found as the plan finds it: the project that is granted and the project whose policy is read must be the same.
pub(crate) fn project_root(caller: &Caller, start: Option<&Path>) -> Result<PathBuf> {
    let Some(start) = start else {
        return Ok(palisade_plan::project_root(&caller.facts, &RealTree));
    };
    let facts = HostFacts { cwd: canonical(start)?, ..caller.facts.clone() };
    Ok(palisade_plan::project_root(&facts, &RealTree))
}

#[cfg(test)]
#[path = "config_tests.rs"]
pub(crate) mod tests;
