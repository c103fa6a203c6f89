//! Everyday programs inside a sandbox: version control, interpreters, compilers, with no network.

use std::fs;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Output, World, rust_toolchain};

const NO_FLAGS: [&str; 0] = [];

fn shell(world: &World, script: &str) -> Output {
    world.sandbox_run(NO_FLAGS, ["bash", "-euc", script]).deadline(Duration::from_secs(120)).run()
}

/// Proves: FS-1 real-programs, FS-1 project-writable
#[test]
fn git_makes_commits_and_branches() {
    let world = World::new();
    let script = "git init --quiet --initial-branch=main
        git config user.name Test; git config user.email test@example.org
        echo one >file; git add file; git commit --quiet -m first
        git checkout --quiet -b side; echo two >>file; git commit --quiet -am second
        git status --short --branch; git log --format=%s";
    let output = shell(&world, script);
    output.assert_code(0);
    assert_eq!(output.out(), "## side\nsecond\nfirst\n");

    let outside = world.bare("git").args(["log", "--format=%s", "side"]).run();
    outside.assert_code(0);
    assert_eq!(outside.out(), "second\nfirst\n");
    world.bare("git").args(["fsck", "--strict"]).run().assert_code(0);
}

/// Semaphores live in /dev/shm, subprocesses in our pid namespace, byte code in the project.
///
/// Proves: FS-1 real-programs
#[test]
fn python_runs_modules_subprocesses_and_pools() {
    let world = World::new();
    world.write_in_project("helper.py", "def square(n): return n * n\n");
    let script = "import multiprocessing, sqlite3, subprocess, sys, tempfile, threading\n\
        from helper import square\n\
        if __name__ == '__main__':\n\
        \x20 with multiprocessing.Pool(2) as pool: print(pool.map(square, range(4)))\n\
        \x20 print(subprocess.check_output(['echo', 'child'], text=True).strip())\n\
        \x20 with tempfile.NamedTemporaryFile() as f: f.write(b'x'); f.flush()\n\
        \x20 print(sqlite3.connect('data.db').execute('select 1 + 1').fetchone()[0])\n";
    world.write_in_project("main.py", script);
    let output = world.sandbox_run(NO_FLAGS, ["/usr/bin/python3", "main.py"]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "[0, 1, 4, 9]\nchild\n2\n", "{}", output.err());
    assert!(world.project().join("__pycache__").is_dir());
}

/// Proves: FS-1 real-programs
#[test]
fn node_runs_timers_workers_and_children() {
    let world = World::new();
    let script = "const { Worker } = require('worker_threads');
        const { execFileSync } = require('child_process');
        require('fs').writeFileSync('made.txt', 'by node');
        console.log(execFileSync('echo', ['child']).toString().trim());
        const worker = new Worker(`require('worker_threads').parentPort.postMessage(6 * 7)`, { eval: true });
        worker.on('message', answer => setTimeout(() => console.log(answer), 1));";
    world.write_in_project("main.js", script);
    let output = world.sandbox_run(NO_FLAGS, ["node", "main.js"]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "child\n42\n", "{}", output.err());
    assert_eq!(fs::read_to_string(world.project().join("made.txt")).unwrap(), "by node");
}

/// Proves: FS-1 real-programs, FS-1 caches
#[test]
fn npm_starts_a_package_and_runs_its_script() {
    if !["/usr/bin/npm", "/usr/local/bin/npm"].iter().any(|path| Path::new(path).exists()) {
        println!("npm is not installed here; node is tested by itself");
        return;
    }
    let world = World::new();
    fs::create_dir_all(world.home().join(".npm/_cacache")).unwrap();
    let script = "npm init -y >/dev/null; npm pkg set scripts.hello='echo from a script'
        npm run --silent hello; npm cache verify >/dev/null";
    let output = shell(&world, script);
    output.assert_code(0);
    assert_eq!(output.out(), "from a script\n", "{}", output.err());
    assert!(world.project().join("package.json").is_file());
}

