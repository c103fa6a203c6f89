//! Turns the system call tables and the rule files of `resources/seccomp` into static data, so that
//! a filter is assembled at each start without parsing, and a mistake in the data stops the build.
//! It must never guess: an unknown name, errno, switch or word is an error with its file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const ERRNOS: [(&str, u16); 6] = [
    ("EPERM", 1),
    ("EACCES", 13),
    ("ENOSYS", 38),
    ("EPROTONOSUPPORT", 93),
    ("ESOCKTNOSUPPORT", 94),
    ("EAFNOSUPPORT", 97),
];

const SWITCHES: [(&str, &str); 6] = [
    ("debug", "Debug"),
    ("refuse-setid-modes", "RefuseSetidModes"),
    ("deny-inet", "DenyInet"),
    ("deny-unix", "DenyUnix"),
    ("deny-others", "DenyOthers"),
    ("deny-fork", "DenyFork"),
];

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
    let mut init = RuleFile::new(&x86_64, &aarch64);
    init.read(&resources.join("init.txt"))?;
    let groups = baseline.source("BASELINE") + &init.source("INIT");
    write(&out.join("groups.rs"), &groups)
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

struct Group {
    name: String,
    decision: String,
    reason: String,
    entries: Vec<Entry>,
}

struct Entry {
    name: String,
    rules: Vec<String>,
}

struct RuleFile<'a> {
    tables: [&'a Table; 2],
    constants: BTreeMap<String, u64>,
    groups: Vec<Group>,
    seen: BTreeSet<String>,
    /// How many entries, counted from the end of the last group, the next rule line belongs to.
    names_on_last_line: usize,
}

impl<'a> RuleFile<'a> {
    fn new(x86_64: &'a Table, aarch64: &'a Table) -> Self {
        Self {
            tables: [x86_64, aarch64],
            constants: BTreeMap::new(),
            groups: Vec::new(),
            seen: BTreeSet::new(),
            names_on_last_line: 0,
        }
    }

    fn read(&mut self, path: &Path) -> Result<(), String> {
        for (index, line) in read(path)?.lines().enumerate() {
            self.line(line).map_err(|e| format!("{}:{}: {e}", path.display(), index + 1))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        match line.len() - line.trim_start().len() {
            0 => match content.split_once(' ') {
                Some(("define", definition)) => self.define(definition),
                Some(("group", header)) => self.group(header),
                _ => Err("expected `define` or `group`".to_owned()),
            },
            4 => match content.strip_prefix("why ") {
                Some(reason) => self.reason(reason),
                None => self.names(content),
            },
            8 => self.rule(content),
            _ => Err("indent by 0, 4 or 8 blanks".to_owned()),
        }
    }

    fn define(&mut self, definition: &str) -> Result<(), String> {
        let (name, values) = definition.split_once(' ').ok_or("a constant needs a value")?;
        let (complement, values) = match values.trim().strip_prefix("not ") {
            Some(values) => (true, values),
            None => (false, values),
        };
        let mut bits = 0;
        for value in values.split('|') {
            bits |= self.value(value.trim())?;
        }
        let value = if complement { !bits } else { bits };
        match self.constants.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is defined twice")),
        }
    }

    fn value(&self, word: &str) -> Result<u64, String> {
        let parsed = if let Some(digits) = word.strip_prefix("0x") {
            u64::from_str_radix(digits, 16).ok()
        } else if let Some(digits) = word.strip_prefix("0o") {
            u64::from_str_radix(digits, 8).ok()
        } else {
            word.parse().ok()
        };
        parsed
            .or_else(|| self.constants.get(word).copied())
            .ok_or_else(|| format!("`{word}` is neither a number nor defined above"))
    }

    fn group(&mut self, header: &str) -> Result<(), String> {
        let (name, decision) = header.split_once(": ").ok_or("expected `group NAME: DECISION`")?;
        let decision = match decision.split(' ').collect::<Vec<_>>()[..] {
            ["allow"] => "Allow".to_owned(),
            ["refuse", errno] => format!("Refuse {{ errno: {} }}", errno_number(errno)?),
            ["refuse", errno, "always"] => {
                format!("AlwaysRefuse {{ errno: {} }}", errno_number(errno)?)
            }
            ["allow", "when", switch, "else", errno] => format!(
                "AllowWhen {{ switch: Switch::{}, errno: {} }}",
                switch_name(switch)?,
                errno_number(errno)?
            ),
            _ => return Err(format!("`{decision}` is no decision")),
        };
        self.names_on_last_line = 0;
        self.groups.push(Group {
            name: name.to_owned(),
            decision,
            reason: String::new(),
            entries: Vec::new(),
        });
        Ok(())
    }

    fn last_group(&mut self) -> Result<&mut Group, String> {
        self.groups.last_mut().ok_or_else(|| "stands before the first group".to_owned())
    }

    fn reason(&mut self, reason: &str) -> Result<(), String> {
        let group = self.last_group()?;
        if !group.reason.is_empty() {
            return Err("a group has one reason, on one line".to_owned());
        }
        reason.clone_into(&mut group.reason);
        Ok(())
    }

