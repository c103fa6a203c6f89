//! Policy files as a person meets them: what is wrong is said, layers add up, a cloned repository
//! grants itself nothing (POL-2 to POL-7).

use std::fs;

use palisade_testkit::{Output, World, am_root};

use crate::inside::{inside, private_mounts};

/// Runs a command that would leave a trace, under this policy file.
fn under(world: &World, name: &str, text: &str) -> Output {
    let file = world.write(name, text);
    let output = inside(world, &["--policy", file.to_str().unwrap()], "touch ran");
    if output.code() != 0 {
        assert!(!world.project().join("ran").exists(), "refused, and ran all the same");
    }
    output
}

#[track_caller]
fn assert_says(output: &Output, code: i32, words: &[&str]) {
    output.assert_code(code);
    for word in words {
        assert!(output.err().contains(word), "no {word:?} in: {}", output.err());
    }
}

/// Proves: POL-2 unknown-key
#[test]
fn an_unknown_key_is_shown_with_its_place_and_the_nearest_one() {
    let world = World::new();
    let yaml = under(&world, "p.yaml", "filesystem:\n  readOnlyPath: [/srv]\n");
    assert_says(&yaml, 125, &["p.yaml:2:3", "`filesystem.readOnlyPath`", "`readOnlyPaths`"]);
    let json = under(&world, "p.json", "{\n \"netwrk\": {}\n}\n");
    assert_says(&json, 125, &["p.json:2:2", "`netwrk`", "`network`"]);
}

/// Proves: POL-2 unknown-syscall, POL-5 check
#[test]
fn an_unknown_system_call_is_shown_with_its_place_and_the_nearest_one() {
    let world = World::new();
    let text = "syscalls:\n  mode: BLACKLIST\n  syscalls:\n    - kill\n    - mout\n";
    let words = ["p.yaml:5:7", "`mout` is not a system call; did you mean `mount`?"];
    assert_says(&under(&world, "p.yaml", text), 125, &words);
    let file = world.write("p.yaml", text);
    let planned = world.sandbox(["plan", "--policy"]).arg(&file).args(["--", "true"]).run();
    assert_says(&planned, 125, &words);
    let checked = world.sandbox(["policy", "check"]).arg(&file).run();
    checked.assert_code(1);
    for word in words {
        assert!(checked.out().contains(word), "no {word:?} in: {}", checked.out());
    }
    let tools = "tools:\n  bash: { syscalls: { mode: WHITELIST, syscalls: [read, wirte] } }\n";
    let file = world.write("tools.yaml", tools);
    let checked = world.sandbox(["policy", "check"]).arg(&file).run();
    checked.assert_code(1);
    let words = "tools.yaml:2:57: `tools.bash.syscalls.syscalls`: `wirte` is not a system call";
    assert!(checked.out().contains(words), "{}", checked.out());
}

/// Proves: POL-2 wrong-type, POL-2 contradiction
#[test]
fn wrong_types_and_contradictions_are_refused() {
    let world = World::new();
    let wrong = under(&world, "p.json", "{\"process\": {\n\"maxProcesses\": \"many\"}}");
    assert_says(&wrong, 125, &["p.json:2:", "`process.maxProcesses`"]);
    let level = under(&world, "p.yaml", "isolationLevel: LEVEL_7\n");
    assert_says(&level, 125, &["p.yaml:1:17", "LEVEL_0, LEVEL_1, LEVEL_2"]);
    let syntax = under(&world, "q.yaml", "filesystem: [\n");
    assert_says(&syntax, 125, &["q.yaml:1:"]);
    let text = "filesystem:\n  readWritePaths: [/srv]\n  deniedPaths: [/srv]\n";
    let both = under(&world, "r.yaml", text);
    assert_says(&both, 125, &["r.yaml:3:", "/srv"]);
}

