//! Filters XML settings (Maven): elements that contain a credential are removed with their content. Comments
//! are treated the same: a credential that was commented out is still a credential.

use super::secret::{is_secret_key, is_secret_value, is_switch, without_logins};

/// The remaining text and the names of the removed elements; `None` if that cannot be determined.
pub(crate) fn filter(text: &str) -> Option<(String, Vec<String>)> {
    if !text.contains('<') || text.contains("<!ENTITY") {
        return None;
    }
    let mut kept = String::with_capacity(text.len());
    let mut left_out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        keep(before, &mut kept, &mut left_out)?;
        let name = tag_name(tag);
        // The logins for all servers.
        let is_meant = name == "servers" || (!name.is_empty() && is_secret_key(name));
        if !is_meant {
            kept.push('<');
            rest = &tag[1..];
            continue;
        }
        let (content, behind) = content_of(tag, name)?;
        if is_switch(content) && name != "servers" {
            kept.push('<');
            rest = &tag[1..];
            continue;
        }
        left_out.push(format!("<{name}>"));
        rest = behind;
    }
    keep(rest, &mut kept, &mut left_out)?;
    Some((kept, left_out))
}

/// Handles what is between two `<`: the rest of a tag, and text.
fn keep(text: &str, kept: &mut String, left_out: &mut Vec<String>) -> Option<()> {
    let clean = without_logins(text)?;
    if is_secret_value(&clean) || has_secret_attribute(&clean) {
        return None;
    }
    if clean != text {
        left_out.push("the login in an address".to_owned());
    }
    kept.push_str(&clean);
    Some(())
}

/// `<proxy password="…">`
fn has_secret_attribute(text: &str) -> bool {
    let tag = text.split('>').next().unwrap_or_default();
    let attributes = tag.split_whitespace().filter_map(|word| word.split_once('='));
    attributes.into_iter().any(|(key, value)| is_secret_key(key) && !is_switch(value))
}

/// The name of an opening tag; empty for anything else.
fn tag_name(tag: &str) -> &str {
    let name = &tag[1..];
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    &name[..name.find(|c| !is_of_name(c)).unwrap_or(name.len())]
}

/// The content of an element, and the text after it.
fn content_of<'t>(tag: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let head = tag.find('>')?;
    if tag[..head].ends_with('/') {
        return Some(("", &tag[head + 1..]));
    }
    let end = format!("</{name}");
    let at = tag.find(&end)?;
    let behind = tag[at..].find('>')?;
    // A nested element of the same name would end first.
    let again = format!("<{name}");
    (!tag[1..at].contains(&again)).then(|| (tag[head + 1..at].trim(), &tag[at + behind + 1..]))
}
