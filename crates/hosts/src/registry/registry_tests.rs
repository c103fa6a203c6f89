use super::*;

#[path = "git_tests.rs"]
mod git;
#[path = "more_tests.rs"]
mod more;

/// A host that has these files and no others.
#[derive(Default)]
struct Invented(BTreeMap<PathBuf, Vec<u8>>);

impl Invented {
    fn with(mut self, path: &str, content: &str) -> Self {
        self.0.insert(PathBuf::from(path), content.as_bytes().to_vec());
        self
    }
}

impl Files for Invented {
    fn read(&self, path: &Path, longest: usize) -> Option<Vec<u8>> {
        self.0.get(path).filter(|content| content.len() <= longest).cloned()
    }

    fn children(&self, directory: &Path) -> Vec<OsString> {
        let below = self.0.keys().filter_map(|path| path.strip_prefix(directory).ok());
        below.filter_map(|path| Some(path.components().next()?.as_os_str().to_owned())).collect()
    }
}

fn setup(tool: Tool, files: &Invented, env: &[(&str, &str)]) -> Setup {
    let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let around = ToolContext {
        home: Some(Path::new("/home/u")),
        project: Path::new("/home/u/work/project"),
        env: &env,
    };
    find(tool, &around, files)
}

fn found(tool: Tool, files: &Invented, env: &[(&str, &str)]) -> Vec<String> {
    let entries = setup(tool, files, env).hosts;
    entries
        .iter()
        .map(|entry| {
            let ports = entry.ports.as_ref().unwrap();
            let place = format!(
                "{}:{}",
                entry.pattern,
                ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
            );
            assert!(entry.written.ends_with(&format!("({tool})")), "{}", entry.written);
            place
        })
        .collect()
}

const NPM_DEFINITIONS: &str = "
  'registry-ish': new Definition('registry-ish', {
    default: 'https://no.example/',
  }),
  registry: new Definition('registry', {
    default: 'https://built-in.example/',
    type: url,
  }),
";

fn npm_installed() -> Invented {
    Invented::default().with(
        "/usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        NPM_DEFINITIONS,
    )
}

/// Proves: NET-3 default-hosts
#[test]
fn npm_without_settings_uses_what_is_built_in() {
    assert_eq!(found(Tool::Npm, &npm_installed(), &[]), ["built-in.example:443"]);
    assert_eq!(found(Tool::Npm, &Invented::default(), &[]), [""; 0]);
    let older = Invented::default().with(
        "/opt/node/lib/node_modules/npm/lib/utils/config/definitions.js",
        "define('registry', {\n  default: \"https://older.example/\",",
    );
    assert_eq!(
        found(Tool::Npm, &older, &[("PATH", "/opt/node/bin:/usr/bin")]),
        ["older.example:443"]
    );
}

