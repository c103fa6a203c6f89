//! Policy files of every kind, alone and upon each other. No text may panic, every complaint has a
//! place in the text, and an untrusted project loosens nothing.
//!
//! An input is up to three documents, separated by lines of `%%`: the organisation's, the user's and
//! the project's. Each is also read as a list of variables.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use palisade_policy::{
    Diagnostic, Direction, Format, PolicyLayer, LayerKind, PolicyDocument, Subject, Trust, diff, export,
    load, load_environment, merge, not_enforced, parse, show_json, show_lines,
};

const LAYERS: [LayerKind; 3] =
    [LayerKind::Organisation, LayerKind::User, LayerKind::Project(Trust::Untrusted)];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut layers = Vec::new();
    for (document, kind) in text.split("%%\n").zip(LAYERS) {
        variables(document);
        let loaded = [load(document, "fuzz.yaml"), load(document, "fuzz.json")];
        for result in &loaded {
            match result {
                Ok(loaded) => {
                    placed(&loaded.warnings, document);
                    written_again(&loaded.document);
                }
                Err(complaints) => complained(complaints, document),
            }
        }
        for format in [Format::Yaml, Format::Json] {
            match parse(document, "fuzz", format) {
                Ok(document) => written_again(&document),
                Err(complaints) => complained(&complaints, document),
            }
        }
        let document = loaded.into_iter().find_map(Result::ok).map(|loaded| loaded.document);
        layers.extend(document.map(|document| PolicyLayer { kind, document }));
    }
    merged(layers);
});

fn complained(complaints: &[Diagnostic], text: &str) {
    assert!(!complaints.is_empty(), "refused without a word");
    placed(complaints, text);
}

fn placed(complaints: &[Diagnostic], text: &str) {
    // A syntax error may stand behind the last line. The parser also counts CR alone as a line.
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
    for complaint in complaints {
        assert!(!complaint.message.is_empty(), "{complaint:?}");
        let has_place = (1..=lines).contains(&complaint.line) && complaint.column >= 1;
        assert!(has_place, "{complaint:?} in a text of {lines} lines");
    }
}

/// What a document is written as must load as the same document.
fn written_again(document: &PolicyDocument) {
    let written = document.to_json();
    match parse(&written.to_string(), "written.json", Format::Json) {
        Ok(again) => assert_eq!(again.to_json(), written),
        Err(complaints) => panic!("{written} does not load: {complaints:?}"),
    }
}

fn variables(text: &str) {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let variables: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match load_environment(&variables) {
        Ok(loaded) => written_again(&loaded.document),
        Err(complaints) => assert!(!complaints.is_empty()),
    }
}

fn merged(layers: Vec<PolicyLayer>) {
    let trusted = |layer: &PolicyLayer| layer.kind != LayerKind::Project(Trust::Untrusted);
    let without_project = layers.iter().filter(|layer| trusted(layer)).cloned().collect();
    for subject in [Subject::Run, Subject::Tool("bash".to_owned())] {
        let Ok(before) = merge(&subject, Vec::clone(&without_project)) else { continue };
        let _ = (show_lines(&before), show_json(&before), not_enforced(&before));
        let exported = export(&before).to_string();
        if let Err(complaints) = parse(&exported, "exported.json", Format::Json) {
            panic!("{exported} does not load: {complaints:?}");
        }
        let Ok(after) = merge(&subject, layers.clone()) else { continue };
        for change in diff(&before, &after) {
            assert!(change.direction != Direction::Loosens, "an untrusted project did {change:?}");
        }
    }
}
