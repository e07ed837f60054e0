//! Data files, packed or not. Knows not what they hold.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What unpacks files with these endings.
static PROGRAMS: [(&str, &str); 3] = [(".zst", "zstd"), (".xz", "xz"), (".gz", "gzip")];

/// A file's name without the ending that says how it is packed, and its contents.
///
/// # Errors
/// When it cannot be read, or the program that unpacks it is missing or fails.
pub fn contents(path: &Path) -> Result<(String, Vec<u8>)> {
    let shown = || path.display().to_string();
    let name = path.file_name().and_then(|name| name.to_str()).with_context(shown)?;
    let packed = PROGRAMS.iter().find_map(|(ending, program)| Some((name.strip_suffix(ending)?, program)));
    let Some((name, program)) = packed else {
        return Ok((name.to_owned(), std::fs::read(path).with_context(shown)?));
    };
    let mut command = Command::new(program);
    command.arg("-dc").arg(path).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().with_context(|| format!("{program}, which unpacks {}", path.display()))?;
    if !output.status.success() {
        bail!("{program} cannot unpack {}", path.display());
    }
    Ok((name.to_owned(), output.stdout))
}

/// What results call each of some files: its name without how it is packed and without the endings of its form.
///
/// # Errors
/// When two would be called the same, so that their results would be taken for one another's.
pub fn names(paths: &[PathBuf], forms: &[&str]) -> Result<Vec<String>> {
    let names: Vec<String> = paths.iter().map(|path| name(path, forms)).collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(other) = names[..index].iter().position(|other| other == name) {
            let [one, two] = [&paths[other], &paths[index]].map(|path| path.display());
            bail!("{one} and {two} would both be called {name}: rename one of them");
        }
    }
    Ok(names)
}

fn name(path: &Path, forms: &[&str]) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut rest = PROGRAMS.iter().find_map(|(ending, _)| name.strip_suffix(ending)).unwrap_or(&name);
    while let Some(shorter) = forms.iter().find_map(|form| rest.strip_suffix(form)).filter(|rest| !rest.is_empty()) {
        rest = shorter;
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_all_before_its_form() {
        let names = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            names(&paths, &[".csv", ".txt", ".tsv"]).map_err(|error| error.to_string())
        };
        assert_eq!(
            names(&["/t/w.2009.csv.zst", "/t/w.2010.csv", "/t/w.tsv.txt.gz", "/t/.csv", "/t/w.csv.old"]),
            Ok(["w.2009", "w.2010", "w", ".csv", "w.csv.old"].map(str::to_owned).to_vec())
        );
        let refused = names(&["/a/w.csv", "/b/w.csv.zst"]).expect_err("they cannot be told apart");
        assert_eq!(refused, "/a/w.csv and /b/w.csv.zst would both be called w: rename one of them");
    }

    #[test]
    fn plain_and_packed_files_are_read() {
        let directory = std::env::temp_dir().join(format!("tenon-bench-packed-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let plain = directory.join("a.csv");
        std::fs::write(&plain, "text").expect("it is written");
        assert_eq!(contents(&plain).expect("it is there"), ("a.csv".to_owned(), b"text".to_vec()));
        // Every system has gzip.
        assert!(Command::new("gzip").arg(&plain).status().expect("gzip").success());
        assert_eq!(contents(&directory.join("a.csv.gz")).expect("it is there").1, b"text");
        std::fs::write(directory.join("b.csv.gz"), "no gzip").expect("it is written");
        assert!(contents(&directory.join("b.csv.gz")).is_err() && contents(&directory.join("none")).is_err());
        std::fs::remove_dir_all(&directory).expect("it can go");
    }
}
