//! Which paths are there, at which places, and what may be done with them (FS-1).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use palisade_testkit::World;

use crate::inside::inside;

/// Proves: FS-1 same-paths, POL-1 host-view
#[test]
fn the_usual_places_hold_the_usual_files() {
    let world = World::new();
    let script = "pwd; cat /etc/os-release; readlink /bin; cksum < /usr/bin/env";
    let outside = world.bare("sh").args(["-c", script]).run();
    let output = inside(&world, &[], script);
    output.assert_code(0);
    assert_eq!(output.out(), outside.out());
}

/// Proves: FS-1 read-only
#[test]
fn what_was_not_granted_is_read_only() {
    let world = World::new();
    let script = "for place in / /usr /usr/bin /etc /opt /home; do \
                  [ -d $place ] && touch $place/.palisade-written 2>&1; done; true";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    let complaints = output.out().lines().filter(|line| line.contains("Read-only")).count();
    assert_eq!(complaints, output.out().lines().count(), "{}", output.out());
    assert!(complaints >= 4, "{}", output.out());
    assert!(!Path::new("/usr/.palisade-written").exists());
}

/// Proves: FS-1 mount-flags
#[test]
fn no_mount_honours_setuid_files_or_devices_but_our_own() {
    let world = World::new();
    world.write("home/.cargo/registry/index", "");
    let output = inside(&world, &[], "cat /proc/self/mountinfo");
    output.assert_code(0);
    let mounts: Vec<Vec<String>> =
        output.out().lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    for mount in &mounts {
        let (place, options) = (mount[4].as_str(), &mount[5]);
        let has = |option: &str| options.split(',').any(|found| found == option);
        assert!(has("nosuid"), "{place} {options}");
        // Nodes of the host's device file system, and terminals, are devices by nature.
        let is_device = mount[3..].iter().any(|field| field == "devtmpfs" || field == "devpts");
        assert!(has("nodev") || is_device, "{place} {options}");
        let data_only = place.starts_with("/etc")
            || place.starts_with("/proc")
            || place == "/dev"
            || place == "/run"
            || place.ends_with("/.cargo/registry");
        assert!(has("noexec") || !data_only, "{place} {options}");
    }
    assert!(mounts.iter().any(|mount| mount[4].ends_with("/.cargo/registry")));
}

/// Proves: FS-1 project-writable
#[test]
fn the_project_is_the_git_root_and_can_be_written() {
    let world = World::new();
    world.git_init();
    let below = world.project().join("source/deep");
    fs::create_dir_all(&below).unwrap();
    let script =
        "echo made > new && echo top > ../../top && mkdir made-dir && rm -r made-dir && pwd";
    let output = world.sandbox_run([""; 0], ["sh", "-c", script]).cwd(&below).run();
    output.assert_code(0);
    assert_eq!(output.out().trim(), below.to_str().unwrap());
    assert_eq!(fs::read_to_string(below.join("new")).unwrap(), "made\n");
    assert_eq!(fs::read_to_string(world.project().join("top")).unwrap(), "top\n");
}

