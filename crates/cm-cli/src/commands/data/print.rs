//! Data sets and their files in words.

use cm_data::{Cache, Checksum, Downloaded, FileEntry, Manifest};

pub(super) fn list(cache: &Cache) -> anyhow::Result<()> {
    for manifest in Manifest::all(cache)? {
        let mark = if manifest.is_downloaded(cache) { "downloaded" } else { "" };
        let Manifest { name, format, description, .. } = manifest;
        println!("{name:<32} {format:<11} {mark:<10} {description}");
    }
    println!("\ncache: {}", cache.folder().display());
    Ok(())
}

pub(super) fn info(manifest: &Manifest, cache: &Cache) -> anyhow::Result<()> {
    println!("{}: {}", manifest.name, manifest.description);
    println!("format:     {}", manifest.format);
    println!(
        "shapes:     observations [N, {}], actions [N, {}]",
        manifest.observations, manifest.actions
    );
    println!("steps:      {}", manifest.steps.as_deref().unwrap_or("not stated"));
    println!("licence:    {}", manifest.licence);
    println!("citation:   {}", manifest.citation);
    println!("regenerate: {}", manifest.regenerate);
    for file in &manifest.files {
        let path = cache.path(&file.name);
        let state = if path.exists() { "downloaded to" } else { "would go to" };
        println!("\n{}\n  {state} {}", file.name, path.display());
        match file.size {
            Some(size) => println!("  size {size} bytes"),
            None => println!("  size is not published"),
        }
        match cache.checksum(file)? {
            Checksum::Published(sum) => println!("  sha256 {sum}"),
            Checksum::Recorded(sum) => {
                println!("  sha256 {sum}, recorded at the first download; none is published");
            }
            Checksum::Unknown => println!(
                "  sha256 is not published; the first download is trusted, and its sha256 recorded"
            ),
        }
        for address in &file.addresses {
            println!("  from {address}");
        }
    }
    Ok(())
}

pub(super) fn downloaded(done: &Downloaded, cache: &Cache, file: &FileEntry) -> anyhow::Result<()> {
    let path = done.path.display();
    match &done.checked_by {
        None => println!("{path} is there already"),
        Some(Checksum::Published(_)) => println!("downloaded {path}: its sha256 is as published"),
        Some(Checksum::Recorded(_)) => {
            println!("downloaded {path}: its sha256 is that of the first download");
        }
        Some(Checksum::Unknown) => println!(
            "downloaded {path}: no sha256 is published; {} is recorded and holds from now on",
            cache.checksum(file)?.digits().unwrap_or("none")
        ),
    }
    Ok(())
}
