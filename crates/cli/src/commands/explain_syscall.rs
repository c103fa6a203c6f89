//! `sandbox explain-syscall`: what the filter of a run answers to a system call, by which rule and
//! why. It asks the filter that the plan holds, and must never have an opinion of its own.

use crate::args::{HelpArgs, HelpEnd, PolicyArgs, help_end};
use crate::output;
use crate::request::policy_request;
use clap::{Args, ValueEnum};
use palisade_bpf::{
    Arch, BaselineOptions, CallAnswer, CallVerdict, Explanation, Notice, Profile, Refusal,
};
use palisade_policy::Provenance;
use palisade_session::Caller;
use palisade_session::filter::{Filter, SetBy, filter};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

const HELP_END: HelpEnd = help_end!(
    "\
Examples:
  sandbox explain-syscall mount
  sandbox explain-syscall --network host socket
  sandbox explain-syscall --list

Exit codes: 0 allowed, 1 denied, 2 decided for each call, by its arguments or by the broker;
125 sandbox failed, or there is no such system call."
);

const DECIDED_FOR_EACH_CALL: u8 = 2;

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
pub(crate) struct ExplainSyscall {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Architecture of the program [default: this machine's]
    #[arg(long, value_enum, value_name = "ARCH")]
    arch: Option<ArchName>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// List all groups of system calls
    #[arg(long, conflicts_with = "syscall")]
    list: bool,

    /// The system call, by name or number
    #[arg(value_name = "NAME|NUMBER", required_unless_present = "list")]
    syscall: Option<String>,

    #[command(flatten)]
    help: HelpArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ArchName {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

impl From<ArchName> for Arch {
    fn from(name: ArchName) -> Self {
        match name {
            ArchName::X86_64 => Self::X86_64,
            ArchName::Aarch64 => Self::Aarch64,
        }
    }
}

impl ExplainSyscall {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let arch = self.arch.map_or(Arch::native(), Arch::from);
        let filter = self.filter()?;
        let rules = filter.rules.clone().map(|profile| profile.on(arch));
        // A misspelt name is one with or without a filter.
        let profile = rules.clone().unwrap_or_else(|| unfiltered(arch));
        let asked = self.syscall.as_deref().map(|word| Asked::find(&profile, word)).transpose()?;
        match (rules, asked) {
            (None, _) if self.json => output::print_json(&json!({ "filtered": false }))?,
            (None, _) => output::print("no filter at isolation level 0: every call is allowed\n")?,
            (Some(_), Some(asked)) => return asked.tell(arch, &filter, self.json),
            (Some(profile), None) => list(&profile, self.json)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What `run` would use with these options.
    fn filter(&self) -> anyhow::Result<Filter> {
        let caller = Caller::here()?;
        let filter = filter(&caller, &policy_request(&caller, &self.policy)?)?;
        for note in &filter.policy.notes {
            output::note(&note.to_string());
        }
        Ok(filter)
    }
}

fn unfiltered(arch: Arch) -> Profile {
    Profile::baseline(BaselineOptions::new(arch))
}

/// What was asked about.
enum Asked {
    Known(Explanation),
    /// In no table of the architecture.
    Unknown(u32),
}

impl Asked {
    fn find(profile: &Profile, word: &str) -> Result<Self, palisade_bpf::Error> {
        let number = match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => word.parse(),
        };
        Ok(match number {
            Ok(number) => profile.explain_number(number).map_or(Self::Unknown(number), Self::Known),
            Err(_) => Self::Known(profile.explain(word)?),
        })
    }

    fn tell(&self, arch: Arch, filter: &Filter, as_json: bool) -> anyhow::Result<ExitCode> {
        match self {
            Self::Known(explanation) if as_json => {
                let set_by = filter.set_by(explanation);
                output::print_json(&OnArch { arch, explanation, set_by })?;
            }
            Self::Known(explanation) => {
                output::print_lines(lines(explanation, arch, &filter.set_by(explanation)))?;
            }
            Self::Unknown(number) if as_json => output::print_json(&json!({
                "arch": arch, "number": number, "verdict": CallVerdict::Refused,
            }))?,
            Self::Unknown(number) => output::print(&format!(
                "{number} on {}: denied with ENOSYS, not logged\n  newer than the tables: programs \
                 fall back, as on an older kernel\n",
                arch_name(arch),
            ))?,
        }
        Ok(match self {
            Self::Known(Explanation { number: Some(_), verdict, .. }) => match verdict {
                CallVerdict::Allowed => ExitCode::SUCCESS,
                CallVerdict::Refused => ExitCode::FAILURE,
                CallVerdict::Brokered | CallVerdict::ByArgument => {
                    ExitCode::from(DECIDED_FOR_EACH_CALL)
                }
            },
            Self::Known(Explanation { number: None, .. }) | Self::Unknown(_) => ExitCode::FAILURE,
        })
    }
}

#[derive(Serialize)]
struct OnArch<'a> {
    arch: Arch,
    #[serde(flatten)]
    explanation: &'a Explanation,
    #[serde(rename = "setBy")]
    set_by: Vec<SetBy>,
}

fn arch_name(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86_64",
        Arch::Aarch64 => "aarch64",
    }
}

fn lines(explanation: &Explanation, arch: Arch, set_by: &[SetBy]) -> Vec<String> {
    let Explanation { name, number, verdict, group, reason, list, switches: _, rules } =
        explanation;
    let arch = arch_name(arch);
    let Some(number) = number else {
        let none = format!("{name}: {arch} has no such call");
        return vec![none, format!("  group {group}: {reason}")];
    };
    let verdict = match (verdict, &rules[..]) {
        (_, [only]) => in_words(only.answer),
        (CallVerdict::Refused, _) => "denied".to_owned(),
        (CallVerdict::Allowed, _) => "allowed".to_owned(),
        (CallVerdict::Brokered, _) => "performed by the broker".to_owned(),
        (CallVerdict::ByArgument, _) => "depends on its arguments".to_owned(),
    };
    let mut lines = vec![format!("{name}, number {number} on {arch}: {verdict}")];
    for rule in rules.iter().filter(|_| rules.len() > 1) {
        let answer = in_words(rule.answer);
        lines.push(match rule.when {
            "" => format!("  otherwise: {answer}"),
            when => format!("  if {when}: {answer}"),
        });
    }
    lines.extend(list.iter().map(|list| format!("  {list}")));
    for SetBy { key, sources } in set_by {
        let sources: Vec<String> = sources.iter().map(Provenance::to_string).collect();
        lines.push(format!("  {key}: set by {}", sources.join("; ")));
    }
    lines.push(format!("  group {group}: {reason}"));
    lines
}

fn in_words(answer: CallAnswer) -> String {
    match answer {
        CallAnswer::Allow => "allowed".to_owned(),
        CallAnswer::Broker => "performed by the broker, if it may be".to_owned(),
        CallAnswer::KillProcess => "kills the process".to_owned(),
        CallAnswer::Refuse(refusal) => {
            let Refusal { errno, notice } = refusal;
            let errno = refusal.errno_name().map_or_else(|| errno.to_string(), str::to_owned);
            let told = match notice {
                Notice::Quiet => "not logged",
                Notice::Logged => "logged",
                Notice::Suspicious => "logged as suspicious",
            };
            format!("denied with {errno}, {told}")
        }
    }
}

/// All groups with their calls on this architecture.
fn list(profile: &Profile, as_json: bool) -> anyhow::Result<()> {
    let explanations: Vec<Explanation> =
        profile.explanations().filter(|explained| explained.number.is_some()).collect();
    if as_json {
        return output::print_json(&explanations);
    }
    let mut text = String::new();
    for group in explanations.chunk_by(|a, b| a.group == b.group) {
        text += &format!("{}: {}\n", group[0].group, group[0].reason);
        for alike in group.chunk_by(|a, b| a.verdict == b.verdict) {
            let names: Vec<&str> = alike.iter().map(|explained| explained.name).collect();
            let verdict = match alike[0].verdict {
                CallVerdict::Allowed => "allowed",
                CallVerdict::Refused => "denied",
                CallVerdict::Brokered => "by the broker",
                CallVerdict::ByArgument => "by argument",
            };
            text += &format!("  {verdict}: {}\n", names.join(" "));
        }
    }
    output::print(&text)
}
