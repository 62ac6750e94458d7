//! The package registries that verification reaches by default.

/// The hosts of public package registries and toolchains, by ecosystem. Hosts
/// of general storage are left out, also where a registry uses them.
pub(crate) const REGISTRIES: &[&str] = &[
    // Rust
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "static.rust-lang.org",
    // JavaScript
    "nodejs.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    // Python
    "files.pythonhosted.org",
    "pypi.org",
    // Go
    "go.dev",
    "proxy.golang.org",
    "sum.golang.org",
    // JVM
    "dl.google.com",
    "maven.google.com",
    "plugins.gradle.org",
    "plugins-artifacts.gradle.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "services.gradle.org",
    // Ruby
    "index.rubygems.org",
    "rubygems.org",
    // .NET
    "api.nuget.org",
    // Elixir and Erlang
    "builds.hex.pm",
    "repo.hex.pm",
    // Dart
    "pub.dev",
];
