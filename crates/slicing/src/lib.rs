//! Virtual switches: one switch divided into several, each an OpenFlow datapath with guaranteed shares of ports and
//! buffers.
//!
//! This module holds the parts without thread or clock, which the live switch and engines in virtual time share.
//! Received frames are sorted by virtual switch ([`tenant_classifier`]) and their edge tags are removed ([`edge`]).
//! After the virtual switch's datapath they cross the fabric ([`fabric_ingress`]) to the line of an output
//! ([`fabric_egress`]).
pub mod convert;
pub(crate) mod cpu_shares;
pub mod edge;
pub mod fabric_egress;
pub mod fabric_ingress;
pub mod first_lookup;
pub mod tenant_classifier;
pub mod virtual_port;
