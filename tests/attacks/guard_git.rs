//! Git runs programs that its own files name: hooks, and settings such as `core.fsmonitor`. Planted in
//! the project's repository, in one inside it, and in directories that only look like one.

use std::cell::Cell;
use std::fs;
use std::rc::Rc;

use palisade_testkit::{Attack, World};

use crate::guard::{Harm, by_script, planting, staying};

const HOOK: Harm = Harm::Exists(".git/hooks/pre-commit");
const WRITE_EVIL: &str = r"printf '#!/bin/sh\n' > evil; chmod +x evil;";

/// Proves: FS-9 git-hooks, FS-9 created-names
#[test]
fn h01_no_hook_is_planted() {
    let ways = [
        ("write a hook", "cp evil .git/hooks/pre-commit"),
        (
            "rename a sample to a hook",
            "cp evil .git/hooks/x.sample; mv .git/hooks/x.sample .git/hooks/pre-commit",
        ),
        (
            "stand in a directory that becomes the hooks, and write there",
            "mkdir a; rm -r .git/hooks; cd a; mv ../a ../.git/hooks; cp ../../evil pre-commit",
        ),
        ("write a hook from within its directory", "cd .git/hooks && cp ../../evil ./pre-commit"),
        (
            "write a hook by a crooked path",
            "cp evil /proc/self/cwd/.git/../.git//hooks/./pre-commit",
        ),
        ("rename a file to a hook", "mv evil .git/hooks/pre-commit"),
        ("link a file to a hook", "ln evil .git/hooks/pre-commit"),
        ("make a hook a symbolic link", "ln -s ../../evil .git/hooks/pre-commit"),
        (
            "write a hook through a link to its directory",
            "ln -s .git/hooks h; cp evil h/pre-commit",
        ),
        ("write a hook through a dangling link", "ln -s .git/hooks/pre-commit d; cat evil > d"),
        (
            "put a repository made aside in the place of the real one",
            "mkdir -p a/hooks; cp evil a/hooks/pre-commit; mv .git old; mv a .git",
        ),
        (
            "move the repository away and make another",
            "mv .git old; mkdir -p .git/hooks; cp evil .git/hooks/pre-commit",
        ),
        (
            "put a directory made aside in the place of the hooks",
            "mkdir a; cp evil a/pre-commit; mv .git/hooks old; mv a .git/hooks",
        ),
        (
            "copy a whole repository into place",
            "cp -r .git a; cp evil a/hooks/pre-commit; rm -rf .git; cp -r a .git",
        ),
        (
            "unpack a hook from an archive",
            "mkdir -p a/.git/hooks; cp evil a/.git/hooks/pre-commit; tar -C a -cf a.tar .git; tar xf a.tar",
        ),
        (
            "have git's own template bring a hook",
            "mkdir -p t/hooks; cp evil t/hooks/pre-commit; git init -q --template=t",
        ),
    ];
    for (name, way) in ways {
        planting("H01", name, HOOK)
            .proves(&["FS-9 git-hooks", "FS-9 created-names"])
            .command(move |_| staying(&format!("{WRITE_EVIL} {way}")))
            .check();
    }
}

/// Proves: FS-9 git-hooks, FS-9 created-names
#[test]
fn h01_no_hook_is_planted_in_a_nested_repository() {
    let ways = [
        (
            "write a hook of a nested repository",
            "git init -q sub; cp evil sub/.git/hooks/pre-commit",
        ),
        (
            "make a nested repository by hand, its hooks first",
            "mkdir -p sub/.git/hooks; cp evil sub/.git/hooks/pre-commit; cp -r .git/* sub/.git/",
        ),
        (
            "rename a directory so that it becomes a nested repository with hooks",
            "mkdir sub; cp -r .git sub/g; cp evil sub/g/hooks/pre-commit; mv sub/g sub/.git",
        ),
        (
            "rename the directory above a nested repository that was made elsewhere",
            "mkdir -p x/g/hooks; cp evil x/g/hooks/pre-commit; mv x/g x/.git; mv x sub",
        ),
    ];
    for (name, way) in ways {
        planting("H01", name, Harm::Exists("sub/.git/hooks/pre-commit"))
            .proves(&["FS-9 git-hooks", "FS-9 created-names"])
            .command(move |_| staying(&format!("{WRITE_EVIL} {way}")))
            .check();
    }
}

