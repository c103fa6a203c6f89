use super::super::{LoadedDocument, load};
use crate::settings::{boolean, list};
use crate::{LayerKind, Policy, PolicyLayer, Problem, Subject, merge};

fn loaded(text: &str) -> LoadedDocument {
    load(text, "cargo.yaml").unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn refusals(text: &str) -> Vec<String> {
    loaded(text).document.refused.iter().map(ToString::to_string).collect()
}

fn policy(text: &str) -> Policy {
    let layer = PolicyLayer { kind: LayerKind::User, document: loaded(text).document };
    merge(&Subject::Run, vec![layer]).unwrap().policy
}

const NO_SHELLS: &str = "sandbox_config: { security: { block_shell_access: true } }\n";

/// Both orders of two parts.
fn both_orders(first: &str, second: &str) -> [String; 2] {
    [format!("{first}\n{second}\n"), format!("{second}\n{first}\n")]
}

/// It would mean that everything may start, and would clear the list of a preset.
///
/// Proves: CARGO-1 executables
#[test]
fn an_empty_list_of_programs_is_an_error_in_either_order() {
    let none = "execution_policy: { allowed_executables: [] }";
    for text in both_orders(none, NO_SHELLS) {
        let problems = load(&text, "cargo.yaml").unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].problem, Problem::Contradiction);
        assert_eq!(problems[0].key, "execution_policy.allowed_executables");
        assert!(problems[0].message.contains("would let every program start"), "{}", problems[0]);
    }
}

/// Proves: CARGO-1 executables
#[test]
fn blocking_shells_does_not_depend_on_the_order_of_the_file() {
    let others = "execution_policy: { blocked_executables: [sh, python] }";
    for text in both_orders(others, NO_SHELLS) {
        assert_eq!(refusals(&text), [""; 0], "{text}");
        let programs = policy(&text).process.allowed_executables;
        assert!(programs.iter().any(|name| name == "cargo"), "{programs:?}");
        assert!(!programs.iter().any(|name| name == "sh"), "{programs:?}");
    }
    for text in both_orders("execution_policy: { allowed_executables: [cargo, cc] }", NO_SHELLS) {
        assert_eq!(refusals(&text), [""; 0], "{text}");
        assert_eq!(policy(&text).process.allowed_executables, ["cargo", "cc"]);
    }
}

/// Proves: CARGO-1 executables
#[test]
fn a_shell_that_is_blocked_and_allowed_is_refused() {
    for entry in ["bash", "/bin/sh", "/usr/bin/*", "/usr/bin/", "/*/bin", "busybox", "/opt/../bin"]
    {
        let allowed =
            format!("execution_policy: {{ allowed_executables: [cargo, cc, '{entry}'] }}");
        for text in both_orders(&allowed, NO_SHELLS) {
            let refused = refusals(&text);
            assert_eq!(refused.len(), 1, "{text}: {refused:?}");
            assert!(refused[0].contains("block_shell_access"), "{refused:?}");
            assert!(refused[0].contains(&format!("`{entry}`")), "{refused:?}");
        }
    }
}

/// Proves: CARGO-1 executables
#[test]
fn a_program_is_blocked_under_every_path_of_it() {
    for (allowed, blocked, is_refused) in [
        ("/bin/sh", "sh", true),
        ("sh", "/bin/sh", true),
        ("/usr/bin/python3.11", "python", true),
        ("/usr", "node", true),
        ("/usr/lib/gcc/12/collect2", "gcc", false),
        ("python3", "python2", false),
        ("git", "sh", false),
    ] {
        let text = format!(
            "execution_policy: {{ blocked_executables: ['{blocked}'], allowed_executables: [cc, '{allowed}'] }}"
        );
        let refused = refusals(&text);
        assert_eq!(!refused.is_empty(), is_refused, "{text}: {refused:?}");
    }
}

/// Proves: CARGO-1 layout, CARGO-1 no-executables
#[test]
fn only_a_target_that_is_writable_is_executable_and_one_that_is_not_is_read_only() {
    let writable = policy("directory_permissions: { workspace: rw, target: rw }").filesystem;
    assert_eq!(writable.read_write_paths, ["target"]);
    assert!(!writable.execute_written, "/tmp would be executable");
    assert_eq!(writable.executable_dirs, ["target"]);
    let fixed = policy("directory_permissions: { workspace: rw, target: ro }").filesystem;
    assert_eq!(fixed.read_only_paths, ["target"]);
    assert_eq!(fixed.read_write_paths, [""; 0]);
    let silent = loaded("directory_permissions: { workspace: rw }").document.settings;
    assert_eq!(boolean(&silent, "filesystem.executeWritten"), None);
    assert!(list(&silent, "filesystem.executableDirs").is_empty());
}

/// Proves: CARGO-1 patterns
#[test]
fn patterns_of_a_runner_are_refused_and_the_way_is_named() {
    let refused =
        refusals("execution_policy: { command_validation: [{ regex: '^cargo build$' }] }");
    assert_eq!(refused.len(), 1);
    for words in ["preset: cargo", "`patterns`", "docs/tools.md"] {
        assert!(refused[0].contains(words), "{refused:?}");
    }
}
