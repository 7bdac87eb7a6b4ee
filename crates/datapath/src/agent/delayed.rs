//! Serves callers that delay changes: returns what messages and bundles would do, and refuses a bundle for the caller's
//! reason.
use crate::version_semantics::FlowModSemantics;
use crate::{ChannelId, Datapath, DatapathOutput, FlowModEffect};
use std::collections::HashSet;
use weir_openflow::model::bundle::BundleControl;
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, ErrorType, FlowCommand, Message};

/// Returns what a message would do; see [`Datapath::subject`].
pub(crate) fn subject(datapath: &mut Datapath, channel: ChannelId, body: &Body) -> FlowModEffect {
    let Some(version) =
        datapath.plane.channels.version(channel).filter(|_| datapath.plane.channels.role_of(channel) != Role::Slave)
    else {
        return FlowModEffect::Nothing;
    };
    let found = match body {
        Body::FlowMod(flow) => datapath.edit_tables().subject(flow, FlowModSemantics::of(flow, version)),
        Body::Nx(message) => match &**message {
            // Nicira's flow-mod does not follow the entry order of version 1.0.
            NxMessage::FlowMod(flow) => {
                datapath.edit_tables().subject(flow, FlowModSemantics::of_nicira(flow, version))
            }
            _ => return FlowModEffect::Nothing,
        },
        _ => return FlowModEffect::Nothing,
    };
    found.unwrap_or(FlowModEffect::Nothing)
}

/// Returns what the messages of a bundle would do; see [`Datapath::bundle_subjects`].
pub(crate) fn bundle_subjects(
    datapath: &mut Datapath,
    channel: ChannelId,
    commit: &BundleControl,
    most: usize,
) -> Option<(Vec<FlowModEffect>, usize)> {
    let messages = datapath.bundles.lend(channel, commit.bundle)?;
    let mut deleted = HashSet::new();
    let mut of = |message: &Message| {
        let effect = subject(datapath, channel, &message.body);
        match (effect, &message.body) {
            (FlowModEffect::Delete(names), _) => {
                deleted.extend(names.iter().copied());
                FlowModEffect::Delete(names)
            }
            (FlowModEffect::Modify(names), Body::FlowMod(flow))
                if flow.command == FlowCommand::Add && names.iter().all(|name| deleted.contains(name)) =>
            {
                FlowModEffect::Add { priority: flow.priority }
            }
            (other, _) => other,
        }
    };
    let subjects: Vec<FlowModEffect> = messages.iter().take(most).map(|message| of(message)).collect();
    let more = messages.len() - subjects.len();
    datapath.bundles.put_back(channel, commit.bundle, messages);
    Some((subjects, more))
}

/// Refuses a bundle; see [`Datapath::refuse_bundle`].
pub(crate) fn refuse_bundle(
    datapath: &mut Datapath,
    channel: ChannelId,
    commit: &Message,
    member: usize,
    error: ErrorType,
    out: &mut DatapathOutput,
) {
    let Body::BundleControl(control) = &commit.body else { return };
    let messages = datapath.bundles.lend(channel, control.bundle).unwrap_or_default();
    // The bundle exists, because it was examined before its commit and its channel waits for the answer.
    let _ = datapath.bundles.discard(channel, control.bundle);
    if let Some(message) = messages.iter().nth(member) {
        datapath.plane.channels.refuse(channel, message, error, out);
    }
    datapath.plane.channels.refuse(channel, commit, BundleFailed::MsgFailed.into(), out);
}
