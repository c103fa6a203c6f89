//! Ways round a broker that judges: other descriptors under the same number, links on the way to a name,
//! lengths instead of contents, what the host had led elsewhere itself, and a second run in the same project.

use crate::guard::{Harm, by_script, planting, staying};

const FSMONITOR: Harm = Harm::GitObeys(".", "core.fsmonitor");

/// A link that leads to a directory where the rest of the name is free.
///
/// Proves: FS-9 created-names
#[test]
fn f11_a_link_on_the_way_to_a_name_gains_nothing() {
    for (name, script) in [
        (
            "make the directory of a protected file a link",
            "mkdir x; ln -s x .cargo; echo evil > x/config.toml",
        ),
        (
            "move the directory of a protected file and leave a link",
            "mkdir .cargo; mv .cargo x; ln -s x .cargo; echo evil > x/config.toml",
        ),
        (
            "move a directory with a link in it into place",
            "mkdir x y; ln -s ../y x/releases; mv x .yarn; echo evil > y/yarn.cjs",
        ),
    ] {
        let harm = if name.contains("in it") {
            Harm::Exists(".yarn/releases")
        } else {
            Harm::Exists(".cargo/config.toml")
        };
        by_script("F11", name, harm, script).proves(&["FS-9 created-names"]).check();
    }
}

/// A file cut short says something else: `core.hooksPath = .husky/_` cut after `.h`.
///
/// Proves: FS-9 git-config
#[test]
fn h01_a_length_is_not_chosen_for_a_protected_file() {
    const BEFORE: &str = "[core]\n\thooksPath = .husky\n";
    for (name, path) in [
        ("cut the configuration of git short", ".git/config"),
        ("cut it short by a path through /proc", "/proc/self/root$PWD/.git/config"),
        ("cut it short by another path through /proc", "/proc/self/cwd/.git/config"),
    ] {
        let script = format!("perl -e 'truncate($ARGV[0], 22)' \"{path}\"");
        planting("H01", name, Harm::Changed(".git/config", BEFORE))
            .proves(&["FS-9 git-config"])
            .prepare(|world| {
                world.git_init();
                world.write_in_project(".git/config", BEFORE);
            })
            .command(move |_| staying(&script))
            .check();
    }
}

/// The name of a remote becomes an argument of git.
///
/// Proves: FS-9 git-config
#[test]
fn h01_the_name_of_a_remote_is_no_option() {
    const NAME: &str = "remote.--upload-pack=evil-program.url";
    by_script(
        "H01",
        "give a remote the name of an option",
        Harm::GitObeys(".", NAME),
        "cp .git/config c; printf '[remote \"--upload-pack=evil-program\"]\\n\\turl = evil-program\\n' >> c; \
         mv c .git/config",
    )
    .proves(&["FS-9 git-config"])
    .check();
}

/// Proves: FS-9 git-config
#[test]
fn h01_what_the_host_included_is_not_written() {
    planting("H01", "write a file that the configuration of git includes", FSMONITOR)
        .proves(&["FS-9 git-config"])
        .prepare(|world| {
            world.git_init();
            world.write_in_project("shared.inc", "[core]\n");
            let config =
                "[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = ../shared.inc\n";
            world.write_in_project(".git/config", config);
        })
        .command(|_| staying("printf '[core]\\n\\tfsmonitor = evil-program\\n' > shared.inc"))
        .check();
    planting(
        "H01",
        "write the file behind a hook that is a link",
        Harm::Changed("tools/hook", "true\n"),
    )
    .proves(&["FS-9 git-hooks"])
    .prepare(|world| {
        world.git_init();
        world.write_in_project("tools/hook", "true\n");
        let hook = world.project().join(".git/hooks/pre-commit");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&hook);
        std::os::unix::fs::symlink("../../tools/hook", hook).unwrap();
    })
    .command(|_| staying("echo evil > tools/hook"))
    .check();
}

/// Proves: FS-9 editor-settings
#[test]
fn h02_removing_what_stands_there_frees_no_name() {
    planting(
        "H02",
        "remove a nested repository and its settings, and write others",
        Harm::Exists("nested/.vscode/tasks.json"),
    )
    .proves(&["FS-9 editor-settings"])
    .prepare(|world| {
        world.git_init();
        world.write_in_project("nested/.git/HEAD", "ref: refs/heads/main\n");
        let _ = std::fs::remove_dir_all(world.project().join("nested/.vscode"));
    })
    .command(|_| {
        staying("rm -rf nested/.git; mkdir nested/.vscode; echo evil > nested/.vscode/tasks.json")
    })
    .check();
}

/// Two files by turns under one number: the one that is judged must be the one that gets a name.
///
/// Proves: FS-9 created-names, FS-9 git-config
#[test]
fn h01_a_descriptor_that_changes_its_file_links_nothing() {
    const SCRIPT: &str = r#"
import os, threading, time, ctypes
libc = ctypes.CDLL(None, use_errno=True)
good, bad = os.open("plain", os.O_PATH), os.open(".git/config", os.O_PATH)
inode, stop, turns, tries = os.fstat(bad).st_ino, False, 0, 0
os.dup2(good, 50)
def turn():
    global turns
    while not stop:
        os.dup2(good, 50); os.dup2(bad, 50); turns += 1
turning = threading.Thread(target=turn); turning.start()
end = time.monotonic() + 60
# One of the two threads runs at a time: until both had their turns.
while (tries < 5000 or turns < 5000) and time.monotonic() < end:
    tries += 1
    if libc.linkat(-100, b"/proc/self/fd/50", -100, b"out", 0x400) == 0:
        if os.stat("out").st_ino == inode:
            open("out", "w").write("[core]\n\tfsmonitor = evil-program\n")
            break
        os.unlink("out")
stop = True; turning.join()
"#;
    planting("H01", "link a descriptor that changes its file", FSMONITOR)
        .proves(&["FS-9 created-names", "FS-9 git-config"])
        .prepare(|world| {
            world.git_init();
            world.write_in_project("plain", "");
            world.write_in_project("race.py", SCRIPT);
            let _ = std::fs::remove_file(world.project().join("out"));
        })
        .command(|_| staying("python3 race.py"))
        .check();
}

