//! The rule files of `resources/seccomp`: one line after the other into the source of static data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Table, read};

const ERRNOS: [(&str, u16); 7] = [
    ("EPERM", 1),
    ("EACCES", 13),
    ("ENOSYS", 38),
    ("EPROTONOSUPPORT", 93),
    ("ESOCKTNOSUPPORT", 94),
    ("EOPNOTSUPP", 95),
    ("EAFNOSUPPORT", 97),
];

const SWITCHES: [(&str, &str); 18] = [
    ("debug", "Debug"),
    ("refuse-setid-modes", "RefuseSetidModes"),
    ("map-root-owner", "MapRootOwner"),
    ("deny-inet", "DenyInet"),
    ("deny-unix", "DenyUnix"),
    ("deny-others", "DenyOthers"),
    ("deny-fork", "DenyFork"),
    ("pin-cpus", "PinCpus"),
    ("deny-anonymous-programs", "DenyAnonymousPrograms"),
    ("deny-memory-files", "DenyMemoryFiles"),
    ("guard-writes", "GuardWrites"),
    ("gate-paths", "GatePaths"),
    ("gate-stubs", "GateStubs"),
    ("rename-directories", "RenameDirectories"),
    ("gate-programs", "GatePrograms"),
    ("ask-changes", "AskChanges"),
    ("guard-exec", "GuardExec"),
    ("watch-exec", "WatchExec"),
];

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

pub(crate) struct RuleFile<'a> {
    tables: [&'a Table; 2],
    constants: BTreeMap<String, u64>,
    groups: Vec<Group>,
    seen: BTreeSet<String>,
    /// How many entries, counted from the end of the last group, the next rule line belongs to.
    names_on_last_line: usize,
    /// What people call the arguments of those.
    parameters: BTreeMap<String, String>,
}

impl<'a> RuleFile<'a> {
    pub(crate) fn new(x86_64: &'a Table, aarch64: &'a Table) -> Self {
        Self {
            tables: [x86_64, aarch64],
            constants: BTreeMap::new(),
            groups: Vec::new(),
            seen: BTreeSet::new(),
            names_on_last_line: 0,
            parameters: BTreeMap::new(),
        }
    }

