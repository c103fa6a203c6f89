//! Unified differences as `git diff` prints them; `git apply` takes them, except for binary files. No `index` lines: they
//! would name objects of a repository that there may not be.

use super::RenderOptions;
use super::names::{Shown, name, shown};
use super::visible::visible;
use crate::changeset::{Change, ChangeKind, ChangeSet};
use crate::contents::{Located, is_binary, read};
use crate::entry::EntryKind;
use crate::error::Result;
use crate::hunks::{Hunk, HunkLine, MAX_TEXT_BYTES, between};
use crate::layers::Layers;
use crate::paths::{quoted, quoted_with_prefix};
use std::io::Write;
use std::path::Path;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[m";

/// All changes as one patch.
pub fn write_unified(
    layers: &Layers,
    set: &ChangeSet,
    options: RenderOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let mut writer = Writer { layers, options, out };
    for Shown { change, from } in shown(set) {
        match from {
            Some((from, rename)) => writer.renamed(from, change, rename.similarity)?,
            None if change.kind == ChangeKind::TypeChanged => {
                writer.deleted(change)?;
                writer.added(change)?;
            }
            None if change.kind == ChangeKind::Added => writer.added(change)?,
            None if change.kind == ChangeKind::Deleted => writer.deleted(change)?,
            None if change.kind == ChangeKind::Linked => writer.linked(change)?,
            None => writer.modified(change)?,
        }
    }
    Ok(())
}

/// One side of a difference.
pub(super) enum Side {
    Absent,
    Text(Vec<u8>),
    Binary(u64),
    TooLarge(u64),
    Unreadable,
}

impl Side {
    pub(super) fn read(layers: &Layers, path: &Path, at: Option<Located>) -> Self {
        let Some(at) = at else { return Self::Absent };
        if !matches!(at.found.kind, EntryKind::File | EntryKind::Link) {
            return Self::Absent;
        }
        match read(layers, path, at, MAX_TEXT_BYTES) {
            Ok(Some(content)) if is_binary(&content) => Self::Binary(content.len() as u64),
            Ok(Some(content)) => Self::Text(content),
            Ok(None) => Self::TooLarge(at.found.size),
            // A file of the host may be closed to its owner; ours are not.
            Err(_) => Self::Unreadable,
        }
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => Some(&[]),
            Self::Text(text) => Some(text),
            Self::Binary(_) | Self::TooLarge(_) | Self::Unreadable => None,
        }
    }
}

struct Writer<'w> {
    layers: &'w Layers,
    options: RenderOptions,
    out: &'w mut dyn Write,
}

