"""Tests that each shape follows its formula."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from spark_elastic_lab.simulator.load import MINUTE, SHAPES, Load, load_of, parameters

RUN = 140 * MINUTE


def rates(text: str, seconds: int = RUN) -> tuple[float, ...]:
    return load_of(text, seconds, "7").rates


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_a_rate_for_each_second_and_depends_on_the_seed_alone(name: str) -> None:
    load = load_of(name, 3_601, "1")
    assert len(load.rates) == 3_601
    assert min(load.rates) >= 0
    assert max(load.rates) > 0
    assert load == load_of(name, 3_601, "1")
    assert all(f"{key}=" not in name and value >= 0 for key, value in parameters(SHAPES[name]).items())


@pytest.mark.parametrize("name", ["cosine", "random-walk", "increase", "decrease", "convergence", "web"])
def test_chance_follows_the_seed(name: str) -> None:
    assert load_of(name, RUN, "1") != load_of(name, RUN, "2")


def test_a_cosine_is_highest_and_lowest_in_its_minutes() -> None:
    wave = rates("cosine:noise=0")
    assert wave[0] == wave[59] == 250_000
    assert wave[30 * MINUTE] == 50_000
    assert wave[60 * MINUTE] == pytest.approx(250_000)
    spiked = rates("cosine:noise=0,spikes=0.1")
    off = [abs(one - other) for one, other in zip(spiked, wave, strict=True) if one != other]
    assert off
    assert max(off) <= 100_000


def test_a_walk_steps_each_minute_within_its_bounds() -> None:
    walk = rates("random-walk")[::MINUTE]
    steps = [after - before for before, after in pairwise(walk)]
    assert walk[0] == 150_000
    assert 0 < max(map(abs, steps)) <= 10_000


def test_increase_and_decrease_go_where_they_are_named_after() -> None:
    assert rates("increase")[0] == 2_000
    assert rates("increase")[-1] > 10 * 2_000
    assert rates("decrease")[0] == 242_000
    assert rates("decrease")[-1] < 242_000 / 1.5


def test_convergence_has_four_levels() -> None:
    wave = rates("convergence:noise=0")
    sevenths = [wave[int(RUN * part / 7) + 1] for part in range(7)]
    assert sevenths == [0, 1e6, 1e6, 2e6, 2e6, 1e6, 1e6]


def test_ramp_step_and_square() -> None:
    assert rates("ramp:start=10,slope=60", 121) == pytest.approx([10 + second for second in range(121)])
    assert rates("ramp:start=1,slope=-60", 4) == (1, 0, 0, 0)
    assert rates("step:before=1,after=5,at=0.05", 5) == (1, 1, 1, 5, 5)
    assert rates("square:low=2,high=9,period=0.1,share=0.5", 8) == (9, 9, 9, 2, 2, 2, 9, 9)
    assert rates("spikes:base=1,height=4,every=0.1,length=0.05", 7) == (1, 1, 1, 5, 5, 5, 1)


def test_a_day_has_its_peaks_at_their_hours() -> None:
    day = rates("two-peaks", 24 * 60 * MINUTE)
    assert day[9 * 3_600] == pytest.approx(7_000, rel=0.01)
    assert day[19 * 3_600] == pytest.approx(5_000, rel=0.01)
    assert day[2 * 3_600] == pytest.approx(1_000, rel=0.01)


def test_sines_add_up() -> None:
    wave = rates("sines:mean=10,amplitude1=4,period1=4,amplitude2=2,period2=2", 240)
    assert wave[60] == pytest.approx(14)
    assert wave[30] == pytest.approx(10 + 4 * 0.5**0.5 + 2)


def test_a_season_grows_and_bursts() -> None:
    wave = rates("seasonal:noise=0,growth=1", 2 * 24 * 60 * MINUTE)
    assert wave[24 * 60 * MINUTE + 6 * 3_600 + 20 * MINUTE] > 2 * wave[30 * MINUTE]
    peak = 180 * MINUTE + 150
    assert wave[peak] - wave[peak + 300] == pytest.approx(4_000, rel=0.05)


def test_web_bursts_keep_the_mean() -> None:
    load = load_of("web:mean=1000", 4 * 24 * 60 * MINUTE, "1")
    assert load.total / len(load.rates) == pytest.approx(1_000, rel=0.1)
    assert max(load.rates) > 2_000


def test_what_an_outage_holds_back_comes_after_it() -> None:
    wave = rates("outage:rate=10,at=1,length=2,release=1", 300)
    assert wave[59] == 10
    assert wave[60] == wave[179] == 0
    assert wave[180] == 30
    assert sum(wave) == 10 * 300


def test_a_load_is_scaled_and_made_random() -> None:
    assert rates("constant:rate=10,scale=3", 2) == (30, 30)
    for rate in (5, 900):
        found = rates(f"constant:rate={rate},poisson=1", 4_000)
        mean = sum(found) / len(found)
        assert mean == pytest.approx(rate, rel=0.05)
        assert sum((one - mean) ** 2 for one in found) / len(found) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cosin", "no load 'cosin'.*type cosine"),
        ("zzz", "no load 'zzz'.*name one of them"),
        ("constant:rat=1", "no parameter 'rat', but rate=1000"),
        ("constant:rate=x", "'rate=x' of 'constant' is no number: type rate=1000"),
        ("constant:rate=nan", "no finite number"),
        ("constant:rate=-1", "from 0 up"),
        ("constant:scale=-1", "from 0 up"),
        ("cosine:period=0", "divides by 0"),
        ("nowhere.csv", "cannot be read"),
    ],
)
def test_a_wrong_text_is_answered_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_of(text, 60, "1")


def test_a_file_gives_rates_from_second_to_second(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text("second,rows\n1,10\n\n3,20.5\n9,1\n")
    assert rates(f"{file}", 6) == (0, 10, 10, 20.5, 20.5, 20.5)
    assert rates(f"{file}:scale=2", 2) == (0, 20)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text("\ufeff0,20\n3,30\n", encoding="utf-8")
    assert rates(f"{file}", 4) == (20, 20, 20, 30)
    file.write_text("\ufeffsecond,rows\n0,5\n", encoding="utf-8")
    assert rates(f"{file}", 2) == (5, 5)


@pytest.mark.parametrize("first", ["0;20000", "0", "0,1 000", "1e3,5", "00:10,5"])
def test_a_first_line_with_a_digit_is_no_heading(tmp_path: Path, first: str) -> None:
    file = tmp_path / "load.csv"
    file.write_text(f"{first}\n60,5\n")
    said = f"line 1: '{first}' is not 'second,rows per second': write whole seconds .* such as 0,20000"
    with pytest.raises(ValueError, match=said):
        load_of(str(file), 6, "1")


@pytest.mark.parametrize("text", ["", "0,1\n0,2\n", "0,1\nx,2\n", "0,-1\n", "0,1\n5\n"])
def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "load.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"load.csv(, line [12]:| has no line)"):
        load_of(str(file), 6, "1")


def test_shapes_take_chance_from_nowhere_else() -> None:
    assert Load(SHAPES["cosine"](60, Random(1))) == Load(SHAPES["cosine"](60, Random(1)))
