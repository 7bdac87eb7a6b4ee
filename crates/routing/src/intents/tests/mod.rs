//! Tests intents against switches that follow their routes packet by packet.
mod bed;
mod cases;
mod delays;
mod graph;
mod random;
