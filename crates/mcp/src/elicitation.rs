//! How a person can be asked at a client (elicitation): by a form that the client shows, or at a URL that the client opens.
//!
//! What a form asks passes through the client. Questions about secrets are asked by a page only.

use rmcp::model::ClientCapabilities;

/// How something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElicitationMode {
    Form,
    /// The client shows the address of a page, and opens it if the person agrees (revision 2025-11-25).
    Url,
}

/// The modes that can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElicitationModes {
    pub(crate) form: bool,
    pub(crate) url: bool,
}

impl ElicitationModes {
    /// What a client declared.
    pub(crate) fn of(capabilities: Option<&ClientCapabilities>) -> Self {
        let elicitation = capabilities.and_then(|it| it.elicitation.as_ref());
        Self {
            // An empty capability means form mode, the only one before revision 2025-11-25.
            form: elicitation.is_some_and(|it| it.form.is_some() || it.url.is_none()),
            url: elicitation.is_some_and(|it| it.url.is_some()),
        }
    }

    pub(crate) fn any(self) -> bool {
        self.form || self.url
    }

    /// None: it is not asked at this client.
    pub(crate) fn choose(self, is_secret: bool) -> Option<ElicitationMode> {
        match self {
            Self { form: true, .. } if !is_secret => Some(ElicitationMode::Form),
            Self { url: true, .. } => Some(ElicitationMode::Url),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ElicitationMode, ElicitationModes};
    use rmcp::model::ClientCapabilities;
    use serde_json::{Value, json};

    #[test]
    fn a_secret_is_never_asked_by_a_form() {
        let chosen = |capabilities: Value| {
            let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap();
            let modes = ElicitationModes::of(Some(&capabilities));
            [modes.choose(false), modes.choose(true)]
        };
        use ElicitationMode::{Form, Url};
        assert_eq!(chosen(json!({})), [None, None]);
        assert_eq!(chosen(json!({ "elicitation": {} })), [Some(Form), None]);
        assert_eq!(chosen(json!({ "elicitation": { "form": {} } })), [Some(Form), None]);
        assert_eq!(chosen(json!({ "elicitation": { "url": {} } })), [Some(Url), Some(Url)]);
        let both = json!({ "elicitation": { "form": {}, "url": {} } });
        assert_eq!(chosen(both), [Some(Form), Some(Url)]);
    }
}
