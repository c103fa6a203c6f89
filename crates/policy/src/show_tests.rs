use super::*;
use crate::decode::parse::parse;
use crate::syntax::tree::Format;
use crate::{LayerKind, PolicyLayer, Subject, Trust, merge};

fn merged(layers: &[(LayerKind, &str)]) -> Merged {
    let layers = layers.iter().map(|(kind, text)| PolicyLayer {
        kind: *kind,
        document: parse(text, &format!("{}.yaml", kind.name()), Format::Yaml).unwrap(),
    });
    merge(&Subject::Run, layers.collect()).unwrap()
}

fn sample() -> Merged {
    merged(&[
        (LayerKind::Organisation, "filesystem:\n  deniedPaths: [/srv/secret]\nlocks: [network]\n"),
        (LayerKind::Project(Trust::Untrusted), "network: { mode: nat }\n"),
        (LayerKind::User, "resources:\n  timeout: 90s\n  maxMemory: 1g\n  cpus: 0.5\n"),
    ])
}

/// Proves: POL-4 show, POL-4 provenance
#[test]
fn the_text_shows_every_value_with_its_source() {
    insta::assert_snapshot!(show_lines(&sample()).join("\n"));
}

/// Proves: POL-4 show, POL-4 provenance
#[test]
fn the_json_holds_policy_provenance_and_notes() {
    let json = show_json(&sample());
    assert_eq!(json["policy"]["resources"]["milliCpus"], 500);
    assert_eq!(json["provenance"]["resources.timeout"][0]["layer"], "user");
    assert_eq!(json["provenance"]["resources.timeout"][0]["line"], 2);
    assert_eq!(json["notes"][0]["key"], "network.mode");
}

/// Proves: POL-5 export
#[test]
fn what_is_exported_loads_to_the_same_policy() {
    let original = merged(&[(
        LayerKind::User,
        "preset: strict\nresources: { cpus: 1.25, maxMemory: 5m, maxSwap: 0, cpuSet: '2,0-1', \
         normalizeTime: 1s, bestEffort: true, waived: [disk] }\nprocess: { env: { A: b }, timeOffset: -5 }\n\
         syscalls: { mode: WHITELIST, syscalls: [read] }",
    )]);
    assert_eq!(export(&original)["resources"]["cpuSet"], "0-2");
    assert!(show_lines(&original).join("\n").contains("resources.cpuSet: 0-2 "));
    let text = serde_json::to_string_pretty(&export(&original)).unwrap();
    let document = parse(&text, "export.json", Format::Json).unwrap();
    let again =
        merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::User, document }]).unwrap();
    assert_eq!(again.policy, original.policy);
}
