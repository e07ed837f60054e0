//! What commands take out of a value that stays is freed where no client waits for it, if it is much. Knows the commands, and
//! nothing of how values are kept.

mod one_worker;

use one_worker::Server;
use tenon_engine::wire::resp::Value;

impl Server {
    fn ask(&mut self, command: &str) -> Value {
        let words: Vec<Vec<u8>> = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.run(&words)
    }

    /// How many things were handed to who frees in the background, freed already or not.
    fn handed_over(&self) -> usize {
        self.engine.reaper.freed() + self.engine.reaper.pending()
    }
}

#[test]
fn producers_that_are_forgotten() {
    let mut server = Server::new(1, &[]);
    for producers in [10, 1_000] {
        for producer in 0..producers {
            server.ask(&format!("XADD stream IDMP {producer} 1 * f v"));
        }
        let before = server.handed_over();
        assert_eq!(server.ask(&format!("XCFGSET stream IDMP-DURATION {producers}")), Value::Simple(b"OK".to_vec()));
        assert_eq!(server.handed_over() - before, usize::from(producers > 10), "{producers} producers");
    }
}
