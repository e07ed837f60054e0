//! What a log that could not write left in memory that outlives it, and what is made of it. A disk that takes nothing stands for
//! a process that was killed before it wrote.

use super::*;
use crate::files::Want;
use std::path::PathBuf;

/// A log in such memory, on a disk on which this goes wrong.
fn start_kept(plan: &str) -> Fixture {
    let fixture = start(Policy::No, "");
    fixture.log.close().expect("nothing fails");
    let (files, memory, heard) = (fixture.files.clone(), fixture.memory.clone(), fixture.heard.clone());
    go_on(files, memory, heard, plan)
}

fn go_on(files: Faulty<Memory>, memory: Memory, heard: Arc<Heard>, plan: &str) -> Fixture {
    let settings = settings(Policy::No);
    let kept = files.kept_memory(Path::new("d"), Log::memory_len(&settings), Want::Room).expect("it has memory");
    let file = files.append(&path(0)).expect("it is there");
    files.set(plan.parse().expect("a plan"));
    let log = Log::start_in(kept, file, &settings, heard.clone()).expect("threads can be started");
    assert!(log.statistics().outlives_process);
    Fixture { files, memory, heard, log }
}

/// When all is written that was appended the disk takes nothing more.
fn stop_disk(fixture: &Fixture) {
    until(|| fixture.log.written() == fixture.log.position());
    fixture.files.set("write:eio".parse().expect("a plan"));
}

/// Ends it with what it has not written, and gives the files.
fn kill(fixture: Fixture) -> Faulty<Memory> {
    fixture.log.close().expect_err("the disk takes nothing");
    kill_closed(fixture)
}

fn bring(files: &Faulty<Memory>, listed: &[u32]) -> Result<Left, NotBrought> {
    let listed: Vec<PathBuf> = listed.iter().map(|&number| path(number)).collect();
    bring_left(files, Path::new("d"), &listed, Unlisted::GivenUpIfGone, &settings(Policy::No))
}

fn brought(files: &Faulty<Memory>, listed: &[u32]) -> Left {
    bring(files, listed).expect("the disk is well")
}

fn content(files: &Faulty<Memory>, number: u32) -> String {
    let bytes = files.read_end(&path(number), usize::MAX).expect("the file is there");
    String::from_utf8(bytes).expect("text")
}

fn of(files: &[(u32, u64)]) -> Left {
    Left { brought: files.iter().map(|&(number, bytes)| (path(number), bytes)).collect(), ..Left::default() }
}

#[test]
fn what_was_not_written_is_found_once() {
    let fixture = start_kept("");
    fixture.log.append(b"one,");
    stop_disk(&fixture);
    fixture.log.append(b"two,");
    fixture.log.append(b"three,");
    let files = kill(fixture);
    assert_eq!(content(&files, 0), "one,");
    // Nothing is to be cut off, which would give back the room that was kept for this.
    files.set("truncate:eio".parse().expect("a plan"));
    assert_eq!(brought(&files, &[0]), of(&[(0, 10)]));
    assert_eq!(content(&files, 0), "one,two,three,");
    assert_eq!(brought(&files, &[0]), Left::default());
    assert_eq!(content(&files, 0), "one,two,three,");
}

#[test]
fn a_log_that_ends_well_leaves_nothing() {
    let fixture = start_kept("");
    fixture.log.append(b"one,");
    fixture.log.close().expect("nothing fails");
    let left = fixture.files.kept_memory(Path::new("d"), Log::memory_len(&settings(Policy::No)), Want::Left);
    assert!(left.expect("nothing fails").is_none());
    // As it does at its end.
    fixture.log.close().expect("nothing fails");
    assert_eq!(brought(&fixture.files, &[0]), Left::default());
}

#[test]
fn a_second_closing_does_not_give_up_what_was_left() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    fixture.log.close().expect_err("the disk takes nothing");
    fixture.log.close().expect("that was told");
    assert_eq!(brought(&kill_closed(fixture), &[0]), of(&[(0, 4)]));
}

fn kill_closed(fixture: Fixture) -> Faulty<Memory> {
    let Fixture { files, log, .. } = fixture;
    drop(log);
    files.set("".parse().expect("a plan"));
    files
}

