//! `weir ofp print`: prints messages from hexadecimal text, files and captures.
use super::hex;
use super::printer::OfpMessagePrinter;
use super::{capture, connections};
use anyhow::Context as _;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use weir_openflow::codec::{HEADER_BYTES, MessageHeader};
use weir_openflow::text::PrintDetail;

/// Longest input that is not a capture, in bytes.
const MAX_INPUT: u64 = 256 << 20;

#[derive(clap::Args)]
pub(crate) struct OfpPrintArgs {
    /// Hexadecimal digits, a file, or - for standard input: text, raw messages, or a pcap or pcapng capture
    #[arg(required = true, value_name = "HEX|FILE|-")]
    inputs: Vec<String>,
    /// Print one JSON object per message
    #[arg(long)]
    json: bool,
    /// In captures: read only TCP connections of this port, and treat them as OpenFlow
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Detail in which packets inside messages are printed
    #[arg(long, value_enum, default_value = "packets")]
    detail: PacketDetailArg,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PacketDetailArg {
    /// No packets, only the fields of messages
    Fields,
    /// Headers of packets
    Packets,
    /// Headers and bytes of packets
    Bytes,
}

pub(super) fn run(args: &OfpPrintArgs) -> anyhow::Result<ExitCode> {
    let detail = match args.detail {
        PacketDetailArg::Fields => PrintDetail::Fields,
        PacketDetailArg::Packets => PrintDetail::Packets,
        PacketDetailArg::Bytes => PrintDetail::Bytes,
    };
    let out = io::BufWriter::new(io::stdout().lock());
    let mut printer = OfpMessagePrinter::new(out, args.json, detail);
    let read = read_inputs(args, &mut printer).and(printer.out.flush().map_err(Into::into));
    if read.as_ref().is_err_and(is_broken_pipe) {
        return Ok(ExitCode::SUCCESS); // the reader closed its end early
    }
    // Messages before the error have been printed.
    read.and_then(|()| printer.finish())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn read_inputs(args: &OfpPrintArgs, printer: &mut OfpMessagePrinter<impl Write>) -> anyhow::Result<()> {
    if let Some(bytes) = pasted(&args.inputs) {
        return messages(&bytes, printer);
    }
    for input in &args.inputs {
        printer.input = None;
        match input.as_str() {
            "-" => {
                printer.input = Some("standard input".to_owned());
                read_file(io::stdin(), args.port, printer).context("standard input")?;
            }
            path if Path::new(path).exists() => {
                let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
                printer.input = Some(path.to_owned());
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

/// Joins arguments that are all hexadecimal digits, because the shell splits pasted text at spaces.
fn pasted(inputs: &[String]) -> Option<Vec<u8>> {
    let is_hex = |input: &String| !Path::new(input).exists() && hex::parse(input).is_ok();
    (inputs.len() > 1 && inputs.iter().all(is_hex)).then(|| hex::parse(&inputs.join(" ")).ok()).flatten()
}

fn read_file(
    mut file: impl io::Read + Send,
    port: Option<u16>,
    printer: &mut OfpMessagePrinter<impl Write>,
) -> anyhow::Result<()> {
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start)?;
    let whole = io::Cursor::new(start.clone()).chain(file);
    if capture::is_capture(&start) {
        return connections::print(whole, port, printer);
    }
    let mut bytes = Vec::new();
    whole.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= MAX_INPUT, "longer than {MAX_INPUT} bytes and not a capture");
    // A message starts with its version, 1 to 6; text does not contain these bytes.
    let is_text = bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..)) && !bytes.is_empty();
    match std::str::from_utf8(&bytes) {
        Ok(text) if is_text => messages(&hex::parse(text).map_err(|error| anyhow::anyhow!("{error}"))?, printer),
        _ => messages(&bytes, printer),
    }
}

/// Prints consecutive messages.
fn messages(bytes: &[u8], printer: &mut OfpMessagePrinter<impl Write>) -> anyhow::Result<()> {
    anyhow::ensure!(!bytes.is_empty(), "found nothing, expected an OpenFlow message");
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let number = printer.count + 1;
        let Some(header) = MessageHeader::read(rest) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(bytes: &[u8], json: bool) -> (String, anyhow::Result<()>, anyhow::Result<ExitCode>) {
        let mut printer = OfpMessagePrinter::new(Vec::new(), json, PrintDetail::Packets);
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
    fn what_cannot_be_understood_is_told_with_its_file() {
        let mut printer = OfpMessagePrinter::new(Vec::new(), false, PrintDetail::Fields);
        printer.input = Some("session.bin".to_owned());
        messages(&[4, 99, 0, 8, 0, 0, 0, 1], &mut printer).unwrap();
        let error = printer.finish().unwrap_err().to_string();
        assert!(error.starts_with("session.bin: message 1: "), "{error}");
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
