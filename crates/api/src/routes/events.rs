//! Events: a list of those that are kept, and a stream of them (Server-Sent Events, HTML Standard, 9.2).
//!
//! The feed tells listeners the number of the newest event, as soon as it has happened, and keeps the newest events. A
//! listener that has fallen behind these asks the network itself, so a slow one holds up no other.
use super::event_feed::{MAX_EVENTS, MAX_LISTENERS};
use super::{ApiState, body};
use crate::Problem;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Bytes, Frame};
use serde::Deserialize;
use serde_json::json;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use weir_routing::state::EventRecord;

/// Silence after which a listener is sent a comment, so that both ends notice if the other is gone.
const HEARTBEAT_TIME: Duration = Duration::from_secs(15);
/// Time for a listener to read what it was sent, after which its stream ends.
const SEND_TIME: Duration = Duration::from_secs(60);

type Shared = State<Arc<ApiState>>;

/// Parameters of `/events`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    after: Option<u64>,
    most: Option<usize>,
}

pub(super) async fn list(
    State(state): Shared,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Json<Vec<EventRecord>>, Problem> {
    let EventsQuery { after, most } = body::query(query)?;
    let most = most.unwrap_or(MAX_EVENTS);
    if !(1..=MAX_EVENTS).contains(&most) {
        return Err(Problem::bad_request(format!("most: found {most}, expected 1 to {MAX_EVENTS}")));
    }
    state.events_after(after.unwrap_or(0), most).await.map(Json)
}

/// Parameters of `/events/stream`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    after: Option<u64>,
}

/// Sends events after the one that `Last-Event-ID` names, or else the parameter `after`; without both, new ones.
pub(super) async fn stream(
    State(state): Shared,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let StreamQuery { after } = body::query(query)?;
    let after = last_event_id(&headers)?.or(after);
    let Ok(place) = Arc::clone(&state.events.places).try_acquire_owned() else {
        let problem = Problem::unavailable(format!("there are already {MAX_LISTENERS} listeners to events"));
        return Err(Problem { retry_after_s: Some(HEARTBEAT_TIME.as_secs()), ..problem });
    };
    // Asked for before the answer begins, so that a client that has the answer gets all later events. What the feed
    // knows may be old: it does not ask while there are no listeners.
    let known = *state.events.fetched.borrow();
    let newest = newest_after(&state, known).await?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(EventListener { state, sender, _place: place }.run(after, newest));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(EventBody(receiver))).into_response())
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || Problem::new(StatusCode::BAD_REQUEST, "Last-Event-ID: expected the number of an event");
    number.map(Some).ok_or_else(wrong)
}

/// Returns the number of the newest event, which is `known` if there is no newer one.
async fn newest_after(state: &ApiState, mut known: u64) -> Result<u64, Problem> {
    loop {
        let events = state.events_after(known, MAX_EVENTS).await?;
        known = events.last().map_or(known, |event| event.number.max(known));
        if events.len() < MAX_EVENTS {
            return Ok(known);
        }
    }
}

/// A client that is sent events.
struct EventListener {
    state: Arc<ApiState>,
    sender: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl EventListener {
    /// Sends events until the client or the network is gone.
    async fn run(self, after: Option<u64>, newest: u64) {
        self.state.events.listeners.send_modify(|count| *count += 1);
        let _ = self.send_all(after, newest).await;
        self.state.events.listeners.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// Sends events after a number, or those after `newest`. Returns `None` when the client or the network is gone.
    async fn send_all(&self, after: Option<u64>, mut newest: u64) -> Option<()> {
        let mut fetched = self.state.events.fetched.subscribe();
        // A first comment shows the client that it is connected.
        self.send(": events of the network\n\n".to_owned()).await?;
        let mut sent = after.unwrap_or(newest);
        if sent > newest {
            // The client knows events of an earlier run of the controller, whose numbers begin anew.
            self.send(format!("event: restarted\nid: 0\ndata: {}\n\n", json!({"last_event": newest}))).await?;
            sent = 0;
        }
        newest = newest.max(*fetched.borrow_and_update());
        loop {
            if sent < newest {
                sent = self.send_news(sent).await?.unwrap_or(newest);
                continue;
            }
            tokio::select! {
                changed = fetched.changed() => changed.ok()?,
                () = tokio::time::sleep(HEARTBEAT_TIME) => self.send(": heartbeat\n\n".to_owned()).await?,
                () = self.sender.closed() => return None,
            }
            newest = newest.max(*fetched.borrow_and_update());
        }
    }

    /// Sends the events after `sent`. Returns the number of the last one; `Some(None)` if there are none.
    async fn send_news(&self, sent: u64) -> Option<Option<u64>> {
        // The feed may not have asked yet for what this listener knows of.
        let events = match self.state.events.recent_after(sent).filter(|recent| !recent.is_empty()) {
            Some(recent) => recent,
            None => self.state.events_after(sent, MAX_EVENTS).await.ok()?,
        };
        let Some(last) = events.last().map(|event| event.number) else { return Some(None) };
        self.send(text_of(&events, sent)).await?;
        Some(Some(last))
    }

    async fn send(&self, text: String) -> Option<()> {
        self.sender.send_timeout(Bytes::from(text), SEND_TIME).await.ok()
    }
}

/// Formats events for a stream. If events between `sent` and the first one are no longer kept, `lost` says how many.
fn text_of(events: &[EventRecord], sent: u64) -> String {
    let mut text = String::new();
    let lost = events.first().map_or(0, |first| first.number.saturating_sub(sent + 1));
    if lost > 0 && sent > 0 {
        let _ = write!(text, "event: lost\ndata: {}\n\n", json!({"lost": lost}));
    }
    for event in events {
        let data = serde_json::to_string(event).unwrap_or_default();
        let _ = write!(text, "id: {}\ndata: {data}\n\n", event.number);
    }
    text
}

/// Body of a stream: the texts that its listener sends.
struct EventBody(mpsc::Receiver<Bytes>);

impl hyper::body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> EventRecord {
        EventRecord { number, time_s: 0.5, kind: "host-moved".into(), text: "a\nb".into(), alarm: false }
    }

    #[test]
    fn each_event_has_its_number_and_one_line_of_data() {
        let text = text_of(&[event(3), event(4)], 2);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2], lines[3]), ("id: 3", "", "id: 4"));
        assert!(lines[1].starts_with("data: {\"number\":3,") && lines[1].contains("a\\nb"), "{text}");
    }

    #[test]
    fn events_that_are_no_longer_kept_are_told() {
        assert!(text_of(&[event(9)], 2).starts_with("event: lost\ndata: {\"lost\":6}\n\nid: 9\n"));
        assert!(text_of(&[event(9)], 0).starts_with("id: 9\n"), "all that are kept were asked for");
    }
}
