//! Stores the flow entries of a switch in virtual time, in one hash table for each mask.
use foldhash::fast::RandomState;
use std::collections::HashMap;
use weir_device::{ProfiledTables, TableEffect};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, PortNo};
use weir_packet::{Field, FlowKey, FlowMask, parse};
use weir_profile::MatchLayers;

/// Flow entries of one mask, by key.
type EntriesByKey = HashMap<FlowKey, Vec<HashedFlowEntry>, RandomState>;

/// Flow entries by mask and key.
#[derive(Debug, Default)]
pub(super) struct FlowEntriesByMask {
    masks: Vec<(FlowMask, EntriesByKey)>,
    /// Number of names assigned so far.
    named: u64,
    len: usize,
}

#[derive(Debug, Clone)]
struct HashedFlowEntry {
    name: u64,
    priority: u16,
    out: Option<PortNo>,
}

/// Entry that a packet matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchedFlowEntry {
    pub(super) name: u64,
    pub(super) kind: MatchLayers,
    pub(super) out: Option<PortNo>,
}

/// Returns the ports of the output actions.
pub(super) fn outputs(actions: &[Action]) -> impl Iterator<Item = PortNo> + '_ {
    actions.iter().filter_map(|action| match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    })
}

fn output(flow: &FlowMod) -> Option<PortNo> {
    flow.instructions.iter().find_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => outputs(actions).next(),
        _ => None,
    })
}

impl FlowEntriesByMask {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the entry of highest priority that the packet matches.
    pub(super) fn find(&self, in_port: PortNo, bytes: &[u8]) -> Option<MatchedFlowEntry> {
        let key = parse::parse(bytes, in_port).ok()?.key;
        let of_mask = |(mask, entries): &(FlowMask, EntriesByKey)| {
            let entry = entries.get(&key.masked(mask))?.iter().max_by_key(|entry| entry.priority)?.clone();
            Some((entry, *mask))
        };
        let (entry, mask) = self.masks.iter().filter_map(of_mask).max_by_key(|(entry, _)| entry.priority)?;
        let looks_at = |field| mask.get(field) != 0;
        let kind = MatchLayers::of(looks_at(Field::EthDst), looks_at(Field::Ipv4Dst));
        Some(MatchedFlowEntry { name: entry.name, kind, out: entry.out })
    }

    /// Returns the work of a flow-mod with the entries as they are now.
    pub(super) fn work(&self, flow: &FlowMod) -> TableEffect {
        match flow.command {
            FlowCommand::Add => TableEffect::Add { priority: flow.priority },
            FlowCommand::Modify | FlowCommand::ModifyStrict => TableEffect::Modify { entries: self.about(flow) },
            FlowCommand::Delete | FlowCommand::DeleteStrict => TableEffect::Delete { entries: self.about(flow) },
        }
    }

    /// Returns the names of the entries that a flow-mod affects.
    fn about(&self, flow: &FlowMod) -> Vec<u64> {
        let Ok((value, bits)) = flow.matching.key_and_mask() else { return Vec::new() };
        if matches!(flow.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict) {
            let entries = self.masks.iter().find(|(mask, _)| *mask == bits).and_then(|(_, all)| all.get(&value));
            let same = entries.into_iter().flatten().filter(|entry| entry.priority == flow.priority);
            return same.map(|entry| entry.name).collect();
        }
        let narrower = self.masks.iter().filter(|(mask, _)| mask.masked(&bits) == bits);
        let covered = narrower.flat_map(|(_, entries)| entries).filter(|(key, _)| key.matches(&value, &bits));
        covered.flat_map(|(_, entries)| entries.iter().map(|entry| entry.name)).collect()
    }

    /// Carries out a flow-mod, and updates the stage's tables.
    pub(super) fn apply(&mut self, flow: &FlowMod, mut tables: Option<&mut ProfiledTables>) {
        match flow.command {
            FlowCommand::Add => self.add(flow, tables),
            FlowCommand::Modify | FlowCommand::ModifyStrict => {
                let about = self.about(flow);
                let out = output(flow);
                let all = self.masks.iter_mut().flat_map(|(_, entries)| entries.values_mut()).flatten();
                all.filter(|entry| about.contains(&entry.name)).for_each(|entry| entry.out = out);
                if let Some(tables) = &mut tables {
                    tables.modified(&about);
                }
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => {
                let about: std::collections::HashSet<u64> = self.about(flow).into_iter().collect();
                if about.is_empty() {
                    return;
                }
                for (_, entries) in &mut self.masks {
                    entries.retain(|_, list| {
                        list.retain(|entry| !about.contains(&entry.name));
                        !list.is_empty()
                    });
                }
                self.len -= about.len();
                if let Some(tables) = &mut tables {
                    about.iter().for_each(|name| tables.removed(*name));
                }
            }
        }
    }

    /// Adds an entry. One with equal match and priority is replaced, and keeps its name.
    fn add(&mut self, flow: &FlowMod, tables: Option<&mut ProfiledTables>) {
        let Ok((value, bits)) = flow.matching.key_and_mask() else { return };
        let at = self.masks.iter().position(|(mask, _)| *mask == bits).unwrap_or_else(|| {
            self.masks.push((bits, EntriesByKey::default()));
            self.masks.len() - 1
        });
        let list = self.masks[at].1.entry(value).or_default();
        let (priority, out) = (flow.priority, output(flow));
        if let Some(same) = list.iter_mut().find(|entry| entry.priority == priority) {
            same.out = out;
            if let Some(tables) = tables {
                tables.modified(&[same.name]);
            }
            return;
        }
        self.named += 1;
        self.len += 1;
        list.push(HashedFlowEntry { name: self.named, priority, out });
        if let Some(tables) = tables {
            tables.added(self.named, priority);
        }
    }
}
