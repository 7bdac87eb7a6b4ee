//! `weir ofp print`: messages out of hexadecimal text, files and captures.
use super::capture;
use super::framing::{Found, Framing};
use super::hex;
use super::tcp::{Direction, Piece, Streams};
use anyhow::Context as _;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use weir_openflow::codec::{HEADER_BYTES, Header};
use weir_openflow::text::{Detail, print_bytes, print_message};
use weir_openflow::{Message, decode};

/// Longest input that is not a capture, in bytes.
const MAX_INPUT: u64 = 256 << 20;
/// Streams without OpenFlow that are named; further ones are counted.
const MAX_NAMED: usize = 10;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Hexadecimal digits, a file, or - for standard input: text, raw messages, or a pcap or pcapng capture
    #[arg(required = true, value_name = "HEX|FILE|-")]
    inputs: Vec<String>,
    /// One JSON object per message
    #[arg(long)]
    json: bool,
    /// In captures: look only at TCP connections of this port, and take them for OpenFlow
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// How much of the packets in messages to show
    #[arg(long, value_enum, default_value = "packets")]
    detail: DetailArg,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum DetailArg {
    /// Nothing
    Fields,
    /// Their headers
    Packets,
    /// Their headers and bytes
    Bytes,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let detail = match args.detail {
        DetailArg::Fields => Detail::Fields,
        DetailArg::Packets => Detail::Packets,
        DetailArg::Bytes => Detail::Bytes,
    };
    let out = io::BufWriter::new(io::stdout().lock());
    let mut printer = Printer { out, json: args.json, detail, count: 0, bad: 0, first_bad: None };
    let read = read_inputs(args, &mut printer);
    printer.out.flush()?;
    // Messages before what is wrong have been printed.
    read.and_then(|()| printer.finish())
}

fn read_inputs(args: &Args, printer: &mut Printer<impl Write>) -> anyhow::Result<()> {
    if let Some(bytes) = pasted(&args.inputs) {
        return messages(&bytes, printer);
    }
    for input in &args.inputs {
        match input.as_str() {
            "-" => read_file(io::stdin(), args.port, printer).context("standard input")?,
            path if Path::new(path).exists() => {
                let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
                read_file(file, args.port, printer).with_context(|| path.to_owned())?;
            }
            text => {
                let bytes = hex::parse(text);
                let bytes = bytes.map_err(|error| anyhow::anyhow!("`{text}` is no file, and as text: {error}"))?;
                messages(&bytes, printer)?;
            }
        }
    }
    Ok(())
}

/// Arguments that are all hexadecimal digits are one text that the shell cut up.
fn pasted(inputs: &[String]) -> Option<Vec<u8>> {
    let is_hex = |input: &String| !Path::new(input).exists() && hex::parse(input).is_ok();
    (inputs.len() > 1 && inputs.iter().all(is_hex)).then(|| hex::parse(&inputs.join(" ")).ok()).flatten()
}

fn read_file(
    mut file: impl io::Read + Send,
    port: Option<u16>,
    printer: &mut Printer<impl Write>,
) -> anyhow::Result<()> {
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start)?;
    let whole = io::Cursor::new(start.clone()).chain(file);
    if capture::is_capture(&start) {
        return capture_messages(whole, port, printer);
    }
    let mut bytes = Vec::new();
    whole.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= MAX_INPUT, "longer than {MAX_INPUT} bytes and not a capture");
    // A message starts with its version, 1 to 6: no text does.
    let is_text = bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..)) && !bytes.is_empty();
    match std::str::from_utf8(&bytes) {
        Ok(text) if is_text => messages(&hex::parse(text).map_err(|error| anyhow::anyhow!("{error}"))?, printer),
        _ => messages(&bytes, printer),
    }
}

