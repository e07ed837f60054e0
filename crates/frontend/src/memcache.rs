//! A memcached client's connection. Knows no socket.

use crate::Flow;
use std::sync::Arc;
use tenon_engine::Engine;
use tenon_engine::clients::Client;
use tenon_engine::wire::OutBuf;
use tenon_engine::worker::Worker;

/// One client's state.
pub struct MemcacheConnection {
    client: Arc<Client>,
}

impl MemcacheConnection {
    /// A connection at its start.
    pub fn new(_engine: &Engine, client: Arc<Client>) -> MemcacheConnection {
        MemcacheConnection { client }
    }

    /// What others may see of the client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Consumes all of `input`.
    pub fn on_bytes(&mut self, _engine: &Engine, _worker: &mut Worker, _input: &[u8], _out: &mut OutBuf) -> Flow {
        Flow::Close
    }

    /// Ends the connection.
    pub fn closed(&mut self, engine: &Engine) {
        engine.clients.remove(self.client.id);
    }
}
