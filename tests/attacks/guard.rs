//! Files that the host would run later, planted while the run goes on: by every way a name can come
//! to be. The host looks while the command is still there, not afterwards, and afterwards nothing may
//! be left that was only put there to protect.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use palisade_testkit::{Attack, World, tries};

use crate::host::{probe, strings};

/// What must be off for a protected name to be planted.
pub(crate) const GUARDED: &[&str] = &["guard"];
/// Tries of a short run.
const RACES: u32 = 8_000;

/// What the host would meet.
#[derive(Clone, Copy)]
pub(crate) enum Harm {
    /// Something of this name in the project.
    Exists(&'static str),
    /// Git, called in this directory of the project, obeys a setting that names a program.
    GitObeys(&'static str, &'static str),
    /// The file says something else than before.
    Changed(&'static str, &'static str),
}

/// The setting's value, wherever one is planted.
const EVIL: &str = "evil-program";

impl Harm {
    pub(crate) fn is_done(self, world: &World) -> bool {
        match self {
            Self::Exists(path) => fs::symlink_metadata(world.project().join(path)).is_ok(),
            Self::GitObeys(directory, key) => {
                let place = world.project().join(directory);
                let git = world.bare("git").args(["config", "--get", key]);
                place.is_dir() && git.cwd(place).run().out().trim() == EVIL
            }
            Self::Changed(path, before) => {
                fs::read_to_string(world.project().join(path)).is_ok_and(|now| now != before)
            }
        }
    }
}

/// An attempt whose outcome the host looks at while the command still runs, and again at the end.
pub(crate) fn planting(id: &'static str, name: impl Into<String>, harm: Harm) -> Attack {
    let seen = Rc::new(Cell::new(false));
    let (forget, look) = (Rc::clone(&seen), Rc::clone(&seen));
    Attack::new(id, name)
        .held_by(GUARDED)
        .prepare(move |world| {
            world.git_init();
            forget.set(false);
        })
        .meanwhile(move |world| look.set(harm.is_done(world)))
        .succeeded(move |world, _| seen.get() || harm.is_done(world))
}

/// The words of a shell that goes on whatever is refused to it, and stays until the host has looked.
pub(crate) fn staying(script: &str) -> Vec<String> {
    strings(&["sh", "-c", &format!("{script}\necho ready; read line")])
}

pub(crate) fn by_script(
    id: &'static str,
    name: &'static str,
    harm: Harm,
    script: &'static str,
) -> Attack {
    planting(id, name, harm).command(move |_| staying(script))
}

/// A probe that tries, and a shell that then waits for the host.
fn by_probe(
    id: &'static str,
    name: &'static str,
    harm: Harm,
    words: &'static [&'static str],
) -> Attack {
    planting(id, name, harm).command(move |world| {
        let call = probe(world, words).join(" ");
        staying(&call)
    })
}

/// Names that did not exist when the run started; afterwards they do not exist either.
///
/// Proves: FS-9 editor-settings, FS-9 created-names, FS-9 no-placeholder
#[test]
fn f10_no_protected_name_comes_to_be() {
    let names = [
        ".envrc",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".mcp.json",
        ".idea/workspace.xml",
        ".pre-commit-config.yaml",
        "deep/er/.envrc",
    ];
    for path in names {
        let script = format!("mkdir -p \"$(dirname {path})\"; echo evil > {path}");
        planting("F10", format!("write {path}"), Harm::Exists(path))
            .proves(&["FS-9 editor-settings", "FS-9 created-names"])
            .command(move |_| staying(&script))
            .contained(move |world, _| nothing_is_left(world, path))
            .check();
    }
}

/// Neither the name nor the part of it that is protected.
fn nothing_is_left(world: &World, path: &str) -> bool {
    let protected = Path::new(path).iter().find(|part| part.to_string_lossy().starts_with('.'));
    let is_there = |name| fs::symlink_metadata(world.project().join(name)).is_ok();
    !is_there(Path::new(path)) && protected.is_none_or(|name| !is_there(Path::new(name)))
}

/// Proves: FS-9 created-names, FS-9 no-placeholder
#[test]
fn f10_no_protected_name_comes_to_be_by_another_way() {
    let envrc = Harm::Exists(".envrc");
    let ways = [
        ("rename a file to a protected name", "echo evil > a; mv a .envrc"),
        ("link a file to a protected name", "echo evil > a; ln a .envrc"),
        ("make a protected name a symbolic link", "echo evil > a; ln -s a .envrc"),
        ("write through a dangling link to a protected name", "ln -s .envrc a; echo evil > a"),
        ("make a protected name a pipe", "mkfifo .envrc"),
        ("make a protected name a directory", "mkdir .envrc"),
    ];
    for (name, way) in ways {
        by_script("F10", name, envrc, way)
            .proves(&["FS-9 created-names"])
            .contained(|world, _| nothing_is_left(world, ".envrc"))
            .check();
    }
    let probes: [(&str, &[&str]); 4] = [
        ("link a file without a name to a protected one", &["link-unnamed", ".envrc"]),
        ("exchange a file and a protected name", &["exchange", "palisade-probe", ".envrc"]),
        ("bind a socket at a protected name", &["bind-socket", ".envrc"]),
        ("open a protected name by openat2", &["create-by-openat2", ".envrc"]),
    ];
    for (name, words) in probes {
        let attack = by_probe("F10", name, envrc, words).proves(&["FS-9 created-names"]);
        let attack = if words[0] == "exchange" {
            // An exchange needs something on both sides.
            attack.prepare(|world| {
                world.write_in_project(".envrc", "original");
            })
        } else {
            attack
        };
        match words[0] {
            "exchange" => attack.succeeded(|world, _| {
                fs::read(world.project().join(".envrc")).is_ok_and(|now| now != b"original")
            }),
            _ => attack.contained(|world, _| nothing_is_left(world, ".envrc")),
        }
        .check();
    }
}

