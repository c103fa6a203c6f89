use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

fn refused(text: &str) -> Option<Refused> {
    judge(None, text.as_bytes()).err()
}

/// Proves: FS-9 git-keys
#[test]
fn every_line_of_the_list_is_a_key_with_a_known_kind_of_value() {
    for line in HARMLESS {
        assert!(line.name == line.name.to_ascii_lowercase(), "{line:?}");
        assert!([2, 3].contains(&line.name.split('.').count()), "{line:?}");
        let is_plain = |word: &str| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(line.tags.split('|').all(is_plain), "{line:?}");
    }
}

/// Proves: FS-9 git-keys
#[test]
fn what_runs_a_program_is_refused() {
    for text in [
        "[core] hooksPath = x",
        "[core] fsmonitor = ./x",
        "[core] sshCommand = x",
        "[core] worktree = /",
        "[core] editor = x",
        "[core] pager = x",
        "[core] gitProxy = x",
        "[core] attributesFile = x",
        "[include] path = x",
        "[includeIf \"gitdir:/\"] path = x",
        "[alias] st = !x",
        "[url \"ext::x\"] insteadOf = https://",
        "[credential] helper = !x",
        "[credential \"https://x\"] helper = x",
        "[filter \"x\"] clean = x",
        "[diff] external = x",
        "[diff \"x\"] textconv = x",
        "[diff \"x\"] command = x",
        "[merge \"x\"] driver = x",
        "[gpg] program = x",
        "[gc] recentObjectsHook = x",
        "[remote \"o\"] uploadpack = x",
        "[remote \"o\"] vcs = x",
        "[sequence] editor = x",
        "[protocol \"ext\"] allow = always",
        "[submodule \"x\"] update = !x",
        "[submodule \"x\"] update",
        "[remote \"o\"] url = ext::sh -c x",
        "[remote \"o\"] url = --upload-pack=x",
        "[remote \"o\"] url = ssh://-oProxyCommand=x/y",
        "[remote \"o\"] url = ext://x",
        "[remote \"o\"] url = \"https://x/\\ny\"",
        "[branch \"m\"] remote = ext::sh -c x",
        "[BRANCH \"m\"] pushRemote = ext::x",
        "[remote \"o\"] url = HTTPS://x",
        "[remote \"o\"] url = ::x",
        "[remote \"o\"] url = a+b.c-d_e::x",
        "[remote \"o\"] url = ssh://[-oProxyCommand=x]/y",
        "[remote \"o\"] url = [-oProxyCommand=x]:y",
        "[remote \"o\"] url = https://x/%0ahost=y",
        "[remote \"o\"] promisor = true",
        "[remote \"o\"] partialclonefilter = blob:none",
        "[extensions] partialClone = o",
        "[extensions] refStorage = files:///x",
        "[remote \"o\"] fetch = --upload-pack=x",
        "[branch \"m\"] merge = --exec=x",
        "[branch \"m\"] mergeOptions = -s x",
        "[submodule \"x\"] branch = --x",
        "[core \"x\"] bare = y",
        "[color \"x\"] y = z\n[pager] log = x",
        "bare = x",
        "[core] bare = \\x",
    ] {
        assert!(refused(text).is_some(), "{text}");
    }
    let said = refused("[core]\n\tbare = false\n\thooksPath = x\n").unwrap();
    let why = "says where the hooks are that git runs";
    assert_eq!(said, Refused::Harmful { key: "core.hookspath".into(), line: 3, why });
}

