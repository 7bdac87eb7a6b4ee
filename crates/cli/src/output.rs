//! Prints what a command found on standard output, so that no result is lost without an error.
use anyhow::Context as _;
use std::io::{ErrorKind, Write};

/// Prints `text` and makes sure that it left the process. A reader that closed its end (`weir ... | head`) has what it wanted: no
/// error.
///
/// # Errors
/// Standard output takes no more, such as on a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_to(std::io::stdout().lock(), text).context("cannot write the whole result to standard output")
}

fn print_to(mut out: impl Write, text: &str) -> std::io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_is_gone_is_no_error() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        // Small enough to be held back until the flush.
        let error = print_to(std::io::LineWriter::new(full), "without an end of line").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        print_to(writer, "text\n").unwrap();
    }
}