/// Proves: POL-2 not-enforced
#[test]
fn what_nothing_enforces_is_refused() {
    let world = World::new();
    for (key, text) in [
        ("process.uid", "process: { uid: 1000 }"),
        ("process.gid", "process: { gid: 1000 }"),
        (
            "network.maxBytes",
            "network: { mode: nat, maxBytes: 1m }\napprovals: [{ what: 'network:nat', reason: r }]",
        ),
    ] {
        let output = under(&world, "p.yaml", text);
        assert_says(&output, 126, &["p.yaml:1:", key, "not enforced in this version"]);
    }
}

/// The policy in the appendix of the isolation model.
pub(crate) const REFERENCE: &str = r#"{
  "isolationLevel": "LEVEL_2",
  "filesystem": { "rootPath": "/var/sandbox/tool-1", "readOnlyPaths": ["/usr", "/lib"],
    "readWritePaths": ["/tmp"], "deniedPaths": ["/proc", "/sys", "/dev"],
    "maxFileSize": 10485760, "maxTotalSize": 104857600 },
  "process": { "maxProcesses": 10, "allowFork": true, "allowExec": false,
    "allowedExecutables": [] },
  "network": { "allowNetwork": false, "allowedHosts": [], "allowedPorts": [],
    "maxConnections": 0 },
  "resources": { "maxCPU": 5000, "maxMemory": 52428800, "maxFileDescriptors": 100,
    "maxThreads": 10 },
  "syscalls": { "mode": "WHITELIST", "syscalls": ["read", "write", "open", "close", "stat",
    "fstat", "lstat", "mmap", "munmap", "brk", "exit", "exit_group"] }
}"#;

/// Proves: POL-2 appendix-policy, POL-2 not-enforced
#[test]
fn nothing_in_the_reference_policy_is_refused() {
    let world = World::new();
    let file = world.write("reference.json", REFERENCE);
    let checked = world.sandbox(["policy", "check"]).arg(&file).run();
    checked.assert_code(0);
    let shown = world.sandbox(["policy", "show", "--policy"]).arg(&file).run();
    for held in
        ["filesystem.maxTotalSize: 100m", "resources.maxCPU: 5s", "resources.maxMemory: 50m"]
    {
        assert!(shown.out().contains(held), "no {held} in: {}", shown.out());
    }
}

/// Proves: POL-6 maximum, POL-6 none-for-a-person
#[test]
fn a_tool_is_held_to_its_maximum_and_a_person_is_not() {
    let world = World::new();
    let ran = world.project().join("ran");
    let above = inside(&world, &["--tool", "bash", "--memory", "3g"], "touch ran");
    let words = "--memory: `resources.maxMemory` is 3g, which exceeds the maximum 2g (preset tool:";
    assert_says(&above, 126, &[words, "use 2g or less"]);
    assert!(!ran.exists());
    let shown = world.sandbox(["policy", "show", "--memory", "3g"]).run();
    shown.assert_code(0);
    assert!(shown.out().contains("resources.maxMemory: 3g"), "{}", shown.out());
}

/// Proves: POL-2 waivers, LIFE-3 bad-input
#[test]
fn an_unknown_limit_is_not_waived() {
    let world = World::new();
    let output = inside(&world, &["--waive-limit", "memroy"], "touch ran");
    assert_says(&output, 125, &["--waive-limit:", "(nearest: memory), not `memroy`"]);
    assert!(!world.project().join("ran").exists());
}

