use super::*;

/// `/tmp`, `/usr` and the project are there; the home directory is the run's own; the host has more.
struct Invented;

impl Sight for Invented {
    fn has_dir(&self, path: &Path) -> bool {
        ["/tmp", "/usr", "/home/u/project"].iter().any(|there| path.starts_with(there))
    }

    fn can_make(&self, path: &Path) -> bool {
        ["/tmp", "/home/u"].iter().any(|own| path.starts_with(own))
    }

    fn hides(&self, path: &Path) -> bool {
        ["/home/u/agent.js", "/srv/agent.so", "/run/host.sock", "/scratch"]
            .iter()
            .any(|hidden| path == Path::new(hidden))
    }

    fn hides_socket(&self, path: &Path) -> bool {
        path == Path::new("/run/host.sock")
    }
}

fn passed(name: &str, value: &str) -> (Option<String>, Misleading) {
    let mut env = BTreeMap::from([(name.into(), value.into())]);
    let misleading = drop_misleading(&mut env, &Invented);
    (env.remove(OsStr::new(name)).and_then(|value| value.into_string().ok()), misleading)
}

/// Proves: PROC-8 misleading
#[test]
fn temporary_files_go_to_a_directory_that_is_there() {
    for name in ["TMPDIR", "TMP", "TEMP"] {
        let (value, misleading) = passed(name, "/scratch/me/tmp");
        assert_eq!(value.as_deref(), Some("/tmp"), "{name}");
        assert_eq!(misleading.redirected, [name]);
        let (value, misleading) = passed(name, "/home/u/project/tmp");
        assert_eq!(value.as_deref(), Some("/home/u/project/tmp"));
        assert_eq!(misleading, Misleading::default());
    }
    assert_eq!(passed("OLDPWD", "/scratch").0, None);
}

/// Proves: PROC-8 misleading
#[test]
fn directories_of_programs_are_dropped_where_they_cannot_be_made() {
    for name in OWN_FILES {
        assert_eq!(passed(name, "/scratch/me").0, None, "{name}");
        for there in ["/home/u/.cache2", "/home/u/project/target", "/usr", "relative"] {
            assert_eq!(passed(name, there).0.as_deref(), Some(there), "{name}");
        }
    }
    let told: Vec<String> = passed("CARGO_TARGET_DIR", "/scratch").1.notes().collect();
    assert!(told[0].starts_with("CARGO_TARGET_DIR: not passed on") && told[0].contains("--env"));
}

/// Proves: PROC-8 misleading
#[test]
fn what_every_program_would_load_and_not_find_is_dropped() {
    for (name, value) in [
        ("LD_PRELOAD", "/usr/lib/a.so:/srv/agent.so"),
        ("NODE_OPTIONS", " --require /home/u/agent.js --max-old-space-size=100 "),
        ("NODE_OPTIONS", "--import=/home/u/agent.js"),
        ("JAVA_TOOL_OPTIONS", "-javaagent:/srv/agent.so=debug"),
    ] {
        assert_eq!(passed(name, value).0, None, "{name}={value}");
    }
    for (name, value) in [
        ("LD_PRELOAD", "libjemalloc.so /usr/lib/a.so"),
        ("NODE_OPTIONS", "--max-old-space-size=100"),
        ("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=/nowhere"),
        ("EDITOR", "/home/u/agent.js"),
    ] {
        assert_eq!(passed(name, value).0.as_deref(), Some(value), "{name}");
    }
}

/// Proves: PROC-8 misleading
#[test]
fn a_socket_of_the_host_is_not_named_inside() {
    for value in [
        "/run/host.sock",
        "/run/host.sock,4711,0",
        "unix:/run/host.sock",
        "unix:///run/host.sock",
        "unix:path=/run/host.sock,guid=00",
    ] {
        let (passed, misleading) = passed("TMUX", value);
        assert_eq!(passed, None, "{value}");
        assert_eq!(misleading.dropped, ["TMUX"]);
    }
    for value in ["/run/none.sock", "/scratch", "/run/host.sock:/usr", "host.sock"] {
        assert_eq!(passed("TMUX", value).0.as_deref(), Some(value));
    }
}
