//! Decodes and checks one value by the type of its key. The result is in the key's own unit.

use super::mistake::{Mistake, Mistakes, items, mistake};
use super::{network, rules};
use crate::keys::{TOOL_NAMES, ValueKind};
use crate::limit::LimitKind;
use crate::model::Approval;
use crate::nearest::nearest;
use crate::settings::Value;
use crate::syntax::tree::{Node, Tree};
use crate::units;
use std::collections::BTreeMap;

/// On failure, returns every wrong entry.
pub(crate) fn decode_value(kind: ValueKind, node: &Node, file: &str) -> Result<Value, Mistakes> {
    let number = |decoded: Option<u64>, zero: Zero, expected: &str| match decoded {
        Some(0) if zero == Zero::Refused => mistake(node, "above zero"),
        Some(number) => Ok(Value::Number(number)),
        None => mistake(node, expected),
    };
    match kind {
        ValueKind::Word(words) => decode_word(words, node),
        ValueKind::Bool => match node.tree {
            Tree::Bool(value) => Ok(Value::Bool(value)),
            _ => mistake(node, "true or false"),
        },
        ValueKind::Size => {
            number(quantity(node, units::parse_size), Zero::Refused, "a size such as 512m or 1g")
        }
        ValueKind::SizeOrZero => {
            let size = quantity(node, units::parse_size);
            number(size, Zero::Allowed, "a size such as 512m, or 0 for none")
        }
        ValueKind::Millis => {
            let millis = quantity(node, units::parse_millis);
            number(millis, Zero::Refused, "a time such as 1500ms, 300s, 2m or 1h")
        }
        ValueKind::Cpus => decode_cpus(node),
        ValueKind::CpuSet => decode_cpu_set(node),
        ValueKind::LimitNames => {
            let names = LimitKind::ALL.map(LimitKind::name);
            items(node, "the name of a limit", |item| one_word(&names, item)).map(Value::List)
        }
        ValueKind::Count => number(whole(node), Zero::Refused, "a whole number"),
        ValueKind::CountOrZero => number(whole(node), Zero::Allowed, "a whole number"),
        ValueKind::Id => match whole(node).filter(|id| u32::try_from(*id).is_ok()) {
            Some(id) => Ok(Value::Number(id)),
            None => mistake(node, "a user or group id"),
        },
        ValueKind::Seconds => match node.tree {
            Tree::Integer(number) => i64::try_from(number)
                .map(Value::Seconds)
                .or_else(|_| mistake(node, "a number of seconds")),
            _ => mistake(node, "a number of seconds"),
        },
        ValueKind::Path => text_of(node, is_path, "a path").map(Value::Text),
        ValueKind::Hostname => text_of(node, is_hostname, "a host name").map(Value::Text),
        ValueKind::Paths => list_of(node, is_path, "a path"),
        ValueKind::Hosts => network::decode_hosts(node),
        ValueKind::PrivateRanges => network::decode_private(node),
        ValueKind::Tools => {
            items(node, "the name of a tool", |item| one_word(&TOOL_NAMES, item)).map(Value::List)
        }
        ValueKind::Upstream => network::decode_upstream(node),
        ValueKind::Webhook => network::decode_webhook(node),
        ValueKind::Published => network::decode_publish(node),
        ValueKind::Credentials => network::decode_credentials(node),
        ValueKind::EnvNames => list_of(node, is_env_name, "a variable's name"),
        ValueKind::Executables => list_of(node, is_path, "a program's name or path"),
        ValueKind::SyscallNames => list_of(node, is_syscall, "a system call's name"),
        ValueKind::Ports => decode_ports(node),
        ValueKind::EnvMap => decode_env(node),
        ValueKind::Approvals => decode_approvals(node),
        ValueKind::Rules => rules::decode(node, file),
    }
}

#[derive(PartialEq, Eq)]
enum Zero {
    Refused,
    Allowed,
}

fn decode_word(words: &'static [(&str, &'static str)], node: &Node) -> Result<Value, Mistakes> {
    let typed = match &node.tree {
        Tree::Text(text) => text.clone(),
        Tree::Integer(number) => number.to_string(),
        Tree::Bool(value) => value.to_string(),
        _ => String::new(),
    };
    if let Some((_, canonical)) = words.iter().find(|(accepted, _)| *accepted == typed) {
        return Ok(Value::Word(canonical));
    }
    let accepted: Vec<&str> = words.iter().map(|(accepted, _)| *accepted).collect();
    mistake(node, &one_of(&accepted, &typed))
}

/// The accepted words, and the one that the user probably meant.
fn one_of(accepted: &[&str], typed: &str) -> String {
    let expected = format!("one of {}", accepted.join(", "));
    // Another number is not a typing error: LEVEL_7 is no nearer to LEVEL_0 than to LEVEL_2.
    let is_number = typed.ends_with(|last: char| last.is_ascii_digit());
    match nearest(typed, accepted.iter().copied()).filter(|_| !is_number) {
        Some(near) => format!("{expected} (nearest: {near})"),
        None => expected,
    }
}

