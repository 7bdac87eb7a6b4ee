//! Prints messages as text or JSON, and counts those that cannot be decoded.
use super::segment::TcpDirection;
use super::time::utc;
use std::io::{self, Write};
use std::process::ExitCode;
use weir_openflow::codec::MessageHeader;
use weir_openflow::text::{PrintDetail, print_bytes, print_bytes_line, print_message};
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

/// Time and ends of a message of a running switch.
pub(crate) struct MessagePlace<'a> {
    /// Time in nanoseconds since 1970.
    pub(crate) time_ns: u64,
    pub(crate) from: &'a str,
    /// Receiver, if that is not this program.
    pub(crate) to: Option<&'a str>,
}

/// Returns a message on one line: time, ends, and the text of the message.
pub(crate) fn text_line(place: &MessagePlace<'_>, bytes: &[u8]) -> String {
    let to = place.to.map(|to| format!(" > {to}")).unwrap_or_default();
    format!("{} {}{to} {}", utc(place.time_ns), place.from, print_bytes_line(bytes, PrintDetail::Packets))
}

/// Returns a message as a JSON object on one line, as `weir ofp print --json` has it.
pub(crate) fn json_line(place: &MessagePlace<'_>, bytes: &[u8]) -> serde_json::Result<String> {
    let decoded = decode(bytes).map_err(|error| error.to_string());
    let ends = [Some(place.from.to_owned()), place.to.map(str::to_owned)];
    let header = MessageHeader::read(bytes);
    let (version, xid) = header.map_or((0, 0), |header| (header.version, header.xid));
    serde_json::to_string(&record(Some(place.time_ns), ends, (version, xid), &decoded, bytes))
}

fn record<'a>(
    time_ns: Option<u64>,
    [from, to]: [Option<String>; 2],
    (version, xid): (u8, u32),
    decoded: &'a Result<Message, String>,
    bytes: &[u8],
) -> JsonMessage<'a> {
    let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    JsonMessage {
        time: time_ns.map(utc),
        from,
        to,
        version: version_name(version),
        message: decoded.as_ref().ok(),
        xid: decoded.is_err().then_some(xid),
        error: decoded.as_ref().err().cloned(),
        bytes: decoded.is_err().then(hex),
    }
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
        let ends =
            [place.map(|place| place.direction.from.to_string()), place.map(|place| place.direction.to.to_string())];
        let time_ns = place.map(|place| place.time_ns);
        let record = record(time_ns, ends, (header.version, header.xid), decoded, bytes);
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
