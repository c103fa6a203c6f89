//! `sandbox audit export`: a part of the log for somebody else, with what proves that it is one.

use super::view::{Filter, meant};
use super::{nothing_recorded, tell_that_nothing_is_recorded, told};
use crate::output;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use palisade_record::{Record, escape, read};
use palisade_session::AppDirs;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
A file in the format jsonl has everything from the first to the last record that is asked for, without a gap, and where in the
chain that is. `sandbox audit verify --file` checks it on any machine. So the export of one session has the records of runs
beside it, too. Keep the hash that is printed apart from the file: with it, an exchange of the whole file shows
(`--head HASH`). The log itself is verified first.

The format csv is for tables. It has only the records that were asked for, and proves nothing.

Examples:
  sandbox audit export work --output work.jsonl
  sandbox audit export --since 2026-11-01 --output november.jsonl
  sandbox audit export work --format csv > work.csv";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(super) struct Export {
    /// The run or session, by its id, the beginning or end of it, or its name [default: all]
    #[arg(id = "sid", value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    filter: Filter,

    /// Write to this file, for you only [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How the records are written
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
}

impl Export {
    pub(super) fn execute(self, places: &AppDirs) -> anyhow::Result<ExitCode> {
        if self.session.is_none() && nothing_recorded(places) {
            return Ok(tell_that_nothing_is_recorded());
        }
        let id = self.session.as_deref().map(|named| meant(places, named)).transpose()?;
        let mut is_wanted = |record: &Record| {
            id.as_ref().is_none_or(|id| record.event.sandbox_id == *id)
                && self.filter.includes(record)
        };
        let Some(path) = &self.output else {
            let mut to = BufWriter::new(io::stdout().lock());
            return self.write(places, &mut is_wanted, (&mut to, Path::new("standard output")));
        };
        // An earlier export stays until this one is complete.
        let unfinished = Unfinished::create(path)?;
        let mut to = BufWriter::new(&unfinished.file);
        let code = self.write(places, &mut is_wanted, (&mut to, path))?;
        to.flush().with_context(|| format!("cannot write {}", path.display()))?;
        drop(to);
        unfinished.finish(path)?;
        Ok(code)
    }

    fn write(
        &self,
        places: &AppDirs,
        mut is_wanted: &mut dyn FnMut(&Record) -> bool,
        (mut to, path): (&mut dyn Write, &Path),
    ) -> anyhow::Result<ExitCode> {
        let log = (places.audit_log(), places.audit_head());
        if self.format == Format::Csv {
            let count = write_table(&log.0, is_wanted, to)
                .with_context(|| format!("cannot write {}", path.display()))?;
            output::note(&format!("{count} records, without a proof"));
            return Ok(ExitCode::SUCCESS);
        }
        let logs = (log.0.as_path(), log.1.as_path());
        match palisade_record::export(logs, &mut is_wanted, (&mut to, path)) {
            Ok(Some(header)) => {
                let (records, head) = (header.records(), header.head);
                output::note(&format!("{records} records; the last has the hash {head}"));
                Ok(ExitCode::SUCCESS)
            }
            Ok(None) => bail!("no record matches"),
            Err(fault) => bail!("{}: {fault}", log.0.display()),
        }
    }
}

/// A file beside the one that is asked for, until it is complete. What is in the log is nobody else's business.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    fn create(wanted: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot create {}", wanted.display());
        let mut name = wanted.file_name().with_context(failed)?.to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let path = wanted.with_file_name(name);
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600).custom_flags(flags);
        let file = options.open(&path).with_context(failed)?;
        Ok(Self { path, file })
    }

    fn finish(self, wanted: &Path) -> anyhow::Result<()> {
        std::fs::rename(&self.path, wanted)
            .with_context(|| format!("cannot write {}", wanted.display()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Gone already if it was completed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn write_table(
    log: &Path,
    is_wanted: &mut dyn FnMut(&Record) -> bool,
    to: &mut dyn Write,
) -> anyhow::Result<u64> {
    writeln!(to, "seq,timestamp,session,level,state,event,text")?;
    let mut count = 0;
    for record in read(log, None)? {
        let record = record?;
        if !is_wanted(&record) {
            continue;
        }
        let event = &record.event;
        let fields = [
            record.seq.to_string(),
            event.timestamp.to_string(),
            event.sandbox_id.clone(),
            told::word(&event.level),
            told::word(&event.state),
            event.kind.name().to_owned(),
            told::text(&event.kind),
        ];
        writeln!(to, "{}", fields.map(|field| cell(&field)).join(","))?;
        count += 1;
    }
    to.flush()?;
    Ok(count)
}

/// A cell is text, whatever is in it: a spreadsheet takes some first characters for a formula.
fn cell(text: &str) -> String {
    let text = escape::text(text);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let shield = if is_formula { "'" } else { "" };
    format!("\"{shield}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::cell;

    /// Proves: AUD-2 escaped-text
    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
        assert_eq!(cell("a\",\"b"), "\"a\"\",\"\"b\"");
        assert!(!cell("a\nb\u{1b}[2J").contains(['\n', '\u{1b}']));
    }
}
