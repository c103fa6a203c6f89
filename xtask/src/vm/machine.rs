//! The emulated machine as a process: started, listened to, and ended whatever happens.
//! Only software emulation: a hypervisor's device may be missing, or hang a stock kernel.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::kernel::Kernel;
use crate::tree;

/// Landlock and Yama have to be named where a kernel's default leaves them out.
const SECURITY_MODULES: &str = "landlock,lockdown,yama,integrity,apparmor,bpf";
const MEMORY: &str = "4G";
/// What the kernel's last words are worth when nothing else was heard.
const LAST_LINES: usize = 30;

/// A running machine.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    process: Child,
    lines: Receiver<String>,
    ends_at: Instant,
    console: &'a Path,
}

/// What the machine is made of.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) initramfs: &'a Path,
    /// In the order the first script expects: the root, modules, what is tested.
    pub(crate) disks: [&'a Path; 3],
    /// Where the kernel's own messages go.
    pub(crate) console: &'a Path,
}

impl<'a> Machine<'a> {
    /// Starts it; it will be ended when this long has passed.
    pub(crate) fn start(parts: &Parts<'a>, limit: Duration) -> Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        // Ends with this process, however that one ends.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(["-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max"])
            .args(["-m", MEMORY, "-smp", &processors.to_string()])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(&parts.kernel.image)
            .arg("-initrd")
            .arg(parts.initramfs)
            .args(["-append", &format!("console=ttyS0 panic=-1 lsm={SECURITY_MODULES}")])
            .args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"])
            .args(["-chardev", "stdio,id=results,signal=off"])
            .args(["-device", "virtserialport,chardev=results,name=palisade"])
            .args(["-serial", &format!("file:{}", parts.console.display())]);
        for disk in parts.disks {
            // Written to a file without a name; the image stays as it is.
            let drive =
                format!("if=virtio,format=raw,snapshot=on,cache=unsafe,file={}", disk.display());
            command.args(["-drive", &drive]);
        }
        let shown = tree::show(&command);
        let mut process = command
            // An input at its end would close the port in both directions.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        let output = process.stdout.take().context("the machine has no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // The receiver is gone when nobody listens any more.
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, lines, ends_at: Instant::now() + limit, console: parts.console })
    }

    /// The next line from inside, or none once the machine has stopped.
    pub(crate) fn line(&self) -> Result<Option<String>> {
        let remaining = self.ends_at.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(remaining) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the machine did not finish in time; its last words:\n{}", self.last_words())
            }
        }
    }

    /// The end of what its kernel said.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing must be left of it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
