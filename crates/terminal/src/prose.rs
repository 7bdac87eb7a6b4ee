//! Wraps the sentences of a report so that they fit a terminal.
use crate::table::MAX_WIDTH;

/// Spaces in front of what is left of a wrapped line, in addition to those of the line.
const CONTINUED: usize = 2;

/// Returns a report with lines of at most [`MAX_WIDTH`] columns. A longer line is broken at a space; what is left of it
/// is indented more. A word that is too long stays whole.
pub fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let further = format!("\n{}", " ".repeat(indent + CONTINUED));
        let mut rest = line;
        let mut room = MAX_WIDTH;
        while let Some(place) = break_at(rest, room) {
            wrapped += &rest[..place];
            wrapped += &further;
            rest = rest[place..].trim_start_matches(' ');
            room = MAX_WIDTH.saturating_sub(indent + CONTINUED);
        }
        wrapped += rest;
    }
    wrapped
}

/// Returns where a line is broken: at the last space that leaves at most `room` columns in front, or else at the first
/// one. `None` if the line fits or has no space.
fn break_at(line: &str, room: usize) -> Option<usize> {
    let line = line.trim_end_matches('\n');
    if line.chars().count() <= room {
        return None;
    }
    let start = line.len() - line.trim_start_matches(' ').len();
    let end = line.char_indices().nth(room + 1).map_or(line.len(), |(at, _)| at);
    let before = line[start..end].rfind(' ').map(|at| start + at);
    before.or_else(|| line[start..].find(' ').map(|at| start + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_keep_their_indentation() {
        let words = "µs ".repeat(60);
        let text = format!("short\n\n  {}\n{}\n", words.trim_end(), "x".repeat(120));
        let wrapped = wrapped(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines.len(), 5, "{wrapped}");
        assert_eq!((lines[0], lines[1], lines[4].len()), ("short", "", 120));
        assert!(lines[2].starts_with("  µs") && lines[3].starts_with("    µs"), "{wrapped}");
        assert!(lines[2].chars().count() <= MAX_WIDTH && lines[2].chars().count() > MAX_WIDTH - 3, "{wrapped}");
        assert_eq!(wrapped.matches("µs").count(), 60);
        assert!(wrapped.ends_with("x\n") && lines.iter().all(|line| !line.ends_with(' ')), "{wrapped}");
    }

    #[test]
    fn a_line_of_just_the_width_stays_whole() {
        let line = format!("{} {}", "a".repeat(49), "b".repeat(50));
        assert_eq!(wrapped(&line), line);
        assert_eq!(wrapped(&format!("{line}b\n")), format!("{}\n  {}b\n", "a".repeat(49), "b".repeat(50)));
        assert_eq!(wrapped(""), "");
    }
}
