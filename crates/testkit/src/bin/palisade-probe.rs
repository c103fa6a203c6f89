//! The program that attempts one forbidden thing and says how it went.
//! Prints `done …` and exits 0, or prints `refused ERRNO …` and exits 1; 2 is a wrong call.
//! It must never hide a refusal by trying another way: each way is its own subcommand.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::ExitCode;
use std::time::Instant;

type Probe = fn(&[String]) -> Result<String, Failure>;

const PROBES: &[(&str, &str, Probe)] = &[
    ("read", "PATH", read),
    ("write", "PATH", write),
    ("connect", "PORT", connect),
    ("open-loop", "PATH COUNT", open_loop),
];

enum Failure {
    Refused(io::Error),
    Usage(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((name, rest)) => match PROBES.iter().find(|(known, _, _)| known == name) {
            Some((_, _, probe)) => probe(rest),
            None => Err(Failure::Usage(format!("no probe is called `{name}`"))),
        },
        None => Err(Failure::Usage("name a probe".to_owned())),
    };
    match outcome {
        Ok(what) => {
            println!("done {what}");
            ExitCode::SUCCESS
        }
        Err(Failure::Refused(error)) => {
            println!("refused {} {error}", error.raw_os_error().unwrap_or(0));
            ExitCode::from(1)
        }
        Err(Failure::Usage(problem)) => {
            eprintln!("palisade-probe: {problem}; the probes are:");
            for (name, usage, _) in PROBES {
                eprintln!("  {name} {usage}");
            }
            ExitCode::from(2)
        }
    }
}

fn argument<'a>(arguments: &'a [String], index: usize, what: &str) -> Result<&'a str, Failure> {
    arguments
        .get(index)
        .map(String::as_str)
        .ok_or_else(|| Failure::Usage(format!("{what} is missing")))
}

fn number<N: std::str::FromStr>(
    arguments: &[String],
    index: usize,
    what: &str,
) -> Result<N, Failure> {
    let text = argument(arguments, index, what)?;
    text.parse().map_err(|_| Failure::Usage(format!("{what} is not a number in range: {text}")))
}

fn read(arguments: &[String]) -> Result<String, Failure> {
    let mut content = String::new();
    File::open(argument(arguments, 0, "PATH")?)?.read_to_string(&mut content)?;
    Ok(content)
}

fn write(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(b"written by the probe\n")?;
    Ok(path.to_owned())
}

fn connect(arguments: &[String]) -> Result<String, Failure> {
    let port = number(arguments, 0, "PORT")?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    Ok(port.to_string())
}

/// Opens one file over and over and prints the nanoseconds one opening took.
fn open_loop(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let count: u32 = number(arguments, 1, "COUNT")?;
    fs::metadata(path)?;
    let start = Instant::now();
    for _ in 0..count {
        File::open(path)?;
    }
    Ok((start.elapsed().as_nanos() / u128::from(count.max(1))).to_string())
}