/// Proves: POL-2 json, POL-2 yaml, POL-2 model
#[test]
fn json_and_yaml_mean_the_same_inside() {
    let world = World::new();
    world.write("outside/data/file", "content\n");
    let data = world.outside().join("data").display().to_string();
    let yaml = format!("filesystem: {{ readOnlyPaths: [{data}], project: read-only }}\n");
    let json = format!(r#"{{"filesystem":{{"readOnlyPaths":["{data}"],"project":"read-only"}}}}"#);
    for (name, text) in [("p.yaml", yaml), ("p.json", json)] {
        let file = world.write(name, text);
        let script = format!("cat {data}/file; touch new 2>/dev/null && echo wrote; true");
        let output = inside(&world, &["--policy", file.to_str().unwrap()], &script);
        assert_eq!(output.out(), "content\n", "{name}: {}", output.err());
    }
}

/// Proves: POL-2 schema, POL-7 presets, POL-5 check, LIFE-3 policy
#[test]
fn the_schema_and_the_presets_are_published() {
    let world = World::new();
    let schema = world.sandbox(["policy", "schema"]).run();
    schema.assert_code(0);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
    assert_eq!(schema["additionalProperties"], false);
    let presets = world.sandbox(["policy", "presets", "--json"]).run();
    let presets: serde_json::Value = serde_json::from_slice(&presets.stdout).unwrap();
    let names: Vec<_> = presets.as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let name = name.as_str().unwrap();
        let exported =
            world.sandbox(["policy", "export", "--format", "json", "--preset", name]).run();
        // A preset that loosens needs an approval to be merged; all of them are sound documents.
        if exported.code() == 0 {
            let file = world.write("exported.json", exported.stdout);
            let check = world.sandbox(["policy", "check", file.to_str().unwrap()]).run();
            let unsound = check.out().lines().filter(|line| !line.contains("not enforced")).count();
            assert!(unsound <= 1, "{name}: {}", check.out());
        }
        let document: serde_json::Value = exported_keys(&world);
        for key in document.as_object().into_iter().flatten().map(|(key, _)| key) {
            assert!(schema["properties"].get(key).is_some(), "{key} is not in the schema");
        }
    }
}

/// Proves: POL-7 presets
#[test]
fn every_preset_in_the_list_can_be_used() {
    let world = World::new();
    let listed = world.sandbox(["policy", "presets"]).run();
    let listed = listed.out();
    let json = world.sandbox(["policy", "presets", "--json"]).run();
    let presets: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    for preset in presets.as_array().unwrap() {
        let name = preset["name"].as_str().unwrap();
        let line = listed.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| !line.contains("not usable")), "{name}");
        assert_eq!(preset["usable"], true, "{name}");
        // The list must not promise what a run refuses. Which limits a host can hold, it cannot know.
        let flags = ["--preset", name, "--best-effort-limits", "--waive-limit", "cpus"];
        // Shells are not among the programs of a cargo runner.
        world.sandbox_run(flags, ["git", "--version"]).run().assert_code(0);
    }
}

fn exported_keys(world: &World) -> serde_json::Value {
    let exported = world.sandbox(["policy", "export", "--format", "json"]).run();
    exported.assert_code(0);
    serde_json::from_slice(&exported.stdout).unwrap()
}

/// Proves: POL-4 order, POL-4 provenance, POL-4 show
#[test]
fn layers_add_up_and_each_value_names_its_own() {
    let world = World::new();
    world.write("home/.config/palisade/policy.yaml", "resources: { timeout: 5m }\nview: minimal\n");
    let extra = world.write("extra.yaml", "resources: { timeout: 4m }\n");
    let extra = extra.to_str().unwrap();
    let shown = world
        .sandbox(["policy", "show", "--policy", extra, "--hostname", "named"])
        .env("SANDBOX_LEVEL", "1")
        .run();
    shown.assert_code(0);
    let line = |key: &str| {
        shown.out().lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned()
    };
    for (key, value, layer) in [
        ("view", "minimal", "user"),
        ("resources.timeout", "4m", "extra.yaml"),
        ("isolationLevel", "LEVEL_1", "SANDBOX_LEVEL"),
        ("process.hostname", "named", "--hostname"),
        ("network.mode", "none", "built-in"),
    ] {
        assert!(line(key).contains(value) && line(key).contains(layer), "{}", line(key));
    }
    let json = world.sandbox(["policy", "show", "--json"]).run();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["policy"]["view"], "minimal");
    assert!(json["provenance"]["view"].to_string().contains("user"), "{json}");
}

