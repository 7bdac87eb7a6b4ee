//! bpf(2): the commands that redirect an interface's frames to AF_XDP sockets.
use super::{check, owned};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
/// Flag: the program accepts frames that span several buffers.
const PROG_XDP_HAS_FRAGS: u32 = 1 << 5;

/// A BPF instruction (`struct bpf_insn`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BpfInstruction {
    pub(crate) code: u8,
    /// Destination in the low four bits, source in the high four bits.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// Parameters of a command: the beginning of `union bpf_attr` that the command uses.
trait BpfAttribute {}

#[repr(C)]
struct BpfMapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
}

#[repr(C)]
struct BpfMapElement {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct BpfProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
struct BpfLinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

impl BpfAttribute for BpfMapCreate {}
impl BpfAttribute for BpfMapElement {}
impl BpfAttribute for BpfProgramLoad {}
impl BpfAttribute for BpfLinkCreate {}

/// Creates a map from queue numbers to AF_XDP sockets.
pub(crate) fn create_socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attribute =
        BpfMapCreate { kind: MAP_TYPE_XSKMAP, key_bytes: 4, value_bytes: 4, entries_max: queues, flags: 0 };
    owned(call(MAP_CREATE, &mut attribute))
}

/// Puts a queue's socket into the map.
pub(crate) fn set_socket(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = number(socket);
    let (key, value) = (&raw const queue as u64, &raw const value as u64);
    let mut attribute = BpfMapElement { map: number(map), _padding: 0, key, value, flags: 0 };
    check(call(MAP_UPDATE_ELEM, &mut attribute)).map(drop)
}

/// Loads an XDP program.
pub(crate) fn load(instructions: &[BpfInstruction]) -> io::Result<OwnedFd> {
    let with_flags = |flags| {
        let mut attribute = BpfProgramLoad {
            kind: PROG_TYPE_XDP,
            instruction_count: u32::try_from(instructions.len()).unwrap_or(0),
            instructions: instructions.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags,
        };
        owned(call(PROG_LOAD, &mut attribute))
    };
    // Kernels before 5.18 do not support frames of several buffers.
    with_flags(PROG_XDP_HAS_FRAGS).or_else(|error| match super::errno(&error) {
        libc::EINVAL => with_flags(0),
        _ => Err(error),
    })
}

/// Attaches a program to an interface; closing the returned descriptor detaches it.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: i32, flags: u32) -> io::Result<OwnedFd> {
    let interface = interface.cast_unsigned();
    let mut attribute = BpfLinkCreate { program: number(program), interface, attach_type: ATTACH_TYPE_XDP, flags };
    owned(call(LINK_CREATE, &mut attribute))
}

fn call<T: BpfAttribute>(command: i32, attribute: &mut T) -> i32 {
    // SAFETY: the kernel reads at most the length given; addresses inside are of values that the callers above keep
    // alive during the call, with the lengths that the command's other fields state.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attribute, size_of::<T>()) };
    i32::try_from(result).unwrap_or(-1)
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}
