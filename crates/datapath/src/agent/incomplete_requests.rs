//! Collects multipart requests that arrive in several messages (OpenFlow 1.3.5, 7.3.5: `OFPMPF_REQ_MORE`) until they
//! are complete.
use super::AgentRequest;
use crate::channels::{DatapathChannels, start_of};
use crate::{ChannelId, DatapathOutput};
use std::borrow::Cow;
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::error::{BadRequest, ErrorMessage};
use weir_openflow::model::multipart::{MultipartRequest, RequestBody, TableFeatures};
use weir_openflow::model::{Body, Bytes, ErrorType, Message, TableId};
use weir_units::Instant;

/// Maximum number of incomplete requests per channel.
const MAX_UNFINISHED: usize = 4;
/// Maximum time between two parts of a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Incomplete requests of all channels, in the order they began.
#[derive(Debug, Default)]
pub(crate) struct IncompleteRequests {
    list: Vec<IncompleteRequest>,
}

#[derive(Debug)]
struct IncompleteRequest {
    channel: ChannelId,
    xid: u32,
    until: Instant,
    tables: Vec<TableFeatures>,
    /// First bytes of the newest part, which an error quotes.
    start: Bytes,
}

impl IncompleteRequests {
    /// Adds a part of a multipart request. Returns the whole request once its last part has arrived. Only table
    /// features take more than one message.
    ///
    /// # Errors
    /// The request, or all requests of the channel, take too much memory.
    pub(super) fn complete<'a>(
        &mut self,
        asked: &'a MultipartRequest,
        request: &AgentRequest<'_>,
    ) -> Result<Option<Cow<'a, RequestBody>>, ErrorType> {
        let RequestBody::TableFeatures(tables) = &asked.body else { return Ok(Some(Cow::Borrowed(&asked.body))) };
        let (channel, xid) = request.by();
        let before = self.take(channel, xid);
        if !asked.more && before.is_none() {
            return Ok(Some(Cow::Borrowed(&asked.body)));
        }
        let mut whole = before.unwrap_or_default();
        whole.extend(tables.iter().cloned());
        if whole.len() > usize::from(TableId::MAX.0) + 1 {
            return Err(BadRequest::MultipartBufferOverflow.into());
        }
        if !asked.more {
            return Ok(Some(Cow::Owned(RequestBody::TableFeatures(whole))));
        }
        let newest = Message { xid, body: Body::MultipartRequest(asked.clone()) };
        let start = start_of(&newest, request.version).into();
        self.keep(IncompleteRequest { channel, xid, until: request.now + PATIENCE, tables: whole, start })?;
        Ok(None)
    }

    /// Discards requests whose next part is overdue and sends an error to their channels. Returns the time when the
    /// next request is overdue. Version 1.3 has no such error (OpenFlow 1.4.1, 7.5.4.2).
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        channels: &DatapathChannels,
        out: &mut DatapathOutput,
    ) -> Option<Instant> {
        for part in self.take_late(now) {
            if channels.version(part.channel).is_some_and(|version| version >= Version::V14) {
                let error = BadRequest::MultipartRequestTimeout.into();
                let body = Body::Error(ErrorMessage { error, data: part.start });
                out.messages.push((part.channel, Message { xid: part.xid, body }));
            }
        }
        self.next()
    }

    fn take(&mut self, channel: ChannelId, xid: u32) -> Option<Vec<TableFeatures>> {
        let at = self.list.iter().position(|part| (part.channel, part.xid) == (channel, xid))?;
        Some(self.list.remove(at).tables)
    }

    fn keep(&mut self, part: IncompleteRequest) -> Result<(), ErrorType> {
        if self.list.iter().filter(|other| other.channel == part.channel).count() >= MAX_UNFINISHED {
            return Err(BadRequest::MultipartBufferOverflow.into());
        }
        self.list.push(part);
        Ok(())
    }

    /// Discards a channel's requests.
    pub(crate) fn forget(&mut self, channel: ChannelId) {
        self.list.retain(|part| part.channel != channel);
    }

    /// Removes the overdue requests and returns them.
    fn take_late(&mut self, now: Instant) -> Vec<IncompleteRequest> {
        let (kept, late) = std::mem::take(&mut self.list).into_iter().partition(|part| part.until > now);
        self.list = kept;
        late
    }

    /// Returns the time when the next request is overdue.
    fn next(&self) -> Option<Instant> {
        self.list.iter().map(|part| part.until).min()
    }
}