/// Proves: FS-1 real-programs
#[test]
fn gcc_compiles_and_the_program_runs() {
    let world = World::new();
    world.write_in_project(
        "main.c",
        "#include <stdio.h>\n#include <math.h>\n\
         int main(void) { printf(\"%.0f\\n\", sqrt(1764.0)); return 3; }\n",
    );
    let script = "gcc -O2 -o main main.c -lm; ./main || echo status $?
        gcc -o /tmp/main main.c -lm; /tmp/main || echo status $?";
    let output = shell(&world, script);
    output.assert_code(0);
    assert_eq!(output.out(), "42\nstatus 3\n42\nstatus 3\n", "{}", output.err());
}

/// A registry on the host's loopback fills the cache outside; inside neither it nor anything else
/// of the network can be reached, and the build works from the cache.
///
/// Proves: FS-1 real-programs, FS-1 caches, FS-1 ro-flag
#[test]
fn cargo_builds_from_a_warm_cache_without_the_network() {
    let world = World::new();
    let toolchain = rust_toolchain();
    let cargo = toolchain.join("bin/cargo");
    let cargo_home = world.home().join(".cargo");
    fs::create_dir_all(&cargo_home).unwrap();
    let path = format!("{}:/usr/bin:/bin", toolchain.join("bin").display());

    let registry = Registry::with_one_crate(&world, &cargo, &path);
    world.write_in_project(
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nanswer = { version = \"1\", registry = \"local\" }\n",
    );
    world.write_in_project("src/main.rs", "fn main() { println!(\"{}\", answer::answer()); }\n");
    // A build script is what a sandbox is for; it has to run.
    world.write_in_project(
        "build.rs",
        "fn main() { println!(\"cargo::rerun-if-changed=build.rs\"); }\n",
    );
    world.write(
        "home/.cargo/config.toml",
        format!(
            "[registries.local]\nindex = \"sparse+http://127.0.0.1:{}/index/\"\n",
            registry.port
        ),
    );
    let fetch = world.bare(&cargo).arg("fetch").env("PATH", &path).run();
    fetch.assert_code(0);
    drop(registry);

    let flags = ["--ro".as_ref(), toolchain.as_os_str()];
    let output = world
        .sandbox_run(
            flags,
            [cargo.as_os_str(), "run".as_ref(), "--quiet".as_ref(), "--offline".as_ref()],
        )
        .env("PATH", &path)
        .deadline(Duration::from_secs(150))
        .run();
    output.assert_code(0);
    assert_eq!(output.out(), "42\n", "{}", output.err());
    assert!(world.project().join("target/debug/app").is_file());
}

/// A sparse registry with the crate `answer`, served on the host's loopback until dropped.
struct Registry {
    port: u16,
    server: std::process::Child,
}

impl Registry {
    fn with_one_crate(world: &World, cargo: &Path, path: &str) -> Self {
        world.write(
            "registry/answer/Cargo.toml",
            "[package]\nname = \"answer\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
        );
        world.write("registry/answer/src/lib.rs", "pub fn answer() -> u32 { 42 }\n");
        let directory = world.path().join("registry");
        world
            .bare(cargo)
            .args(["package", "--no-verify", "--allow-dirty", "--quiet"])
            .cwd(directory.join("answer"))
            .env("PATH", path)
            .run()
            .assert_code(0);
        let packed = directory.join("answer/target/package/answer-1.0.0.crate");
        fs::create_dir_all(directory.join("files/answer/1.0.0")).unwrap();
        fs::copy(&packed, directory.join("files/answer/1.0.0/download")).unwrap();
        let sum = world.bare("sha256sum").arg(&packed).run();
        let sum = sum.out().split_whitespace().next().unwrap().to_owned();
        let (server, port) = serve(world, &directory);
        world.write(
            "registry/index/config.json",
            format!("{{\"dl\":\"http://127.0.0.1:{port}/files\"}}"),
        );
        world.write(
            "registry/index/an/sw/answer",
            format!(
                "{{\"name\":\"answer\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{sum}\",\
                 \"features\":{{}},\"yanked\":false}}\n"
            ),
        );
        Self { port, server }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

/// A web server on a port of the kernel's choosing, which its first line tells.
fn serve(world: &World, directory: &Path) -> (std::process::Child, u16) {
    use std::io::{BufRead, BufReader};
    let script = "import functools, http.server as h\n\
        s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n\
        print(s.server_port, flush=True)\ns.serve_forever()";
    let mut server = world
        .host_command("/usr/bin/python3".as_ref())
        .args(["-c", script])
        .current_dir(directory)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.trim().parse().unwrap())
}

/// Allows any tracer, as Yama's restricted mode asks of a program, and tells what that gave.
const DEBUGGEE: &str = "#include <stdio.h>\n#include <errno.h>\n#include <unistd.h>\n\
    #include <sys/prctl.h>\n\
    volatile int answer = 42;\n\
    int main(void) {\n\
      int set = prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);\n\
      printf(\"ptracer %d %d\\n%p\\n\", set, set ? errno : 0, (void *)&answer);\n\
      fflush(stdout);\n\
      for (;;) pause();\n\
    }\n";

const ATTACH: &str = "gcc -g -o debuggee debuggee.c
    exec 3< <(exec ./debuggee); pid=$!; read -r ptracer <&3; read -r address <&3
    echo $ptracer
    gdb -q -nx -batch -p $pid -ex 'print answer' 2>&1 | grep -E '^\\$1|ptrace:' || true
    /usr/bin/python3 read_memory.py $pid $address
    kill $pid";

/// process_vm_readv of four bytes, by number, with its errno told.
const READ_MEMORY: &str = "import ctypes, errno, sys\n\
    class IoVec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    value = ctypes.c_int()\n\
    here = IoVec(ctypes.addressof(value), 4)\n\
    there = IoVec(int(sys.argv[2], 16), 4)\n\
    got = libc.process_vm_readv(int(sys.argv[1]), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)\n\
    print('read', value.value if got == 4 else errno.errorcode[ctypes.get_errno()])\n";

fn debug_session(flags: &[&str]) -> Output {
    let world = World::new();
    world.write_in_project("debuggee.c", DEBUGGEE);
    world.write_in_project("read_memory.py", READ_MEMORY);
    let output =
        world.sandbox_run(flags, ["bash", "-euc", ATTACH]).deadline(Duration::from_secs(120)).run();
    output.assert_code(0);
    output
}

/// Proves: PROC-5 inside, PROC-5 process-vm, PROC-5 yama
#[test]
fn gdb_attaches_to_a_process_of_the_same_sandbox() {
    for flags in [&[][..], &["--level", "1"]] {
        let output = debug_session(flags);
        let text = output.out();
        let told: Vec<&str> = text.lines().collect();
        assert_eq!(told[1..], ["$1 = 42", "read 42"], "{text}{}", output.err());
        assert_eq!(told[0], yama_answer(), "PR_SET_PTRACER answers inside as it does outside");
    }
}

/// Proves: PROC-5 no-debug, PROC-5 process-vm
#[test]
fn without_debugging_nothing_is_traced_or_read() {
    let output = debug_session(&["--no-debug"]);
    let text = output.out();
    assert!(text.contains("ptrace: Operation not permitted"), "{text}{}", output.err());
    assert!(!text.contains("$1 = 42"), "{text}");
    assert!(text.lines().any(|line| line == "read EPERM"), "{text}");
}

/// What the same program is told without a sandbox: `EINVAL` on a kernel without Yama.
fn yama_answer() -> String {
    let world = World::new();
    world.write_in_project("debuggee.c", DEBUGGEE);
    let script = "gcc -o debuggee debuggee.c; exec 3< <(exec ./debuggee); read -r told <&3; kill $!; echo $told";
    let output = world.bare("bash").args(["-euc", script]).run();
    output.assert_code(0);
    output.out().trim().to_owned()
}
