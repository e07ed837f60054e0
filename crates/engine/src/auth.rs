//! Who is turned away at the door: protected mode. Knows no command and no socket.

use crate::clients::{ClientInfo, Dialect};
use crate::engine::Engine;

/// What a RESP client from another machine is told in protected mode. Redis's text with Tenon's names.
const DENIED_RESP: &str = "-DENIED Tenon is running in protected mode because protected mode is enabled and no \
    password is set for the default user. In this mode connections are only accepted from the loopback interface. If \
    you want to connect from external computers to Tenon you may adopt one of the following solutions: 1) Just \
    disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by \
    connecting to Tenon from the same host the server is running, however MAKE SURE Tenon is not publicly accessible \
    from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just \
    disable the protected mode by editing the configuration file, and setting the protected mode option to 'no', and \
    then restarting the server. 3) If you started the server manually just for testing, restart it with the \
    '--protected-mode no' option. 4) Set up an authentication password for the default user. NOTE: You only need to \
    do one of the above things in order for the server to start accepting connections from the outside.\r\n";

/// What a memcached client from another machine is told.
const DENIED_MEMCACHED: &str = "SERVER_ERROR Tenon is running in protected mode: memcached clients are only accepted \
    from the loopback interface. If nobody from outside can reach this port, let others in with '--protected-mode no' \
    or, over the RESP port, 'CONFIG SET protected-mode no'\r\n";

impl Engine {
    /// Whether a new client is turned away by protected mode, and then the line that it is sent before it is closed.
    ///
    /// Memcached clients need no password unless `memcached-auth` says so: for them, setting one does not end the
    /// protection.
    pub fn refuses(&self, info: &ClientInfo) -> Option<&'static str> {
        let protected = self.config.protected_mode() && !info.is_local();
        match info.dialect {
            Dialect::Resp => (protected && self.is_open()).then_some(DENIED_RESP),
            Dialect::Memcached => (protected && !self.config.memcached_auth()).then_some(DENIED_MEMCACHED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ConnectionKey;
    use crate::config::{Caller, Config, Machine};

    fn engine(settings: &[(&str, &str)]) -> Engine {
        let config = Config::new(Machine::detect());
        let pairs: Vec<_> = settings.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        config.set(&pairs, Caller::Local).expect("settings that are right");
        Engine::new(config, &[], 1)
    }

    fn client(dialect: Dialect, remote: &str, unix: bool) -> ClientInfo {
        let key = ConnectionKey { worker: 0, index: 0, generation: 0 };
        ClientInfo { key, dialect, remote: remote.to_owned(), local: "10.0.0.1:6379".to_owned(), fd: 3, unix }
    }

    #[test]
    fn protected_mode_turns_away_who_comes_from_elsewhere_without_need_of_a_password() {
        let open = engine(&[]);
        for (remote, unix) in [
            ("127.0.0.1:5", false),
            ("127.8.0.1:5", false),
            ("[::1]:5", false),
            ("[::ffff:127.0.0.1]:5", false),
            ("/run/tenon.sock:0", true),
        ] {
            assert_eq!(open.refuses(&client(Dialect::Resp, remote, unix)), None, "{remote}");
            assert_eq!(open.refuses(&client(Dialect::Memcached, remote, unix)), None, "{remote}");
        }
        let outside = |dialect| client(dialect, "10.0.0.7:5", false);
        let denied = open.refuses(&outside(Dialect::Resp)).expect("is refused");
        assert!(denied.starts_with("-DENIED ") && denied.ends_with(".\r\n") && denied.lines().count() == 1);
        assert!(!denied.contains("  "), "the pieces of the text join with one blank");
        let sealed = engine(&[("requirepass", "secret")]);
        assert_eq!(sealed.refuses(&outside(Dialect::Resp)), None);
        let denied = sealed.refuses(&outside(Dialect::Memcached)).expect("is refused");
        assert!(denied.starts_with("SERVER_ERROR ") && denied.lines().count() == 1 && !denied.contains("  "));
        let free = engine(&[("protected-mode", "no")]);
        assert_eq!(free.refuses(&outside(Dialect::Resp)), None);
        assert_eq!(free.refuses(&outside(Dialect::Memcached)), None);
    }
}
