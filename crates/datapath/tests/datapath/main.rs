//! The datapath as its engine sees it: frames and messages in, frames and messages out.
mod agent;
mod bench;
mod chains;
mod corpus;
mod flow_mods;
mod forwarding;
mod frames;
mod hostile;
mod naive;
mod packet_io;
mod ports;
mod queues;
mod reference;
mod statistics;
mod table_features;
mod trace;
mod walk;