/// Prints messages that lie one behind the other.
fn messages(bytes: &[u8], printer: &mut Printer<impl Write>) -> anyhow::Result<()> {
    anyhow::ensure!(!bytes.is_empty(), "found nothing, expected an OpenFlow message");
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let number = printer.count + 1;
        let Some(header) = Header::read(rest) else {
            anyhow::bail!(
                "message {number} (byte {at}): found {} bytes, expected a header of {HEADER_BYTES}",
                rest.len()
            );
        };
        let length = usize::from(header.length);
        if length < HEADER_BYTES {
            anyhow::bail!("message {number} (byte {at}): found length {length}, expected at least {HEADER_BYTES}");
        }
        if length > rest.len() {
            anyhow::bail!(
                "message {number} (byte {at}): found {} bytes, expected the {length} its header says",
                rest.len()
            );
        }
        printer.message(None, &rest[..length])?;
        at += length;
    }
    Ok(())
}

/// Prints the messages of a capture's TCP connections.
fn capture_messages(
    file: impl io::Read + Send,
    port: Option<u16>,
    printer: &mut Printer<impl Write>,
) -> anyhow::Result<()> {
    let mut connections = Connections { port, framings: HashMap::new(), messages: 0 };
    let mut streams = Streams::default();
    let mut written = Ok(());
    let mut take = |direction: Direction, time_ns: u64, piece: Piece| {
        let result = connections.piece(Place { time_ns, direction }, piece, printer);
        written = std::mem::replace(&mut written, Ok(())).and(result);
    };
    let read = capture::read(file, |packet| streams.receive(packet.time_ns, &packet.frame, &mut take));
    let left_out = streams.left_out;
    streams.finish(&mut take);
    written?;
    printer.out.flush()?;
    connections.report(left_out);
    read.map_err(anyhow::Error::msg)?;
    anyhow::ensure!(connections.messages > 0, "found no OpenFlow message, expected a TCP connection with some");
    Ok(())
}

/// The directions of a capture's connections.
struct Connections {
    port: Option<u16>,
    framings: HashMap<Direction, Framing>,
    messages: u64,
}

impl Connections {
    fn piece(&mut self, place: Place, piece: Piece, printer: &mut Printer<impl Write>) -> io::Result<()> {
        let direction = place.direction;
        let wanted = |port| direction.from.port() == port || direction.to.port() == port;
        if !self.port.is_none_or(wanted) {
            return Ok(());
        }
        let framing = self.framings.entry(direction).or_default();
        let mut written = Ok(());
        match piece {
            Piece::Data(data) => framing.receive(&data, self.port.is_some(), |found| {
                let result = match found {
                    Found::Message(bytes) => {
                        self.messages += 1;
                        printer.message(Some(place), &bytes)
                    }
                    Found::OutOfStep(reason) => printer.remark(place, &reason),
                };
                written = std::mem::replace(&mut written, Ok(())).and(result);
            }),
            Piece::Lost(bytes) => {
                framing.lose();
                if framing.is_openflow() {
                    written = printer.remark(place, &format!("{bytes} bytes are missing in the capture"));
                }
            }
            Piece::Start => *framing = Framing::default(),
        }
        written
    }

    /// Says what was left out, on standard error.
    fn report(&self, left_out: u64) {
        let mut foreign: Vec<_> = self.framings.iter().filter(|(_, framing)| !framing.is_openflow()).collect();
        foreign.retain(|(_, framing)| framing.foreign_bytes > 0);
        foreign.sort_by_key(|(direction, _)| **direction);
        for (direction, framing) in foreign.iter().take(MAX_NAMED) {
            eprintln!("weir: {direction}: {} bytes, not OpenFlow", framing.foreign_bytes);
        }
        if foreign.len() > MAX_NAMED {
            eprintln!("weir: {} more streams are not OpenFlow", foreign.len() - MAX_NAMED);
        }
        if left_out > 0 {
            eprintln!("weir: {left_out} packets of further connections were left out");
        }
    }
}

/// Where and when a message was captured.
#[derive(Clone, Copy)]
struct Place {
    time_ns: u64,
    direction: Direction,
}

