//! Blocks of a page with their commands, and the shape of a line of output.
use std::collections::BTreeSet;

/// A block of a page.
pub(super) struct Block<'a> {
    /// Line number of the fence.
    pub(super) line: usize,
    /// Word behind the fence, such as `toml`.
    pub(super) kind: &'a str,
    /// Text of the comment in front of the block, in one line.
    pub(super) comment: String,
    pub(super) lines: Vec<&'a str>,
}

/// A command with the output that the page shows.
pub(super) struct ShownCommand<'a> {
    pub(super) line: usize,
    /// The command, from the word behind `weir` on.
    pub(super) command: &'a str,
    pub(super) output: Vec<&'a str>,
}

impl Block<'_> {
    /// Returns the file that the block is the content of.
    pub(super) fn file(&self) -> Option<&str> {
        self.comment.strip_prefix("file: ")
    }

    /// Returns all commands of the block, whole, each with the output that follows it. If a line has a prompt, only
    /// lines with prompts are commands. A line that ends with a backslash goes on in the next one.
    pub(super) fn commands(&self) -> Vec<(String, Vec<&str>)> {
        let has_prompts = self.lines.iter().any(|line| is_prompt(line));
        let (mut found, mut is_open) = (Vec::<(String, Vec<&str>)>::new(), false);
        for line in &self.lines {
            let begins = if has_prompts { is_prompt(line) } else { command_of(line).is_some() };
            match found.last_mut() {
                Some((command, _)) if is_open => {
                    *command = format!("{} {}", command.trim_end_matches('\\'), line.trim())
                }
                _ if begins => {
                    let command = line.trim_start_matches(['$', '#']).trim();
                    let command = command.strip_prefix("sudo ").unwrap_or(command);
                    found.push((command.to_owned(), Vec::new()));
                }
                Some((_, output)) => output.push(line),
                None => {}
            }
            is_open = (is_open || begins) && line.ends_with('\\');
        }
        found
    }
}

/// Returns the blocks of a page.
pub(super) fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut open, mut comment) = (Vec::new(), None::<Block<'_>>, Vec::new());
    for (line, text) in (1..).zip(page.lines()) {
        let fence = text.trim_start().strip_prefix("```");
        match (open.take(), fence) {
            (None, Some(kind)) => {
                open = Some(Block { line, kind: kind.trim(), comment: comment_text(&comment), lines: Vec::new() });
            }
            (Some(block), Some(_)) => found.push(block),
            (Some(mut block), None) => {
                block.lines.push(text);
                open = Some(block);
            }
            (None, None) if text.starts_with("<!-- ") => comment = vec![text],
            // A comment ends with its last line, and what follows it is not in front of the block.
            (None, None) if comment.last().is_some_and(|last| !last.ends_with("-->")) => comment.push(text),
            (None, None) => comment.clear(),
        }
        if fence.is_some() {
            comment.clear();
        }
    }
    found
}

fn comment_text(lines: &[&str]) -> String {
    let whole = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    whole.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix("-->")).map(str::trim).unwrap_or_default().to_owned()
}

/// Returns the command in a line of a block: what follows the prompt, if it calls weir.
pub(crate) fn command_of(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches(['$', '#']).trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    line.strip_prefix("./weir ").or_else(|| line.strip_prefix("weir "))
}

fn is_prompt(line: &str) -> bool {
    line.starts_with("$ ") || line.starts_with("# ")
}

/// Returns the commands of a page. The output follows in the same block, or is the next block.
pub(super) fn shown<'a>(blocks: &[Block<'a>]) -> Vec<ShownCommand<'a>> {
    let mut found: Vec<ShownCommand<'a>> = Vec::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.kind.is_empty() && block.comment.is_empty())
    {
        let (from, mut shows) = (found.len(), false);
        for line in &block.lines {
            if let Some(command) = command_of(line) {
                found.push(ShownCommand { line: block.line, command, output: Vec::new() });
                shows = true;
            } else if is_prompt(line) {
                shows = false;
            } else if let Some(last) = found.last_mut().filter(|_| shows) {
                last.output.push(line);
            }
        }
        let follows = |next: &&Block<'_>| next.line == block.line + block.lines.len() + 2 && next.kind.is_empty();
        let next = blocks.get(at + 1).filter(follows);
        if let (Some(next), Some(last)) = (next, found[from..].last_mut())
            && last.output.is_empty()
            && !next.lines.iter().any(|line| command_of(line).is_some())
        {
            last.output.clone_from(&next.lines);
        }
    }
    found
}

