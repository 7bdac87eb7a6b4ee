//! The action set: actions that a packet collects in the tables, run at the pipeline's end in the specification's
//! order.
use weir_openflow::model::{Action, NxAction, PortNo};

/// An action set (OpenFlow 1.3.5, 5.10): at most one action of each type, one set-field for each field, and any number
/// of Nicira's actions, which only the action sets of buckets have.
#[derive(Debug, Default)]
pub(crate) struct ActionSet {
    /// The actions with their ranks, ascending by rank.
    actions: Vec<(u16, Action)>,
}

impl ActionSet {
    /// Empties the set but keeps its memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        // Most sets are empty, and this test avoids the loop that drops elements.
        if !self.actions.is_empty() {
            self.actions.clear();
        }
    }

    /// Returns true if the set has no action.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Adds actions. Each replaces the present action of its type, except Nicira's actions, which stay in the order
    /// in which they are added.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for action in actions {
            let rank = rank(action);
            if let Action::Nx(nx) = action {
                // `exit` is left out: there is no later action that it could skip, because the output comes last.
                if **nx != NxAction::Exit {
                    let end = self.actions.partition_point(|(present, _)| *present <= rank);
                    self.actions.insert(end, (rank, action.clone()));
                }
                continue;
            }
            match self.actions.binary_search_by_key(&rank, |(rank, _)| *rank) {
                Ok(at) => self.actions[at].1 = action.clone(),
                Err(at) => self.actions.insert(at, (rank, action.clone())),
            }
        }
    }

    /// Returns the port the set outputs to: `None` without an output, and with a group, because a group replaces the
    /// output.
    pub(crate) fn output(&self) -> Option<PortNo> {
        match (self.actions.as_slice(), self.actions.last()) {
            ([.., (_, Action::Group(_)), _], _) => None,
            (_, Some((_, Action::Output { port, .. }))) => Some(*port),
            _ => None,
        }
    }

    /// Returns the actions in the order of execution. With a group the output is left out (OpenFlow 1.3.5, 5.10).
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        let executed = match self.actions.as_slice() {
            [executed @ .., _] if matches!(executed.last(), Some((_, Action::Group(_)))) => executed,
            all => all,
        };
        executed.iter().map(|(_, action)| action)
    }
}

/// Returns an action's place in the order of execution (OpenFlow 1.3.5, 5.10, items 1 to 11). A set holds at
/// most one action of each rank, except of Nicira's actions, which share one.
pub(crate) fn rank(action: &Action) -> u16 {
    const FIELDS: u16 = 30;
    // At most one copy-field, which runs after the set-fields (OpenFlow 1.5.1, 5.6).
    const COPY: u16 = FIELDS + 256;
    // Experimenter actions: the specification leaves their place to the switch. Here an output sees what they write.
    const EXTENSIONS: u16 = COPY + 1;
    const BEHIND_FIELDS: u16 = EXTENSIONS + 1;
    match action {
        // 1. copy TTL inwards
        Action::CopyTtlIn => 0,
        // 2. pop
        Action::PopVlan => 1,
        Action::PopMpls(_) => 2,
        Action::PopPbb => 3,
        Action::Decap(_) => 4,
        // 3-5. push
        Action::Encap(_) => 5,
        Action::PushMpls(_) => 6,
        Action::PushPbb(_) => 7,
        Action::PushVlan(_) => 8,
        // 6. copy TTL outwards
        Action::CopyTtlOut => 9,
        // 7. decrement TTL
        Action::DecMplsTtl => 10,
        Action::DecNwTtl => 11,
        Action::DecNshTtl => 12,
        // 8. set; the actions of 1.0 occur only in action lists, but each has its own rank
        Action::SetMplsTtl(_) => 13,
        Action::SetNwTtl(_) => 14,
        Action::SetVlanVid(_) => 15,
        Action::SetVlanPcp(_) => 16,
        Action::SetNwSrc(_) => 17,
        Action::SetNwDst(_) => 18,
        Action::SetNwTos(_) => 19,
        Action::SetTpSrc(_) => 20,
        Action::SetTpDst(_) => 21,
        Action::SetField { field, .. } | Action::SetFieldMasked { field, .. } => FIELDS + *field as u16,
        Action::Move { .. } => COPY,
        Action::Nx(_) => EXTENSIONS,
        // 9. quality of service: meter (OpenFlow 1.5.1, 5.6), queue
        Action::Meter(_) => BEHIND_FIELDS,
        Action::SetQueue(_) => BEHIND_FIELDS + 1,
        // 10, 11. group, output; the remaining actions are refused before they get here
        Action::Group(_) => BEHIND_FIELDS + 2,
        Action::Output { .. } | Action::Enqueue { .. } => BEHIND_FIELDS + 3,
        Action::Experimenter { .. } | Action::SetFieldRaw(_) => BEHIND_FIELDS + 4,
    }
}
