//! Reads text files written by people, and reports encoding errors with their line.
use std::io::{self, ErrorKind};
use std::path::Path;

/// Reads a file of UTF-8 text.
///
/// # Errors
/// The file cannot be read. Of kind `InvalidData`: the line and the first byte that is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(std::fs::read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let problem = format!("line {line}: found byte 0x{:02x}, expected UTF-8 text", bytes[at]);
        io::Error::new(ErrorKind::InvalidData, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_with_its_line() {
        let file = std::env::temp_dir().join(format!("weir-text-{}", std::process::id()));
        std::fs::write(&file, b"name = \"a\"\n# caf\xe9\n").unwrap();
        let error = read_text(&file).unwrap_err();
        std::fs::write(&file, "caf\u{e9}").unwrap();
        assert_eq!(read_text(&file).unwrap(), "caf\u{e9}");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "line 2: found byte 0xe9, expected UTF-8 text");
        assert_eq!(read_text(&file).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