/// Proves: POL-4 lock, POL-4 order, POL-6 maximum, POL-1 level-0-approval
#[test]
fn what_the_organisation_locks_holds_for_everyone() {
    if !am_root() {
        eprintln!("skipped: only root can put a policy where the organisation's is");
        return;
    }
    let world = World::new();
    world.write(
        "etc/policy.yaml",
        "network: { mode: none }\nprocess: { hostname: organised }\n\
         locks: [network, isolationLevel]\nmaximum: { resources: { timeout: 1m } }\n",
    );
    world.write("home/.config/palisade/policy.yaml", "process: { hostname: mine }\n");
    let script = r#"
        mkdir -p ../over ../work; mount -t overlay -o lowerdir=/etc,upperdir=../over,workdir=../work none /etc 2>/dev/null ||
            { mount -t tmpfs none ../over; cp -a /etc/. ../over; mount --bind ../over /etc; }
        mkdir -p /etc/palisade; cp ../../etc/policy.yaml /etc/palisade/
        say() { code=0; "$PALISADE" "$@" 2>&1 || code=$?; echo "= $code"; }
        say run -- uname -n
        say run --network host -- touch ran
        say run --level 0 --approve-no-isolation because -- touch ran
        say run --timeout 2m -- touch ran
        say run --timeout 30s -- true
        say policy show | grep -E '^(network.mode|process.hostname)'
        say run -- sh -c 'cat /etc/palisade/policy.yaml 2>/dev/null; echo x > /etc/palisade/new'
    "#;
    let output = private_mounts(&world, script).run();
    let said = output.out().into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["mine", "= 0"], "{said}");
    assert!(lines[2].contains("network.mode") && lines[2].contains("lock"), "{said}");
    assert_eq!(lines.iter().filter(|line| **line == "= 126").count(), 3, "{said}");
    assert!(said.contains("maximum"), "{said}");
    assert!(said.contains("organisation"), "{said}");
    assert!(!said.contains("locks: ["), "{said}");
    assert!(!world.project().join("ran").exists());
}

/// Proves: POL-3 detect, POL-3 srt, POL-3 tool-json, POL-3 cargo-yaml, POL-3 proxy-config
#[test]
fn files_of_other_programs_are_known_by_their_shape() {
    let world = World::new();
    world.write("home/.secretive/key", "hidden\n");
    world.write("outside/granted/file", "");
    let granted = world.outside().join("granted").display().to_string();
    let srt = format!(
        r#"{{"network":{{"allowedDomains":[],"deniedDomains":[]}},
            "filesystem":{{"denyRead":["~/.secretive"],"allowWrite":[".","{granted}"],"denyWrite":[]}}}}"#
    );
    let file = world.write("srt.json", srt);
    let script = format!("cat ~/.secretive/key 2>/dev/null; touch {granted}/new && echo wrote");
    let output = inside(&world, &["--policy", file.to_str().unwrap()], &script);
    assert_eq!(output.out(), "wrote\n", "{}", output.err());

    for (name, text, expected) in [
        (
            "tools.json",
            r#"{"sandbox":{"bash":{"defaultNetwork":"none","resources":{"memory":"1g"}}}}"#,
            "valid",
        ),
        (
            "proxy.json",
            r#"{"allowlist":{"hosts":["a.example"],"ports":[443]},"blocklist":{"hosts":[]}}"#,
            "valid",
        ),
        ("cargo.yaml", "sandbox_config:\n  security:\n    audit_logging: true\n", "valid"),
    ] {
        let file = world.write(name, text);
        let check = world.sandbox(["policy", "check", file.to_str().unwrap()]).run();
        assert!(check.out().contains(expected), "{name}: {} {}", check.out(), check.err());
        assert!(!check.out().contains("unknown key"), "{name}: {}", check.out());
    }
}

