//! Tests that VLAN tags arrive although the host has left their insertion to the device, as VLAN interfaces do. A BPF
//! program on the host's end of the link creates such tags, because not every kernel has VLAN interfaces.
use crate::testbed::{frame, open, receive, send, within};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use weir_packet::FramePool;
use weir_testing::{Namespace, root, skip};

const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const PROG_TYPE_SCHED_CLS: u64 = 3;
const ATTACH_TYPE_TCX_EGRESS: u64 = 47;

/// Calls bpf(2) with its parameters as words.
fn bpf<const N: usize>(command: i32, attribute: [u64; N]) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the words and the memory that their addresses point to, which lives during the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attribute, N * 8) };
    let descriptor = i32::try_from(result).expect("descriptors are small");
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call just created the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Attaches `bpf_skb_vlan_push(skb, htons(0x8100), 5); return TCX_PASS` to all frames that leave by an interface of
/// this namespace.
fn tag_what_leaves(name: &str) -> io::Result<OwnedFd> {
    let tpid = u64::from(0x8100u16.to_be());
    let instructions = [0x2b7 | tpid << 32, 0x3b7 | 5 << 32, 0x85 | 18 << 32, 0xb7, 0x95];
    let license = c"Apache-2.0";
    let count = instructions.len() as u64;
    let program = bpf(
        PROG_LOAD,
        [PROG_TYPE_SCHED_CLS | count << 32, instructions.as_ptr() as u64, license.as_ptr() as u64, 0, 0, 0],
    )?;
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let program = u64::from(program.as_raw_fd().cast_unsigned());
    bpf(LINK_CREATE, [program | u64::from(index) << 32, ATTACH_TYPE_TCX_EGRESS])
}

#[test]
fn tags_left_to_the_device_arrive() {
    if !root() {
        return;
    }
    for spec in ["af_packet:s0", "af_xdp:s0,mode=native", "af_xdp:s0,mode=generic"] {
        let (near, far) = (Namespace::new(), Namespace::new());
        near.join("s0", &far, "a0");
        let mut pool = FramePool::default();
        let mut port = open(&near, spec).unwrap();
        let _link = match within(&far, || tag_what_leaves("a0")).join().unwrap() {
            Ok(link) => link,
            Err(error) => return skip(&format!("needs programs on what leaves an interface (Linux 6.6): {error}")),
        };
        far.ip("addr add 10.77.0.1/24 dev a0");
        far.ip("neigh add 10.77.0.2 lladdr 02:00:00:00:00:0b dev a0");
        let sender = within(&far, || {
            let socket = std::net::UdpSocket::bind("10.77.0.1:0").unwrap();
            socket.send_to(&[7; 100], "10.77.0.2:9").unwrap();
        });
        sender.join().unwrap();
        let got = receive(&mut *port, &mut pool, |got| got.bytes().ends_with(&[7; 100])).expect("arrives");
        assert_eq!(got.bytes()[12..18], [0x81, 0, 0, 5, 8, 0], "{spec}");
        // The unfinished checksum is found after the tag.
        assert_eq!(got.offload.checksum.map(|checksum| checksum.start), Some(14 + 4 + 20), "{spec}");
        // In the other direction, a tag that weir sends is in the frame.
        let mut host = open(&far, "af_packet:a0").unwrap();
        let sent = frame(&[0x81, 0, 0, 5, 8, 0], 3, 60);
        send(&mut *port, &mut pool, &sent);
        let got = receive(&mut *host, &mut pool, |got| got.bytes().ends_with(&[3; 60])).expect("arrives");
        assert_eq!(got.bytes(), sent);
    }
}