/// Last lines of a run whose traffic did what was expected, on a machine that was fast enough.
const EXPECTED: [&str; 2] =
    ["The item of traffic did what was expected", "All 2 items of traffic did what was expected"];

/// Returns the lines of a page that are not among those that were printed, apart from what differs from run to run. A
/// line `...` stands for any lines, and `...` at the end of a line for its rest.
pub(super) fn missing<'a>(printed: &str, shown: &[&'a str]) -> Vec<&'a str> {
    let mut lines: BTreeSet<String> = printed.lines().map(shape).collect();
    if printed.lines().any(|line| line.starts_with("NOT FAITHFUL: ")) {
        // On a calmer machine the last line would be one of these.
        lines.extend(EXPECTED.map(shape));
    }
    // Sentences are wrapped at another word if their numbers have more digits.
    let words = printed.lines().map(shape).collect::<Vec<_>>().join(" ");
    let is_there = |line: &str| match line.trim_end().strip_suffix("...") {
        Some(begin) => lines.iter().any(|line| line.starts_with(&shape(begin))),
        None => lines.contains(&shape(line)) || words.contains(&shape(line)),
    };
    let mut is_machine = false;
    let of_program = shown.iter().filter(|line| {
        // A sentence about the machine goes on in lines that are indented further.
        is_machine = is_of_the_machine(line) || is_machine && line.starts_with("    ");
        !is_machine && !line.trim().is_empty()
    });
    of_program.filter(|line| !is_there(line)).copied().collect()
}

/// Returns true if a line says how the machine disturbed a live run.
fn is_of_the_machine(line: &str) -> bool {
    [
        "Fidelity: ",
        "  since ",
        "  advice: ",
        "  links: ",
        "  senders: ",
        "  processors: ",
        "  disturbed: ",
        "NOT FAITHFUL: ",
        "  switches with a profile: ",
        // The end of the verdict in the last line.
        "  doubtful (see Fidelity)",
    ]
    .iter()
    .any(|begin| line.starts_with(begin))
}

/// Returns a line without what differs from run to run: numbers, their units of time, addresses of interfaces, the
/// machine, the kind of build.
pub(super) fn shape(line: &str) -> String {
    let line = line.split(" cores of ").next().unwrap_or_default();
    let line = line.split("; but the machine disturbed").next().unwrap_or_default();
    let line = line.replace("debug build", "release build").replace("quick build", "release build");
    let (mut shape, mut rest, mut in_number) = (String::new(), line.trim_start(), false);
    while let Some(c) = rest.chars().next() {
        let digits = if shape.ends_with(|c: char| c.is_alphanumeric()) { 0 } else { hexadecimal(rest) };
        let goes_on = in_number && ['.', ','].contains(&c);
        let is_number = digits > 0 || c.is_ascii_digit() || goes_on;
        match (is_number, in_number) {
            (true, false) => shape.push('#'),
            (true, true) => {}
            (false, _) => shape.push(c),
        }
        in_number = is_number;
        rest = &rest[digits.max(c.len_utf8())..];
    }
    // A time below the resolution is a time, too.
    let words = shape.split_whitespace().filter(|word| *word != "<").map(|word| match word {
        "ns" | "us" | "ms" | "s" => "TIME",
        other => other,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the length of the hexadecimal number or Ethernet address at the beginning of a text; 0 if there is none.
fn hexadecimal(text: &str) -> usize {
    const ADDRESS: usize = 17;
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    let of_address = |(at, byte): (usize, &u8)| if at % 3 == 2 { *byte == b':' } else { is_hex(byte) };
    let bytes = text.as_bytes();
    if bytes.len() >= ADDRESS && bytes[..ADDRESS].iter().enumerate().all(of_address) {
        return ADDRESS;
    }
    let prefix = if text.starts_with("0x") { 2 } else { 0 };
    let digits = bytes[prefix..].iter().take_while(|byte| is_hex(byte)).count();
    // Without the prefix, only datapath ids are taken for numbers.
    if prefix > 0 && digits > 0 || digits == 16 { prefix + digits } else { 0 }
}
