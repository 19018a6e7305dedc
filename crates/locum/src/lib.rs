//! Ask a specialist, get an answer: the delegation engine for agents.

pub mod store;
pub mod tools;

pub mod pool;

pub mod desk;
