//! The action set: what a packet gathers on its way through the tables, run at the end in the specification's order.
use weir_openflow::model::{Action, PortNo};

/// An action set (OpenFlow 1.3.5, 5.10): at most one action of each type, and one set-field for each field.
#[derive(Debug, Default)]
pub(crate) struct ActionSet {
    /// Ascending by rank.
    actions: Vec<(u16, Action)>,
}

impl ActionSet {
    /// Empties the set; its memory is kept.
    #[inline]
    pub(crate) fn clear(&mut self) {
        // Most are empty, and dropping what is in one takes a loop.
        if !self.actions.is_empty() {
            self.actions.clear();
        }
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Adds actions, each in place of the one of its type.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for action in actions {
            let rank = rank(action);
            match self.actions.binary_search_by_key(&rank, |(rank, _)| *rank) {
                Ok(at) => self.actions[at].1 = action.clone(),
                Err(at) => self.actions.insert(at, (rank, action.clone())),
            }
        }
    }

    /// The port that the set outputs to: none without an output, or with a group, which comes before it.
    pub(crate) fn output(&self) -> Option<PortNo> {
        match (self.actions.as_slice(), self.actions.last()) {
            ([.., (_, Action::Group(_)), _], _) => None,
            (_, Some((_, Action::Output { port, .. }))) => Some(*port),
            _ => None,
        }
    }

    /// The actions, in the order they are executed. With a group, what outputs behind it is left out (OpenFlow 1.3.5, 5.10).
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        let executed = match self.actions.as_slice() {
            [executed @ .., _] if matches!(executed.last(), Some((_, Action::Group(_)))) => executed,
            all => all,
        };
        executed.iter().map(|(_, action)| action)
    }
}

/// Where an action comes in the order of execution (OpenFlow 1.3.5, 5.10, items 1 to 11). One rank, one type.
pub(crate) fn rank(action: &Action) -> u16 {
    const FIELDS: u16 = 30;
    // Copies are set-fields of their own (OpenFlow 1.5.1, 5.6: behind them), one at most.
    const COPY: u16 = FIELDS + 256;
    const BEHIND_FIELDS: u16 = COPY + 1;
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
        // 8. set; 1.0's actions come only in action lists, but each has a rank of its own all the same
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
        // 9. quality of service: meter (OpenFlow 1.5.1, 5.6), queue
        Action::Meter(_) => BEHIND_FIELDS,
        Action::SetQueue(_) => BEHIND_FIELDS + 1,
        // 10, 11. group, output; refused before they get here: the rest
        Action::Group(_) => BEHIND_FIELDS + 2,
        Action::Output { .. } | Action::Enqueue { .. } => BEHIND_FIELDS + 3,
        Action::Nx(_) | Action::Experimenter { .. } | Action::SetFieldRaw(_) => BEHIND_FIELDS + 4,
    }
}