/// Proves: FS-9 git-hooks
#[test]
fn h01_no_hook_is_planted_from_a_worktree() {
    let hook = |world: &World| world.home().join("main/.git/hooks/pre-commit");
    let seen = Rc::new(Cell::new(false));
    let (forget, look) = (Rc::clone(&seen), Rc::clone(&seen));
    Attack::new("H01", "write a hook of the repository that a worktree belongs to")
        .proves(&["FS-9 git-hooks"])
        // Of that repository only what git writes from there can be written, and hooks nowhere.
        .held_by(&["guard", "read-only-mounts"])
        .prepare(move |world| {
            forget.set(false);
            make_worktree(world);
        })
        .command(move |world| staying(&format!("{WRITE_EVIL} cp evil {}", hook(world).display())))
        .meanwhile(move |world| look.set(hook(world).exists()))
        .succeeded(move |world, _| seen.get() || hook(world).exists())
        .check();
}

/// The project is a worktree of another repository.
fn make_worktree(world: &World) {
    fs::remove_dir(world.project()).unwrap();
    let main = world.home().join("main").display().to_string();
    let script = "git init -q \"$0\" && cd \"$0\" && git config user.name T \
                  && git config user.email t@example.org \
                  && git commit -q --allow-empty -m first && git worktree add -q ../project";
    let made = world.bare("sh").args(["-c", script, &main]).cwd(world.home()).run();
    made.assert_code(0);
}

const OBEYS: Harm = Harm::GitObeys(".", "core.fsmonitor");
const EVIL_SECTION: &str = r"printf '[core]\n\tfsmonitor = evil-program\n'";

/// Proves: FS-9 git-config, FS-9 created-names
#[test]
fn h01_no_setting_of_git_is_planted() {
    let ways = [
        ("set core.fsmonitor", "git config core.fsmonitor evil-program".to_owned()),
        ("append to the configuration", format!("{EVIL_SECTION} >> .git/config")),
        ("put another configuration in its place", format!("{EVIL_SECTION} > c; mv c .git/config")),
        (
            "commit a lock file as git does",
            format!(
                "(cat .git/config; {EVIL_SECTION}) > .git/config.lock; mv .git/config.lock .git/config"
            ),
        ),
        (
            "keep a descriptor of the lock file open across the rename",
            format!(
                "exec 5>>.git/config.lock; cat .git/config >&5; mv .git/config.lock .git/config; {EVIL_SECTION} >&5"
            ),
        ),
        (
            "write the configuration by another name of the same file",
            format!("ln .git/config innocent; {EVIL_SECTION} >> innocent"),
        ),
        (
            "open the configuration for reading, and again for writing",
            format!("exec 5<.git/config; {EVIL_SECTION} >> /proc/self/fd/5"),
        ),
        ("include another file", format!("{EVIL_SECTION} > c; git config include.path ../c")),
        (
            "make the configuration a symbolic link",
            format!("{EVIL_SECTION} > c; rm .git/config; ln -s ../c .git/config"),
        ),
        (
            "have git take the configuration of another directory",
            format!(
                "mkdir c c/objects c/refs; {EVIL_SECTION} > c/config; echo ../c > .git/commondir"
            ),
        ),
        (
            "write the configuration of worktrees",
            format!(
                "git config extensions.worktreeConfig true; {EVIL_SECTION} > .git/config.worktree"
            ),
        ),
    ];
    for (name, way) in ways {
        planting("H01", name, OBEYS)
            .proves(&["FS-9 git-config", "FS-9 created-names"])
            .command(move |_| staying(&way))
            .check();
    }
}

