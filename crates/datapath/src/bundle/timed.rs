//! Interfaces for callers that delay commits: the changes a bundle would make, and refusing a bundle for the caller's
//! reason.
use crate::{ChannelId, Datapath, DatapathOutput, FlowModEffect};
use std::collections::HashSet;
use weir_openflow::model::bundle::BundleControl;
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Body, ErrorType, FlowCommand, Message};

impl Datapath {
    /// Keeps a bundle whose commit has arrived but is delayed, however long the controller stays silent.
    pub fn hold_bundle(&mut self, channel: ChannelId, commit: &BundleControl) {
        self.bundles.hold(channel, commit.bundle, commit.flags);
    }

    /// Returns what each of the first `most` messages of a bundle would do to the entries, and the number of messages
    /// after them; `None` if the bundle does not exist. Each is judged by the entries before the bundle, except that
    /// an entry deleted by an earlier message of the bundle counts as absent when it is added again.
    pub fn bundle_subjects(
        &mut self,
        channel: ChannelId,
        commit: &BundleControl,
        most: usize,
    ) -> Option<(Vec<FlowModEffect>, usize)> {
        let messages = self.bundles.lend(channel, commit.bundle)?;
        let mut deleted = HashSet::new();
        let mut of = |message: &Message| {
            let subject = self.subject(channel, &message.body);
            match (subject, &message.body) {
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
        self.bundles.put_back(channel, commit.bundle, messages);
        Some((subjects, more))
    }

    /// Answers a commit as if the message with the index `member` in its bundle had failed: nothing has changed, and
    /// the bundle is discarded.
    pub fn refuse_bundle(
        &mut self,
        channel: ChannelId,
        commit: &Message,
        member: usize,
        error: ErrorType,
        out: &mut DatapathOutput,
    ) {
        let Body::BundleControl(control) = &commit.body else { return };
        let messages = self.bundles.lend(channel, control.bundle).unwrap_or_default();
        // The bundle exists, because it was examined before its commit and its channel waits for the answer.
        let _ = self.bundles.discard(channel, control.bundle);
        if let Some(message) = messages.iter().nth(member) {
            self.refuse_message(channel, message, error, out);
        }
        self.refuse_message(channel, commit, BundleFailed::MsgFailed.into(), out);
    }
}
