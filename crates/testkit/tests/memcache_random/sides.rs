//! The two servers, data of items, and how answers are made alike that may differ. Knows nothing
//! of what is asked.

use std::collections::HashMap;
use std::fmt::Debug;
use tenon_client::Stream;
use tenon_testkit::oracle::oracle;
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::random::Random;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// Data of an item: a number, nearly a number, or anything. Of a number from 2^63 on memcached 1.6.18 looks for a minus
/// sign in whatever lies behind it in memory, and calls it none if there is one. So there are neither.
pub fn item_data(random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&str; 15] = [
        "0",
        "1",
        "9",
        "10",
        "99",
        "1000",
        "9000000000000000000",
        "18446744073709551616",
        "99999999999999999999",
        "00000000000000000000007",
        "+5",
        " 5",
        "5 ",
        "5x",
        "",
    ];
    match random.below(8) {
        0..5 => random.of(&NUMBERS).as_bytes().to_vec(),
        5 => {
            let len = random.below(60);
            let mut bytes = random.bytes(len);
            bytes.retain(|&byte| byte != b'-');
            // It looks for digits behind blanks, and behind the item where that is nothing else.
            if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t'..=b'\r')) {
                bytes.clear();
            }
            bytes
        }
        6 => vec![b'x'; random.below(300)],
        _ => b"value".to_vec(),
    }
}

/// What a request says of the CAS token that its item must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Nothing.
    Any,
    /// The last that the server told of this key, if it has told any.
    Last,
    /// One that the server has never told.
    Wrong,
}

/// One of the servers and a connection to it.
pub struct Side {
    server: Server,
    pub stream: Stream,
    /// The last token that was told, by key.
    tokens: HashMap<Vec<u8>, u64>,
}

impl Side {
    fn new(server: Server) -> Side {
        let stream = server.connect(Dialect::Memcache, PATIENCE).expect("connected");
        Side { server, stream, tokens: HashMap::new() }
    }

    /// The token that a request gives.
    pub fn token(&self, key: &[u8], token: Token) -> u64 {
        let last = self.tokens.get(key).copied().unwrap_or(0);
        match token {
            Token::Any => 0,
            Token::Last => last,
            Token::Wrong => last | 1 << 60,
        }
    }

    /// What can be compared of a token that was told: whether it is the one that was told before.
    pub fn told(&mut self, key: &[u8], token: u64) -> &'static str {
        if token == 0 {
            return "none";
        }
        match self.tokens.insert(key.to_vec(), token) {
            Some(last) if last == token => "same",
            _ => "new",
        }
    }

    /// Connects again.
    pub fn reconnect(&mut self) {
        self.stream = self.server.connect(Dialect::Memcache, PATIENCE).expect("connected");
    }
}

/// Asks both sides so many batches, each made by `batch`, and compares what `converse` makes of their answers; gives how
/// many there were. No test without memcached.
pub fn compare<R: Debug>(
    seed: u64,
    batches: usize,
    mut batch: impl FnMut(&mut Random) -> Vec<R>,
    converse: impl Fn(&mut Side, &[R]) -> Vec<String>,
) -> Option<usize> {
    let mut sides = sides()?;
    let mut random = Random(seed);
    let mut answered = 0;
    for number in 0..batches {
        let batch = batch(&mut random);
        let [tenon, memcached] = sides.each_mut().map(|side| converse(side, &batch));
        assert_eq!(tenon, memcached, "batch {number}, Tenon's answers on the left: {batch:?}");
        answered += tenon.len();
    }
    Some(answered)
}

/// Both sides; no test without memcached.
pub fn sides() -> Option<[Side; 2]> {
    let memcached = oracle(Dialect::Memcache, &[])?;
    let tenon = Server::tenon(&[("max-value-size", "1mb")]).expect("tenon starts");
    Some([Side::new(tenon), Side::new(memcached)])
}
