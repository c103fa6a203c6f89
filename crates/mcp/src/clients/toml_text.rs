//! Edits a TOML file as text: one table of ours is added, replaced or removed, and the result is read again to see that nothing else
//! changed.

use toml::{Table, Value};

type Edited<T> = Result<T, String>;

fn parsed(text: &str) -> Edited<Table> {
    text.parse::<Table>().map_err(|error| error.message().to_owned())
}

/// What `section.name` is.
pub(crate) fn get(text: &str, section: &str, name: &str) -> Edited<Option<Value>> {
    Ok(parsed(text)?.get(section).and_then(|it| it.get(name)).cloned())
}

/// The lines of `[section.name]` and of the tables below it.
fn lines_of(text: &str, section: &str, name: &str) -> (String, bool) {
    let (own, below) = (format!("[{section}.{name}]"), format!("[{section}.{name}."));
    let mut is_ours = false;
    let mut was_there = false;
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let head = line.trim_start();
        if head.starts_with('[') {
            is_ours = head.starts_with(&own) || head.starts_with(&below);
            was_there |= is_ours;
        }
        if !is_ours {
            kept.push_str(line);
        }
    }
    (kept, was_there)
}

/// The text without it, if it can be removed without touching anything else.
pub(crate) fn remove(text: &str, section: &str, name: &str) -> Edited<String> {
    let mut wanted = parsed(text)?;
    let was_there = match wanted.get_mut(section).and_then(Value::as_table_mut) {
        Some(servers) => servers.remove(name).is_some(),
        None => false,
    };
    if !was_there {
        return Ok(text.to_owned());
    }
    let (kept, _) = lines_of(text, section, name);
    let kept =
        if kept.trim().is_empty() { String::new() } else { kept.trim_end().to_owned() + "\n" };
    let mut found = parsed(&kept)?;
    let is_empty =
        |table: &Table| table.get(section).and_then(Value::as_table).is_none_or(Table::is_empty);
    // With its last table, the table around it may go, too.
    if is_empty(&wanted) && is_empty(&found) {
        wanted.remove(section);
        found.remove(section);
    }
    match wanted == found {
        true => Ok(kept),
        false => Err(format!("`{section}.{name}` is not a table of its own; edit it by hand")),
    }
}

/// A text in JSON is one in TOML, too.
fn shown(value: &Value) -> Edited<String> {
    let text = |value: &Value| match value {
        Value::String(text) => serde_json::to_string(text).map_err(|error| error.to_string()),
        other => Err(format!("{} has no place there", other.type_str())),
    };
    match value {
        Value::Array(items) => {
            let items = items.iter().map(text).collect::<Edited<Vec<_>>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        other => text(other),
    }
}

/// The text with it. `value` is a table of texts and lists.
pub(crate) fn set(text: &str, section: &str, name: &str, value: &Table) -> Edited<String> {
    let without = remove(text, section, name)?;
    let mut lines = String::new();
    for (key, value) in value {
        lines.push_str(&format!("{key} = {}\n", shown(value)?));
    }
    let gap = if without.is_empty() { "" } else { "\n" };
    let edited = format!("{without}{gap}[{section}.{name}]\n{lines}");
    let mut wanted = parsed(text)?;
    let servers = wanted.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Some(servers) = servers.as_table_mut() else {
        return Err(format!("`{section}` is not a table"));
    };
    servers.insert(name.to_owned(), Value::Table(value.clone()));
    match parsed(&edited)? == wanted {
        true => Ok(edited),
        false => Err(format!("`[{section}.{name}]` cannot be added; edit it by hand")),
    }
}

#[cfg(test)]
mod tests {
    use super::{get, remove, set};
    use toml::{Table, Value};

    fn ours() -> Table {
        let args = Value::Array(vec!["mcp".into(), "--set=a=\"b\"".into()]);
        Table::from_iter([
            ("command".to_owned(), Value::from("sandbox")),
            ("args".to_owned(), args),
        ])
    }

    #[test]
    fn a_table_is_added_changed_and_removed_and_the_rest_stays() {
        for text in [
            "",
            "# mine\nmodel = \"x\"\n",
            "[mcp_servers.other]\ncommand = \"y\" # yes\n[last]\na = 1\n",
        ] {
            let added = set(text, "mcp_servers", "palisade", &ours()).unwrap();
            assert_eq!(get(&added, "mcp_servers", "palisade").unwrap(), Some(Value::Table(ours())));
            assert_eq!(set(&added, "mcp_servers", "palisade", &ours()).unwrap(), added, "again");
            let removed = remove(&added, "mcp_servers", "palisade").unwrap();
            assert_eq!(removed, text);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for wrong in ["a =", "mcp_servers = 1", "mcp_servers = { palisade = { command = \"x\" } }"]
        {
            assert!(set(wrong, "mcp_servers", "palisade", &ours()).is_err(), "{wrong}");
        }
    }
}
