//! Restricts the matches, instructions and actions of a table's entries to those that a controller listed in a table
//! features request, if it listed fewer than weir supports (OpenFlow 1.3.5, 7.3.5.5).
use crate::program::EntryProgram;
use std::collections::{HashMap, HashSet};
use weir_openflow::model::error::{BadAction, BadInstruction, BadMatch, TableFeaturesFailed};
use weir_openflow::model::multipart::{FeatureTypeId, OxmId, TableProperty};
use weir_openflow::model::{Action, ActionType, ErrorType, Instruction, InstructionType, Match, MatchField};
use weir_packet::Field;

/// Restrictions of a table: see the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct TableRestrictions {
    /// Properties as requested, for table features replies.
    properties: Vec<TableProperty>,
    /// Permissions of all entries but the table-miss entry.
    entries: EntryPermissions,
    /// Permissions of the table-miss entry.
    miss: EntryPermissions,
    /// Fields that a match may contain; true if the field may have a mask.
    matched: HashMap<Field, bool>,
    /// Fields that may be omitted from a match.
    wildcards: HashSet<Field>,
}

impl PartialEq for TableRestrictions {
    /// Compares the permissions. The order of the requested properties does not count.
    fn eq(&self, other: &TableRestrictions) -> bool {
        let what = |limits: &TableRestrictions| (limits.entries.clone(), limits.miss.clone());
        what(self) == what(other) && self.matched == other.matched && self.wildcards == other.wildcards
    }
}

impl Eq for TableRestrictions {}

/// Allowed instructions, tables to continue in, actions and fields to set, by type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct EntryPermissions {
    instructions: HashSet<FeatureTypeId<InstructionType>>,
    next: HashSet<u8>,
    write: HashSet<FeatureTypeId<ActionType>>,
    apply: HashSet<FeatureTypeId<ActionType>>,
    write_fields: HashSet<Field>,
    apply_fields: HashSet<Field>,
}

/// The action that corresponds to the meter instruction in OpenFlow 1.5.
const METER_ACTION: FeatureTypeId<ActionType> = FeatureTypeId::Standard(ActionType::Meter);

/// Nicira's experimenter id, which the extension actions of Open vSwitch carry.
const NICIRA: u32 = 0x2320;

impl TableRestrictions {
    /// Creates the restrictions that a controller requests with `properties`; `all` are the properties that weir
    /// supports.
    ///
    /// # Errors
    /// [`TableFeaturesFailed::BadType`] if a property is unknown or occurs twice,
    /// [`TableFeaturesFailed::BadArgument`] if one is missing or asks for more than is supported.
    pub(crate) fn new(
        properties: Vec<TableProperty>,
        all: &[TableProperty],
    ) -> Result<TableRestrictions, TableFeaturesFailed> {
        let mut seen = HashSet::new();
        for property in &properties {
            let place = all.iter().find(|known| same_kind(known, property)).ok_or(TableFeaturesFailed::BadType)?;
            if !seen.insert(kind(property)) {
                return Err(TableFeaturesFailed::BadType);
            }
            if !is_within(property, place) {
                return Err(TableFeaturesFailed::BadArgument);
            }
        }
        if all.iter().any(|known| !seen.contains(&kind(known))) {
            return Err(TableFeaturesFailed::BadArgument);
        }
        let (matched, wildcards) = match_fields(&properties);
        Ok(TableRestrictions {
            entries: EntryPermissions::new(&properties, false),
            miss: EntryPermissions::new(&properties, true),
            matched,
            wildcards,
            properties,
        })
    }

    /// Returns the properties as requested.
    pub(crate) fn properties(&self) -> &[TableProperty] {
        &self.properties
    }

    /// Checks that the table may have an entry with this match and program. `is_miss` is true for the table-miss entry.
    ///
    /// # Errors
    /// The match or an instruction is not allowed. The error is the one to send to the controller.
    pub(crate) fn check(&self, matching: &Match, is_miss: bool, program: &EntryProgram) -> Result<(), ErrorType> {
        let doing = if is_miss { &self.miss } else { &self.entries };
        if !is_miss {
            self.check_match(matching)?;
        }
        for instruction in program.instructions() {
            doing.check(&instruction)?;
        }
        Ok(())
    }

