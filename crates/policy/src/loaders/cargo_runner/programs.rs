//! Which programs a cargo runner's file lets start: its `execution_policy`, and `block_shell_access` of its `security`.
//!
//! All of it ends up in one list of what may start. So it is decided when the whole file is read: what comes first in the
//! file must not matter.

use super::super::foreign::{Field, Foreign};
use crate::presets::preset;
use crate::settings::{Settings, list};
use crate::syntax::tree::Tree;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

const LIST: &str = "process.allowedExecutables";
const PRESET: &str = "cargo";
const LINKERS: [&str; 5] = ["cc", "gcc", "clang", "ld", "lld"];
/// Which programs are shells, and which have one in them.
const INTERPRETERS: &str = include_str!("../../../../../resources/programs/interpreters.txt");
const SHELL_KINDS: [&str; 2] = ["shell", "toolbox"];
/// Directories with shells, by the names under which a list may have them.
const PROGRAM_DIRS: [&str; 5] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"];

#[derive(Default)]
pub(super) struct Programs<'a> {
    allowed: Option<Field<'a>>,
    blocked: Option<Field<'a>>,
    /// `block_shell_access`, if it is true.
    no_shells: Option<Field<'a>>,
}

impl<'a> Programs<'a> {
    /// `execution_policy`.
    pub(super) fn read(&mut self, foreign: &mut Foreign, section: &Field<'a>) {
        let known = ["allowed_executables", "blocked_executables", "command_validation"];
        for field in foreign.fields(section.node(), &section.path, &known) {
            match field.name() {
                "allowed_executables" => self.allowed = Some(field),
                "blocked_executables" => self.blocked = Some(field),
                _ => patterns(foreign, &field),
            }
        }
    }

    pub(super) fn block_shells(&mut self, field: Field<'a>) {
        self.no_shells = Some(field);
    }

    pub(super) fn decide(self, foreign: &mut Foreign, settings: &mut Settings) {
        if let Some(field) = &self.allowed {
            foreign.copy(field, LIST, settings);
            check_allowed(foreign, field, list(settings, LIST));
        } else if let Some(field) = &self.no_shells {
            // A list of what may start blocks everything else. The file has none, so that of the preset is used.
            let shipped = preset(PRESET).and_then(|preset| preset.document().ok());
            if let Some(list) = shipped.and_then(|mut document| document.settings.remove(LIST)) {
                foreign.set(field, LIST, list.value, settings);
            }
        }
        let allowed = list(settings, LIST);
        if let Some(field) = &self.no_shells {
            let shell = allowed.iter().find(|entry| shells().any(|shell| covers(entry, shell)));
            if let Some(shell) = shell {
                let why = format!("`{shell}` in `execution_policy.allowed_executables` starts one");
                foreign.refuse(field, &why);
            }
        }
        if let Some(field) = &self.blocked {
            check_blocked(foreign, field, allowed);
        }
    }
}

fn check_allowed(foreign: &mut Foreign, field: &Field<'_>, names: &[String]) {
    if let Tree::List(items) = &field.node().tree
        && items.is_empty()
    {
        let message = format!("`{}` is empty, which would let every program start", field.path);
        foreign.reject(field, message, "name the programs that may start, or remove it");
    } else if !names.iter().any(|entry| LINKERS.iter().any(|linker| covers(entry, linker))) {
        foreign.warn(field, "no linker here (cc, gcc, ld …): rustc cannot make a binary");
    }
}

/// What is not listed as allowed does not start, so a list of what is blocked adds nothing to one.
fn check_blocked(foreign: &mut Foreign, field: &Field<'_>, allowed: &[String]) {
    let names = foreign.texts(field);
    if allowed.is_empty() {
        foreign.refuse(field, "executables are blocked by a list of those that are allowed");
        return;
    }
    for name in &names {
        let is_one = Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or(name);
        if let Some(entry) = allowed.iter().find(|entry| covers(entry, is_one)) {
            let why = format!("`{entry}`, which is allowed, starts `{name}`");
            return foreign.refuse(field, &why);
        }
    }
}

/// Whether an entry of the list lets a program of this name start, wherever it is: by its last component, in which a version
/// does not count, by a `*` in its place, or by a directory of programs. Links are known to nobody here.
fn covers(entry: &str, name: &str) -> bool {
    let entry = plain(Path::new(entry));
    let last = entry.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let without_version =
        last.trim_end_matches(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'));
    [last, without_version].contains(&name) || last == "*" || holds_programs(&entry)
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Whether it is a directory of programs, or one above it.
fn holds_programs(entry: &Path) -> bool {
    let is_it = |dir: &&str| {
        let mut parts = Path::new(dir).components();
        entry.is_absolute()
            && entry.components().all(|part| {
                let of_dir = parts.next();
                of_dir == Some(part) || (of_dir.is_some() && part.as_os_str() == "*")
            })
    };
    PROGRAM_DIRS.iter().any(is_it)
}

fn shells() -> impl Iterator<Item = &'static str> {
    INTERPRETERS.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        words.next().filter(|kind| SHELL_KINDS.contains(kind)).map(|_| name)
    })
}

/// `command_validation`. A policy says what a command can reach and nothing about how it is written; a declared tool does.
fn patterns(foreign: &mut Foreign, field: &Field<'_>) {
    if let Tree::List(items) = &field.node().tree {
        for item in items {
            for part in foreign.fields(item, &field.path, &["regex", "description"]) {
                let Tree::Text(regex) = &part.node().tree else { continue };
                if part.name() == "regex" && (regex.ends_with("\\s") || regex.ends_with(' ')) {
                    let message = "the pattern ends in a blank, so a bare command such as `cargo build` does not match";
                    foreign.warn(&part, message);
                }
            }
        }
    }
    foreign.refuse(
        field,
        "patterns are for declared tools: declare one with `policy: { preset: cargo }` and these `patterns` (docs/tools.md \
         has it whole)",
    );
}
