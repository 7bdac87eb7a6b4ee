//! Tests of kernel ports against the kernel: network namespaces, veth pairs, real ping and TCP. Needs root.
mod af_packet;
mod af_xdp;
mod claim;
mod link;
mod tap;
mod testbed;
mod veth;
mod vlan;
