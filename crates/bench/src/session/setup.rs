//! How a run measures, by name, as it is kept beside each result. Knows no experiment.

use super::grid::Session;
use crate::load::Arrivals;
use crate::machine::placement;
use std::collections::BTreeMap;

impl Session {
    /// What figures depend on but for the case: what two results must have in common to be compared. How many rounds and
    /// which cases are asked for is none of it. Of a server that somebody else has started its threads and cores are unknown.
    pub(super) fn setup(&self, is_started: bool) -> BTreeMap<String, String> {
        let options = &self.options;
        let mut setup = BTreeMap::from([
            ("keys", self.keys().to_string()),
            ("seconds", self.measured_for().as_secs_f64().to_string()),
            ("connections", options.connections.to_string()),
            ("client threads", self.client_threads().to_string()),
            ("client cores", placement::list(&self.placement.client)),
        ]);
        if is_started {
            setup.insert("server threads", self.server_threads().to_string());
            setup.insert("server cores", placement::list(&self.placement.server));
        }
        // The others are told where they were asked for; else they are the experiment's own.
        let asked = [
            ("client processes", Some(options.client_processes).filter(|processes| *processes > 1)),
            ("record fields", options.record_fields),
            ("field bytes", options.field_bytes),
        ];
        setup.extend(asked.into_iter().filter_map(|(name, number)| Some((name, number?.to_string()))));
        if !options.rates.is_empty() {
            let rates: Vec<String> = options.rates.iter().map(u64::to_string).collect();
            setup.insert("rates", rates.join(","));
        }
        if options.arrivals != Arrivals::Poisson {
            setup.insert("arrivals", options.arrivals.to_string());
        }
        if options.shrinking_updates {
            setup.insert("updates", "shrinking".to_owned());
        }
        if let Some(log) = &options.weblog {
            setup.insert("weblog", log.display().to_string());
        }
        if let Some(directory) = &options.data_dir {
            setup.insert("data directory", directory.display().to_string());
        }
        setup.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
