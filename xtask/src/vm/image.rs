//! Disks of the machine, made from directories without mounting anything and without root's rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::kernel::Kernel;
use crate::{elf, setup, tree};

const KIB: u64 = 1024;
const BUSYBOX: &str = "/bin/busybox";

/// Writes an ext4 file system that holds this directory and has this much room for more.
///
/// Everything in it belongs to root: for an ordinary user by way of a user namespace.
pub(crate) fn ext4(directory: &Path, image: &Path, room_mib: u64) -> Result<()> {
    let content = size_of(directory)?;
    // Inode tables and bitmaps take a few percent.
    let size_kib = (content + content / 10) / KIB + room_mib * KIB;
    let mut command = if setup::am_root() {
        Command::new("mke2fs")
    } else {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "mke2fs"]);
        unshare
    };
    if image.exists() {
        fs::remove_file(image).with_context(|| image.display().to_string())?;
    }
    // No journal: nothing written here outlives the machine.
    command
        .args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d"])
        .arg(directory)
        .arg(image)
        .arg(format!("{size_kib}k"))
        // Some systems keep it where only root's PATH leads.
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    tree::succeed(command.stdout(Stdio::null()))
}

fn size_of(directory: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        // A file takes whole blocks.
        size += entry.metadata()?.len().next_multiple_of(4 * KIB);
        if entry.file_type()?.is_dir() {
            size += size_of(&entry.path())?;
        }
    }
    Ok(size)
}

/// Writes the first root of the machine: busybox, the script, and the modules for disks.
pub(crate) fn initramfs(kernel: &Kernel, script: &str, image: &Path, work: &Path) -> Result<()> {
    let work = tempfile::tempdir_in(work).context("cannot make a directory")?;
    let root = work.path();
    for directory in ["bin", "dev", "proc", "sys", "new"] {
        fs::create_dir_all(root.join(directory))?;
    }
    let busybox = fs::read(BUSYBOX).context(BUSYBOX)?;
    elf::check_static(&busybox).context("the machine needs busybox-static")?;
    write_executable(&root.join("bin/busybox"), &busybox)?;
    write_executable(&root.join("init"), script.as_bytes())?;

    let from = kernel.modules.join(&kernel.release);
    let to = root.join("lib/modules").join(&kernel.release);
    let lists = ["modules.dep", "modules.builtin"].map(str::to_owned);
    for file in kernel.first_modules()?.iter().chain(&lists) {
        let placed = to.join(file);
        if let Some(parent) = placed.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(from.join(file), &placed)
            .with_context(|| from.join(file).display().to_string())?;
    }
    let archive = tree::output_bytes_of(
        Command::new("sh")
            .current_dir(root)
            .args(["-c", "find . | busybox cpio -o -H newc 2>/dev/null"]),
    )?;
    fs::write(image, archive).with_context(|| image.display().to_string())
}

fn write_executable(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| path.display().to_string())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| path.display().to_string())
}