fn whole(node: &Node) -> Option<u64> {
    match &node.tree {
        Tree::Integer(number) => u64::try_from(*number).ok(),
        // For example `1e3`. Above 2^53 a float no longer identifies one whole number.
        Tree::Float(number) if number.fract() == 0.0 && (0.0..9e15).contains(number) => {
            format!("{number:.0}").parse().ok()
        }
        _ => None,
    }
}

fn quantity(node: &Node, parse: fn(&str) -> Option<u64>) -> Option<u64> {
    match &node.tree {
        Tree::Text(text) => parse(text),
        _ => whole(node),
    }
}

fn decode_cpus(node: &Node) -> Result<Value, Mistakes> {
    let milli = match &node.tree {
        Tree::Integer(number) => units::parse_cpus(&number.to_string()),
        Tree::Float(number) => units::parse_cpus(&number.to_string()),
        Tree::Text(text) => units::parse_cpus(text),
        _ => None,
    };
    match milli.filter(|milli| *milli > 0) {
        Some(milli) => Ok(Value::Number(milli)),
        None => mistake(node, "a number of CPUs above zero, such as 1.5"),
    }
}

/// YAML reads a single CPU as a number.
fn decode_cpu_set(node: &Node) -> Result<Value, Mistakes> {
    let cpus = match &node.tree {
        Tree::Text(text) => units::parse_cpu_set(text),
        Tree::Integer(number) => units::parse_cpu_set(&number.to_string()),
        _ => None,
    };
    match cpus {
        Some(cpus) => Ok(Value::Cpus(cpus)),
        None => {
            mistake(node, "numbers of CPUs and spans from a lower to a higher one, such as 0-3,5")
        }
    }
}

fn one_word(words: &[&str], node: &Node) -> Result<String, Mistakes> {
    match &node.tree {
        Tree::Text(name) if words.contains(&name.as_str()) => Ok(name.clone()),
        Tree::Text(name) => mistake(node, &one_of(words, name)),
        _ => mistake(node, &one_of(words, "")),
    }
}

fn text_of(node: &Node, valid: fn(&str) -> bool, expected: &str) -> Result<String, Mistakes> {
    match &node.tree {
        Tree::Text(text) if valid(text) => Ok(text.clone()),
        _ => mistake(node, expected),
    }
}

fn list_of(node: &Node, valid: fn(&str) -> bool, expected: &str) -> Result<Value, Mistakes> {
    items(node, expected, |item| text_of(item, valid, expected)).map(Value::List)
}

fn decode_ports(node: &Node) -> Result<Value, Mistakes> {
    let port = |item: &Node| match whole(item).and_then(|port| u16::try_from(port).ok()) {
        Some(port) if port > 0 => Ok(port),
        _ => mistake(item, "a port from 1 to 65535"),
    };
    items(node, "a port from 1 to 65535", port).map(Value::Ports)
}

fn decode_env(node: &Node) -> Result<Value, Mistakes> {
    let Tree::Map(entries) = &node.tree else {
        return mistake(node, "a mapping of names to text");
    };
    let mut map = BTreeMap::new();
    let mut mistakes = Vec::new();
    for entry in entries {
        match &entry.value.tree {
            Tree::Text(text) if is_env_name(&entry.key) && !text.contains('\0') => {
                if map.insert(entry.key.clone(), text.clone()).is_some() {
                    let expected = format!("a mapping that gives `{}` once", entry.key);
                    mistakes.push(Mistake { found: entry.value.clone(), expected });
                }
            }
            _ => mistakes.push(Mistake {
                found: entry.value.clone(),
                expected: "a mapping of variable names to text (put numbers in quotes)".to_owned(),
            }),
        }
    }
    if mistakes.is_empty() { Ok(Value::Map(map)) } else { Err(mistakes) }
}

fn decode_approvals(node: &Node) -> Result<Value, Mistakes> {
    const EXPECTED: &str = "a mapping with `what` and a `reason`";
    let approval = |item: &Node| {
        let field = |name| match item.get(name).map(|node| &node.tree) {
            Some(Tree::Text(text)) if !text.trim().is_empty() => Ok(text.clone()),
            _ => mistake(item, EXPECTED),
        };
        let approval = Approval { what: field("what")?, reason: field("reason")? };
        match &item.tree {
            Tree::Map(entries) if entries.len() == 2 => Ok(approval),
            _ => mistake(item, EXPECTED),
        }
    };
    items(node, EXPECTED, approval).map(Value::Approvals)
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

fn is_hostname(text: &str) -> bool {
    // 64 is the kernel's __NEW_UTS_LEN (sethostname(2)).
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    !text.is_empty() && text.len() <= 64 && text.chars().all(valid)
}

fn is_env_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['=', '\0'])
}

fn is_syscall(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.chars().all(valid)
}
