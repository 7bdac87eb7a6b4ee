//! `weir licenses`: prints the licence of weir and those of the linked crates, which must accompany the program.
use std::process::ExitCode;

const OWN: &str = include_str!("../../../../LICENSE");
const THIRD_PARTY: &str = include_str!("../../../../packaging/THIRD-PARTY.txt");

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    weir_terminal::output::print(&format!("{OWN}\n{THIRD_PARTY}"))?;
    Ok(ExitCode::SUCCESS)
}
