//! Breaks one line of a valid file after the other and checks what the error says, for several tests.
use weir_scenario::Scenario;

/// A text of the valid file, its replacement, the line of the error, and its message.
pub(crate) type WrongLine = (&'static str, &'static str, usize, &'static str);

/// Checks that every replacement is refused with its line and message.
#[track_caller]
pub(crate) fn each_says_where_and_why(right: &str, cases: &[WrongLine]) {
    for (found, replaced, line, message) in cases {
        assert!(right.contains(found), "{found}");
        let error = Scenario::parse(&right.replacen(found, replaced, 1), "wrong.toml").expect_err(replaced);
        assert_eq!(error.to_string(), format!("wrong.toml:{line}: {message}"), "{replaced}");
    }
}
