//! Traffic of intents: matches from text, matches of the other direction, and whether two matches have a packet in
//! common.
use super::config::MAX_TRAFFIC_BYTES;
use super::error::IntentError;
use weir_openflow::model::{Match, MatchField};
use weir_openflow::text;
use weir_packet::Field;

const KEY: &str = "traffic";

/// Fields of a source and of a destination that change places in packets of the other direction.
const PAIRS: [[Field; 2]; 8] = [
    [Field::EthSrc, Field::EthDst],
    [Field::Ipv4Src, Field::Ipv4Dst],
    [Field::Ipv6Src, Field::Ipv6Dst],
    [Field::TcpSrc, Field::TcpDst],
    [Field::UdpSrc, Field::UdpDst],
    [Field::SctpSrc, Field::SctpDst],
    [Field::ArpSpa, Field::ArpTpa],
    [Field::ArpSha, Field::ArpTha],
];

/// Reads the traffic of an intent.
pub(super) fn parse(traffic: &str) -> Result<Match, IntentError> {
    let invalid = |found: String, expected: &str| IntentError::invalid(KEY, found, expected);
    if traffic.len() > MAX_TRAFFIC_BYTES {
        let found = format!("{} bytes", traffic.len());
        return Err(IntentError::invalid(KEY, found, format!("at most {MAX_TRAFFIC_BYTES} bytes")));
    }
    let matching = text::parse_match(traffic)
        .map_err(|error| invalid(format!("`{traffic}` ({error})"), "a match such as `tcp,tp_dst=80`"))?;
    for entry in &matching.fields {
        match entry {
            MatchField::Known { field, .. } if !field.is_pipeline() && !field.is_register() => {}
            MatchField::Known { field, .. } => {
                return Err(invalid(format!("`{}`", field.name()), "fields of the packet itself"));
            }
            MatchField::Raw(_) => return Err(invalid("an unknown field".to_owned(), "fields that weir knows")),
        }
    }
    matching.key_and_mask().map_err(|error| invalid(format!("`{traffic}` ({error:?})"), "a match that can occur"))?;
    Ok(matching)
}

/// Returns the match of the packets that answer: sources and destinations change places.
pub(super) fn mirrored(matching: &Match) -> Match {
    let swapped = |field: Field| {
        let pair = PAIRS.iter().find(|pair| pair.contains(&field));
        pair.map_or(field, |[a, b]| if field == *a { *b } else { *a })
    };
    let fields = matching.fields.iter().map(|entry| match entry {
        MatchField::Known { field, value, mask } => {
            MatchField::Known { field: swapped(*field), value: *value, mask: *mask }
        }
        MatchField::Raw(raw) => MatchField::Raw(raw.clone()),
    });
    Match { fields: fields.collect() }
}

/// Returns true if there can be a packet that both matches apply to.
pub(super) fn overlap(one: &Match, other: &Match) -> bool {
    // Most matches differ in a field that both have, which is cheap to see.
    let differs = |entry: &MatchField| match entry {
        MatchField::Known { field, value, mask } => other
            .get(*field)
            .is_some_and(|(known, bits)| (value ^ known) & bits & mask.unwrap_or(field.all_ones()) != 0),
        MatchField::Raw(_) => false,
    };
    if one.fields.iter().any(differs) {
        return false;
    }
    let (Ok((one, ones)), Ok((other, others))) = (one.key_and_mask(), other.key_and_mask()) else { return false };
    one.masked(&ones).masked(&others) == other.masked(&others).masked(&ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_sources_and_destinations_exchanged() {
        let there = parse("tcp,nw_src=10.0.0.1,tp_dst=80").unwrap();
        assert_eq!(text::format_match(&mirrored(&there)), "tcp,nw_dst=10.0.0.1,tp_src=80");
        assert_eq!(mirrored(&mirrored(&there)), there);
    }

    #[test]
    fn matches_that_can_meet_are_told() {
        let meet = |a, b| overlap(&parse(a).unwrap(), &parse(b).unwrap());
        assert!(meet("", "tcp") && meet("tcp,tp_dst=80", "tcp,tp_src=9") && meet("ip,nw_dst=10.0.0.0/8", "tcp"));
        assert!(!meet("tcp", "udp") && !meet("tcp,tp_dst=80", "tcp,tp_dst=81") && !meet("arp", "ip"));
        assert!(!meet("ip,nw_dst=10.0.0.0/8", "ip,nw_dst=11.0.0.0/8"));
    }

    #[test]
    fn wrong_traffic_is_refused_with_what_was_found() {
        for (text, found) in [("tcp,tp_dts=80", "tp_dts"), ("in_port=1", "in_port"), ("priority=3", "priority")] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("`traffic`: found `") && error.contains(found), "{error}");
        }
        assert!(parse(&"tcp,".repeat(400)).unwrap_err().to_string().contains("at most 1024 bytes"));
    }
}
