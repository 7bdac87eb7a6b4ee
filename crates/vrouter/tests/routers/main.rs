//! Tests virtual routers on real datapaths, in virtual time.
mod bed;
mod changes;
mod drawn;
mod forwarding;
mod host;
mod policies;
mod shared;
mod switch;
