use super::*;

fn leaves(properties: &Json, prefix: &str, found: &mut Vec<String>) {
    for (name, schema) in properties.as_object().unwrap() {
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        let path = crate::decode::join(prefix, name);
        match schema.get("properties") {
            Some(inner) => leaves(inner, &path, found),
            None => found.push(path),
        }
    }
}

/// Proves: POL-2 schema
#[test]
fn the_schema_describes_every_key_the_parser_knows_and_no_other() {
    let schema = schema();
    let mut found = Vec::new();
    leaves(&schema["properties"], "", &mut found);
    found.retain(|path| !path.starts_with("maximum.") && !DOCUMENT_KEYS.contains(&path.as_str()));
    found.retain(|path| path != "network.allowNetwork");
    let mut known: Vec<String> = keys::KEYS.iter().map(|key| key.path.to_owned()).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
    assert_eq!(schema["additionalProperties"], json!(false));
}

/// Proves: POL-2 schema
#[test]
fn the_schema_offers_limits_as_maxima_and_presets_by_name() {
    let schema = schema();
    let maximum = &schema["properties"]["maximum"]["properties"];
    assert!(maximum["resources"]["properties"]["timeout"].is_object());
    assert!(maximum.get("view").is_none());
    assert!(maximum["resources"]["properties"]["maxSwap"].is_object());
    assert!(maximum["resources"]["properties"].get("cpuSet").is_none());
    let names = &schema["properties"]["preset"]["oneOf"][0]["enum"];
    assert!(names.as_array().unwrap().contains(&json!("strict")));
}

/// Proves: POL-2 schema, POL-2 limit-keys, POL-2 waivers
#[test]
fn the_schema_knows_the_forms_of_limits() {
    let schema = schema();
    let resources = &schema["properties"]["resources"]["properties"];
    assert_eq!(resources["memoryHigh"]["$ref"], "#/$defs/size");
    assert_eq!(resources["maxSwap"]["oneOf"][0]["const"], 0);
    assert_eq!(resources["normalizeTime"]["$ref"], "#/$defs/time");
    assert_eq!(resources["bestEffort"]["type"], "boolean");
    assert_eq!(resources["cpuSet"]["oneOf"][1]["type"], "string");
    assert_eq!(resources["waived"]["items"]["enum"], json!(LimitKind::ALL.map(LimitKind::name)));
}
