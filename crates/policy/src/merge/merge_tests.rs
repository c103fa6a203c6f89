use super::tighten::Direction;
use super::*;
use crate::decode::document::{Named, PolicyDocument};
use crate::decode::parse::parse;
use crate::diagnostic::{Origin, Problem};
use crate::keys::{self, Key};
use crate::model::{Level, Mode, NetworkMode};
use crate::syntax::tree::Format;
use crate::{diff, preset};
use LayerKind::{CommandLine, Organisation, Project, User, Writable};
use Trust::{Trusted, Untrusted};

fn layer(kind: LayerKind, text: &str) -> PolicyLayer {
    let file = format!("{}.yaml", kind.name());
    let document = parse(text, &file, Format::Yaml).unwrap_or_else(|p| panic!("{text}: {p:?}"));
    PolicyLayer { kind, document }
}

fn run(layers: Vec<PolicyLayer>) -> Result<Merged, Vec<Diagnostic>> {
    merge(&Subject::Run, layers)
}

/// Proves: POL-4 order
#[test]
fn a_later_layer_wins_in_whatever_order_they_are_handed_in() {
    let layers = vec![
        layer(CommandLine, "resources: { timeout: 4s }"),
        layer(Organisation, "resources: { timeout: 1s, maxThreads: 1 }\nview: minimal"),
        layer(User, "resources: { timeout: 3s, maxThreads: 3 }"),
        layer(
            Project(Trusted),
            "resources: { timeout: 2s, maxThreads: 2, maxFileDescriptors: 20 }",
        ),
    ];
    let policy = run(layers).unwrap().policy;
    assert_eq!(policy.resources.timeout, Some(4000));
    assert_eq!(policy.resources.max_threads, Some(3));
    assert_eq!(policy.resources.max_file_descriptors, Some(20));
    assert_eq!(policy.view, crate::View::Minimal);
}

/// Proves: POL-7 presets
#[test]
fn a_tool_that_nobody_knows_by_its_name_gets_the_preset_of_all_and_a_note_says_so() {
    let noted = |tool: &str, layers| -> Vec<String> {
        let merged = merge(&Subject::Tool(tool.into()), layers).unwrap();
        merged.notes.iter().map(ToString::to_string).collect()
    };
    let told = "tools: no policy declares the tool `web_fech`: it gets the preset `tool`; did you \
                mean `web_fetch`?";
    assert_eq!(noted("web_fech", Vec::new()), [told]);
    assert_eq!(noted("deploy", Vec::new()).len(), 1);
    assert!(noted("web_fetch", Vec::new()).is_empty());
    let declared = layer(User, "tools: { deploy: { resources: { timeout: 1s } } }");
    assert!(noted("deploy", vec![declared]).is_empty());
}

/// Proves: POL-4 order
#[test]
fn lists_add_up_an_empty_one_clears_and_denials_stay() {
    let base =
        "filesystem: { readOnlyPaths: [/a], deniedPaths: [/x] }\nprocess: { env: { A: '1' } }";
    let more =
        "filesystem: { readOnlyPaths: [/b, /a], deniedPaths: [/y] }\nprocess: { env: { B: '2' } }";
    let policy = run(vec![layer(Organisation, base), layer(User, more)]).unwrap().policy;
    assert_eq!(policy.filesystem.read_only_paths, ["/a", "/b"]);
    assert_eq!(policy.filesystem.denied_paths, ["/x", "/y"]);
    assert_eq!(policy.process.env.len(), 2);
    let clear = "filesystem: { readOnlyPaths: [], deniedPaths: [] }";
    let policy = run(vec![layer(Organisation, base), layer(User, clear)]).unwrap().policy;
    assert!(policy.filesystem.read_only_paths.is_empty());
    assert_eq!(policy.filesystem.denied_paths, ["/x"]);
}

/// Proves: POL-4 order
#[test]
fn system_call_lists_follow_their_mode() {
    let organisation = "syscalls: { mode: BLACKLIST, syscalls: [ptrace] }";
    let same = "syscalls: { mode: BLACKLIST, syscalls: [bpf] }";
    let other = "syscalls: { mode: WHITELIST, syscalls: [read] }";
    let policy = run(vec![layer(Organisation, organisation), layer(User, same)]).unwrap().policy;
    assert_eq!(policy.syscalls.syscalls, ["ptrace", "bpf"]);
    let policy = run(vec![layer(Organisation, organisation), layer(User, other)]).unwrap().policy;
    assert_eq!(policy.syscalls.syscalls, ["read"]);
}

