//! What a page says. There is no script in it, and no text becomes markup.

use super::Subject;
use std::borrow::Cow;

pub(super) const STYLE: &str = include_str!("style.css");

/// Text as text, within an element.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
        <title>{title} – Palisade</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n<main>\n<h1>{title}</h1>\n{body}</main>\n"
    )
}

/// A form with the question. `note` is about an answer that was not complete.
pub(super) fn form(subject: &Subject, note: Option<&str>) -> String {
    let mut body = format!("<p class=\"question\">{}</p>\n", escaped(subject.message()));
    if let Some(note) = note {
        body.push_str(&format!("<p class=\"note\" role=\"alert\">{}</p>\n", escaped(note)));
    }
    // The first button is the one that Enter presses.
    body.push_str("<form method=\"post\">\n");
    let mut elsewhere = "";
    match subject {
        Subject::Question(question) => {
            let deny = button("deny", "Deny");
            let secret = if question.is_secret {
                "<p><label><input type=\"checkbox\" name=\"secret\" value=\"yes\"> This is a secret. The commands in the sandbox may use it.</label></p>\n"
            } else {
                ""
            };
            let once = button("once", "Allow once");
            let session = button("session", "Allow for the session");
            elsewhere = "<p class=\"note\">You can also answer with <code>sandbox approve</code>. The first answer counts.</p>\n";
            body.push_str(&format!("{deny}{secret}{once}{session}"));
        }
        Subject::Confirmation { .. } => {
            body.push_str(&format!("{}{}", button("no", "No"), button("yes", "Yes")));
        }
    }
    body.push_str("</form>\n");
    body.push_str(elsewhere);
    page("Approval request", &body)
}

fn button(value: &str, title: &str) -> String {
    format!("<button name=\"answer\" value=\"{value}\">{title}</button>\n")
}

/// Nothing is asked any more.
pub(super) fn notice(title: &str, text: &str) -> String {
    page(title, &format!("<p>{}</p>\n", escaped(text)))
}

#[cfg(test)]
mod tests {
    use super::form;
    use crate::pages::Subject;
    use crate::questions::Question;

    #[test]
    fn no_text_becomes_markup_and_enter_denies() {
        let message =
            "</p><script>alert(1)</script><button name=\"answer\" value='once'>&amp;".to_owned();
        let question = Question { id: 1, message, is_secret: true };
        let page = form(&Subject::Question(question), Some("<b>"));
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;") && page.contains("&amp;amp;"), "{page}");
        assert_eq!(page.matches("<button").count(), 3, "{page}");
        let first = page.split("<button").nth(1).unwrap();
        assert!(first.contains("value=\"deny\""), "{page}");
        assert!(page.contains("type=\"checkbox\""), "{page}");
    }
}
