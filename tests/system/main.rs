//! Tests the built `weir` command with real programs: kernel hosts, Open vSwitch's tools, other projects'
//! controllers.
//!
//! Each test creates its own network namespaces and removes everything again. A test that cannot run here is skipped
//! with a message (see weir-testing).
mod bed;
mod bench;
mod bench_rfc8456;
mod bundles;
mod chain;
mod compare;
mod controllers;
mod ctl_controller;
mod documentation;
mod emulate;
mod emulate_controllers;
mod emulate_limits;
mod failover;
mod failures;
mod full_disk;
mod groups;
mod idle;
mod interfaces;
mod local;
mod memory;
mod meters;
mod metrics;
mod mininet;
mod model;
mod ofctl;
mod packages;
mod pages;
mod port_mod;
mod predict;
mod profile;
mod profiling;
mod profiling_faults;
mod queues;
mod quickstart;
mod saving;
mod simulate;
mod tables;
mod tenants;
mod tls;
mod topology;
mod traffic;
mod tunnels;
mod validation;
