//! The codec against other implementations' messages, our own corpus, and random messages and bytes.
mod across;
mod corpus;
mod dice;
mod osken;
mod random;
mod vectors;
