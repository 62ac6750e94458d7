//! What a command of a step may do, written down for a person.

use super::{HostAccess, ImageSystem, ReadReason, Search};
use crate::environment;
use crate::settings::{Network, Resources, Settings};
use premath_kernel::policy::network::{NetworkPhase, NetworkPolicy};
use premath_kernel::policy::sandbox::{ContainerImage, SandboxMode};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// What a command of a step may do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The sandbox mode of the commands.
    pub mode: SandboxMode,
    /// The same in a sentence, with what does not work here.
    #[serde(rename = "told")]
    pub description: String,
    /// The image of the mode `container`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ContainerImage>,
    /// What may be read, with the reason.
    pub read: Vec<Listed>,
    /// What is in it and is hidden.
    pub hidden: Vec<String>,
    /// Caches that are seen with a private layer over them.
    pub caches: Vec<Listed>,
    /// What may be written, with the reason.
    pub write: Vec<Listed>,
    /// Which hosts the work may reach.
    pub work_network: Reach,
    /// Which hosts a verification may reach.
    pub verify_network: Reach,
    /// What all processes of a command together may use.
    pub limits: Limits,
    /// Names of the variables that pass, of those that are set here.
    pub variables: Vec<String>,
}

/// A path with the reason why it is in the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The path; a name in braces for what each command has of its own.
    pub path: String,
    /// The reason.
    pub source: String,
}

/// Which hosts may be reached.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// The policy.
    pub policy: String,
    /// The listed hosts.
    pub hosts: Vec<String>,
}

/// Bounds; absent where there is none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of files.
    pub disk_bytes: Option<u64>,
}

impl Explanation {
    /// Explains the settings of a repository.
    pub fn of(settings: &Settings) -> Self {
        let mode = settings.sandbox.choice.mode;
        let host = HostAccess::find(&Search::of(settings));
        let is_listed = mode != SandboxMode::None;
        let is_viewed = mode.has_view();
        let listed = |path: String, source: &str| Listed {
            path,
            source: source.to_owned(),
        };
        let read = match is_listed {
            true => host
                .read
                .iter()
                .map(|(path, source)| listed(path.to_string_lossy().into_owned(), source.as_str()))
                .collect(),
            false => vec![listed("/".to_owned(), "commands are not confined")],
        };
        let provided = settings.provided.iter().map(|file| {
            let path = format!("{{checkout}}/{}", file.path.display());
            listed(path, "`provide` of [verify], in verifications only")
        });
        let of_image = host.image.iter().flat_map(of_image);
        let read: Vec<Listed> = of_image.chain(read).chain(provided).collect();
        let hidden = host
            .hidden
            .iter()
            .filter(|path| is_viewed && host.may_read(path));
        let caches = host.caches.iter().map(|cache| {
            listed(
                cache.folder.to_string_lossy().into_owned(),
                &format!("cache, seen as ~/{}", cache.at),
            )
        });
        Self {
            mode,
            description: settings.sandbox.choice.describe(),
            image: settings.sandbox.choice.image.clone(),
            read,
            hidden: hidden
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
            caches: caches.collect(),
            write: written(mode, settings),
            work_network: reach(&settings.network, NetworkPhase::Work),
            verify_network: reach(&settings.network, NetworkPhase::Verify),
            limits: limits(&settings.resources),
            variables: environment::passing(settings.inherited(), &settings.environment),
        }
    }
}

/// Lists what a command has of an image, and of the machine in its folders.
fn of_image(image: &ImageSystem) -> Vec<Listed> {
    let listed = |path: &Path, source: &str| Listed {
        path: path.to_string_lossy().into_owned(),
        source: source.to_owned(),
    };
    let own = image.entries.iter();
    let own = own.map(|entry| listed(entry.at(), "image"));
    let names = image.names.iter();
    own.chain(names.map(|(_, at)| listed(at, ReadReason::System.as_str())))
        .collect()
}

fn written(mode: SandboxMode, settings: &Settings) -> Vec<Listed> {
    if mode == SandboxMode::None {
        return vec![Listed {
            path: "/".to_owned(),
            source: "commands are not confined".to_owned(),
        }];
    }
    let own = [
        ("{worktree}", "the lane's files"),
        (
            "{git}",
            "a private git folder, with the repository's objects read-only",
        ),
        ("{step}", "the step's requests and evidence"),
        ("{home}", "the command's private home, deleted afterwards"),
        (
            "{temporary}",
            "the command's private /tmp, deleted afterwards",
        ),
    ];
    let own = own.map(|(path, source)| (path.to_owned(), source));
    let asked = settings.sandbox.write.iter();
    let asked = asked.map(|path| (path.to_string_lossy().into_owned(), "[sandbox] write"));
    own.into_iter()
        .chain(asked)
        .map(|(path, source)| Listed {
            path,
            source: source.to_owned(),
        })
        .collect()
}

fn reach(network: &Network, phase: NetworkPhase) -> Reach {
    let word = match phase {
        NetworkPhase::Work => network.choice.work,
        NetworkPhase::Verify => network.choice.verify,
    };
    let hosts = match network.policy(phase) {
        NetworkPolicy::Allow(list) | NetworkPolicy::Public(list) => {
            list.hosts.iter().map(ToString::to_string).collect()
        }
        NetworkPolicy::Off | NetworkPolicy::Open => Vec::new(),
    };
    Reach {
        policy: word.as_str().to_owned(),
        hosts,
    }
}

const fn limits(resources: &Resources) -> Limits {
    Limits {
        memory_bytes: resources.memory,
        processes: resources.processes,
        open_files: resources.open_files,
        disk_bytes: resources.disk,
    }
}
