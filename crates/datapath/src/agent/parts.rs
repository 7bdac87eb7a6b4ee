//! Multipart requests that come in several messages (OpenFlow 1.3.5, 7.3.5: `OFPMPF_REQ_MORE`), kept until they are whole.
use super::Request;
use crate::{ChannelId, Datapath};
use std::time::Duration;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{MultipartRequest, RequestBody, TableFeatures};
use weir_openflow::model::{ErrorType, TableId};
use weir_units::Instant;

/// Requests of a channel that are not whole at most.
const MAX_UNFINISHED: usize = 4;
/// How long the next part of a request is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Requests that are not whole; of all channels, in the order they began.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    list: Vec<Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    channel: ChannelId,
    xid: u32,
    until: Instant,
    tables: Vec<TableFeatures>,
}

impl Datapath {
    /// Handles a multipart request, when its last part is there. Only table features take more than one message.
    pub(super) fn multipart_part(
        &mut self,
        asked: &MultipartRequest,
        request: &mut Request<'_>,
    ) -> Result<(), ErrorType> {
        let RequestBody::TableFeatures(tables) = &asked.body else { return self.multipart(&asked.body, request) };
        let (channel, xid) = (request.channel, request.xid);
        let before = self.parts.take(channel, xid);
        if !asked.more && before.is_none() {
            return self.multipart(&asked.body, request);
        }
        let mut whole = before.unwrap_or_default();
        whole.extend(tables.iter().cloned());
        if whole.len() > usize::from(TableId::MAX.0) + 1 {
            return Err(BadRequest::MultipartBufferOverflow.into());
        }
        if !asked.more {
            return self.multipart(&RequestBody::TableFeatures(whole), request);
        }
        self.parts.keep(Unfinished { channel, xid, until: request.now + PATIENCE, tables: whole })
    }
}

impl Parts {
    fn take(&mut self, channel: ChannelId, xid: u32) -> Option<Vec<TableFeatures>> {
        let at = self.list.iter().position(|part| (part.channel, part.xid) == (channel, xid))?;
        Some(self.list.remove(at).tables)
    }

    fn keep(&mut self, part: Unfinished) -> Result<(), ErrorType> {
        if self.list.iter().filter(|other| other.channel == part.channel).count() >= MAX_UNFINISHED {
            return Err(BadRequest::MultipartBufferOverflow.into());
        }
        self.list.push(part);
        Ok(())
    }

    /// Forgets a channel's.
    pub(crate) fn forget(&mut self, channel: ChannelId) {
        self.list.retain(|part| part.channel != channel);
    }

    /// Forgets what was waited for too long; says when the next is.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.list.retain(|part| part.until > now);
        self.list.iter().map(|part| part.until).min()
    }
}
