use super::*;
use crate::spec::PortSpec;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn open(text: &str) -> Result<PcapPort, PortError> {
    let spec: PortSpec = text.parse()?;
    PcapPort::open(&spec.name, &spec.options)
}

/// Creates a directory with `c.pcap`: three frames at 0, 1000 and 3000 ns.
fn capture() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.pcap");
    let mut writer = PcapFileWriter::create(&path).unwrap();
    for (time_ns, byte) in [(0, 1), (1000, 2), (3000, 3)] {
        writer.write(Instant::from_nanos(time_ns), &[byte; 60]).unwrap();
    }
    (dir, path)
}

fn receive(port: &mut PcapPort, now_ns: u64, max: usize) -> Vec<u8> {
    let mut batch = Vec::new();
    port.receive(Instant::from_nanos(now_ns), &mut FramePool::default(), &mut batch, max).unwrap();
    batch.iter().map(|frame| frame.bytes()[0]).collect()
}

#[test]
fn as_fast_as_asked_for() {
    let (_dir, path) = capture();
    let mut port = open(&format!("pcap:in={}", path.display())).unwrap();
    assert_eq!((port.arm(), port.next_wake()), (ReceiveReadiness::Now, None));
    assert_eq!(receive(&mut port, 0, 2), [1, 2]);
    assert_eq!(receive(&mut port, 0, 2), [3]);
    assert_eq!((port.arm(), port.counters().rx_errors), (ReceiveReadiness::OnDescriptor, 0));
    assert_eq!((port.counters().rx_packets, port.counters().rx_bytes), (3, 180));
}

#[test]
fn at_the_captures_pace() {
    let (_dir, path) = capture();
    let mut port = open(&format!("pcap:in={},pace=on", path.display())).unwrap();
    assert_eq!((port.arm(), port.next_wake()), (ReceiveReadiness::OnDescriptor, Some(Instant::ZERO)));
    assert_eq!(receive(&mut port, 500, 9), [1]);
    assert_eq!(port.next_wake(), Some(Instant::from_nanos(1500)));
    assert_eq!(receive(&mut port, 1499, 9), [0u8; 0]);
    assert_eq!(receive(&mut port, 9000, 9), [2, 3]);
    assert_eq!(port.next_wake(), None);
}

#[test]
fn again_and_again() {
    let (_dir, path) = capture();
    let mut port = open(&format!("pcap:in={},loop=1", path.display())).unwrap();
    assert_eq!(receive(&mut port, 0, 8), [1, 2, 3, 1, 2, 3, 1, 2]);
    let mut port = open(&format!("pcap:in={},loop=1,pace=on", path.display())).unwrap();
    assert_eq!(receive(&mut port, 0, 8), [1]);
    assert_eq!(receive(&mut port, 3000, 8), [2, 3, 1]);
    assert_eq!(port.next_wake(), Some(Instant::from_nanos(4000)));
    assert_eq!(receive(&mut port, 4000, 8), [2]);
}

#[test]
fn what_is_sent_can_be_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.pcap");
    let mut port = open(&format!("pcap:p1,out={}", path.display())).unwrap();
    assert_eq!(port.info().name, "p1");
    let mut frames = vec![Frame::from_bytes(&[5; 60]), Frame::from_bytes(&[6; 1514])];
    port.transmit(Instant::from_nanos(7), &mut FramePool::default(), &mut frames).unwrap();
    assert_eq!((port.counters().tx_packets, port.counters().tx_bytes), (2, 1574));
    drop(port);
    let mut port = open(&format!("pcap:in={}", path.display())).unwrap();
    assert_eq!(receive(&mut port, 0, 9), [5, 6]);
    port.transmit(Instant::ZERO, &mut FramePool::default(), &mut vec![Frame::from_bytes(&[7; 60])]).unwrap();
    assert_eq!(port.counters().tx_errors, 1, "there is no file to send to");
}

#[test]
fn a_cut_file_gives_what_is_there_and_counts_an_error() {
    let (_dir, path) = capture();
    let whole = fs::read(&path).unwrap();
    for len in 25..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let frames = (len - 24) / 76;
        let text = format!("pcap:in={}", path.display());
        if frames == 0 {
            assert!(open(&text).map(|_| ()).unwrap_err().to_string().contains("ends in the middle"), "{len}");
            continue;
        }
        let mut port = open(&text).unwrap();
        assert_eq!(receive(&mut port, 0, 9).len(), frames, "{len}");
        assert_eq!(port.counters().rx_errors, u64::from((len - 24) % 76 != 0), "{len}");
        let error = open(&format!("{text},loop=1")).map(|_| ());
        assert_eq!(error.is_err(), (len - 24) % 76 != 0, "{len}");
    }
}

/// Returns one block of a little-endian pcapng file.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &len].concat()
}

/// Returns a pcapng file with an Ethernet interface in nanoseconds and an interface of another link type. Each has
/// frames.
fn pcapng() -> Vec<u8> {
    let section = block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let ethernet = block(1, &[1, 0, 0, 0, 0, 0, 4, 0, /* if_tsresol */ 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    let cooked = block(1, &[113, 0, 0, 0, 0, 0, 4, 0]);
    let packet = |interface: u32, time_ns: u32, byte: u8| {
        let fields = [interface, 0, time_ns, 58, 58].map(u32::to_le_bytes).concat();
        block(6, &[&fields[..], &[byte; 58], &[0; 2]].concat())
    };
    [section, ethernet, cooked, packet(0, 77, 1), packet(1, 78, 2), packet(0, 79, 3), packet(9, 80, 4)].concat()
}

#[test]
fn pcapng_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.pcapng");
    fs::write(&path, pcapng()).unwrap();
    let (mut reader, mut pool) = (PcapFileReader::open(&path).unwrap(), FramePool::default());
    let mut times = Vec::new();
    while let Some((time_ns, frame)) = reader.next(&mut pool).unwrap() {
        times.push((time_ns, frame.len()));
    }
    assert_eq!((times, reader.skipped()), (vec![(77, 58), (79, 58)], 2));
}

#[test]
fn what_is_no_ethernet_capture_is_refused() {
    let (_dir, path) = capture();
    let mut whole = fs::read(&path).unwrap();
    let message = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        open(&format!("pcap:in={}", path.display())).map(|_| ()).unwrap_err().to_string()
    };
    assert!(message(b"").contains("no pcap or pcapng header"));
    assert!(message(&[7; 100]).contains("no pcap or pcapng header"));
    whole[20] = 113;
    assert!(message(&whole).contains("expected Ethernet (link type 1)"));
    whole[20] = 1;
    whole[24 + 8..24 + 12].fill(0xff);
    assert!(message(&whole).contains("longer than"));
    assert!(open("pcap:x").map(|_| ()).unwrap_err().to_string().contains("expected in=FILE"));
    let missing = open("pcap:in=/does/not/exist").map(|_| ()).unwrap_err().to_string();
    assert!(missing.starts_with("port pcap:in=/does/not/exist: read /does/not/exist: No such file"), "{missing}");
}

proptest::proptest! {
    /// Reading ends without a panic for any file contents.
    #[test]
    fn any_file_is_survived(
        ng in proptest::bool::ANY,
        changes in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 1..8),
    ) {
        let (_dir, path) = capture();
        let mut bytes = if ng { pcapng() } else { fs::read(&path).unwrap() };
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(mut reader) = PcapFileReader::open(&path) {
            let mut pool = FramePool::default();
            for _ in 0..100 {
                match reader.next(&mut pool) {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
}