/// A message as JSON. Its place only in captures; its reason and bytes only if it cannot be understood.
#[derive(serde::Serialize)]
struct Record<'a> {
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

/// Prints messages and remembers those that cannot be understood.
struct Printer<W> {
    out: W,
    json: bool,
    detail: Detail,
    count: u64,
    bad: u64,
    first_bad: Option<String>,
}

impl<W: Write> Printer<W> {
    fn message(&mut self, place: Option<Place>, bytes: &[u8]) -> io::Result<()> {
        self.count += 1;
        let decoded = decode(bytes).map_err(|error| error.to_string());
        if let Err(reason) = &decoded {
            self.bad += 1;
            self.first_bad.get_or_insert(format!("message {}: {reason}", self.count));
        }
        let Some(header) = Header::read(bytes) else { return Ok(()) };
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
        place: Option<Place>,
        header: Header,
        decoded: &Result<Message, String>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let record = Record {
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

    /// Something about a stream rather than a message.
    fn remark(&mut self, place: Place, text: &str) -> io::Result<()> {
        let (time, direction) = (utc(place.time_ns), place.direction);
        if self.json {
            let (from, to) = (direction.from.to_string(), direction.to.to_string());
            let remark = serde_json::json!({ "time": time, "from": from, "to": to, "remark": text });
            return writeln!(self.out, "{remark}");
        }
        writeln!(self.out, "\n{time} {direction}\n({text})")
    }

    fn finish(self) -> anyhow::Result<ExitCode> {
        let Some(first) = self.first_bad else { return Ok(ExitCode::SUCCESS) };
        match self.bad {
            1 => anyhow::bail!("{first}"),
            bad => anyhow::bail!("{bad} of {} messages cannot be understood; {first}", self.count),
        }
    }
}

/// `1.3` for 4.
fn version_name(number: u8) -> String {
    match number {
        1..=6 => format!("1.{}", number - 1),
        other => format!("{other:#04x}"),
    }
}

/// A time as `2026-01-31T12:34:56.123456Z`.
fn utc(time_ns: u64) -> String {
    let (seconds, micros) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a day since 1970, in the Gregorian calendar: years start in March, so that leap days end them.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc(951_782_400_000_001_000), "2000-02-29T00:00:00.000001Z");
        assert_eq!(utc(1_700_000_000_999_999_999), "2023-11-14T22:13:20.999999Z");
    }

    fn printed(bytes: &[u8], json: bool) -> (String, anyhow::Result<()>, anyhow::Result<ExitCode>) {
        let mut printer = Printer { out: Vec::new(), json, detail: Detail::Packets, count: 0, bad: 0, first_bad: None };
        let read = messages(bytes, &mut printer);
        let text = String::from_utf8(std::mem::take(&mut printer.out)).unwrap();
        (text, read, printer.finish())
    }

    #[test]
    fn messages_before_a_bad_one_are_printed() {
        let bytes = [4, 0, 0, 8, 0, 0, 0, 1, 4, 20, 0, 8, 0, 0, 0, 2, 4, 14, 0];
        let (text, read, _) = printed(&bytes, false);
        assert_eq!(text.lines().count(), 3, "{text}");
        let error = read.unwrap_err().to_string();
        assert_eq!(error, "message 3 (byte 16): found 3 bytes, expected a header of 8");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let bytes = [4, 20, 0, 8, 0, 0, 0, 2, 4, 77, 0, 8, 0, 0, 0, 3];
        let (text, read, finished) = printed(&bytes, true);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], serde_json::json!({ "version": "1.3", "xid": 2, "body": "BarrierRequest" }));
        assert_eq!((lines[1]["xid"].as_u64(), lines[1]["bytes"].as_str()), (Some(3), Some("044d000800000003")));
        assert!(read.is_ok() && finished.unwrap_err().to_string().starts_with("message 2: "));
    }
}
