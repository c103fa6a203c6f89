//! Turns the system call tables and the rule files of `resources/seccomp` into static data, so that
//! a filter is assembled at each start without parsing, and a mistake in the data stops the build.
//! It must never guess: an unknown name, errno, switch or word is an error with its file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/rules.rs"]
mod rules;

use rules::RuleFile;

type Table = BTreeMap<String, u32>;

fn main() -> Result<(), String> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| e.to_string())?);

    let x86_64 = read_table(&root.join("src/tables/x86_64.txt"))?;
    let aarch64 = read_table(&root.join("src/tables/aarch64.txt"))?;
    let tables = table_source("X86_64", &x86_64)? + &table_source("AARCH64", &aarch64)?;
    write(&out.join("tables.rs"), &tables)?;

    let resources = root.join("../../resources/seccomp");
    let mut baseline = RuleFile::new(&x86_64, &aarch64);
    baseline.read(&resources.join("baseline.txt"))?;
    baseline.require_every_name()?;
    let mut groups = baseline.source("BASELINE");
    for (file, name) in [
        ("init.txt", "INIT"),
        ("broker.txt", "BROKER"),
        ("keeper.txt", "KEEPER"),
        ("gatefs.txt", "GATEFS"),
        ("egress.txt", "EGRESS"),
        ("maker.txt", "MAKER"),
        ("proxy.txt", "PROXY"),
    ] {
        let mut own = RuleFile::new(&x86_64, &aarch64);
        own.read(&resources.join(file))?;
        groups += &own.source(name);
    }
    write(&out.join("groups.rs"), &groups)?;
    write(&out.join("errnos.rs"), &rules::errno_source())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn read_table(path: &Path) -> Result<Table, String> {
    let text = read(path)?;
    let mut table = Table::new();
    let mut numbers = BTreeSet::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let at = |what: &str| format!("{}:{}: {what}", path.display(), index + 1);
        let (name, number) = line.split_once(' ').ok_or_else(|| at("expected `name number`"))?;
        let number = number.parse().map_err(|_| at("not a number"))?;
        if !numbers.insert(number) || table.insert(name.to_owned(), number).is_some() {
            return Err(at("name or number listed twice"));
        }
    }
    Ok(table)
}

fn table_source(name: &str, table: &Table) -> Result<String, String> {
    let mut by_number: Vec<_> = table.iter().map(|(name, number)| (number, name)).collect();
    by_number.sort();
    let mut text = String::new();
    writeln!(text, "static {name}_BY_NAME: &[(&str, u32)] = &{:?};", Vec::from_iter(table))
        .map_err(|e| e.to_string())?;
    writeln!(text, "static {name}_BY_NUMBER: &[(u32, &str)] = &{by_number:?};")
        .map_err(|e| e.to_string())?;
    Ok(text)
}