/// Proves: FS-9 git-keys
#[test]
fn what_git_writes_by_itself_is_accepted() {
    for text in [
        "",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
        "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        "[remote \"o\"] url = ../other\n",
        "[remote \"o\"] url = https://[::1]/x\n",
        "[remote \"o\"] url = ssh://git@[fe80::1]:22/x\n",
        "[remote \"o\"] url = git@[::1]:x\n",
        "[remote \"o\"] url = ./a::b\n",
        "[extensions] objectFormat = sha256\n",
        "[lfs \"https://[::1]/x.git/info/lfs\"] access = basic\n",
        "[gc \"refs/remotes/*\"] reflogExpire = never\n",
        "[remote \"o\"] tagOpt = --no-tags\n",
        "[branch \"x/y\"]\n\tremote = origin\n\tmerge = refs/heads/x/y\n",
        "[branch \"x\"] remote = .\n",
        "[submodule \"lib\"]\n\tactive = true\n\turl = https://example.org/lib\n\tupdate = rebase\n",
        "[user] name = A B\n email = a@example.org\n",
        "[Color \"Branch\"] current = yellow\n[color] ui\n",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

/// Proves: FS-9 git-keys
#[test]
fn the_name_of_a_section_is_judged_with_its_keys() {
    for name in [
        "--upload-pack=touch x;false",
        "-x",
        "ext::sh -c x",
        "::x",
        ".",
        "../x",
        "a b",
        "a;b",
        "a$b",
        "a\tb",
        "",
    ] {
        assert!(refused(&format!("[remote \"{name}\"] url = .")).is_some(), "{name:?}");
        assert!(refused(&format!("[remote \"{name}\"] prune = true")).is_some(), "{name:?}");
    }
    for name in ["-x", "a..b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\\\b", "a@{b", "a\tb"]
    {
        assert!(refused(&format!("[branch \"{name}\"] rebase = true")).is_some(), "{name:?}");
    }
    for name in ["-x", "../x", "a/../b", "ext::x", "a\rb", ""] {
        assert!(refused(&format!("[submodule \"{name}\"] active = true")).is_some(), "{name:?}");
    }
    for text in [
        "[color \"-x\"] y = red",
        "[lfs \"ext::x\"] access = basic",
        "[gc \"-x\"] reflogExpire = 0",
    ] {
        assert!(refused(text).is_some(), "{text}");
    }
    for text in [
        "[remote \"up-stream/a.b_c+d@e\"] prune = true",
        "[branch \"dependabot/npm/@types-1.2\"] rebase = true",
        "[branch \"größe#1\"] rebase = true",
        "[submodule \"third party/lib\"] active = true",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

/// Proves: FS-9 git-keys
#[test]
fn only_a_submodule_says_where_its_files_are_and_only_beside_its_repository() {
    let judge = |git_dir: &str, value: &str| {
        let place =
            ConfigLocation { git_dir: Path::new(git_dir), tree: Path::new("/p"), worktree: None };
        judge_at(None, format!("[core]\n\tworktree = {value}\n").as_bytes(), &place)
    };
    for (git_dir, value) in [
        ("/p/.git/modules/sm", "../../../sm"),
        ("/p/.git/modules/sm", "../../../third/party"),
        ("/p/.git/modules/third/party", "../../../../third/party"),
        ("/p/.git/modules/a/modules/b", "../../../../../a/b"),
        ("/p/sub/.git/modules/sm", "../../../sm"),
        ("/p/.git/worktrees/w/modules/sm", "../../../../../w/sm"),
    ] {
        assert_eq!(judge(git_dir, value), Ok(()), "{git_dir} {value}");
    }
    for (git_dir, value) in [
        ("/p/.git", "../sm"),
        ("/p/.git/modules", "../../sm"),
        ("/p/modules/sm", "../../sm"),
        ("/elsewhere/.git/modules/sm", "../../../sm"),
        ("/p/.git/modules/sm", "/p/sm"),
        ("/p/.git/modules/sm", "/"),
        ("/p/.git/modules/sm", "../../.."),
        ("/p/.git/modules/sm", "../../../x/.."),
        ("/p/.git/modules/sm", "../../../../sm"),
        ("/p/sub/.git/modules/sm", "../../../../sm"),
        ("/p/.git/modules/sm", "../../hooks"),
        ("/p/.git/modules/sm", "../../../x/.GIT/hooks"),
        ("/p/.git/modules/sm", "\"../../../sm\\t\""),
        ("/p/.git/modules/sm", ""),
        ("/p/.git/modules/sm", "~/x"),
    ] {
        assert!(judge(git_dir, value).is_err(), "{git_dir} {value}");
    }
    assert!(refused("[core] worktree = ../../../sm").is_some(), "of an unknown place");
    let place = ConfigLocation {
        git_dir: Path::new("/p/.git/modules/sm"),
        tree: Path::new("/p"),
        worktree: None,
    };
    assert!(judge_at(None, b"[core] hooksPath = ../../../sm", &place).is_err());
}

/// Proves: FS-9 git-keys
#[test]
fn what_was_configured_before_stays_and_only_that() {
    let old = "[core]\n\teditor = vim\n[alias]\n\tst = status\n\tst = status\n[filter \"LFS\"]\n\tclean = c\n";
    let judge = |new: &str| judge(Some(old.as_bytes()), new.as_bytes());
    assert_eq!(judge(&format!("[remote \"o\"]\n\turl = https://x\n{old}")), Ok(()));
    assert_eq!(judge("[Core] Editor = \"vim\" # still\n"), Ok(()));
    assert_eq!(judge(""), Ok(()));
    for new in [
        "[core] editor = emacs",
        "[core] editor = vim\n editor = vim\n",
        "[core] editor",
        "[filter \"lfs\"] clean = c",
        "[filter.LFS] clean = c",
        "[alias] st = status\n st = status\n st = status\n",
    ] {
        assert!(judge(new).is_err(), "{new}");
    }
    let unreadable = super::judge(Some(b"[core\neditor = vim"), b"[core] editor = vim");
    assert!(unreadable.is_err());
}

#[test]
fn values_of_a_key_are_all_there() {
    let config = b"[core]\nhooksPath = a\n[core]\nHOOKSPATH = \"b c\"\nbare\n";
    assert_eq!(values(config, "core.hookspath"), [b"a".to_vec(), b"b c".to_vec()]);
    let more = b"[include] path = a\n[includeIf \"gitdir:~/x.y\"] path = b\n[includeIf] path = c\n";
    assert_eq!(values(more, "include.path"), [b"a".to_vec()]);
    assert_eq!(values(more, "includeif.*.path"), [b"b".to_vec()]);
    assert_eq!(values(b"[core]hooksPath = a\n[co", "core.hookspath"), [b"a".to_vec()]);
    assert_eq!(values(b"# \0\n[core]hooksPath = a\0b\n", "core.hookspath"), [b"a".to_vec()]);
}

fn git(dir: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Proves: FS-9 git-works
#[test]
fn every_step_of_ordinary_work_with_git_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    git(dir.path(), &["init", "-q", "-b", "main", "first"]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    git(&first, &[&identity[..], &["commit", "-q", "--allow-empty", "-m", "x"]].concat());
    git(dir.path(), &["clone", "-q", "first", "second"]);
    let config = second.join(".git/config");
    let mut before = None;
    for step in [
        vec!["status"],
        vec!["config", "user.name", "A \"quoted\" # name"],
        vec!["checkout", "-q", "-b", "topic/x"],
        vec!["push", "-q", "-u", "origin", "topic/x"],
        vec!["remote", "add", "other", "https://example.org/x.git"],
        vec!["remote", "set-url", "--push", "other", "git@example.org:x.git"],
        vec!["branch", "--set-upstream-to=origin/main"],
        vec!["sparse-checkout", "set", "--no-cone", "/*"],
        vec!["config", "pull.rebase", "true"],
        vec!["remote", "rename", "other", "third"],
        vec!["branch", "-m", "renamed"],
    ] {
        git(&second, &step);
        let now = std::fs::read(&config).unwrap();
        assert_eq!(judge(before.as_deref(), &now), Ok(()), "{step:?}");
        before = Some(now);
    }
}

/// Proves: FS-9 git-works
#[test]
fn submodules_are_added_and_cloned() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let local = ["-c", "protocol.file.allow=always"];
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    for name in ["lib", "main"] {
        git(&base, &["init", "-q", "-b", "main", name]);
        let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
        git(&base.join(name), &[&identity[..], &commit].concat());
    }
    let add = ["submodule", "--quiet", "add", "../lib", "third party/lib"];
    git(&base.join("main"), &[&local[..], &add].concat());
    git(&base.join("main"), &[&identity[..], &["commit", "-q", "-m", "y"]].concat());
    let clone = ["clone", "-q", "--recurse-submodules", "main", "second"];
    git(&base, &[&local[..], &clone].concat());
    for name in ["main", "second"] {
        for git_dir in [".git", ".git/modules/third party/lib"] {
            let git_dir = base.join(name).join(git_dir);
            let config = std::fs::read(git_dir.join("config")).unwrap();
            let place = ConfigLocation { git_dir: &git_dir, tree: &base, worktree: None };
            assert_eq!(judge_at(None, &config, &place), Ok(()), "{git_dir:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: FS-9 git-works
    #[test]
    fn a_harmless_key_as_git_writes_it_is_accepted(
        line in select(HARMLESS.iter().filter(|line| line.tags == "any").collect::<Vec<_>>()),
        subsection in "[A-Za-z0-9_]{1,4}([/.-][A-Za-z0-9_]{1,4})?",
        value in "[ -~\t\n]{0,20}",
    ) {
        let dir = tempfile::tempdir().unwrap();
        let key = match line.name.matches('*').count() {
            0 => line.name.to_owned(),
            1 if line.name.ends_with(".*") => line.name.replace('*', "Name"),
            1 => line.name.replace('*', &subsection),
            _ => format!("{}.{subsection}.Name", line.name.split('.').next().unwrap_or_default()),
        };
        git(dir.path(), &["config", "--file", "config", "--add", &key, &value]);
        let written = std::fs::read(dir.path().join("config")).unwrap();
        prop_assert_eq!(judge(None, &written), Ok(()), "{:?}", String::from_utf8_lossy(&written));
    }
}

/// The keys of git's documentation, with `x` for what may be any name.
fn documented() -> impl Iterator<Item = (&'static str, Entry)> {
    let lines = include_str!("../testdata/git-keys.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|key| {
        let entry = Entry { key: key.replace('*', "x").into_bytes(), value: None, line: 1 };
        (key, entry)
    })
}

/// A key that a new version of git brings is in neither list, and has to be decided.
///
/// Proves: FS-9 git-keys
#[test]
fn every_key_that_git_documents_is_decided() {
    assert!(documented().count() > 700);
    for (key, entry) in documented() {
        let mut harmless = HARMLESS.iter().filter(|line| names(line.name, &entry));
        let mut refused = REFUSED.iter().filter(|line| names(line.name, &entry));
        match (harmless.next(), refused.next()) {
            (Some(_), None) | (None, Some(_)) => {}
            // One of a section whose other keys are refused.
            (Some(exact), Some(section)) => {
                assert!(
                    exact.name == key && section.name.ends_with(".*"),
                    "{key} is in both lists"
                );
            }
            (None, None) => panic!("{key} is in neither list"),
        }
    }
}

/// Proves: FS-9 git-keys, FS-9 list
#[test]
fn the_lists_name_nothing_twice_and_nothing_else() {
    // Of git-lfs, Git for Windows, GitHub's and Microsoft's programs.
    let own =
        ["lfs.", "filter.lfs.", "core.longpaths", "branch.*.vscode-", "branch.*.g", "remote.*.gh-"];
    let known: Vec<Entry> = documented().map(|(_, entry)| entry).collect();
    for list in [HARMLESS, REFUSED] {
        for (index, line) in list.iter().enumerate() {
            let earlier = list[..index].iter().any(|other| other.name == line.name);
            assert!(!earlier, "{} is there twice", line.name);
            let is_known = known.iter().any(|entry| names(line.name, entry))
                || own.iter().any(|section| line.name.starts_with(section));
            assert!(is_known, "git does not document {}", line.name);
        }
    }
    let kinds = ["program", "file", "place", "connect", "trust"];
    for line in REFUSED {
        assert!(kinds.contains(&line.tags), "{}: {}", line.name, line.tags);
    }
}

/// Proves: FS-9 git-keys
#[test]
fn a_refused_key_says_why() {
    for (text, words) in [
        ("[core]\n\tfsmonitor = x\n", "names a program that git runs"),
        ("[maintenance \"prefetch\"]\n\tenabled\n", "lets git fetch by itself"),
        ("[gc]\n\trecentObjectsHook = x\n", "is a command that git runs"),
        ("[hook \"x\"]\n\tcommand = x\n", "is a command that git runs"),
        ("[of]\n\tnobody = x\n", "is not known to be harmless"),
    ] {
        let refused = judge(None, text.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

/// Proves: FS-9 git-keys
#[test]
fn values_are_judged_by_their_kind() {
    for (text, expected) in [
        ("[format]\n\tpretty = oneline\n", true),
        ("[format]\n\tpretty = \"format:%h%x09%an %C(auto)%d\"\n", true),
        ("[format]\n\tpretty = \"%G?\"\n", false),
        ("[format]\n\tpretty = \"%+GS\"\n", false),
        ("[format]\n\tpretty = \"% GS\"\n", false),
        ("[format]\n\tpretty = \"%x1b]52;c;x\"\n", false),
        ("[format]\n\tpretty = \"%x9b\"\n", false),
        ("[pretty]\n\tmine = \"%x1B[2J\"\n", false),
        ("[pretty]\n\tmine = \"%h %s\"\n", true),
        ("[branch]\n\tsort = -committerdate\n", true),
        ("[tag]\n\tsort = version:refname\n", true),
        ("[tag]\n\tsort = \"-signature:grade\"\n", false),
        ("[tag]\n\tsort = \"%(x)\"\n", false),
        ("[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n", true),
        ("[blame]\n\tignoreRevsFile = ../../secret\n", false),
        ("[blame]\n\tignoreRevsFile = ~/secret\n", false),
        ("[blame]\n\tignoreRevsFile = /etc/shadow\n", false),
        ("[remotes]\n\tall = origin other\n", true),
        ("[remotes]\n\tall = origin ext::sh\n", false),
        ("[remotes]\n\tall = origin --upload-pack=x\n", false),
        ("[pager]\n\tbranch = false\n", true),
        ("[pager]\n\tbranch = evil\n", false),
        ("[core]\n\tcommentChar = \";\"\n", true),
        ("[i18n]\n\tcommitEncoding = latin1\n", true),
        ("[core]\n\tsharedRepository = 1\n", true),
        ("[core]\n\tsharedRepository = 0666\n", false),
        ("[commit]\n\tgpgSign = false\n", true),
        ("[commit]\n\tgpgSign = true\n", false),
        ("[status \"color\"]\n\tadded = green\n", true),
        ("[status \"other\"]\n\tadded = green\n", false),
        ("[maintenance \"gc\"]\n\tenabled = false\n", true),
        ("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n", true),
        ("[filter \"lfs\"]\n\tprocess = git-lfs filter-process --skip\n", true),
        ("[filter \"lfs\"]\n\tclean = evil\n", false),
        ("[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f; evil\"\n", false),
        ("[filter \"LFS\"]\n\tclean = git-lfs clean -- %f\n", false),
        ("[filter \"other\"]\n\tclean = git-lfs clean -- %f\n", false),
        ("[http]\n\tpostBuffer = 524288000\n", true),
        ("[http]\n\tproxy = evil.example\n", false),
        ("[http \"https://x.example\"]\n\tpostBuffer = 1\n", false),
    ] {
        assert_eq!(judge(None, text.as_bytes()).is_ok(), expected, "{text}");
    }
}

/// The submodules of a worktree are below the worktree's own directory, not below `.git/modules`.
///
/// Proves: FS-9 git-keys
#[test]
fn a_submodule_of_a_worktree_says_where_its_files_are() {
    let tree = Path::new("/main/.git/worktrees/wt");
    for (git_dir, value, expected) in [
        ("modules/sm", "../../../../../../home/wt/sm", true),
        ("modules/sm", "../../../../../../home/wt", false),
        ("modules/sm", "../../../../../../home/wt/.git/x", false),
        ("modules/sm", "../../../../../../home/other", false),
        ("modules/sm", "/home/wt/sm", false),
        ("", "../../../../home/wt/sm", false),
        ("other/sm", "../../../../../../home/wt/sm", false),
    ] {
        let git_dir = tree.join(git_dir);
        let worktree = Some(PathBuf::from("/home/wt"));
        let place = ConfigLocation { git_dir: &git_dir, tree, worktree };
        let text = format!("[core]\n\tworktree = {value}\n");
        assert_eq!(judge_at(None, text.as_bytes(), &place).is_ok(), expected, "{value}");
        let place = ConfigLocation { worktree: None, ..place };
        assert!(judge_at(None, text.as_bytes(), &place).is_err(), "{value}");
    }
}

/// Proves: FS-9 git-config
#[test]
fn core_bare_does_not_change_where_relative_hooks_are() {
    let before = b"[core]\n\tbare = false\n\thooksPath = tools/hooks\n";
    let after = b"[core]\n\tbare = true\n\thooksPath = tools/hooks\n";
    assert!(judge(Some(before), after).is_err() && judge(Some(after), before).is_err());
    let absolute = b"[core]\n\tbare = false\n\thooksPath = /srv/hooks\n";
    let bare = b"[core]\n\tbare = true\n\thooksPath = /srv/hooks\n";
    assert!(judge(Some(absolute), bare).is_ok());
    assert!(judge(Some(before), b"[core]\n\tbare = no\n\thooksPath = tools/hooks\n").is_ok());
}
