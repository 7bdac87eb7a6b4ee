//! Tests the codec with weir's own corpus, `testdata/wire`. Cases are separated by empty lines and consist of `name:
//! value` lines; `#` starts a comment.
use std::collections::BTreeMap;
use weir_openflow::model::Version;
use weir_openflow::{decode, encode};

type Case = BTreeMap<String, String>;

fn cases(file: &str) -> Vec<Case> {
    let path = weir_testing::workspace().join("testdata/wire").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let blocks = text.split("\n\n").map(|block| block.lines().filter(|line| !line.starts_with('#')));
    let cases = blocks.map(|lines| lines.map(entry).collect());
    cases.filter(|case: &Case| !case.is_empty()).collect()
}

fn entry(line: &str) -> (String, String) {
    let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("found `{line}`, expected `name: value`"));
    (name.to_owned(), value.to_owned())
}

fn bytes(case: &Case) -> Vec<u8> {
    let hex = &case["hex"];
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn messages_are_decoded_and_encoded() {
    for (file, version, least) in [("1.0.txt", Version::V10, 103), ("1.3.txt", Version::V13, 109)] {
        let cases = cases(file);
        assert!(cases.len() >= least, "{file}: {} cases", cases.len());
        for case in cases {
            let (name, bytes) = (&case["name"], bytes(&case));
            let message = decode(&bytes).unwrap_or_else(|error| panic!("{file}: {name}: {error}"));
            let mut again = Vec::new();
            encode(&message, version, &mut again).unwrap_or_else(|error| panic!("{file}: {name}: {error}"));
            assert_eq!(again, bytes, "{file}: {name}: {message:?}");
        }
    }
}

#[test]
fn bad_messages_are_refused_by_name() {
    let cases = cases("refused.txt");
    assert!(cases.len() >= 83, "{} cases", cases.len());
    for case in cases {
        let name = &case["name"];
        let error = decode(&bytes(&case)).expect_err(name);
        assert_eq!((&format!("{:?}", error.error), &error.reason), (&case["error"], &case["reason"]), "{name}");
    }
}