    fn names(&mut self, names: &str) -> Result<(), String> {
        self.names_on_last_line = 0;
        for name in names.split(' ') {
            if !self.tables.iter().any(|table| table.contains_key(name)) {
                return Err(format!("`{name}` is no system call of any table"));
            }
            if !self.seen.insert(name.to_owned()) {
                return Err(format!("`{name}` is decided twice"));
            }
            let group = self.last_group()?;
            if group.reason.is_empty() {
                return Err("the reason (`why …`) comes before the names".to_owned());
            }
            group.entries.push(Entry { name: name.to_owned(), rules: Vec::new() });
            self.names_on_last_line += 1;
        }
        Ok(())
    }

    fn rule(&mut self, text: &str) -> Result<(), String> {
        let (head, conditions) = match text.split_once(" if ") {
            Some((head, conditions)) => (head, conditions.split(" and ").collect()),
            None => (text, Vec::new()),
        };
        let (action, switch) = match head.split_once(" when ") {
            Some((action, switch)) => (action, format!("Some(Switch::{})", switch_name(switch)?)),
            None => (head, "None".to_owned()),
        };
        let action = match action {
            "allow" => "Action::Allow".to_owned(),
            errno => format!("Action::Errno({})", errno_number(errno)?),
        };
        let conditions: Vec<String> =
            conditions.into_iter().map(|text| self.condition(text)).collect::<Result<_, _>>()?;
        let rule = format!(
            "EntryRule {{ when: {switch}, conditions: &[{}], action: {action} }}",
            conditions.join(", ")
        );
        let count = self.names_on_last_line;
        let entries = &mut self.last_group()?.entries;
        if count == 0 {
            return Err("a rule stands under a line of names".to_owned());
        }
        let first = entries.len() - count;
        entries[first..].iter_mut().for_each(|entry| entry.rules.push(rule.clone()));
        Ok(())
    }

    fn condition(&self, text: &str) -> Result<String, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let (argument, operation) = words.split_first().ok_or("an empty condition")?;
        let (argument, width) = match argument.strip_suffix(":32") {
            Some(argument) => (argument, "Low32"),
            None => (*argument, "Full"),
        };
        let arg = match argument {
            "arg0" | "arg1" | "arg2" | "arg3" | "arg4" | "arg5" => argument.replace("arg", "A"),
            _ => return Err(format!("`{argument}` is no argument: arg0 to arg5")),
        };
        let test = match operation {
            ["==", value] => format!("Eq({:#x})", self.value(value)?),
            ["!=", value] => format!("Ne({:#x})", self.value(value)?),
            ["any", mask] => format!("MaskedAny {{ mask: {:#x} }}", self.value(mask)?),
            ["&", mask, "==", value] => format!(
                "MaskedEq {{ mask: {:#x}, value: {:#x} }}",
                self.value(mask)?,
                self.value(value)?
            ),
            _ => return Err(format!("`{text}` is no condition")),
        };
        Ok(format!("Condition {{ arg: Arg::{arg}, width: Width::{width}, test: Test::{test} }}"))
    }

    fn require_every_name(&self) -> Result<(), String> {
        let undecided: Vec<&String> =
            self.tables.iter().flat_map(|t| t.keys()).filter(|n| !self.seen.contains(*n)).collect();
        if undecided.is_empty() {
            Ok(())
        } else {
            Err(format!("baseline.txt decides nothing for {undecided:?}"))
        }
    }

    fn source(&self, name: &str) -> String {
        let [x86_64, aarch64] = self.tables;
        let groups: Vec<String> = self
            .groups
            .iter()
            .map(|group| {
                let entries: Vec<String> = group
                    .entries
                    .iter()
                    .map(|entry| {
                        format!(
                            "Entry {{ name: {:?}, x86_64: {:?}, aarch64: {:?}, rules: &[{}] }}",
                            entry.name,
                            x86_64.get(&entry.name),
                            aarch64.get(&entry.name),
                            entry.rules.join(", ")
                        )
                    })
                    .collect();
                format!(
                    "Group {{ name: {:?}, reason: {:?}, decision: GroupDecision::{}, entries: &[\n{}\n] }}",
                    group.name,
                    group.reason,
                    group.decision,
                    entries.join(",\n")
                )
            })
            .collect();
        format!("pub(crate) static {name}: &[Group] = &[\n{}\n];\n", groups.join(",\n"))
    }
}

fn errno_number(name: &str) -> Result<u16, String> {
    ERRNOS
        .iter()
        .find_map(|(known, number)| (*known == name).then_some(*number))
        .ok_or_else(|| format!("`{name}` is no errno this file may use"))
}

fn switch_name(name: &str) -> Result<&'static str, String> {
    SWITCHES
        .iter()
        .find_map(|(known, variant)| (*known == name).then_some(*variant))
        .ok_or_else(|| format!("`{name}` is no switch"))
}
