//! For who lets commits take time: what a bundle is about, and refusing it for a reason of theirs.
use crate::{ChannelId, Datapath, Output, Subject};
use std::collections::HashSet;
use weir_openflow::model::bundle::BundleControl;
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Body, ErrorType, FlowCommand, Message};

impl Datapath {
    /// A commit has come, which takes its time: its bundle is not given up meanwhile.
    pub fn hold_bundle(&mut self, channel: ChannelId, commit: &BundleControl) {
        self.bundles.hold(channel, commit.bundle, commit.flags);
    }

    /// What each of the first `most` messages of a bundle would do to the entries, and how many messages are behind them; nothing if it is not there.
    /// Entries are as they were before it, but for those that its own messages delete before they are added again.
    pub fn bundle_subjects(
        &mut self,
        channel: ChannelId,
        commit: &BundleControl,
        most: usize,
    ) -> Option<(Vec<Subject>, usize)> {
        let messages = self.bundles.lend(channel, commit.bundle)?;
        let mut deleted = HashSet::new();
        let mut of = |message: &Message| {
            let subject = self.subject(channel, &message.body);
            match (subject, &message.body) {
                (Subject::Delete(names), _) => {
                    deleted.extend(names.iter().copied());
                    Subject::Delete(names)
                }
                (Subject::Modify(names), Body::FlowMod(flow))
                    if flow.command == FlowCommand::Add && names.iter().all(|name| deleted.contains(name)) =>
                {
                    Subject::Add { priority: flow.priority }
                }
                (other, _) => other,
            }
        };
        let subjects: Vec<Subject> = messages.iter().take(most).map(|message| of(message)).collect();
        let more = messages.len() - subjects.len();
        self.bundles.put_back(channel, commit.bundle, messages);
        Some((subjects, more))
    }

    /// Answers a commit as if the message of its bundle with this number had failed: nothing has changed, and the bundle is gone.
    pub fn refuse_bundle(
        &mut self,
        channel: ChannelId,
        commit: &Message,
        member: usize,
        error: ErrorType,
        out: &mut Output,
    ) {
        let Body::BundleControl(control) = &commit.body else { return };
        let messages = self.bundles.lend(channel, control.bundle).unwrap_or_default();
        // It is there: it was looked at when its commit's turn came, and its channel waits for the answer.
        let _ = self.bundles.discard(channel, control.bundle);
        if let Some(message) = messages.iter().nth(member) {
            self.refuse_message(channel, message, error, out);
        }
        self.refuse_message(channel, commit, BundleFailed::MsgFailed.into(), out);
    }
}
