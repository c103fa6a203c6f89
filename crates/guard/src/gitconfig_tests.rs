use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use std::path::Path;
use std::process::Command;

fn refused(text: &str) -> Option<Refused> {
    judge(None, text.as_bytes()).err()
}

/// Proves: FS-9 git-keys
#[test]
fn every_line_of_the_list_is_a_key_with_a_known_kind_of_value() {
    for line in HARMLESS {
        assert!(line.first == line.first.to_ascii_lowercase(), "{line:?}");
        assert!([2, 3].contains(&line.first.split('.').count()), "{line:?}");
        let is_plain =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(line.second.split('|').all(is_plain), "{line:?}");
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
        "[core \"x\"] bare = y",
        "[color \"x\"] y = z\n[pager] log = x",
        "bare = x",
        "[core] bare = \\x",
    ] {
        assert!(refused(text).is_some(), "{text}");
    }
    let said = refused("[core]\n\tbare = false\n\thooksPath = x\n").unwrap();
    assert_eq!(said, Refused::Key { key: "core.hookspath".into(), line: 3 });
}

/// Proves: FS-9 git-keys
#[test]
fn what_git_writes_by_itself_is_accepted() {
    for text in [
        "",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
        "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        "[remote \"origin\"]\n\turl = https://example.org/a/b.git\n\tpromisor = true\n\tpartialclonefilter = blob:none\n",
        "[remote \"o\"] url = ../other\n",
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
    assert_eq!(values(b"[core]hooksPath = a\n[co", "core.hookspath"), [b"a".to_vec()]);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: FS-9 git-works
    #[test]
    fn a_harmless_key_as_git_writes_it_is_accepted(
        line in select(HARMLESS.iter().filter(|line| line.second == "any").collect::<Vec<_>>()),
        subsection in "[ -~éß]{1,8}",
        value in "[ -~\t\n]{0,20}",
    ) {
        let dir = tempfile::tempdir().unwrap();
        let key = match line.first.matches('*').count() {
            0 => line.first.to_owned(),
            1 if line.first.ends_with(".*") => line.first.replace('*', "Name"),
            1 => line.first.replace('*', &subsection),
            _ => format!("{}.{subsection}.Name", line.first.split('.').next().unwrap_or_default()),
        };
        git(dir.path(), &["config", "--file", "config", "--add", &key, &value]);
        let written = std::fs::read(dir.path().join("config")).unwrap();
        prop_assert_eq!(judge(None, &written), Ok(()), "{:?}", String::from_utf8_lossy(&written));
    }
}
