//! The part of INFO's section on persistence that is about the append-only file. Knows no other section.

use super::info_sections::{line, lines};
use tenon_engine::engine::Engine;

/// Writes the fields, those of an open log only where there is one, as Redis does.
pub fn append_only(engine: &Engine, text: &mut String) {
    let figures = engine.aof_figures();
    let seconds = |seconds: Option<u64>| seconds.map_or(-1, |seconds| seconds as i64);
    let status = |ok: bool| if ok { "ok" } else { "err" };
    let files = figures.files.as_ref();
    lines(
        text,
        &[
            ("aof_enabled", u64::from(figures.enabled)),
            ("aof_rewrite_in_progress", u64::from(figures.rewriting_for_s.is_some())),
            ("aof_rewrite_scheduled", u64::from(figures.scheduled)),
        ],
    );
    line(text, "aof_last_rewrite_time_sec", seconds(figures.last_rewrite_s));
    line(text, "aof_current_rewrite_time_sec", seconds(figures.rewriting_for_s));
    line(text, "aof_last_bgrewrite_status", status(figures.last_rewrite_ok));
    line(text, "aof_last_write_status", status(files.is_none_or(|files| files.log.last_write_ok)));
    lines(
        text,
        &[
            ("aof_rewrites", figures.begun),
            ("aof_rewrites_consecutive_failures", files.map_or(0, |files| files.failures)),
            // What waits is handed over, not copied: see rdb_last_cow_size.
            ("aof_last_cow_size", 0),
        ],
    );
    if let Some(files) = files {
        lines(
            text,
            &[
                ("aof_current_size", files.current_size),
                ("aof_base_size", files.base_size),
                ("aof_pending_rewrite", 0),
                ("aof_buffer_length", files.log.buffered),
                ("aof_pending_bio_fsync", u64::from(files.log.sync_pending)),
                ("aof_buffer_outlives_process", u64::from(files.log.outlives_process)),
                ("aof_delayed_fsync", files.log.delayed_syncs),
                ("aof_writes", files.log.writes),
                ("aof_fsyncs", files.log.syncs),
                ("aof_write_stalls", files.log.stalls),
                ("aof_write_stalls_usec", files.log.stalled_us),
                ("aof_replies_held_up", files.log.held_up),
            ],
        );
    }
}
