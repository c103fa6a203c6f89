//! What ought to be attacked: `tests/attacks/corpus.yaml`, ids and layers.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::tree;

const FILE: &str = "tests/attacks/corpus.yaml";

/// The whole list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Corpus {
    pub(crate) layers: Vec<Layer>,
    pub(crate) attacks: Vec<Entry>,
}

/// A layer that tests can switch off.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) what: String,
}

/// One kind of attack, of which the tests may have many.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) what: String,
    pub(crate) safe: String,
    #[serde(default)]
    pub(crate) later: Option<Later>,
}

/// The part that an attack, or the rest of it, comes with.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Later {
    pub(crate) part: String,
    pub(crate) why: String,
}

/// Reads the list.
pub(crate) fn load() -> Result<Corpus> {
    let path = tree::root().join(FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).context(FILE)
}

pub(super) fn parse(text: &str) -> Result<Corpus> {
    let corpus: Corpus = serde_saphyr::from_str(text)?;
    for (index, entry) in corpus.attacks.iter().enumerate() {
        if corpus.attacks[..index].iter().any(|earlier| earlier.id == entry.id) {
            bail!("{} is listed twice", entry.id);
        }
    }
    Ok(corpus)
}
