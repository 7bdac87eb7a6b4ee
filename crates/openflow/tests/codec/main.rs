//! The codec against other implementations' messages, our own corpus, and random messages and bytes.
mod corpus;
mod dice;
mod osken;
mod random;
mod vectors;