/// A descriptor that is open for writing is written to after what it leads to was judged.
///
/// Proves: FS-9 git-config, FS-9 created-names
#[test]
fn h01_no_setting_of_git_is_planted_by_what_is_kept_open() {
    const NAME: &str = r"printf '[user]\n\tname = Somebody\n'";
    const PYTHON: &str = "/usr/bin/python3 -c '\nimport mmap, os, threading, time\n";
    const EVIL: &str = "evil = b\"[core]\\n\\tfsmonitor = evil-program\\n\"\n";
    let ways = [
        (
            "by a duplicate, after the first descriptor was closed",
            format!("exec 5>>.git/config 6>&5; {NAME} >&5; exec 5>&-; {EVIL_SECTION} >&6"),
        ),
        (
            "by a child that has inherited it",
            format!(
                "exec 5>>.git/config; (read line; {EVIL_SECTION} >&5) < /dev/null & exec 5>&-; wait"
            ),
        ),
        (
            "by another open file, after one was judged",
            format!(
                "exec 5>>.git/config; {NAME} >> .git/config; git status -s; {EVIL_SECTION} >&5"
            ),
        ),
        (
            "by a descriptor opened once more from the one that is open",
            format!(
                "exec 5>>.git/config; exec 6>>/proc/self/fd/5; exec 5>&-; {EVIL_SECTION} >&6; exec 6>&-"
            ),
        ),
        (
            "by a mapping, after the descriptor was closed",
            format!(
                "{PYTHON}{EVIL}fd = os.open(\".git/config\", os.O_RDWR)\nos.ftruncate(fd, len(evil))\n\
                 shared = mmap.mmap(fd, len(evil))\nos.close(fd)\nshared[:] = evil\nshared.flush()\n\
                 print(\"ready\", flush=True)\ninput()'"
            ),
        ),
        (
            "by a name for the file that is open",
            format!(
                "exec 5>>.git/config; ln -L /proc/self/fd/5 x; {EVIL_SECTION} >> x; mv x .git/config"
            ),
        ),
        (
            "in a repository that git makes anew",
            format!(
                "rm -rf .git; git init -q; exec 5>>.git/config; {NAME} >> .git/config; {EVIL_SECTION} >&5"
            ),
        ),
        (
            "in a repository that is copied",
            format!("cp -r .git g; rm -rf .git; {EVIL_SECTION} >> g/config; cp -r g .git"),
        ),
        (
            "while the repository has another name",
            format!("exec 5>>.git/config; mv .git g; {EVIL_SECTION} >&5; exec 5>&-; mv g .git"),
        ),
        (
            "by a link to a file that holds it",
            format!("{EVIL_SECTION} > c; rm .git/config; ln c .git/config"),
        ),
        (
            "by a file that was made without a name and is still open",
            format!(
                "{PYTHON}{EVIL}fd = os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o644)\nos.unlink(\".git/config\")\n\
                 os.link(f\"/proc/self/fd/{{fd}}\", \".git/config\", src_dir_fd=fd, follow_symlinks=True)\nos.write(fd, evil)\n\
                 print(\"ready\", flush=True)\ninput()'"
            ),
        ),
        (
            "and removed and made again meanwhile",
            format!(
                "exec 5>>.git/config; rm .git/config; : > .git/config; {EVIL_SECTION} >&5; exec 5>&-; \
                     {EVIL_SECTION} >> .git/config"
            ),
        ),
        (
            "while it is judged, by two threads",
            format!(
                "{PYTHON}{EVIL}good = b\"#\" * (len(evil) - 1) + b\"\\n\"\n\
                 kept = os.open(\".git/config\", os.O_WRONLY | os.O_TRUNC)\ngoing = True\n\
                 def write():\n    while going:\n        os.pwrite(kept, good, 0)\n        os.pwrite(kept, evil, 0)\n\
                 thread = threading.Thread(target=write)\nthread.start()\n\
                 for _ in range(300):\n    os.close(os.open(\".git/config\", os.O_WRONLY))\n\
                 going = False\nthread.join()\nos.pwrite(kept, evil, 0)\n\
                 print(\"ready\", flush=True)\ninput()'"
            ),
        ),
    ];
    for (name, way) in ways {
        planting("H01", format!("write the configuration {name}"), OBEYS)
            .proves(&["FS-9 git-config", "FS-9 created-names"])
            .deadline(std::time::Duration::from_secs(60))
            .command(move |_| staying(&way))
            .check();
    }
}