/// Proves: POL-3 env-keys, POL-3 limits
#[test]
fn variables_mean_what_options_mean() {
    let world = World::new();
    let level = world.sandbox(["policy", "show"]).env("SANDBOX_MODE", "LEVEL_1").run();
    assert!(level.out().contains("isolationLevel: LEVEL_1"), "{}", level.out());
    let mode = world.sandbox(["policy", "show"]).env("SANDBOX_MODE", "static").run();
    assert!(mode.out().contains("mode: static"), "{}", mode.out());
    let limits = world
        .sandbox(["policy", "show"])
        .env("SANDBOX_MEMORY_LIMIT_MB", "64")
        .env("SANDBOX_CPU_LIMIT", "1.5")
        .env("SANDBOX_WAIVE_LIMIT", "cpus:iops")
        .run();
    let words = ["maxMemory: 64m", "cpus: 1.5", r#"waived: ["cpus","iops"]"#];
    for word in words {
        assert!(limits.out().contains(word), "no {word} in: {}", limits.out());
    }
    let twice = world
        .sandbox_run([""; 0], ["true"])
        .env("SANDBOX_MEMORY_LIMIT_MB", "64")
        .env("SANDBOX_MEMORY", "64m")
        .run();
    assert_says(&twice, 125, &["`SANDBOX_MEMORY_LIMIT_MB` and `SANDBOX_MEMORY`", "keep one"]);
    let refused = world.sandbox_run([""; 0], ["true"]).env("SANDBOX_ROOT", "/srv").run();
    assert_says(&refused, 126, &["SANDBOX_ROOT", "not enforced"]);
    let shown = world.sandbox(["policy", "show"]).env("SANDBOX_TTL_SECONDS", "64").run();
    assert!(shown.out().contains("timeToLive: 64s"), "{}", shown.out());
    let over = world.sandbox_run([""; 0], ["sleep", "60"]).env("SANDBOX_TTL_SECONDS", "1").run();
    assert_says(&over, 124, &["time limit"]);
    let wrong = world.sandbox_run([""; 0], ["true"]).env("SANDBOX_NO_DEBUG", "perhaps").run();
    assert_says(&wrong, 125, &["SANDBOX_NO_DEBUG=perhaps"]);
    let misspelt = world.sandbox_run([""; 0], ["touch", "ran"]).env("SANDBOX_LEVLE", "2").run();
    assert_says(&misspelt, 125, &["SANDBOX_LEVLE", "did you mean SANDBOX_LEVEL?"]);
    assert!(!world.project().join("ran").exists());
    let told = world
        .sandbox(["run", "--mode", "dynamic", "--", "true"])
        .env("SANDBOX_REPORT", "told.json")
        .env("SANDBOX_JSON", "1")
        .env("SANDBOX_QUIET", "1")
        .run();
    told.assert_code(0);
    let line: serde_json::Value = serde_json::from_slice(&told.stderr).unwrap();
    assert_eq!(line["outcome"], "completed");
    let file = fs::read(world.project().join("told.json")).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&file).unwrap(), line);
}

/// Proves: POL-2 contradiction, POL-1 level-0-approval, NET-1 host-approved
#[test]
fn an_approval_of_nothing_is_refused() {
    let world = World::new();
    for (flags, words) in [
        (&["--approve-no-isolation", "x"][..], ["--approve-no-isolation", "isolationLevel"]),
        (&["--approve-network-host", "x"], ["--approve-network-host", "network.mode"]),
        (
            &["--approve-network-host", "x", "--network", "none"],
            ["--approve-network-host", "network.mode"],
        ),
    ] {
        assert_says(&inside(&world, flags, "touch ran"), 125, &words);
    }
    assert!(!world.project().join("ran").exists());
    // What it approves may come from a file.
    let file = world.write("p.yaml", "network: { mode: host }\n");
    let flags = ["--policy", file.to_str().unwrap(), "--approve-network-host", "x"];
    inside(&world, &flags, "true").assert_code(0);
}