    fn check_match(&self, matching: &Match) -> Result<(), ErrorType> {
        for entry in &matching.fields {
            let MatchField::Known { field, mask, .. } = entry else { return Err(BadMatch::BadField.into()) };
            let maskable = self.matched.get(field).ok_or(BadMatch::BadField)?;
            if !maskable && mask.is_some_and(|mask| mask != field.all_ones()) {
                return Err(BadMatch::BadMask.into());
            }
        }
        let is_left_out = |field: &Field| matching.get(*field).is_none() && !self.wildcards.contains(field);
        if self.matched.keys().any(is_left_out) { Err(BadMatch::BadWildcards.into()) } else { Ok(()) }
    }
}

impl EntryPermissions {
    fn new(properties: &[TableProperty], for_miss: bool) -> EntryPermissions {
        let mut doing = EntryPermissions::default();
        // A property for table misses replaces the ordinary one, regardless of their order.
        let (ordinary, miss): (Vec<_>, Vec<_>) = properties.iter().partition(|property| !is_of_miss(property));
        for property in ordinary.into_iter().chain(miss.into_iter().filter(|_| for_miss)) {
            match property {
                TableProperty::Instructions { ids, .. } => doing.instructions = ids.iter().cloned().collect(),
                TableProperty::NextTables { tables, .. } => doing.next = tables.iter().map(|table| table.0).collect(),
                TableProperty::WriteActions { ids, .. } => doing.write = ids.iter().cloned().collect(),
                TableProperty::ApplyActions { ids, .. } => doing.apply = ids.iter().cloned().collect(),
                TableProperty::WriteSetField { fields, .. } => doing.write_fields = known(fields).collect(),
                TableProperty::ApplySetField { fields, .. } => doing.apply_fields = known(fields).collect(),
                _ => {}
            }
        }
        doing
    }

    fn check(&self, instruction: &Instruction) -> Result<(), ErrorType> {
        let is_metering = matches!(instruction, Instruction::Meter(_)) && self.apply.contains(&METER_ACTION);
        if !is_metering && !self.instructions.contains(&instruction_id(instruction)) {
            return Err(BadInstruction::UnsupInst.into());
        }
        match instruction {
            Instruction::GotoTable(next) if !self.next.contains(&next.0) => Err(BadInstruction::BadTableId.into()),
            Instruction::ApplyActions(list) => check_actions(list, &self.apply, &self.apply_fields),
            Instruction::WriteActions(list) => check_actions(list, &self.write, &self.write_fields),
            _ => Ok(()),
        }
    }
}

fn check_actions(
    list: &[Action],
    ids: &HashSet<FeatureTypeId<ActionType>>,
    fields: &HashSet<Field>,
) -> Result<(), ErrorType> {
    for action in list {
        if !ids.contains(&action_id(action)) {
            return Err(BadAction::BadType.into());
        }
        if set_field(action).is_some_and(|field| !fields.contains(&field)) {
            return Err(BadAction::BadSetType.into());
        }
    }
    Ok(())
}

/// Returns the instruction's type, or its experimenter id.
fn instruction_id(instruction: &Instruction) -> FeatureTypeId<InstructionType> {
    match instruction {
        Instruction::Experimenter { id, .. } => experimenter_id(*id),
        standard => standard.kind().map_or_else(|| experimenter_id(NICIRA), FeatureTypeId::Standard),
    }
}

/// Returns the action's type, or its experimenter id.
fn action_id(action: &Action) -> FeatureTypeId<ActionType> {
    match action {
        Action::Experimenter { id, .. } => experimenter_id(*id),
        action => action.kind().map_or_else(|| experimenter_id(NICIRA), FeatureTypeId::Standard),
    }
}

fn experimenter_id<T>(id: u32) -> FeatureTypeId<T> {
    FeatureTypeId::Experimenter { id, data: Default::default() }
}

