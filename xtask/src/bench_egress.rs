//! `cargo xtask bench egress`: what the way out costs. Bulk transfers and new connections through it, beside the
//! same straight through a wire and through another proxy, and what many idle connections take. Everybody takes
//! turns; a goal that is missed is shown, and is no failure.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::bench;
use crate::bench_network::{BULK_PORT, ECHO_PORT, IPERF_PORT, Network, SERVER, TINYPROXY_PORT};
use crate::measure::BenchContext;
use crate::packages::User;
use crate::setup;

/// Bulk, beside the wire alone.
const GOAL_BESIDE_THE_WIRE: f64 = 0.8;
const GOAL_BESIDE_TINYPROXY: f64 = 1.5;
/// Added to a connection and the first byte back, in µs.
const GOAL_OF_A_CONNECTION: f64 = 300.0;
/// What the egress process takes with so many idle tunnels, in MiB.
const GOAL_OF_IDLE_TUNNELS: f64 = 64.0;
const IDLE_TUNNELS: u32 = 2000;
/// A transfer that hangs is no measurement.
const MAX_TRANSFER_SECONDS: &str = "60";

/// The median time of a new connection with one byte there and back, in µs.
const CONNECT: &str = "import socket, sys, time\n\
    times = []\n\
    for _ in range(400):\n \
     start = time.perf_counter()\n \
     s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n \
     s.sendall(b'\\0')\n \
     s.recv(1)\n \
     times.append(time.perf_counter() - start)\n \
     s.close()\n\
    print(sorted(times)[len(times) // 2] * 1e6)";

/// Opens so many, says a byte over each, and holds them until its input ends.
const HOLD: &str = "import resource, socket, sys\n\
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n\
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n\
    held = []\n\
    for _ in range(int(sys.argv[3])):\n \
     s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n \
     s.sendall(b'\\0')\n \
     s.recv(1)\n \
     held.append(s)\n\
    print('open', flush=True)\n\
    sys.stdin.read()";

#[derive(Serialize)]
struct Report {
    by: &'static str,
    rounds: usize,
    /// In MiB a second.
    bulk: Vec<Bulk>,
    connection: Connection,
    idle_tunnels: u32,
    idle_tunnels_mib: f64,
}

#[derive(Serialize)]
struct Bulk {
    name: &'static str,
    median_mib: f64,
    /// The fastest run: what other work on the machine costs is left out of it.
    fastest_mib: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_wire: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_tinyproxy: Option<f64>,
}

#[derive(Serialize)]
struct Connection {
    straight_us: f64,
    through_us: f64,
    added_us: f64,
}

/// Runs the task.
pub(crate) fn egress(sandbox: &Path, place: &Path, json: bool, rounds: usize) -> Result<()> {
    if !setup::am_root() {
        bail!("the network of this bench is made by root: run it as root");
    }
    setup::install_for(&[User::Tests, User::HostTests, User::Benches])?;
    let network = Network::new(place)?;
    let mut reports = Vec::new();
    bench::as_each_user(|by, surroundings, _| {
        let ways = Ways { sandbox, network: &network, surroundings };
        let bulk = ways.bulk(rounds)?;
        eprintln!("connections");
        let connection = ways.connection(rounds)?;
        eprintln!("idle tunnels");
        let idle_tunnels_mib = ways.idle_tunnels()?;
        let report =
            Report { by, rounds, bulk, connection, idle_tunnels: IDLE_TUNNELS, idle_tunnels_mib };
        if !json {
            print(&report);
        }
        reports.push(report);
        Ok(())
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(())
}

/// Commands on the sandbox's host, straight and through the sandbox.
struct Ways<'a> {
    sandbox: &'a Path,
    network: &'a Network,
    surroundings: &'a BenchContext<'a>,
}

impl Ways<'_> {
    fn inside(&self, words: &[OsString]) -> Vec<OsString> {
        let ports = format!("{SERVER}:{BULK_PORT},{ECHO_PORT},{IPERF_PORT}");
        let options = ["run", "--quiet", "--network", "proxy", "--max-connections", "5000"];
        let mut all = vec![self.sandbox.into()];
        all.extend(options.map(OsString::from));
        all.extend(["--allow-host".into(), ports.into(), "--".into()]);
        all.extend_from_slice(words);
        all
    }

    /// What it prints.
    fn run(&self, words: &[OsString]) -> Result<String> {
        let bounded = ["timeout", MAX_TRANSFER_SECONDS].map(OsString::from);
        let words = &[&bounded, words].concat();
        let mut command = self.network.command(words, self.surroundings)?;
        let output = command.stdin(Stdio::null()).output().context("cannot start nsenter")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{words:?} ended with {}: {said}", output.status);
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn bulk(&self, rounds: usize) -> Result<Vec<Bulk>> {
        let url = format!("http://{SERVER}:{BULK_PORT}/");
        let curl = |options: &[&str]| {
            let usual = ["curl", "-sS", "-o", "/dev/null", "-w", "%{speed_download}"];
            words(&[&usual, options, &[&url]].concat())
        };
        let port = IPERF_PORT.to_string();
        let iperf =
            words(&["iperf3", "-J", "-R", "-t", "2", "-c", &SERVER.to_string(), "-p", &port]);
        let tinyproxy = format!("http://127.0.0.1:{TINYPROXY_PORT}");
        let straight = curl(&["--noproxy", "*"]);
        // The first of each kind is what the others are beside.
        let contenders = [
            ("iperf3, straight", iperf.clone()),
            ("iperf3, transparent", self.inside(&iperf)),
            ("curl, straight", straight.clone()),
            ("curl, tinyproxy CONNECT", curl(&["-p", "-x", &tinyproxy])),
            ("curl, transparent", self.inside(&straight)),
            ("curl, proxy", self.inside(&curl(&[]))),
            ("curl, proxy CONNECT", self.inside(&curl(&["-p"]))),
        ];
        let mut speeds = vec![Vec::new(); contenders.len()];
        for round in 1..=rounds {
            eprintln!("transfers, round {round} of {rounds}");
            for ((_, words), speeds) in contenders.iter().zip(&mut speeds) {
                speeds.push(speed(&self.run(words)?)?);
            }
        }
        for speeds in &mut speeds {
            speeds.sort_by(f64::total_cmp);
        }
        let median = |index: usize| speeds[index][speeds[index].len() / 2];
        let row = |index: usize, wire: usize, proxy: Option<usize>| Bulk {
            name: contenders[index].0,
            median_mib: median(index),
            fastest_mib: speeds[index].last().copied().unwrap_or_default(),
            to_wire: (index != wire).then(|| median(index) / median(wire)),
            to_tinyproxy: proxy.map(|proxy| median(index) / median(proxy)),
        };
        Ok(vec![
            row(0, 0, None),
            row(1, 0, None),
            row(2, 2, None),
            row(3, 2, None),
            row(4, 2, Some(3)),
            row(5, 2, Some(3)),
            row(6, 2, Some(3)),
        ])
    }

    fn connection(&self, rounds: usize) -> Result<Connection> {
        let straight = python(CONNECT, &[]);
        let through = self.inside(&straight);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (words, times) in [&straight, &through].into_iter().zip(&mut times) {
                times.push(self.run(words)?.trim().parse::<f64>()?);
            }
        }
        let [straight_us, through_us] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        Ok(Connection { straight_us, through_us, added_us: through_us - straight_us })
    }

    /// What the egress process holds of memory with many idle tunnels, in MiB.
    fn idle_tunnels(&self) -> Result<f64> {
        let words = self.inside(&python(HOLD, &[&IDLE_TUNNELS.to_string()]));
        let mut command = self.network.command(&words, self.surroundings)?;
        let mut holding = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let measured =
            wait_until_open(&mut holding).and_then(|()| resident_mib(busiest_child(holding.id())?));
        drop(holding.stdin.take());
        holding.wait()?;
        measured
    }
}

