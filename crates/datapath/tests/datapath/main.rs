//! The datapath as its engine sees it: frames and messages in, frames and messages out.
mod bench;
mod forwarding;
