//! Edits JSON with comments as text, so that everything else in a file stays as somebody wrote it. Strict where it matters: what it
//! does not understand it refuses.

use serde_json::Value;
use std::ops::Range;

/// A member of an object: its name, and where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    key: String,
    /// From the quote of its name to the end of its value.
    whole: Range<usize>,
    value: Range<usize>,
}

struct Object {
    /// With both braces.
    range: Range<usize>,
    members: Vec<Member>,
}

/// Where it stopped, and why.
type Parsed<T> = Result<T, String>;

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn wrong<T>(&self, what: &str) -> Parsed<T> {
        let line = self.text[..self.at.min(self.text.len())].matches('\n').count() + 1;
        Err(format!("line {line}: {what}"))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// White space and comments.
    fn skip(&mut self) -> Parsed<()> {
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.wrong("a comment does not end"),
                }
            } else if let Some(c) = rest.chars().next().filter(|c| " \t\r\n\u{feff}".contains(*c)) {
                self.at += c.len_utf8();
            } else {
                return Ok(());
            }
        }
    }

    fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return self.wrong("a text in quotes is expected");
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
                None => return self.wrong("a text does not end"),
            }
        }
        self.at += 1;
        let text = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(text).or_else(|error| self.wrong(&error.to_string()))
    }

    fn value(&mut self, depth: usize) -> Parsed<()> {
        match self.peek() {
            _ if depth > 64 => self.wrong("it is nested too deeply"),
            Some(b'{') => self.object(depth).map(drop),
            Some(b'[') => {
                self.at += 1;
                loop {
                    self.skip()?;
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        return Ok(());
                    }
                    self.value(depth + 1)?;
                    self.separator(b']')?;
                }
            }
            Some(b'"') => self.string().map(drop),
            _ => {
                let start = self.at;
                let is_part = |c: u8| c.is_ascii_alphanumeric() || b"+-.".contains(&c);
                while self.peek().is_some_and(is_part) {
                    self.at += 1;
                }
                match serde_json::from_str::<Value>(&self.text[start..self.at]) {
                    Ok(_) => Ok(()),
                    Err(_) => self.wrong("a value is expected"),
                }
            }
        }
    }

    /// A comma, or what closes.
    fn separator(&mut self, closing: u8) -> Parsed<()> {
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(c) if c == closing => Ok(()),
            _ => self.wrong("a comma is expected"),
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Object> {
        let start = self.at;
        if self.peek() != Some(b'{') {
            return self.wrong("an object is expected");
        }
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Object { range: start..self.at, members });
            }
            let begin = self.at;
            let key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return self.wrong("a colon is expected");
            }
            self.at += 1;
            self.skip()?;
            let value = self.at;
            self.value(depth + 1)?;
            members.push(Member { key, whole: begin..self.at, value: value..self.at });
            self.separator(b'}')?;
        }
    }
}

fn root(text: &str) -> Parsed<Object> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip()?;
    let object = scanner.object(0)?;
    scanner.skip()?;
    if scanner.at < text.len() {
        return scanner.wrong("something stands after the end");
    }
    Ok(object)
}

/// The member of an object with this name. Two of them are refused: nobody knows which one counts.
fn member<'a>(object: &'a Object, key: &str) -> Parsed<Option<&'a Member>> {
    let mut found = object.members.iter().filter(|member| member.key == key);
    match (found.next(), found.next()) {
        (one, None) => Ok(one),
        _ => Err(format!("`{key}` is there twice")),
    }
}

fn inner(text: &str, member: &Member) -> Parsed<Object> {
    Scanner { text, at: member.value.start }.object(1)
}

/// The indentation of the line on which this is.
fn indentation(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let rest = &text[line..at];
    &rest[..rest.len() - rest.trim_start().len()]
}

/// `"key": value` as the last member of an object.
fn appended(text: &str, object: &Object, key: &str, value: &Value) -> String {
    let outer = indentation(text, object.range.start).to_owned();
    let step = if outer.contains('\t') || text.contains("\n\t") { "\t" } else { "  " };
    let indent = match object.members.first() {
        Some(first) => indentation(text, first.whole.start).to_owned(),
        None => format!("{outer}{step}"),
    };
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let pretty = pretty.replace('\n', &format!("\n{indent}"));
    let member = format!("{}: {pretty}", Value::from(key));
    let Some(last) = object.members.last() else {
        let (before, after) = (&text[..=object.range.start], &text[object.range.end - 1..]);
        let kept = text[object.range.start + 1..object.range.end - 1].trim_end();
        return format!("{before}{kept}\n{indent}{member}\n{outer}{after}");
    };
    let end = last.whole.end;
    let mut scanner = Scanner { text, at: end };
    // It was read before, so it can be read.
    let has_comma = scanner.skip().is_ok() && scanner.peek() == Some(b',');
    let at = if has_comma { scanner.at + 1 } else { end };
    let comma = if has_comma { "" } else { "," };
    format!("{}{comma}\n{indent}{member}{}", &text[..at], &text[at..])
}

