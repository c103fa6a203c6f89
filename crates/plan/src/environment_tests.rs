use super::*;
use crate::fake::{policy, user};

/// Nothing is there but `/tmp`.
struct OnlyTmp;

impl Sight for OnlyTmp {
    fn has_dir(&self, path: &Path) -> bool {
        path.starts_with("/tmp")
    }

    fn can_make(&self, path: &Path) -> bool {
        path.starts_with("/tmp")
    }

    fn hides(&self, _path: &Path) -> bool {
        false
    }

    fn hides_socket(&self, _path: &Path) -> bool {
        false
    }
}

fn env(process: &Process, facts: &HostFacts) -> Environment {
    let inside = Inside {
        session: "s-1",
        home: None,
        hostname: "sandbox",
        cwd: &facts.cwd,
        sight: &OnlyTmp,
        egress: None,
        credentials: &[],
        trusted: None,
    };
    build(process, facts, &inside)
}

fn get<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    let found = environment.entries.iter().find(|(key, _)| key == name);
    found.and_then(|(_, value)| value.to_str())
}

#[test]
fn secrets_are_taken_out_by_name() {
    let secret = [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "OPENAI_API_KEY",
        "db_password",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "KUBECONFIG",
        "MYAPP_SECRET_V2",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "CARGO_REGISTRIES_X_TOKEN",
        "npm_config_//r.example/:_auth",
        "DATABASE_URL",
        "PGPASSWORD",
        "GPG_AGENT_INFO",
        "ANTHROPIC_API_KEY",
        "VAULT_ADDR",
    ];
    let plain = ["PATH", "LANG", "AWS_REGION", "GPG_TTY", "EDITOR", "TOKENIZERS_PARALLELISM", "CC"];
    let mut facts = user();
    facts.env = secret.iter().chain(&plain).map(|name| (name.into(), "value".into())).collect();
    facts.env.insert("PWD".into(), "/tmp/here".into());
    facts.env.insert("OLDPWD".into(), "/home/u/elsewhere".into());
    let built = env(&policy().process, &facts);
    assert_eq!((get(&built, "PWD"), get(&built, "OLDPWD")), (Some("/tmp/here"), None));
    for name in secret {
        assert_eq!(get(&built, name), None, "{name}");
        assert!(built.removed.iter().any(|removed| removed == name), "{name}");
    }
    for name in plain {
        assert_eq!(get(&built, name), Some("value"), "{name}");
    }
    let note = built.notes().remove(0);
    assert!(secret.iter().all(|name| note.contains(name)), "{note}");
    assert!(!note.contains("value"), "{note}");
}

#[test]
fn what_is_set_explicitly_wins_over_the_scrub() {
    let mut process = policy().process;
    process.env.insert("GH_TOKEN".to_owned(), "given".to_owned());
    assert_eq!(get(&env(&process, &user()), "GH_TOKEN"), Some("given"));
}

/// Proves: PROC-8 clean
#[test]
fn the_modes_pass_on_what_they_say() {
    let mut facts = user();
    facts.env.insert("EDITOR".into(), "vi".into());
    let mut process = policy().process;
    process.env_mode = EnvMode::Clean;
    let clean = env(&process, &facts);
    assert_eq!(get(&clean, "EDITOR"), None);
    assert_eq!(get(&clean, "PATH"), Some(CLEAN_PATH));
    assert_eq!(get(&clean, "HOME"), Some("/home/u"));
    assert_eq!(get(&clean, "USER"), Some("u"));
    process.env_mode = EnvMode::Explicit;
    process.allowed_env_vars = vec!["EDITOR".to_owned()];
    let explicit = env(&process, &facts);
    let names: Vec<_> = explicit.entries.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(names, ["EDITOR", "SANDBOX", "SANDBOX_SESSION"]);
    assert_eq!(get(&explicit, "SANDBOX"), Some("1"));
    assert_eq!(get(&explicit, "SANDBOX_SESSION"), Some("s-1"));
    process.env.insert("SANDBOX".into(), String::new());
    assert_eq!(get(&env(&process, &facts), "SANDBOX"), Some(""));
}

#[test]
fn variables_that_name_absent_directories_are_not_passed_on() {
    let mut facts = user();
    for (name, value) in
        [("TMPDIR", "/home/u/tmp"), ("TMP", "/tmp"), ("XDG_RUNTIME_DIR", "/home/u/run")]
    {
        facts.env.insert(name.into(), value.into());
    }
    let built = env(&policy().process, &facts);
    assert_eq!(get(&built, "TMPDIR"), Some("/tmp"));
    assert_eq!(get(&built, "TMP"), Some("/tmp"));
    assert_eq!(get(&built, "XDG_RUNTIME_DIR"), None);
    facts.env.insert("XDG_RUNTIME_DIR".into(), "/run/user/1000".into());
    assert_eq!(get(&env(&policy().process, &facts), "XDG_RUNTIME_DIR"), Some("/run/user/1000"));
}

/// With the real view: what is the run's own, or bound, is not taken for something of the host's.
///
/// Proves: PROC-8 misleading
#[test]
fn variables_that_name_what_is_inside_are_passed_on() {
    let mut tree = crate::fake::FakeTree::new();
    tree.socket("/run/user/1000/bus").socket("/home/u/project/dev.sock").socket("/dev/pts/3");
    tree.socket("/dev/null").link("/dev/stdout", "/dev/pts/3").file("/srv/data/agent.so", "");
    tree.file("/home/u/corp.pem", "-----BEGIN CERTIFICATE-----\n");
    let mut facts = user();
    let kept = [
        ("A", "/home/u/project/dev.sock"),
        ("B", "/dev/null"),
        ("C", "/dev/stdout"),
        ("D", "/usr/bin/x"),
        ("XDG_CACHE_HOME", "/home/u/.cache2"),
        ("CARGO_TARGET_DIR", "/home/u/project/target"),
        ("SSL_CERT_FILE", "/home/u/corp.pem"),
    ];
    let dropped = [
        ("PULSE_SERVER", "unix:/run/user/1000/bus"),
        ("LD_PRELOAD", "/srv/data/agent.so"),
        ("XDG_STATE_HOME", "/srv/state"),
    ];
    for (name, value) in kept.into_iter().chain(dropped) {
        facts.env.insert(name.into(), value.into());
    }
    let plan = crate::fake::plan(&policy(), &facts, &tree).unwrap();
    let has = |name: &str| plan.command.env.iter().any(|(known, _)| known == name);
    for (name, value) in kept {
        assert!(has(name), "{name}={value}");
    }
    for (name, value) in dropped {
        assert!(!has(name), "{name}={value}");
    }
    let told = "LD_PRELOAD, PULSE_SERVER, XDG_STATE_HOME: not passed on";
    assert!(
        plan.explanation.notes.iter().any(|note| note.text.starts_with(told)),
        "{:?}",
        plan.explanation.notes
    );
    assert!(crate::fake::shows(&plan, "/home/u/corp.pem"), "what TLS trusts is shown");
}
