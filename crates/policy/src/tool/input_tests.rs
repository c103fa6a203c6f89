use super::{InputError, InputSchema};
use serde_json::{Value, json};

#[expect(clippy::needless_pass_by_value, reason = "written where it is used")]
fn schema(properties: Value, required: &[&str]) -> InputSchema {
    let document = json!({ "type": "object", "properties": properties, "required": required });
    InputSchema::of_json(&document.to_string()).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "written where it is used")]
fn wrong(schema: &InputSchema, input: Value) -> Vec<String> {
    let errors = schema.check(&input).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn every_wrong_value_is_named_with_what_it_must_be() {
    let schema = schema(
        json!({
            "path": { "type": "string", "maxLength": 5, "pattern": "^[a-z/]+$" },
            "mode": { "type": "string", "enum": ["fast", "slow"] },
            "lines": { "type": "integer", "minimum": 1, "maximum": 10 },
            "ratio": { "type": "number" },
            "all": { "type": "boolean" },
            "files": { "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 2 },
        }),
        &["path"],
    );
    assert_eq!(wrong(&schema, json!({ "path": "a/b" })), [""; 0]);
    assert_eq!(wrong(&schema, json!({})), ["`path` is missing"]);
    assert_eq!(wrong(&schema, json!({ "path": null })), ["`path` is missing"]);
    assert_eq!(
        wrong(&schema, json!([])),
        ["the input must be an object with the values by name, not a list"]
    );
    let errors = wrong(
        &schema,
        json!({ "path": "a/b/c/d", "mode": "quick", "lines": 11, "ratio": "1", "all": 1,
                "files": ["a", "", "c"], "pth": 1 }),
    );
    assert_eq!(
        errors,
        [
            "the tool takes no `pth`; did you mean `path`?",
            "`all` must be true or false, not a number",
            "`files` has 3 items; 0 to 2 are allowed",
            "`lines` is 11; it must be 10 or less",
            "`mode` must be one of: fast, slow",
            "`path` has 7 characters; at most 5 are allowed",
            "`ratio` must be a number, not text",
        ]
    );
    assert_eq!(
        wrong(&schema, json!({ "path": "A" })),
        ["`path` does not match the pattern `^[a-z/]+$`"]
    );
    assert_eq!(
        wrong(&schema, json!({ "path": "a", "lines": 1.5 })),
        ["`lines` must be a whole number, not a number"]
    );
    assert_eq!(
        wrong(&schema, json!({ "path": "a", "files": [1] })),
        ["`files` item 0 must be text, not a number"]
    );
}

#[test]
fn a_default_stands_for_what_is_missing() {
    let schema = schema(json!({ "path": { "type": "string", "default": "." } }), &[]);
    let values = schema.check(&json!({})).unwrap();
    assert_eq!(values.get("path"), Some(&vec![".".to_owned()]));
    assert_eq!(values.json(), json!({ "path": "." }));
    let missing = schema.check(&json!({ "oath": 1 })).unwrap_err();
    assert!(matches!(&missing[0], InputError::Unknown { nearest: Some(it), .. } if it == "path"));
}

#[test]
fn a_keyword_that_nothing_checks_is_refused() {
    let refused = |property: Value| {
        let document = json!({ "properties": { "a": property } });
        InputSchema::of_json(&document.to_string()).unwrap_err()[0].message.clone()
    };
    assert_eq!(
        refused(json!({ "type": "string", "format": "uri" })),
        "unknown key `input.properties.a.format`"
    );
    assert!(refused(json!({ "type": "object" })).contains("must be string, integer"));
    assert!(refused(json!({ "type": "string", "pattern": "(" })).contains("no regular expression"));
    assert!(
        refused(json!({ "type": "integer", "default": "x" })).contains("must be a whole number")
    );
    let open = InputSchema::of_json(r#"{ "additionalProperties": true }"#).unwrap_err();
    assert!(open[0].message.contains("only declared values are taken"));
    let unknown = InputSchema::of_json(r#"{ "required": ["a"] }"#).unwrap_err();
    assert!(unknown[0].message.contains("not among the properties"));
}

#[test]
fn a_schema_is_shown_as_it_was_declared() {
    let properties = json!({
        "path": { "type": "string", "description": "a file", "maxLength": 5, "minLength": 1 },
        "lines": { "type": "integer", "minimum": 1, "default": 3 },
    });
    let shown = schema(properties.clone(), &["path"]).to_json();
    assert_eq!(shown["properties"], properties);
    assert_eq!(shown["required"], json!(["path"]));
    assert_eq!(shown["additionalProperties"], json!(false));
}
