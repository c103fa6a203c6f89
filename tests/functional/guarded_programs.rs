//! Programs that write, in a project whose protected names are held: each does its work, and nothing is left on the
//! host that was only put there to protect (FS-9).

use std::fs;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Output, World};

use crate::inside::tree;

const TIMEOUT: Duration = Duration::from_secs(180);

fn run(world: &World, flags: &[&str], script: &str) -> Output {
    world.sandbox_run(flags, ["bash", "-euc", script]).deadline(TIMEOUT).run()
}

/// The script ends well, and nothing was refused to it.
#[track_caller]
fn works(world: &World, flags: &[&str], script: &str) -> String {
    let output = run(world, flags, script);
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    assert!(report.get("protectedWrites").is_none(), "{}", report["protectedWrites"]);
    output.out().into_owned()
}

/// Whether the machine has it; what is not there cannot be tested.
fn has(program: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists());
    if !found {
        println!("{program} is not installed here");
    }
    found
}

/// A repository with a commit, another one to push to and a third one to fetch from.
fn repositories() -> World {
    let world = World::new();
    world.git_init();
    let script = "echo a > a; git add a; git commit --quiet -m one
        git init --quiet --bare ../remote.git
        git init --quiet --initial-branch=main ../library; cd ../library
        git config user.name Test; git config user.email test@example.org
        echo l > l; git add l; git commit --quiet -m library";
    world.bare("bash").args(["-euc", script]).run().assert_code(0);
    world
}

const REPOSITORIES: [&str; 4] = ["--rw", "~/remote.git", "--ro", "~/library"];

/// Proves: FS-9 git-works, FS-9 programs
#[test]
fn git_commits_branches_pushes_and_rewrites() {
    let world = repositories();
    let log = works(
        &world,
        &REPOSITORIES,
        "git checkout --quiet -b side; echo b > b; git add b; git commit --quiet -m two
         git remote add origin ~/remote.git; git push --quiet -u origin side; git fetch --quiet
         echo more >> a; git stash --quiet; git stash pop --quiet; git commit --quiet -am three
         git checkout --quiet main; echo c > c; git add c; git commit --quiet -m four
         git rebase --quiet main side; git checkout --quiet main; git merge --quiet side
         git tag v1; git branch -m side renamed; git branch -D renamed >/dev/null
         git gc --quiet; git repack -qad; git fsck --strict --no-dangling; git log --format=%s",
    );
    assert_eq!(log, "three\ntwo\nfour\none\n");
    let remote = world.bare("git").args(["config", "branch.side.remote"]).run();
    assert_eq!(remote.code(), 1, "the branch and its settings are gone");
    let url = world.bare("git").args(["config", "remote.origin.url"]).run();
    assert!(url.out().trim().ends_with("/remote.git"), "{}", url.out());
}

/// Proves: FS-9 git-works, FS-9 programs
#[test]
fn git_clones_starts_and_has_worktrees_below_the_project() {
    let world = repositories();
    works(
        &world,
        &REPOSITORIES,
        "git clone --quiet ~/library sub/clone; git -C sub/clone checkout --quiet -b new
         git init --quiet sub/started; cd sub/started
         git config user.name Test; git config user.email test@example.org
         echo x > x; git add x; git commit --quiet -m x; cd ../..
         git init --quiet --bare sub/bare.git; git clone --quiet sub/bare.git sub/from-bare 2>/dev/null
         git worktree add --quiet -b tree sub/tree; cd sub/tree
         echo t > t; git add t; git commit --quiet -m t; cd ../..
         git worktree remove sub/tree; git worktree prune",
    );
    let samples = world.project().join("sub/started/.git/hooks/pre-commit.sample");
    assert!(samples.exists() || !Path::new("/usr/share/git-core/templates/hooks").exists());
    for place in ["sub/clone", "sub/started"] {
        world.bare("git").args(["-C", place, "fsck", "--strict"]).run().assert_code(0);
    }
}