/// Proves: POL-4 order
#[test]
fn a_project_may_only_lower_how_many_attempts_are_suffered() {
    let most = |text| run(vec![layer(Project(Untrusted), text)]).unwrap().policy.syscalls;
    assert_eq!(most("{}").max_blocked, Some(100));
    assert_eq!(most("syscalls: { maxBlocked: 5 }").max_blocked, Some(5));
    assert_eq!(most("syscalls: { maxBlocked: 5 }").syscalls, [""; 0], "says nothing of the list");
    assert_eq!(most("syscalls: { maxBlocked: 1000 }").max_blocked, Some(100));
    let user = run(vec![layer(User, "syscalls: { maxBlocked: 1000 }")]).unwrap().policy;
    assert_eq!(user.syscalls.max_blocked, Some(1000));
}

/// Proves: POL-4 provenance
#[test]
fn every_value_names_the_layer_file_and_line_it_came_from() {
    let merged = run(vec![
        layer(Organisation, "filesystem:\n  readOnlyPaths: [/a]\n"),
        layer(User, "\nview: minimal\nfilesystem:\n  readOnlyPaths: [/b]\n"),
    ])
    .unwrap();
    let source = |layer, file: &str, line| Provenance { layer, file: file.to_owned(), line };
    assert_eq!(merged.provenance["view"], [source("user", "user.yaml", 2)]);
    assert_eq!(
        merged.provenance["filesystem.readOnlyPaths"],
        [source("organisation", "organisation.yaml", 2), source("user", "user.yaml", 4)]
    );
    assert_eq!(merged.provenance["network.mode"][0].file, "preset default");
    for path in merged.settings.keys() {
        assert!(!merged.provenance[*path].is_empty(), "{path}");
    }
}

/// Proves: POL-4 lock
#[test]
fn a_lock_lets_other_layers_tighten_and_never_loosen() {
    let organisation = "
network: { mode: proxy, allowedHosts: [a.example, b.example] }
resources: { timeout: 10m }
filesystem: { deniedPaths: [/x] }
locks: [network, resources.timeout, filesystem.deniedPaths, process.debug]
";
    for (text, key) in [
        ("network: { mode: nat }", "network.mode"),
        ("network: { allowedHosts: [c.example] }", "network.allowedHosts"),
        ("resources: { timeout: 11m }", "resources.timeout"),
    ] {
        for kind in [User, CommandLine, Project(Trusted)] {
            let problems =
                run(vec![layer(Organisation, organisation), layer(kind, text)]).unwrap_err();
            assert_eq!(problems[0].problem, Problem::Locked);
            assert_eq!((problems[0].key.as_str(), problems[0].line), (key, 1));
            assert!(problems[0].message.contains("organisation.yaml:5"), "{}", problems[0]);
        }
    }
    let tighter = "
network: { mode: none, allowedHosts: [] }
resources: { timeout: 1m }
filesystem: { deniedPaths: [/y] }
process: { debug: false }
";
    let policy = run(vec![layer(Organisation, organisation), layer(User, tighter)]).unwrap().policy;
    assert_eq!(policy.network.mode, NetworkMode::None);
    assert_eq!(policy.resources.timeout, Some(60_000));
    assert_eq!(policy.filesystem.denied_paths, ["/x", "/y"]);
}

/// Proves: POL-4 lock
#[test]
fn a_lock_holds_against_presets_tools_and_system_call_lists() {
    let organisation = "locks: [isolationLevel, syscalls, process.hostname]";
    let loosen = "syscalls: { mode: BLACKLIST, syscalls: [] }";
    let problems = run(vec![layer(Organisation, organisation), layer(User, loosen)]).unwrap_err();
    assert_eq!(problems[0].problem, Problem::Locked);
    let rename = "process: { hostname: other }";
    assert!(run(vec![layer(Organisation, organisation), layer(User, rename)]).is_err());
    let by_preset = run(vec![layer(Organisation, organisation), layer(User, "preset: read")]);
    assert_eq!(by_preset.unwrap_err()[0].key, "isolationLevel");
    let layers = vec![
        layer(Organisation, organisation),
        layer(User, "tools: { bash: { isolationLevel: LEVEL_1 } }"),
    ];
    let by_tool = merge(&Subject::Tool("bash".into()), layers).unwrap_err();
    assert_eq!(by_tool[0].problem, Problem::Locked);
}

