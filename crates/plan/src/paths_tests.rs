use super::*;
use crate::fake::user;

#[test]
fn typed_paths_expand_as_a_shell_would() {
    let mut facts = user();
    facts.env.insert("CARGO_HOME".into(), "/data/cargo".into());
    let scope = Scope::new(&facts);
    for (text, path) in [
        ("~", "/home/u"),
        ("~/x", "/home/u/x"),
        ("$HOME/x", "/home/u/x"),
        ("${CARGO_HOME}/registry", "/data/cargo/registry"),
        ("$CARGO_HOME/git", "/data/cargo/git"),
        ("./target//x", "/home/u/project/target/x"),
        ("../other", "/home/u/project/../other"),
        ("/usr", "/usr"),
        ("a~b", "/home/u/project/a~b"),
    ] {
        assert_eq!(scope.typed(text), Ok(PathBuf::from(path)), "{text}");
    }
}

#[test]
fn what_a_path_needs_must_be_set() {
    let facts = user();
    let scope = Scope::new(&facts);
    assert_eq!(
        scope.typed("$NOWHERE/x").unwrap_err().to_string(),
        "`$NOWHERE/x` uses $NOWHERE, which is not set; write the path out"
    );
    assert!(matches!(scope.typed("~other/x"), Err(PlanError::OtherHome { .. })));
    let homeless = HostFacts { home: None, ..user() };
    assert!(Scope::new(&homeless).typed("~/x").is_err());
}

#[test]
fn listed_paths_take_defaults_and_skip_what_is_unset() {
    let mut facts = user();
    facts.env.insert("GOPATH".into(), "/data/go".into());
    facts.env.insert("GOCACHE".into(), "off".into());
    let scope = Scope::new(&facts);
    for (text, path) in [
        ("${CARGO_HOME:-~/.cargo}/bin", Some("/home/u/.cargo/bin")),
        ("${GOMODCACHE:-${GOPATH:-~/go}/pkg/mod}", Some("/data/go/pkg/mod")),
        ("${GOCACHE:-~/.cache/go-build}", Some("/home/u/.cache/go-build")),
        ("$JAVA_HOME", None),
        ("$GOCACHE", None),
    ] {
        assert_eq!(scope.listed(text), path.map(PathBuf::from), "{text}");
    }
}
