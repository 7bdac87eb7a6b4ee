//! Extracts the features of a message that explain how switches answer it: actions, fields and references.
use weir_openflow::Body;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, MatchField, NxAction, PortNo};
use weir_packet::Field;

/// Parts of a message that explain differences: match, instructions and actions. For a bundle-add, the parts of the
/// message inside it.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageFeatures<'a> {
    pub(super) flow: Option<&'a FlowMod>,
    pub(super) matching: Option<&'a Match>,
    /// Instructions other than action lists and action sets.
    pub(super) instructions: Vec<&'a Instruction>,
    /// Actions of lists and buckets, including those inside other actions.
    pub(super) actions: Vec<&'a Action>,
    /// Actions of action sets.
    pub(super) set: Vec<&'a Action>,
}

pub(super) fn parts(body: &Body) -> MessageFeatures<'_> {
    let mut parts = MessageFeatures::default();
    match body {
        Body::BundleAdd(add) => return self::parts(&add.message.body),
        Body::FlowMod(flow) => {
            (parts.flow, parts.matching) = (Some(flow), Some(&flow.matching));
            for instruction in &flow.instructions {
                match instruction {
                    Instruction::ApplyActions(list) => parts.actions.extend(flattened(list)),
                    Instruction::WriteActions(list) => parts.set.extend(flattened(list)),
                    other => parts.instructions.push(other),
                }
            }
        }
        Body::GroupMod(group) => {
            parts.actions = group.buckets.iter().flat_map(|bucket| flattened(&bucket.actions)).collect();
        }
        Body::MultipartRequest(request) => {
            parts.matching = match &request.body {
                RequestBody::Flow(request) | RequestBody::Aggregate(request) | RequestBody::FlowCounters(request) => {
                    Some(&request.matching)
                }
                _ => None,
            };
        }
        _ => {}
    }
    parts
}

/// Returns the actions and those inside them.
fn flattened(list: &[Action]) -> Vec<&Action> {
    let mut all = Vec::new();
    for action in list {
        all.push(action);
        if let Action::Nx(nx) = action
            && let NxAction::Clone(inner) = &**nx
        {
            all.extend(flattened(inner));
        }
    }
    all
}

impl<'a> MessageFeatures<'a> {
    pub(super) fn all_actions(&self) -> impl Iterator<Item = &'a Action> {
        self.actions.iter().chain(&self.set).copied()
    }

    pub(super) fn has_action(&self, is: impl Fn(&Action) -> bool) -> bool {
        self.all_actions().any(is)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (Field, u128, Option<u128>)> {
        let fields = self.matching.into_iter().flat_map(|matching| &matching.fields);
        fields.filter_map(|entry| match entry {
            MatchField::Known { field, value, mask } => Some((*field, *value, *mask)),
            MatchField::Raw(_) => None,
        })
    }

    pub(super) fn has_field(&self, is: impl Fn(Field) -> bool) -> bool {
        self.fields().any(|(field, _, _)| is(field))
    }

    /// Returns true if an action writes a field, with a value, that satisfies `is`. A copy counts with each of its two
    /// fields, with value 0.
    pub(super) fn sets(&self, is: impl Fn(Field, u128) -> bool) -> bool {
        self.has_action(|action| match action {
            Action::SetField { field, value } | Action::SetFieldMasked { field, value, .. } => is(*field, *value),
            Action::Move { src, dst } => is(dst.field, 0) || is(src.field, 0),
            Action::Nx(nx) => matches!(&**nx, NxAction::Load { dst, value } if is(dst.field, u128::from(*value))),
            _ => false,
        })
    }

    pub(super) fn outputs(&self, is: impl Fn(PortNo) -> bool) -> bool {
        self.has_action(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => is(*port),
            _ => false,
        })
    }

    pub(super) fn has_meter(&self) -> bool {
        self.instructions.iter().any(|instruction| matches!(instruction, Instruction::Meter(_)))
            || self.has_action(|action| matches!(action, Action::Meter(_)))
    }
}

/// Returns true if Open vSwitch, which keeps 16 bits of a port's number, has no such port.
pub(super) fn is_beyond_16_bits(port: PortNo) -> bool {
    (0xff00..0xffff_ff00).contains(&port.0)
}