/// On a file system that knows no case these are the same names.
///
/// Proves: FS-9 created-names
#[test]
fn f10_no_protected_name_comes_to_be_in_other_letters() {
    let harms = [".ENVRC", ".Git/hooks/pre-commit", ".VSCode/tasks.json"]
        .map(|path| (path, Harm::Exists(path)));
    // Configuration is judged by what it says: an empty one may be there.
    let config = ".g\u{200c}it/config";
    for (path, harm) in harms.into_iter().chain([(config, Harm::Changed(config, ""))]) {
        let script = format!("mkdir -p \"$(dirname {path})\"; echo evil > {path}");
        planting("F10", format!("write {}", path.escape_default()), harm)
            .proves(&["FS-9 created-names"])
            .command(move |_| staying(&script))
            .check();
    }
}

const HOOK: Harm = Harm::Exists(".git/hooks/pre-commit");

/// Proves: FS-9 created-names
#[test]
fn f11_a_protected_directory_is_not_replaced_by_a_link() {
    by_script(
        "F11",
        "put a link in the place of the hooks",
        HOOK,
        "mkdir a; echo evil > a/pre-commit; mv .git/hooks old; ln -s ../a .git/hooks",
    )
    .proves(&["FS-9 created-names"])
    .check();
    by_script(
        "F11",
        "put a link in the place of an editor's settings",
        Harm::Changed(".vscode/tasks.json", "original"),
        "mkdir a; echo evil > a/tasks.json; mv .vscode old; ln -s a .vscode",
    )
    .proves(&["FS-9 created-names"])
    .prepare(|world| {
        world.write_in_project(".vscode/tasks.json", "original");
    })
    .check();
}

/// Proves: FS-9 editor-settings
#[test]
fn h02_what_exists_is_not_changed() {
    let ways = [
        ("change the file that a shell runs on entering", ".envrc", "echo evil >> .envrc"),
        ("change an editor's tasks", ".vscode/tasks.json", "echo evil > .vscode/tasks.json"),
        (
            "rename over an agent's settings",
            ".claude/settings.json",
            "echo evil > a; mv a .claude/settings.json",
        ),
        (
            "move a directory of settings away and make another",
            ".claude/settings.json",
            "mv .claude old; mkdir .claude; echo evil > .claude/settings.json",
        ),
        (
            "rename a directory to one of settings",
            ".claude/settings.json",
            "mkdir a; echo evil > a/settings.json; rm -r .claude; mv a .claude",
        ),
        (
            "change the home of a virtual environment",
            "venv/pyvenv.cfg",
            "echo evil > venv/pyvenv.cfg",
        ),
        (
            "change what activates a virtual environment",
            "venv/bin/activate",
            "echo evil >> venv/bin/activate",
        ),
    ];
    for (name, path, way) in ways {
        by_script("H02", name, Harm::Changed(path, "original"), way)
            .proves(&["FS-9 editor-settings"])
            .prepare(move |world| {
                world.git_init();
                world.write_in_project("venv/pyvenv.cfg", "original");
                world.write_in_project(path, "original");
            })
            .check();
    }
}

/// A directory is a link to the hooks in turns while a file is made in it.
///
/// Proves: FS-9 created-names
#[test]
fn k09_a_directory_swapped_for_a_link_during_the_call_leads_nowhere() {
    planting("K09", "swap a directory and a link to the hooks while a file is made in it", HOOK)
        .proves(&["FS-9 created-names"])
        .deadline(Duration::from_secs(120))
        .command(move |world| {
            let words = ["race-hook", &tries(RACES).to_string(), ".git/hooks", "pre-commit"];
            staying(&probe(world, &words).join(" "))
        })
        .check();
}

/// A second thread rewrites the name while the call is judged: what was looked at is not what is
/// opened, unless the judge opens it.
///
/// Proves: FS-9 created-names
#[test]
fn k09_a_name_rewritten_during_the_call_is_not_planted() {
    for way in ["open", "mkdir", "rename", "link", "symlink"] {
        planting(
            "K09",
            format!("rewrite a name while it is judged: {way}"),
            Harm::Exists(".envrc"),
        )
        .proves(&["FS-9 created-names"])
        .deadline(Duration::from_secs(120))
        .command(move |world| {
            let words = ["race-name", way, &tries(RACES).to_string(), "a.file", ".envrc"];
            staying(&probe(world, &words).join(" "))
        })
        .contained(|world, _| nothing_is_left(world, ".envrc"))
        .check();
    }
}
