//! `gpumodel merge`: folders of sweeps joined into one.

use std::path::PathBuf;
use std::process::ExitCode;

use gpumodel_core::units::FolderPurpose;
use gpumodel_report::results::SweepFiles;
use gpumodel_report::table;

use super::Outcome;
use super::sweep::{failures, means};
use super::tables::{CsvArgument, width};
use crate::{MergeRequest, merge};

/// Joins folders of `gpumodel sweep` into a new one
///
/// Cells come in the order of the folders, each once; a cell with a record in any of them is
/// done. Cells that no folder has run are left: sweep the plan into the new folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT CODES: 0 joined, even if cells failed or are left; 2 a folder that\n\
    holds no sweep or other cells, a damaged file, or cells of several versions.\n\n\
    EXAMPLES:\n  \
    gpumodel merge laptop cluster --out evaluation\n  \
    gpumodel merge parts/* --out evaluation")]
pub(crate) struct Arguments {
    /// Folders of sweeps
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The folder to write: without cells, or with those of the same merge that was interrupted
    #[arg(short = 'o', long, visible_alias = "output", value_name = "DIR")]
    out: PathBuf,
    /// Writes into a folder with other contents, which stay where no name is the same
    #[arg(long)]
    force: bool,
    /// Accepts cells of several versions of the program; the tables name the version of each
    #[arg(long)]
    mixed_versions: bool,
    #[command(flatten)]
    csv: CsvArgument,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let request = MergeRequest {
        folders: arguments.folders.clone(),
        out: arguments.out.clone(),
        mixed_versions: arguments.mixed_versions,
    };
    arguments.csv.check(&arguments.folders, &[], &["means"])?;
    FolderPurpose::Sweep.check(&request.out, arguments.force)?;
    let (done, failed) = merge(&request)?;
    let left = SweepFiles::new(&arguments.out).cells()?.len().saturating_sub(done + failed);
    let out = arguments.out.display();
    let mut said = format!("{out}: {done} cells done, {failed} failed, {left} left\n");
    said += &table::failures(&failures(&arguments.out)?, width());
    let means = means(&arguments.out)?;
    said += &table::means(&means, width());
    arguments.csv.show(&said)?;
    arguments.csv.write(&[("means", table::means_table(&means))])?;
    Ok(ExitCode::SUCCESS)
}