#[test]
fn each_file_gets_what_belongs_to_it() {
    let fixture = start_kept("");
    let log = &fixture.log;
    // More than a ring's places for files, and one without a record.
    for number in 1..5 {
        log.prepare_switch(fixture.next_file(number)).expect("no switch is under way");
        log.cut();
        assert!(log.wait_switched(LONG));
        if number != 3 {
            log.append(format!("{number},").as_bytes());
        }
    }
    until(|| log.written() == log.position());
    let next = fixture.next_file(5);
    fixture.files.set("write:eio".parse().expect("a plan"));
    log.append(b"old,");
    log.prepare_switch(next).expect("no switch is under way");
    log.cut();
    log.append(b"new,");
    let files = kill(fixture);
    assert_eq!(brought(&files, &[2, 3, 4, 5]), of(&[(4, 4), (5, 4)]));
    let all = [0, 1, 2, 3, 4, 5].map(|number| content(&files, number));
    assert_eq!(all, ["", "1,", "2,", "", "4,old,", "new,"]);
}

#[test]
fn what_a_snapshot_holds_is_not_brought() {
    let fixture = start_kept("");
    let next = fixture.next_file(1);
    fixture.files.set("write:eio".parse().expect("a plan"));
    fixture.log.append(b"old,");
    fixture.log.prepare_switch(next).expect("no switch is under way");
    fixture.log.cut();
    fixture.log.append(b"new,");
    let files = kill(fixture);
    assert_eq!(brought(&files, &[1]), of(&[(1, 4)]));
    assert_eq!((content(&files, 0).as_str(), content(&files, 1).as_str()), ("", "new,"));
}

#[test]
fn nothing_is_put_behind_a_file_that_somebody_has_changed() {
    for (cut_to, appended) in [(4, "xyz"), (2, "abcd"), (0, "")] {
        let fixture = start_kept("");
        fixture.log.append(b"one,");
        fixture.log.close().expect("nothing fails");
        let Fixture { files, memory, heard, .. } = fixture;
        let fixture = go_on(files, memory, heard, "");
        fixture.log.append(b"two,");
        stop_disk(&fixture);
        fixture.log.append(b"three,");
        let files = kill(fixture);
        let file = files.append(&path(0)).expect("it is there");
        file.truncate(cut_to).expect("it is there");
        file.write_all(appended.as_bytes()).expect("it is there");
        let before = content(&files, 0);
        assert_eq!(brought(&files, &[0]).changed, Some(path(0)), "{before}");
        assert_eq!(content(&files, 0), before);
        assert_eq!(brought(&files, &[0]), Left::default(), "it is given up");
    }
}

#[test]
fn what_somebody_has_cut_off_does_not_come_again() {
    let fixture = start_kept("");
    fixture.log.append(b"one,");
    fixture.log.append(b"two,");
    stop_disk(&fixture);
    fixture.log.append(b"three,");
    let files = kill(fixture);
    files.append(&path(0)).expect("it is there").truncate(4).expect("it is there");
    assert_eq!(brought(&files, &[0]).changed, Some(path(0)));
    assert_eq!(content(&files, 0), "one,");
}

#[test]
fn where_nothing_was_left_nothing_is_told() {
    let fixture = start_kept("");
    fixture.log.append(b"one,");
    until(|| fixture.log.written() == fixture.log.position());
    fixture.log.shared.keep.as_ref().expect("it has memory").leave();
    fixture.log.close().expect("nothing fails");
    let files = kill_closed(fixture);
    files.append(&path(0)).expect("it is there").write_all(b"another server's,").expect("there is room");
    assert_eq!(brought(&files, &[0]), Left::default());
}

#[test]
fn what_found_no_room_was_confirmed_to_nobody() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    let ring = &fixture.log.shared.ring;
    let long = vec![b'x'; 100_000];
    let mut claim = ring.reserve(long.len());
    assert!(ring.fill(&mut claim, &long) < long.len());
    fixture.log.shared.keep.as_ref().expect("it has memory").leave();
    let _ = fixture.log.close();
    let files = kill_closed(fixture);
    assert_eq!(brought(&files, &[0]), of(&[(0, 4)]));
}

#[test]
fn what_a_switch_has_left_in_the_first_file_is_something() {
    let fixture = start_kept("");
    let next = fixture.next_file(1);
    fixture.files.set("write:eio".parse().expect("a plan"));
    fixture.log.append(b"one,");
    fixture.log.prepare_switch(next).expect("no switch is under way");
    fixture.log.cut();
    let files = kill(fixture);
    let kept = files.kept_memory(Path::new("d"), Log::memory_len(&settings(Policy::No)), Want::Left);
    assert!(holds_anything(kept.expect("nothing fails").expect("it was left").region()));
    assert_eq!(brought(&files, &[0, 1]), of(&[(0, 4)]));
}

#[test]
fn nothing_is_put_before_what_others_have_gone_on_with() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    let files = kill(fixture);
    let other = files.create(&path(1)).expect("it can be made");
    other.write_all(b"later,").expect("there is room");
    assert_eq!(brought(&files, &[0, 1]).changed, Some(path(0)));
    assert_eq!(content(&files, 0), "");
}

