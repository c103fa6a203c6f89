//! Transactions, checkpoints and caches on the file systems that people have: each on a loop device in a mount table of its
//! own, with the project and our state on it (LIFE-2, LIFE-5).

use std::fs;
use std::path::Path;

use palisade_testkit::{World, am_root};

use crate::inside::private_mounts;

/// How a file system is made and mounted at `$at`, and the program it needs.
const FILE_SYSTEMS: &[(&str, &str, &str)] = &[
    ("ext4", "mkfs.ext4", "mkfs.ext4 -q \"$image\" && mount -o loop \"$image\" \"$at\""),
    ("xfs", "mkfs.xfs", "mkfs.xfs -q \"$image\" && mount -o loop \"$image\" \"$at\""),
    ("btrfs", "mkfs.btrfs", "mkfs.btrfs -q \"$image\" && mount -o loop \"$image\" \"$at\""),
    ("tmpfs", "mount", "mount -t tmpfs none \"$at\""),
];

/// Everything in the project but for the times, as text.
const LISTED: &str = "listed() { (cd \"$1\" && find . -printf '%p %m %y %l\\n' | sort && \
    find . -type f -print0 | sort -z | xargs -0 sha256sum && \
    python3 -c 'import os; print([os.getxattr(\"kept\", name) for name in os.listxattr(\"kept\")])'); }";

/// The last line makes a file that was one of the host's, large enough that blocks are shared where they can be.
const EDITS: &str = "
    sed -i s/two/2/ changed; rm removed; mkdir -p new/a; echo x > new/a/b; chmod 755 kept; ln -sf changed link
    python3 -c 'import os; os.rename(\"moved\", \"renamed\"); os.setxattr(\"kept\", \"user.note\", b\"value\")'
    rm -r replaced; mkdir replaced; echo new > replaced/file; ln changed second
    echo end >> large";

fn script(make: &str, flags: &str) -> String {
    format!(
        "top=$(realpath ..); image=$top/image; at=$top/at; mkdir \"$at\"; truncate -s 512M \"$image\"
         {make}
         export HOME=$at/home XDG_STATE_HOME=$at/state; mkdir -p \"$HOME/.cargo/registry\" \"$at/bare\" \"$at/project\"
         echo warm > \"$HOME/.cargo/registry/warm\"
         {LISTED}
         fill() {{ cd \"$1\"; echo kept > kept; printf 'one\\ntwo\\n' > changed; echo old > removed
             mkdir -p moved/deep replaced; echo moved > moved/deep/file; echo old > replaced/file
             ln -s kept link; head -c 3000000 /dev/urandom > large; }}
         fill \"$at/project\"; cp -a \"$at/project/.\" \"$at/bare\"
         listed \"$at/project\" > ../before
         \"$PALISADE\" run {flags} -- sh -ec \"$EDITS\"
         listed \"$at/project\" > ../during; cmp ../before ../during
         \"$PALISADE\" discard
         listed \"$at/project\" > ../discarded; cmp ../before ../discarded
         \"$PALISADE\" run {flags} -- sh -ec \"$EDITS\"
         \"$PALISADE\" apply
         (cd \"$at/bare\"; sh -ec \"$EDITS\")
         listed \"$at/project\" > ../applied; listed \"$at/bare\" > ../bare-run; diff ../bare-run ../applied
         \"$PALISADE\" create --name s {flags} --quiet
         \"$PALISADE\" exec s -- sh -c 'echo one > notes; echo more >> large'
         \"$PALISADE\" checkpoint s
         \"$PALISADE\" exec s -- sh -c 'echo two > notes; rm -r new; echo other > large'
         \"$PALISADE\" rollback s 1
         \"$PALISADE\" exec s -- sh -c 'cat notes new/a/b; tail -n 1 large'
         \"$PALISADE\" rm --force s
         \"$PALISADE\" run -- sh -c 'echo cold > ~/.cargo/registry/cold; rm ~/.cargo/registry/warm'
         ls \"$HOME/.cargo/registry\"
         \"$PALISADE\" run -- sh -c 'ls ~/.cargo/registry'
         echo done"
    )
}

/// Where the driver is a module, opening its control device loads it.
fn has_loop_devices() -> bool {
    let control = fs::File::options().read(true).write(true).open("/dev/loop-control");
    let known = fs::read_to_string("/proc/devices").unwrap();
    control.is_ok() || known.lines().any(|line| line.trim_start().ends_with(" loop"))
}

/// On a kernel that lacks one of them the others are tested.
///
/// Proves: LIFE-2 apply, LIFE-2 discard, LIFE-2 copy, LIFE-5 rollback
#[test]
fn transactions_and_caches_work_on_every_usual_file_system() {
    if !am_root() {
        eprintln!("skipped: only root can mount a device");
        return;
    }
    for (name, program, make) in FILE_SYSTEMS {
        let known = fs::read_to_string("/proc/filesystems").unwrap();
        let has_kernel = known.lines().any(|line| line.ends_with(name));
        let has_program = ["/sbin", "/usr/sbin", "/bin", "/usr/bin"]
            .iter()
            .any(|directory| Path::new(directory).join(program).exists());
        if !has_kernel {
            eprintln!("skipped: this kernel has no {name}");
            continue;
        }
        if make.contains("-o loop") && !has_loop_devices() {
            eprintln!("skipped: this kernel has no loop devices to make {name} on");
            continue;
        }
        assert!(has_program, "{program} is missing: `cargo xtask setup` installs it");
        for flags in ["--transaction", "--transaction=copy"] {
            let world = World::new();
            let output = private_mounts(&world, &script(make, flags)).env("EDITS", EDITS).run();
            assert_eq!(output.code(), 0, "{name} {flags}: {}{}", output.out(), output.err());
            let end = "1\none\nx\nmore\nwarm\ncold\ndone\n";
            assert!(
                output.out().ends_with(end),
                "{name} {flags}: {}{}",
                output.out(),
                output.err()
            );
            assert!(!output.err().contains("caches"), "{name} {flags}: {}", output.err());
        }
    }
}
