//! `cargo xtask attacks`: for every attack, whether it works on the bare host, whether it fails inside, and which
//! layers stop it. A red line fails the task, and so does an attack or a layer without a description.

mod corpus;
mod page;
mod table;
mod text;

use anyhow::{Result, bail};
use clap::Args;

use crate::programs::Build;
use crate::results::Results;
use crate::suite::{Progress, Races};
use crate::testing::{self, Request, RunAs};
use crate::tree::{self, CheckArguments};
use table::Table;

const PAGE: &str = "docs/attacks.md";

/// Arguments of `cargo xtask attacks`.
#[derive(Args)]
pub(crate) struct AttacksArguments {
    /// Try every race a million times; takes an hour or more.
    #[arg(long)]
    long: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Run only attacks whose test's name contains this; docs/attacks.md is left as it is.
    #[arg(long)]
    filter: Option<String>,
    /// Who attacks; by default everyone the caller can be.
    #[arg(long = "as", value_enum)]
    run_as: Option<RunAs>,
    /// Install nothing and create no user.
    #[arg(long)]
    no_setup: bool,
    /// Run nothing: write docs/attacks.md from the results of the last `cargo xtask test`.
    #[arg(long, conflicts_with_all = ["long", "filter", "run_as", "no_setup"])]
    from_last_run: bool,
    /// Run nothing: fail if docs/attacks.md differs from the results of the last `cargo xtask test`.
    #[arg(long, conflicts_with_all = ["long", "filter", "run_as", "no_setup", "from_last_run"])]
    check: bool,
}

/// Runs the task.
pub(crate) fn attacks(arguments: &AttacksArguments) -> Result<()> {
    let corpus = corpus::load()?;
    if arguments.check || arguments.from_last_run {
        let table = Table::whole(&corpus, &Results::load()?);
        show(&table, arguments)?;
        refuse_red(&table)?;
        return write_page(&table, CheckArguments { check: arguments.check });
    }
    let found = testing::run(&Request {
        filter: arguments.filter.as_deref(),
        target: Some(table::TARGET),
        install: !arguments.no_setup,
        run_as: arguments.run_as,
        races: if arguments.long { Races::Long } else { Races::Short },
        progress: Progress::Errors,
        build: Build::Debug,
        gate: None,
    })?;
    let is_whole = arguments.filter.is_none();
    let mut table = if is_whole {
        Table::whole(&corpus, &found.results)
    } else {
        Table::part(&corpus, &found.results)
    };
    if !found.leaks.is_empty() {
        for leak in &found.leaks {
            eprintln!("left behind: {leak}");
        }
        table.wrong.push(format!("{} things left behind", found.leaks.len()));
    }
    show(&table, arguments)?;
    refuse_red(&table)?;
    if is_whole { write_page(&table, CheckArguments { check: false }) } else { Ok(()) }
}

fn show(table: &Table, arguments: &AttacksArguments) -> Result<()> {
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(table)?);
    } else {
        text::print(table);
    }
    Ok(())
}

fn refuse_red(table: &Table) -> Result<()> {
    match table.wrong.len() {
        0 => Ok(()),
        count => bail!("{count} red lines"),
    }
}

fn write_page(table: &Table, arguments: CheckArguments) -> Result<()> {
    tree::write_or_check(&tree::root().join(PAGE), &page::render(table), arguments)
}
