//! Draws matches on fields that a frame of the case has, exact or masked.
use super::CaseGenerator;
use super::frames::SampleFrame;
use weir_openflow::model::{FlowMod, Match};
use weir_openflow::{Body, Version};
use weir_packet::Field;
use weir_packet::field::{Prerequisite, VLAN_PRESENT};

/// Maximum number of fields drawn for a match, without their prerequisites.
const FIELDS: u32 = 4;

/// Fields of OpenFlow 1.0's match.
const FIELDS_OF_1_0: [Field; 18] = [
    Field::InPort,
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::VlanPcp,
    Field::IpDscp,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::ArpOp,
    Field::ArpSpa,
];

impl CaseGenerator {
    /// Draws a match that, most often, a frame of the case fulfils.
    pub(super) fn matching(&mut self) -> Match {
        let sample = self.dice.pick(&self.samples).clone();
        loop {
            let matching = self.match_of(&sample);
            let flow = FlowMod::add(1, matching.clone(), Vec::new());
            // A match that the version cannot encode is drawn again.
            if crate::case::bytes_of(&Body::FlowMod(flow), 1, self.version).is_some() {
                return matching;
            }
        }
    }

    fn match_of(&mut self, sample: &SampleFrame) -> Match {
        let mut fields = Vec::new();
        for _ in 0..self.dice.between(0, FIELDS) {
            let field = self.match_field();
            if self.dice.one_in(12) || has(sample, field) {
                need(field, &mut fields);
            }
        }
        let mut matching = Match::any();
        for field in fields {
            matching = self.with(matching, sample, field);
        }
        matching
    }

    fn match_field(&mut self) -> Field {
        if self.version == Version::V10 {
            return *self.dice.pick(&FIELDS_OF_1_0);
        }
        // Standard fields are more frequent than extensions.
        loop {
            let field = *self.dice.pick(&Field::ALL);
            // Fields that few switches support are less frequent than the rest.
            let is_rare =
                matches!(field, Field::InPhyPort | Field::PacketType | Field::ActsetOutput | Field::Ipv6Exthdr);
            let times = if is_rare || field as u8 >= 128 { 15 } else { 1 };
            if self.dice.one_in(times) {
                return field;
            }
        }
    }

    /// Adds a field to a match, with the frame's value or, sometimes, another.
    fn with(&mut self, matching: Match, sample: &SampleFrame, field: Field) -> Match {
        let mut value = sample.key.get(field);
        if self.dice.one_in(15) {
            value = self.dice.wide() & field.all_ones();
        }
        if self.dice.one_in(200) {
            // Bits beyond the field, or outside the mask.
            return matching.with_masked(field, value, self.dice.wide() & field.all_ones());
        }
        if field == Field::VlanVid && self.version != Version::V10 && value != 0 && self.dice.one_in(4) {
            return matching.with_masked(field, VLAN_PRESENT, VLAN_PRESENT);
        }
        if field.is_maskable() && self.dice.one_in(3) {
            let mask = self.mask(field);
            return matching.with_masked(field, value & mask, mask);
        }
        matching.with(field, value)
    }

    fn mask(&mut self, field: Field) -> u128 {
        let ones = field.all_ones();
        match self.dice.between(0, 3) {
            // A prefix.
            0 | 1 => ones & !(ones >> 1 >> self.dice.between(0, field.bits() - 1)),
            2 => ones,
            _ => self.dice.wide() & ones,
        }
    }
}

/// Returns true if the frame certainly has the field.
fn has(sample: &SampleFrame, field: Field) -> bool {
    let key = &sample.key;
    let eth_in = |types: &[u16]| types.iter().any(|kind| u128::from(*kind) == key.get(Field::EthType));
    let proto = |number: u8| key.get(Field::IpProto) == number.into();
    match field.prerequisite() {
        Prerequisite::None | Prerequisite::InPort => true,
        Prerequisite::VlanPresent => key.get(Field::VlanVid) != 0,
        Prerequisite::EthType(types) => eth_in(types),
        Prerequisite::IpProto(number) => eth_in(&[0x0800, 0x86dd]) && proto(number),
        Prerequisite::Icmpv4 => eth_in(&[0x0800]) && proto(1),
        Prerequisite::Icmpv6 => eth_in(&[0x86dd]) && proto(58),
        Prerequisite::Icmpv6Type(types) => {
            eth_in(&[0x86dd]) && proto(58) && types.iter().any(|kind| u128::from(*kind) == key.get(Field::Icmpv6Type))
        }
    }
}

/// Adds a field after its prerequisites.
fn need(field: Field, fields: &mut Vec<Field>) {
    let needed: &[Field] = match field.prerequisite() {
        Prerequisite::None => &[],
        Prerequisite::VlanPresent => &[Field::VlanVid],
        Prerequisite::InPort => &[Field::InPort],
        Prerequisite::EthType(_) => &[Field::EthType],
        Prerequisite::IpProto(_) | Prerequisite::Icmpv4 | Prerequisite::Icmpv6 => &[Field::EthType, Field::IpProto],
        Prerequisite::Icmpv6Type(_) => &[Field::EthType, Field::IpProto, Field::Icmpv6Type],
    };
    for field in needed.iter().chain([&field]) {
        if !fields.contains(field) {
            fields.push(*field);
        }
    }
}