/// Proves: NET-3 default-hosts
#[test]
fn npm_follows_the_users_mirror() {
    let files = npm_installed()
        .with("/etc/npmrc", "registry=https://all.example/\n@old:registry=https://old.example")
        .with(
            "/home/u/.npmrc",
            "; a comment\nregistry = \"https://npm.corp.example:8443/path/\"\n\
             @corp:registry=http://user:secret@scope.example/\n\
             //npm.corp.example/:_authToken=secret\n\
             @var:registry=https://${PLACE}.example/\n",
        );
    assert_eq!(
        found(Tool::Npm, &files, &[("PLACE", "from-variable")]),
        [
            "scope.example:80",
            "old.example:443",
            "from-variable.example:443",
            "npm.corp.example:8443"
        ]
    );
    let by_variable = found(Tool::Npm, &files, &[("NPM_CONFIG_REGISTRY", "https://env.example")]);
    assert!(by_variable.contains(&"env.example:443".to_owned()), "{by_variable:?}");
    assert!(!by_variable.contains(&"npm.corp.example:8443".to_owned()), "{by_variable:?}");
    let elsewhere = files.with("/home/u/other", "registry=https://other.example");
    let moved = found(Tool::Npm, &elsewhere, &[("npm_config_userconfig", "/home/u/other")]);
    assert_eq!(moved, ["old.example:443", "other.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn npm_takes_variables_in_any_case_and_scopes_from_them_too() {
    for name in ["NPM_Config_Registry", "npm_config_registry", "Npm_CONFIG_registry"] {
        let hosts = found(Tool::Npm, &npm_installed(), &[(name, "https://env.example/")]);
        assert_eq!(hosts, ["env.example:443"], "{name}");
        let files = npm_installed().with("/home/u/.npmrc", "registry=https://file.example/");
        let setup = setup(Tool::Npm, &files, &[(name, "https://env.example/")]);
        assert_eq!(setup.variables, [], "{name} is set already");
    }
    let env = [("NPM_CONFIG_@corp:Registry", "https://scope.example/"), ("npm_config_", "x")];
    let hosts = found(Tool::Npm, &npm_installed(), &env);
    assert_eq!(hosts, ["scope.example:443", "built-in.example:443"]);
    let elsewhere = npm_installed().with("/home/u/other", "registry=https://other.example");
    let moved = found(Tool::Npm, &elsewhere, &[("NPM_config_UserConfig", "/home/u/other")]);
    assert_eq!(moved, ["other.example:443"]);
}

/// A mark at the beginning of a file is none of its first key.
///
/// Proves: NET-3 default-hosts
#[test]
fn a_byte_order_mark_hides_nothing() {
    let files = npm_installed()
        .with("/home/u/.npmrc", "\u{feff}registry=https://npm.corp.example/\n")
        .with(
            "/home/u/.config/pip/pip.conf",
            "\u{feff}[global]\nindex-url=https://pip.corp.example/",
        )
        .with("/home/u/.cargo/config.toml", "\u{feff}[registries.x]\nindex='https://c.example/'")
        .with("/home/u/.gitconfig", "\u{feff}[url \"https://git.corp.example/\"]\ninsteadOf=x");
    assert_eq!(found(Tool::Npm, &files, &[]), ["npm.corp.example:443"]);
    for (tool, host) in [
        (Tool::Pip, "pip.corp.example:443"),
        (Tool::Cargo, "c.example:443"),
        (Tool::Git, "git.corp.example:443"),
    ] {
        let hosts = found(tool, &files, &[]);
        assert!(hosts.contains(&host.to_owned()), "{tool}: {hosts:?}");
    }
}

/// What is set and cannot be read does not open the default.
#[test]
fn npm_with_an_unreadable_registry_has_none() {
    let files = npm_installed().with("/home/u/.npmrc", "registry=https://${UNSET}/\n");
    assert_eq!(found(Tool::Npm, &files, &[]), [""; 0]);
}

/// What a command inside could write would open the next run's network.
///
/// Proves: NET-3 default-hosts
#[test]
fn nothing_of_the_project_is_followed() {
    let files = npm_installed()
        .with("/home/u/work/project/.npmrc", "registry=https://evil.example/")
        .with("/home/u/work/project/pip.conf", "[global]\nindex-url=https://evil.example/")
        .with(
            "/home/u/work/project/.cargo/config.toml",
            "[registries.e]\nindex='https://evil.example/'",
        )
        .with(
            "/home/u/work/project/.venv/lib/python3.13/site-packages/pip/_internal/models/index.py",
            PIP_INDEX,
        )
        .with("/venv/lib/python3.13/site-packages/pip/_internal/models/index.py", PIP_INDEX)
        .with(
            "/home/u/.cargo/registry/index/evil.example-0123/config.json",
            "{\"dl\":\"https://evil.example\"}",
        );
    let env = [
        ("npm_config_userconfig", "/home/u/work/project/.npmrc"),
        ("PIP_CONFIG_FILE", "/home/u/work/project/pip.conf"),
        ("PATH", "/home/u/work/project/.venv/bin:/venv/bin:/usr/bin"),
        ("VIRTUAL_ENV", "/venv"),
    ];
    assert_eq!(found(Tool::Npm, &files, &env), ["built-in.example:443"]);
    assert_eq!(found(Tool::Pip, &files, &env), [""; 0]);
    assert_eq!(found(Tool::Cargo, &files, &env), [""; 0]);
}

const PIP_INDEX: &str = "
class PackageIndex:
    def __init__(self, url: str, file_storage_domain: str) -> None:
        pass

Main = PackageIndex(
    \"https://index.example/\", file_storage_domain=\"files.example\"
)
Test = PackageIndex(\"https://test.example/\", file_storage_domain=\"test-files.example\")
";

/// Proves: NET-3 default-hosts
#[test]
fn pip_without_settings_uses_index_and_files_of_what_is_installed() {
    for place in [
        "/usr/lib/python3/dist-packages",
        "/usr/local/lib/python3.13/dist-packages",
        "/home/u/.local/lib/python3.11/site-packages",
        "/home/u/.pyenv/versions/3.12.1/lib/python3.12/site-packages",
    ] {
        let files =
            Invented::default().with(&format!("{place}/pip/_internal/models/index.py"), PIP_INDEX);
        assert_eq!(
            found(Tool::Pip, &files, &[]),
            ["index.example:443", "files.example:443"],
            "{place}"
        );
    }
}

/// Proves: NET-3 default-hosts
#[test]
fn pip_follows_the_users_mirror() {
    let installed = || {
        Invented::default()
            .with("/usr/lib/python3/dist-packages/pip/_internal/models/index.py", PIP_INDEX)
    };
    let files = installed()
        .with("/etc/pip.conf", "[global]\nindex-url = https://all.example/simple\n")
        .with(
            "/home/u/.config/pip/pip.conf",
            "[global]\nindex_url: https://user:pass@pip.corp.example:8443/simple\n\
             extra-index-url =\n    https://one.example/simple\n    # not this\n    http://two.example/simple\n\
             [install]\nfind-links = /opt/wheels https://links.example/\n",
        );
    let all = ["pip.corp.example:8443", "one.example:443", "two.example:80", "links.example:443"];
    assert_eq!(found(Tool::Pip, &files, &[]), all);
    assert_eq!(
        found(
            Tool::Pip,
            &files,
            &[
                ("PIP_INDEX_URL", "https://env.example/"),
                ("PIP_EXTRA_INDEX_URL", "https://x.example")
            ]
        ),
        ["env.example:443", "x.example:443", "links.example:443"]
    );
    assert_eq!(found(Tool::Pip, &files, &[("PIP_NO_INDEX", "1")]), ["links.example:443"]);
    assert_eq!(
        found(Tool::Pip, &files, &[("PIP_CONFIG_FILE", "/dev/null")]),
        ["index.example:443", "files.example:443"]
    );
    let local =
        installed().with("/home/u/.pip/pip.conf", "[global]\nindex-url = file:///srv/simple\n");
    assert_eq!(found(Tool::Pip, &local, &[]), [""; 0]);
}

const CARGO_PROGRAM: &str = "\0sparse+https://iints\0sparse+https://index.built-in.example/\0\
                             see https://built-in.example/crates/\0";

fn cargo_installed() -> Invented {
    Invented::default()
        .with("/home/u/.rustup/toolchains/stable-x86_64/bin/cargo", CARGO_PROGRAM)
        .with("/home/u/.cargo/bin/cargo", "rustup, really")
}

/// Proves: NET-3 default-hosts
#[test]
fn cargo_without_settings_uses_the_registry_in_the_program() {
    assert_eq!(
        found(Tool::Cargo, &cargo_installed(), &[]),
        ["index.built-in.example:443", "**.built-in.example:443"]
    );
    let system = Invented::default().with("/usr/bin/cargo", "sparse+https://index.system.example/");
    assert_eq!(found(Tool::Cargo, &system, &[]), ["index.system.example:443"]);
    let none = Invented::default().with("/usr/bin/cargo", "sparse+https://index.system.example");
    assert_eq!(found(Tool::Cargo, &none, &[]), [""; 0]);
}

/// Proves: NET-3 default-hosts
#[test]
fn cargo_follows_the_users_mirror() {
    for (config, hosts) in [
        (
            "[source.crates-io]\nreplace-with = 'corp'\n[source.corp]\nregistry = 'sparse+https://cargo.corp.example:8443/index/'\n",
            &["cargo.corp.example:8443"][..],
        ),
        (
            "[source]\ncrates-io = { replace-with = 'one' }\none = { replace-with = 'two' }\n\
             [registries.two]\nindex = 'https://git.corp.example/index'\n",
            &["git.corp.example:443"],
        ),
        ("[source.crates-io]\nreplace-with = 'v'\n[source.v]\ndirectory = 'vendor'\n", &[]),
        ("[source.crates-io]\nreplace-with = 'a'\n[source.a]\nreplace-with = 'crates-io'\n", &[]),
        ("[source.crates-io]\nreplace-with = 'nobody'\n", &[]),
        (
            "[registries]\nmine = { index = 'ssh://git@git.corp.example/index' }\n",
            &["index.built-in.example:443", "**.built-in.example:443", "git.corp.example:22"],
        ),
        ("this is = not toml = at all", &["index.built-in.example:443", "**.built-in.example:443"]),
    ] {
        let files = cargo_installed().with("/home/u/.cargo/config.toml", config);
        assert_eq!(found(Tool::Cargo, &files, &[]), hosts, "{config}");
    }
}

#[test]
fn cargo_takes_nearer_settings_and_variables_first() {
    let files = cargo_installed()
        .with("/c/config.toml", "[source.crates-io]\nreplace-with='far'\n[source.far]\nregistry='https://far.example/'\n")
        .with("/home/u/work/.cargo/config", "[source.crates-io]\nreplace-with='near'\n[source.near]\nregistry='https://near.example/'\n");
    assert_eq!(found(Tool::Cargo, &files, &[("CARGO_HOME", "/c")]), ["near.example:443"]);
    let env =
        [("CARGO_HOME", "/c"), ("CARGO_REGISTRIES_MY_REG_INDEX", "sparse+https://env.example/")];
    assert_eq!(found(Tool::Cargo, &files, &env), ["near.example:443", "env.example:443"]);
}

#[test]
fn a_url_gives_its_host_and_port_and_no_more() {
    for (text, place) in [
        ("https://user:p%40ss@x.example:8443/a?b#c", Some("x.example:8443 (npm)")),
        ("HTTPS://X.Example", Some("x.example:443 (npm)")),
        ("sparse+http://x.example/", Some("x.example:80 (npm)")),
        ("https://[2001:db8::1]:8443/", Some("[2001:db8::1]:8443 (npm)")),
        ("https://[2001:db8::1]", Some("[2001:db8::1]:443 (npm)")),
        ("https://0x7f.1/", Some("127.0.0.1:443 (npm)")),
        ("https://good.example@evil.example/", Some("evil.example:443 (npm)")),
        ("https://x.example:0/", None),
        ("https://x.example:http/", None),
        ("https://*.example/", None),
        ("https:///path", None),
        ("file:///srv", None),
        ("/srv/wheels", None),
    ] {
        assert_eq!(
            url::entry(text, Tool::Npm).map(|entry| entry.written).as_deref(),
            place,
            "{text}"
        );
    }
}

/// Settings files are hidden inside; the tool still finds the mirror, and no password with it.
///
/// Proves: NET-3 default-hosts
#[test]
fn a_tool_is_told_its_mirror_without_secrets() {
    let files = Invented::default()
        .with(
            "/home/u/.npmrc",
            "registry=https://u:secret@npm.example/path/\n@a:registry=https://a.example/\n\
             @b:registry=https://b.example/abcdef0123456789/npm\n//npm.example/:_authToken=secret\n",
        )
        .with(
            "/home/u/.config/pip/pip.conf",
            "[global]\nindex-url = https://u:secret@pip.example:8443/simple\n\
             extra-index-url =\n  https://one.example/simple\n  https://secret@two.example/simple\n\
             find-links = https://links.example?token=secret\n[install]\nindex-url = https://other.example\n",
        );
    let told = |tool| setup(tool, &files, &[]).variables;
    let expected = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(
        told(Tool::Npm),
        expected(&[
            ("npm_config_@a:registry", "https://a.example/"),
            ("npm_config_registry", "https://npm.example/path/"),
        ])
    );
    assert_eq!(
        told(Tool::Pip),
        expected(&[
            ("PIP_INDEX_URL", "https://pip.example:8443/simple"),
            ("PIP_EXTRA_INDEX_URL", "https://one.example/simple https://two.example/simple"),
        ])
    );
    let own =
        setup(Tool::Npm, &files, &[("NPM_CONFIG_REGISTRY", "https://own.example/")]).variables;
    assert_eq!(own, expected(&[("npm_config_@a:registry", "https://a.example/")]));
    assert_eq!(setup(Tool::Npm, &Invented::default(), &[]).variables, []);
    assert_eq!(setup(Tool::Pip, &Invented::default(), &[]).variables, []);
}

#[test]
fn tools_have_words() {
    for tool in Tool::ALL {
        assert_eq!(Tool::from_word(tool.word()), Some(tool));
    }
    assert_eq!(Tool::from_word("apt"), None);
}
