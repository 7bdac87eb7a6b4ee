//! Replaces every number of a scenario by extreme ones: the scenario is refused with its line, or answered.
use std::ops::Range;
use weir_predict::{PredictSettings, predict};
use weir_scenario::Scenario;

const EXTREMES: [&str; 6] = ["0", "-1", "1e-300", "1e308", "18446744073709551615", "nan"];
const SCENARIOS: [(&str, &str); 4] = [
    ("fabric.toml", include_str!("every_key/fabric.toml")),
    ("timing.toml", include_str!("every_key/timing.toml")),
    ("wan.toml", include_str!("../../../examples/wan.toml")),
    ("at-x510.toml", include_str!("../../../examples/at-x510.toml")),
];

/// Returns the positions of the numbers: runs of digits and points without a letter in front, outside comments.
fn numbers(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        let mut rest = start;
        while let Some(at) = text[rest..start + code.len()].find(|c: char| c.is_ascii_digit()) {
            let begin = rest + at;
            let length = text[begin..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(0);
            let before = text[..begin].chars().next_back();
            if before.is_some_and(|c| " \"[".contains(c)) {
                found.push(begin..begin + length);
            }
            rest = begin + length;
        }
        start += line.len();
    }
    found
}

#[test]
fn extreme_numbers_are_answered_or_refused_with_their_line() {
    for (name, text) in SCENARIOS {
        Scenario::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let places = numbers(text);
        assert!(places.len() > 10, "{name}: {} numbers", places.len());
        for (place, extreme) in places.iter().flat_map(|place| EXTREMES.map(|extreme| (place, extreme))) {
            let changed = format!("{}{extreme}{}", &text[..place.start], &text[place.end..]);
            let line = 1 + text[..place.start].matches('\n').count();
            let what = || format!("line {line}, {} as {extreme}", &text[place.clone()]);
            match Scenario::parse(&changed, name) {
                Ok(scenario) => {
                    predict(&scenario, &PredictSettings::default())
                        .unwrap_or_else(|error| panic!("{name}: {}: {error}", what()));
                }
                Err(error) => {
                    let told = error.to_string();
                    let has_line = told.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
                    let has_line = has_line.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
                    assert!(has_line, "{}: refused without a line: {told}", what());
                }
            }
        }
    }
}
