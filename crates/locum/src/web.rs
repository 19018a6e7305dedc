//! The web: what an agent reads from it, and the one place that opens connections for agents.
//!
//! What a model names may lead anywhere, so an address is judged where it is dialled: a name is looked up once, every
//! address that it has must be public, and the connection goes to one of exactly these. Each redirect is judged again.
//! Behind a proxy the proxy looks names up; then what can be known here is judged all the same.

mod address;
mod client;
mod dialer;
mod gate;
mod html;
mod network;
mod page;
mod public;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod namespace;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use address::Address;
pub(crate) use client::{Ask, Client};
pub(crate) use dialer::{Dialer, Reach};
pub(crate) use gate::{Gate, Passage, proxy_variables};
pub(crate) use page::Page;
