//! Creates flow entries for comparisons with other switches, and encodes the messages that add and delete them.
use weir_openflow::model::bundle::{BundleAdd, BundleFlags, BundleId};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, PortNo};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::Field;
use weir_packet::field::{eth_type, ip_proto};

/// Fields that the entries match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryMatchKind {
    /// A destination MAC address
    Mac,
    /// IPv4 source and destination, UDP source and destination port
    Udp,
    /// An MPLS label
    Mpls,
}

/// Number of MPLS labels: they have 20 bits.
const MAX_LABELS: u32 = 1 << 20;
/// Number of addresses in the source prefix 10.0.0.0/8.
const MAX_SOURCES: u32 = 1 << 24;

impl EntryMatchKind {
    /// Returns the maximum number of different entries.
    pub(super) const fn most(self) -> u32 {
        match self {
            EntryMatchKind::Mac => u32::MAX,
            EntryMatchKind::Udp => MAX_SOURCES,
            EntryMatchKind::Mpls => MAX_LABELS,
        }
    }

    fn matching(self, number: u32) -> Match {
        match self {
            EntryMatchKind::Mac => Match::any().with(Field::EthDst, 0x0200_0000_0000_u64 | u64::from(number)),
            EntryMatchKind::Mpls => Match::any().with(Field::EthType, eth_type::MPLS).with(Field::MplsLabel, number),
            EntryMatchKind::Udp => Match::any()
                .with(Field::EthType, eth_type::IPV4)
                .with(Field::IpProto, ip_proto::UDP)
                .with(Field::Ipv4Src, 0x0a00_0000 + number)
                .with(Field::Ipv4Dst, 0xc0a8_0000_u32 + (number & 0xffff))
                .with(Field::UdpSrc, 1024 + (number & 0x7fff))
                .with(Field::UdpDst, 2048_u16),
        }
    }

    /// Returns the flow-mod that adds entry `number`.
    pub(super) fn add(self, number: u32, hard_timeout: u16) -> FlowMod {
        let output = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
        FlowMod { hard_timeout, ..FlowMod::add(10, self.matching(number), output) }
    }

    /// Returns the flow-mod that deletes entry `number`. It carries the add's instructions, which switches ignore, so
    /// that both messages have the same length.
    pub(super) fn delete(self, number: u32) -> FlowMod {
        FlowMod { command: FlowCommand::DeleteStrict, ..self.add(number, 0) }
    }
}

/// Encodes the messages that add entries. With `bundle`, each is wrapped in a bundle-add message.
///
/// # Errors
/// The version cannot carry the messages.
pub(super) fn encode(
    flows: impl Iterator<Item = FlowMod>,
    version: Version,
    bundle: Option<(BundleId, BundleFlags)>,
) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (xid, flow) in (FIRST_XID..).zip(flows) {
        let message = Message { xid, body: Body::FlowMod(flow) };
        let message = match bundle {
            None => message,
            Some((bundle, flags)) => {
                let add = BundleAdd { bundle, flags, message: Box::new(message), properties: Vec::new() };
                Message { xid, body: Body::BundleAdd(add) }
            }
        };
        codec::encode(&message, version, &mut bytes)?;
    }
    Ok(bytes)
}

/// Transaction id of the first flow-mod; lower ids are used by the client itself.
const FIRST_XID: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::session::{Session, SessionConfig, SessionEvent};
    use weir_units::Instant;

    #[test]
    fn entries_differ_and_are_well_formed() {
        for kind in [EntryMatchKind::Mac, EntryMatchKind::Udp, EntryMatchKind::Mpls] {
            let mut seen = std::collections::HashSet::new();
            for number in (0..70_000).step_by(7) {
                let matching = kind.add(number, 0).matching;
                matching.key_and_mask().unwrap();
                assert!(seen.insert(matching), "{kind:?} {number}");
            }
        }
    }

    #[test]
    fn a_switch_understands_every_message() {
        for (version, bundle) in [
            (Version::V13, None),
            (Version::V14, Some((BundleId(1), BundleFlags::ORDERED))),
            (Version::V15, Some((BundleId(1), BundleFlags::default()))),
        ] {
            let config = SessionConfig { versions: vec![version], ..SessionConfig::default() };
            let mut ours = Session::controller(config.clone(), Instant::ZERO);
            let mut theirs = Session::switch(config, Instant::ZERO);
            theirs.receive(Instant::ZERO, ours.output());
            theirs.receive(
                Instant::ZERO,
                &encode((0..9).map(|n| EntryMatchKind::Udp.add(n, 1)), version, bundle).unwrap(),
            );
            let events = std::iter::from_fn(|| theirs.next_event());
            let messages = events.filter(|event| matches!(event, SessionEvent::Message(_))).count();
            assert_eq!(messages, 9);
        }
    }
}
