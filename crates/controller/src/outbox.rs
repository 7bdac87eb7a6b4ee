//! Messages that an application wants to send.
use crate::ConnectionId;
use std::ops::Range;
use weir_openflow::Message;
use weir_openflow::model::Body;

/// Offset of the transaction id in a message.
const XID: usize = 4;

/// Messages for switches, in order. The hub sets their `xid`.
#[derive(Debug, Default)]
pub struct ControllerOutbox {
    items: Vec<(ConnectionId, OutboxContent)>,
    /// Bytes of the encoded messages.
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum OutboxContent {
    Message(Message),
    Encoded(SentKind, Range<usize>),
}

/// Kind of a message, for counting and for the choice of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentKind {
    /// A flow-mod.
    FlowMod,
    /// A packet-out. It goes back the way its packet came.
    PacketOut,
    /// Any other message.
    Other,
}

/// A message that is taken out.
pub(crate) enum OutboxItem<'a> {
    Message(ConnectionId, &'a mut Message),
    Encoded(EncodedMessage<'a>),
}

/// A message in the bytes of its switch's version.
pub(crate) struct EncodedMessage<'a> {
    switch: ConnectionId,
    kind: SentKind,
    pub(crate) bytes: &'a mut [u8],
}

impl ControllerOutbox {
    /// Adds a message for a switch.
    pub fn push(&mut self, (switch, message): (ConnectionId, Message)) {
        self.items.push((switch, OutboxContent::Message(message)));
    }

    /// Adds a message that is already encoded, in the version of its switch: `write` appends it.
    pub fn push_encoded(&mut self, switch: ConnectionId, kind: SentKind, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.items.push((switch, OutboxContent::Encoded(kind, start..self.bytes.len())));
    }

    /// Returns true if there is no message.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Removes and returns all messages, decoded: for tests and programs without a hub. One that cannot be decoded is
    /// left out.
    pub fn take(&mut self) -> Vec<(ConnectionId, Message)> {
        let bytes = std::mem::take(&mut self.bytes);
        let decoded = |content| match content {
            OutboxContent::Message(message) => Some(message),
            OutboxContent::Encoded(_, range) => weir_openflow::decode(bytes.get(range)?).ok(),
        };
        let items = std::mem::take(&mut self.items).into_iter();
        items.filter_map(|(switch, content)| Some((switch, decoded(content)?))).collect()
    }

    /// Gives all messages to `each` in order, and is empty afterwards.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(OutboxItem<'_>)) {
        for (switch, content) in &mut self.items {
            each(match content {
                OutboxContent::Message(message) => OutboxItem::Message(*switch, message),
                OutboxContent::Encoded(kind, range) => {
                    let Some(bytes) = self.bytes.get_mut(range.clone()) else { continue };
                    OutboxItem::Encoded(EncodedMessage { switch: *switch, kind: *kind, bytes })
                }
            });
        }
        self.items.clear();
        self.bytes.clear();
    }
}

impl Extend<(ConnectionId, Message)> for ControllerOutbox {
    fn extend<T: IntoIterator<Item = (ConnectionId, Message)>>(&mut self, messages: T) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl OutboxItem<'_> {
    pub(crate) fn switch(&self) -> ConnectionId {
        match self {
            OutboxItem::Message(switch, _) => *switch,
            OutboxItem::Encoded(encoded) => encoded.switch,
        }
    }

    pub(crate) fn kind(&self) -> SentKind {
        match self {
            OutboxItem::Message(_, message) => match message.body {
                Body::FlowMod(_) => SentKind::FlowMod,
                Body::PacketOut(_) => SentKind::PacketOut,
                _ => SentKind::Other,
            },
            OutboxItem::Encoded(encoded) => encoded.kind,
        }
    }
}

impl EncodedMessage<'_> {
    pub(crate) fn set_xid(&mut self, xid: u32) {
        if let Some(place) = self.bytes.get_mut(XID..XID + 4) {
            place.copy_from_slice(&xid.to_be_bytes());
        }
    }
}
