//! Tokens of clients over TCP: a file with a line `ROLE TOKEN [NAME]` for each.
use super::ApiRole;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Fewest characters of a token.
const MIN_LENGTH: usize = 16;
/// Most characters of a token.
const MAX_LENGTH: usize = 256;
/// Most tokens.
const MAX_TOKENS: usize = 256;
/// Largest file in bytes.
const MAX_FILE: u64 = 128 << 10;
/// Bytes of a token that is made.
const MADE_BYTES: usize = 24;

/// A token and what it permits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Role of its clients.
    pub role: ApiRole,
    /// Name for display; without one in the file, the number of its line.
    pub name: String,
    text: String,
}

/// All tokens. None at first: then no client over TCP is admitted.
#[derive(Default)]
pub struct Tokens {
    file: Option<PathBuf>,
    list: Vec<Token>,
}

/// Reasons why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TokenError {
    #[error("tokens {path}: {error}")]
    Read { path: String, error: io::Error },
    #[error("tokens {path}: found mode {mode:04o}: all users of this machine can read the tokens (chmod 600 {path})")]
    Exposed { path: String, mode: u32 },
    #[error("tokens {path}, line {line}: {problem}")]
    Line { path: String, line: usize, problem: String },
    #[error("tokens {path}: {problem}")]
    Content { path: String, problem: String },
    #[error("the tokens are from no file that could be read again")]
    NoFile,
}

impl Tokens {
    /// Reads a file with tokens. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// The file cannot be read, can be read by all users, or a line is malformed.
    pub fn read(path: &Path) -> Result<Tokens, TokenError> {
        let shown = path.display().to_string();
        let failed = |error| TokenError::Read { path: shown.clone(), error };
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & 0o007 != 0 {
            return Err(TokenError::Exposed { path: shown, mode });
        }
        let mut text = String::new();
        file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_FILE {
            return Err(TokenError::Content { path: shown, problem: format!("found more than {MAX_FILE} bytes") });
        }
        Ok(Tokens { file: Some(path.to_owned()), list: parse(&shown, &text)? })
    }

    /// Makes one token with the role `admin`, for a server without a file. Returns it as text, too.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn make() -> io::Result<(Tokens, String)> {
        let mut bytes = [0; MADE_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = Token { role: ApiRole::Admin, name: "made at the start".to_owned(), text: text.clone() };
        Ok((Tokens { file: None, list: vec![token] }, text))
    }

    /// Reads the file of these tokens again.
    ///
    /// # Errors
    /// There is no file, or it cannot be used, for the reasons of [`Tokens::read`].
    pub fn read_again(&self) -> Result<Tokens, TokenError> {
        self.file.as_deref().map_or(Err(TokenError::NoFile), Tokens::read)
    }

    /// Returns the token that a client gave. Takes as long for each text of the same length, so that a client cannot
    /// find out a token by the time of answers.
    pub fn find(&self, given: &str) -> Option<&Token> {
        self.list.iter().fold(None, |found, token| if is_equal(&token.text, given) { Some(token) } else { found })
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn parse(path: &str, text: &str) -> Result<Vec<Token>, TokenError> {
    let mut list: Vec<Token> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let wrong = |problem: String| TokenError::Line { path: path.to_owned(), line: number, problem };
        let token = parse_line(number, line).map_err(wrong)?;
        if list.iter().any(|earlier| earlier.text == token.text) {
            return Err(wrong("the token is also in an earlier line, expected each once".to_owned()));
        }
        if list.len() == MAX_TOKENS {
            return Err(wrong(format!("found more than {MAX_TOKENS} tokens")));
        }
        list.push(token);
    }
    if list.is_empty() {
        let problem = "found no token, expected a line ROLE TOKEN [NAME] for each".to_owned();
        return Err(TokenError::Content { path: path.to_owned(), problem });
    }
    Ok(list)
}

/// Parses `ROLE TOKEN [NAME]`. Messages do not repeat tokens, because logs show them.
fn parse_line(number: usize, line: &str) -> Result<Token, String> {
    let mut words = line.split_whitespace();
    let role = words.next().unwrap_or_default();
    let (role, _) = ApiRole::ALL
        .into_iter()
        .find(|(_, name)| *name == role)
        .ok_or_else(|| "expected ROLE TOKEN [NAME], with the role read, operate or admin".to_owned())?;
    let text = words.next().ok_or("found no token behind the role")?.to_owned();
    if !(MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) {
        return Err(format!(
            "found a token of {} characters, expected {MIN_LENGTH} to {MAX_LENGTH} (openssl rand -hex 24 makes one)",
            text.len()
        ));
    }
    // RFC 6750, 2.1: the characters of a bearer token.
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~+/=".contains(c)) {
        return Err("found a character in the token that is none of letters, digits and -._~+/=".to_owned());
    }
    let name: Vec<_> = words.collect();
    let name = if name.is_empty() { format!("line {number}") } else { name.join(" ") };
    Ok(Token { role, name, text })
}