#[test]
fn what_is_left_of_a_file_that_is_gone_is_told_of() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    let files = kill(fixture);
    files.create(&path(1)).expect("it can be made");
    // While it is there it is another list's.
    for unlisted in [Unlisted::Stays, Unlisted::GivenUpIfGone] {
        let of_another_list = bring_left(&files, Path::new("d"), &[path(1)], unlisted, &settings(Policy::No));
        assert!(matches!(of_another_list, Err(NotBrought::NotListed { .. })));
    }
    files.remove(&path(0)).expect("it is there");
    let of_another_list = bring_left(&files, Path::new("d"), &[path(1)], Unlisted::Stays, &settings(Policy::No));
    assert!(matches!(of_another_list, Err(NotBrought::NotListed { .. })));
    assert!(is_left(&files, Path::new("d"), &settings(Policy::No)).expect("nothing fails"));
    assert_eq!(brought(&files, &[1]), Left { given_up: 4, ..Left::default() });
    assert!(!is_left(&files, Path::new("d"), &settings(Policy::No)).expect("nothing fails"));
}

#[test]
fn what_was_brought_in_part_is_brought_to_its_end() {
    // The process that brought it has ended behind so many bytes.
    for there in 0..=10 {
        let fixture = start_kept("write:eio");
        fixture.log.append(b"one,");
        fixture.log.append(b"three,");
        let files = kill(fixture);
        files.set("write:enospc".parse().expect("a plan"));
        bring(&files, &[0]).expect_err("there is no room");
        files.set("".parse().expect("a plan"));
        let file = files.append(&path(0)).expect("it is there");
        file.write_all(&b"one,three,"[..there]).expect("there is room");
        let left = if there == 10 { Left::default() } else { of(&[(0, 10 - there as u64)]) };
        assert_eq!(brought(&files, &[0]), left, "{there}");
        assert_eq!(content(&files, 0), "one,three,");
    }
}

#[test]
fn a_long_record_that_is_in_the_file_in_part_makes_way_for_what_came_behind() {
    let fixture = start_kept("");
    fixture.log.append(b"one,");
    until(|| fixture.log.written() == fixture.log.position());
    let ring = &fixture.log.shared.ring;
    let long = vec![b'x'; 40_000];
    let mut claim = ring.reserve(long.len());
    // As far as a block goes: room comes by blocks.
    ring.fill(&mut claim, &long[..7 * BLOCK_LEN - 4]);
    // More than a quarter of the ring is written in parts.
    until(|| fixture.log.written() > 20_000);
    fixture.files.set("write:eio".parse().expect("a plan"));
    std::thread::scope(|scope| {
        scope.spawn(|| fixture.log.append(b"two,"));
    });
    // Of a record that is not filled the disk knows nothing.
    fixture.log.shared.keep.as_ref().expect("it has memory").leave();
    let _ = fixture.log.close();
    let files = kill_closed(fixture);
    assert!(content(&files, 0).len() > 20_000);
    // Wherever it is stopped, the next one goes on.
    for plan in ["truncate:eio", "write:eio", "write:torn@1 truncate:eio@2", "sync:eio"] {
        files.set(plan.parse().expect("a plan"));
        bring(&files, &[0]).expect_err(plan);
    }
    files.set("".parse().expect("a plan"));
    assert_eq!(brought(&files, &[0]).changed, None);
    assert_eq!(content(&files, 0), "one,two,");
}

#[test]
fn what_cannot_be_written_is_there_for_the_next_attempt() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    let files = kill(fixture);
    for plan in ["write:enospc", "write:torn@1", "sync:eio"] {
        files.set(plan.parse().expect("a plan"));
        let error = bring(&files, &[0]).expect_err(plan);
        let NotBrought::NotWritten { path: of, left_in, .. } = error else { panic!("{error:?}") };
        assert_eq!((of, left_in), (path(0), PathBuf::from("d")));
    }
    files.set("".parse().expect("a plan"));
    brought(&files, &[0]);
    assert_eq!(content(&files, 0), "one,");
}

#[test]
fn of_another_start_of_the_machine_nothing_is_found() {
    let fixture = start_kept("write:eio");
    fixture.log.append(b"one,");
    let files = kill(fixture);
    let kept = files.kept_memory(Path::new("d"), Log::memory_len(&settings(Policy::No)), Want::Left);
    kept.expect("nothing fails").expect("it is there").region().words()[2].fetch_add(1, Ordering::SeqCst);
    assert_eq!(brought(&files, &[0]), Left::default());
    assert_eq!(content(&files, 0), "");
}
