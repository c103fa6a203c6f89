//! What lies where set-up will mount, write or look: links and files planted by whoever made the
//! directory that stands at `/`, paths with characters that mount options would split at, and names
//! that the host itself writes later.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use palisade_testkit::{Demonstration, Output, World};

use crate::host::{in_own_mounts, strings};

const UNTOUCHED: &str = "untouched";

/// A directory to stand at `/`, whose own `/dev`, `/proc` and the like are an attacker's work.
fn image(plant: impl Fn(&Path, &Path)) -> World {
    let world = World::new();
    world.write("outside/canary", UNTOUCHED);
    let root = world.path().join("image");
    fs::create_dir(&root).unwrap();
    plant(&root, &world.outside());
    world
}

fn run_on_image(world: &World, command: &[&str]) -> Output {
    let policy = format!(
        "filesystem: {{rootPath: {}}}\n",
        serde_json::to_string(&world.path().join("image")).unwrap()
    );
    let file = world.write("policy.yaml", policy).display().to_string();
    world.sandbox_run(["--policy", &file], command).run()
}

/// What a runtime does that sets up by name: it makes its own file systems' contents below a
/// directory that others wrote.
fn set_up_by_name(world: &World, script: &str) {
    let root = world.path().join("image").display().to_string();
    world.bare("sh").args(["-c", script, &root]).run().assert_code(0);
}

#[track_caller]
fn assert_untouched(world: &World, output: &Output) {
    let outside = world.outside();
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}\n{}", output.err());
    assert_eq!(fs::read_to_string(outside.join("canary")).unwrap(), UNTOUCHED);
}

const BELOW_ITS_OWN_ROOT: &str =
    "every mount is put in its place below the new root's descriptor, without following a link";