/// A directory made in the run is the run's own, until a repository of the host's is in it.
///
/// Proves: FS-9 editor-settings, FS-9 created-names
#[test]
fn h02_a_repository_of_the_host_frees_no_name_in_a_new_directory() {
    for (name, harm, script) in [
        (
            "put a nested repository into a new directory",
            Harm::Exists("nested/.vscode/tasks.json"),
            "mv nested old; mkdir nested; mv old/.git nested/.git; mkdir nested/.vscode; \
             echo evil > nested/.vscode/tasks.json",
        ),
        (
            "put a nested repository beside settings in a new directory",
            Harm::Exists("nested/.git"),
            "mv nested old; mkdir nested nested/.vscode; echo evil > nested/.vscode/tasks.json; \
             mv old/.git nested/.git",
        ),
        (
            "write settings in a new worktree",
            Harm::Exists("tree/.mcp.json"),
            "git -c user.name=x -c user.email=x commit --quiet --allow-empty -m x; \
             git worktree add --quiet tree -b x; echo evil > tree/.mcp.json",
        ),
    ] {
        planting("H02", name, harm)
            .proves(&["FS-9 editor-settings", "FS-9 created-names"])
            .prepare(|world| {
                world.git_init();
                world.write_in_project("nested/.git/HEAD", "ref: refs/heads/main\n");
                world.write_in_project("nested/.git/objects/x", "");
                world.write_in_project("nested/.git/refs/x", "");
            })
            .command(move |_| staying(script))
            .check();
    }
}

/// Proves: FS-9 linked-settings
#[test]
fn h02_what_settings_of_the_home_directory_link_to_is_not_written() {
    let links = [
        (".ssh/config", "kept/config"),
        (".config/fish/config.fish", "kept/config.fish"),
        (".config/systemd/user/default.target.wants/a.service", "kept/a.service"),
        (".local/bin/tool", "kept/tool"),
    ];
    for (link, target) in links {
        planting(
            "H02",
            format!("write the file that ~/{link} is a link to"),
            Harm::Changed(target, "before"),
        )
        .proves(&["FS-9 editor-settings"])
        .prepare(move |world| {
            world.git_init();
            let target = world.write_in_project(target, "before");
            let link = world.home().join(link);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(target, link).unwrap();
        })
        .command(move |_| staying(&format!("echo evil > {target}")))
        .check();
    }
}

/// Proves: FS-9 sourced-files, FS-9 path-files
#[test]
fn h02_what_is_run_by_what_is_there_is_not_written() {
    let ways: [(&str, &str, &str, &str, &str); 6] = [
        (".envrc", "source_env env/common\n", "env/common", "before", "echo evil > env/common"),
        (
            ".Rprofile",
            "source(\"renv/activate.R\")\n",
            "renv/activate.R",
            "before",
            "echo evil > renv/activate.R",
        ),
        (
            "api/venv/pyvenv.cfg",
            "home = /usr/bin\n",
            "api/venv/bin/activate",
            "before",
            "echo evil > api/venv/bin/activate",
        ),
        (
            "api/venv/pyvenv.cfg",
            "home = /usr/bin\n",
            "api/venv/lib/python3.12/site-packages/a.pth",
            "/src\n",
            "echo 'import evil' > api/venv/lib/python3.12/site-packages/a.pth",
        ),
        (
            "api/venv/pyvenv.cfg",
            "home = /usr/bin\n",
            "api/venv/lib/python3.12/site-packages/b.pth",
            "/src\n",
            "echo 'import evil' > b; mv b api/venv/lib/python3.12/site-packages/b.pth",
        ),
        (
            ".jj/repo/store/type",
            "git",
            ".jj/repo/config.toml",
            "before",
            "rm -r .jj/repo; mkdir e; echo evil > e/config.toml; mv e .jj/repo",
        ),
    ];
    for (there, content, target, before, script) in ways {
        planting(
            "H02",
            format!("write {target}, which {there} has run"),
            Harm::Changed(target, before),
        )
        .proves(&["FS-9 editor-settings"])
        .prepare(move |world| {
            world.git_init();
            world.write_in_project(there, content);
            world.write_in_project(target, before);
        })
        .command(move |_| staying(script))
        .check();
    }
    let names = [
        ".lazygit.yml",
        ".git/lazygit.yml",
        "mise.dev.toml",
        "rust-analyzer.toml",
        "pnpm-workspace.yaml",
        ".prototools",
        "hk.pkl",
        ".trunk/trunk.yaml",
        "deep/sitecustomize.py",
    ];
    for path in names {
        let script = format!("mkdir -p \"$(dirname {path})\"; echo evil > {path}");
        planting("H02", format!("write {path}"), Harm::Exists(path))
            .proves(&["FS-9 editor-settings"])
            .command(move |_| staying(&script))
            .check();
    }
    planting(
        "H02",
        "make .jj/repo a file that leads elsewhere",
        Harm::Changed(".jj/repo", "before"),
    )
    .proves(&["FS-9 editor-settings"])
    .prepare(|world| {
        world.git_init();
        let _ = std::fs::remove_file(world.project().join(".jj/repo"));
        world.write_in_project(".jj/working_copy/type", "local");
    })
    .command(|_| staying("echo ../e > .jj/repo"))
    .check();
}
