//! Names of hosts that a resolver turns into addresses.

/// Maximum length of a host name in bytes, without a final dot (RFC 1035, 3.1).
const MAX_HOST_NAME: usize = 253;
/// Maximum length of a label in bytes (RFC 1035, 3.1).
const MAX_LABEL: usize = 63;

/// Returns true if `text` can be the name of a host: labels of letters, digits, `-` and `_` with dots between them. The
/// last label has a character that is no digit, so that a mistyped IPv4 address is not taken for a name.
pub fn is_host_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=MAX_LABEL).contains(&label.len()) && label.chars().all(allowed) && !label.starts_with('-')
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_HOST_NAME && text.split('.').all(is_label) && !text.rsplit('.').next().is_none_or(is_number)
}

#[cfg(test)]
mod tests {
    use super::is_host_name;

    #[test]
    fn mistyped_addresses_are_no_names() {
        for name in
            ["localhost", "controller.example", "controller.example.", "c-1.lab_2.example", "10.example", "3com"]
        {
            assert!(is_host_name(name), "{name}");
        }
        let (label, long) = ("a".repeat(64), ["a"; 128].join("."));
        for wrong in ["", ".", "a..b", "10.0.0", "10.0.0.256", "6653", "a b", "-a", "[::1", "c:1", &label, &long] {
            assert!(!is_host_name(wrong), "{wrong}");
        }
    }
}
