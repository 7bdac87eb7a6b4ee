//! What tables can do (OpenFlow 1.3.5, 7.3.5.5): every table the same, but that goto leads only to later ones.
use super::multipart::table_name;
use crate::Datapath;
use weir_openflow::model::TableId;
use weir_openflow::model::multipart::{OxmId, TableFeatures, TableProperty, TypeId};
use weir_packet::Field;

/// `OFPIT_*`: goto, write-metadata, write-, apply-, clear-actions.
const INSTRUCTIONS: [u16; 5] = [1, 2, 3, 4, 5];
/// `OFPIT_GOTO_TABLE`, which the last table has not.
const GOTO: u16 = 1;
/// `OFPAT_*`: output, copy TTL out and in, set and decrement MPLS TTL, push and pop VLAN and MPLS, set queue, set and decrement
/// IP TTL, set field, push and pop PBB.
const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27];
const OPENFLOW_BASIC: u16 = 0x8000;

impl Datapath {
    pub(super) fn table_features(&self) -> Vec<TableFeatures> {
        (0..self.config.n_tables).map(|table| self.features_of(table)).collect()
    }

    fn features_of(&self, table: u8) -> TableFeatures {
        let has_next = table + 1 < self.config.n_tables;
        let next = (table + 1..self.config.n_tables).map(TableId).collect();
        let instructions = INSTRUCTIONS.into_iter().filter(|kind| has_next || *kind != GOTO);
        let actions = || ACTIONS.map(TypeId::Standard).to_vec();
        // A property for misses that is left out is as the ordinary one.
        let miss = false;
        TableFeatures {
            table: TableId(table),
            command: 0,
            features: 0,
            name: table_name(TableId(table)),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            config: 0,
            max_entries: self.config.max_entries,
            properties: vec![
                TableProperty::Instructions { miss, ids: instructions.map(TypeId::Standard).collect() },
                TableProperty::NextTables { miss, tables: next },
                TableProperty::WriteActions { miss, ids: actions() },
                TableProperty::ApplyActions { miss, ids: actions() },
                TableProperty::Match(fields(|_| true, Field::is_maskable)),
                TableProperty::Wildcards(fields(|_| true, |_| false)),
                TableProperty::WriteSetField { miss, fields: fields(Field::is_settable, |_| false) },
                TableProperty::ApplySetField { miss, fields: fields(Field::is_settable, |_| false) },
            ],
        }
    }
}

/// The headers of OpenFlow 1.3's fields that `wanted` picks. A mask is said only where one is matched on: elsewhere it means
/// nothing, and Open vSwitch refuses the whole reply.
fn fields(wanted: fn(Field) -> bool, masked: fn(Field) -> bool) -> Vec<OxmId> {
    const LAST_OF_V13: u8 = Field::Ipv6Exthdr as u8;
    let numbered =
        Field::ALL.into_iter().filter(|field| wanted(*field)).filter_map(|field| Some((field, field.oxm()?)));
    let known = numbered.filter(|(_, number)| *number <= LAST_OF_V13);
    known.map(|(field, number)| oxm(field, number, masked(field))).collect()
}

fn oxm(field: Field, number: u8, has_mask: bool) -> OxmId {
    let length = u8::try_from(field.bytes() << u8::from(has_mask)).unwrap_or(u8::MAX);
    OxmId { class: OPENFLOW_BASIC, number, has_mask, length, experimenter: None }
}
