//! `weir licenses`: the licence of weir and those of the crates that are linked into it, which travel with the program.
use std::process::ExitCode;

const OWN: &str = include_str!("../../../../LICENSE");
const THIRD_PARTY: &str = include_str!("../../../../packaging/THIRD-PARTY.txt");

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    crate::output::print(&format!("{OWN}\n{THIRD_PARTY}"))?;
    Ok(ExitCode::SUCCESS)
}
