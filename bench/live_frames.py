#!/usr/bin/env python3
"""Sends 60-byte UDP frames (64 on a wire) out of an interface as fast as one core can, from inside the kernel.

    bench/live_frames.py INTERFACE SOURCE_MAC DESTINATION_MAC SECONDS
    bench/live_frames.py redirect INTERFACE INTERFACE

The first form prints the number of offered frames and the time in seconds as JSON. The kernel makes the frames and runs
an XDP program on them that redirects them to the interface (BPF_PROG_TEST_RUN, live frames). This is two to three times
as fast as a packet socket, so the switch limits the rate and not the sender. The other end of a veth must have NAPI: an
XDP program (AF_XDP), or `ethtool -K NAME gro on`. Pin this process to a core (taskset); the other end receives on the
same core.

The second form redirects the received frames of each of two interfaces to the other by XDP until it is ended. It gives
an upper bound of what the kernel can forward.
"""
import ctypes
import json
import os
import platform
import signal
import socket
import struct
import sys
import time

SYS_BPF = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, PROG_TEST_RUN, LINK_CREATE, PROG_TYPE_XDP, ATTACH_TYPE_XDP, LIVE_FRAMES, DRIVER_MODE = 5, 10, 28, 6, 37, 2, 4
BATCH = 64
# Frames of the first run, which estimates the rate. The kernel sets a run up in some 30 ms, so runs are few and long.
CALIBRATION = 1 << 19
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attribute):
    result = libc.syscall(SYS_BPF[platform.machine()], command, attribute, len(attribute))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def load(interface):
    """Loads the XDP program `return bpf_redirect(interface, 0)` and returns its descriptor."""
    instructions = struct.pack("<" + "BBhi" * 4, 0xb7, 1, 0, interface, 0xb7, 2, 0, 0, 0x85, 0, 0, 23, 0x95, 0, 0, 0)
    code, license_ = ctypes.create_string_buffer(instructions), ctypes.create_string_buffer(b"GPL")
    attribute = struct.pack("<IIQQIIQII", PROG_TYPE_XDP, 4, ctypes.addressof(code), ctypes.addressof(license_), 0, 0, 0, 0, 0)
    return bpf(PROG_LOAD, ctypes.create_string_buffer(attribute, 128))


def redirect(first, second):
    """Redirects the frames of each interface to the other until the process is ended."""
    pairs = [(socket.if_nametoindex(first), socket.if_nametoindex(second))]
    links = [bpf(LINK_CREATE, ctypes.create_string_buffer(struct.pack("<IIII", load(to), at, ATTACH_TYPE_XDP, DRIVER_MODE), 128))
             for at, to in pairs + [pair[::-1] for pair in pairs]]
    print(f"redirecting by {len(links)} programs", flush=True)
    signal.pause()


def send(program, interface, frame, count):
    """Offers `count` frames and returns the time in seconds."""
    data = ctypes.create_string_buffer(frame, len(frame))
    context = ctypes.create_string_buffer(struct.pack("<IIIIII", 0, len(frame), 0, interface, 0, 0), 24)
    attribute = struct.pack("<IIIIQQIIIIQQIII", program, 0, len(frame), 0, ctypes.addressof(data), 0, count, 0, 24, 0,
                            ctypes.addressof(context), 0, LIVE_FRAMES, 0, BATCH)
    start = time.monotonic()
    bpf(PROG_TEST_RUN, ctypes.create_string_buffer(attribute, 128))
    return time.monotonic() - start


def udp_frame(source, destination):
    """Returns a frame from 10.99.0.1:1024 to 10.99.0.2:9 with 18 bytes of payload and no UDP checksum."""
    macs = bytes.fromhex((destination + source).replace(":", ""))
    ip = bytes.fromhex("0800 45000 02e 0000 4000 4011 25f7 0a630001 0a630002".replace(" ", ""))
    return (macs + ip + bytes.fromhex("0400 0009 001a 0000".replace(" ", ""))).ljust(60, b"\0")


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "redirect":
        return redirect(*sys.argv[2:])
    if len(sys.argv) != 5:
        sys.exit("usage: live_frames.py INTERFACE SOURCE_MAC DESTINATION_MAC SECONDS, or redirect INTERFACE INTERFACE")
    interface, frame, seconds = socket.if_nametoindex(sys.argv[1]), udp_frame(sys.argv[2], sys.argv[3]), float(sys.argv[4])
    program = load(interface)
    took = send(program, interface, frame, CALIBRATION)
    count = max(int(CALIBRATION / took * seconds), BATCH)
    took = send(program, interface, frame, count)
    print(json.dumps({"offered": count, "seconds": took}))


if __name__ == "__main__":
    main()
