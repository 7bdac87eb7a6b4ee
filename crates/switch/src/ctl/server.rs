//! Serves the control socket: reads requests, carries them out, writes replies.
use super::clients::{line_of, read_request, serve_clients};
use super::{ConfigurationSource, CtlReply, CtlRequest};
use crate::control::{ControlContext, PeerChange, stopped};
use crate::engine::Engine;
use crate::handle::{SwitchError, SwitchIdentity};
use crate::snapshot::SwitchSnapshot;
use crate::socket::SocketFile;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;
use weir_port::queues::PortQueueConfig;

/// A bound control socket that is not served yet.
#[derive(Debug)]
pub(crate) struct CtlServer {
    socket: SocketFile,
    identity: SwitchIdentity,
    stop: watch::Sender<bool>,
    source: ConfigurationSource,
}

/// State needed to serve one client.
#[derive(Clone)]
pub(super) struct CtlContext {
    pub(super) control: ControlContext,
    pub(super) identity: SwitchIdentity,
    pub(super) stop: Arc<watch::Sender<bool>>,
    pub(super) source: Arc<Mutex<ConfigurationSource>>,
}

impl CtlServer {
    /// Returns a server that is not serving yet. `stop` becomes true when a client requests the switch to stop.
    pub(crate) fn new(
        socket: SocketFile,
        identity: SwitchIdentity,
        stop: watch::Sender<bool>,
        source: ConfigurationSource,
    ) -> CtlServer {
        CtlServer { socket, identity, stop, source }
    }

    /// Serves clients until the switch stops, then removes the socket.
    pub(crate) async fn serve(self, control: ControlContext) {
        let stopping = control.stopping.clone();
        let (stop, source) = (Arc::new(self.stop), Arc::new(Mutex::new(self.source)));
        let context = CtlContext { control, identity: self.identity, stop, source };
        let stopped = async {
            let mut stopping = stopping;
            stopped(&mut stopping).await;
        };
        if let Err(error) = serve_clients(self.socket, stopped, |stream| client(context.clone(), stream)).await {
            tracing::error!("control socket: {error}");
        }
    }
}

/// Serves one client until it closes the connection, sends a line that is too long, or the switch stops.
async fn client(context: CtlContext, stream: UnixStream) {
    let mut stopping = context.control.stopping.clone();
    let mut stream = BufReader::new(stream);
    loop {
        let request = tokio::select! {
            () = stopped(&mut stopping) => return,
            request = read_request(&mut stream) => request,
        };
        let Some(request) = request else { return };
        let is_last = request.as_ref().is_err_and(|refused| refused.is_last);
        let reply = match request {
            Err(refused) => CtlReply::Error(refused.problem),
            Ok(request) => match addressed(&context, request) {
                Err(error) => CtlReply::Error(error.to_string()),
                Ok((context, CtlRequest::Snoop)) => return super::watch::snoop(context, stream).await,
                Ok((context, CtlRequest::Monitor)) => return super::watch::monitor(context, stream).await,
                Ok((context, request)) => answer(&context, request, &mut stream).await,
            },
        };
        let Ok(line) = line_of(reply).await else { return };
        // The write is polled first, so that the reply to a stop request is sent before the stop ends this task.
        let written = tokio::select! {
            biased;
            written = stream.get_mut().write_all(&line) => written,
            () = stopped(&mut stopping) => return,
        };
        if written.is_err() || is_last {
            return;
        }
    }
}

/// Waits until the client has closed the connection. Does not consume input. Never returns if the client sent more or
/// only shut down its sending half, because it still waits for a reply.
pub(super) async fn hung_up(stream: &mut BufReader<UnixStream>) {
    let said_more = !stream.buffer().is_empty() || stream.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty());
    let ready = stream.get_ref().ready(tokio::io::Interest::WRITABLE).await;
    if said_more || ready.is_ok_and(|ready| !ready.is_write_closed()) {
        std::future::pending().await
    }
}

/// Carries out a request and returns the reply. `stream` is the client's connection, from which nothing is consumed.
async fn answer(context: &CtlContext, request: CtlRequest, stream: &mut BufReader<UnixStream>) -> CtlReply {
    let is_watch = matches!(request, CtlRequest::Perf { .. });
    let carried_out = tokio::select! {
        carried_out = carry_out_here(context, request) => carried_out,
        // A measurement ends when its client disconnects.
        () = hung_up(stream), if is_watch => return CtlReply::Error("nobody waits for this".to_owned()),
    };
    match carried_out {
        Ok(value) => CtlReply::Ok(value),
        Err(error) => CtlReply::Error(error.to_string()),
    }
}

/// Returns a request with the switch that it is for: the virtual switch that it names, or the switch itself.
///
/// # Errors
/// There is no such virtual switch, or the request is for the switch itself only.
fn addressed(context: &CtlContext, request: CtlRequest) -> Result<(CtlContext, CtlRequest), SwitchError> {
    let CtlRequest::Of { name, what } = request else { return Ok((context.clone(), request)) };
    let tenant = context.control.virtuals.find(&name)?;
    if !is_for_virtual(&what) {
        let problem = "this is for the switch itself; ask it without --vs".to_owned();
        return Err(SwitchError::Virtual { name, problem });
    }
    Ok((CtlContext { control: tenant.control, identity: tenant.identity, ..context.clone() }, *what))
}

