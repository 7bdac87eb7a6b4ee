//! Tests the codec with messages of other implementations, weir's own corpus, and random messages and bytes.
mod across;
mod corpus;
mod dice;
mod osken;
mod random;
mod vectors;
mod views;