/// Git of the host is called while the command still holds the file open, and later again.
///
/// Proves: FS-9 git-config
#[test]
fn h01_git_on_the_host_runs_nothing_that_was_written() {
    let ran = |world: &World| world.project().join("ran").exists();
    let seen = Rc::new(Cell::new(false));
    let (forget, look) = (Rc::clone(&seen), Rc::clone(&seen));
    let status = |world: &World| world.bare("git").args(["status", "--short"]).run();
    Attack::new("H01", "have git status run a program that the configuration names")
        .proves(&["FS-9 git-config"])
        .held_by(&["guard"])
        .prepare(move |world| {
            forget.set(false);
            world.git_init();
        })
        .command(|_| {
            staying(
                "printf '#!/bin/sh\\ntouch ran\\n' > evil; chmod +x evil; exec 5>>.git/config; \
                 printf \"[core]\\n\\tfsmonitor = $PWD/evil\\n\" >&5",
            )
        })
        .meanwhile(move |world| {
            status(world);
            look.set(ran(world));
        })
        .succeeded(move |world, _| {
            status(world);
            seen.get() || ran(world)
        })
        .check();
}

/// The configuration that a worktree shares with the others.
///
/// Proves: FS-9 git-config
#[test]
fn h01_no_setting_is_planted_from_a_worktree() {
    let config = |world: &World| world.home().join("main/.git/config");
    for way in [
        "git config core.fsmonitor evil-program",
        "printf '[core]\\n\\tfsmonitor = evil-program\\n' >> $c",
    ] {
        Attack::new("H01", "set core.fsmonitor of the repository that a worktree belongs to")
            .proves(&["FS-9 git-config"])
            .held_by(&["guard"])
            .prepare(make_worktree)
            .command(move |world| staying(&format!("c={}; {way}", config(world).display())))
            .meanwhile(|_| ())
            .succeeded(move |world, _| {
                fs::read_to_string(config(world)).is_ok_and(|text| text.contains("evil-program"))
            })
            .check();
    }
}

/// Proves: FS-9 git-config
#[test]
fn h01_the_place_of_hooks_cannot_be_changed() {
    by_script(
        "H01",
        "set core.hooksPath",
        Harm::GitObeys(".", "core.hooksPath"),
        "git config core.hooksPath evil-program",
    )
    .proves(&["FS-9 git-config"])
    .check();
}

/// Proves: FS-9 git-config, FS-9 created-names
#[test]
fn h01_a_file_does_not_lead_git_to_a_false_repository() {
    let make = format!("cp -r .git sub-look; {EVIL_SECTION} >> sub-look/config;");
    let ways = [
        (
            "lead git to a directory that looks like a repository",
            "mkdir sub; echo 'gitdir: ../sub-look' > sub/.git",
        ),
        (
            "rename such a file into place",
            "mkdir sub; echo 'gitdir: ../sub-look' > sub/g; mv sub/g sub/.git",
        ),
        ("make the repository a symbolic link", "mkdir sub; ln -s ../sub-look sub/.git"),
        (
            "lead git to a directory that leads it to another",
            "mkdir g c c/objects c/refs sub; cp .git/HEAD g/HEAD; echo ../c > g/commondir; \
             cp sub-look/config c/config; echo 'gitdir: ../g' > sub/.git",
        ),
    ];
    for (name, way) in ways {
        let script = format!("{make} {way}");
        planting("H01", name, Harm::GitObeys("sub", "core.fsmonitor"))
            .proves(&["FS-9 git-config", "FS-9 created-names"])
            .command(move |_| staying(&script))
            .check();
    }
}

/// Git takes any directory with `HEAD`, `objects`, `refs` and `config` in it for a bare repository.
///
/// Proves: FS-9 git-config, FS-9 created-names
#[test]
fn h01_no_directory_comes_to_look_like_a_bare_repository() {
    let pieces = [
        "echo 'ref: refs/heads/main' > $d/HEAD",
        "mkdir $d/objects",
        "mkdir $d/refs",
        "printf '[core]\\n\\tbare = true\\n\\tfsmonitor = evil-program\\n' > $d/config",
    ];
    for order in permutations(4) {
        let steps: Vec<&str> = order.iter().map(|index| pieces[*index]).collect();
        let script = format!("d=sub; mkdir $d; {}", steps.join("; "));
        planting(
            "H01",
            "build a bare repository piece by piece, in every order",
            Harm::GitObeys("sub", "core.fsmonitor"),
        )
        .proves(&["FS-9 git-config", "FS-9 created-names"])
        .command(move |_| staying(&script))
        .check();
    }
}

