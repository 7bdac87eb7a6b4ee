//! Prints messages as text or JSON, and counts those that cannot be decoded.
use super::segment::TcpDirection;
use super::time::utc;
use std::io::{self, Write};
use std::process::ExitCode;
use weir_openflow::codec::MessageHeader;
use weir_openflow::text::{PrintDetail, print_bytes, print_message};
use weir_openflow::{Message, decode};

/// Time and direction of a captured message.
#[derive(Clone, Copy)]
pub(super) struct CaptureMetadata {
    pub(super) time_ns: u64,
    pub(super) direction: TcpDirection,
}

/// JSON form of a message. Time and addresses are present only for captures; `error` and `bytes` only if the message
/// cannot be decoded.
#[derive(serde::Serialize)]
struct JsonMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    version: String,
    #[serde(flatten)]
    message: Option<&'a Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    xid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

/// Prints messages and counts those that cannot be decoded.
pub(super) struct OfpMessagePrinter<W> {
    pub(super) out: W,
    /// Name of the file that messages come from, for errors; `None` for messages given as text.
    pub(super) input: Option<String>,
    json: bool,
    detail: PrintDetail,
    /// Messages printed so far.
    pub(super) count: u64,
    bad: u64,
    first_bad: Option<String>,
}

impl<W: Write> OfpMessagePrinter<W> {
    pub(super) fn new(out: W, json: bool, detail: PrintDetail) -> Self {
        OfpMessagePrinter { out, input: None, json, detail, count: 0, bad: 0, first_bad: None }
    }

    /// Prints a message, decodable or not.
    pub(super) fn message(&mut self, place: Option<CaptureMetadata>, bytes: &[u8]) -> io::Result<()> {
        self.count += 1;
        let decoded = decode(bytes).map_err(|error| error.to_string());
        if let Err(reason) = &decoded {
            self.bad += 1;
            let input = self.input.as_ref().map(|input| format!("{input}: ")).unwrap_or_default();
            self.first_bad.get_or_insert(format!("{input}message {}: {reason}", self.count));
        }
        let Some(header) = MessageHeader::read(bytes) else { return Ok(()) };
        if self.json {
            return self.record(place, header, &decoded, bytes);
        }
        if let Some(place) = place {
            let blank = if self.count > 1 { "\n" } else { "" };
            writeln!(self.out, "{blank}{} {}", utc(place.time_ns), place.direction)?;
        }
        let text = match &decoded {
            Ok(message) => print_message(message, header.version, self.detail),
            Err(_) => print_bytes(bytes, self.detail),
        };
        self.out.write_all(text.as_bytes())
    }

    fn record(
        &mut self,
        place: Option<CaptureMetadata>,
        header: MessageHeader,
        decoded: &Result<Message, String>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let record = JsonMessage {
            time: place.map(|place| utc(place.time_ns)),
            from: place.map(|place| place.direction.from.to_string()),
            to: place.map(|place| place.direction.to.to_string()),
            version: version_name(header.version),
            message: decoded.as_ref().ok(),
            xid: decoded.is_err().then_some(header.xid),
            error: decoded.as_ref().err().cloned(),
            bytes: decoded.is_err().then(hex),
        };
        serde_json::to_writer(&mut self.out, &record)?;
        self.out.write_all(b"\n")
    }

    /// Prints a remark about a stream at the time and direction `place`.
    pub(super) fn remark(&mut self, place: CaptureMetadata, text: &str) -> io::Result<()> {
        let (time, direction) = (utc(place.time_ns), place.direction);
        if self.json {
            let (from, to) = (direction.from.to_string(), direction.to.to_string());
            let remark = serde_json::json!({ "time": time, "from": from, "to": to, "remark": text });
            return writeln!(self.out, "{remark}");
        }
        writeln!(self.out, "\n{time} {direction}\n({text})")
    }

    /// Returns success, or an error if a message could not be decoded.
    pub(super) fn finish(self) -> anyhow::Result<ExitCode> {
        let Some(first) = self.first_bad else { return Ok(ExitCode::SUCCESS) };
        match self.bad {
            1 => anyhow::bail!("{first}"),
            bad => anyhow::bail!("{bad} of {} messages cannot be understood; {first}", self.count),
        }
    }
}

/// Returns a version's name, such as `1.3` for 4.
fn version_name(number: u8) -> String {
    match number {
        1..=6 => format!("1.{}", number - 1),
        other => format!("{other:#04x}"),
    }
}
