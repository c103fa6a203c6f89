//! An egress proxy's own configuration: `listenAddr, allowlist, blocklist, logRequests`.

use super::foreign::{Foreign, blocked_by, texts_under};
use super::{Loaded, SourceKind};
use crate::diagnostic::Diagnostic;
use crate::document::PolicyDocument;
use crate::settings::Value;
use crate::tree::Node;

const KEYS: [&str; 5] = ["listenAddr", "allowlist", "blocklist", "logRequests", "logResponses"];

pub(super) fn load(node: &Node, file: &str) -> Result<Loaded, Vec<Diagnostic>> {
    let mut foreign = Foreign::new(file);
    let mut document = PolicyDocument::default();
    let settings = &mut document.settings;
    let blocked = node.get("blocklist").map(|list| texts_under(list, "hosts")).unwrap_or_default();
    for field in foreign.fields(node, "", &KEYS) {
        match field.name() {
            "listenAddr" => foreign.refuse(&field, "the proxy does not run alone yet"),
            "allowlist" => {
                foreign.set(&field, "network.mode", Value::Word("proxy"), settings);
                for list in foreign.fields(field.node(), &field.path, &["hosts", "ports"]) {
                    if list.name() == "ports" {
                        foreign.copy(&list, "network.allowedPorts", settings);
                        continue;
                    }
                    foreign.copy(&list, "network.allowedHosts", settings);
                    for host in foreign.texts(&list) {
                        if let Some(pattern) = blocked_by(&host, &blocked) {
                            let message =
                                format!("`{host}` stays blocked by `{pattern}`, which always wins");
                            foreign.warn(&list, message);
                        }
                    }
                }
            }
            "blocklist" => {
                for list in foreign.fields(field.node(), &field.path, &["hosts", "ipRanges"]) {
                    foreign.copy(&list, "network.deniedHosts", settings);
                }
            }
            "logRequests" => {
                if foreign.boolean(&field) == Some(false) {
                    foreign.refuse(&field, "every request is recorded");
                }
            }
            _ => {
                if foreign.boolean(&field) == Some(true) {
                    foreign.refuse(&field, "responses are not recorded");
                }
            }
        }
    }
    foreign.finish(SourceKind::Proxy, document)
}
