//! The promises, as `docs/requirements.yaml` lists them: ids, their clauses, and which are walls.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::tree;

const FILE: &str = "docs/requirements.yaml";

/// One promise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) clauses: BTreeMap<String, String>,
    /// Clauses that count only with a layers-off proof.
    #[serde(default)]
    pub(crate) walls: BTreeMap<String, String>,
}

/// A clause by name, written `FS-7 private-proc`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Clause {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl FromStr for Clause {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            [id, name] => Ok(Self { id: (*id).to_owned(), name: (*name).to_owned() }),
            _ => bail!("`{text}` is not an id and a clause, such as `FS-7 private-proc`"),
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.id, self.name)
    }
}

/// Reads the list.
pub(crate) fn load() -> Result<Vec<Requirement>> {
    let path = tree::root().join(FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).context(FILE)
}

fn parse(text: &str) -> Result<Vec<Requirement>> {
    let requirements: Vec<Requirement> = serde_saphyr::from_str(text)?;
    for (index, requirement) in requirements.iter().enumerate() {
        let id = &requirement.id;
        if requirements[..index].iter().any(|earlier| earlier.id == *id) {
            bail!("{id} is listed twice");
        }
        if let Some(name) =
            requirement.clauses.keys().find(|name| requirement.walls.contains_key(*name))
        {
            bail!("{id} {name} is both a clause and a wall");
        }
        if requirement.clauses.is_empty() && requirement.walls.is_empty() {
            bail!("{id} has no clause");
        }
    }
    Ok(requirements)
}

/// Whether the list has this clause; if not, what it has instead.
pub(crate) fn check_known(clause: &Clause, requirements: &[Requirement]) -> Result<()> {
    let Some(requirement) = requirements.iter().find(|known| known.id == clause.id) else {
        bail!("{FILE} has no requirement {}", clause.id);
    };
    let mut names = requirement.clauses.keys().chain(requirement.walls.keys());
    if names.clone().any(|name| *name == clause.name) {
        return Ok(());
    }
    let known = names.by_ref().map(String::as_str).collect::<Vec<_>>().join(", ");
    bail!("{FILE} has no clause `{clause}`; {} has {known}", clause.id)
}

#[cfg(test)]
mod tests {
    use super::{Clause, check_known, load, parse};

    #[test]
    fn the_committed_list_is_sound() {
        assert!(load().unwrap().len() > 60);
    }

    #[test]
    fn an_id_listed_twice_is_refused() {
        let twice =
            "- {id: A-1, title: a, clauses: {x: x}}\n- {id: A-1, title: a, clauses: {y: y}}";
        assert!(parse(twice).unwrap_err().to_string().contains("listed twice"));
    }

    #[test]
    fn a_clause_that_is_also_a_wall_is_refused() {
        let both = "- {id: A-1, title: a, clauses: {x: x}, walls: {x: x}}";
        assert!(parse(both).unwrap_err().to_string().contains("both"));
    }

    #[test]
    fn an_unknown_clause_names_the_known_ones() {
        let requirements = parse("- {id: A-1, title: a, clauses: {x: x}, walls: {y: y}}").unwrap();
        let clause: Clause = "A-1 z".parse().unwrap();
        let message = check_known(&clause, &requirements).unwrap_err().to_string();
        assert!(message.ends_with("A-1 has x, y"), "{message}");
        check_known(&"A-1 y".parse().unwrap(), &requirements).unwrap();
    }
}