/// Proves: POL-4 lock
#[test]
fn locks_maxima_and_approvals_belong_to_their_layers() {
    for (kind, text, key) in [
        (User, "locks: [network]", "locks"),
        (CommandLine, "maximum: { resources: { timeout: 1s } }", "maximum"),
        (Project(Trusted), "approvals: [{ what: no-isolation, reason: please }]", "approvals"),
        (Project(Trusted), "tools: { a: { approvals: [{ what: b, reason: c }] } }", "approvals"),
    ] {
        let problems = run(vec![layer(kind, text)]).unwrap_err();
        assert_eq!((problems[0].problem, problems[0].key.as_str()), (Problem::WrongLayer, key));
    }
    let text = "approvals: [{ what: no-isolation, reason: please }]\nisolationLevel: LEVEL_0";
    let merged = run(vec![layer(Project(Untrusted), text)]).unwrap();
    assert!(merged.policy.approvals.is_empty());
    assert_eq!(merged.policy.isolation_level, Level::Full);
}

/// Proves: POL-4 untrusted-project
#[test]
fn an_untrusted_project_grants_itself_nothing_and_is_told_how_to() {
    let project = "\
mode: static
filesystem:
  readWritePaths: [~/.ssh]
  hideSecrets: false
network: { mode: host }
process: { env: { LD_PRELOAD: ./x.so } }
resources: { timeout: 5s }
";
    let merged = run(vec![layer(Project(Untrusted), project)]).unwrap();
    assert!(merged.policy.filesystem.read_write_paths.is_empty());
    assert!(merged.policy.filesystem.hide_secrets);
    assert_eq!(merged.policy.network.mode, NetworkMode::None);
    assert_eq!(merged.policy.mode, Mode::Dynamic);
    assert!(merged.policy.process.env.is_empty());
    assert_eq!(merged.policy.resources.timeout, Some(5000), "tightening is applied");
    let notes: Vec<String> = merged.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 5, "{notes:?}");
    let about = notes.iter().find(|note| note.contains("readWritePaths")).unwrap();
    assert_eq!(
        about,
        "project.yaml:3:3: `filesystem.readWritePaths` not applied: the project's file is not \
         trusted and can only tighten; read it, then run `sandbox policy trust`"
    );
}

/// Proves: POL-4 untrusted-project
#[test]
fn the_same_file_trusted_gets_what_it_asks_for() {
    let project = "filesystem: { readWritePaths: [../shared] }\npreset: read";
    let trusted = run(vec![layer(Project(Trusted), project)]).unwrap();
    assert_eq!(trusted.policy.filesystem.read_write_paths, ["../shared"]);
    assert_eq!(trusted.policy.isolation_level, Level::Process);
    let untrusted = run(vec![layer(Project(Untrusted), project)]).unwrap();
    assert_eq!(untrusted.policy.isolation_level, Level::Full, "nor through a preset");
}

/// Proves: POL-4 writable-file
#[test]
fn a_file_that_commands_could_write_only_tightens_what_the_user_said_until_it_is_trusted() {
    let file = "isolationLevel: LEVEL_1\nresources: { timeout: 5s }";
    let layers =
        |trust| vec![layer(User, "resources: { timeout: 1m }"), layer(Writable(trust), file)];
    let untrusted = run(layers(Untrusted)).unwrap();
    assert_eq!(untrusted.policy.isolation_level, Level::Full);
    // It was named for this run, so it stands above the user's own.
    assert_eq!(untrusted.policy.resources.timeout, Some(5000));
    assert_eq!(run(layers(Trusted)).unwrap().policy.isolation_level, Level::Process);
    let told = untrusted.notes[0].to_string();
    assert!(told.contains("could have written this file"), "{told}");
    assert!(told.contains("sandbox policy trust file.yaml"), "{told}");
}

