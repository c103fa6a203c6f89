use super::*;
use serde_json::json;

#[test]
fn values_of_variables_are_not_kept_but_taken_from_who_forks() {
    let flag = |key: &str, value| Flag { name: "--x".into(), key: key.into(), value };
    let flags = [
        flag(VARIABLES, json!({ "TOKEN": "hunter2" })),
        flag(VARIABLES, json!({ "GONE": "hunter2" })),
        flag("filesystem.deniedPaths", json!(["secret"])),
    ];
    let options = ForkOptions {
        environment: vec![StoredFlag::from(&flags[0])],
        command_line: flags[1..].iter().map(StoredFlag::from).collect(),
        files: Vec::new(),
        tool: None,
        preset_paths: Vec::new(),
        working_directory: b"/".to_vec(),
    };
    let kept = serde_json::to_string(&options).unwrap();
    assert!(!kept.contains("hunter2") && kept.contains("TOKEN"), "{kept}");
    let value_of = |name: &str| (name == "TOKEN").then(|| "here".to_owned());
    let request = options.request(&value_of);
    assert_eq!(request.missing_variables, ["GONE"]);
    assert_eq!(request.policy.environment[0].value, json!({ "TOKEN": "here" }));
    assert_eq!(request.policy.command_line[0].value, json!({}));
    assert_eq!(request.policy.command_line[1].value, json!(["secret"]));
}