/// Returns the field that an action sets.
fn set_field(action: &Action) -> Option<Field> {
    match action {
        Action::SetField { field, .. } | Action::SetFieldMasked { field, .. } => Some(*field),
        Action::SetVlanVid(_) => Some(Field::VlanVid),
        Action::SetVlanPcp(_) => Some(Field::VlanPcp),
        Action::SetNwSrc(_) => Some(Field::Ipv4Src),
        Action::SetNwDst(_) => Some(Field::Ipv4Dst),
        Action::SetNwTos(_) => Some(Field::IpDscp),
        Action::SetTpSrc(_) => Some(Field::TcpSrc),
        Action::SetTpDst(_) => Some(Field::TcpDst),
        _ => None,
    }
}

/// Returns the fields that a match may contain (true if the field may have a mask), and the fields that it may omit.
fn match_fields(properties: &[TableProperty]) -> (HashMap<Field, bool>, HashSet<Field>) {
    let (mut matched, mut wildcards) = (HashMap::new(), HashSet::new());
    for property in properties {
        match property {
            TableProperty::Match(ids) => {
                matched.extend(ids.iter().filter_map(|id| Some((id.field()?, id.has_mask))));
            }
            TableProperty::Wildcards(ids) => wildcards.extend(known(ids)),
            _ => {}
        }
    }
    (matched, wildcards)
}

fn known(ids: &[OxmId]) -> impl Iterator<Item = Field> {
    ids.iter().filter_map(OxmId::field)
}

fn is_of_miss(property: &TableProperty) -> bool {
    kind(property).1
}

/// Returns the type of a property, and true if it is for table misses.
fn kind(property: &TableProperty) -> (u16, bool) {
    match property {
        TableProperty::Instructions { miss, .. } => (0, *miss),
        TableProperty::NextTables { miss, .. } => (2, *miss),
        TableProperty::WriteActions { miss, .. } => (4, *miss),
        TableProperty::ApplyActions { miss, .. } => (6, *miss),
        TableProperty::Match(_) => (8, false),
        TableProperty::Wildcards(_) => (10, false),
        TableProperty::WriteSetField { miss, .. } => (12, *miss),
        TableProperty::ApplySetField { miss, .. } => (14, *miss),
        TableProperty::TableSyncFrom(_) => (16, false),
        TableProperty::WriteCopyField { miss, .. } => (18, *miss),
        TableProperty::ApplyCopyField { miss, .. } => (20, *miss),
        TableProperty::PacketTypes(_) => (22, false),
        TableProperty::Experimenter { miss, .. } => (0xfffe, *miss),
        TableProperty::Unknown { kind, .. } => (*kind, false),
    }
}

fn same_kind(a: &TableProperty, b: &TableProperty) -> bool {
    kind(a).0 == kind(b).0
}

/// Returns true if the requested property `asked` lists nothing that `there`, the supported property of the same type,
/// does not list.
fn is_within(asked: &TableProperty, there: &TableProperty) -> bool {
    use TableProperty::{
        ApplyActions, ApplySetField, Instructions, Match, NextTables, Wildcards, WriteActions, WriteSetField,
    };
    match (asked, there) {
        (Instructions { ids, .. }, Instructions { ids: all, .. }) => ids.iter().all(|id| all.contains(id)),
        (WriteActions { ids, .. }, WriteActions { ids: all, .. })
        | (ApplyActions { ids, .. }, ApplyActions { ids: all, .. }) => ids.iter().all(|id| all.contains(id)),
        (NextTables { tables, .. }, NextTables { tables: all, .. }) => tables.iter().all(|table| all.contains(table)),
        (Match(ids), Match(all)) => ids.iter().all(|id| offers(all, id, id.has_mask)),
        (Wildcards(ids), Wildcards(all)) => ids.iter().all(|id| offers(all, id, false)),
        (WriteSetField { fields, .. }, WriteSetField { fields: all, .. })
        | (ApplySetField { fields, .. }, ApplySetField { fields: all, .. }) => {
            fields.iter().all(|id| offers(all, id, false))
        }
        _ => false,
    }
}

/// Returns true if the supported fields `all` contain the field `id`, and allow it a mask if `masked` is true.
fn offers(all: &[OxmId], id: &OxmId, masked: bool) -> bool {
    let Some(field) = id.field() else { return false };
    all.iter().any(|known| known.field() == Some(field) && (known.has_mask || !masked))
}