/// Compares two texts in a time that depends on their lengths only.
fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    std::hint::black_box(differences) == 0 && one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# operators\n\nread 0123456789abcdef\nadmin ABCDEFGHIJKLMNOP-._~ the office\n";

    #[test]
    fn tokens_are_read_and_found() {
        let tokens = Tokens { file: None, list: parse("t", FILE).unwrap() };
        let found = |text: &str| tokens.find(text).map(|token| (token.role, token.name.as_str()));
        assert_eq!(found("0123456789abcdef"), Some((ApiRole::Read, "line 3")));
        assert_eq!(found("ABCDEFGHIJKLMNOP-._~"), Some((ApiRole::Admin, "the office")));
        for wrong in ["", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "ABCDEFGHIJKLMNOP"] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
        assert!(Tokens::default().find("").is_none());
    }

    #[test]
    fn malformed_files_are_refused_without_telling_tokens() {
        for (text, problem) in [
            ("", "t: found no token"),
            ("read", "line 1: found no token behind the role"),
            ("# x\nroot 0123456789abcdef", "line 2: expected ROLE TOKEN [NAME]"),
            ("read 0123456789abcde", "line 1: found a token of 15 characters, expected 16 to 256"),
            ("read 0123456789abcdef\nadmin 0123456789abcdef", "line 2: the token is also in an earlier line"),
            ("read 0123456789abcde\u{e9}x", "line 1: found a character in the token"),
        ] {
            let error = parse("t", text).err().expect(text).to_string();
            assert!(error.contains(problem) && !error.contains("0123456789"), "{error}");
        }
        let many: String = (0..=MAX_TOKENS).map(|number| format!("read 0123456789abcdef{number}\n")).collect();
        assert!(parse("t", &many).err().unwrap().to_string().contains("line 257: found more than 256 tokens"));
    }

    #[test]
    fn a_file_that_all_can_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FILE).unwrap();
        let read = |mode: u32| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            Tokens::read(file.path())
        };
        let refused = read(0o644).err().unwrap().to_string();
        assert!(refused.contains("found mode 0644") && refused.contains("chmod 600"), "{refused}");
        let tokens = read(0o640).unwrap();
        assert_eq!((tokens.len(), tokens.read_again().unwrap().len()), (2, 2));
        std::fs::write(file.path(), "read short").unwrap();
        assert!(tokens.read_again().is_err());
        let gone = Tokens::read(Path::new("/nonexistent/tokens")).err().unwrap().to_string();
        assert!(gone.starts_with("tokens /nonexistent/tokens: "), "{gone}");
    }

    #[test]
    fn tokens_that_are_made_differ() {
        let (tokens, text) = Tokens::make().unwrap();
        assert_eq!(text.len(), 2 * MADE_BYTES);
        assert_eq!(tokens.find(&text).map(|token| token.role), Some(ApiRole::Admin));
        assert_ne!(Tokens::make().unwrap().1, text);
        assert!(matches!(tokens.read_again(), Err(TokenError::NoFile)));
    }
}
