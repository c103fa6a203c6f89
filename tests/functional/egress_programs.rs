//! Real programs fetch real things by the way out: from a git server, an index of each kind, over TLS that
//! nobody opens (NET-5). Everything they fetch was made by the test.

use std::path::Path;

use palisade_testkit::{Output, Part, rust_toolchain};
use serde_json::json;

use crate::egress_support::Net;

/// A repository at `https://git.example/git/demo.git`, and by ssh at its path.
fn repository(net: &Net) -> String {
    let bare = net.lab.path().join("git/demo.git");
    let git = |directory: &Path, arguments: &[&str]| {
        net.world.bare("git").cwd(directory).args(arguments).run().assert_code(0);
    };
    let work = net.lab.path().join("work");
    for directory in [&bare, &work] {
        std::fs::create_dir_all(directory).unwrap();
    }
    git(&bare, &["init", "--quiet", "--bare", "--initial-branch=main"]);
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(work.join("file"), "from afar\n").unwrap();
    git(&work, &["add", "file"]);
    let author = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
    git(&work, &[&author[..], &["commit", "--quiet", "-m", "one"]].concat());
    git(&work, &["push", "--quiet", bare.to_str().unwrap(), "main"]);
    bare.to_str().unwrap().to_owned()
}

#[track_caller]
fn assert_holds(net: &Net, file: &str, text: &str, output: &Output) {
    output.assert_code(0);
    let path = net.world.project().join(file);
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found.contains(text), "{}: {found}", path.display());
}

/// Proves: NET-5 variables, NET-5 ignoring
#[test]
fn git_clones_over_https_with_and_without_the_proxy() {
    let net = Net::new();
    repository(&net);
    let output = net.script(
        &["--allow-host", "git.example"],
        "git clone --quiet https://git.example/git/demo.git one && \
         unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy && \
         git clone --quiet https://git.example/git/demo.git two",
    );
    assert_holds(&net, "one/file", "from afar", &output);
    assert_holds(&net, "two/file", "from afar", &output);
}

/// Proves: NET-5 ignoring
#[test]
fn git_clones_over_ssh() {
    let net = Net::with(&[Part::Ssh]);
    let path = repository(&net);
    let key = std::fs::read(net.lab.ssh_key()).unwrap();
    let key = net.world.write_in_project("key", key);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let user = net.world.bare("id").arg("-un").run();
    let user = user.out();
    let url = format!("ssh://{}@ssh.example{path}", user.trim());
    let ssh = "ssh -i key -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
               -o UserKnownHostsFile=hosts -o BatchMode=yes -o ConnectTimeout=10";
    let script = format!("GIT_SSH_COMMAND='{ssh}' git clone --quiet {url} cloned");
    let output = net.script(&["--allow-host", "ssh.example:22"], &script);
    assert_holds(&net, "cloned/file", "from afar", &output);
    let refused = net.script(&["--allow-host", "ssh.example"], &script.replace("cloned", "again"));
    assert_ne!(refused.code(), 0, "port 22 was not among the allowed ones");
}

/// A wheel and an index that names it, on another host.
fn python_index(net: &Net) {
    let make = "import zipfile, sys\n\
        with zipfile.ZipFile(sys.argv[1], 'w') as z:\n\
        \x20 z.writestr('palisade_demo.py', 'answer = 42\\n')\n\
        \x20 d = 'palisade_demo-1.0.dist-info/'\n\
        \x20 z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: palisade-demo\\nVersion: 1.0\\n')\n\
        \x20 z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20 z.writestr(d + 'RECORD', '')\n";
    let wheel = "palisade_demo-1.0-py3-none-any.whl";
    let path = net.lab.page("files.example", wheel, "");
    net.world.bare("/usr/bin/python3").args(["-c", make]).arg(path).run().assert_code(0);
    let page = format!("<a href=\"https://files.example/{wheel}\">{wheel}</a>");
    net.lab.page("index.example", "simple/palisade-demo/index.html", page);
}

const PIP: &str = "/usr/bin/pip3 download --quiet --disable-pip-version-check --no-cache-dir --timeout 10 --retries 0 \
    --cert /etc/ssl/certs/ca-certificates.crt --index-url https://index.example/simple/ palisade-demo";

/// Proves: NET-3 default-hosts, NET-5 variables
#[test]
fn pip_downloads_from_the_hosts_that_its_settings_name() {
    let net = Net::new();
    python_index(&net);
    let flags = ["--allow-host", "index.example,files.example"];
    let output = net.script(&flags, PIP);
    output.assert_code(0);
    assert!(net.world.project().join("palisade_demo-1.0-py3-none-any.whl").exists());
    // The index alone is not enough: the files are elsewhere.
    let net = Net::new();
    python_index(&net);
    let refused = net.script(&["--allow-host", "index.example"], PIP);
    assert_ne!(refused.code(), 0);
    assert!(refused.err().contains("--allow-host files.example"), "{}", refused.err());
}

/// Proves: NET-3 default-hosts
#[test]
fn what_a_package_manager_is_set_up_to_use_is_what_gets_allowed() {
    let net = Net::new();
    python_index(&net);
    net.world.write(
        "home/.config/pip/pip.conf",
        "[global]\nindex-url = https://index.example/simple/\nextra-index-url = https://files.example/\n",
    );
    let output = net.script(&["--allow-for", "pip"], PIP);
    output.assert_code(0);
    net.world.write("home/.npmrc", "registry=https://packages.example/\n");
    let script = "for name in packages web; do \
        curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' --max-time 10 https://$name.example/; done";
    let output = net.script(&["--allow-for", "npm"], script);
    assert_eq!(output.out(), "200\n000\n", "{}", output.err());
}

