//! Shows, applies and measures what the upper layer of an overlay changed in a project.
//!
//! ```sh
//! cargo run --release -p palisade-changes --example transaction -- diff PROJECT UPPER
//! ```

use palisade_changes::{
    ApplyRequest, Baseline, Layers, NoJudge, OnConflict, OnRefused, RenderOptions, Selection,
    Source, Timestamp, apply, scan, write_stat, write_unified,
};
use std::io::{BufWriter, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, project, upper, rest @ ..] = arguments.as_slice() else {
        return Err("usage: diff|stat|copy|move PROJECT UPPER [STATE]".into());
    };
    let layers = Layers::open(Path::new(project), &[Path::new(upper)])?;
    let start = Instant::now();
    let mut out = BufWriter::new(std::io::stdout().lock());
    match (command.as_str(), rest) {
        ("diff", _) => {
            write_unified(&layers, &scan(&layers)?, RenderOptions::default(), &mut out)?;
        }
        ("stat", _) => write_stat(&layers, &scan(&layers)?, false, &mut out)?,
        ("copy", [state]) => apply_all(&layers, Path::new(state), Source::Copy)?,
        ("move", [state]) => apply_all(&layers, Path::new(state), Source::Move)?,
        _ => return Err("unknown command".into()),
    }
    out.flush()?;
    eprintln!("{command}: {:.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

fn apply_all(layers: &Layers, state: &Path, source: Source) -> Outcome {
    let state = std::fs::File::open(state)?;
    // Nothing counts as a conflict.
    let baseline = Baseline::started(Timestamp { seconds: i64::MAX, nanoseconds: 0 });
    let outcome = apply(&ApplyRequest {
        layers,
        state: state.as_fd(),
        baseline: &baseline,
        selection: &Selection::all(),
        hidden: &[],
        judge: &NoJudge,
        on_conflict: OnConflict::Refuse,
        on_refused: OnRefused::ApplyRest,
        source,
    })?;
    match outcome {
        palisade_changes::Outcome::Applied(applied) => {
            eprintln!("{} paths, {} refused", applied.paths.len(), applied.refused.len());
            Ok(())
        }
        palisade_changes::Outcome::Held(held) => Err(format!("{held:?}").into()),
    }
}
