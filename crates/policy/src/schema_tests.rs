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
    let names = &schema["properties"]["preset"]["oneOf"][0]["enum"];
    assert!(names.as_array().unwrap().contains(&json!("strict")));
}
