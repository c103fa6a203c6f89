//! What every command that makes a sandbox does before.

#[cfg(feature = "layers-off")]
use crate::output;
use anyhow::bail;
use palisade_record::ReportFile;
use std::path::Path;

/// The file for the report, before anything runs.
pub(crate) fn report_file(path: &Path) -> anyhow::Result<ReportFile> {
    if path == Path::new("-") {
        bail!("--report -: standard output belongs to the command; name a file, or use --json");
    }
    Ok(ReportFile::prepare(path)?)
}

/// Not muted by `--quiet`: this build must not be taken for a sandbox.
#[cfg(feature = "layers-off")]
pub(crate) fn warn_of_test_build() {
    let layers = std::env::var(palisade_session::layers_off::VARIABLE).unwrap_or_default();
    let layers = if layers.is_empty() { "none" } else { &layers };
    output::note(&format!("TEST BUILD, layers off: {layers}"));
}
