//! The sequence beside a vector.

use super::*;

fn check(list: &Quicklist, limits: &NodeLimits, model: &[Vec<u8>]) {
    let mut len = 0;
    for block in &list.blocks {
        assert!(!block.nodes.is_empty() && block.nodes.len() <= BLOCK_NODES);
        assert_eq!(block.len, block.nodes.iter().map(ListpackBuf::len).sum::<usize>());
        for node in &block.nodes {
            let view = node.view();
            assert!(!view.is_empty());
            assert!(view.len() == 1 || !limits.are_exceeded_by(view.redis_len(), view.len()));
        }
        len += block.len;
    }
    assert_eq!((list.len(), len), (model.len(), model.len()));
    assert!(list.iter_from(0).map(Item::to_vec).eq(model.iter().cloned()));
    assert!(list.iter_back_from(len).map(Item::to_vec).eq(model.iter().rev().cloned()));
}

#[test]
fn changes_agree_with_a_vector() {
    let limits = [
        NodeLimits { bytes: 64, count: usize::MAX, alone_from: usize::MAX },
        NodeLimits { bytes: 8_192, count: 3, alone_from: usize::MAX },
        NodeLimits { bytes: 8_192, count: 1, alone_from: usize::MAX },
        NodeLimits { bytes: 256, count: 100, alone_from: 5 },
    ];
    for (round, limits) in limits.iter().enumerate() {
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut list = Quicklist::default();
        let mut random = 11 + round as u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let steps = if cfg!(miri) { 150 } else { 3_000 };
        for step in 0..steps {
            let text = match next(20) {
                0 => vec![b'x'; 100],
                1..10 => next(50).to_string().into_bytes(),
                _ => vec![b'a' + next(4) as u8; next(12)],
            };
            let wanted = text.clone();
            let item = Item::of(&wanted);
            let index = next(model.len() + 1);
            match next(if model.len() > 600 { 12 } else { 9 }) {
                0 | 1 => {
                    list.push(End::Front, item, limits);
                    model.insert(0, text);
                }
                2 | 3 => {
                    list.push(End::Back, item, limits);
                    model.push(text);
                }
                4 | 5 => {
                    list.insert(index, item, limits);
                    model.insert(index, text);
                }
                6 if index < model.len() => {
                    list.replace(index, item, limits);
                    model[index] = text;
                }
                7 => {
                    let end = if next(2) == 0 { End::Front } else { End::Back };
                    let popped = list.pop(end, |item| item.to_vec());
                    let expected = match end {
                        End::Front if model.is_empty() => None,
                        End::Front => Some(model.remove(0)),
                        End::Back => model.pop(),
                    };
                    assert_eq!(popped, expected);
                }
                8 => {
                    let (most, from) = (1 + next(3), if next(2) == 0 { End::Front } else { End::Back });
                    let removed = list.remove_equal(item, most, from);
                    for _ in 0..removed {
                        let at = match from {
                            End::Front => model.iter().position(|other| *other == text),
                            End::Back => model.iter().rposition(|other| *other == text),
                        };
                        model.remove(at.expect("no more is removed than there was"));
                    }
                    assert!(removed == most || !model.contains(&text));
                }
                9..12 => {
                    let count = next(model.len() - index + 1);
                    let whole = list.remove(index, count);
                    let gone: Vec<Vec<u8>> = model.drain(index..index + count).collect();
                    let whole: Vec<Vec<u8>> = whole.iter_from(0).map(Item::to_vec).collect();
                    assert!(whole.is_empty() || gone.windows(whole.len()).any(|part| part == whole));
                }
                _ => {}
            }
            let index = next(model.len() + 1);
            assert_eq!(list.get(index).map(Item::to_vec), model.get(index).cloned());
            assert!(list.iter_from(index).map(Item::to_vec).take(9).eq(model[index..].iter().take(9).cloned()));
            let (mut on, mut off) = (list.iter_from(index), list.iter_back_from(index));
            let at_most = next(model.len() + 2);
            assert_eq!(
                on.find_next(item, at_most),
                model[index..].iter().take(at_most).position(|other| *other == wanted)
            );
            let before = model[..index].iter().rev().take(at_most).position(|other| *other == wanted);
            assert_eq!(off.find_next(item, at_most), before);
            if let Some(passed) = before {
                assert!(
                    off.map(Item::to_vec).eq(model[..index - passed - 1].iter().rev().cloned()),
                    "it goes on behind"
                );
            }
            let back: Vec<_> = list.iter_back_from(index).map(Item::to_vec).take(9).collect();
            assert!(back.iter().eq(model[..index].iter().rev().take(9)));
            if step % 50 == 0 || step + 1 == steps {
                check(&list, limits, &model);
            }
        }
    }
}

#[test]
fn many_nodes_fill_blocks_and_whole_blocks_go() {
    let limits = NodeLimits { bytes: 8_192, count: 1, alone_from: usize::MAX };
    let count = 3 * BLOCK_NODES as i64 + 7;
    let mut list = Quicklist::default();
    (0..count).for_each(|number| list.push(End::Back, Item::Int(number), &limits));
    assert_eq!((list.nodes(), list.blocks.len()), (count as usize, 4));
    let whole = list.remove(5, count as usize - 10);
    assert_eq!((whole.len(), whole.nodes()), (2 * BLOCK_NODES, 2 * BLOCK_NODES));
    let expected: Vec<Vec<u8>> = (0..5).chain(count - 5..count).map(|number| number.to_string().into()).collect();
    check(&list, &limits, &expected);
    list.remove(0, 10);
    assert!(list.is_empty() && list.blocks.is_empty());
}
