//! Loads the XDP program that redirects all frames of an interface to AF_XDP sockets.
use super::CAPABILITIES;
use crate::PortError;
use crate::interface::{KernelInterface, refused};
use crate::spec::PortOptions;
use crate::sys::bpf::{self, BpfInstruction};
use crate::sys::{errno, while_busy};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Place in the kernel at which frames are redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum XdpAttachMode {
    /// In the driver, before the kernel allocates a socket buffer.
    Native,
    /// After the driver: works with every interface, but slower.
    Generic,
}

impl XdpAttachMode {
    /// Returns the mode's flag of `BPF_LINK_CREATE` (`XDP_FLAGS_...`).
    fn flag(self) -> u32 {
        match self {
            XdpAttachMode::Generic => 1 << 1,
            XdpAttachMode::Native => 1 << 2,
        }
    }
}

/// The attached program; dropping it detaches the program, as does the end of the process, which closes the
/// descriptor.
pub(super) struct XdpProgram {
    pub(super) mode: XdpAttachMode,
    _link: OwnedFd,
    map: OwnedFd,
}

impl XdpProgram {
    /// Attaches the program in the requested mode; without one, in native mode if the interface supports it, else in
    /// generic mode.
    pub(super) fn attach(
        interface: &KernelInterface,
        queues: u32,
        mode: Option<XdpAttachMode>,
        options: &PortOptions,
    ) -> Result<Self, PortError> {
        let failed = |tried: &'static str| move |source| refused(options, tried, source, CAPABILITIES);
        let map = bpf::create_socket_map(queues).map_err(failed("create a map of AF_XDP sockets"))?;
        let program = bpf::load(&instructions(map.as_fd())).map_err(failed("load the XDP program"))?;
        let attach = |mode: XdpAttachMode| while_busy(|| bpf::attach(program.as_fd(), interface.index(), mode.flag()));
        let (mode, link) = match mode {
            Some(mode) => (mode, attach(mode)),
            None => match attach(XdpAttachMode::Native) {
                Err(error) if errno(&error) != libc::EBUSY && errno(&error) != libc::EPERM => {
                    tracing::warn!(
                        port = options.spec(),
                        %error,
                        "no driver mode here: using the slower generic mode (mode=generic says so without this warning)"
                    );
                    (XdpAttachMode::Generic, attach(XdpAttachMode::Generic))
                }
                link => (XdpAttachMode::Native, link),
            },
        };
        match link {
            Ok(link) => Ok(XdpProgram { mode, _link: link, map }),
            Err(source) => Err(not_attached(options, interface.name(), mode, source)),
        }
    }

    /// Directs the frames of a queue to its socket.
    pub(super) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::set_socket(self.map.as_fd(), queue, socket)
    }
}

/// Returns the program `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)`: frames of a queue without
/// a socket go to the kernel.
fn instructions(map: BorrowedFd<'_>) -> [BpfInstruction; 6] {
    use std::os::fd::AsRawFd as _;
    const LOAD_WORD: u8 = 0x61;
    const LOAD_IMMEDIATE_64: u8 = 0x18;
    const MOVE_IMMEDIATE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const RX_QUEUE_INDEX: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    let instruction = |code, registers, offset, immediate| BpfInstruction { code, registers, offset, immediate };
    [
        instruction(LOAD_WORD, 0x12, RX_QUEUE_INDEX, 0),
        // Source register 1 marks the number as a map's descriptor.
        instruction(LOAD_IMMEDIATE_64, 0x11, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, 0x03, 0, XDP_PASS),
        instruction(CALL, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0),
    ]
}

fn not_attached(options: &PortOptions, name: &str, mode: XdpAttachMode, source: io::Error) -> PortError {
    let advice = match (errno(&source), mode) {
        (libc::EPERM | libc::EACCES, _) => return refused(options, "attach the XDP program", source, CAPABILITIES),
        (libc::EBUSY, _) => format!(
            "; another program is attached to {name}: see `ip link show {name}`, detach it with `ip link set {name} xdp off`"
        ),
        (_, XdpAttachMode::Native) => format!("; try mode=generic, or --port N=af_packet:{name}"),
        (_, XdpAttachMode::Generic) => format!("; try --port N=af_packet:{name}"),
    };
    let tried = format!("attach the XDP program in {mode:?} mode").to_lowercase().replace("xdp", "XDP");
    PortError::System { spec: options.spec().to_owned(), tried, source, advice }
}
