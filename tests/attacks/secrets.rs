//! Secrets: by every other name of the same file, and while the host moves files about.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use palisade_testkit::{Attack, Output, World};

use crate::files::TO_WRITE_OUTSIDE;
use crate::host::strings;

const SECRET: &str = "the secret itself";
const KEY: &str = ".ssh/id_ed25519";

/// What must be off for the command to read what is not in its view.
///
/// Only its owner can look into root's home, and into the directories of the tests in it.
pub(crate) const TO_READ_WHAT_IS_HIDDEN: &[&str] = &["mount-view", "identity"];

fn in_home(world: &World, relative: impl AsRef<Path>) -> String {
    world.home().join(relative).display().to_string()
}

fn put_key(world: &World) {
    world.write(Path::new("home").join(KEY), SECRET);
    world.write("home/notes/harmless", "");
}

fn secret_was_read(_: &World, output: &Output) -> bool {
    output.out().contains(SECRET)
}

/// A reading of the key in static mode, with the rest of the home directory in the view.
fn alias(name: &'static str, command: impl Fn(&World) -> Vec<String> + 'static) -> Attack {
    Attack::new("F24", name)
        .proves(&["FS-2 aliases"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(put_key)
        .flags(|world| strings(&["--static", "--ro", &world.home().display().to_string()]))
        .command(command)
        .succeeded(secret_was_read)
}

/// Proves: FS-2 hidden
#[test]
fn f24_a_secret_cannot_be_read_in_static_mode() {
    let world = World::new();
    put_key(&world);
    // The home directory as such is in the view, so it is the secret that is hidden.
    let harmless = in_home(&world, "notes/harmless");
    world.sandbox_run(["--static", "--ro", "~"], ["cat", &harmless]).run().assert_code(0);

    alias("read a key", |world| strings(&[&world.probe(), "read", &in_home(world, KEY)]))
        .proves(&["FS-2 hidden"])
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Proves: FS-2 hidden
#[test]
fn f24_a_secret_cannot_be_read_in_dynamic_mode() {
    alias("read a key", |world| strings(&[&world.probe(), "read", &in_home(world, KEY)]))
        .proves(&["FS-2 hidden"])
        .flags(|_| Vec::new())
        .check();
}

/// Proves: FS-2 hidden
#[test]
fn f24_a_secret_cannot_be_read_where_the_home_directory_is_granted() {
    alias("read a key", |world| strings(&[&world.probe(), "read", &in_home(world, KEY)]))
        .proves(&["FS-2 hidden"])
        .flags(|world| vec!["--ro".into(), world.home().display().to_string()])
        .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_slashes_and_dots_do_not_uncover_a_secret() {
    for detour in ["/.ssh//id_ed25519", "/.ssh/./id_ed25519", "/notes/../.ssh/../.ssh/id_ed25519"] {
        alias("read a key by a crooked path", move |world| {
            strings(&[&world.probe(), "read", &format!("{}{detour}", world.home().display())])
        })
        .check();
    }
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_directory_with_a_trailing_slash_stays_hidden() {
    alias("list a hidden directory", |world| {
        vec!["ls".into(), format!("{}/", in_home(world, ".ssh"))]
    })
    .succeeded(|_, output| output.out().contains("id_ed25519"))
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_link_in_the_project_does_not_uncover_a_secret() {
    alias("read a key through a link", |world| {
        strings(&[&world.probe(), "read", "link/id_ed25519"])
    })
    .prepare(|world| {
        put_key(world);
        symlink(world.home().join(".ssh"), world.project().join("link")).unwrap();
    })
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_link_made_inside_does_not_uncover_a_secret() {
    alias("make a link to a key and read it", |world| {
        strings(&[&world.probe(), "symlink-and-read", &in_home(world, KEY), "link"])
    })
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_secret_that_is_a_link_is_hidden_where_it_leads() {
    alias("read a key where it really lies", |world| {
        strings(&[&world.probe(), "read", &in_home(world, "dotfiles/keys/id_ed25519")])
    })
    .prepare(|world| {
        world.write("home/dotfiles/keys/id_ed25519", SECRET);
        symlink("dotfiles/keys", world.home().join(".ssh")).unwrap();
    })
    .check();
}

/// A key that lies elsewhere, with a link to it among the keys.
fn put_linked_key(world: &World) {
    world.write("home/keys/real/id_rsa", SECRET);
    world.write("home/.ssh/known_hosts", "");
    symlink("real/id_rsa", world.home().join("keys/id_rsa")).unwrap();
    symlink("../keys/id_rsa", world.home().join(".ssh/id_rsa")).unwrap();
}

/// Every name of it: the link among the keys, the link on the way, and where it really lies.
const LINKED_KEY: [&str; 3] = [".ssh/id_rsa", "keys/id_rsa", "keys/real/id_rsa"];

/// Proves: FS-2 linked-secrets
#[test]
fn f24_a_link_among_secrets_is_hidden_where_it_leads() {
    for name in LINKED_KEY {
        alias("read a key that a link among the keys leads to", move |world| {
            strings(&[&world.probe(), "read", &in_home(world, name)])
        })
        .prepare(put_linked_key)
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
    }
}

/// Proves: FS-2 linked-secrets
#[test]
fn f24_a_link_among_secrets_is_not_answered_by_a_yes_to_everything() {
    for name in LINKED_KEY {
        alias(
            "read a key that a link among the keys leads to, where everything is allowed",
            move |world| strings(&[&world.probe(), "read", &in_home(world, name)]),
        )
        .prepare(put_linked_key)
        .flags(|_| strings(&["--on-ask", "allow"]))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
    }
}

/// A reading of the key at a place where the host has mounted a part of the home directory again.
fn second_bind(part: &'static str, place: &'static str, key: &'static str) -> Attack {
    let at = move |world: &World| world.path().join(place).display().to_string();
    alias("read a key where its directory is mounted again", move |world| {
        strings(&[&world.probe(), "read", &world.path().join(key).display().to_string()])
    })
    .prepare(move |world| {
        put_key(world);
        fs::create_dir_all(at(world)).unwrap();
    })
    .surroundings(move |world| {
        strings(&[&world.probe(), "with-second-bind", &in_home(world, part), &at(world), "--"])
    })
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_second_bind_of_the_home_directory_hides_the_same() {
    second_bind(".", "second", "second/.ssh/id_ed25519")
        .flags(|world| {
            let second = world.path().join("second").display().to_string();
            vec!["--static".into(), "--ro".into(), second]
        })
        .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_second_bind_of_a_secret_in_a_granted_directory_is_hidden() {
    second_bind(".ssh", "home/notes/keys", "home/notes/keys/id_ed25519").check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_second_bind_of_a_secret_in_the_project_is_hidden() {
    second_bind(".ssh", "home/project/keys", "home/project/keys/id_ed25519").check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_home_directory_mounted_elsewhere_is_not_shown_in_static_mode() {
    alias("read a file of the home directory where that is mounted again", |world| {
        strings(&[&world.probe(), "read", "/mnt/private-note"])
    })
    .needs("a directory /mnt", Path::new("/mnt").is_dir())
    .prepare(|world| {
        world.write("home/private-note", SECRET);
    })
    .flags(|_| strings(&["--static"]))
    .surroundings(|world| {
        strings(&[&world.probe(), "with-second-bind", &in_home(world, "."), "/mnt", "--"])
    })
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_home_directory_behind_a_link_hides_the_same() {
    let link = |world: &World| world.path().join("moved-home");
    for key in ["moved-home/.ssh/id_ed25519", "home/.ssh/id_ed25519"] {
        alias("read a key in a home directory that is a link", move |world| {
            strings(&[&world.probe(), "read", &world.path().join(key).display().to_string()])
        })
        .prepare(move |world| {
            put_key(world);
            symlink(world.home(), link(world)).unwrap();
        })
        .surroundings(move |world| vec!["env".into(), format!("HOME={}", link(world).display())])
        .check();
    }
}

/// Proves: FS-2 aliases
#[test]
fn f24_credentials_are_hidden_where_a_variable_moved_them() {
    alias("read a registry token where CARGO_HOME is", |world| {
        strings(&[&world.probe(), "read", &in_home(world, "rust/credentials.toml")])
    })
    .prepare(|world| {
        world.write("home/rust/credentials.toml", SECRET);
    })
    .surroundings(|world| vec!["env".into(), format!("CARGO_HOME={}", in_home(world, "rust"))])
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_no_process_has_a_root_that_uncovers_a_secret() {
    alias("read a key through the roots in /proc", |world| {
        strings(&[&world.probe(), "read-through-proc", &in_home(world, KEY)])
    })
    .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_hard_link_does_not_bring_in_a_secret() {
    alias("link a key into the project and read it", |world| {
        strings(&[&world.probe(), "link-and-read", &in_home(world, KEY), "linked"])
    })
    .held_by(TO_WRITE_OUTSIDE)
    .check();
}

/// Proves: FS-2 env-file
#[test]
fn f24_an_environment_file_of_another_project_is_hidden() {
    alias("read a .env outside the project", |world| {
        strings(&[&world.probe(), "read", &in_home(world, "other/.env")])
    })
    .proves(&["FS-2 hidden"])
    .flags(|_| vec!["--static".into()])
    .prepare(|world| {
        world.write("home/other/.env", SECRET);
    })
    .check();
}

/// Proves: FS-2 sockets
#[test]
fn f24_the_socket_of_a_container_engine_is_out_of_reach() {
    alias("connect to a container engine", |world| {
        strings(&[&world.probe(), "connect-socket", &in_home(world, ".docker/run/docker.sock")])
    })
    .proves(&["FS-2 sockets"])
    .prepare(|world| {
        fs::create_dir_all(world.home().join(".docker/run")).unwrap();
        let listener = UnixListener::bind(world.home().join(".docker/run/docker.sock")).unwrap();
        // It has to listen until the run is over, and goes with the test's process.
        std::mem::forget(listener);
    })
    .succeeded(|_, output| output.code() == 0)
    .check();
}

/// A key that is read only after the host has put a new file or directory in its place: a mount
/// that covered the old one would have come off.
fn after_a_rename(flags: &'static [&'static str], relative: &'static str) -> Attack {
    Attack::new("F24", "read a secret after the host has replaced it")
        .proves(&["FS-2 hidden"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(move |world| {
            world.write(Path::new("home").join(relative), "the former secret");
        })
        .flags(move |world| {
            let home = world.home().display().to_string();
            flags.iter().map(|flag| flag.replace('~', &home)).collect()
        })
        .command(move |world| {
            strings(&[&world.probe(), "read-when-told", &in_home(world, relative)])
        })
        .meanwhile(move |world| replace_top(world, relative))
        .succeeded(secret_was_read)
        // Not there, or (where somebody could be asked) denied.
        .contained(|_, output| {
            ["refused 2 ", "refused 13 "].iter().any(|refused| output.out().contains(refused))
        })
}

/// Replaces the first component of a path in the home directory, by renames as editors and package
/// managers do it.
fn replace_top(world: &World, relative: &str) {
    let made = world.write(Path::new("outside/new").join(relative), SECRET);
    assert!(made.exists());
    let top = Path::new(relative).iter().next().unwrap();
    let (new, old) = (world.outside().join("new").join(top), world.home().join(top));
    if old.is_dir() {
        fs::rename(&old, world.outside().join("old")).unwrap();
    }
    fs::rename(new, old).unwrap();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_file_renamed_over_a_secret_stays_hidden_in_dynamic_mode() {
    after_a_rename(&[], ".netrc").check();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_directory_renamed_over_a_secret_one_stays_hidden_in_dynamic_mode() {
    after_a_rename(&[], KEY).check();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_file_renamed_over_a_secret_stays_hidden_in_a_granted_home() {
    after_a_rename(&["--ro", "~"], ".netrc").check();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_file_renamed_over_a_secret_stays_hidden_in_static_mode() {
    after_a_rename(&["--static", "--ro", "~"], ".netrc").check();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_directory_renamed_over_a_secret_one_stays_hidden_in_static_mode() {
    after_a_rename(&["--static", "--ro", "~"], KEY).check();
}

/// Proves: FS-2 host-rename, FS-1 blacklist, GATE-7 deny-list
#[test]
fn f24_a_file_renamed_over_a_denied_one_stays_hidden_in_static_mode() {
    after_a_rename(&["--static", "--ro", "~", "--blacklist", "~/diary"], "diary").check();
}

/// Proves: FS-2 host-rename, FS-1 blacklist, GATE-7 deny-list
#[test]
fn f24_a_directory_renamed_over_a_denied_one_stays_hidden_in_static_mode() {
    after_a_rename(&["--static", "--ro", "~", "--blacklist", "~/letters"], "letters/first").check();
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_file_renamed_over_a_secret_stays_hidden_under_an_overlay() {
    after_a_rename(&["--overlay", "~"], ".netrc").check();
}

/// A home directory with more in it than is mounted one by one: shown by an overlay that lacks the secrets.
fn crowd(world: &World) {
    for number in 0..100 {
        world.write(format!("home/notes-{number}"), "");
    }
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_file_renamed_over_a_secret_stays_hidden_in_a_crowded_home() {
    for relative in [".netrc", KEY] {
        after_a_rename(&["--ro", "~"], relative)
            .prepare(move |world| {
                crowd(world);
                world.write(Path::new("home").join(relative), "the former secret");
            })
            .check();
    }
}

/// Proves: FS-2 host-rename
#[test]
fn f24_a_secret_that_the_host_creates_later_is_hidden_in_a_crowded_home() {
    after_a_rename(&["--ro", "~"], ".netrc")
        .prepare(crowd)
        .meanwhile(|world| {
            world.write("home/.netrc", SECRET);
        })
        .check();
}

/// Proves: FS-2 aliases
#[test]
fn f24_a_hidden_name_in_a_crowded_home_cannot_be_had_by_another_way() {
    alias("read a key through the roots in /proc", |world| {
        strings(&[&world.probe(), "read-through-proc", &in_home(world, KEY)])
    })
    .prepare(|world| {
        crowd(world);
        put_key(world);
    })
    .check();
}

/// A secret that did not exist when the run started is as hidden as one that did.
///
/// Proves: FS-2 host-rename
#[test]
fn f24_a_secret_that_the_host_creates_later_is_hidden() {
    for relative in [".netrc", KEY, ".config/gh/hosts.yml"] {
        after_a_rename(&["--static", "--ro", "~"], relative)
            .prepare(|world| {
                world.write("home/.config/harmless", "");
            })
            .meanwhile(move |world| {
                world.write(Path::new("home").join(relative), SECRET);
            })
            .check();
    }
}

const NPMRC: &str = "registry=https://npm.example/\n//npm.example/:_authToken=the secret itself\n";

fn put_settings(world: &World) {
    world.write("home/.npmrc", NPMRC);
    world.write(
        "home/.m2/settings.xml",
        format!("<settings><server><password>{SECRET}</password></server></settings>"),
    );
    world.write("home/.gradle/gradle.properties", format!("# old: aPassword={SECRET}\nb.c=d\n"));
}

/// Proves: FS-2 settings-credentials
#[test]
fn f24_credentials_are_left_out_of_the_settings_that_are_carried_in() {
    Attack::new("F24", "read a token in the settings of a package manager")
        .proves(&["FS-2 settings-credentials"])
        .held_by(&["filtered-settings"])
        .prepare(put_settings)
        .command(|_| {
            strings(&["sh", "-c", "cat ~/.npmrc ~/.m2/settings.xml ~/.gradle/gradle.properties"])
        })
        .contained(|_, output| output.out().contains("registry=https://npm.example/"))
        .succeeded(secret_was_read)
        .check();
}