fn words(texts: &[&str]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

fn python(program: &str, more: &[&str]) -> Vec<OsString> {
    let (server, port) = (SERVER.to_string(), ECHO_PORT.to_string());
    words(&[&["/usr/bin/python3", "-c", program, &server, &port], more].concat())
}

/// In MiB a second: what curl says, or iperf3's report.
fn speed(said: &str) -> Result<f64> {
    let bytes = match said.trim().parse::<f64>() {
        Ok(bytes) => bytes,
        Err(_) => {
            let report: serde_json::Value = serde_json::from_str(said)?;
            let bits = &report["end"]["sum_received"]["bits_per_second"];
            bits.as_f64().context("iperf3 says no speed")? / 8.0
        }
    };
    Ok(bytes / f64::from(1 << 20))
}

fn wait_until_open(holding: &mut Child) -> Result<()> {
    let said = holding.stdout.as_mut().context("no output")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    if line.trim() != "open" {
        bail!("the tunnels could not be opened: {line}");
    }
    Ok(())
}

/// The descendant with the most open files: the process that holds both ends of every tunnel is the only one
/// with twice as many.
fn busiest_child(of: u32) -> Result<u32> {
    let mut family = vec![of];
    let mut next = 0;
    while let Some(pid) = family.get(next).copied() {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        family.extend(children.unwrap_or_default().split_whitespace().flat_map(str::parse::<u32>));
        next += 1;
    }
    let open = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    family.into_iter().max_by_key(open).context("no process")
}

fn resident_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}

fn print(report: &Report) {
    println!("\nas {}, {} rounds each, in turns", report.by, report.rounds);
    println!(
        "{:26} {:>10} {:>10} {:>10} {:>13}",
        "bulk, MiB/s", "median", "fastest", "× wire", "× tinyproxy"
    );
    for row in &report.bulk {
        let part = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        // What is promised is promised of the transparent path.
        let goals = if row.name.ends_with("transparent") {
            let wire = row.to_wire.map(|ratio| verdict(ratio >= GOAL_BESIDE_THE_WIRE));
            let proxy = row.to_tinyproxy.map(|ratio| verdict(ratio >= GOAL_BESIDE_TINYPROXY));
            [wire, proxy].into_iter().flatten().collect::<Vec<_>>().join(", ")
        } else {
            String::new()
        };
        println!(
            "{:26} {:>10.0} {:>10.0} {:>10} {:>13}   {goals}",
            row.name,
            row.median_mib,
            row.fastest_mib,
            part(row.to_wire),
            part(row.to_tinyproxy),
        );
    }
    let Connection { straight_us, through_us, added_us } = report.connection;
    println!(
        "a connection, µs: straight {straight_us:.0}, through {through_us:.0}, added {added_us:.0} \
         (goal {GOAL_OF_A_CONNECTION}) {}",
        verdict(added_us <= GOAL_OF_A_CONNECTION)
    );
    println!(
        "{} idle tunnels: {:.1} MiB (goal {GOAL_OF_IDLE_TUNNELS}) {}",
        report.idle_tunnels,
        report.idle_tunnels_mib,
        verdict(report.idle_tunnels_mib <= GOAL_OF_IDLE_TUNNELS)
    );
}

fn verdict(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "MISSED" }
}