    pub(crate) fn read(&mut self, path: &Path) -> Result<(), String> {
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
            8 => match content.split_once(" is ") {
                Some((argument, meaning)) => self.parameter(argument, meaning),
                None => self.rule(content),
            },
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
            ["refuse", ref words @ .., "always"] => format!("AlwaysRefuse({})", refusal(words)?),
            ["refuse", ref words @ ..] => format!("Refuse({})", refusal(words)?),
            ["allow", "when", switch, "else", ref words @ ..] => format!(
                "AllowWhen {{ switch: Switch::{}, otherwise: {} }}",
                switch_name(switch)?,
                refusal(words)?
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
        self.parameters.clear();
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

    /// The entries of the last line of names.
    fn last_entries(&mut self) -> Result<&mut [Entry], String> {
        let count = self.names_on_last_line;
        if count == 0 {
            return Err("stands under no line of names".to_owned());
        }
        let entries = &mut self.last_group()?.entries;
        let first = entries.len() - count;
        Ok(&mut entries[first..])
    }

    fn parameter(&mut self, argument: &str, meaning: &str) -> Result<(), String> {
        arg_name(argument)?;
        match self.parameters.insert(argument.to_owned(), meaning.to_owned()) {
            None => Ok(()),
            Some(_) => Err(format!("{argument} is named twice")),
        }
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
        let answer = match action.split(' ').collect::<Vec<_>>()[..] {
            ["allow"] => "CallAnswer::Allow".to_owned(),
            ["broker"] => "CallAnswer::Broker".to_owned(),
            ref words => format!("CallAnswer::Refuse({})", refusal(words)?),
        };
        let conditions: Vec<Comparison> =
            conditions.into_iter().map(Comparison::read).collect::<Result<_, _>>()?;
        let tests: Vec<String> =
            conditions.iter().map(|comparison| self.test(comparison)).collect::<Result<_, _>>()?;
        let words: Vec<String> =
            conditions.iter().map(|comparison| self.words(comparison)).collect();
        let rule = format!(
            "EntryRule {{ when: {switch}, conditions: &[{}], words: {:?}, answer: {answer} }}",
            tests.join(", "),
            words.join(" and "),
        );
        for entry in self.last_entries()? {
            entry.rules.push(rule.clone());
        }
        Ok(())
    }

    fn test(&self, comparison: &Comparison) -> Result<String, String> {
        let test = match comparison.operation {
            Operation::Is(value) => format!("Eq({:#x})", self.value(value)?),
            Operation::IsNot(value) => format!("Ne({:#x})", self.value(value)?),
            Operation::HasAnyOf(mask) => format!("MaskedAny {{ mask: {:#x} }}", self.value(mask)?),
            Operation::MaskedIs { mask, value } => format!(
                "MaskedEq {{ mask: {:#x}, value: {:#x} }}",
                self.value(mask)?,
                self.value(value)?
            ),
        };
        let arg = arg_name(comparison.argument)?;
        let width = if comparison.low_half { "Low32" } else { "Full" };
        Ok(format!("Condition {{ arg: Arg::{arg}, width: Width::{width}, test: Test::{test} }}"))
    }

    /// The same for people.
    fn words(&self, comparison: &Comparison) -> String {
        let number = comparison.argument.trim_start_matches("arg");
        let argument = match self.parameters.get(comparison.argument) {
            Some(meaning) => format!("{meaning} (argument {number})"),
            None => format!("argument {number}"),
        };
        match comparison.operation {
            Operation::Is(value) => format!("{argument} is {value}"),
            Operation::IsNot(value) => format!("{argument} is not {value}"),
            Operation::HasAnyOf(mask) => format!("a bit of {mask} is in {argument}"),
            Operation::MaskedIs { mask, value } if self.value(value) == Ok(0) => {
                format!("no bit of {mask} is in {argument}")
            }
            Operation::MaskedIs { mask, value } => format!("{mask} of {argument} is {value}"),
        }
    }

    pub(crate) fn require_every_name(&self) -> Result<(), String> {
        let undecided: Vec<&String> =
            self.tables.iter().flat_map(|t| t.keys()).filter(|n| !self.seen.contains(*n)).collect();
        if undecided.is_empty() {
            Ok(())
        } else {
            Err(format!("baseline.txt decides nothing for {undecided:?}"))
        }
    }

    pub(crate) fn source(&self, name: &str) -> String {
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

/// One condition of a rule line.
struct Comparison<'a> {
    argument: &'a str,
    /// `:32`.
    low_half: bool,
    operation: Operation<'a>,
}

enum Operation<'a> {
    Is(&'a str),
    IsNot(&'a str),
    HasAnyOf(&'a str),
    MaskedIs { mask: &'a str, value: &'a str },
}

impl<'a> Comparison<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let (argument, operation) = words.split_first().ok_or("an empty condition")?;
        let (argument, low_half) = match argument.strip_suffix(":32") {
            Some(argument) => (argument, true),
            None => (*argument, false),
        };
        let operation = match operation {
            ["==", value] => Operation::Is(value),
            ["!=", value] => Operation::IsNot(value),
            ["any", mask] => Operation::HasAnyOf(mask),
            ["&", mask, "==", value] => Operation::MaskedIs { mask, value },
            _ => return Err(format!("`{text}` is no condition")),
        };
        Ok(Self { argument, low_half, operation })
    }
}

fn arg_name(argument: &str) -> Result<String, String> {
    match argument {
        "arg0" | "arg1" | "arg2" | "arg3" | "arg4" | "arg5" => Ok(argument.replace("arg", "A")),
        _ => Err(format!("`{argument}` is no argument: arg0 to arg5")),
    }
}

/// `ERRNO`, `quietly ERRNO` or `suspicious ERRNO`.
fn refusal(words: &[&str]) -> Result<String, String> {
    let (notice, errno) = match words {
        [errno] => ("Logged", errno),
        ["quietly", errno] => ("Quiet", errno),
        ["suspicious", errno] => ("Suspicious", errno),
        _ => return Err(format!("`{}` is no refusal", words.join(" "))),
    };
    Ok(format!("Refusal {{ errno: {}, notice: Notice::{notice} }}", errno_number(errno)?))
}

/// The errnos of the files with their names, for people.
pub(crate) fn errno_source() -> String {
    format!("static ERRNO_NAMES: &[(&str, u16)] = &{ERRNOS:?};\n")
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
