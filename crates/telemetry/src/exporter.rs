//! The run's side of sending: a queue with a bound, and the process that empties it.
//!
//! Never waits, unless it is asked to at the end. The process is started with the first thing that is to be sent and ends by itself when
//! nothing comes for a while, so that an idle session keeps none. What there is no room for is counted and dropped.

use crate::message::{NotSent, ToSender};
use crate::model::{Metric, Nanoseconds, Span};
use crate::sender::SenderStage;
use crate::settings::Settings;
use palisade_record::metrics::Metrics;
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc;
use palisade_wire::{WireError, WireMessage as _, encode, try_receive, try_send};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{Shutdown, shutdown};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What all variables begin with that say what to send where.
const SETTINGS: &[&str] = &["OTEL_", "PALISADE_OTEL_"];
/// Certificates of the collector, if they are not the host's.
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
const TRUSTED: &str = "SSL_CERT_FILE";

/// As the standard's `OTEL_BSP_MAX_QUEUE_SIZE`.
const MAX_QUEUE: usize = 2048;
const MAX_QUEUE_BYTES: usize = 4 << 20;
/// As many wait at most before they are handed over.
const BATCH: usize = 128;
/// Older ones are handed over with the next.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A sender that cannot be started is not tried again at once.
const RETRY: Duration = Duration::from_secs(10);
/// One that has nothing to do waits longer than this.
const MIN_LIFE: Duration = Duration::from_secs(2);
/// Beyond what the sender gives itself.
const END_SLACK: Duration = Duration::from_secs(1);

/// Whether a variable is for us, and not for what runs in a sandbox (`resources/view/secret-env.txt`).
pub fn is_setting(name: &OsStr) -> bool {
    SETTINGS.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// The value of a variable, with an absolute path if it names a file: whoever gets it may work in another directory, as the sender does.
pub fn absolute_file(name: &OsStr, value: OsString) -> OsString {
    let is_file = name == CERTIFICATE || name == TRUSTED;
    match is_file.then(|| std::path::absolute(&value)) {
        Some(Ok(path)) => path.into(),
        // An empty one counts as not set.
        Some(Err(_)) | None => value,
    }
}

/// What was not sent, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    pub queue_full: u64,
    pub not_sent: u64,
    /// What went wrong first.
    pub why: Option<String>,
}

#[derive(Debug)]
pub struct Exporter {
    settings: Settings,
    environment: Vec<(OsString, OsString)>,
    queue: VecDeque<Vec<u8>>,
    queue_bytes: usize,
    waiting_since: Option<Instant>,
    sender: Option<RunningSender>,
    /// Senders that another one has replaced, and that still send what they have.
    replaced: Vec<Child>,
    next_try: Option<Instant>,
    loss: Loss,
}

#[derive(Debug)]
struct RunningSender {
    child: Child,
    socket: OwnedFd,
    since: Instant,
}

