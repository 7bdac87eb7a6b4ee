//! Reads Rocketfuel's maps of providers (Spring, Mahajan and Wetherall, Measuring ISP topologies with Rocketfuel,
//! SIGCOMM 2002).
//!
//! Each line has two routers, named by city and number, and a value. In `NAME.latencies.intra` the value is the
//! latency between them in ms; in `NAME.weights.intra` it is the routing weight of the link, which is not a time.
//! Each link has a line per direction.
use super::{LinkProperties, TopologyBuilder};
use crate::TopologyError;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum latency in ms.
const MAX_MS: f64 = 10_000.0;

pub(super) fn read(text: &str, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let is_latency = builder.file.ends_with(".latencies.intra");
    if !is_latency && !builder.file.ends_with(".weights.intra") {
        let problem = "found neither `.latencies.intra` nor `.weights.intra` at the name's end: are its numbers times?";
        return Err(builder.error(None, problem));
    }
    // Value and line of each link seen, by direction; the line is set to 0 once both directions were seen.
    let mut seen: HashMap<(&str, &str), (f64, usize)> = HashMap::new();
    for (line, content) in text.lines().enumerate().map(|(at, content)| (at + 1, content)) {
        let mut words = content.split_whitespace();
        let Some(from) = words.next() else { continue };
        let rest = [words.next(), words.next(), words.next()];
        let [Some(to), Some(number), None] = rest else {
            return Err(builder.error(Some(line), format!("found `{content}`, expected NAME NAME NUMBER")));
        };
        let expected = || format!("found `{number}`, expected a number from 0 to {MAX_MS}");
        let parsed = number.parse::<f64>().ok().filter(|number| (0.0..=MAX_MS).contains(number));
        let value = parsed.ok_or_else(|| builder.error(Some(line), expected()))?;
        for name in [from, to] {
            if !builder.known.contains_key(name) {
                builder.node(name, Some(&name.replace('+', " ")), None, Some(line))?;
            }
        }
        match seen.get_mut(&(to, from)) {
            // The line is the other direction of an existing link, but only once: a further line is a parallel link.
            Some((back, first)) if *first != 0 => {
                if (*back - value).abs() > f64::EPSILON {
                    let problem = format!("found {value} from {from} to {to}, expected {back} as line {first} has it");
                    return Err(builder.error(Some(line), problem));
                }
                *first = 0;
            }
            _ => {
                seen.insert((from, to), (value, line));
                let delay = is_latency.then(|| Duration::from_secs_f64(value / 1e3));
                builder.link([from, to], LinkProperties { rate: None, delay, ports: None }, Some(line))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use std::time::Duration;

    #[test]
    fn both_directions_are_one_link() {
        let text = "Perth,+Australia1 Sydney2 15\nSydney2 Perth,+Australia1 15\nSydney2 Sydney3 1\n\n";
        let found = read_text(text, "1.latencies.intra").unwrap();
        assert_eq!(
            found.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
            ["Perth, Australia1", "Sydney2", "Sydney3"]
        );
        assert_eq!(found.links.len(), 2);
        assert_eq!((found.links[0].delay, found.links[1].line), (Some(Duration::from_millis(15)), Some(3)));
        let weights = read_text(text, "1.weights.intra").unwrap();
        assert!(weights.links.iter().all(|link| link.delay.is_none()), "weights are no times");
        let twice = read_text("a b 1\nb a 1\na b 1\nb a 1\n", "1.weights.intra").unwrap();
        assert_eq!((twice.links.len(), twice.duplicates()), (2, vec![1]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, problem) in [
            ("a b 1\nb a\n", ":2: found `b a`, expected NAME NAME NUMBER"),
            ("a b 1 2\n", ":1: found `a b 1 2`, expected NAME NAME NUMBER"),
            ("a b -1\n", ":1: found `-1`, expected a number from 0 to 10000"),
            ("a b NaN\n", ":1: found `NaN`, expected a number from 0 to 10000"),
            ("a a 1\n", ":1: link: found `a` at both ends, expected two nodes"),
            ("a b 1\nb a 2\n", ":2: found 2 from b to a, expected 1 as line 1 has it"),
        ] {
            let error = read_text(text, "1.latencies.intra").unwrap_err();
            assert_eq!(error.to_string(), format!("1.latencies.intra{problem}"));
        }
        assert!(read_text("a b 1\n", "1.intra").unwrap_err().problem().contains("are its numbers times?"));
        assert!(
            read_text("a b 1\n", "a.txt")
                .unwrap_err()
                .problem()
                .starts_with("found the ending `txt`, expected .graphml")
        );
    }
}