/// Proves: POL-4 writable-file
#[test]
fn approvals_in_a_file_that_commands_could_write_never_count() {
    let file = "isolationLevel: LEVEL_0\napprovals: [{ what: no-isolation, reason: planted }]";
    let untrusted = run(vec![layer(Writable(Untrusted), file)]).unwrap();
    assert_eq!(untrusted.policy.isolation_level, Level::Full);
    assert!(untrusted.policy.approvals.is_empty());
    let problems = run(vec![layer(Writable(Trusted), file)]).unwrap_err();
    assert_eq!(problems[0].problem, Problem::WrongLayer);
    // Nor may it use those of somebody else to get there.
    let approved = "approvals: [{ what: no-isolation, reason: mine }]";
    let layers = vec![layer(User, approved), layer(Writable(Untrusted), file)];
    assert_eq!(run(layers).unwrap().policy.isolation_level, Level::Full);
}

/// Proves: POL-4 cannot-stall
#[test]
fn a_file_that_nobody_trusts_cannot_stall_or_break_every_run() {
    let project = "\
resources:
  normalizeTime: 1h
  grace: 1h
  timeout: 1ms
  maxMemory: 5m
  cpus: 0.01
  cpuSet: '900'
  maxIOPS: 1
filesystem: { project: none, maxInodes: 1 }
process: { maxProcesses: 1 }
";
    for kind in [Project(Untrusted), Writable(Untrusted)] {
        let merged = run(vec![layer(kind, project)]).unwrap();
        let (policy, built_in) = (&merged.policy, run(Vec::new()).unwrap().policy);
        assert_eq!(policy.resources, built_in.resources);
        assert_eq!(policy.filesystem.project, built_in.filesystem.project);
        assert_eq!(policy.process.max_processes, None);
        let notes: Vec<String> = merged.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), 10, "{notes:?}");
        assert!(notes.iter().all(|note| note.contains("ignored: the file is not trusted")));
        let about = notes.iter().find(|note| note.contains("normalizeTime")).unwrap();
        assert!(about.contains(".yaml:2:3") && about.contains("every run wait"), "{about}");
    }
    let trusted = run(vec![layer(Project(Trusted), "resources: { normalizeTime: 1h }")]).unwrap();
    assert_eq!(trusted.policy.resources.normalize_time, Some(3_600_000));
    let sensible = "resources: { timeout: 5s, maxMemory: 1g }\nfilesystem: { project: read-only }";
    let merged = run(vec![layer(Project(Untrusted), sensible)]).unwrap();
    assert_eq!(merged.policy.resources.timeout, Some(5000));
    assert_eq!(merged.policy.filesystem.project, crate::ProjectAccess::ReadOnly);
}

/// Proves: POL-4 order
#[test]
fn the_user_may_widen_again_what_a_project_tightened() {
    let layers = vec![
        layer(Organisation, "resources: { timeout: 10m }\nlocks: [resources.timeout]"),
        layer(Project(Untrusted), "resources: { timeout: 1s }"),
        layer(User, "resources: { timeout: 5m }"),
    ];
    assert_eq!(run(layers).unwrap().policy.resources.timeout, Some(300_000));
}

/// Proves: POL-6 maximum
#[test]
fn asking_above_the_maximum_is_an_error() {
    let tool = Subject::Tool("bash".into());
    let problems = merge(&tool, vec![layer(User, "resources:\n  timeout: 11m\n")]).unwrap_err();
    assert_eq!(problems[0].problem, Problem::AboveMaximum);
    assert_eq!(
        problems[0].to_string(),
        "user.yaml:2:3: `resources.timeout` is 11m, which exceeds the maximum 10m (preset tool:26); \
         use 10m or less"
    );
    assert!(merge(&tool, vec![layer(User, "resources: { timeout: 10m }")]).is_ok());
    let raised = "maximum: { resources: { timeout: 30m } }";
    let layers = vec![layer(Organisation, raised), layer(User, "resources: { timeout: 20m }")];
    assert!(merge(&tool, layers).is_ok(), "the organisation says what the most is");
    let per_tool = vec![layer(User, "tools: { bash: { process: { maxProcesses: 501 } } }")];
    assert_eq!(merge(&tool, per_tool).unwrap_err()[0].key, "process.maxProcesses");
}

/// Proves: POL-6 maximum
#[test]
fn a_limit_nobody_set_stands_at_its_maximum() {
    let merged = run(vec![layer(Organisation, "maximum: { resources: { timeout: 1h } }")]).unwrap();
    assert_eq!(merged.policy.resources.timeout, Some(3_600_000));
    assert_eq!(merged.provenance["resources.timeout"][0].layer, "organisation");
}