/// Proves: FS-9 git-config, FS-9 created-names
#[test]
fn h01_no_directory_comes_to_look_like_a_bare_repository_in_disguise() {
    const BARE: &str = r"printf '[core]\n\tbare = true\n\tfsmonitor = evil-program\n'";
    let ways = [
        (
            "with a branch that is a link",
            format!(
                "mkdir sub sub/objects sub/refs; ln -s refs/heads/main sub/HEAD; {BARE} > sub/config"
            ),
        ),
        (
            "with programs where directories belong",
            format!(
                "mkdir sub; {WRITE_EVIL} cp evil sub/objects; cp evil sub/refs; \
                 cp .git/HEAD sub/HEAD; {BARE} > sub/config"
            ),
        ),
        (
            "with its configuration behind a link",
            format!(
                "{BARE} > c; mkdir sub sub/objects sub/refs; cp .git/HEAD sub/; ln -s ../c sub/config"
            ),
        ),
        (
            "with its parts in another directory",
            format!(
                "mkdir sub c c/objects c/refs; {BARE} > c/config; cp .git/HEAD sub/; echo ../c > sub/commondir"
            ),
        ),
        (
            "renamed into place as a whole",
            format!(
                "mkdir a a/objects a/refs; {BARE} > a/c; mv a/c a/config; cp .git/HEAD a/; mv a sub"
            ),
        ),
    ];
    for (name, way) in ways {
        let name = format!("build a bare repository {name}");
        planting("H01", name, Harm::GitObeys("sub", "core.fsmonitor"))
            .proves(&["FS-9 git-config", "FS-9 created-names"])
            .command(move |_| staying(&way))
            .check();
    }
}

/// Proves: FS-9 git-hooks
#[test]
fn h01_a_hook_that_exists_is_not_changed() {
    by_script(
        "H01",
        "change a hook that a person installed",
        Harm::Changed(".git/hooks/pre-push", "original"),
        "echo evil >> .git/hooks/pre-push",
    )
    .proves(&["FS-9 git-hooks"])
    .prepare(|world| {
        world.git_init();
        world.write_in_project(".git/hooks/pre-push", "original");
    })
    .check();
}

/// Proves: FS-9 git-hooks
#[test]
fn h01_no_hook_is_planted_in_a_submodules_repository() {
    planting(
        "H01",
        "write a hook of a submodule's repository",
        Harm::Exists(".git/modules/s/hooks/post-checkout"),
    )
    .proves(&["FS-9 git-hooks"])
    .command(|_| {
        let way = "cp -r .git m; mkdir .git/modules; mv m .git/modules/s; \
                       mkdir -p .git/modules/s/hooks; cp evil .git/modules/s/hooks/post-checkout";
        staying(&format!("{WRITE_EVIL} {way}"))
    })
    .check();
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    permutations(last)
        .into_iter()
        .flat_map(|shorter| {
            (0..=last).map(move |place| {
                let mut longer = shorter.clone();
                longer.insert(place, last);
                longer
            })
        })
        .collect()
}

/// Git on the host appends to its logs, and writes its other files, wherever a link there leads: a name and a message that
/// were chosen inside would end up in a shell's settings.
///
/// Proves: FS-9 git-structure
#[test]
fn h01_no_link_in_a_git_directory_leads_out_of_it() {
    let ways = [
        (
            "make a link in a git directory that leads out of it",
            "rm -rf .git/logs; mkdir -p .git/logs; ln -s ../../outside .git/logs/HEAD",
        ),
        (
            "move a link into a git directory that leads out of it",
            "rm -rf .git/logs; mkdir .git/logs; ln -s ../../outside l; mv l .git/logs/HEAD",
        ),
        (
            "give a link that leads out a second name in a git directory",
            "rm -rf .git/logs; mkdir .git/logs; ln -s ../../outside l; ln -P l .git/logs/HEAD",
        ),
        (
            "move a directory with a link that leads out into a git directory",
            "rm -rf .git/logs; mkdir l; ln -s ../../outside l/HEAD; mv l .git/logs",
        ),
    ];
    for (name, script) in ways {
        by_script("H01", name, Harm::Exists(".git/logs/HEAD"), script)
            .proves(&["FS-9 git-structure"])
            .check();
    }
}
