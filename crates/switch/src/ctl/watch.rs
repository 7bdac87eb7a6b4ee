//! Carries out the requests of the control socket that go on until the client leaves: snooping on channels, and
//! monitoring as a channel of its own.
use super::server::{CtlContext, hung_up};
use super::{CtlReply, SnoopRecord};
use crate::control::{ByteStream, serve_tool, stopped};
use serde_json::json;
use std::io;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// Bytes of lines that are written at once.
const WRITE_BYTES: usize = 64 * 1024;
/// Name of the channel of `weir ctl monitor`.
const MONITOR: &str = "weir ctl monitor";

/// Sends the client a line for each message that passes the channels, until the client leaves or the switch stops.
pub(super) async fn snoop(context: CtlContext, mut stream: BufReader<UnixStream>) {
    let mut listener = context.control.registry.snoop().listen();
    let mut stopping = context.control.stopping.clone();
    let Ok(mut lines) = line(&CtlReply::Ok(json!({ "switch": context.identity.name }))) else { return };
    loop {
        let written = tokio::select! {
            () = stopped(&mut stopping) => return,
            written = stream.get_mut().write_all(&lines) => written,
        };
        if written.is_err() {
            return;
        }
        lines.clear();
        let mut next = tokio::select! {
            () = stopped(&mut stopping) => return,
            () = hung_up(&mut stream) => return,
            next = listener.next() => next,
        };
        if next.is_none() {
            return;
        }
        while let Some(message) = next {
            lines.extend(line(&SnoopRecord::Message(message)).unwrap_or_default());
            next = (lines.len() < WRITE_BYTES).then(|| listener.try_next()).flatten();
        }
        let lost = listener.take_lost();
        if lost > 0 {
            lines.extend(line(&SnoopRecord::Lost(lost)).unwrap_or_default());
        }
    }
}

/// Makes an OpenFlow channel of the client's connection. The switch treats it as that of a tool that connected to a
/// listener: it does not count as a controller.
pub(super) async fn monitor(context: CtlContext, mut stream: BufReader<UnixStream>) {
    let control = context.control;
    let reply = if control.registry.make_room() {
        CtlReply::Ok(json!({ "switch": context.identity.name }))
    } else {
        CtlReply::Error(format!("there are {} channels already", control.registry.room()))
    };
    let Ok(lines) = line(&reply) else { return };
    if stream.get_mut().write_all(&lines).await.is_err() || matches!(reply, CtlReply::Error(_)) {
        return;
    }
    serve_tool(control, ByteStream::new(stream.into_inner()), MONITOR).await;
}

fn line(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