/// The text with `section.name` set to this.
pub(crate) fn set(text: &str, section: &str, name: &str, value: &Value) -> Parsed<String> {
    if text.trim().is_empty() {
        let whole = serde_json::json!({ section: { name: value } });
        return Ok(serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n");
    }
    let root = root(text)?;
    let Some(found) = member(&root, section)? else {
        return Ok(appended(text, &root, section, &serde_json::json!({ name: value })));
    };
    let servers = inner(text, found)?;
    match member(&servers, name)? {
        None => Ok(appended(text, &servers, name, value)),
        Some(there) => {
            let indent = indentation(text, there.whole.start);
            let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
            let pretty = pretty.replace('\n', &format!("\n{indent}"));
            Ok(format!("{}{pretty}{}", &text[..there.value.start], &text[there.value.end..]))
        }
    }
}

/// What `section.name` is.
pub(crate) fn get(text: &str, section: &str, name: &str) -> Parsed<Option<Value>> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root = root(text)?;
    let Some(found) = member(&root, section)? else { return Ok(None) };
    let servers = inner(text, found)?;
    let Some(there) = member(&servers, name)? else { return Ok(None) };
    serde_json::from_str(&text[there.value.clone()])
        .map(Some)
        .map_err(|error| format!("`{section}.{name}`: {error}"))
}

/// The text without `section.name`.
pub(crate) fn remove(text: &str, section: &str, name: &str) -> Parsed<String> {
    let root = root(text)?;
    let Some(found) = member(&root, section)? else { return Ok(text.to_owned()) };
    let servers = inner(text, found)?;
    let Some(at) = servers.members.iter().position(|member| member.key == name) else {
        return Ok(text.to_owned());
    };
    let there = &servers.members[at];
    let before_it = text[..there.whole.start].trim_end().len();
    let mut scanner = Scanner { text, at: there.whole.end };
    scanner.skip()?;
    let range = match (scanner.peek(), at) {
        // With its own comma.
        (Some(b','), _) => before_it..scanner.at + 1,
        // The last one: with the comma before it.
        (_, at) if at > 0 => servers.members[at - 1].whole.end..there.whole.end,
        _ => before_it..there.whole.end,
    };
    Ok(format!("{}{}", &text[..range.start], &text[range.end..]))
}

#[cfg(test)]
mod tests {
    use super::{get, remove, set};
    use serde_json::json;

    fn plain(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn a_server_is_added_changed_and_removed() {
        let ours = json!({ "command": "sandbox", "args": ["mcp"] });
        for text in [
            "",
            "{}",
            "{\"a\":1}",
            "{\n  \"mcpServers\": {}\n}\n",
            "{\n  \"z\": [1, 2],\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}\n",
        ] {
            let added = set(text, "mcpServers", "p", &ours).unwrap();
            assert_eq!(plain(&added)["mcpServers"]["p"], ours, "{added}");
            assert_eq!(get(&added, "mcpServers", "p").unwrap(), Some(ours.clone()));
            assert_eq!(set(&added, "mcpServers", "p", &ours).unwrap(), added, "again");
            let removed = plain(&remove(&added, "mcpServers", "p").unwrap());
            let mut before = if text.is_empty() { json!({}) } else { plain(text) };
            if before.get("mcpServers").is_none() {
                before["mcpServers"] = json!({});
            }
            assert_eq!(removed, before);
        }
    }

    #[test]
    fn comments_and_commas_at_the_end_stay() {
        let text = "// mine\n{\n\t\"servers\": {\n\t\t\"x\": {}, // last\n\t},\n\t/* end */\n}\n";
        let added = set(text, "servers", "p", &json!({ "command": "c" })).unwrap();
        assert!(
            added.starts_with("// mine\n")
                && added.contains("// last")
                && added.contains("/* end */")
        );
        assert_eq!(get(&added, "servers", "p").unwrap(), Some(json!({ "command": "c" })));
        let removed = remove(&added, "servers", "p").unwrap();
        assert_eq!(get(&removed, "servers", "x").unwrap(), Some(json!({})));
        assert_eq!(get(&removed, "servers", "p").unwrap(), None);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for wrong in [
            "[]",
            "{",
            "{\"a\"}",
            "{} x",
            "{\"servers\": 1}",
            "{\"servers\": {}, \"servers\": {}}",
            "{\"a\": nope}",
            "/* ",
        ] {
            assert!(set(wrong, "servers", "p", &json!(1)).is_err(), "{wrong}");
        }
        let deep = "[".repeat(200);
        assert!(set(&format!("{{\"a\": {deep}"), "servers", "p", &json!(1)).is_err());
    }
}
