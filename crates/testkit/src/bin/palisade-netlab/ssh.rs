//! An ssh server for the user of the test, who logs in with a key made here. It sees a user database of
//! its own, in which that user's home is in the lab: no real home is read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::started::started;

const PLACE: &str = "203.0.113.25:22";
/// The key a client logs in with.
const CLIENT_KEY: &str = "ssh-key";
/// Ends with this process, whatever ends that.
const SCRIPT: &str = "mount --bind \"$1\" /etc/passwd && \
    exec setpriv --pdeathsig KILL dropbear -F -E -s -p \"$2\" -r \"$3\"";

/// The server, once it answers.
pub(crate) fn serve(directory: &Path) -> Result<Child> {
    let home = directory.join("ssh-home");
    let settings = home.join(".ssh");
    fs::create_dir_all(&settings)?;
    for private in [&home, &settings] {
        fs::set_permissions(private, fs::Permissions::from_mode(0o700))?;
    }
    let (client, host) = (directory.join(CLIENT_KEY), directory.join("ssh-host-key"));
    make(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&client))?;
    make(Command::new("dropbearkey").args(["-t", "ed25519", "-f"]).arg(&host))?;
    let keys = settings.join("authorized_keys");
    fs::copy(client.with_extension("pub"), &keys)?;
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600))?;
    let users = directory.join("passwd");
    fs::write(&users, users_with_home(&fs::read_to_string("/etc/passwd")?, &home))?;
    let mut server = Command::new("unshare");
    server
        .args(["--mount", "sh", "-c", SCRIPT, "sh"])
        .args([&users])
        .arg(PLACE)
        .arg(&host)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(directory.join("ssh.log"))?);
    started(&mut server, PLACE)
}

fn make(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {output:?}").into()) }
}

/// The user database with another home for the user of this process.
fn users_with_home(users: &str, home: &Path) -> String {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let moved = |line: &str| {
        let mut fields: Vec<&str> = line.split(':').collect();
        let home = home.to_string_lossy();
        if let [_, _, user, _, _, place, shell] = fields.as_mut_slice()
            && *user == uid
        {
            *place = &home;
            *shell = "/bin/sh";
        }
        fields.join(":") + "\n"
    };
    users.lines().map(moved).collect()
}
