//! The configuration files of clients: where each has its own, and what a server of ours looks like in it.

mod jsonc;
mod toml_text;

use crate::error::McpError;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What our server is called there.
pub const SERVER_NAME: &str = "palisade";
/// Of a file that is read.
const MAX_FILE: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    Claude,
    Codex,
    Cursor,
    VsCode,
    Gemini,
}

/// Whose configuration it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigScope {
    /// In this home directory.
    User { home: PathBuf, config: PathBuf },
    /// In this project, for everybody who works on it.
    Project(PathBuf),
}

/// How a client starts the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
}

enum Format {
    /// The name of the member that has the servers, and whether each says that it is started as a program.
    Json {
        section: &'static str,
        says_type: bool,
    },
    Toml {
        section: &'static str,
    },
}

impl ClientKind {
    fn format(self) -> Format {
        match self {
            Self::Claude | Self::VsCode => {
                let section = if self == Self::VsCode { "servers" } else { "mcpServers" };
                Format::Json { section, says_type: true }
            }
            Self::Cursor | Self::Gemini => Format::Json { section: "mcpServers", says_type: false },
            Self::Codex => Format::Toml { section: "mcp_servers" },
        }
    }

    /// The client's own file.
    pub fn file(self, scope: &ConfigScope) -> PathBuf {
        match (self, scope) {
            (Self::Claude, ConfigScope::User { home, .. }) => home.join(".claude.json"),
            (Self::Claude, ConfigScope::Project(project)) => project.join(".mcp.json"),
            (Self::VsCode, ConfigScope::User { config, .. }) => config.join("Code/User/mcp.json"),
            (Self::VsCode, ConfigScope::Project(project)) => project.join(".vscode/mcp.json"),
            (Self::Codex, ConfigScope::User { home: base, .. } | ConfigScope::Project(base)) => {
                base.join(".codex/config.toml")
            }
            (Self::Cursor, ConfigScope::User { home: base, .. } | ConfigScope::Project(base)) => {
                base.join(".cursor/mcp.json")
            }
            (Self::Gemini, ConfigScope::User { home: base, .. } | ConfigScope::Project(base)) => {
                base.join(".gemini/settings.json")
            }
        }
    }
}

/// A file as it is and as it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub file: PathBuf,
    /// None: there is none.
    pub before: Option<String>,
    pub after: String,
}

impl ConfigChange {
    /// Whether nothing has to be done.
    pub fn is_done(&self) -> bool {
        self.before.as_deref().unwrap_or_default() == self.after
    }

    /// Where the file is kept as it was.
    pub fn backup(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".before-palisade");
        name.into()
    }

    /// Writes it: all of it or nothing. What was there is kept beside it.
    pub fn write(&self) -> Result<(), McpError> {
        // A link, such as into a directory of settings that is kept elsewhere, stays one.
        let target = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let directory = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(|error| McpError::io("make", directory, error))?;
        let mut mode = Mode::RUSR | Mode::WUSR;
        if let Some(before) = &self.before {
            let found =
                fs::metadata(&target).map_err(|error| McpError::io("read", &target, error))?;
            mode = Mode::from_raw_mode(found.permissions().mode() & 0o777);
            if read(&self.file)?.as_deref() != Some(before) {
                let changed = io::Error::other("it was changed meanwhile; try again");
                return Err(McpError::io("write", &target, changed));
            }
            replace(&self.backup(), before, mode)?;
        }
        replace(&target, &self.after, mode)
    }
}

fn replace(path: &Path, content: &str, mode: Mode) -> Result<(), McpError> {
    let failed = |error: io::Error| McpError::io("write", path, error);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let new = PathBuf::from(name);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&new, flags, mode).map_err(|errno| failed(errno.into()))?;
    let mut file = fs::File::from(file);
    let written = file
        .write_all(content.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // Why it failed is worth more.
        let _ = fs::remove_file(&new);
    }
    written.map_err(failed)
}

