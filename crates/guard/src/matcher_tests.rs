use super::*;
use std::collections::BTreeSet;

const TREE: &str = "/home/u/project";

fn matcher() -> Matcher {
    Matcher::new(MatchContext { homes: vec!["/home/u".into()], ..MatchContext::default() })
}

fn hit_in(matcher: &Matcher, tree: &str, path: &str, old: &[&str]) -> Option<String> {
    let mut is_old = |dir: &Path| old.iter().any(|known| dir == Path::new(known));
    matcher.judge(Path::new(tree), Path::new(path), &mut is_old).map(|hit| hit.name.to_owned())
}

fn hit(path: &str) -> Option<String> {
    hit_in(&matcher(), TREE, &format!("{TREE}/{path}"), &[])
}

/// Proves: FS-9 list
#[test]
fn ordinary_names_are_left_alone() {
    for path in [
        "src/main.rs",
        "Cargo.toml",
        "README.md",
        "package.json",
        "Makefile",
        ".gitignore",
        ".gitattributes",
        ".env",
        "CLAUDE.md",
        "node_modules/.bin/tsc",
        ".github/workflows/ci.yml",
        ".config/app.toml",
        ".cargo/registry/x",
        "bin/tool",
        "lefthook",
        "vscode/settings.json",
        ".vscode2",
        "a/.yarn/cache/x.zip",
    ] {
        assert_eq!(hit(path), None, "{path}");
    }
    assert_eq!(hit_in(&matcher(), TREE, TREE, &[]), None);
}

/// Proves: FS-9 list
#[test]
fn names_of_a_directory_count_at_every_depth() {
    for path in [".envrc", "a/b/.envrc", ".EnvRC", "a/.gdbinit", "a/.hg/hgrc", "x/.Rprofile"] {
        assert!(hit(path).is_some(), "{path}");
    }
    assert_eq!(hit("a/.envrc/below").as_deref(), Some(".envrc"));
    assert_eq!(hit("a/.hg/store"), None);
}

/// Proves: FS-9 list
#[test]
fn names_of_a_top_count_at_the_top_and_in_directories_that_were_there() {
    for path in [
        ".vscode",
        ".vscode/settings.json",
        ".VSCode/tasks.json",
        ".claude/settings.json",
        "my.code-workspace",
        ".cargo/config.toml",
        "lefthook.yml",
        ".yarn/releases/yarn-4.cjs",
        ".ide\u{200d}a/x",
    ] {
        assert!(hit(path).is_some(), "{path}");
        let nested = format!("{TREE}/sub/{path}");
        assert_eq!(hit_in(&matcher(), TREE, &nested, &[]), None, "{path}");
        let old = format!("{TREE}/sub");
        assert!(hit_in(&matcher(), TREE, &nested, &[&old]).is_some(), "{path}");
    }
    assert_eq!(hit(".cargo"), None);
    assert_eq!(hit(".yarn/releases").as_deref(), Some(".yarn/releases"));
}

#[test]
fn directories_are_asked_about_only_for_a_name_that_matters() {
    let matcher = matcher();
    let mut asked = Vec::new();
    let mut is_old = |dir: &Path| {
        asked.push(dir.to_owned());
        false
    };
    for path in ["a/b/main.rs", "a/.envrc", ".vscode", "a/b/.vscode/x"] {
        matcher.judge(Path::new(TREE), &Path::new(TREE).join(path), &mut is_old);
    }
    assert_eq!(asked, [Path::new(TREE).join("a/b")]);
}

/// Proves: FS-9 home-names
#[test]
fn names_of_a_home_count_where_a_grant_covers_them() {
    let matcher = matcher();
    for path in [
        ".bashrc",
        ".config/autostart/x.desktop",
        ".local/bin/ls",
        ".ssh/config",
        ".emacs.d/init.el",
        ".config/Code - OSS/User/settings.json",
    ] {
        let path = format!("/home/u/{path}");
        assert!(hit_in(&matcher, "/home/u", &path, &[]).is_some(), "{path}");
        assert!(hit_in(&matcher, "/home", &path, &[]).is_some(), "{path}");
        assert_eq!(hit_in(&matcher, "/srv", &path.replace("/home/u", "/srv"), &[]), None);
    }
    assert!(hit_in(&matcher, "/home/u/.config", "/home/u/.config/fish/config.fish", &[]).is_some());
    assert_eq!(hit_in(&matcher, "/home/u", "/home/u/.config/app/state", &[]), None);
}

/// Proves: FS-9 list
#[test]
fn programs_and_configuration_inside_caches_count() {
    let matcher = matcher();
    for (tree, path) in [
        ("/home/u/.cache", "/home/u/.cache/pre-commit/db.db"),
        ("/home/u/.cache/ccache", "/home/u/.cache/ccache/ccache.conf"),
        ("/home/u/go/pkg/mod", "/home/u/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.25/bin/go"),
    ] {
        assert!(hit_in(&matcher, tree, path, &[]).is_some(), "{path}");
    }
    assert_eq!(
        hit_in(&matcher, "/home/u/go/pkg/mod", "/home/u/go/pkg/mod/golang.org/x", &[]),
        None
    );
}

