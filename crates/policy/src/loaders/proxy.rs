//! An egress proxy's own configuration: `listenAddr, allowlist, blocklist, logRequests`.

use super::foreign::{Foreign, texts_under};
use super::{LoadedDocument, SourceKind};
use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::settings::Value;
use crate::syntax::tree::Node;

const KEYS: [&str; 5] = ["listenAddr", "allowlist", "blocklist", "logRequests", "logResponses"];

pub(super) fn load(node: &Node, file: &str) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let mut foreign = Foreign::new(file);
    let mut document = PolicyDocument::default();
    let settings = &mut document.settings;
    let mut listen = None;
    let blocked = node.get("blocklist").map(|list| texts_under(list, "hosts")).unwrap_or_default();
    for field in foreign.fields(node, "", &KEYS) {
        match field.name() {
            "listenAddr" => listen = foreign.socket(&field),
            "allowlist" => {
                foreign.set(&field, "network.mode", Value::Word("proxy"), settings);
                for list in foreign.fields(field.node(), &field.path, &["hosts", "ports"]) {
                    if list.name() == "ports" {
                        foreign.copy(&list, "network.allowedPorts", settings);
                        continue;
                    }
                    foreign.copy(&list, "network.allowedHosts", settings);
                    foreign.warn_of_blocked(&list, &blocked, settings);
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
    let loaded = foreign.finish(SourceKind::Proxy, document)?;
    Ok(LoadedDocument { listen, ..loaded })
}