fn read(file: &Path) -> Result<Option<String>, McpError> {
    match fs::metadata(file) {
        Ok(found) if found.len() > MAX_FILE => {
            Err(McpError::io("read", file, io::Error::other("it is too large")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => fs::read_to_string(file).map(Some).map_err(|error| McpError::io("read", file, error)),
    }
}

/// The file with our server in it.
pub fn installed(
    client: ClientKind,
    scope: &ConfigScope,
    command: &ServerCommand,
) -> Result<ConfigChange, McpError> {
    let ServerCommand { program, arguments } = command;
    edited(client, scope, |text| match client.format() {
        Format::Json { section, says_type } => {
            let mut server = json!({ "command": program, "args": arguments });
            if says_type {
                server = json!({ "type": "stdio", "command": program, "args": arguments });
            }
            match jsonc::get(text, section, SERVER_NAME)? {
                Some(there) if there == server => Ok(text.to_owned()),
                _ => jsonc::set(text, section, SERVER_NAME, &server),
            }
        }
        Format::Toml { section } => {
            let arguments = arguments.iter().map(|it| toml::Value::from(it.as_str())).collect();
            let table = toml::Table::from_iter([
                ("command".to_owned(), toml::Value::from(program.as_str())),
                ("args".to_owned(), toml::Value::Array(arguments)),
            ]);
            match toml_text::get(text, section, SERVER_NAME)? {
                Some(toml::Value::Table(there)) if there == table => Ok(text.to_owned()),
                _ => toml_text::set(text, section, SERVER_NAME, &table),
            }
        }
    })
}

/// The file without it.
pub fn uninstalled(client: ClientKind, scope: &ConfigScope) -> Result<ConfigChange, McpError> {
    edited(client, scope, |text| match client.format() {
        Format::Json { section, .. } => match jsonc::get(text, section, SERVER_NAME)? {
            Some(_) => jsonc::remove(text, section, SERVER_NAME),
            None => Ok(text.to_owned()),
        },
        Format::Toml { section } => toml_text::remove(text, section, SERVER_NAME),
    })
}

fn edited(
    client: ClientKind,
    scope: &ConfigScope,
    edit: impl FnOnce(&str) -> Result<String, String>,
) -> Result<ConfigChange, McpError> {
    let file = client.file(scope);
    let before = read(&file)?;
    let after = edit(before.as_deref().unwrap_or_default())
        .map_err(|why| McpError::Config { file: file.clone(), why })?;
    Ok(ConfigChange { file, before, after })
}

#[cfg(test)]
mod tests {
    use super::{ClientKind, ConfigScope, ServerCommand, installed, uninstalled};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_written_with_a_backup_and_brought_back() {
        let home = tempfile::tempdir().unwrap();
        let scope =
            ConfigScope::User { home: home.path().into(), config: home.path().join(".config") };
        let arguments = vec!["mcp".to_owned()];
        let command = ServerCommand { program: "/x/sandbox".to_owned(), arguments };
        use ClientKind::{Claude, Codex, Cursor, Gemini, VsCode};
        for client in [Claude, Codex, Cursor, Gemini, VsCode] {
            let change = installed(client, &scope, &command).unwrap();
            assert!(!change.is_done() && change.before.is_none());
            change.write().unwrap();
            assert!(installed(client, &scope, &command).unwrap().is_done(), "again");
            fs::set_permissions(&change.file, fs::Permissions::from_mode(0o640)).unwrap();
            let back = uninstalled(client, &scope).unwrap();
            back.write().unwrap();
            assert_eq!(fs::read_to_string(back.backup()).unwrap(), change.after);
            let mode = change.file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640);
            assert!(uninstalled(client, &scope).unwrap().is_done());
            assert!(!fs::read_to_string(&change.file).unwrap().contains("sandbox"));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_as_it_is() {
        let project = tempfile::tempdir().unwrap();
        let scope = ConfigScope::Project(project.path().into());
        let file = ClientKind::Claude.file(&scope);
        fs::write(&file, "{ \"mcpServers\": ").unwrap();
        let command = ServerCommand { program: "sandbox".to_owned(), arguments: vec![] };
        let error = installed(ClientKind::Claude, &scope, &command).unwrap_err().to_string();
        assert!(error.contains(".mcp.json") && error.contains("line 1"), "{error}");
    }
}
