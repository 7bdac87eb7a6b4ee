//! `weir man`: writes the manual pages, made from the commands' own description.
use super::Cli;
use anyhow::Context;
use clap::{Command, CommandFactory as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Folder to write the pages to, weir.1 and one for each subcommand; it is created if missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let pages = pages()?;
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    for (name, text) in &pages {
        let file = folder.join(name);
        weir_terminal::output::write_file(&file, text).with_context(|| format!("{}: cannot write", file.display()))?;
    }
    weir_terminal::output::print(&format!("{} pages are in {}\n", pages.len(), Path::display(folder)))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the names and texts of all pages: of the command, its subcommands and theirs.
fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).manual("weir").render(&mut page)?;
    pages.push((format!("{name}.1"), String::from_utf8(page)?));
    let mut subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    subcommands.try_for_each(|sub| add(sub, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        let page = |name: &str| &pages.iter().find(|(page, _)| page == name).unwrap_or_else(|| panic!("{name}")).1;
        for command in Cli::command().get_subcommands() {
            let page = page(&format!("weir-{}.1", command.get_name()));
            assert!(page.starts_with(".ie") || page.contains(".TH weir"), "{page}");
        }
        assert!(page("weir-switch.1").contains("fail\\-mode"));
        assert!(page("weir-ctl-save.1").contains("configuration"));
        assert!(page("weir-ctl-vs-add.1").contains("virtual switch"));
        assert!(!pages.iter().any(|(name, _)| name.contains("help")));
    }
}
