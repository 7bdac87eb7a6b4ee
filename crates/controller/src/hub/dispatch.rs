//! Sends the application's messages.
use super::ControllerHub;
use crate::ConnectionId;
use crate::outbox::{OutboxItem, SentKind};
use weir_openflow::session::SendError;

impl ControllerHub {
    /// Sends the messages of the outbox. Packet-outs for the switch of `current`, the connection that is handled, use
    /// that connection.
    pub(super) fn dispatch(&mut self, current: Option<ConnectionId>) {
        if self.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        let auxiliary_of = current.and_then(|current| Some((current, self.connections.get(current)?.auxiliary?.0)));
        outbox.for_each(|item| self.send(item, auxiliary_of));
        // Keeps the memory for the next messages.
        self.outbox = outbox;
    }

    fn send(&mut self, item: OutboxItem<'_>, auxiliary_of: Option<(ConnectionId, ConnectionId)>) {
        let (main, kind) = (item.switch(), item.kind());
        let id = match auxiliary_of {
            Some((current, of)) if of == main && kind == SentKind::PacketOut => current,
            _ => main,
        };
        let up = self.connections.get_mut(id).filter(|found| found.info.is_some() || found.auxiliary.is_some());
        let Some(connection) = up else {
            self.counters.dropped_gone += 1;
            return;
        };
        let xid = connection.session.allocate_xid();
        let sent = match item {
            OutboxItem::Message(_, message) => {
                message.xid = xid;
                connection.session.send(message)
            }
            OutboxItem::Encoded(mut encoded) => {
                encoded.set_xid(xid);
                connection.session.send_encoded(encoded.bytes, 1)
            }
        };
        match sent {
            Ok(()) => {
                self.n_sent += 1;
                self.counters.count_sent(kind);
            }
            Err(SendError::Full(_)) => self.counters.dropped_full += 1,
            Err(SendError::NotUp) => self.counters.dropped_gone += 1,
            Err(SendError::Encode(error)) => {
                tracing::warn!(peer = connection.peer, "not sent: {error}");
                self.counters.dropped_unencodable += 1;
            }
        }
        self.note_output(id);
    }
}
