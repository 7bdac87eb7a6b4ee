//! Old names of options: they are accepted for one release, with a notice on standard error.
//!
//! One name stands for one thing: `--plot` is a page with charts, `-o` and `--out` any other file or folder that a
//! command makes, `--record` the JSON of a measurement.

/// An option that got another name.
struct RenamedOption {
    /// The command and its subcommands.
    command: &'static [&'static str],
    old: &'static str,
    new: &'static str,
}

/// All renamed options. Each old name is also an alias of the option, which does not show in the help.
const RENAMED: [RenamedOption; 4] = [
    RenamedOption { command: &["compare"], old: "--report", new: "--plot" },
    RenamedOption { command: &["experiment"], old: "--plots", new: "--plot" },
    RenamedOption { command: &["profile", "plot"], old: "--output", new: "--out" },
    RenamedOption { command: &["bench", "datapath"], old: "--write", new: "--out" },
];

/// Returns a notice for each old name among the arguments of the program.
pub(crate) fn notices(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let arguments: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
    let words = || arguments.iter().filter(|argument| !argument.starts_with('-'));
    let is_given = |option: &&RenamedOption| {
        let is_command =
            option.command.iter().all(|word| words().take(option.command.len()).any(|given| given == word));
        let is_old = |argument: &String| argument.split('=').next() == Some(option.old);
        is_command && arguments.iter().any(is_old)
    };
    let notice = |option: &RenamedOption| {
        let RenamedOption { old, new, .. } = option;
        format!("{old} is called {new} now; the next release no longer knows the old name")
    };
    RENAMED.iter().filter(is_given).map(notice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use clap::Parser as _;

    fn said(line: &str) -> Vec<String> {
        notices(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn old_names_are_accepted_with_a_notice() {
        for (line, told) in [
            ("compare --report a.html b.toml", "--report is called --plot now"),
            ("-v compare b.toml --report=a.html", "--report is called --plot now"),
            ("experiment vx-scale --plots dir", "--plots is called --plot now"),
            ("profile plot two-level-tcam --output a.html", "--output is called --out now"),
            ("bench datapath port --write dir", "--write is called --out now"),
        ] {
            let notices = said(line);
            assert!(notices.len() == 1 && notices[0].starts_with(told), "{line}: {notices:?}");
            let arguments = ["weir"].into_iter().chain(line.split(' '));
            assert!(Cli::try_parse_from(arguments).is_ok(), "{line}");
        }
        for line in
            ["compare --plot a.html b.toml", "experiment vx-scale --record a", "profile plot x -o a", "ctl show"]
        {
            assert!(said(line).is_empty(), "{line}");
        }
    }
}
