//! The settings of yarn, pnpm, bun, uv, poetry, go, maven, gradle and gem, a file format each.

use super::{Invented, found, setup};
use crate::registry::Tool;

const NONE: [&str; 0] = [];

fn told(tool: Tool, files: &Invented) -> Vec<String> {
    let variables = setup(tool, files, &[]).variables;
    variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn with(path: &str, content: &str) -> Invented {
    Invented::default().with(path, content)
}

/// Proves: NET-3 default-hosts
#[test]
fn without_settings_each_tool_has_its_own_default() {
    for (tool, hosts) in [
        (Tool::Yarn, &["registry.yarnpkg.com:443"][..]),
        (Tool::Pnpm, &["registry.npmjs.org:443"]),
        (Tool::Bun, &["registry.npmjs.org:443"]),
        (Tool::Uv, &["pypi.org:443", "files.pythonhosted.org:443"]),
        (Tool::Poetry, &["pypi.org:443", "files.pythonhosted.org:443"]),
        (Tool::Go, &["proxy.golang.org:443", "sum.golang.org:443"]),
        (Tool::Maven, &["repo.maven.apache.org:443"]),
        (Tool::Gem, &["rubygems.org:443", "index.rubygems.org:443"]),
    ] {
        assert_eq!(found(tool, &Invented::default(), &[]), hosts, "{tool}");
    }
    let gradle = found(Tool::Gradle, &Invented::default(), &[]);
    assert!(gradle.contains(&"plugins.gradle.org:443".to_owned()), "{gradle:?}");
}

/// Proves: NET-3 default-hosts
#[test]
fn yarn_1_reads_its_own_file_and_npms() {
    let text = "# yarn lockfile v1\nlastUpdateCheck 15\nregistry \"https://user:secret@yarn.example/npm/\"\n\
                \"@corp:registry\" \"https://corp.example/\"\n";
    let own = with("/home/u/.yarnrc", text);
    assert_eq!(found(Tool::Yarn, &own, &[]), ["yarn.example:443", "corp.example:443"]);
    assert_eq!(told(Tool::Yarn, &own), ["npm_config_registry=https://yarn.example/npm/"]);
    for name in ["YARN_REGISTRY", "yarn_registry"] {
        let set = found(Tool::Yarn, &Invented::default(), &[(name, "https://env.example/")]);
        assert_eq!(set, ["env.example:443"], "{name}");
    }
    // Which yarn it is is not known, and later ones do not read npm's file.
    let of_npm = with("/home/u/.npmrc", "registry=https://npm.example/\n");
    assert_eq!(found(Tool::Yarn, &of_npm, &[]), ["registry.yarnpkg.com:443", "npm.example:443"]);
    assert_eq!(told(Tool::Yarn, &of_npm), ["npm_config_registry=https://npm.example/"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn later_yarns_read_a_server_for_all_and_one_for_a_scope() {
    let text = "npmRegistryServer: \"https://berry.example/\" # ours\nnpmScopes:\n  corp:\n    \
                npmRegistryServer: https://corp.example\n    npmAuthToken: secret\n";
    let own = with("/home/u/.yarnrc.yml", text);
    assert_eq!(found(Tool::Yarn, &own, &[]), ["berry.example:443", "corp.example:443"]);
    assert_eq!(told(Tool::Yarn, &own), ["YARN_NPM_REGISTRY_SERVER=https://berry.example/"]);
    let server = [("YARN_NPM_REGISTRY_SERVER", "https://env.example/")];
    assert_eq!(found(Tool::Yarn, &Invented::default(), &server), ["env.example:443"]);
    let fallback = "npmRegistryServer: '${MIRROR:-https://fallback.example/}'\n";
    let fallback = with("/home/u/.yarnrc.yml", fallback);
    assert_eq!(found(Tool::Yarn, &fallback, &[]), ["fallback.example:443"]);
    let set = [("MIRROR", "https://set.example/")];
    assert_eq!(found(Tool::Yarn, &fallback, &set), ["set.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn pnpm_reads_npms_file_and_its_own() {
    let of_npm = with("/home/u/.npmrc", "registry=https://npm.example/\n");
    assert_eq!(found(Tool::Pnpm, &of_npm, &[]), ["npm.example:443"]);
    let own = of_npm.with("/home/u/.config/pnpm/rc", "registry=https://pnpm.example/\n");
    assert_eq!(found(Tool::Pnpm, &own, &[]), ["pnpm.example:443"]);
    assert_eq!(told(Tool::Pnpm, &own), ["npm_config_registry=https://pnpm.example/"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn bun_reads_its_own_file() {
    let text = "[install]\nregistry = { url = \"https://bun.example/\", token = \"secret\" }\n\
                [install.scopes]\n\"@a\" = \"https://a.example/\"\n";
    let own = with("/home/u/.bunfig.toml", text);
    assert_eq!(found(Tool::Bun, &own, &[]), ["a.example:443", "bun.example:443"]);
    assert_eq!(told(Tool::Bun, &own), ["BUN_CONFIG_REGISTRY=https://bun.example/"]);
    let set = [("BUN_CONFIG_REGISTRY", "https://env.example")];
    assert_eq!(found(Tool::Bun, &own, &set), ["a.example:443", "env.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn uv_reads_indexes_in_both_forms() {
    for (text, hosts) in [
        ("index-url = \"https://one.example/simple\"\n", &["one.example:443"][..]),
        (
            "[[index]]\nname='a'\nurl='https://a.example/simple'\n",
            &["pypi.org:443", "files.pythonhosted.org:443", "a.example:443"],
        ),
        ("[[index]]\nurl='https://d.example/'\ndefault=true\n", &["d.example:443"]),
        (
            "[pip]\nindex-url='https://pip.example/'\nextra-index-url=['https://x.example/']\n",
            &["pip.example:443", "x.example:443"],
        ),
    ] {
        assert_eq!(
            found(Tool::Uv, &with("/home/u/.config/uv/uv.toml", text), &[]),
            hosts,
            "{text}"
        );
    }
    let env = [
        ("UV_DEFAULT_INDEX", "main=https://main.example/simple"),
        ("UV_INDEX", "https://b.example/x=y c=https://c.example/"),
    ];
    assert_eq!(
        found(Tool::Uv, &Invented::default(), &env),
        ["main.example:443", "b.example:443", "c.example:443"]
    );
    let older = [("UV_INDEX_URL", "https://older.example/")];
    assert_eq!(found(Tool::Uv, &with("/etc/uv/uv.toml", ""), &older), ["older.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn poetry_reads_mirrors_and_repositories() {
    let text = "[repositories.corp]\nurl = \"https://corp.example/simple\"\n\
                [plugins.pypi_mirror]\nurl = \"https://mirror.example/simple\"\n";
    let own = with("/home/u/.config/pypoetry/config.toml", text);
    assert_eq!(found(Tool::Poetry, &own, &[]), ["mirror.example:443", "corp.example:443"]);
    let set = [("POETRY_PYPI_MIRROR_URL", "https://env.example/")];
    assert_eq!(found(Tool::Poetry, &Invented::default(), &set), ["env.example:443"]);
}

/// Proves: NET-3 default-hosts
#[test]
fn go_reads_proxies_and_the_checksum_database() {
    for (env, hosts) in [
        (
            &[("GOPROXY", "https://a.example|https://b.example,direct")][..],
            &["a.example:443", "b.example:443", "sum.golang.org:443"][..],
        ),
        (&[("GOPROXY", "off"), ("GOSUMDB", "off")], &NONE),
        (
            &[("GOPROXY", "off"), ("GOSUMDB", "sum.example+1a2b+key https://db.example")],
            &["db.example:443"],
        ),
        (&[("GOPROXY", "off"), ("GOSUMDB", "sum.example+1a2b")], &["sum.example:443"]),
    ] {
        assert_eq!(found(Tool::Go, &Invented::default(), env), hosts, "{env:?}");
    }
    let own = with("/usr/lib/go/go.env", "# usual\nGOPROXY=https://distribution.example\n");
    let expected = ["distribution.example:443", "sum.golang.org:443"];
    assert_eq!(found(Tool::Go, &own, &[]), expected);
    let own = own.with("/home/u/.config/go/env", "GOPROXY=https://me.example\nGOSUMDB=off\n");
    assert_eq!(found(Tool::Go, &own, &[]), ["me.example:443"]);
    assert_eq!(told(Tool::Go, &own), ["GOPROXY=https://me.example", "GOSUMDB=off"]);
    let secret = with("/home/u/.config/go/env", "GOPROXY=https://me:secret@me.example\n");
    assert_eq!(told(Tool::Go, &secret), NONE);
    let direct =
        setup(Tool::Go, &Invented::default(), &[("GOPROXY", "direct"), ("GOSUMDB", "off")]);
    assert!(direct.hosts.is_empty() && direct.notes[0].contains("--allow-for go,git"));
}

/// Proves: NET-3 default-hosts
#[test]
fn maven_reads_mirrors_and_repositories_of_its_settings() {
    let mirror = |of: &str| {
        format!(
            "<settings><!-- <mirror><url>https://no.example</url></mirror> --><mirrors><mirror>\n\
             <id>m</id><url> https://mirror.example/maven </url><mirrorOf>{of}</mirrorOf></mirror></mirrors>\n\
             <profiles><profile><repositories><repository><id>r</id><url>https://${{env.PLACE}}.example/</url>\
             </repository></repositories></profile></profiles></settings>"
        )
    };
    let place = [("PLACE", "repo")];
    for (of, central) in [("*", false), ("central", false), ("*,!central", true), ("other", true)] {
        let own = with("/home/u/.m2/settings.xml", &mirror(of));
        let mut expected = vec!["mirror.example:443", "repo.example:443"];
        expected.extend(central.then_some("repo.maven.apache.org:443"));
        assert_eq!(found(Tool::Maven, &own, &place), expected, "{of}");
        let notes = setup(Tool::Maven, &own, &place).notes;
        assert!(notes[0].contains("--ro ~/.m2/settings.xml"), "{notes:?}");
    }
    let of_all = with("/etc/maven/settings.xml", &mirror("*"));
    assert!(setup(Tool::Maven, &of_all, &place).notes.is_empty(), "that one is not hidden");
}

/// Proves: NET-3 default-hosts
#[test]
fn gradle_reads_what_init_scripts_name() {
    let script = "allprojects { repositories { maven { url 'https://a.example/m2' } } }\n\
                  // maven { url 'https://no.example/' }\nmaven(\"https://b.example/\")\n";
    let own = with("/home/u/.gradle/init.d/mirror.gradle", script);
    let hosts = found(Tool::Gradle, &own, &[]);
    assert!(
        hosts.ends_with(&["a.example:443".to_owned(), "b.example:443".to_owned()]),
        "{hosts:?}"
    );
}

/// Proves: NET-3 default-hosts
#[test]
fn gem_and_bundler_read_sources_and_mirrors() {
    let gemrc = "---\n:backtrace: false\n:sources:\n- https://gems.example/\n- \"http://b.example\"\n:verbose: true\n";
    let own = with("/home/u/.gemrc", gemrc);
    assert_eq!(found(Tool::Gem, &own, &[]), ["gems.example:443", "b.example:80"]);
    for of in ["ALL", "HTTPS://RUBYGEMS__ORG/"] {
        let text = format!("---\nBUNDLE_MIRROR__{of}: \"https://m.example/\"\n");
        assert_eq!(
            found(Tool::Gem, &with("/home/u/.bundle/config", &text), &[]),
            ["m.example:443"]
        );
    }
    let other = [("BUNDLE_MIRROR__HTTPS://OTHER__EXAMPLE/", "https://m.example/")];
    assert_eq!(
        found(Tool::Gem, &Invented::default(), &other),
        ["m.example:443", "rubygems.org:443", "index.rubygems.org:443"]
    );
}

/// What a command inside could write would open the next run's network.
///
/// Proves: NET-3 default-hosts
#[test]
fn nothing_of_the_project_is_followed_by_any_of_them() {
    let inside = "/home/u/work/project";
    let files = Invented::default()
        .with(&format!("{inside}/.yarnrc"), "registry \"https://evil.example/\"\n")
        .with(&format!("{inside}/.yarnrc.yml"), "npmRegistryServer: https://evil.example/\n")
        .with(&format!("{inside}/bunfig.toml"), "[install]\nregistry='https://evil.example/'\n")
        .with(&format!("{inside}/uv.toml"), "index-url='https://evil.example/'\n")
        .with(
            &format!("{inside}/.m2/settings.xml"),
            "<mirror><url>https://evil.example</url></mirror>",
        )
        .with(&format!("{inside}/go.env"), "GOPROXY=https://evil.example\n")
        .with(
            &format!("{inside}/.bundle/config"),
            "BUNDLE_MIRROR__ALL: \"https://evil.example/\"\n",
        );
    let file = format!("{inside}/uv.toml");
    let env = [
        ("UV_CONFIG_FILE", file.as_str()),
        ("GOENV", "/home/u/work/project/go.env"),
        ("BUNDLE_USER_CONFIG", "/home/u/work/project/.bundle/config"),
    ];
    for tool in Tool::ALL {
        let hosts = found(tool, &files, &env);
        assert!(!hosts.iter().any(|host| host.starts_with("evil")), "{tool}: {hosts:?}");
    }
}