/// `core.worktree` leads git to another directory; in the git directory of a submodule, to the submodule's own
/// files, and nowhere else.
///
/// Proves: FS-9 git-keys, FS-9 git-works
#[test]
fn git_adds_a_submodule() {
    let world = repositories();
    works(
        &world,
        &REPOSITORIES,
        "git -c protocol.file.allow=always submodule --quiet add ~/library module
         git commit --quiet -m module",
    );
    works(
        &world,
        &REPOSITORIES,
        "git -c protocol.file.allow=always submodule --quiet update --init; cd module
         git config user.name Test; git config user.email test@example.org
         echo m > m; git add m; git commit --quiet -m m; git checkout --quiet -b other",
    );
    let world = repositories();
    let refused = run(&world, &REPOSITORIES, "git config core.worktree ../..");
    assert_ne!(refused.code(), 0);
    assert!(refused.err().contains("core.worktree"), "{}", refused.err());
    assert!(refused.err().contains("--allow-write .git/config"), "{}", refused.err());
}

/// Names that count at the top of a project are free in what a package brings.
///
/// Proves: FS-9 programs
#[test]
fn npm_installs_a_package_with_settings_of_its_own() {
    if !has("npm") {
        return;
    }
    let world = World::new();
    world.git_init();
    let pack = "mkdir -p t/package/.vscode; cd t/package; echo '{\"name\":\"p\",\"version\":\"1.0.0\"}' > package.json
        echo '{}' > .vscode/settings.json; echo 'a=b' > .npmrc; echo 'module.exports = 42' > index.js
        cd ..; tar -czf ../p.tgz package; cd ..; rm -r t";
    world.bare("bash").args(["-euc", pack]).run().assert_code(0);
    let told = works(
        &world,
        &[],
        "npm init -y >/dev/null; npm install --no-audit --no-fund --offline --silent ./p.tgz
         cat node_modules/p/.vscode/settings.json; node -p 'require(\"p\")'",
    );
    assert_eq!(told, "{}\n42\n");
}

/// Proves: FS-9 programs
#[test]
fn python_makes_an_environment_and_installs_into_it() {
    let world = World::new();
    let wheel = "import zipfile\n\
        z = zipfile.ZipFile('hello-1.0-py3-none-any.whl', 'w')\n\
        z.writestr('hello.py', 'answer = 42\\n')\n\
        z.writestr('hello-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n')\n\
        z.writestr('hello-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        z.writestr('hello-1.0.dist-info/RECORD', '')\nz.close()\n";
    world.bare("/usr/bin/python3").args(["-c", wheel]).run().assert_code(0);
    let can_make = world.bare("/usr/bin/python3").args(["-c", "import ensurepip, venv"]).run();
    if can_make.code() != 0 {
        println!("this Python makes no environments with pip in them");
        return;
    }
    let told = works(
        &world,
        &[],
        "/usr/bin/python3 -m venv made; . made/bin/activate
         pip install --quiet --no-index --disable-pip-version-check ./hello-1.0-py3-none-any.whl
         python -c 'import hello; print(hello.answer)'",
    );
    assert_eq!(told, "42\n");
}

/// Proves: FS-9 path-files, FS-9 programs
#[test]
fn an_environment_that_was_there_gets_packages_and_editable_installs() {
    let world = World::new();
    let packages = "api/.venv/lib/python3.12/site-packages";
    world.write_in_project("api/.venv/pyvenv.cfg", "home = /usr/bin\n");
    world.write_in_project(format!("{packages}/_virtualenv.pth"), "import _virtualenv\n");
    works(
        &world,
        &[],
        "cd api/.venv/lib/python3.12/site-packages; mkdir hello; echo x > hello/__init__.py
         echo /project/src > __editable__.pth; echo /project/lib > tmp; mv tmp other.pth
         echo /project/other > third; ln third third.pth; rm third
         cp -p _virtualenv.pth again; cat again >> _virtualenv.pth",
    );
    let told = |name: &str| fs::read_to_string(world.project().join(packages).join(name)).unwrap();
    assert_eq!(told("__editable__.pth"), "/project/src\n");
    assert_eq!(told("other.pth"), "/project/lib\n");
    assert_eq!(told("third.pth"), "/project/other\n");
}

/// Proves: FS-9 moved-git-directories, FS-9 programs
#[test]
fn a_plain_git_directory_is_moved_as_before() {
    let world = World::new();
    world.git_init();
    works(
        &world,
        &[],
        "mkdir sub; mv .git sub/.git; cd sub; git status -s; mv .git store; mv store .git",
    );
    assert!(world.project().join("sub/.git/HEAD").is_file());
}

