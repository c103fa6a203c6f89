//! The clients for Python and TypeScript with a real server, and the document that they follow.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_testkit::{
    Invocation, Output, World, node_packages, patiently, python_packages, sandbox_program,
    sdk_sources,
};
use serde_json::json;

use crate::service_support::Server;
use crate::sessions_support::Sessions;

const DOCUMENT: &str = include_str!("../../docs/openapi.json");
const PAGE: &str = include_str!("../../docs/sdk.md");

/// What runs the tests of a client, which start their own server.
fn client_tests(world: &World, program: &str) -> Invocation {
    let deadline = patiently(Duration::from_secs(240));
    world
        .bare(program)
        .deadline(deadline)
        .env("PALISADE_TEST_DIRECTORY", world.path())
        .env("PALISADE_TEST_PROJECT", world.project())
        .env("PALISADE_BIN", sandbox_program())
        .env("PALISADE_OPENAPI", world.write("openapi.json", DOCUMENT))
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

#[track_caller]
fn assert_passes(invocation: Invocation) -> Output {
    let output = invocation.run();
    assert_eq!(output.code(), 0, "{}\n{}", output.out(), output.err());
    output
}

/// A copy of the sources that can be written to, and is no part of a project.
fn copied(world: &World, language: &str) -> PathBuf {
    let copy = world.path().join(language);
    assert_passes(world.bare("cp").arg("-rL").arg(sdk_sources().join(language)).arg(&copy));
    copy
}

/// Built and installed from its directory, as `pip install ./sdk/python` does it.
fn installed_for_python(world: &World) -> PathBuf {
    let (sources, site) = (copied(world, "python"), world.path().join("site"));
    let pip = world.bare("/usr/bin/python3").env("PYTHONPATH", python_packages("sdk"));
    let pip = pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]);
    assert_passes(pip.args(["--no-build-isolation", "--target"]).arg(&site).arg(sources));
    assert!(site.join("palisade/py.typed").exists());
    site
}

fn search_path(directories: &[&Path]) -> String {
    let words: Vec<_> = directories.iter().map(|it| it.to_string_lossy()).collect();
    words.join(":")
}

/// Compiled, and where `import "palisade"` finds it from this world.
fn installed_for_node(world: &World) -> PathBuf {
    let sources = copied(world, "typescript");
    compile(world, &sources);
    let package = world.path().join("node_modules/palisade");
    fs::create_dir_all(&package).unwrap();
    for part in ["dist", "package.json"] {
        fs::rename(sources.join(part), package.join(part)).unwrap();
    }
    package
}

fn compile(world: &World, sources: &Path) {
    let modules = sources.join("node_modules");
    std::os::unix::fs::symlink(node_packages("sdk"), modules).unwrap();
    let compiler = node_packages("sdk").join("typescript/bin/tsc");
    assert_passes(world.bare("node").arg(compiler).arg("-p").arg(sources));
}

/// Proves: TOOL-1 clients-follow
#[test]
fn the_python_client_follows_the_document_and_is_typed() {
    let world = World::new();
    let sources = copied(&world, "python");
    let python = |path: &[&Path]| {
        client_tests(&world, "/usr/bin/python3").env("PYTHONPATH", search_path(path)).cwd(&sources)
    };
    let (tools, package) = (python_packages("sdk"), sources.join("src"));
    assert_passes(python(&[]).args(["tools/make_sync.py", "--check"]));
    let cache = world.path().join("mypy");
    let mypy = python(&[&tools]).args(["-m", "mypy", "--strict", "--cache-dir"]).arg(cache);
    assert_passes(mypy.env("MYPYPATH", &package).args(["src", "examples"]));
    assert_passes(python(&[&package, &tools]).arg("tests/test_openapi.py"));
    // A field that the client does not know is noticed, and so is a request.
    let wrong = DOCUMENT.replace("\"keptAs\"", "\"keptElsewhere\"");
    let wrong = world.write("wrong.json", wrong.replace("\"roll_back\"", "\"roll_forward\""));
    let noticed = python(&[&package, &tools]).env("PALISADE_OPENAPI", wrong);
    let noticed = noticed.arg("tests/test_openapi.py").run();
    assert_ne!(noticed.code(), 0);
    for word in ["keptElsewhere", "roll_forward"] {
        assert!(noticed.err().contains(word), "{}", noticed.err());
    }
}