#[test]
fn what_was_granted_by_name_is_no_hit() {
    let matcher = matcher();
    assert_eq!(hit_in(&matcher, "/home/u/.bashrc", "/home/u/.bashrc", &[]), None);
    assert_eq!(hit_in(&matcher, "/home/u/.local/bin", "/home/u/.local/bin/tool", &[]), None);
    assert_eq!(hit_in(&matcher, "/p/.vscode", "/p/.vscode/settings.json", &[]), None);
    assert!(hit_in(&matcher, "/home/u/.local", "/home/u/.local/bin/tool", &[]).is_some());
}

#[test]
fn archives_of_others_may_be_unpacked_in_a_store() {
    let store = "/home/u/.cargo/registry";
    let grounds = MatchContext {
        homes: vec!["/home/u".into()],
        stores: vec![store.into(), "/home/u/.ccache".into()],
        ..MatchContext::default()
    };
    let matcher = Matcher::new(grounds);
    assert_eq!(hit_in(&matcher, store, &format!("{store}/src/x/.envrc"), &[]), None);
    assert_eq!(hit_in(&matcher, store, &format!("{store}/.vscode"), &[]), None);
    assert!(
        hit_in(&matcher, "/home/u/.ccache", "/home/u/.ccache/ccache.conf", &[]).is_some(),
        "names of the home count"
    );
    assert!(
        matcher.below(Path::new(store), &Path::new(store).join(".cargo"), &mut |_| true).is_empty()
    );
}

/// Proves: FS-9 allow-write
#[test]
fn an_opened_path_is_open_with_everything_below() {
    let opened = vec![Path::new(TREE).join(".vscode"), Path::new(TREE).join("sub/.envrc")];
    let matcher = Matcher::new(MatchContext { opened, ..MatchContext::default() });
    let hit = |path: &str| hit_in(&matcher, TREE, &format!("{TREE}/{path}"), &[]);
    assert_eq!(hit(".vscode/settings.json"), None);
    assert_eq!(hit("sub/.envrc"), None);
    assert!(hit(".envrc").is_some() && hit(".idea").is_some());
}

/// Proves: FS-9 more-paths
#[test]
fn further_paths_are_guarded_in_every_variant() {
    let path = Path::new(TREE).join("tools/hooks");
    let more = vec![GuardedPath { path, why: "core.hooksPath" }];
    let matcher = Matcher::new(MatchContext { more, ..MatchContext::default() });
    let hit = |path: &str| hit_in(&matcher, TREE, &format!("{TREE}/{path}"), &[]);
    assert!(hit("tools/hooks").is_some() && hit("tools/Hooks/pre-commit").is_some());
    assert_eq!(hit("tools/hooks2"), None);
    let inside = format!("{TREE}/tools/hooks/x");
    assert_eq!(hit_in(&matcher, &format!("{TREE}/tools/hooks"), &inside, &[]), None);
}

fn below_of(matcher: &Matcher, tree: &str, path: &str) -> BTreeSet<String> {
    let found = matcher.below(Path::new(tree), Path::new(path), &mut |_| false);
    found
        .into_iter()
        .map(|below| match below.name {
            NamePattern::Exact(name) => below.dir.join(OsStr::from_bytes(&name)),
            NamePattern::Around(before, _) => below.dir.join(OsStr::from_bytes(before)),
        })
        .map(|path| path.display().to_string())
        .collect()
}

/// Proves: FS-9 moved-directories
#[test]
fn a_directory_brings_with_it_what_its_new_name_makes_of_its_contents() {
    let matcher = matcher();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let cargo: BTreeSet<String> = set(&["config", "config.toml"]);
    assert_eq!(below_of(&matcher, TREE, &format!("{TREE}/.cargo")), cargo);
    assert!(below_of(&matcher, TREE, &format!("{TREE}/sub/.cargo")).is_empty());
    assert!(below_of(&matcher, TREE, &format!("{TREE}/src")).is_empty());
    let hg: BTreeSet<String> = set(&["hgrc", "hgrc-not-shared", "sharedpath"]);
    assert_eq!(below_of(&matcher, TREE, &format!("{TREE}/sub/.hg")), hg);
    let config = below_of(&matcher, "/home/u", "/home/u/.config");
    assert!(config.contains("autostart") && config.contains("google-chrome/NativeMessagingHosts"));
    let cache = below_of(&matcher, "/home/u", "/home/u/.cache");
    assert!(cache.contains("pre-commit"), "{cache:?}");
    assert!(below_of(&matcher, "/home/u", "/home/u/docs").is_empty());

    let opened = vec![Path::new(TREE).join(".cargo/config.toml")];
    let more = vec![GuardedPath { path: Path::new(TREE).join(".venv/bin/activate"), why: "x" }];
    let matcher = Matcher::new(MatchContext { opened, more, ..MatchContext::default() });
    assert_eq!(below_of(&matcher, TREE, &format!("{TREE}/.cargo")), set(&["config"]));
    assert_eq!(below_of(&matcher, TREE, &format!("{TREE}/.venv")), set(&["bin/activate"]));
}