/// Returns true if the request may be sent to a virtual switch.
fn is_for_virtual(request: &CtlRequest) -> bool {
    !matches!(
        request,
        CtlRequest::AddPort { .. }
            | CtlRequest::DelPort { .. }
            | CtlRequest::SetQueue { .. }
            | CtlRequest::DelQueue { .. }
            | CtlRequest::Perf { .. }
            | CtlRequest::Profile { .. }
            | CtlRequest::AddVirtual { .. }
            | CtlRequest::ResizeVirtual { .. }
            | CtlRequest::RemoveVirtual { .. }
            | CtlRequest::ShowVirtual { .. }
            | CtlRequest::Of { .. }
            | CtlRequest::AddController { .. }
            | CtlRequest::DelController { .. }
            | CtlRequest::AddListener { .. }
            | CtlRequest::DelListener { .. }
            | CtlRequest::SetFailMode { .. }
            | CtlRequest::Configuration
            | CtlRequest::SetConfigurationText { .. }
            | CtlRequest::Stop
    )
}

async fn carry_out_here(context: &CtlContext, request: CtlRequest) -> Result<Value, SwitchError> {
    let engine = &context.control.engine;
    match request {
        CtlRequest::Show => {
            let snapshot = engine.snapshot().await?;
            Ok(json!(SwitchSnapshot::new(&context.identity, snapshot, &context.control.registry)))
        }
        CtlRequest::DelPort { port } => {
            let removed = engine.call_async(move |engine| {
                let number = engine.physical().find_port(&port)?;
                Ok::<_, SwitchError>((number, engine.remove_port(number)))
            });
            let (number, slot) = removed.await??;
            // Closing a device may take the kernel a while.
            let _ = tokio::task::spawn_blocking(move || drop(slot)).await;
            Ok(json!({ "removed": number }))
        }
        CtlRequest::SetQueue { port, queue } => {
            let config: PortQueueConfig = queue.parse().map_err(SwitchError::Request)?;
            let set = move |engine: &mut Engine| {
                let number = engine.physical().find_port(&port)?;
                engine.set_queue(number, config)
            };
            engine.call_async(set).await??;
            Ok(json!({ "queue": config.id }))
        }
        CtlRequest::DelQueue { port, queue } => {
            let remove = move |engine: &mut Engine| {
                let number = engine.physical().find_port(&port)?;
                engine.remove_queue(number, queue)
            };
            engine.call_async(remove).await??;
            Ok(json!({ "removed": queue }))
        }
        CtlRequest::Stop => {
            context.stop.send_replace(true);
            Ok(json!({ "stopping": context.identity.name }))
        }
        CtlRequest::DumpGroups | CtlRequest::DumpGroupStats { .. } | CtlRequest::GroupMod { .. } => {
            super::groups::carry_out(engine, request).await
        }
        CtlRequest::MeterMod { command, meter } => super::meters::change(engine, command, &meter).await,
        CtlRequest::DumpMeters { meter } => super::meters::dump(engine, &meter).await,
        CtlRequest::MeterStats { meter } => super::meters::stats(engine, &meter).await,
        CtlRequest::AddVirtual { text, file } => super::virtuals::add(&context.control, &text, &file).await,
        CtlRequest::ResizeVirtual { name, text, file } => {
            super::virtuals::resize(&context.control, &name, &text, &file).await
        }
        CtlRequest::RemoveVirtual { name } => super::virtuals::remove(&context.control, &name).await,
        CtlRequest::ShowVirtual { name } => super::virtuals::show(&context.control, name.as_deref()).await,
        CtlRequest::Profile { commands } => super::profile::show(engine, commands).await,
        CtlRequest::AddController { controller } => {
            let spec = controller.parse().map_err(SwitchError::Request)?;
            context.control.change_peers(PeerChange::AddController(spec)).await?;
            Ok(json!({ "added": controller }))
        }
        CtlRequest::DelController { controller } => {
            let spec = controller.parse().map_err(SwitchError::Request)?;
            context.control.change_peers(PeerChange::RemoveController(spec)).await?;
            Ok(json!({ "removed": controller }))
        }
        CtlRequest::AddListener { listener } => {
            let target = listener.parse().map_err(SwitchError::Request)?;
            context.control.change_peers(PeerChange::AddListener(target)).await?;
            Ok(json!({ "added": listener }))
        }
        CtlRequest::DelListener { listener } => {
            let target = listener.parse().map_err(SwitchError::Request)?;
            context.control.change_peers(PeerChange::RemoveListener(target)).await?;
            Ok(json!({ "removed": listener }))
        }
        CtlRequest::SetFailMode { mode } => {
            engine.call_async(move |engine| engine.set_fail_mode(mode)).await?;
            Ok(json!({ "fail_mode": mode }))
        }
        CtlRequest::Configuration => super::configuration::read(context).await,
        CtlRequest::SetConfigurationText { text } => super::configuration::set_text(context, text),
        CtlRequest::Perf { seconds } => super::perf::watch(context, seconds).await,
        CtlRequest::ShowController => Err(SwitchError::Request(
            "this is a switch, expected a controller; `weir ctl show` asks a switch".to_owned(),
        )),
        other => super::flows::carry_out(engine, other).await,
    }
}