/// Proves: NET-5 variables
#[test]
fn npm_installs_a_package() {
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
    let output = net.script(
        &["--allow-host", "packages.example"],
        "npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --cache .npm \
           --cafile /etc/ssl/certs/ca-certificates.crt --registry https://packages.example/ palisade-demo",
    );
    assert_holds(&net, "node_modules/palisade-demo/index.js", "42", &output);
}

/// Proves: NET-5 variables
#[test]
fn cargo_fetches_a_crate() {
    let net = Net::new();
    let pack = "mkdir -p demo-pkg-1.0.0/src && cd demo-pkg-1.0.0 && echo > src/lib.rs && \
        printf '[package]\\nname = \"demo-pkg\"\\nversion = \"1.0.0\"\\n' > Cargo.toml && cd .. && \
        tar czf \"$1\" demo-pkg-1.0.0 && rm -r demo-pkg-1.0.0 && sha256sum \"$1\" | cut -d' ' -f1";
    let file = net.lab.page("files.example", "demo-pkg/1.0.0.crate", "");
    let packed = net.world.bare("sh").args(["-c", pack, "sh"]).arg(file).run();
    packed.assert_code(0);
    let checksum = packed.out().trim().to_owned();
    net.lab.page(
        "crates.example",
        "config.json",
        json!({"dl": "https://files.example/{crate}/{version}.crate"}).to_string(),
    );
    let entry = json!({
        "name": "demo-pkg", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {}, "yanked": false,
    });
    net.lab.page("crates.example", "de/mo/demo-pkg", format!("{entry}\n"));
    net.world.write_in_project("src/lib.rs", "");
    net.world.write_in_project(
        "Cargo.toml",
        "[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\ndemo-pkg = { version = \"1\", registry = \"lab\" }\n",
    );
    net.world.write_in_project(
        ".cargo/config.toml",
        "[registries.lab]\nindex = \"sparse+https://crates.example/\"\n\
         [http]\ncainfo = \"/etc/ssl/certs/ca-certificates.crt\"\n[net]\nretry = 0\n",
    );
    let toolchain = rust_toolchain();
    let bin = toolchain.join("bin");
    let script = format!(
        "export PATH={}:$PATH CARGO_HOME=$PWD/.cargo-home; cargo fetch --quiet && \
         ls .cargo-home/registry/src/*/demo-pkg-1.0.0/Cargo.toml",
        bin.display()
    );
    let flags =
        ["--allow-host", "crates.example,files.example", "--ro", toolchain.to_str().unwrap()];
    let output = net.script(&flags, &script);
    output.assert_code(0);
    assert!(output.out().contains("demo-pkg-1.0.0/Cargo.toml"), "{}", output.out());
}

/// Proves: NET-5 ignoring
#[test]
fn node_fetches_without_ever_hearing_of_a_proxy() {
    let net = Net::new();
    let script = "for (const url of ['https://web.example/', 'http://web.example/', 'https://other.example/'])\n\
        await fetch(url).then(r => r.text()).then(t => console.log(t.trim()), e => console.log('no:', e.cause.code))";
    net.world.write_in_project("fetch.mjs", script);
    let output = net.script(
        &["--allow-host", "web.example", "--on-ask", "deny"],
        "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy; \
         NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt node fetch.mjs",
    );
    output.assert_code(0);
    assert_eq!(
        output.out(),
        "hello from web.example\nhello from web.example\nno: ENOTFOUND\n",
        "{}",
        output.err()
    );
}

/// Proves: NET-5 ignoring
#[test]
fn java_fetches_without_ever_hearing_of_a_proxy() {
    let net = Net::new();
    let authority = std::fs::read(net.lab.authority()).unwrap();
    net.world.write_in_project("authority.pem", authority);
    net.world.write_in_project(
        "Fetch.java",
        "import java.net.URI; import java.net.http.*;\n\
         import java.security.KeyStore; import java.security.cert.CertificateFactory;\n\
         import javax.net.ssl.*;\n\
         class Fetch { public static void main(String[] urls) throws Exception {\n\
         \x20 var store = KeyStore.getInstance(\"PKCS12\"); store.load(null, null);\n\
         \x20 try (var in = new java.io.FileInputStream(\"authority.pem\")) {\n\
         \x20   store.setCertificateEntry(\"lab\", CertificateFactory.getInstance(\"X.509\").generateCertificate(in)); }\n\
         \x20 var trust = TrustManagerFactory.getInstance(\"PKIX\"); trust.init(store);\n\
         \x20 var tls = SSLContext.getInstance(\"TLS\"); tls.init(null, trust.getTrustManagers(), null);\n\
         \x20 var client = HttpClient.newBuilder().sslContext(tls).build();\n\
         \x20 for (var url : urls) try {\n\
         \x20   System.out.print(client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body());\n\
         \x20 } catch (java.io.IOException refused) { System.out.println(\"no\"); } } }\n",
    );
    let output = net.run(
        &["--allow-host", "web.example", "--on-ask", "deny"],
        &[
            "java",
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "Fetch.java",
            "https://web.example/",
            "http://web.example/",
            "https://other.example/",
        ],
    );
    output.assert_code(0);
    assert_eq!(
        output.out(),
        "hello from web.example\nhello from web.example\nno\n",
        "{}",
        output.err()
    );
}