/// Proves: POL-6 maximum, POL-2 limit-keys
#[test]
fn every_limit_can_have_a_maximum_and_swap_stays_off_below_its_own() {
    let organisation = "maximum: { resources: { maxSwap: 1g, memoryHigh: 2g, maxIOPS: 500 } }\n";
    let merged = run(vec![layer(Organisation, organisation)]).unwrap();
    assert_eq!(merged.policy.resources.max_swap, None);
    assert_eq!(merged.policy.resources.memory_high, Some(2 << 30));
    assert_eq!(merged.policy.resources.max_iops, Some(500));
    let user = |text| run(vec![layer(Organisation, organisation), layer(User, text)]);
    let fits = user("resources: { maxMemory: 4g, maxSwap: 1g }").unwrap();
    assert_eq!(fits.policy.resources.max_swap, Some(1 << 30));
    let above = user("resources:\n  maxMemory: 4g\n  maxSwap: 2g\n").unwrap_err();
    assert_eq!(
        above[0].to_string(),
        "user.yaml:3:3: `resources.maxSwap` is 2g, which exceeds the maximum 1g (organisation.yaml:1); \
         use 1g or less"
    );
    let no_maximum = ["cpuSet: '0'", "normalizeTime: 1s", "bestEffort: true", "waived: [cpus]"];
    for text in no_maximum {
        let text = format!("maximum: {{ resources: {{ {text} }} }}");
        let problems = parse(&text, "o.yaml", Format::Yaml).unwrap_err();
        assert_eq!(problems[0].problem, Problem::UnknownKey, "{text}");
    }
}

/// Proves: POL-2 waivers, POL-4 untrusted-project, POL-4 lock
#[test]
fn whoever_may_only_tighten_cannot_have_limits_held_less_firmly() {
    let memory = layer(Organisation, "resources: { maxMemory: 1g }");
    for (text, key) in [
        ("resources: { bestEffort: true }", "resources.bestEffort"),
        ("resources: { waived: [memory] }", "resources.waived"),
        ("resources: { maxSwap: 1g }", "resources.maxSwap"),
    ] {
        let merged = run(vec![memory.clone(), layer(Project(Untrusted), text)]).unwrap();
        assert_eq!(merged.policy.resources.max_swap, None);
        assert!(!merged.policy.resources.best_effort && merged.policy.resources.waived.is_empty());
        assert_eq!(merged.notes.len(), 1, "{text}");
        assert_eq!(merged.notes[0].key, key);

        let locked = layer(Organisation, "resources: { maxMemory: 1g }\nlocks: [resources]");
        let problems = run(vec![locked, layer(CommandLine, text)]).unwrap_err();
        assert_eq!((problems[0].problem, problems[0].key.as_str()), (Problem::Locked, key));

        let asked = run(vec![memory.clone(), layer(CommandLine, text)]).unwrap().policy.resources;
        let is_given = asked.best_effort || asked.max_swap.is_some() || asked.waived == ["memory"];
        assert!(is_given, "{text}");
    }
}

/// Proves: POL-2 contradiction, POL-2 limit-keys
#[test]
fn swap_needs_a_memory_limit_from_some_layer() {
    let swap = "resources:\n  maxSwap: 1g\n";
    let alone = run(vec![layer(User, swap)]).unwrap_err();
    assert_eq!(
        alone[0].to_string(),
        "user.yaml:2:3: `resources.maxSwap` is added to `resources.maxMemory`, which is not set; \
         set that too (`--memory`), or remove it"
    );
    assert_eq!(alone[0].problem, Problem::Contradiction);
    let memory = layer(CommandLine, "resources: { maxMemory: 1g }");
    assert!(run(vec![layer(User, swap), memory]).is_ok());
    let none = layer(User, "resources: { maxSwap: 0 }");
    assert!(merge(&Subject::Tool("bash".into()), vec![none]).is_ok());
}

/// Proves: POL-2 unknown-key
#[test]
fn an_unknown_preset_or_lock_names_the_nearest() {
    let problems = run(vec![layer(User, "preset: [strict, minmal]")]).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "user.yaml:1:18: there is no preset `minmal`; did you mean `minimal`?"
    );
    let locks = parse("locks: [netwrk.mode]", "o.yaml", Format::Yaml).unwrap_err();
    assert_eq!(locks[0].suggestion.as_deref(), Some("network.mode"));
}

