//! The presets for languages: a package manager reaches the registry that it is configured to use, and no other host.

use palisade_testkit::rust_toolchain;
use serde_json::json;

use crate::egress_support::Net;

const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Also that no other host can be reached: one that the lab has, and that nothing names.
const OTHER: &str = "! curl -s -o /dev/null --max-time 10 https://web.example/";

/// Proves: POL-7 presets, NET-3 default-hosts
#[test]
fn npm_installs_from_the_registry_in_its_settings() {
    let net = Net::new();
    let pack = "mkdir -p package && echo '{\"name\":\"palisade-demo\",\"version\":\"1.0.0\"}' > package/package.json && \
        echo 'module.exports = 42' > package/index.js && tar czf \"$1\" package && rm -r package";
    let tarball = net.lab.page("packages.example", "palisade-demo-1.0.0.tgz", "");
    net.world.bare("sh").args(["-c", pack, "sh"]).arg(tarball).run().assert_code(0);
    let version = json!({
        "name": "palisade-demo", "version": "1.0.0",
        "dist": {"tarball": "https://packages.example/palisade-demo-1.0.0.tgz"},
    });
    let page = json!({
        "name": "palisade-demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version},
    });
    net.lab.page("packages.example", "palisade-demo", page.to_string());
    net.world.write_in_project("package.json", "{\"name\":\"mine\",\"version\":\"1.0.0\"}");
    net.world.write(
        "home/.npmrc",
        format!("registry=https://packages.example/\ncafile={CERTIFICATES}\nfetch-retries=0\n"),
    );
    let install =
        "npm install --no-audit --no-fund --no-update-notifier palisade-demo > log 2>&1 || cat log";
    let script = format!("{install}; node -p 'require(\"palisade-demo\")'; {OTHER}");
    let output = net.script(&["--preset", "node", "--on-ask", "deny"], &script);
    output.assert_code(0);
    assert_eq!(output.out(), "42\n", "{}", output.err());
}

/// Proves: POL-7 presets, NET-3 default-hosts
#[test]
fn pip_installs_into_an_environment_from_the_index_in_its_settings() {
    let net = Net::new();
    let make = "import zipfile, sys\n\
        with zipfile.ZipFile(sys.argv[1], 'w') as z:\n\
        \x20 z.writestr('palisade_demo.py', 'answer = 42\\n')\n\
        \x20 d = 'palisade_demo-1.0.dist-info/'\n\
        \x20 z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: palisade-demo\\nVersion: 1.0\\n')\n\
        \x20 z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20 z.writestr(d + 'RECORD', '')\n";
    let wheel = "palisade_demo-1.0-py3-none-any.whl";
    let file = net.lab.page("index.example", wheel, "");
    net.world.bare("/usr/bin/python3").args(["-c", make]).arg(file).run().assert_code(0);
    let page = format!("<a href=\"https://index.example/{wheel}\">{wheel}</a>");
    net.lab.page("index.example", "simple/palisade-demo/index.html", page);
    net.world.write(
        "home/.config/pip/pip.conf",
        format!("[global]\nindex-url = https://index.example/simple/\ncert = {CERTIFICATES}\nretries = 0\n"),
    );
    let script = format!(
        "/usr/bin/python3 -m venv --system-site-packages env && \
         env/bin/python -m pip install --quiet --disable-pip-version-check palisade-demo && \
         env/bin/python -c 'import palisade_demo; print(palisade_demo.answer)'; {OTHER}"
    );
    let output = net.script(&["--preset", "python", "--on-ask", "deny"], &script);
    output.assert_code(0);
    assert_eq!(output.out(), "42\n", "{}", output.err());
}

/// Proves: POL-7 presets, CARGO-1 registries, NET-3 default-hosts
#[test]
fn cargo_fetches_from_the_registry_that_replaces_its_own() {
    let net = Net::new();
    let pack = "mkdir -p demo-pkg-1.0.0/src && cd demo-pkg-1.0.0 && echo > src/lib.rs && \
        printf '[package]\\nname = \"demo-pkg\"\\nversion = \"1.0.0\"\\n' > Cargo.toml && cd .. && \
        tar czf \"$1\" demo-pkg-1.0.0 && rm -r demo-pkg-1.0.0 && sha256sum \"$1\" | cut -d' ' -f1";
    let file = net.lab.page("crates.example", "demo-pkg/1.0.0.crate", "");
    let packed = net.world.bare("sh").args(["-c", pack, "sh"]).arg(file).run();
    packed.assert_code(0);
    let checksum = packed.out().trim().to_owned();
    let settings = json!({"dl": "https://crates.example/{crate}/{version}.crate"});
    net.lab.page("crates.example", "config.json", settings.to_string());
    let entry = json!({
        "name": "demo-pkg", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {}, "yanked": false,
    });
    net.lab.page("crates.example", "de/mo/demo-pkg", format!("{entry}\n"));
    net.world.write_in_project("src/lib.rs", "");
    net.world.write_in_project(
        "Cargo.toml",
        "[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\ndemo-pkg = \"1\"\n",
    );
    net.world.write(
        "home/.cargo/config.toml",
        format!(
            "[source.crates-io]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = \"sparse+https://crates.example/\"\n\
             [http]\ncainfo = \"{CERTIFICATES}\"\n[net]\nretry = 0\n"
        ),
    );
    std::fs::create_dir_all(net.world.home().join(".cargo/registry")).unwrap();
    let toolchain = rust_toolchain();
    let toolchains = net.world.home().join(".rustup/toolchains");
    std::fs::create_dir_all(&toolchains).unwrap();
    std::os::unix::fs::symlink(&toolchain, toolchains.join("here")).unwrap();
    let cargo = toolchain.join("bin/cargo");
    let (toolchain, cargo) = (toolchain.to_str().unwrap(), cargo.to_str().unwrap());
    let script = format!("PATH={toolchain}/bin:$PATH cargo fetch --quiet; {OTHER}");
    let flags = ["--preset", "rust", "--on-ask", "deny", "--ro", toolchain];
    net.script(&flags, &script).assert_code(0);
    assert!(net.world.project().join("Cargo.lock").exists());
    // The runner, whose project is read-only, reaches the same registry. What the first run downloaded is kept for
    // this project, so it is thrown away before.
    net.sandbox(&["cache", "clear"]).assert_code(0);
    let path = format!("PATH={toolchain}/bin:/usr/bin:/bin");
    let flags = ["--preset", "cargo", "--ro", toolchain, "--env", &path];
    let fetched = net.run(&flags, &[cargo, "fetch", "--locked"]);
    fetched.assert_code(0);
    assert!(fetched.err().contains("Downloaded demo-pkg"), "{}", fetched.err());
}
