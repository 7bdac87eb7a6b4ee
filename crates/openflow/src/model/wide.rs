//! Serialises values up to 128 bits wide as JSON: IPv6 addresses, extended registers and their masks.
//!
//! A value of up to 64 bits becomes a number. A wider one becomes a string such as
//! `"0xfd000000000000000000000000000001"`, because in-memory JSON values cannot hold larger numbers, and most JSON
//! readers would round them.
use serde::Serializer;

/// Serialises one value.
///
/// # Errors
/// Errors of the serialiser.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn value<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*value) {
        Ok(number) => serializer.serialize_u64(number),
        Err(_) => serializer.serialize_str(&format!("{value:#x}")),
    }
}

/// Serialises an optional mask.
///
/// # Errors
/// Errors of the serialiser.
#[allow(clippy::ref_option, reason = "serde passes references to fields")]
pub(super) fn mask<S: Serializer>(mask: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    match mask {
        Some(mask) => value(mask, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::FlowCommand;
    use crate::model::group::GroupCommand;
    use crate::text;
    use serde_json::json;

    #[test]
    fn every_width_becomes_a_json_value() {
        let flow = "ipv6,ipv6_dst=fd00::1,ipv6_src=fd00::/8,nw_proto=58,xxreg0=0xf0000000000000000/0xf0000000000000000 \
                    actions=set_field:fd00::2->ipv6_dst,set_field:fe00::/ff00::->ipv6_src";
        let flow = text::parse_flow(flow, FlowCommand::Add).unwrap();
        let written = json!(flow).to_string();
        for part in [
            r#""value":"0xfd000000000000000000000000000001","mask":null"#,
            r#""value":"0xfd000000000000000000000000000000","mask":"0xff000000000000000000000000000000""#,
            r#""value":58,"mask":null"#,
            r#""value":"0xf0000000000000000","mask":"0xf0000000000000000""#,
            r#""value":"0xfd000000000000000000000000000002""#,
            r#""value":"0xfe000000000000000000000000000000","mask":"0xff000000000000000000000000000000""#,
        ] {
            // The serialiser decides the order of an object's keys.
            let found = written.contains(part) || written.contains(&swapped(part));
            assert!(found, "expected {part} in {written}");
        }
        let group = "group_id=1,type=indirect,bucket=actions=set_field:fd00::2->ipv6_src,output:1";
        let _ = json!(text::parse_group(group, GroupCommand::Add).unwrap());
    }

    /// Turns `"value":A,"mask":B` into `"mask":B,"value":A`.
    fn swapped(part: &str) -> String {
        part.split_once(",").map_or_else(|| part.to_owned(), |(value, mask)| format!("{mask},{value}"))
    }
}
