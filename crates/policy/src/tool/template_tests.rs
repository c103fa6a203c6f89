use super::{CommandTemplate, Part, TemplateError, Word};
use crate::tool::input::{InputSchema, InputValues};
use serde_json::{Value, json};

fn template(command: &Value) -> CommandTemplate {
    let word = |text: &Value| Word::parse(text.as_str().unwrap());
    let part = |part: &Value| match part {
        Value::Array(words) => Part::Group(words.iter().map(word).collect()),
        text => Part::Word(word(text)),
    };
    CommandTemplate { parts: command.as_array().unwrap().iter().map(part).collect() }
}

fn values(input: &Value) -> InputValues {
    let properties: serde_json::Map<String, Value> = input
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| {
            let kind = match value {
                Value::Bool(_) => json!({ "type": "boolean" }),
                Value::Number(_) => json!({ "type": "integer" }),
                Value::Array(_) => json!({ "type": "array", "items": { "type": "string" } }),
                _ => json!({ "type": "string" }),
            };
            (name.clone(), kind)
        })
        .collect();
    let schema = InputSchema::of_json(&json!({ "properties": properties }).to_string()).unwrap();
    schema.check(input).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "written where it is used")]
fn filled(command: Value, input: Value) -> Result<Vec<String>, TemplateError> {
    template(&command).fill(&values(&input))
}

#[test]
fn a_value_is_one_argument_whatever_is_in_it() {
    let command = json!(["wc", "-l", "--", "{path}"]);
    let argv = filled(command, json!({ "path": "a b; $(rm) \"x\"" })).unwrap();
    assert_eq!(argv, ["wc", "-l", "--", "a b; $(rm) \"x\""]);
    let list = filled(json!(["cat", "{files}"]), json!({ "files": ["a", "b c"] })).unwrap();
    assert_eq!(list, ["cat", "a", "b c"]);
    assert_eq!(filled(json!(["cat", "{files}"]), json!({ "files": [] })).unwrap(), ["cat"]);
}

#[test]
fn a_value_becomes_no_option() {
    let refused =
        |name: &str, first| Err(TemplateError::LooksLikeOption { name: name.to_owned(), first });
    assert_eq!(
        filled(json!(["wc", "{path}"]), json!({ "path": "--files0-from=x" })),
        refused("path", '-')
    );
    assert_eq!(filled(json!(["vi", "{path}"]), json!({ "path": "+!sh" })), refused("path", '+'));
    assert_eq!(filled(json!(["wc", "{lines}"]), json!({ "lines": -5 })), refused("lines", '-'));
    assert_eq!(
        filled(json!(["wc", "{files}"]), json!({ "files": ["a", "-x"] })),
        refused("files", '-')
    );
    // An option outside a group may be one that takes no value.
    assert_eq!(
        filled(json!(["grep", "-i", "{text}"]), json!({ "text": "-f/etc/x" })),
        refused("text", '-')
    );
    // A place in the same group behind another place, or behind a plain word, is none of an option.
    assert_eq!(
        filled(json!(["x", ["-e", "{one}", "{two}"]]), json!({ "one": "a", "two": "-b" })),
        refused("two", '-')
    );
    let list = filled(json!(["x", ["-e", "{list}"]]), json!({ "list": ["-a", "-b"] }));
    assert_eq!(list, refused("list", '-'), "only the first one is the value of the option");
    assert_eq!(
        filled(json!(["x", ["--e=1", "{one}"]]), json!({ "one": "-b" })),
        refused("one", '-')
    );
    assert_eq!(filled(json!(["x", ["sub", "{one}"]]), json!({ "one": "-b" })), refused("one", '-'));
    assert_eq!(filled(json!(["x", ["-", "{one}"]]), json!({ "one": "-b" })), refused("one", '-'));
}

#[test]
fn behind_two_hyphens_or_as_the_value_of_an_option_anything_goes() {
    assert_eq!(
        filled(json!(["wc", "--", "{path}"]), json!({ "path": "-x" })).unwrap(),
        ["wc", "--", "-x"]
    );
    let of_option = filled(json!(["grep", ["-e", "{text}"], "--", "f"]), json!({ "text": "-x" }));
    assert_eq!(of_option.unwrap(), ["grep", "-e", "-x", "--", "f"]);
    let long = filled(json!(["grep", "--include={glob}", "x"]), json!({ "glob": "-*" }));
    assert_eq!(long.unwrap(), ["grep", "--include=-*", "x"]);
    // Two hyphens that a caller gave do not count.
    assert!(filled(json!(["x", "{one}", "{two}"]), json!({ "one": "a", "two": "--" })).is_err());
}

#[test]
fn a_group_without_a_value_is_left_out_and_conditions_are_no_arguments() {
    let command =
        json!(["head", ["-n", "{lines}"], ["{?quiet}", "-q"], ["{!quiet}", "-v"], "--", "f"]);
    assert_eq!(filled(command.clone(), json!({})).unwrap(), ["head", "-v", "--", "f"]);
    let argv = filled(command.clone(), json!({ "lines": 3, "quiet": true })).unwrap();
    assert_eq!(argv, ["head", "-n", "3", "-q", "--", "f"]);
    let argv = filled(command, json!({ "quiet": false })).unwrap();
    assert_eq!(argv, ["head", "-v", "--", "f"]);
}

/// Proves: TOOL-1 declared
#[test]
fn an_empty_list_is_no_value_and_leaves_no_option_alone() {
    let command = json!(["grep", ["-e", "{list}"], ["{?list}", "-q"], ["{!list}", "-v"], "--"]);
    let argv = filled(command.clone(), json!({ "list": [] })).unwrap();
    assert_eq!(argv, ["grep", "-v", "--"]);
    let argv = filled(command, json!({ "list": ["a"] })).unwrap();
    assert_eq!(argv, ["grep", "-e", "a", "-q", "--"]);
    let long = filled(json!(["grep", "--include={list}", "--"]), json!({ "list": [] })).unwrap();
    assert_eq!(long, ["grep", "--"]);
}

#[test]
fn braces_that_are_no_place_are_text() {
    assert_eq!(Word::parse("{print $1}"), Word::Literal("{print $1}".to_owned()));
    assert_eq!(Word::parse("{{name}}"), Word::Literal("{name}".to_owned()));
    assert_eq!(Word::parse("x{name}"), Word::Literal("x{name}".to_owned()));
    assert_eq!(Word::parse("-{name}"), Word::Literal("-{name}".to_owned()));
    // What is before the equals sign has to be one long option.
    assert_eq!(Word::parse("-I={name}"), Word::Literal("-I={name}".to_owned()));
}

#[test]
fn no_value_chooses_the_program() {
    assert!(
        template(&json!(["{program}"])).complaint().unwrap().contains("begin with the program")
    );
    assert!(template(&json!([])).complaint().is_some());
    assert!(template(&json!(["x", "{?a}"])).complaint().unwrap().contains("stands for nothing"));
    assert_eq!(template(&json!(["x", ["{?a}", "-a"]])).complaint(), None);
}

#[test]
fn what_no_argument_can_hold_is_refused() {
    let zero = filled(json!(["x", "{a}"]), json!({ "a": "b\0c" }));
    assert_eq!(zero, Err(TemplateError::ZeroByte { name: "a".to_owned() }));
    let long = filled(json!(["x", "{a}"]), json!({ "a": "b".repeat(200 << 10) }));
    assert!(matches!(long, Err(TemplateError::TooLong { .. })));
}
