//! `sandbox tool list`, `show` and `check`. What a declaration says comes from a file: it is escaped when it is printed.

use super::Declared;
use crate::args::PolicyArgs;
use crate::output;
use crate::request;
use clap::Args;
use palisade_policy::tool::{Action, parse_tool};
use palisade_session::tools::{self, DeclaredTool};
use palisade_session::{Caller, SessionError, config};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    declared: Declared,
    /// Print one JSON document, with the schemas of their inputs
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let set = self.declared.load(&Caller::here()?)?;
        if self.json {
            let tools: Vec<Value> = set.tools.values().map(document).collect();
            output::print_json(&json!({ "tools": tools, "ignored": set.ignored }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if set.tools.is_empty() {
            output::note("no tool is declared; `sandbox tool declare FILE` keeps a declaration");
        }
        let width = set.tools.keys().map(String::len).max().unwrap_or_default();
        let line = |tool: &DeclaredTool| {
            let declaration = &tool.declaration;
            let description = declaration.description.lines().next().unwrap_or_default();
            format!("{:width$}  {:7}  {description}", declaration.name, tool.origin.word())
        };
        output::print_lines(set.tools.values().map(line))?;
        for ignored in &set.ignored {
            output::note(&format!("{} not used: {}", ignored.path.display(), ignored.why));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A declaration, and where it comes from.
pub(super) fn document(tool: &DeclaredTool) -> Value {
    let mut shown = tool.declaration.to_json();
    shown["origin"] = json!(tool.origin);
    shown["file"] = json!(tool.file.path.to_string_lossy());
    shown["sha256"] = json!(tool.digest);
    shown
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    declared: Declared,
    /// Print one JSON document, with the policy that counts
    #[arg(long)]
    json: bool,
    /// The tool
    name: String,
}

impl Show {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let set = self.declared.load(&caller)?;
        let tool = tools::find(&set, &self.name)?;
        let asked = request::policy_request(&caller, &PolicyArgs::default())?;
        let asked = tools::request_of(tool, asked);
        let (asked, missing) = tools::with_approvals(&caller, tool, asked)?;
        let needs: Vec<&str> = missing.iter().map(|it| it.what.as_str()).collect();
        let policy = match needs.is_empty() {
            true => Some(config::load(&caller, &asked)?.merged),
            false => None,
        };
        if self.json {
            let mut shown = document(tool);
            shown["needsApproval"] = json!(needs);
            shown["policy"] = json!(policy.map(|merged| merged.policy));
            output::print_json(&shown)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::print_lines(lines(tool))?;
        if !needs.is_empty() {
            let name = &self.name;
            output::note(&format!(
                "{name} does not run before a person agrees to {}: `sandbox tool approve {name}`",
                needs.join(", ")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// For a person, who decides by it.
pub(super) fn lines(tool: &DeclaredTool) -> Vec<String> {
    let declaration = &tool.declaration;
    let mut lines = vec![format!("{}: {}", declaration.name, declaration.description.trim())];
    lines.push(format!("  declared in {} ({})", tool.file.path.display(), tool.origin.word()));
    match &declaration.action {
        Action::Command { template, stdin } => {
            lines.push(format!("  command {}", template.to_json()));
            lines.extend(stdin.iter().map(|name| format!("  standard input {{{name}}}")));
        }
        Action::BuiltIn(built_in) => lines.push(format!("  built-in {}", built_in.name())),
    }
    let schema = declaration.input.to_json();
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let type_ = property["type"].as_str().unwrap_or_default();
        let needed = if required(name) { ", required" } else { "" };
        let about = property["description"].as_str().unwrap_or_default();
        lines.push(format!("  input {name} ({type_}{needed}) {about}").trim_end().to_owned());
    }
    let patterns = &declaration.patterns;
    lines.extend(patterns.allowed().map(|pattern| format!("  allowed pattern {pattern}")));
    lines.extend(patterns.blocked().map(|pattern| format!("  blocked pattern {pattern}")));
    let policy = declaration.policy.to_json();
    for (key, value) in
        policy.as_object().into_iter().flatten().filter(|(key, _)| *key != "version")
    {
        lines.push(format!("  policy {key}: {value}"));
    }
    lines
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Print what is wrong as one JSON document
    #[arg(long)]
    json: bool,
    /// The declarations
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Check {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut problems = Vec::new();
        let mut good = Vec::new();
        for path in &self.files {
            let file = config::read(path)?;
            match parse_tool(&file.text, &path.to_string_lossy()) {
                Ok(declaration) => good.push(format!("{}: {}", path.display(), declaration.name)),
                Err(found) => problems.extend(found),
            }
        }
        if self.json {
            output::print_json(&json!({ "problems": problems }))?;
        } else {
            output::print_lines(good)?;
        }
        match problems.is_empty() {
            true => Ok(ExitCode::SUCCESS),
            false if self.json => Ok(ExitCode::from(crate::OWN_FAILURE)),
            false => Err(SessionError::ToolDeclaration(problems).into()),
        }
    }
}
