//! Refuses wrong arguments in words that say what is expected.
use clap::error::ErrorKind;
use std::io::IsTerminal as _;

/// Words of Rust about numbers that it cannot read, with those of weir.
const WORDS: [(&str, &str); 5] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
];

/// Prints the problem of the command line, or the help that was asked for, and ends the process.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let said = error.render();
    let is_coloured = crate::has_colour(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
    let said = if is_coloured { said.ansi().to_string() } else { said.to_string() };
    eprint!("{}", reworded(said));
    std::process::exit(error.exit_code());
}

/// Returns the text of an error with what is expected of numbers.
fn reworded(said: String) -> String {
    WORDS.iter().fold(said, |said, (from, to)| said.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use clap::Parser as _;

    #[test]
    fn what_is_no_number_is_told_with_its_option() {
        let said = |line: &str| reworded(Cli::try_parse_from(line.split(' ')).err().unwrap().render().to_string());
        let error = said("weir controller --role slave --generation-id x");
        assert!(error.contains("'x' for '--generation-id <N>': expected a whole number"), "{error}");
        assert!(said("weir simulate a.toml --seed 1.5").contains("'1.5'"), "{error}");
    }
}
