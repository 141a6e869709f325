"""Tests of the project's own rules: one version number, one list of Sparks, a jar
that is found, short files.
"""

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

import build_jar
import spark_elastic
import spark_versions
from spark_elastic.installation import Spark
from spark_elastic.jar import JarNotFoundError, find_jar
from tests.unit.shellcheck import complaints

CHECKOUT = Path(__file__).parents[2]


def put_jar(folder: Path, spark: str, version: str = spark_elastic.__version__, scala: str = "2.13") -> Path:
    jar = folder / f"spark-elastic_{spark}_{scala}-{version}.jar"
    jar.touch()
    return jar


def test_both_builds_read_the_package_version() -> None:
    assert build_jar.project_version() == spark_elastic.__version__
    assert metadata.version("spark-elastic") == spark_elastic.__version__


def test_the_wheel_allows_the_spark_versions_of_the_list_and_no_others() -> None:
    requires = [Requirement(line) for line in metadata.requires("spark-elastic") or ()]
    (pyspark,) = [
        r.specifier for r in requires if r.name == "pyspark" and r.marker == Marker('extra == "pyspark"')
    ]
    minors = [tuple(map(int, row.minor.split("."))) for row in spark_versions.supported()]
    major, newest = max(minors)
    releases = [release for row in spark_versions.supported() for release in (row.pyspark, *row.others)]
    assert all(map(pyspark.contains, releases))
    assert not pyspark.contains(f"{major}.{newest + 1}.0")
    assert not pyspark.contains(".".join(map(str, min(minors))) + ".0.dev0")


@pytest.mark.parametrize("extra", ["", "cli", "demo", "logs", "measure", "pyspark"])
def test_what_users_install_is_bounded_on_both_sides(extra: str) -> None:
    bounds = {r.name: {one.operator for one in r.specifier} for r in required(extra)}
    assert bounds.pop("tzdata") == set()
    assert {name: operators for name, operators in bounds.items() if operators != {">=", "<"}} == {}


def required(extra: str) -> list[Requirement]:
    """Return the packages that are installed with an extra, or without any."""
    lines = map(Requirement, metadata.requires("spark-elastic") or ())
    return [r for r in lines if r.marker is None or r.marker.evaluate({"extra": extra})]


def test_every_supported_spark_has_a_py4j_within_the_bounds() -> None:
    (py4j,) = [r.specifier for r in required("") if r.name == "py4j"]
    assert [row.py4j for row in spark_versions.supported() if row.py4j not in py4j] == []


def test_the_list_names_the_py4j_of_the_installed_spark() -> None:
    spark = metadata.version("pyspark")
    py4j = {row.py4j for row in spark_versions.supported() if row.pyspark == spark}
    assert py4j == {metadata.version("py4j")}


def test_a_version_has_all_columns(tmp_path: Path) -> None:
    file = tmp_path / "versions"
    file.write_text(
        "# comment\n\n4.3.1  pyspark  4.3.2  2.13.9  21  0.11  -\n"
        "4.2.0 maven 4.2.1,4.2.2 2.13.18 17 0.10.9.9 a,b\n"
    )
    newest, oldest = spark_versions.supported(file)
    assert newest == spark_versions.SparkVersion("4.3.1", "pyspark", "4.3.2", "2.13.9", 21, "0.11", ())
    assert oldest.sources == ("a", "b")
    assert oldest.pyspark == "4.2.1"
    (other,) = oldest.with_others()
    assert (other.pyspark, other.name, other.with_others()) == ("4.2.2", "4.2", ())
    assert newest.jar_name("1.0") == "spark-elastic_4.3_2.13-1.0.jar"


def test_jar_of_the_same_minor_version_is_found(tmp_path: Path) -> None:
    put_jar(tmp_path, "4.3")
    jar = put_jar(tmp_path, "4.2")
    assert find_jar(tmp_path, Spark("4.2.7")) == jar


