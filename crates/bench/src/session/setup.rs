//! How a run measures, by name, as it is kept beside each result. Knows no experiment.

use super::grid::Session;
use crate::experiments::Setting;
use crate::load::Arrivals;
use crate::machine::placement;
use crate::peers::identity;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

impl Session {
    /// What figures depend on but for the case: what two results must have in common to be compared. How many rounds and
    /// which cases are asked for is none of it, nor what the experiment does not use. Of a server that
    /// somebody else has started its threads and cores are unknown.
    pub(super) fn setup(&self, is_started: bool) -> BTreeMap<String, String> {
        let options = &self.options;
        let mut setup = BTreeMap::from([
            ("client threads", self.client_threads().to_string()),
            ("client cores", placement::list(&self.placement.client)),
        ]);
        if is_started {
            setup.insert("server threads", self.server_threads().to_string());
            setup.insert("server cores", placement::list(&self.placement.server));
        }
        for setting in self.depends_on {
            // Those that are seldom asked for are told where they were.
            let told = match setting {
                Setting::Keys => Some(("keys", self.keys().to_string())),
                Setting::Seconds => Some(("seconds", self.measured_for().as_secs_f64().to_string())),
                Setting::Connections => Some(("connections", options.connections.to_string())),
                Setting::ConnectionsOf(connections) => Some(("connections", connections.to_string())),
                Setting::OneThread => Some(("client threads", 1.to_string())),
                Setting::ClientProcesses => Some(("client processes", options.client_processes.to_string()))
                    .filter(|_| options.client_processes > 1),
                Setting::Arrivals => {
                    Some(("arrivals", options.arrivals.to_string())).filter(|_| options.arrivals != Arrivals::Poisson)
                }
                Setting::Updates => Some(("updates", "shrinking".to_owned())).filter(|_| options.shrinking_updates),
                Setting::WebLog => options.weblog.as_ref().map(|log| ("weblog", log.display().to_string())),
            };
            setup.extend(told);
        }
        if let Some(directory) = &options.data_dir {
            setup.insert("data directory", directory.display().to_string());
        }
        setup.extend(self.sizes.iter().map(|(name, size)| (*name, size.clone())));
        setup.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Keeps which file its results are of: another one of the same name has others.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn measured_on_file(&mut self, name: &'static str, path: &Path) -> Result<()> {
        let sha256 = identity::sha256_of(path).with_context(|| path.display().to_string())?;
        self.measured_on(name, format!("of SHA-256 {}", &sha256[..16]));
        Ok(())
    }

    /// Keeps a size that the experiment has chosen itself beside its results.
    pub fn measured_on(&mut self, name: &'static str, size: impl Display) {
        self.sizes.insert(name, size.to_string());
    }
}
