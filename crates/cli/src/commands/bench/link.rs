//! The connection to the switch that is measured: as simple as it can be, so that the switch is what takes time.
use anyhow::{Context as _, bail, ensure};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody};
use weir_openflow::session::{Event, Session, SessionConfig};
use weir_openflow::{Body, Message, Version};
use weir_units::{Clock as _, SystemClock};

/// Silence of the switch after which the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Where a switch listens.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Tcp(String),
    Unix(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once(':') {
            Some(("tcp", address)) if address.contains(':') => Ok(Target::Tcp(address.to_owned())),
            Some(("unix", path)) if !path.is_empty() => Ok(Target::Unix(path.to_owned())),
            _ => Err(format!("found {text:?}, expected tcp:HOST:PORT or unix:PATH of a switch that listens")),
        }
    }
}

trait Stream: Read + Write + Send {
    fn twin(&self) -> std::io::Result<Box<dyn Stream>>;
}

impl Stream for TcpStream {
    fn twin(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(Box::new(self.try_clone()?))
    }
}

impl Stream for UnixStream {
    fn twin(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(Box::new(self.try_clone()?))
    }
}

/// See the module's page.
pub(super) struct Link {
    stream: Box<dyn Stream>,
    session: Session,
    clock: SystemClock,
    piece: Vec<u8>,
}

impl Link {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// Nobody listens there, or not with this version.
    pub(super) fn connect(target: &Target, version: Version, clock: SystemClock) -> anyhow::Result<Link> {
        let stream: Box<dyn Stream> = match target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect(address).with_context(|| format!("connecting to tcp:{address}"))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            Target::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(|| format!("connecting to unix:{path}"))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        let config =
            SessionConfig { versions: vec![version], echo_interval: Duration::ZERO, ..SessionConfig::default() };
        let session = Session::controller(config, clock.now());
        let mut link = Link { stream, session, clock, piece: vec![0; READ_BYTES] };
        link.flush()?;
        while link.session.version().is_none() {
            link.read()?;
            while let Some(event) = link.session.next_event() {
                if let Event::Closed { reason } = event {
                    bail!("the handshake failed: {reason}");
                }
            }
        }
        Ok(link)
    }

    /// Sends a message; gives the body of its reply. Messages that the switch sends of its own accord are passed over.
    ///
    /// # Errors
    /// An error from the switch, to this message or to one before; the connection ends.
    pub(super) fn ask(&mut self, body: Body) -> anyhow::Result<Body> {
        let xid = self.send(body)?;
        self.reply_to(xid)
    }

    /// Sends bytes, then a message; gives the body of that one's reply. What comes meanwhile is read meanwhile.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub(super) fn stream_and_ask(&mut self, bytes: &[u8], body: Body) -> anyhow::Result<Body> {
        let xid = self.queue(body)?;
        let mut writer = self.stream.twin().context("copying the connection's descriptor")?;
        let last = std::mem::take(self.session.output());
        std::thread::scope(|scope| {
            let written = scope.spawn(move || writer.write_all(bytes).and_then(|()| writer.write_all(&last)));
            let reply = self.reply_to(xid);
            let written = written.join().expect("writing does not panic");
            let reply = reply?;
            written.context("writing to the switch")?;
            Ok(reply)
        })
    }

    /// Asks for flow entries; how many the parts of the reply tell of.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub(super) fn ask_flows(&mut self, request: MultipartRequest) -> anyhow::Result<u64> {
        let xid = self.send(Body::MultipartRequest(request))?;
        let mut found = 0;
        loop {
            let Body::MultipartReply(part) = self.reply_to(xid)? else { bail!("the switch answers something else") };
            if let ReplyBody::Flow(entries) = &part.body {
                found += entries.len() as u64;
            }
            if !part.more {
                return Ok(found);
            }
        }
    }

    /// Sends a message that is not answered when all is well; gives its transaction id.
    pub(super) fn send(&mut self, body: Body) -> anyhow::Result<u32> {
        let xid = self.queue(body)?;
        self.flush()?;
        Ok(xid)
    }

    /// Sends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).context("writing to the switch")
    }

    fn queue(&mut self, body: Body) -> anyhow::Result<u32> {
        let xid = self.session.next_xid();
        self.session.send(&Message { xid, body })?;
        Ok(xid)
    }

    fn reply_to(&mut self, xid: u32) -> anyhow::Result<Body> {
        loop {
            while let Some(event) = self.session.next_event() {
                match event {
                    Event::Message(Message { body: Body::Error(error), xid }) => {
                        bail!("the switch answered message {xid} with {:?}", error.error)
                    }
                    Event::Message(message) if message.xid == xid => return Ok(message.body),
                    Event::Closed { reason } => bail!("the session ended: {reason}"),
                    _ => {}
                }
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let bytes = self.stream.read(&mut self.piece).with_context(|| format!("no answer within {PATIENCE:?}"))?;
        ensure!(bytes != 0, "the switch closed the connection");
        self.session.receive(self.clock.now(), &self.piece[..bytes]);
        // Answers to echo requests. A short write cannot tear a flow-mod apart: they come with the switch's silence only.
        self.flush()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let output = std::mem::take(self.session.output());
        self.stream.write_all(&output).context("writing to the switch")
    }
}
