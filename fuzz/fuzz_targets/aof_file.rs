//! Append-only files: whatever they hold, each record lies behind the one before, what was valid reads the same again,
//! and manifests that are taken are written as they are read.
#![no_main]

use tenon_persist::aof::{Manifest, ReadError, Reader};

/// All records and where the last whole one ended; how it went on.
fn read(input: &[u8]) -> (Vec<Vec<Vec<u8>>>, u64, Option<ReadError>) {
    let mut reader = Reader::new(input);
    let mut records = Vec::new();
    let mut behind = 0;
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert!(record.at == behind && record.end > record.at && record.end <= input.len() as u64);
                behind = record.end;
                assert!(record.is_transaction || record.commands().len() == 1);
                for command in record.commands() {
                    assert!(command.at >= record.at && command.at < record.end);
                    assert!(command.args().len() > 0 && command.annotations().all(|text| !text.contains(&b'\n')));
                    records.push(command.args().map(<[u8]>::to_vec).collect());
                }
            }
            Ok(None) => {
                assert!(reader.valid_up_to() == input.len() as u64);
                return (records, behind, None);
            }
            Err(error) => {
                assert_eq!(reader.valid_up_to(), behind);
                return (records, behind, Some(error));
            }
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (records, behind, error) = read(input);
    match error {
        None => {}
        Some(ReadError::Truncated { valid_up_to, .. }) => assert_eq!(valid_up_to, behind),
        Some(ReadError::Format { at, valid_up_to, .. }) => {
            assert!(valid_up_to == behind && at >= behind && at <= input.len() as u64);
        }
        Some(ReadError::Read(error)) => panic!("memory can be read: {error}"),
    }
    let (again, whole, error) = read(&input[..behind as usize]);
    assert!(error.is_none() && whole == behind && again == records);
    if let Ok(manifest) = Manifest::parse(input) {
        let text = manifest.to_text();
        // Escapes can make a line longer than lines may be.
        if !text.is_empty() && text.split(|&byte| byte == b'\n').all(|line| line.len() < 1024) {
            let again = Manifest::parse(&text).expect("what was read is written so that it can be read");
            assert_eq!(again.to_text(), text);
        }
    }
});
