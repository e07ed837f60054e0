//! What CONFIG SET brings about outside the engine: another level of logging, other places to listen, more open files.

use crate::net::{Bind, Endpoint, FrontEnd, Listen, Listening, Places, STAND_INS_MAX, TlsTerms};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use tenon_engine::Engine;
use tenon_engine::changed_settings::ChangeOutside;
use tenon_engine::config::{Config, IoChoice, Setting, SettingId, ValueError};

use crate::logging::{Level, Logging};
use crate::open_files::{Needs, OpenFiles, TooFew, raise_for};
use crate::tls::Tls;

/// Everything outside the engine that settings are applied to.
#[derive(Clone)]
pub(crate) struct Outside {
    engine: Weak<Engine>,
    logging: Logging,
    tls: Tls,
    /// Said once the server listens.
    listening: Arc<OnceLock<Listening>>,
}

impl Outside {
    /// Applies this engine's settings.
    pub(crate) fn new(engine: &Arc<Engine>, logging: Logging, tls: Tls) -> Outside {
        Outside { engine: Arc::downgrade(engine), logging, tls, listening: Arc::default() }
    }

    /// Says through whom the server listens; once.
    pub(crate) fn listens_through(&self, listening: Listening) {
        assert!(self.listening.set(listening).is_ok(), "the server starts to listen once");
    }

    /// Begins to follow a CONFIG SET.
    pub(crate) fn begin(&self) -> Box<dyn ChangeOutside> {
        Box::new(Following { outside: self.clone(), terms: self.tls.current(), places: None })
    }
}

/// One CONFIG SET, and how all was before it. That is kept rather than made anew by the settings of then: their files may have
/// gone since, and a port that the system has chosen would be another one.
struct Following {
    outside: Outside,
    /// How TLS was spoken.
    terms: Option<TlsTerms>,
    /// Where it was listened, if that has changed.
    places: Option<Places>,
}

impl ChangeOutside for Following {
    fn make_hold(&mut self, setting: &Setting) -> Result<(), ValueError> {
        let Some(engine) = self.outside.engine.upgrade() else { return Ok(()) };
        match setting.id {
            SettingId::loglevel => self.outside.logging.set_level(level_of(&engine.config)),
            SettingId::port | SettingId::memcached_port => {
                return self.listen(&engine.config, ValueError::CannotListen);
            }
            SettingId::tls_port | SettingId::memcached_tls_port => {
                let before = self.outside.tls.current();
                self.configure_tls(&engine.config)?;
                let listens = self.listen(&engine.config, ValueError::CannotListen);
                return listens.inspect_err(|_| self.outside.tls.put_back(before));
            }
            SettingId::tls_cert_file
            | SettingId::tls_key_file
            | SettingId::tls_ca_cert_file
            | SettingId::tls_ca_cert_dir
            | SettingId::tls_auth_clients
            | SettingId::tls_protocols
            | SettingId::tls_ciphers
            | SettingId::tls_ciphersuites
            | SettingId::tls_prefer_server_ciphers
            | SettingId::tls_session_caching
            | SettingId::tls_session_cache_size
            | SettingId::tls_write_buffer => return self.configure_tls(&engine.config),
            SettingId::bind => return self.listen(&engine.config, ValueError::CannotBind),
            SettingId::maxclients => {
                if let OpenFiles::Only(TooFew { max_clients, .. }) =
                    raise_for(engine.config.maxclients(), needs(&engine.config))
                {
                    return Err(ValueError::TooManyClients(max_clients));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The level of logging cannot fail to hold, and a limit on open files that is higher than needed harms nobody.
    fn take_back(&mut self) {
        // First, so that nobody comes to the places of before on terms that hold no more.
        self.outside.tls.put_back(self.terms.take());
        if let (Some(places), Some(listening)) = (self.places.take(), self.outside.listening.get()) {
            listening.put_back(places);
        }
    }
}

impl Following {
    fn configure_tls(&self, config: &Config) -> Result<(), ValueError> {
        self.outside.tls.configure(config).map_err(|error| {
            tracing::warn!("{error}");
            ValueError::CannotUseTls
        })
    }

    fn listen(&mut self, config: &Config, failure: ValueError) -> Result<(), ValueError> {
        // Before the server listens nobody can change a setting.
        let Some(listening) = self.outside.listening.get() else { return Err(failure) };
        let before = listening.change(listens(config), datagrams(config)).map_err(|_logged| failure)?;
        self.places.get_or_insert(before);
        Ok(())
    }
}

/// The level that the settings name.
pub(crate) fn level_of(config: &Config) -> Level {
    Level::NAMES[config.loglevel() as usize].1
}

/// What the system is asked for where a setting says this: nothing for 0, and any port, which is its 0, for -1.
fn to_bind(port: i32) -> Option<u16> {
    if port == 0 { None } else { Some(u16::try_from(port).unwrap_or(0)) }
}

/// The addresses that the settings name, as Redis means them or as memcached does.
fn binds(config: &Config) -> Vec<Bind> {
    let words = config.bind();
    if config.is_memcached() {
        Bind::parse_as_memcached(&words)
    } else {
        words.iter().map(|word| Bind::parse(word)).collect()
    }
}

/// The UDP port and its addresses, if there is to be one.
pub(crate) fn datagrams(config: &Config) -> Option<(u16, Vec<Bind>)> {
    to_bind(config.memcached_udp_port()).map(|port| (port, binds(config)))
}

/// What the settings say descriptors are needed for beside clients.
pub(crate) fn needs(config: &Config) -> Needs {
    let datagrams = datagrams(config).map_or(0, |(_, addresses)| addresses.len());
    let more_rings = if config.io() == IoChoice::Epoll { 0 } else { STAND_INS_MAX };
    Needs { workers: config.workers(), listeners: listens(config).len(), datagrams, more_rings }
}

/// Where the settings say to listen.
pub(crate) fn listens(config: &Config) -> Vec<Listen> {
    let mut listens = Vec::new();
    let perm = config.unixsocketperm();
    let binds = binds(config);
    let (port, tls_port) = (i32::from(config.port()), i32::from(config.tls_port()));
    for (front_end, port, tls_port, path) in [
        (FrontEnd::Resp, port, tls_port, config.unixsocket()),
        (FrontEnd::Memcached, config.memcached_port(), config.memcached_tls_port(), config.memcached_unixsocket()),
    ] {
        if let Some(port) = to_bind(port) {
            let endpoint = |bind: &Bind| Endpoint::Tcp { bind: bind.clone(), port };
            listens.extend(binds.iter().map(|bind| Listen { front_end, endpoint: endpoint(bind) }));
        }
        if let Some(port) = to_bind(tls_port) {
            let endpoint = |bind: &Bind| Endpoint::Tls { bind: bind.clone(), port };
            listens.extend(binds.iter().map(|bind| Listen { front_end, endpoint: endpoint(bind) }));
        }
        if !path.is_empty() {
            let endpoint = Endpoint::Unix { path: PathBuf::from(&*path), mode: (perm != 0).then_some(perm) };
            listens.push(Listen { front_end, endpoint });
        }
    }
    listens
}