/// Proves: TOOL-1 python, TOOL-1 http-repeated
#[test]
fn the_python_client_works_with_a_real_server() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let site = installed_for_python(&world);
    let tests = sdk_sources().join("python/tests");
    let path = search_path(&[&site, &tests, &python_packages("sdk")]);
    let python = client_tests(&world, "/usr/bin/python3").env("PYTHONPATH", path);
    assert_passes(python.args(["-m", "unittest", "test_sandbox", "test_async"]));
}

/// Proves: TOOL-1 clients-follow
#[test]
fn the_typescript_client_follows_the_document() {
    let world = World::new();
    let sources = copied(&world, "typescript");
    let check = |document: &Path| {
        let node = world.bare("node").arg(sources.join("test/openapi.mjs")).arg(document);
        node.arg(sources.join("src/openapi.check.ts")).run()
    };
    let wrong = world.write("wrong.json", DOCUMENT.replace("\"roll_back\"", "\"roll_forward\""));
    let wrong = check(&wrong);
    assert!(wrong.code() != 0 && wrong.err().contains("roll_forward"), "{}", wrong.err());
    check(&world.write("openapi.json", DOCUMENT)).assert_code(0);
    compile(&world, &sources);
    let wrong = world.write("wrong.json", DOCUMENT.replace("\"keptAs\"", "\"keptElsewhere\""));
    check(&wrong).assert_code(0);
    let compiler = node_packages("sdk").join("typescript/bin/tsc");
    let noticed = world.bare("node").arg(compiler).arg("-p").arg(&sources).run();
    assert_ne!(noticed.code(), 0);
    assert!(noticed.out().contains("openapi.check.ts"), "{}", noticed.out());
}

/// Proves: TOOL-1 typescript
#[test]
fn the_typescript_client_works_with_a_real_server() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let package = installed_for_node(&world);
    let tests = world.path().join("typescript/test/sandbox.test.mjs");
    let node = client_tests(&world, "node").env("PALISADE_SDK", package.join("dist/index.js"));
    // In one process, or the server would be ended with another one that ends first.
    assert_passes(node.args(["--test-reporter=tap"]).arg(tests));
}

/// The blocks of a page in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let mut found = Vec::new();
    let mut rest = PAGE;
    while let Some((_, after)) = rest.split_once(&opening) {
        let (block, after) = after.split_once("```").unwrap();
        found.push(block);
        rest = after;
    }
    found
}

/// Proves: TOOL-1 python, TOOL-1 typescript
#[test]
fn the_documented_examples_work() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let site = installed_for_python(&world);
    let path = search_path(&[&site, &python_packages("sdk")]);
    installed_for_node(&world);
    let server = Server::start(&world, &[]);
    let url = format!("unix:{}", server.socket().display());
    let run = |program: &str, script: &Path, words: &[&str]| {
        let run = world.bare(program).env("PALISADE_URL", &url).env("PYTHONPATH", &path);
        let output = assert_passes(run.arg(script).args(words));
        (output.out().into_owned(), output.err().into_owned())
    };
    let (python, node) = (blocks("python"), blocks("js"));
    assert_eq!((python.len(), node.len()), (3, 1));
    let said = |number: usize| {
        let script = world.write(format!("block{number}.py"), python[number]);
        run("/usr/bin/python3", &script, &[]).0
    };
    assert_eq!(said(0), "0 1 notes\n\ntwo\n\nadded more\nadded more/file\nadded notes\n");
    assert_eq!(fs::read_to_string(world.project().join("more/file")).unwrap(), "two\n");
    fs::remove_file(world.project().join("notes")).unwrap();
    // In one part or in two.
    assert_eq!(said(1).replace("stdout ", ""), "ready\nhello\n");
    let names = said(2);
    assert!(names.starts_with("done\n\n409 the name `work` is taken"), "{names}");
    let script = world.write("block.mjs", node[0]);
    let said = run("node", &script, &[]).0;
    assert!(said.starts_with("0 1 notes\n") && said.contains("+one\n"), "{said}");
    assert_eq!(fs::read_to_string(world.project().join("notes")).unwrap(), "one\n");

    world.write("outside/file", "asked for\n");
    let asks = format!("cat {}", world.outside().join("file").display());
    let touches = format!("echo x > {}", world.outside().join("file").display());
    let python = sdk_sources().join("python/examples");
    let node = world.path().join("typescript/examples");
    let examples = |name: &str, other: &str| {
        [("/usr/bin/python3", python.join(name)), ("node", node.join(other))]
    };
    for (program, example) in examples("tool_call.py", "tool-call.mjs") {
        let said = run(program, &example, &["echo $((6 * 7)); exit 3"]).0;
        assert_eq!(said, "42\nexit code 3\n");
    }
    for (program, example) in examples("transaction.py", "transaction.mjs") {
        let said = run(program, &example, &[]).0;
        assert!(said.contains("+HELLO\n"), "{said}");
        assert!(said.contains("applied: greeting.txt, loud.txt\n"), "{said}");
        for name in ["greeting.txt", "loud.txt"] {
            fs::remove_file(world.project().join(name)).unwrap();
        }
    }
    for (program, example) in examples("agent_loop.py", "agent-loop.mjs") {
        let (said, told) = run(program, &example, &[&asks, &touches]);
        assert!(said.contains(&format!("asked for\n[0] {asks}\n")), "{said}\n{told}");
        assert!(told.contains("allow: ") && told.contains("deny: "), "{told}");
        assert!(!said.contains(&format!("[0] {touches}")), "{said}");
    }
    assert_eq!(server.get("/v1/sandboxes").expect(200)["sandboxes"], json!([]));
}