/// Proves: FS-3 own-root, FS-3 approved-mounts
#[test]
fn f03_dev_and_proc_planted_as_links_catch_nothing() {
    let shown = Demonstration::of("F03", "plant /dev and /proc as links out", BELOW_ITS_OWN_ROOT);
    let Some(mut shown) = shown.begin() else { return };
    let planted = || {
        image(|root, outside| {
            for name in ["dev", "proc", "tmp", "run"] {
                symlink(outside, root.join(name)).unwrap();
            }
        })
    };
    let world = planted();
    set_up_by_name(&world, r#"mkdir -p "$0/dev" && touch "$0/dev/null""#);
    assert!(world.outside().join("null").exists());
    shown.worked_bare();

    let world = planted();
    let output = run_on_image(&world, &["sh", "-c", "touch /tmp/x /dev/shm/x; echo > /dev/null"]);
    assert_untouched(&world, &output);
    // Whether it starts or is refused, it is never the host's or the attacker's /proc that is there.
    assert!([0, 125, 126].contains(&output.code()), "{}", output.err());
    shown.held();
}

/// Proves: FS-3 own-root
#[test]
fn f04_a_false_dev_null_masks_nothing() {
    let shown = Demonstration::of(
        "F04",
        "plant /dev/null as a link, for what is masked with it",
        "what is hidden is left out of the view; nothing is covered with a file of the host",
    );
    let Some(mut shown) = shown.begin() else { return };
    let planted = || {
        image(|root, outside| {
            fs::create_dir(root.join("dev")).unwrap();
            symlink(outside.join("canary"), root.join("dev/null")).unwrap();
        })
    };
    let world = planted();
    set_up_by_name(&world, r#"echo > "$0/dev/null""#);
    assert_ne!(fs::read_to_string(world.outside().join("canary")).unwrap(), UNTOUCHED);
    shown.worked_bare();

    let world = planted();
    let output = run_on_image(&world, &["sh", "-c", "echo overwritten > /dev/null"]);
    assert_untouched(&world, &output);
    output.assert_code(0);
    shown.held();
}

/// Proves: FS-7 devpts, FS-3 own-root
#[test]
fn f05_a_false_console_or_terminal_catches_nothing() {
    let shown = Demonstration::of(
        "F05",
        "plant terminals and the console as links",
        "the sandbox's /dev is its own file system, and its terminals are made in it",
    );
    let Some(mut shown) = shown.begin() else { return };
    let planted = || {
        image(|root, outside| {
            fs::create_dir_all(root.join("dev/pts")).unwrap();
            for name in ["dev/console", "dev/tty", "dev/ptmx", "dev/pts/0"] {
                symlink(outside.join("canary"), root.join(name)).unwrap();
            }
        })
    };
    let world = planted();
    set_up_by_name(&world, r#"echo > "$0/dev/pts/0""#);
    assert_ne!(fs::read_to_string(world.outside().join("canary")).unwrap(), UNTOUCHED);
    shown.worked_bare();

    let world = planted();
    let script = "for name in console tty ptmx pts/0; do echo overwritten > /dev/$name; done; true";
    let output = run_on_image(&world, &["sh", "-c", script]);
    assert_untouched(&world, &output);
    output.assert_code(0);
    shown.held();
}

/// In a mount namespace of its own, an ordinary file system is put over `/proc`, with files that take
/// whatever is written to them.
const WITH_FALSE_PROC: &str = r#"
    mount -t tmpfs none /proc && mkdir -p /proc/self/fd /proc/self/ns /proc/thread-self/attr &&
    for name in uid_map gid_map setgroups mountinfo status; do : > /proc/self/$name; done
    exec "$@""#;

fn with_false_proc() -> Vec<String> {
    [in_own_mounts(), strings(&["sh", "-c", WITH_FALSE_PROC, "sh"])].concat()
}

/// Proves: PROC-7 never-less
#[test]
fn f06_a_false_procfs_is_not_believed() {
    let shown = Demonstration::of(
        "F06",
        "put a false procfs where set-up writes its maps",
        "set-up stops when what it wrote has no effect; nothing runs without its walls",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let script = ["-c", "echo deny > /proc/self/setgroups && touch ran"];
    world.bare("sh").args(script).started_by(&with_false_proc()).run().assert_code(0);
    assert!(world.project().join("ran").exists());
    shown.worked_bare();

    let world = World::new();
    let output = world.sandbox_run([""; 0], ["touch", "ran"]).started_by(&with_false_proc()).run();
    output.assert_code(125);
    assert!(!world.project().join("ran").exists(), "the command ran");
    shown.held();
}

/// Mount options are split at `:` and `,`, and read `\` as an escape.
///
/// Proves: FS-3 strange-paths, FS-5 looks-writable
#[test]
fn f18_an_overlay_with_special_characters_shows_nothing_else() {
    let shown = Demonstration::of(
        "F18",
        "name an overlaid directory so that mount options name another one too",
        "layers are given to the kernel by descriptor, not as text",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    world.write("outside/secret", "the secret itself");
    // As an option `lowerdir=` takes it: this directory, and then the one outside.
    let outside = world.outside().display().to_string();
    let tricky = world.project().join(format!("a:{}", outside.trim_start_matches('/')));
    fs::create_dir_all(&tricky).unwrap();
    fs::create_dir_all(world.project().join("a")).unwrap();
    fs::create_dir(world.project().join("place")).unwrap();
    let mount = r#"mount -t overlay none -o "lowerdir=$0" place && ls place"#;
    let in_options = format!("{}:{outside}", world.project().join("a").display());
    let mounting = world.bare("sh").args(["-c", mount, &in_options]);
    let bare = mounting.started_by(&in_own_mounts()).run();
    assert_eq!(bare.assert_code(0).out(), "secret\n", "{}", bare.err());
    shown.worked_bare();

    for name in ["a:b", "a,b", "a\\b", "a\"b", "a\nb", " a ", "a:/b,upperdir=/tmp"] {
        let directory = tricky.join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("mine"), "lower").unwrap();
        let path = directory.display().to_string();
        let command = ["sh", "-c", r#"ls "$0"; echo upper > "$0/mine"; cat "$0/mine""#, &path];
        let output = world.sandbox_run(["--overlay", &path], command).run();
        assert_eq!(output.assert_code(0).out(), "mine\nupper\n", "{name:?}");
        assert_eq!(fs::read_to_string(directory.join("mine")).unwrap(), "lower", "{name:?}");
    }
    shown.held();
}

/// Proves: FS-5 upper-layer, FS-5 thrown-away
#[test]
fn f17_a_directory_deleted_in_an_overlay_stays_deleted() {
    let shown = Demonstration::of(
        "F17",
        "delete and make anew a directory in an overlay, and find its old files in it",
        "the overlay marks the new directory opaque",
    )
    .no_bare_run("there is no overlay without a sandbox");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    world.write_in_project("tree/old/file", "old");
    let script = "rm -r tree/old && mkdir tree/old && ls -A tree/old && rm -r tree && mkdir tree && ls -A tree";
    let output = world.sandbox_run(["--overlay", "tree"], ["sh", "-c", script]).run();
    // The overlay's own top is a mount and cannot be removed, its content can.
    assert_eq!(output.out(), "", "{}", output.err());
    assert!(world.project().join("tree/old/file").exists(), "the host keeps its own");
    shown.held();
}

/// Proves: AUD-1 no-follow
#[test]
fn f20_a_report_made_a_link_is_not_written_through() {
    let shown = Demonstration::of(
        "F20",
        "make the report that the host will write a link to another file",
        "the report's directory is opened at the start and the file written without following links",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let canary = world.write("outside/canary", UNTOUCHED);
    let link = ["ln", "-s", &canary.display().to_string(), "report"].map(str::to_owned);
    world.bare("ln").args(&link[1..]).run().assert_code(0);
    world.bare("sh").args(["-c", "echo report > report"]).run().assert_code(0);
    assert_ne!(fs::read_to_string(&canary).unwrap(), UNTOUCHED);
    shown.worked_bare();

    for planted_before in [true, false] {
        let world = World::new();
        let canary = world.write("outside/canary", UNTOUCHED);
        let report = world.project().join("report");
        if planted_before {
            symlink(&canary, &report).unwrap();
        }
        let script = r#"ln -sf "$0" report"#;
        let canary_path = canary.display().to_string();
        let command = ["run", "--report", "report", "--", "sh", "-c", script, &canary_path];
        let output = world.sandbox(command).run();
        let now = fs::read_to_string(&canary).unwrap();
        assert_eq!(now, UNTOUCHED, "{}", output.err());
    }
    shown.held();
}

/// Proves: FS-5 upper-layer, PROC-6 no-new-privs
#[test]
fn f16_a_set_user_id_file_copied_up_in_an_overlay_is_powerless() {
    let attempt = r#"touch "$0" && "$0" -u"#;
    palisade_testkit::Attack::new("F16", "run a set-user-id file that an overlay copied up")
        .by_design(
            "its owner does not exist in the user namespace, so nothing is copied in his name",
        )
        .only_as_root("nobody else can put another's set-user-id file there")
        .prepare(|world| {
            let tool = world.outside().join("tool").display().to_string();
            world.bare("cp").args(["/usr/bin/id", &tool]).run().assert_code(0);
            world.bare("chown").args(["1:1", &tool]).run().assert_code(0);
            world.bare("chmod").args(["4777", &tool]).run().assert_code(0);
        })
        .flags(|world| vec!["--overlay".into(), world.outside().display().to_string()])
        .command(move |world| {
            let tool = world.outside().join("tool").display().to_string();
            strings(&["sh", "-c", attempt, &tool])
        })
        .succeeded(|_, output| output.out().trim() == "1")
        .check();
}
