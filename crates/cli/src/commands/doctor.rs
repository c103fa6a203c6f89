//! `sandbox doctor`: what this host can do, tried and not guessed.

use crate::closing::counted;
use crate::output::{self, Paint, Style};
use clap::Args;
use palisade_launch::probe::{Finding, Health, Report, doctor};
use palisade_session::{AppDirs, quarantine};
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Ends with 1 if a run with the default settings cannot work here.
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let report = doctor();
        if self.json {
            output::print_json(&report)?;
        } else {
            output::print(&text(&report))?;
            tell_of_quarantine();
        }
        Ok(if report.ready() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Not of the host, but a reason for which a command does not run here.
fn tell_of_quarantine() {
    match AppDirs::here().and_then(|places| quarantine::list(&places)) {
        Ok(entries) if entries.is_empty() => {}
        Ok(entries) => {
            let tools = counted(entries.len() as u64, "command");
            output::note(&format!("{tools} quarantined: `sandbox quarantine ls`"));
        }
        Err(error) => output::note(&error.to_string()),
    }
}

fn text(report: &Report) -> String {
    let paint = Paint::for_stdout();
    let mut text = format!("kernel {}, oldest supported {}\n", report.kernel, report.oldest_kernel);
    for finding in &report.findings {
        text.push_str(&lines(finding, paint));
    }
    text.push_str(if report.ready() {
        "`sandbox run` works here\n"
    } else {
        "`sandbox run` does not work here until you fix what is missing\n"
    });
    text
}

fn lines(finding: &Finding, paint: Paint) -> String {
    let (word, style) = match finding.health {
        Health::Works => ("works", Style::Green),
        Health::Missing => ("missing", Style::Red),
        Health::Degraded => ("without", Style::Yellow),
    };
    let word = paint.with(style, &format!("{word:<8}"));
    let mut text = format!("{word}{}: {}\n", finding.what, finding.detail);
    if finding.health != Health::Works {
        text.push_str(&format!("        needed for: {}\n", finding.needed_for));
    }
    if let Some(fix) = &finding.fix {
        text.push_str(&format!("        fix: {fix}\n"));
    }
    text
}
