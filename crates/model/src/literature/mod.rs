//! Implements models of a switch and its controller from the literature.
//!
//! The papers of Jarschel, Mahmood and Goto are known to us through the list of their assumptions in Ansell's thesis
//! (Assessing the Accuracy of Performance Modelling in Software Defined Networks, 2017, chapter 2) and their
//! abstracts. The models here follow these assumptions.
mod banded;
mod base;
mod goto;
mod jarschel;
mod levels;
mod mahmood;
mod mahmood_network;
mod mmpp;
mod qbd;

pub use base::{Combine, base_service_rate};
pub use goto::{Goto, GotoState, MAX_PHASES, goto};
pub use jarschel::{Jarschel, Returning, jarschel};
pub use mahmood::mahmood;
pub use mahmood_network::{MAX_SWITCHES, NetworkState, Switch, mahmood_network};
pub use mmpp::{ModulatedPoisson, mmpp2_m1};
