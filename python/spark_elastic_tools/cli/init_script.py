"""`spark-elastic init-script`: a script that installs spark-elastic on the machines of a managed platform."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spark_elastic.version import __version__
from spark_elastic_tools.init_scripts.script import (
    EMR,
    PLATFORMS,
    Files,
    FilesError,
    Order,
    PlaceError,
    check_place,
    configurations,
    from_index,
    read_files,
    script,
)


@click.command("init-script")
@click.argument("platform", type=click.Choice(tuple(PLATFORMS)))
@click.option(
    "--from",
    "place",
    metavar="PLACE",
    help="Where the machines find the files: a folder that they see (/Volumes/..., /Workspace/..., "
    "dbfs:/...) or s3://BUCKET/...  [default: pip's index]",
)
@click.option(
    "--files",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder here with the same files, from `pip download --only-binary=:all:`: their SHA-256 checksums "
    "go into the script, which takes no others.  [default: --from, if that can be read here]",
)
@click.option(
    "--mode",
    type=click.Choice(("reactive", "adaptive")),
    default="reactive",
    show_default=True,
    help="How to scale, where the cluster's own settings do not say so.",
)
@click.option("--strict", is_flag=True, help="Keep the cluster from starting if the script fails.")
@click.option(
    "--configurations",
    "only_configurations",
    is_flag=True,
    help="EMR: print the JSON for `aws emr create-cluster --configurations` instead.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it here.  [default: print it]"
)
def init_script(
    platform: str,
    place: str | None,
    folder: Path | None,
    mode: str,
    strict: bool,
    only_configurations: bool,
    output: Path | None,
) -> None:
    """Print a cluster init script (databricks) or a bootstrap action (emr).

    \b
    pip download --only-binary=:all: --python-version 3.11 --platform manylinux2014_x86_64 \\
      --dest wheels spark-elastic
    spark-elastic init-script databricks --files wheels --from /Volumes/main/tools/jars --output init.sh
    spark-elastic init-script emr --files wheels --from s3://bucket/tools --output bootstrap.sh

    The script pins this version, picks the jar for the machine's Spark and Scala, installs the policy engine
    into its own folder, turns the plugin on, and logs what it did. Comments at its top explain how to use it
    and what has not been tried on the platform itself.
    """  # noqa: D301  # click wants the character itself
    if only_configurations:
        if platform != EMR.name:
            raise click.UsageError(f"--configurations is for {EMR.name}: leave it out")
        _write(json.dumps(configurations(mode, __version__), indent=2) + "\n", output)
        return
    known = PLATFORMS[platform]
    try:
        if place is not None:
            check_place(place, known)
        files = _files(place, folder)
    except (FilesError, PlaceError) as error:
        raise click.UsageError(str(error)) from error
    _write(script(Order(platform=known, mode=mode, files=files, place=place, strict=strict)), output)


def _files(place: str | None, folder: Path | None) -> Files:
    if folder is None and place is not None:
        folder = Path(place.removeprefix("file:"))
        if not folder.is_dir():
            raise FilesError(
                f"{place} cannot be read here, so its checksums are not known: name a folder "
                "with the same files with --files"
            )
    if folder is None:
        return from_index(__version__)
    files = read_files(folder, __version__)
    jars = [name for name in files.checksums if name.endswith(".jar")]
    if place is None and jars:
        raise FilesError(
            f"{jars[0]} is in no index: say with --from where the machines find it, or remove it"
        )
    return files


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
        output.chmod(0o755)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written ({error.strerror}): name another") from error