/// Proves: POL-5 import, POL-5 export, POL-5 dry-run, POL-5 check
#[test]
fn policies_are_carried_over_and_tried_before_they_count() {
    let world = World::new();
    let file = world.write("other.yaml", "resources: { timeout: 7m }\nprocess: { debug: false }\n");
    let file = file.to_str().unwrap();
    let diff = world.sandbox(["policy", "diff", file]).run();
    diff.assert_code(0);
    assert!(diff.out().contains("tightens process.debug: true -> false"), "{}", diff.out());
    let tried = world.sandbox(["policy", "import", "--dry-run", file]).run();
    tried.assert_code(0);
    let place = world.home().join(".config/palisade/policy.json");
    assert!(!place.exists());
    world.sandbox(["policy", "import", file]).run().assert_code(0);
    assert!(place.exists());
    let exported = world.sandbox(["policy", "export"]).run();
    assert!(exported.out().contains("debug: false"), "{}", exported.out());
    let again = world.sandbox(["policy", "import", file]).run();
    again.assert_code(125);
    assert!(again.err().contains("already exists"), "{}", again.err());
    world.sandbox(["policy", "check"]).run().assert_code(0);
}

/// Proves: POL-5 import, POL-3 cargo-yaml, POL-3 tool-json, POL-3 proxy-config
#[test]
fn nothing_is_lost_in_silence_when_a_policy_is_carried_over() {
    let world = World::new();
    let place = world.home().join(".config/palisade/policy.json");
    for (name, text, lines) in [
        (
            "cargo.yaml",
            "directory_permissions:\n  workspace: wo\n  logs: rw\nexecution_policy:\n  \
             blocked_executables: [sh]\n",
            &["lost", "cargo.yaml:2:3", "cargo.yaml:3:3", "cargo.yaml:5:3"][..],
        ),
        (
            "tools.json",
            "{\"sandbox\": {\n\"images\": {\"bash\": \"debian\"},\n\
             \"bash\": {\n\"uid\": 1000}}}",
            &["lost", "tools.json:2:1", "kept", "tools.json:4:1"],
        ),
        (
            "proxy.json",
            "{\"listenAddr\": \":80\",\n\"allowlist\": {\"hosts\": [\"a.example\"]}}",
            &["lost", "`listenAddr`", "sandbox proxy --listen [::]:80"],
        ),
    ] {
        let file = world.write(name, text);
        let file = file.to_str().unwrap();
        for dry in [&[][..], &["--dry-run"]] {
            let refused = world.sandbox(["policy", "import", file]).args(dry).run();
            assert_says(&refused, 1, lines);
            assert_says(&refused, 1, &["nothing was written", "--force"]);
            assert!(!place.exists(), "{name}");
        }
        let forced = world.sandbox(["policy", "import", "--force", file]).run();
        assert_says(&forced, 0, lines);
        fs::remove_file(&place).unwrap();
    }
}

/// Proves: POL-7 tool-levels, POL-7 lowering-approval, POL-6 default
#[test]
fn tools_have_levels_and_limits_of_their_own() {
    let world = World::new();
    for (tool, level, network) in [
        ("read", "LEVEL_1", "none"),
        ("write", "LEVEL_1", "none"),
        ("edit", "LEVEL_1", "none"),
        ("web_fetch", "LEVEL_1", "proxy"),
        ("bash", "LEVEL_2", "none"),
    ] {
        let shown = world.sandbox(["policy", "show", "--json", "--tool", tool]).run();
        shown.assert_code(0);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(shown["policy"]["isolationLevel"], level, "{tool}");
        assert_eq!(shown["policy"]["network"]["mode"], network, "{tool}");
        assert!(shown["policy"]["resources"]["timeout"].is_u64(), "{tool}");
        assert_eq!(shown["policy"]["process"]["debug"], false, "{tool}");
    }
    let lowered = world.sandbox(["policy", "show", "--tool", "bash", "--level", "1"]).run();
    assert_says(&lowered, 126, &["bash:"]);
    let above = world.sandbox(["policy", "show", "--tool", "bash", "--timeout", "11m"]).run();
    assert_says(&above, 126, &["exceeds the maximum 10m"]);
}