/// Requests that somebody else's program makes up, by the document alone: none leads to an error of the server, and what is answered is what
/// the document says. Streams without an end, and the end of the sandbox, are left out.
/// Proves: TOOL-1 http-described
#[test]
fn the_document_and_the_server_agree() {
    const LEFT_OUT: [&str; 5] =
        ["follow_approvals", "follow_audit", "read_output", "watch_directory", "end_sandbox"];
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = world.sandbox(["serve", "--listen", &format!("tcp:127.0.0.1:{port}")]);
    let server = server.deadline(patiently(Duration::from_secs(280))).spawn();
    server.wait_for_stderr("the token is in");
    let address = format!("http://127.0.0.1:{port}");
    let token = world.home().join(".local/state/palisade/service/token");
    let token = fs::read_to_string(token).unwrap();
    let header = format!("Authorization: Bearer {}", token.trim());
    let post = |path: &str, body: serde_json::Value| {
        let curl = world.bare("curl").args(["-sS", "--fail-with-body", "-H", &header]);
        let curl = curl.args(["-H", "Content-Type: application/json", "-d"]).arg(body.to_string());
        let answer = assert_passes(curl.arg(format!("{address}/v1/sandboxes{path}")));
        serde_json::from_str::<serde_json::Value>(&answer.out()).unwrap()
    };
    let settings = json!({ "recording.terminal": "output" });
    let made = post("", json!({ "name": "w", "transaction": "overlay", "settings": settings }));
    // So that there is a command, its recording, and a checkpoint with this number.
    post("/w/checkpoints", json!({}));
    post("/w/commands", json!({ "argv": ["cat"], "keepStdinOpen": true }));
    let config = format!(
        "base-url = \"{address}\"\nrequest-timeout = 30\nheaders = {{ Authorization = \"Bearer {}\" }}\n\
         [parameters]\n\"path.id\" = \"w\"\n\"path.number\" = 1\n[generation]\nmax-examples = 8\ndeterministic = true\ndatabase = \"none\"\n\
         [checks]\nenabled = false\nnot_a_server_error = {{ enabled = true }}\n\
         status_code_conformance = {{ enabled = true }}\ncontent_type_conformance = {{ enabled = true }}\n\
         response_schema_conformance = {{ enabled = true }}\n\
         [[operations]]\ninclude-operation-id = \"read_recording\"\nparameters = {{ \"path.id\" = {}, \"query.command\" = 1 }}\n",
        token.trim(),
        made["id"],
    );
    let config = world.write("schemathesis.toml", config);
    let document = world.write("openapi.json", DOCUMENT);
    let start = "from schemathesis.cli import schemathesis; schemathesis()";
    let tool = client_tests(&world, "/usr/bin/python3").env("PYTHONPATH", python_packages("sdk"));
    let tool = tool.cwd(world.path()).args(["-c", start, "--config-file"]).arg(config);
    let tool = tool.arg("run").arg(document);
    let tool = tool.args(["--phases", "examples,coverage,fuzzing", "--no-color"]);
    let tool = LEFT_OUT.iter().fold(tool, |tool, name| tool.args(["--exclude-operation-id", name]));
    let output = assert_passes(tool.args(["--continue-on-failure"]));
    let described = DOCUMENT.matches("\"operationId\"").count();
    let tested = format!("Tested: {}\n", described - LEFT_OUT.len());
    assert!(output.out().contains(&tested), "{}", output.out());
    server.signal(rustix::process::Signal::TERM);
    server.wait().assert_code(0);
}
