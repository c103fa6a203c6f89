//! Build directories: the command has all rights to make and write files in them. None of that may reach a name
//! outside.

use std::time::Duration;

use palisade_testkit::{Attack, tries};

use crate::guard::{Harm, planting, staying};
use crate::host::{probe, strings};

/// Tries of a short run.
const RACES: u32 = 8_000;

fn with_build_dir(name: impl Into<String>, harm: Harm) -> Attack {
    planting("K09", name, harm)
        .proves(&["FS-9 build-dirs"])
        .prepare(|world| {
            world.git_init();
            for made in ["lib", "pkg", "repo", "out", ".envrc"] {
                let made = world.project().join(made);
                let _ = std::fs::remove_dir_all(&made).or_else(|_| std::fs::remove_file(&made));
            }
            world.write_in_project("out/file", "");
        })
        .flags(|_| strings(&["--build-dir", "out"]))
}

/// The kernel continues calls in a build directory, and reads their paths again.
///
/// Proves: FS-9 build-dirs
#[test]
fn k09_a_name_rewritten_in_a_build_directory_leads_to_no_protected_one() {
    for way in ["open", "mkdir", "symlink", "rename", "link"] {
        let name = format!("rewrite a name in a build directory while it is judged: {way}");
        with_build_dir(name, Harm::Exists(".envrc"))
            .deadline(Duration::from_secs(120))
            .command(move |world| {
                let words = ["race-name", way, &tries(RACES).to_string(), "out/ab", ".envrc"];
                staying(&probe(world, &words).join(" "))
            })
            .check();
    }
}

/// Proves: FS-9 build-dirs
#[test]
fn k09_a_directory_swapped_in_a_build_directory_leads_to_no_hook() {
    let name = "swap a directory in a build directory for a link to the hooks";
    with_build_dir(name, Harm::Exists(".git/hooks/pre-commit"))
        .deadline(Duration::from_secs(120))
        .command(|world| {
            let tries = tries(RACES).to_string();
            let race = probe(world, &["race-hook", &tries, "../.git/hooks", "pre-commit"]);
            staying(&format!("cd out; {}; cd ..", race.join(" ")))
        })
        .check();
}

/// Proves: FS-9 build-dirs
#[test]
fn k09_nothing_leaves_a_build_directory_without_being_judged() {
    const EVIL: &str = "printf '[core]\\n\\tfsmonitor = evil-program\\n'";
    let own = Harm::GitObeys(".", "core.fsmonitor");
    let attacks = [
        ("move a file out of it", Harm::Exists(".envrc"), "mv out/file .envrc".to_owned()),
        ("link a file out of it", Harm::Exists(".envrc"), "ln out/file .envrc".to_owned()),
        (
            "move a directory out of it that holds a protected name",
            Harm::Exists("pkg/.envrc"),
            "mkdir out/pkg; echo evil > out/pkg/.envrc; mv out/pkg pkg".to_owned(),
        ),
        (
            "exchange a directory in it for one outside",
            Harm::Exists("pkg/.envrc"),
            "mkdir pkg out/pkg; echo evil > out/pkg/.envrc; mv --exchange out/pkg pkg || \
             { rmdir pkg; mv out/pkg pkg; }"
                .to_owned(),
        ),
        (
            "move a repository out of it whose settings name a program",
            Harm::GitObeys("repo", "core.fsmonitor"),
            format!("git init -q out/repo; {EVIL} >> out/repo/.git/config; mv out/repo repo"),
        ),
        (
            "rename the build directory itself",
            Harm::Exists("lib/.envrc"),
            "echo evil > out/.envrc; mv -T out lib".to_owned(),
        ),
        (
            "link the settings of a repository into it",
            own,
            format!("ln .git/config out/config; {EVIL} >> out/config"),
        ),
        (
            "lead out of it to the settings of a repository",
            own,
            format!("ln -s ../.git/config out/link; {EVIL} >> out/link"),
        ),
    ];
    for (name, harm, script) in attacks {
        with_build_dir(name, harm).command(move |_| staying(&script)).check();
    }
}