impl Writer<'_> {
    fn renamed(&mut self, from: &Change, to: &Change, similarity: u8) -> Result<()> {
        self.start(&from.path, &to.path)?;
        self.modes(from.old_at, to.new_at)?;
        self.header(&format!("similarity index {similarity}%"))?;
        self.header(&format!("rename from {}", quoted_with_prefix("", &from.path)))?;
        self.header(&format!("rename to {}", quoted_with_prefix("", &to.path)))?;
        if similarity == 100 {
            return Ok(());
        }
        let old = Side::read(self.layers, &from.path, from.old_at);
        let new = Side::read(self.layers, &to.path, to.new_at);
        self.body((&from.path, &old), (&to.path, &new))
    }

    fn added(&mut self, change: &Change) -> Result<()> {
        if change.is_directory() {
            return self.directory(change, "new directory");
        }
        self.start(&change.path, &change.path)?;
        if let Some(new) = change.new_at {
            self.header(&format!("new file mode {}", mode(new)))?;
        }
        let new = Side::read(self.layers, &change.path, change.new_at);
        self.body((&change.path, &Side::Absent), (&change.path, &new))
    }

    fn deleted(&mut self, change: &Change) -> Result<()> {
        let Some(old) = change.old_at else { return Ok(()) };
        if old.found.is_directory() {
            return match change.kind {
                // Its files say so.
                ChangeKind::TypeChanged => Ok(()),
                _ => self.directory(change, "deleted directory"),
            };
        }
        self.start(&change.path, &change.path)?;
        self.header(&format!("deleted file mode {}", mode(old)))?;
        let old = Side::read(self.layers, &change.path, change.old_at);
        self.body((&change.path, &old), (&change.path, &Side::Absent))
    }

    fn modified(&mut self, change: &Change) -> Result<()> {
        self.start(&change.path, &change.path)?;
        self.modes(change.old_at, change.new_at)?;
        match change.kind {
            ChangeKind::Modified => {
                let old = Side::read(self.layers, &change.path, change.old_at);
                let new = Side::read(self.layers, &change.path, change.new_at);
                self.body((&change.path, &old), (&change.path, &new))
            }
            ChangeKind::AttributesChanged => {
                writeln!(self.out, "Extended attributes of {} differ", name(change))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// git has no such links; this line is one that it skips.
    fn linked(&mut self, change: &Change) -> Result<()> {
        let Some(file) = &change.hard_link_of else { return Ok(()) };
        writeln!(self.out, "# {} is the same file as {} now", name(change), quoted(file))?;
        Ok(())
    }

    /// git has no directories; this line is one that it skips.
    fn directory(&mut self, change: &Change, what: &str) -> Result<()> {
        writeln!(self.out, "# {what}: {}", name(change))?;
        Ok(())
    }

    fn start(&mut self, old: &Path, new: &Path) -> Result<()> {
        let (old, new) = (quoted_with_prefix("a/", old), quoted_with_prefix("b/", new));
        self.header(&format!("diff --git {old} {new}"))
    }

    fn modes(&mut self, old: Option<Located>, new: Option<Located>) -> Result<()> {
        if let (Some(old), Some(new)) = (old, new)
            && mode(old) != mode(new)
        {
            self.header(&format!("old mode {}", mode(old)))?;
            self.header(&format!("new mode {}", mode(new)))?;
        }
        Ok(())
    }

    fn body(&mut self, old: (&Path, &Side), new: (&Path, &Side)) -> Result<()> {
        let names = (side_name("a/", old), side_name("b/", new));
        let (Some(one), Some(other)) = (old.1.text(), new.1.text()) else {
            let is_shown = |side: &Side| !matches!(side, Side::TooLarge(_) | Side::Unreadable);
            let what = if is_shown(old.1) && is_shown(new.1) { "Binary files" } else { "Files" };
            let why = match (old.1, new.1) {
                (Side::TooLarge(bytes), _) | (_, Side::TooLarge(bytes)) => {
                    format!(" (too large to be shown: {bytes} bytes)")
                }
                (Side::Unreadable, _) | (_, Side::Unreadable) => " (cannot be read)".to_owned(),
                _ => String::new(),
            };
            writeln!(self.out, "{what} {} and {} differ{why}", names.0, names.1)?;
            return Ok(());
        };
        let hunks = between(one, other);
        if hunks.is_empty() {
            return Ok(());
        }
        self.header(&format!("--- {}", followed(&names.0)))?;
        self.header(&format!("+++ {}", followed(&names.1)))?;
        hunks.iter().try_for_each(|hunk| write_hunk(hunk, self.options, self.out))
    }

    fn header(&mut self, text: &str) -> Result<()> {
        write_coloured(self.options, BOLD, text.as_bytes(), self.out)
    }
}

/// One hunk with its header, as a person is asked about it.
pub fn write_hunk(hunk: &Hunk, options: RenderOptions, out: &mut dyn Write) -> Result<()> {
    write_coloured(options, CYAN, hunk.header().as_bytes(), out)?;
    for line in &hunk.lines {
        let (mark, text, colour) = match line {
            HunkLine::Context(text) => (b' ', text, ""),
            HunkLine::Removed(text) => (b'-', text, RED),
            HunkLine::Added(text) => (b'+', text, GREEN),
        };
        let (text, has_end) = match text.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (text.as_slice(), false),
        };
        let mut shown = vec![mark];
        if options.to_terminal {
            shown.extend(visible(text));
        } else {
            shown.extend(text);
        }
        write_coloured(options, colour, &shown, out)?;
        if !has_end {
            writeln!(out, "\\ No newline at end of file")?;
        }
    }
    Ok(())
}

fn write_coloured(
    options: RenderOptions,
    colour: &str,
    text: &[u8],
    out: &mut dyn Write,
) -> Result<()> {
    let is_coloured = options.colour && !colour.is_empty();
    if is_coloured {
        out.write_all(colour.as_bytes())?;
    }
    out.write_all(text)?;
    if is_coloured {
        out.write_all(RESET.as_bytes())?;
    }
    out.write_all(b"\n")?;
    Ok(())
}

fn side_name(prefix: &str, (path, side): (&Path, &Side)) -> String {
    match side {
        Side::Absent => "/dev/null".to_owned(),
        _ => quoted_with_prefix(prefix, path),
    }
}

/// git and patch(1) end a name with a tab if it contains blanks.
fn followed(name: &str) -> String {
    if name.contains(' ') && !name.starts_with('"') { format!("{name}\t") } else { name.to_owned() }
}

/// Type and permissions in octal, as git writes them, but with all permission bits.
fn mode(at: Located) -> String {
    let kind = match at.found.kind {
        EntryKind::Link => return "120000".to_owned(),
        EntryKind::File => 0o100_000,
        EntryKind::Directory => 0o040_000,
        EntryKind::Fifo => 0o010_000,
        EntryKind::Socket => 0o140_000,
        EntryKind::Device => 0o020_000,
    };
    format!("{:06o}", kind | at.found.mode)
}
