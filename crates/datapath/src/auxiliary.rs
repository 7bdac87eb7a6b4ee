//! Auxiliary connections of channels (OpenFlow 1.3.5, 6.3.7).
//!
//! An auxiliary connection shares role, configuration and buffered packets with its main connection. A reply uses the
//! connection of its request. Packet-ins use the auxiliary connections; those of one flow use the same connection,
//! which keeps their order. All other asynchronous messages use the main connection.
use crate::ChannelId;
use crate::packet::PipelinePacket;
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_packet::Field;

/// Fields that are equal in all packets of a conversation; they choose the connection. Other protocols store their
/// fields in these places, too (UDP ports in those of TCP, ARP addresses in those of IPv4).
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
struct AuxiliaryConnection {
    id: ChannelId,
    main: ChannelId,
    number: u8,
}

/// The auxiliary connections that are up.
#[derive(Debug, Default)]
pub(crate) struct AuxiliaryConnections {
    list: Vec<AuxiliaryConnection>,
}

impl AuxiliaryConnections {
    pub(crate) fn add(&mut self, id: ChannelId, main: ChannelId, number: u8) {
        self.list.push(AuxiliaryConnection { id, main, number });
    }

    /// Removes a connection together with its auxiliary connections.
    pub(crate) fn remove(&mut self, id: ChannelId) {
        self.list.retain(|auxiliary| auxiliary.id != id && auxiliary.main != id);
    }

    /// Returns the main connection of an auxiliary connection. Any other connection is its own main connection.
    pub(crate) fn main_of(&self, id: ChannelId) -> ChannelId {
        self.find(id).map_or(id, |auxiliary| auxiliary.main)
    }

    /// Returns the number of a connection for the features reply (`auxiliary_id`): 0 for a main connection.
    pub(crate) fn number_of(&self, id: ChannelId) -> u8 {
        self.find(id).map_or(0, |auxiliary| auxiliary.number)
    }

    /// Returns the connection that carries a packet-in for the channel `main`, chosen by the packet's flow.
    pub(crate) fn carrier(&self, main: ChannelId, packet: &PipelinePacket) -> ChannelId {
        let of_main = || self.list.iter().filter(|auxiliary| auxiliary.main == main);
        let Ok(count @ 1..) = u64::try_from(of_main().count()) else { return main };
        let chosen = usize::try_from(flow_hash(packet) % count).unwrap_or(0);
        of_main().nth(chosen).map_or(main, |auxiliary| auxiliary.id)
    }

    fn find(&self, id: ChannelId) -> Option<&AuxiliaryConnection> {
        self.list.iter().find(|auxiliary| auxiliary.id == id)
    }
}

fn flow_hash(packet: &PipelinePacket) -> u64 {
    let mut hasher = DefaultHasher::new();
    FLOW.iter().for_each(|field| packet.pipeline_field(*field).hash(&mut hasher));
    hasher.finish()
}