impl Exporter {
    /// `environment` is the one that the settings were read from.
    pub fn new(
        settings: Settings,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let is_wanted =
            |name: &OsString| is_setting(name) || name.as_encoded_bytes().starts_with(b"SSL_CERT_");
        let mut environment: Vec<(OsString, OsString)> =
            environment.into_iter().filter(|(name, _)| is_wanted(name)).collect();
        for (name, value) in &mut environment {
            *value = absolute_file(name, std::mem::take(value));
        }
        let certificate = environment.iter().find(|(name, _)| name == CERTIFICATE).cloned();
        if let Some((_, file)) = certificate.filter(|(_, file)| !file.is_empty()) {
            environment.retain(|(name, _)| name != TRUSTED);
            environment.push((TRUSTED.into(), file));
        }
        Self {
            settings,
            environment,
            queue: VecDeque::new(),
            queue_bytes: 0,
            waiting_since: None,
            sender: None,
            replaced: Vec::new(),
            next_try: None,
            loss: Loss::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes a span. It is handed over soon, or with [`Self::flush`].
    pub fn span(&mut self, span: Span) {
        if self.settings.has_traces() {
            self.put(&ToSender::Span(Box::new(span)));
        }
        let is_old = self.waiting_since.is_some_and(|since| since.elapsed() >= MAX_AGE);
        if self.queue.len() >= BATCH || is_old {
            self.flush();
        }
    }

    /// Hands over what waits, as far as there is room for it.
    pub fn flush(&mut self) {
        self.reap();
        while let Some(packet) = self.queue.pop_front() {
            let sent = self.sender().map(|sender| try_send(&sender.socket, &packet));
            if matches!(sent, Some(Ok(()))) {
                self.queue_bytes -= packet.len();
                continue;
            }
            self.queue.push_front(packet);
            match sent {
                // It is busy with a slow collector.
                None | Some(Err(WireError::NoRoom)) => return,
                // It had nothing to do and ended, or was killed: another one takes its place.
                Some(_) => {
                    self.hear();
                    let ended = self.sender.take();
                    let is_new = ended.as_ref().is_some_and(|it| it.since.elapsed() < MIN_LIFE);
                    self.replaced.extend(ended.map(|it| it.child));
                    // One that ends at once must not be started again and again.
                    self.next_try = is_new.then(|| Instant::now() + RETRY);
                }
            }
        }
        self.waiting_since = None;
    }

    /// Sends what is left, and the numbers of the run. Waits for the sender only where its failure is to be told, or where it would end
    /// with us.
    pub fn finish(mut self, metrics: &Metrics, (start, end): (Nanoseconds, Nanoseconds)) -> Loss {
        let metrics: Vec<Metric> = metrics.measures().iter().map(Metric::of).collect();
        if self.settings.has_metrics() && !metrics.is_empty() {
            self.put(&ToSender::Metrics { metrics, start, end });
        }
        self.flush();
        let is_first_process = std::process::id() == 1;
        if self.settings.is_told || is_first_process {
            self.wait_for_sender();
        } else {
            self.hear();
        }
        let left = self.queue.len() as u64;
        self.loss.queue_full += left;
        if left > 0 && self.loss.why.is_none() {
            self.loss.why =
                Some("the collector is too slow, or sending could not begin".to_owned());
        }
        self.loss
    }

    /// Waits for those that have ended, so that none stays as a zombie for as long as a session lasts.
    fn reap(&mut self) {
        self.replaced.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    fn put(&mut self, message: &ToSender) {
        let Ok(packet) = encode(message) else {
            self.loss.queue_full += 1;
            return;
        };
        let is_full = self.queue.len() >= MAX_QUEUE
            || self.queue_bytes.saturating_add(packet.len()) > MAX_QUEUE_BYTES;
        if is_full {
            self.loss.queue_full += 1;
            return;
        }
        self.waiting_since.get_or_insert_with(Instant::now);
        self.queue_bytes += packet.len();
        self.queue.push_back(packet);
    }

    /// The one that runs, or a new one.
    fn sender(&mut self) -> Option<&RunningSender> {
        if self.sender.is_none() {
            let now = Instant::now();
            if self.next_try.is_some_and(|next| now < next) {
                return None;
            }
            match RunningSender::start(&self.environment) {
                Ok(sender) => self.sender = Some(sender),
                Err(error) => {
                    self.next_try = Some(now + RETRY);
                    self.loss.why.get_or_insert_with(|| format!("cannot start a sender: {error}"));
                }
            }
        }
        self.sender.as_ref()
    }

    /// What the sender has said so far. Whether it can say more.
    fn hear(&mut self) -> bool {
        let Some(sender) = &self.sender else { return false };
        let mut buffer = vec![0; NotSent::MAX_BYTES];
        loop {
            match try_receive::<NotSent>(&sender.socket, &mut buffer) {
                Ok(Some(received)) => {
                    let NotSent { count, why } = received.message;
                    self.loss.not_sent = self.loss.not_sent.saturating_add(count);
                    self.loss.why.get_or_insert(why);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn wait_for_sender(&mut self) {
        let deadline = Instant::now() + self.settings.patience() + END_SLACK;
        if let Some(sender) = &self.sender {
            // There is nothing more to come; what it says can still be read.
            let _ = shutdown(&sender.socket, Shutdown::Write);
        }
        while self.hear() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(sender) = &self.sender else { return };
            let mut watched = [PollFd::from_borrowed_fd(sender.socket.as_fd(), PollFlags::IN)];
            if left.is_zero() || proc::poll(&mut watched, Some(left)).is_err() {
                return;
            }
        }
    }
}

impl RunningSender {
    fn start(environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let (socket, theirs) = socketpair().map_err(|error| io::Error::from(error.errno))?;
        let child = Command::new("/proc/self/exe")
            .arg0("sandbox")
            .arg(SenderStage::WORD)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            // What a terminal sends is for the run.
            .process_group(0)
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, socket, since: Instant::now() })
    }
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