#[test]
fn a_presets_values_lie_below_those_of_the_layer_that_names_it() {
    let merged =
        run(vec![layer(User, "preset: strict\nfilesystem: { project: read-write }")]).unwrap();
    assert_eq!(merged.policy.filesystem.project, crate::ProjectAccess::ReadWrite);
    assert_eq!(merged.policy.view, crate::View::Minimal, "from the preset that strict builds on");
    assert_eq!(merged.provenance["view"][0].file, "preset minimal");
    assert!(preset("strict").is_some());
}

/// Proves: POL-2 contradiction
#[test]
fn layers_together_can_contradict_where_none_does_alone() {
    let problems = run(vec![layer(CommandLine, "process: { userNamespace: false }")]).unwrap_err();
    assert_eq!(problems[0].problem, Problem::Contradiction);
    let both = "isolationLevel: LEVEL_1\nprocess: { userNamespace: false }";
    assert!(run(vec![layer(CommandLine, both)]).is_ok());
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn some_of(items: &'static [&'static str]) -> impl Strategy<Value = String> {
        proptest::sample::subsequence(items, 0..=items.len())
            .prop_map(|chosen| format!("[{}]", chosen.join(", ")))
    }

    fn one_of(items: &'static [&'static str]) -> impl Strategy<Value = String> {
        proptest::sample::select(items).prop_map(str::to_owned)
    }

    /// Some value for one key, as YAML.
    fn value(key: &'static Key) -> BoxedStrategy<String> {
        use crate::keys::ValueKind;
        match key.kind {
            ValueKind::Word(words) => {
                proptest::sample::select(words).prop_map(|(word, _)| format!("'{word}'")).boxed()
            }
            ValueKind::Bool => any::<bool>().prop_map(|b| b.to_string()).boxed(),
            ValueKind::Paths | ValueKind::Executables => some_of(&["/a", "/b", "/c"]).boxed(),
            ValueKind::Hosts => some_of(&["a.example", "b.example"]).boxed(),
            ValueKind::Ports => some_of(&["80", "443", "22"]).boxed(),
            ValueKind::PrivateRanges => some_of(&["10.0.0.0/8", "192.168.1.0/24"]).boxed(),
            ValueKind::Tools => some_of(&["npm", "git"]).boxed(),
            ValueKind::Upstream => one_of(&["http://a.example:80", "http://b.example:80"]).boxed(),
            ValueKind::Webhook => one_of(&["https://a.example", "https://b.example"]).boxed(),
            ValueKind::Published => some_of(&["'1080:80'", "'2022:22'"]).boxed(),
            ValueKind::Credentials => one_of(&[
                "[]",
                "[{ name: A, from: 'env:A', host: a.example }]",
                "[{ name: B, from: 'file:b', host: b.example }]",
            ])
            .boxed(),
            ValueKind::EnvNames => some_of(&["HOME", "LANG"]).boxed(),
            ValueKind::SyscallNames => some_of(&["read", "write", "bpf"]).boxed(),
            ValueKind::LimitNames => some_of(&["memory", "cpus"]).boxed(),
            ValueKind::CpuSet => one_of(&["'0'", "0-1", "1-2"]).boxed(),
            ValueKind::EnvMap => one_of(&["{}", "{ A: '1' }"]).boxed(),
            ValueKind::Path | ValueKind::Hostname => one_of(&["one", "two"]).boxed(),
            ValueKind::Approvals => one_of(&[
                "[]",
                "[{ what: no-isolation, reason: r }]",
                "[{ what: 'network:host', reason: r }]",
                "[{ what: 'network:nat', reason: r }, { what: 'network:private', reason: r }]",
            ])
            .boxed(),
            _ => (1u8..5).prop_map(|number| number.to_string()).boxed(),
        }
    }

    /// A document that sets some keys, in the dotted form flags use.
    fn document() -> impl Strategy<Value = Option<PolicyDocument>> {
        let entry =
            (0..keys::KEYS.len()).prop_map(|index| &keys::KEYS[index]).prop_flat_map(|key| {
                (Just(key.path), value(key)).prop_map(|(path, text)| (path, text))
            });
        let preset = proptest::option::weighted(0.2, one_of(&["bash", "read", "strict", "cargo"]));
        (proptest::collection::vec(entry, 0..12), preset).prop_map(|(entries, preset)| {
            let mut flags: Vec<crate::Flag> = Vec::new();
            for (path, text) in entries {
                let value = json(&crate::syntax::tree::read(&text, Format::Yaml).unwrap());
                flags.retain(|flag| flag.key != path);
                // A list without its mode is refused, so it brings one.
                if path == "syscalls.syscalls" && !flags.iter().any(|f| f.key == "syscalls.mode") {
                    let mode = if text.contains("bpf") { "BLACKLIST" } else { "WHITELIST" };
                    flags.push(crate::Flag::new("test", "syscalls.mode", mode));
                }
                flags.push(crate::Flag::new("test", path, value));
            }
            flags.extend(preset.map(|name| crate::Flag::new("test", "preset", name)));
            PolicyDocument::from_flags(flags).ok()
        })
    }

    fn json(node: &crate::syntax::tree::Node) -> serde_json::Value {
        use crate::syntax::tree::Tree;
        match &node.tree {
            Tree::Bool(value) => (*value).into(),
            Tree::Integer(number) => i64::try_from(*number).unwrap().into(),
            Tree::Text(text) => text.clone().into(),
            Tree::List(items) => items.iter().map(json).collect(),
            Tree::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn stack(documents: &[Option<PolicyDocument>; 3]) -> Vec<PolicyLayer> {
        let kinds = [Organisation, User, CommandLine];
        let pairs = kinds.into_iter().zip(documents);
        pairs
            .filter_map(|(kind, document)| Some(PolicyLayer { kind, document: document.clone()? }))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// Proves: POL-4 untrusted-project
        #[test]
        fn an_untrusted_project_never_loosens(
            trusted in [document(), document(), document()],
            project in document(),
            tool in any::<bool>(),
        ) {
            let subject = if tool { Subject::Tool("bash".into()) } else { Subject::Run };
            let Some(project) = project else { return Ok(()) };
            let mut layers = stack(&trusted);
            let Ok(without) = merge(&subject, layers.clone()) else { return Ok(()) };
            layers.push(PolicyLayer { kind: Project(Untrusted), document: project });
            // An error is safe: nothing runs.
            let Ok(with) = merge(&subject, layers) else { return Ok(()) };
            for change in diff(&without, &with) {
                // Of what is left to be answered for, others answer as before.
                let is_others_word = change.key == "approvals" && !change.to.contains("project");
                let is_fine = change.direction == Direction::Tightens || is_others_word;
                prop_assert!(is_fine, "{:?}", change);
            }
        }

        /// Proves: POL-4 lock
        #[test]
        fn nothing_loosens_what_the_organisation_locks(
            organisation in document(),
            later in [document(), document(), document()],
        ) {
            let Some(mut organisation) = organisation else { return Ok(()) };
            organisation.presets.clear();
            let origin = Origin { file: "o".into(), line: 1, column: 1 };
            for name in keys::children("") {
                organisation.locks.push(Named { name: name.to_owned(), origin: origin.clone() });
            }
            let top = PolicyLayer { kind: Organisation, document: organisation };
            let Ok(alone) = run(vec![top.clone()]) else { return Ok(()) };
            let [project, user, command_line] = later;
            let kinds = [Project(Trusted), User, CommandLine];
            let mut layers = vec![top];
            for (kind, document) in kinds.into_iter().zip([project, user, command_line]) {
                layers.extend(document.map(|document| PolicyLayer { kind, document }));
            }
            let Ok(all) = run(layers) else { return Ok(()) };
            for change in diff(&alone, &all) {
                prop_assert_eq!(change.direction, Direction::Tightens, "{:?}", change);
            }
        }
    }

    /// The generator must reach merges that succeed and change something, or it proves nothing.
    #[test]
    fn the_generator_reaches_what_it_should() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (mut merged, mut tightened) = (0, 0);
        for _ in 0..400 {
            let tree = document().new_tree(&mut runner).unwrap();
            let Some(document) = proptest::strategy::ValueTree::current(&tree) else { continue };
            let kind = Project(Untrusted);
            let without = run(Vec::new()).unwrap();
            if let Ok(with) = run(vec![PolicyLayer { kind, document }]) {
                merged += 1;
                tightened += usize::from(!diff(&without, &with).is_empty());
            }
        }
        assert!(merged > 200 && tightened > 100, "{merged} {tightened}");
    }
}