/// Proves: FS-1 rw-flag, FS-1 rw-created, FS-1 ro-flag
#[test]
fn rw_grants_writing_and_ro_reading() {
    let world = World::new();
    world.write("outside/data/read", "content\n");
    world.write("outside/notes", "");
    let made = world.outside().join("made/below");
    let path = |name: &str| world.outside().join(name).display().to_string();
    let script = format!(
        "cat {data}/read; touch {data}/x 2>/dev/null && echo wrote-ro; \
         echo a > {made}/file && echo b > {notes} && echo c > ~/tilde/file",
        data = path("data"),
        made = made.display(),
        notes = path("notes"),
    );
    let made_flag = made.to_str().unwrap();
    let flags =
        ["--ro", &path("data"), "--rw", made_flag, "--rw", &path("notes"), "--rw", "~/tilde"];
    let output = inside(&world, &flags, &script);
    output.assert_code(0);
    assert_eq!(output.out(), "content\n");
    assert_eq!(fs::read_to_string(made.join("file")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(path("notes")).unwrap(), "b\n");
    assert_eq!(fs::read_to_string(world.home().join("tilde/file")).unwrap(), "c\n");
}

/// Proves: FS-1 blacklist
#[test]
fn blacklist_hides_a_path_by_its_name_and_by_a_link() {
    let world = World::new();
    world.write("outside/data/open", "open\n");
    world.write("outside/data/closed", "closed\n");
    symlink(world.outside().join("data/closed"), world.outside().join("data/link")).unwrap();
    let data = world.outside().join("data");
    let (data, closed) = (data.to_str().unwrap(), data.join("closed"));
    let flags = ["--ro", data, "--blacklist", closed.to_str().unwrap()];
    let output = inside(&world, &flags, &format!("cd {data}; cat open closed link"));
    output.assert_code(1);
    assert_eq!(output.out(), "open\n");
    let without = inside(&world, &flags[..2], &format!("cd {data}; cat open closed link"));
    assert_eq!(without.out(), "open\nclosed\nclosed\n");
}

/// Proves: FS-1 blacklist
#[test]
fn what_cannot_be_hidden_for_sure_is_not_granted_for_writing() {
    let world = World::new();
    world.write_in_project("keys/secret", "");
    let refused = inside(&world, &["--rw", ".", "--blacklist", "keys"], "true");
    refused.assert_code(126);
    assert!(refused.err().contains("keys is inside the writable"), "{}", refused.err());
    let script = "ls -A; touch new 2>/dev/null && echo wrote; true";
    let read_only = inside(&world, &["--blacklist", "keys"], script);
    read_only.assert_code(0);
    assert_eq!(read_only.out(), "");
    assert!(read_only.err().contains("is read-only"), "{}", read_only.err());
}

/// Proves: FS-1 toolchains
#[test]
fn toolchains_in_the_home_directory_run_and_stay_as_they_are() {
    let world = World::new();
    let tools =
        ["home/.cargo/bin/tool", "home/.rustup/toolchains/x/bin/rustc", "home/.pyenv/shims/snake"];
    for tool in tools {
        let path = world.write(tool, format!("#!/bin/sh\necho {tool}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = "export PATH=$HOME/.cargo/bin:$PATH; tool; \
                  ~/.rustup/toolchains/x/bin/rustc; ~/.pyenv/shims/snake; \
                  for tool in ~/.cargo/bin/tool ~/.cargo/bin/new ~/.rustup/new; do \
                  sh -c \"echo planted > $tool\" 2>/dev/null && echo wrote $tool; done; true";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    assert_eq!(output.out(), tools.map(|tool| format!("{tool}\n")).concat());
}

/// Proves: FS-1 caches, FS-1 cache-parts, FS-1 private-home
#[test]
fn caches_are_writable_and_nothing_beside_them() {
    let world = World::new();
    let caches =
        [".cargo/registry", ".cargo/git", ".cache/go-build", ".cache/pip", ".npm/_cacache"];
    let beside = [".cargo/bin", ".cargo", ".npm", ".npm/_npx", ".cache", ".config", ""];
    for directory in caches.iter().chain(&beside) {
        fs::create_dir_all(world.home().join(directory)).unwrap();
    }
    world.write("home/.cargo/credentials.toml", "token = \"hidden\"");
    world.write("home/.cargo/config.toml", "[build]\n");
    let script = format!(
        "cd ~; for place in {} {}; do (echo x > ./$place/written) 2>/dev/null; done; \
         cat .cargo/config.toml; cat .cargo/credentials.toml 2>/dev/null; \
         echo x >> .cargo/config.toml && cat .cargo/config.toml",
        caches.join(" "),
        beside.join(" "),
    );
    let output = inside(&world, &[], &script);
    output.assert_code(0);
    // Settings are copies of the run's own.
    assert_eq!(output.out(), "[build]\n[build]\nx\n");
    assert_eq!(fs::read_to_string(world.home().join(".cargo/config.toml")).unwrap(), "[build]\n");
    // Kept for later sandboxes of the project, and nobody else.
    for cache in caches {
        assert!(!world.home().join(cache).join("written").exists(), "{cache}");
    }
    let script = format!("cd ~; for place in {}; do cat $place/written; done", caches.join(" "));
    assert_eq!(inside(&world, &[], &script).assert_code(0).out(), "x\n".repeat(caches.len()));
    for place in beside {
        assert!(!world.home().join(place).join("written").exists(), "{place}");
    }
}

/// Proves: FS-1 private-home
#[test]
fn what_is_written_to_the_rest_of_the_home_directory_is_thrown_away() {
    let world = World::new();
    world.write("home/.config/tool/settings", "mine\n");
    let script = "mkdir -p ~/.config/tool && echo theirs > ~/.config/tool/settings && \
                  cat ~/.config/tool/settings";
    let first = inside(&world, &[], script);
    assert_eq!(first.assert_code(0).out(), "theirs\n");
    let settings = world.home().join(".config/tool/settings");
    assert_eq!(fs::read_to_string(settings).unwrap(), "mine\n");
    assert_eq!(inside(&world, &[], "ls -A ~/.config 2>/dev/null; true").out(), "");
}

/// Proves: FS-1 mount-flags
#[test]
fn nothing_is_executed_from_a_cache_of_sources() {
    let world = World::new();
    let script_in_cache = world.write("home/.cargo/registry/run", "#!/bin/sh\necho ran\n");
    fs::set_permissions(&script_in_cache, fs::Permissions::from_mode(0o755)).unwrap();
    inside(&world, &[], "~/.cargo/registry/run").assert_code(126);
    assert_eq!(world.bare(&script_in_cache).run().out(), "ran\n");
}

/// Proves: FS-1 same-paths
#[test]
fn a_home_and_a_project_behind_links_keep_their_names() {
    let world = World::new();
    world.write("real-home/work/file", "content\n");
    world.write("real-home/.cargo/bin/tool", "#!/bin/sh\necho tool\n");
    let tool = world.path().join("real-home/.cargo/bin/tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let home = world.path().join("linked-home");
    symlink("real-home", &home).unwrap();
    symlink(world.path().join("real-home/work"), world.path().join("linked-work")).unwrap();
    let linked_work = world.path().join("linked-work");
    let script = format!(
        "cat file && echo new > {0}/new && cat {0}/file && {1}/.cargo/bin/tool",
        linked_work.display(),
        home.display(),
    );
    let output = world
        .sandbox_run([""; 0], ["sh", "-c", &script])
        .env("HOME", &home)
        .env("PWD", &linked_work)
        .cwd(&linked_work)
        .run();
    output.assert_code(0);
    assert_eq!(output.out(), "content\ncontent\ntool\n");
    assert!(world.path().join("real-home/work/new").exists());
}

/// Proves: FS-1 project-writable, FS-7 private-tmp
#[test]
fn a_project_below_tmp_is_there_and_the_rest_of_tmp_is_not() {
    let world = World::new();
    let elsewhere = tempfile_below("/tmp");
    let project = elsewhere.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(elsewhere.path().join("beside"), "").unwrap();
    let script = "echo made > made; ls ..; ls /tmp | wc -l; echo own > /tmp/own; cat /tmp/own";
    let output = world.sandbox_run([""; 0], ["sh", "-c", script]).cwd(&project).run();
    output.assert_code(0);
    assert_eq!(output.out(), "project\n1\nown\n");
    assert_eq!(fs::read_to_string(project.join("made")).unwrap(), "made\n");
    assert!(!Path::new("/tmp/own").exists());
}

/// Proves: FS-1 project-writable
#[test]
fn the_home_directory_is_nobodys_project() {
    let world = World::new();
    world.write("home/letter", "private\n");
    world.write("home/.git/config", "");
    let script = "pwd; cat letter 2>/dev/null; ls -A; touch new";
    let output = world.sandbox_run([""; 0], ["sh", "-c", script]).cwd(world.home()).run();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{}\n", world.home().display()));
    assert!(!world.home().join("new").exists());
    assert!(output.err().contains("not granted as the project"), "{}", output.err());
}

/// Proves: FS-1 project-writable
#[test]
fn the_root_directory_is_nobodys_project() {
    let world = World::new();
    let script = "pwd; touch /new 2>/dev/null && echo wrote; true";
    let output = world.sandbox_run([""; 0], ["sh", "-c", script]).cwd("/").run();
    output.assert_code(0);
    assert_eq!(output.out(), "/\n");
    assert!(output.err().contains("not granted as the project"), "{}", output.err());
}

/// Proves: POL-1 minimal-view, POL-1 aliases
#[test]
fn the_minimal_view_has_the_project_at_workspace_and_no_home() {
    let world = World::new();
    world.git_init();
    world.write_in_project("source/file", "content\n");
    world.write("home/.cargo/bin/tool", "");
    for flag in [["--view", "minimal"], ["--level", "container"], ["--level", "nsjail"]] {
        let script =
            format!("pwd; cat file; echo made > made; ls -A ~; ls -d {}", world.home().display());
        let source = world.project().join("source");
        let output = world.sandbox_run(flag, ["sh", "-c", &script]).cwd(&source).run();
        assert_eq!(output.out(), "/workspace/source\ncontent\n", "{flag:?} {}", output.err());
        assert!(source.join("made").exists());
        fs::remove_file(source.join("made")).unwrap();
    }
}

fn tempfile_below(place: &str) -> tempfile::TempDir {
    tempfile::Builder::new().prefix("palisade-project-").tempdir_in(place).unwrap()
}
