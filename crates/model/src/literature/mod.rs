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

pub use base::{ServiceAveraging, base_service_rate};
pub use goto::{GotoModel, GotoModelState, MAX_PHASES, goto};
pub use jarschel::{ControllerVisits, JarschelModel, jarschel};
pub use mahmood::mahmood;
pub use mahmood_network::{JacksonNetworkState, JacksonSwitch, MAX_SWITCHES, mahmood_network};
pub use mmpp::{ModulatedPoisson, mmpp2_m1};
