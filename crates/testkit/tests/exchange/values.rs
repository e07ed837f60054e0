//! Values of every type and encoding. Knows no server.

/// Keys of every type and encoding, the lengths around which an encoding ends among them. `{name}` is the key.
pub fn commands() -> Vec<(String, Vec<Vec<u8>>)> {
    let mut commands: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    let mut add = |name: &str, words: Vec<Vec<u8>>| commands.push((name.to_owned(), words));
    let text = |text: &str| text.as_bytes().to_vec();
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    // Bytes that no compression shortens, and such as it does.
    let noise = |len: usize, mut random: u32| -> Vec<u8> {
        let mut next = || {
            random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (random >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    };
    let pattern = |len: usize| -> Vec<u8> { b"abcabcd ".iter().copied().cycle().take(len).collect() };
    for (index, value) in
        ["", "a", "0", "-1", "127", "-128", "128", "32767", "-32769", "2147483647", "2147483648", "-0"]
            .iter()
            .chain(&["9223372036854775807", "-9223372036854775808", "9223372036854775808", "00", "1.5"])
            .enumerate()
    {
        add(&format!("string-{index}"), vec![text("SET"), text("{name}"), text(value)]);
    }
    for len in [19, 20, 21, 44, 45, 63, 64, 300, 16_383, 16_384, 262_144, 262_145, 1_000_000] {
        add(&format!("noise-{len}"), vec![text("SET"), text("{name}"), noise(len, len as u32)]);
        add(&format!("pattern-{len}"), vec![text("SET"), text("{name}"), pattern(len)]);
    }
    add("bits", words("SETBIT {name} 100000 1"));
    // Longer than what is compressed while others wait, and compressed in pieces.
    add("bits-far", words("SETBIT {name} 140000000 1"));
    add("bits-far", words("SETRANGE {name} 9000000 word"));
    add("long", vec![text("SET"), text("{name}"), [pattern(1_500_000), noise(300_000, 7)].concat()]);
    add("counted", words("PFADD {name} a b c d"));
    let element = |number: usize, len: usize| -> Vec<u8> {
        let mut element = format!("{number}:").into_bytes();
        element.extend(std::iter::repeat_n(b'x', len));
        element
    };
    // Below, at and above the lengths and numbers at which small forms end in either server.
    for (count, len) in
        [(1, 0), (3, 61), (3, 62), (3, 63), (127, 5), (128, 5), (129, 5), (512, 3), (513, 3), (5_000, 20)]
    {
        let elements: Vec<Vec<u8>> = (0..count).map(|number| element(number, len)).collect();
        add(&format!("list-{count}-{len}"), [vec![text("RPUSH"), text("{name}")], elements.clone()].concat());
        add(&format!("set-{count}-{len}"), [vec![text("SADD"), text("{name}")], elements.clone()].concat());
        let pairs = |second: &dyn Fn(usize) -> Vec<u8>| -> Vec<Vec<u8>> {
            elements.iter().enumerate().flat_map(|(number, element)| [element.clone(), second(number)]).collect()
        };
        let fields = pairs(&|number| number.to_string().into_bytes());
        add(&format!("hash-{count}-{len}"), [vec![text("HSET"), text("{name}")], fields].concat());
        let scored: Vec<Vec<u8>> = elements
            .iter()
            .enumerate()
            .flat_map(|(number, element)| [format!("{}", number as f64 / 7.0 - 3.0).into_bytes(), element.clone()])
            .collect();
        add(&format!("zset-{count}-{len}"), [vec![text("ZADD"), text("{name}")], scored].concat());
        let ints = (0..count as i64).map(|number| (number * (1 << (len % 40))).to_string().into_bytes());
        add(&format!("ints-{count}-{len}"), [vec![text("SADD"), text("{name}")], ints.collect()].concat());
    }
    add(
        "list-mixed",
        words("RPUSH {name} 0 127 128 -1 4095 -4096 32767 -32768 8388607 2147483648 a 9223372036854775807"),
    );
    add("list-long", vec![text("RPUSH"), text("{name}"), noise(9_000, 1), text("x"), pattern(70_000), text("y")]);
    // As long as what the next longer number of a listpack begins with.
    for len in [16_377, 16_378, 16_379, 2_097_145, 2_097_146, 2_097_147] {
        add(&format!("list-at-{len}"), vec![text("RPUSH"), text("{name}"), pattern(len), text("behind")]);
        add(&format!("stream-at-{len}"), vec![text("XADD"), text("{name}"), text("1-1"), text("f"), pattern(len)]);
    }
    add("ints-wide", words("SADD {name} 9223372036854775807 -9223372036854775808 0"));
    add("set-mixed", words("SADD {name} 1 2 three 4.5"));
    add("hash-long", vec![text("HSET"), text("{name}"), text("f"), pattern(5_000), text(""), text("")]);
    for number in 1..=300 {
        let id = format!("{}-{}", 5 + number / 7, number);
        add("stream-long", words(&format!("XADD {{name}} {id} field {number} other text")));
    }
    add("stream-long", words("XDEL {name} 6-3 40-250"));
    add("stream-long", words("XTRIM {name} MAXLEN 250"));
    // Redis keeps blocks without entries, of a stream that has no others, and of one that has.
    for (name, entries, deleted) in [("stream-trimmed", 2, 2..=2), ("stream-half", 150, 2..=100)] {
        (1..=entries).for_each(|ms| add(name, words(&format!("XADD {{name}} {ms}-1 f v"))));
        deleted.for_each(|ms| add(name, words(&format!("XDEL {{name}} {ms}-1"))));
        add(name, words("XTRIM {name} MINID 2"));
    }
    add("stream-groups", words("XADD {name} 1-1 a 1 b 2"));
    add("stream-groups", words("XADD {name} 1-2 a 1 b 2"));
    add(
        "stream-groups",
        vec![text("XADD"), text("{name}"), text("7-0"), text(""), pattern(3_000), text("b"), noise(99, 3)],
    );
    add("stream-groups", words("XADD {name} 9-18446744073709551615 x 9223372036854775807"));
    add("stream-groups", words("XGROUP CREATE {name} early 0"));
    add("stream-groups", words("XGROUP CREATE {name} late $"));
    add("stream-groups", words("XGROUP CREATECONSUMER {name} late idle"));
    add("stream-groups", words("XREADGROUP GROUP early one COUNT 2 STREAMS {name} >"));
    add("stream-groups", words("XREADGROUP GROUP early two COUNT 1 STREAMS {name} >"));
    add("stream-groups", words("XACK {name} early 1-1"));
    add("stream-groups", words("XDEL {name} 1-2"));
    add("stream-empty", words("XGROUP CREATE {name} g 0 MKSTREAM"));
    add("zset-edges", words("ZADD {name} inf a -inf b 0 c 1e300 d 5e-324 e 0.1 f 3 g 9007199254740993 h -2.5 i"));
    commands
}