/// Proves: FS-9 programs
#[test]
fn archives_bring_links_and_pipes() {
    let world = World::new();
    works(
        &world,
        &[],
        "mkdir d; cd d; echo a > a; ln a b; ln -s a c; mkfifo f; mkdir -m 700 e; echo x > e/x; cd ..
         tar cf d.tar d; rm -r d; tar xf d.tar
         [ d/a -ef d/b ]; [ -L d/c ]; [ -p d/f ]; [ \"$(stat -c %a d/e)\" = 700 ]
         cp -a d copied; mv copied moved; rm -r moved",
    );
    if has("zip") && has("unzip") {
        works(
            &world,
            &[],
            "rm d/f; zip -qr d.zip d; mkdir out; cd out; unzip -q ../d.zip; cat d/e/x",
        );
    }
    if has("rsync") {
        works(&world, &[], "rsync -a d/ synced/; rsync -a --delete d/ synced/; cat synced/e/x");
    }
}

/// Proves: FS-9 programs
#[test]
fn editors_and_filters_save_in_their_many_ways() {
    let world = World::new();
    let told = works(
        &world,
        &[],
        r#"echo one > f; sed -i.old s/one/two/ f; cat f
        printf -- '--- f\n+++ f\n@@ -1 +1 @@\n-two\n+three\n' | patch -s f; cat f
        perl -i -pe s/three/four/ f; cat f
        vim -es -u NONE -c 's/four/five/' -c wq f </dev/null; cat f
        vim -es -u NONE -c 'set backup backupcopy=yes' -c 's/five/six/' -c wq f </dev/null; cat f
        truncate -s 3 f; cat f; sort -o f f; install -m 755 f g; ln -sf f link; ln -f f hard
        dd if=/dev/zero of=zeros bs=1k count=3 status=none; split -b 1k zeros; mktemp -p . >/dev/null"#,
    );
    assert_eq!(told, "two\nthree\nfour\nfive\nsix\nsix");
    if has("sqlite3") {
        let script = "sqlite3 data.db 'pragma journal_mode=wal; create table t(x); insert into t values(7); \
                      select x from t; vacuum;'";
        assert_eq!(works(&world, &[], script), "wal\n7\n");
    }
}

/// Proves: FS-9 programs
#[test]
fn make_and_gcc_build() {
    if !has("make") {
        return;
    }
    let world = World::new();
    world.write_in_project("Makefile", "x: x.o\n\tgcc -o x x.o\nx.o: x.c\n\tgcc -c -o x.o x.c\n");
    world.write_in_project("x.c", "int main(void) { return 5; }\n");
    works(&world, &[], "make -s; ./x || [ $? = 5 ]; make -s; ar rcs x.a x.o; strip x");
}

/// Proves: FS-9 no-placeholder
#[test]
fn nothing_is_left_that_was_only_to_protect() {
    let world = repositories();
    run(&world, &[], "true").assert_code(0);
    let before = tree(&world.project());
    let tries = "echo x > .envrc; mkdir .vscode; echo x > .git/hooks/pre-commit; git config core.pager evil
        echo x > .git/config; ln -s x .mcp.json; mkdir -p sub/.git; rmdir sub/.git sub; rm -f .git/config.lock; true";
    world.sandbox_run([""; 0], ["sh", "-c", tries]).run().assert_code(0);
    assert_eq!(tree(&world.project()), before);
}

/// Proves: FS-9 allow-write
#[test]
fn allow_write_opens_one_name_and_no_other() {
    let world = repositories();
    let script =
        "echo x > .git/hooks/pre-commit; git config core.pager less; echo x > .envrc; true";
    world.sandbox_run(["--allow-write", ".git/hooks"], ["sh", "-c", script]).run().assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join(".git/hooks/pre-commit")).unwrap(), "x\n");
    assert!(!world.project().join(".envrc").exists());
    let pager = world.bare("git").args(["config", "core.pager"]).run();
    assert_eq!(pager.out(), "");
    world.sandbox_run(["--allow-write", ".git/config"], ["sh", "-c", script]).run().assert_code(0);
    let pager = world.bare("git").args(["config", "core.pager"]).run();
    assert_eq!(pager.out(), "less\n");
}
