//! What arrived, one JSON object a line, for the test to read. A line is whole or not there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Journal {
    file: Arc<File>,
}

impl Journal {
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join("journal.jsonl");
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file: Arc::new(file) })
    }

    pub(crate) fn note(&self, entry: &Value) {
        let line = format!("{entry}\n");
        // One write to an O_APPEND file: threads do not mix their lines.
        if let Err(error) = (&*self.file).write_all(line.as_bytes()) {
            eprintln!("palisade-netlab: journal: {error}");
        }
    }
}
