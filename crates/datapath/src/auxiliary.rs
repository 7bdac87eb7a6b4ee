//! Auxiliary connections of channels (OpenFlow 1.3.5, 6.3.7).
//!
//! An auxiliary connection is the same controller once more: role, configuration and kept packets are those of its main connection.
//! A reply goes the way its request came; packet-ins go over the auxiliary connections, those of one flow over the same one, so
//! that they stay in order; everything else that the switch says of its own accord goes over the main connection.
use crate::ChannelId;
use crate::packet::Packet;
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_packet::Field;

/// What makes a flow here: what stays the same from packet to packet of one conversation. Fields of other protocols share
/// these places (UDP ports those of TCP, ARP addresses those of IPv4).
const FLOW: [Field; 12] = [
    Field::InPort,
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
];

#[derive(Debug)]
struct Auxiliary {
    id: ChannelId,
    main: ChannelId,
    number: u8,
}

/// The auxiliary connections that are up.
#[derive(Debug, Default)]
pub(crate) struct Auxiliaries {
    list: Vec<Auxiliary>,
}

impl Auxiliaries {
    pub(crate) fn add(&mut self, id: ChannelId, main: ChannelId, number: u8) {
        self.list.push(Auxiliary { id, main, number });
    }

    /// Forgets a connection, and those it was the main one of.
    pub(crate) fn remove(&mut self, id: ChannelId) {
        self.list.retain(|auxiliary| auxiliary.id != id && auxiliary.main != id);
    }

    /// The main connection of a connection, which is itself for all but auxiliary ones.
    pub(crate) fn main_of(&self, id: ChannelId) -> ChannelId {
        self.find(id).map_or(id, |auxiliary| auxiliary.main)
    }

    /// What a features reply on a connection says (`auxiliary_id`).
    pub(crate) fn number_of(&self, id: ChannelId) -> u8 {
        self.find(id).map_or(0, |auxiliary| auxiliary.number)
    }

    /// The connection that a packet-in for a channel goes over.
    pub(crate) fn carrier(&self, main: ChannelId, packet: &Packet) -> ChannelId {
        let of_main = || self.list.iter().filter(|auxiliary| auxiliary.main == main);
        let Ok(count @ 1..) = u64::try_from(of_main().count()) else { return main };
        let chosen = usize::try_from(flow_hash(packet) % count).unwrap_or(0);
        of_main().nth(chosen).map_or(main, |auxiliary| auxiliary.id)
    }

    fn find(&self, id: ChannelId) -> Option<&Auxiliary> {
        self.list.iter().find(|auxiliary| auxiliary.id == id)
    }
}

fn flow_hash(packet: &Packet) -> u64 {
    let mut hasher = DefaultHasher::new();
    FLOW.iter().for_each(|field| packet.pipeline_field(*field).hash(&mut hasher));
    hasher.finish()
}
