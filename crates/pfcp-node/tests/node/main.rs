//! A node and a client over real sockets, and the captures and rules of real peers.

mod captures;
mod deviations;
mod hostile;
mod load;
mod node;
mod peers;
mod policy;
mod robustness_test;
mod rules;
mod scenario;
mod store;
mod topics;
mod transactions;
mod usage;
