import numpy as np
import pandas as pd
import pytest

from scripts.lib.analysis.points.windows import counter_growth, engine_window, gpu_window

T = np.arange(0.0, 21.0)


def gpu(**columns):
    base = {
        "t_s": T,
        "gpu": 0,
        "memory_mib": 1000.0,
        "utilization": 50.0,
        "power_w": 100.0,
        "sm_clock_mhz": 1500.0,
        "throttle_reasons": "0x0",
        "energy_j": 100.0 * T,
    }
    return pd.DataFrame({**base, **columns})


def engine(**columns):
    names = (
        "running waiting kv_cache_usage preemptions prefix_cache_queries prefix_cache_hits "
        "queue_time_sum_s queue_time_count spec_decode_accepted spec_decode_draft"
    )
    base = dict.fromkeys(names.split(), np.nan)
    return pd.DataFrame({"t_s": T, **base, **columns})


def test_energy_between_samples_is_interpolated():
    window = gpu_window(gpu(), 2.5, 7.5)
    assert window["energy_j"].value == pytest.approx(500)
    assert window["gpu_utilisation_mean"].value == pytest.approx(0.5)


def test_energy_and_power_of_gpus_add_up_memory_does_not():
    both = pd.concat([gpu(), gpu(gpu=1, memory_mib=3000.0)]).sort_values("t_s")
    window = gpu_window(both, 2, 12)
    assert window["energy_j"].value == pytest.approx(2000)
    assert window["power_mean_w"].value == pytest.approx(200)
    assert window["gpu_memory_peak_mib"].value == 3000


def test_an_energy_counter_that_was_reset_gives_no_energy():
    energy = np.where(T < 10, 100 * T, 100 * (T - 10))
    window = gpu_window(gpu(energy_j=energy), 5, 15)
    assert window["energy_j"].value is None
    assert "reset" in window["energy_j"].missing
    assert gpu_window(gpu(energy_j=energy), 1, 8)["energy_j"].value == pytest.approx(700)


def test_one_gpu_without_energy_leaves_the_sum_unknown():
    both = pd.concat([gpu(), gpu(gpu=1, energy_j=np.nan)]).sort_values("t_s")
    assert gpu_window(both, 2, 12)["energy_j"].value is None


def test_throttling_by_cause():
    reasons = ["0x20"] * 5 + ["0x4"] * 5 + ["0x1"] * 11  # thermal, power cap, idle
    window = gpu_window(gpu(throttle_reasons=reasons), 0, 20)
    assert window["throttled_share"].value == pytest.approx(10 / 21)
    assert window["thermal_throttled_share"].value == pytest.approx(5 / 21)
    assert window["power_throttled_share"].value == pytest.approx(5 / 21)


def test_no_gpu_is_a_reason_not_a_zero():
    for value in gpu_window(None, 0, 1).values():
        assert value.value is None
        assert value.missing == "no GPU time series"


def test_peaks_only_count_inside_the_window():
    waiting = np.where(T == 15, 30.0, 2.0)
    assert engine_window(engine(waiting=waiting), 5, 10)["waiting_peak"].value == 2
    assert engine_window(engine(waiting=waiting), 5, 20)["waiting_peak"].value == 30


def test_shares_come_from_growth_not_from_totals():
    window = engine_window(
        engine(
            prefix_cache_queries=1000 + 10 * T,
            prefix_cache_hits=900 + 2 * T,
            queue_time_sum_s=50 + 0.5 * T,
            queue_time_count=7 + 2 * T,
        ),
        5,
        15,
    )
    assert window["prefix_hit_share"].value == pytest.approx(0.2)
    assert window["queue_mean_ms"].value == pytest.approx(250)


def test_a_cache_nobody_asked_has_no_share():
    window = engine_window(engine(prefix_cache_queries=5.0, prefix_cache_hits=1.0), 5, 15)
    assert window["prefix_hit_share"].missing == "the prefix cache was not asked"


def test_a_window_the_samples_do_not_cover():
    growth = counter_growth(T, T, 15, 40)
    assert "do not cover" in growth.missing


def test_a_short_window_between_two_samples_has_growth_but_no_peak():
    window = engine_window(engine(preemptions=3 * T, running=1.0), 5.2, 5.8)
    assert window["preemptions"].value == pytest.approx(1.8)
    assert window["running_peak"].missing == "no sample inside the point's window"
