//! Git directories that are moved or exchanged: settings with relative paths in them lead elsewhere then.

use crate::guard::{Harm, planting, staying};
use crate::host::probe;

/// Proves: FS-9 moved-git-directories
#[test]
fn h01_a_moved_git_directory_takes_nothing_out_of_the_guard() {
    let attack = |name, harm, config: &'static str, script: &'static str| {
        planting("H01", name, harm)
            .proves(&["FS-9 git-config"])
            .prepare(move |world| {
                world.git_init();
                world.write_in_project("shared.inc", "[core]\n");
                world.write_in_project("sub/file", "");
                let whole = format!("[core]\n\trepositoryformatversion = 0\n{config}");
                world.write_in_project(".git/config", &whole);
            })
            .command(move |_| staying(script))
    };
    attack(
        "move a git directory whose configuration includes a file beside it",
        Harm::GitObeys("sub", "core.fsmonitor"),
        "[include]\n\tpath = ../shared.inc\n",
        "printf '[core]\\n\\tfsmonitor = evil-program\\n' > sub/shared.inc; mv .git sub/.git",
    )
    .check();
    attack(
        "move a git directory whose hooks are beside it",
        Harm::Exists("sub/.git"),
        "\thooksPath = tools/hooks\n",
        "mkdir -p sub/tools/hooks; echo evil > sub/tools/hooks/pre-commit; mv .git sub/.git",
    )
    .check();
    attack(
        "lead a directory to a repository whose hooks are relative",
        Harm::Exists("sub/.git"),
        "\thooksPath = tools/hooks\n",
        "mkdir -p sub/tools/hooks; echo evil > sub/tools/hooks/pre-commit; echo 'gitdir: ../.git' > sub/.git",
    )
    .check();
    attack(
        "put hooks where they are looked up in a bare repository",
        Harm::Exists(".git/tools/hooks/pre-commit"),
        "\thooksPath = tools/hooks\n",
        "mkdir -p .git/tools/hooks; echo evil > .git/tools/hooks/pre-commit",
    )
    .check();
    attack(
        "make a repository with relative hooks a bare one",
        Harm::Changed(
            ".git/config",
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\thooksPath = tools/hooks\n",
        ),
        "\tbare = false\n\thooksPath = tools/hooks\n",
        "git config core.bare true",
    )
    .check();
}

/// Proves: FS-9 moved-git-directories
#[test]
fn h01_a_moved_git_directory_leads_no_submodule_out_of_the_project() {
    planting(
        "H01",
        "move a git directory with a submodule up, so that its files are outside",
        Harm::Exists("x.git"),
    )
    .proves(&["FS-9 git-config"])
    .prepare(|world| {
        world.git_init();
        world.write_in_project("nest/.git/HEAD", "ref: refs/heads/main\n");
        for dir in ["objects", "refs", "modules/s/objects", "modules/s/refs"] {
            std::fs::create_dir_all(world.project().join("nest/.git").join(dir)).unwrap();
        }
        world.write_in_project("nest/.git/modules/s/config", "[core]\n\tworktree = ../../../s\n");
    })
    .command(|_| staying("mv nest/.git x.git"))
    .check();
}

/// Proves: FS-9 git-config
#[test]
fn h01_configuration_is_not_exchanged_with_a_directory() {
    planting(
        "H01",
        "exchange the configuration of git and a directory",
        Harm::Exists("dir/marker"),
    )
    .proves(&["FS-9 git-config"])
    .prepare(|world| {
        world.git_init();
        let directory = world.project().join("dir");
        let _ = std::fs::remove_file(&directory);
        std::fs::create_dir_all(directory).unwrap();
    })
    .command(|world| staying(&probe(world, &["exchange", "dir", ".git/config"]).join(" ")))
    .succeeded(|world, _| world.project().join("dir").is_file())
    .check();
}