def test_spark_without_a_jar_names_those_that_have_one(tmp_path: Path) -> None:
    put_jar(tmp_path, "4.2")
    put_jar(tmp_path, "4.10")
    with pytest.raises(JarNotFoundError, match=r"3\.5\.1 is not .* 4\.10_2\.13, 4\.2_.*pyspark==4\.10\.\*"):
        find_jar(tmp_path, Spark("3.5.1"))


def test_jar_of_the_same_scala_is_found_and_else_the_one_that_goes_with_pip(tmp_path: Path) -> None:
    put_jar(tmp_path, "4.0")
    jars = {scala: put_jar(tmp_path, "3.5", scala=scala) for scala in ("2.13", "2.12")}
    assert {scala: find_jar(tmp_path, Spark("3.5.9", scala)) for scala in jars} == jars
    assert find_jar(tmp_path, Spark("3.5.9")) == jars["2.12"]
    with pytest.raises(JarNotFoundError, match=r"Spark 4\.0\.1 with Scala 2\.12 is not .* 3\.5_2\.12, 3\."):
        find_jar(tmp_path, Spark("4.0.1", "2.12"))


def test_the_lines_of_one_spark_differ_in_name_and_pip_has_one_of_them() -> None:
    rows = spark_versions.supported()
    assert len({row.jar_name("1.0") for row in rows}) == len({row.name for row in rows}) == len(rows)
    assert {row.name for row in rows if row.on_pypi} == {row.minor for row in rows}
    assert [row.name for row in rows if not row.on_pypi] == ["3.5_2.13"]


def test_no_jar_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(JarNotFoundError, match=r"has no jar, .* type `make jar`"):
        find_jar(tmp_path / "jars", Spark("4.2.0"))


def test_jar_of_another_version_does_not_fit(tmp_path: Path) -> None:
    stale = put_jar(tmp_path, "4.2", version="0.0.1")
    with pytest.raises(JarNotFoundError, match=re.escape(stale.name)):
        find_jar(tmp_path, Spark("4.2.0"))


def test_a_changed_source_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "build.sbt").write_text("")
    source = tmp_path / "jvm-shim" / "src" / "main" / "scala" / "A.scala"
    source.parent.mkdir(parents=True)
    source.write_text("class A")
    other = source.parent.parent / "scala-of-another-spark" / "B.scala"
    other.parent.mkdir()
    monkeypatch.setattr(build_jar, "CHECKOUT", tmp_path)
    monkeypatch.setattr(build_jar, "SOURCES", other.parent.parent)
    row = spark_versions.supported()[0]
    before = build_jar.fingerprint(row, "1.0")
    assert build_jar.fingerprint(row, "1.0") == before
    assert build_jar.fingerprint(row, "1.1") != before
    other.write_text("class B")
    assert build_jar.fingerprint(row, "1.0") == before
    source.write_text("class B")
    assert build_jar.fingerprint(row, "1.0") != before


def test_no_file_of_ours_writes_the_version_a_second_time() -> None:
    for name in ("pyproject.toml", "build.sbt"):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        assert f'"{spark_elastic.__version__}"' not in text


def test_every_file_can_be_read_from_top_to_bottom() -> None:
    files = [
        file for folder in ("python", "tests", "integration") for file in (CHECKOUT / folder).rglob("*.py")
    ]
    assert [file.name for file in files if len(file.read_text(encoding="utf-8").splitlines()) > 900] == []


@pytest.mark.parametrize("name", [".ci/run", "integration/cluster/rescale.sh"])
def test_shellcheck_has_nothing_to_say_of_our_own_scripts(name: str) -> None:
    assert complaints(CHECKOUT / name) == ""


def test_a_commit_is_checked_with_the_types_that_lint_checks() -> None:
    checked = re.compile(r"/mypy (?:\$\(filter-out \.ci,\$\(CODE\)\)|python tests integration jvm-shim) (.+)")
    of_lint, of_a_commit = (
        checked.findall((CHECKOUT / name).read_text()) for name in ("Makefile", ".pre-commit-config.yaml")
    )
    assert of_lint == of_a_commit
    assert len(of_lint) == 1
