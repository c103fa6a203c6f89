//! `cargo xtask bench service`: what requests to `sandbox serve` cost, beside `sandbox run`, bare namespaces and a bare fork and exec,
//! in turns; sandboxes that were prepared; and the memory of idle sandboxes and of the server.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::bench;
use crate::http::Connection;
use crate::measure::{BenchContext, Contender, Times, find_program, time_one};

const TRUE: &str = "/bin/true";
const ECHO: &str = "/bin/echo";
const RUN_TRUE: &str = r#"{"command": {"argv": ["/bin/true"]}}"#;
const RUN_ECHO: &str = r#"{"command": {"argv": ["/bin/echo", "x"]}}"#;
/// Says when it writes, in nanoseconds of the clock.
const CLOCK: [&str; 2] = ["/bin/date", "+%s%N"];
const RUN_CLOCK: &str = r#"{"command": {"argv": ["/bin/date", "+%s%N"]}}"#;
const EXEC_TRUE: &str = r#"{"argv": ["/bin/true"], "wait": true}"#;
/// The namespaces of a sandbox.
const NAMESPACES: [&str; 8] =
    ["--user", "--map-current-user", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts"];
/// Clients at once, where a rate is measured.
const CLIENTS: usize = 4;
/// Until an idle sandbox has given back what it can.
const SETTLED: Duration = Duration::from_secs(20);
const GIVE_UP: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct ServiceArguments {
    /// Idle sandboxes whose memory is measured.
    #[arg(long, default_value_t = 100)]
    idle: usize,
    /// Runs over which the server's memory is measured.
    #[arg(long, default_value_t = 10_000)]
    runs: usize,
    /// Sandboxes that are kept prepared where claims are measured.
    #[arg(long, default_value_t = 4)]
    warm: usize,
}

#[derive(Serialize)]
struct Row {
    by: &'static str,
    what: String,
    ours: f64,
    unit: &'static str,
    beside: String,
    theirs: f64,
    ratio: f64,
    goal: &'static str,
}

pub(crate) fn service(
    sandbox: &Path,
    arguments: &ServiceArguments,
    json: bool,
    rounds: usize,
) -> Result<()> {
    let mut rows = Vec::new();
    bench::as_each_user(|by, surroundings, _| {
        let mut bench = Bench { by, sandbox, surroundings, rounds, json, rows: Vec::new() };
        bench.requests()?;
        bench.claims(arguments.warm)?;
        bench.rates(arguments.runs)?;
        bench.idle(arguments.idle)?;
        rows.append(&mut bench.rows);
        Ok(())
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

/// A server of the user that is measured, ended with this value.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Server {
    fn start(bench: &Bench<'_>, warm: usize) -> Result<Self> {
        let token_file = bench.surroundings.home.join("token");
        let mut words: Vec<OsString> = vec![bench.sandbox.into()];
        words.extend(
            ["serve", "--json", "--listen", "tcp:127.0.0.1:0", "--token-file"].map(OsString::from),
        );
        words.push(token_file.clone().into());
        words.push(format!("--warm={warm}").into());
        let mut command = bench.surroundings.command(&words)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start the server")?;
        let mut told = String::new();
        let stdout = BufReader::new(child.stdout.take().context("no output")?);
        for line in stdout.lines() {
            told.push_str(&line?);
            if serde_json::from_str::<Value>(&told).is_ok() {
                break;
            }
        }
        let told: Value = serde_json::from_str(&told).context("the server did not begin")?;
        let address = told["address"].as_str().and_then(|text| text.strip_prefix("tcp:"));
        let address = address.context("no address")?.parse()?;
        let token = fs::read_to_string(token_file)?.trim().to_owned();
        Ok(Self { child, address, token })
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, &self.token)
    }

    /// In KiB.
    fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let line = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
        Ok(line.parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

struct Bench<'a> {
    by: &'static str,
    sandbox: &'a Path,
    surroundings: &'a BenchContext<'a>,
    rounds: usize,
    json: bool,
    rows: Vec<Row>,
}

impl Bench<'_> {
    fn add(
        &mut self,
        what: &str,
        (ours, unit): (f64, &'static str),
        (beside, theirs): (&str, f64),
        goal: &'static str,
    ) {
        let ratio = ours / theirs.max(f64::MIN_POSITIVE);
        let (what, beside) = (what.to_owned(), beside.to_owned());
        let row = Row { by: self.by, what, ours, unit, beside, theirs, ratio, goal };
        if !self.json {
            let Row { by, what, ours, beside, theirs, .. } = &row;
            println!(
                "as {by}, {what}: {ours:.0} {unit}, {beside} {theirs:.0} {unit}, ratio {ratio:.2}  {goal}"
            );
        }
        self.rows.push(row);
    }

    fn add_times(&mut self, what: &str, ours: &Times, beside: (&str, &Times), goal: &'static str) {
        let us = |times: &Times| times.median().as_secs_f64() * 1e6;
        self.add(what, (us(ours), "us"), (beside.0, us(beside.1)), goal);
    }

    fn bare(&self) -> Contender {
        Contender::new("bare", [TRUE])
    }

    fn unshare(&self) -> Result<Contender> {
        let program = find_program("unshare").context("unshare")?;
        let words = NAMESPACES.iter().map(OsString::from).chain([OsString::from(TRUE)]);
        Ok(Contender::new("unshare", std::iter::once(OsString::from(program)).chain(words)))
    }

    fn run(&self) -> Contender {
        let words = ["run", "--quiet", "--", TRUE].map(OsString::from);
        Contender::new("sandbox run", std::iter::once(self.sandbox.into()).chain(words))
    }

    /// A run and a command, by one client after the other, without prepared sandboxes.
    fn requests(&mut self) -> Result<()> {
        let server = Server::start(self, 0)?;
        let mut connection = server.connect()?;
        let made: Value =
            serde_json::from_str(&connection.post("/v1/sandboxes", r#"{"name": "bench"}"#)?)?;
        anyhow::ensure!(made["isRunning"] == true, "{made}");
        let (bare, unshare, run) = (self.bare(), self.unshare()?, self.run());
        let mut times: [Vec<Duration>; 5] = Default::default();
        let warm_up = self.rounds.div_ceil(20);
        for round in 0..self.rounds + warm_up {
            let timed = [
                time_one(&bare, self.surroundings)?,
                time_one(&unshare, self.surroundings)?,
                time_one(&run, self.surroundings)?,
                timed(|| connection.post("/v1/runs", RUN_TRUE))?,
                timed(|| connection.post("/v1/sandboxes/bench/commands", EXEC_TRUE))?,
            ];
            if round >= warm_up {
                times.iter_mut().zip(timed).for_each(|(all, one)| all.push(one));
            }
        }
        connection.ask("DELETE", "/v1/sandboxes/bench?kill=true", "")?;
        let [bare, unshare, run, post, exec] = times;
        let (bare, unshare, run) = (Times::new(bare)?, Times::new(unshare)?, Times::new(run)?);
        let (post, exec) = (Times::new(post)?, Times::new(exec)?);
        self.add_times("POST run", &post, ("sandbox run", &run), "at most 2000 us more");
        self.add_times("POST run", &post, ("unshare", &unshare), "");
        self.add_times("POST run", &post, ("bare fork and exec", &bare), "");
        self.add_times(
            "POST command",
            &exec,
            ("bare fork and exec", &bare),
            "at most 2 and 500 us",
        );
        Ok(())
    }

    /// Runs in sandboxes that were prepared: from the request to what the command writes first, by the clock that it reads itself, and to the
    /// end of the answer.
    fn claims(&mut self, warm: usize) -> Result<()> {
        let server = Server::start(self, warm.max(1))?;
        let mut connection = server.connect()?;
        let bare = Contender::new("bare", [ECHO, "x"]);
        let (mut claims, mut bares) = (Vec::new(), Vec::new());
        let (mut claimed_outputs, mut bare_outputs) = (Vec::new(), Vec::new());
        let wait_for_all = |connection: &mut Connection| -> Result<()> {
            let begin = Instant::now();
            // All of them, so that none is being made meanwhile.
            while metric(connection, "palisade_service_warm_sandboxes")? < warm.max(1) as u64 {
                anyhow::ensure!(begin.elapsed() < GIVE_UP, "no sandbox is prepared");
                thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        };
        for _ in 0..self.rounds {
            wait_for_all(&mut connection)?;
            let begin = clock()?;
            let ran: Value = serde_json::from_str(&connection.post("/v1/runs", RUN_CLOCK)?)?;
            let written = ran["stdout"]["data"].as_str().context("no output")?;
            claimed_outputs.push(since(begin, written)?);
            bare_outputs.push(self.bare_output()?);
            wait_for_all(&mut connection)?;
            claims.push(timed(|| connection.post("/v1/runs", RUN_ECHO))?);
            bares.push(time_one(&bare, self.surroundings)?);
        }
        let claimed =
            metric(&mut connection, "palisade_service_warm_requests_total{result=\"claimed\"}")?;
        let asked = 2 * self.rounds;
        anyhow::ensure!(claimed >= asked as u64, "{claimed} of {asked} were claimed");
        let (outputs, bare_outputs) = (Times::new(claimed_outputs)?, Times::new(bare_outputs)?);
        self.add_times(
            "prepared, to the first output",
            &outputs,
            ("bare fork and exec", &bare_outputs),
            "at most 1.5",
        );
        let (claims, bares) = (Times::new(claims)?, Times::new(bares)?);
        self.add_times(
            "prepared, to the end of the answer",
            &claims,
            ("bare fork and exec", &bares),
            "",
        );
        Ok(())
    }

    /// From the start of a bare command to its first output.
    fn bare_output(&self) -> Result<Duration> {
        let mut command = self.surroundings.command(&CLOCK.map(OsString::from))?;
        let begin = clock()?;
        let output = command.stdin(Stdio::null()).output().context(CLOCK[0])?;
        since(begin, std::str::from_utf8(&output.stdout)?)
    }

    /// As many runs as the machine does, and what the server's memory does meanwhile.
    fn rates(&mut self, runs: usize) -> Result<()> {
        let server = Server::start(self, 0)?;
        let first = (runs / 10).max(1);
        let rate = |count: usize| -> Result<f64> {
            at_once(count, |_| {
                let mut connection = server.connect()?;
                Ok(move || connection.post("/v1/runs", RUN_TRUE).map(drop))
            })
        };
        rate(first)?;
        let before = server.memory()?;
        let ours = rate(runs.saturating_sub(first).max(1))?;
        let after = server.memory()?;
        let unshare = self.unshare()?;
        let surroundings = self.surroundings;
        let bare = at_once(first, |_| Ok(|| time_one(&unshare, surroundings).map(drop)))?;
        self.add("runs in a second", (ours, "/s"), ("unshare", bare), "at least 400");
        #[expect(clippy::cast_precision_loss, reason = "KiB of memory")]
        let (before, after) = (before as f64, after as f64);
        self.add(
            &format!("the server's memory after {runs} runs"),
            (after, "KiB"),
            ("after a tenth of them", before),
            "as before",
        );
        Ok(())
    }

    /// What sandboxes hold that nobody uses.
    fn idle(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let server = Server::start(self, 0)?;
        let mut connection = server.connect()?;
        let mut ids = Vec::new();
        for _ in 0..count {
            let made: Value = serde_json::from_str(&connection.post("/v1/sandboxes", "{}")?)?;
            ids.push(made["id"].as_str().context("no id")?.to_owned());
        }
        let begin = Instant::now();
        let mut least = u64::MAX;
        while begin.elapsed() < SETTLED {
            thread::sleep(Duration::from_secs(1));
            let now = self.memory_of(&ids)?;
            // It falls no more.
            if now.saturating_mul(100) >= least.saturating_mul(99) {
                break;
            }
            least = now;
        }
        let least = self.memory_of(&ids)?.min(least);
        for id in &ids {
            connection.ask("DELETE", &format!("/v1/sandboxes/{id}?kill=true"), "")?;
        }
        #[expect(clippy::cast_precision_loss, reason = "KiB of memory")]
        let each = least as f64 / count as f64;
        let what = format!("PSS of each of {count} idle sandboxes");
        self.add(&what, (each, "KiB"), ("the goal", 3072.0), "at most 1");
        Ok(())
    }

    /// The sum of what the supervisors hold, and everything below them.
    fn memory_of(&self, ids: &[String]) -> Result<u64> {
        let all = self.surroundings.home.join(".local/state/palisade/sessions");
        let mut sum = 0;
        for id in ids {
            let record = fs::read_to_string(all.join(id).join("session.json"))?;
            let record: Value = serde_json::from_str(&record)?;
            let supervisor = record["supervisor"].as_u64().context("no supervisor")?;
            sum += memory_below(supervisor);
        }
        if sum == 0 {
            bail!("the memory of the sandboxes cannot be read");
        }
        Ok(sum)
    }
}

/// In KiB, as far as it can be read.
fn memory_below(pid: u64) -> u64 {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = smaps.lines().find_map(|line| line.strip_prefix("Pss:"));
    let own = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok());
    own + below.map(memory_below).sum::<u64>()
}

/// Now, by the clock that `CLOCK` reads.
fn clock() -> Result<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

/// Until a command wrote the time.
fn since(begin: Duration, written: &str) -> Result<Duration> {
    let written = Duration::from_nanos(written.trim().parse().context("the time of a command")?);
    written.checked_sub(begin).context("the clock was set back meanwhile")
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// How many of `count` a second are done by several clients at once.
fn at_once<W: FnMut() -> Result<()> + Send>(
    count: usize,
    client: impl Fn(usize) -> Result<W>,
) -> Result<f64> {
    let each = count.div_ceil(CLIENTS);
    let workers = (0..CLIENTS).map(client).collect::<Result<Vec<_>>>()?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let run = |mut work: W| scope.spawn(move || (0..each).try_for_each(|_| work()));
        let running: Vec<_> = workers.into_iter().map(run).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(_) => bail!("a client failed"),
        })
    })?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let done = (each * CLIENTS) as f64;
    Ok(done / begin.elapsed().as_secs_f64())
}

fn metric(connection: &mut Connection, name: &str) -> Result<u64> {
    let text = connection.ask("GET", "/metrics", "")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name}"))?.parse()?)
}
