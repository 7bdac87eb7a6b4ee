//! Carrying out a bundle: its messages change the switch one after the other, and what each changes is written down. If one
//! fails, all is taken back, the last change first. What cannot be taken back, packets that leave and what channels are told,
//! comes when all messages have succeeded.
use crate::agent::{Request, released};
use crate::buffers::Kept;
use crate::journal::Undo;
use crate::{Datapath, Output};
use weir_openflow::model::{Body, ErrorType, Message, PacketOut};

/// The message of a bundle that failed, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: Message,
    pub(crate) error: ErrorType,
}

/// What is left to be done when all messages succeeded.
#[derive(Debug)]
enum Rest {
    /// A packet-out, with the packet that it names.
    PacketOut(PacketOut, Option<Kept>),
    /// A packet kept in the switch, named by a flow-mod, runs through the tables.
    Release(Kept),
}

impl Datapath {
    /// Carries out a bundle's messages, all or none.
    ///
    /// # Errors
    /// The first message that fails; nothing has changed.
    pub(crate) fn commit(&mut self, messages: Vec<Message>, request: &mut Request<'_>) -> Result<(), Box<Failure>> {
        let mut held = Output::default();
        let mut rest = Vec::new();
        self.journal.begin();
        let mut failed = None;
        for message in messages {
            let mut inner = request.inner(message.xid, &mut held);
            self.journal.by = Some((self.main_of(inner.channel), message.xid));
            if let Err(error) = self.change(&message, &mut inner, &mut rest) {
                failed = Some(Box::new(Failure { message, error }));
                break;
            }
        }
        let changes = self.journal.end();
        if let Some(failure) = failed {
            // Nobody is told of what did not happen.
            self.journal.take_changes();
            changes.into_iter().rev().for_each(|undo| self.take_back(undo));
            rest.into_iter().for_each(|rest| self.give_back(rest));
            return Err(failure);
        }
        request.out.append(held);
        for rest in rest {
            self.finish(rest, request);
        }
        Ok(())
    }

    /// Carries out what can be taken back of a message; the rest goes to `rest`.
    fn change(&mut self, message: &Message, request: &mut Request<'_>, rest: &mut Vec<Rest>) -> Result<(), ErrorType> {
        match &message.body {
            Body::FlowMod(flow) => {
                self.change_entries(flow, request)?;
                if let Some(buffer) = released(flow) {
                    rest.push(Rest::Release(self.take_kept(buffer, request)?));
                }
                Ok(())
            }
            Body::PacketOut(packet) => {
                let kept = match packet.buffer_id {
                    Some(buffer) => Some(self.take_kept(buffer, request)?),
                    None => None,
                };
                let checked = self.check_packet_out(packet, kept.as_ref(), request);
                rest.push(Rest::PacketOut(packet.clone(), kept));
                checked
            }
            body => self.answer(body, request),
        }
    }

    /// Takes a change back; those after it have been taken back.
    fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Port(port, config) => {
                self.plane.ports.change(port, |desc| desc.config = config);
                self.groups.follow(&self.plane.ports);
            }
            Undo::Groups(saved) => self.groups.restore(*saved, &self.plane.ports, &mut self.plane.groups),
            Undo::Meters(saved) => self.plane.meters.restore(saved),
            Undo::Table(table, settings) => drop(self.configure(table, *settings)),
            entry => self.tables().undo(entry),
        }
    }

    /// Keeps packets again that the messages of a failed bundle named.
    fn give_back(&mut self, rest: Rest) {
        if let Rest::PacketOut(_, Some(kept)) | Rest::Release(kept) = rest {
            self.plane.buffers.put_back(kept);
        }
    }

    fn finish(&mut self, rest: Rest, request: &mut Request<'_>) {
        match rest {
            // It was checked, with the packet it names, before.
            Rest::PacketOut(packet, kept) => self.send_packet_out(&packet, kept, request),
            Rest::Release(kept) => self.release_kept(kept, request),
        }
    }
}
