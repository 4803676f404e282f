from __future__ import annotations

from typing import Any

import pytest

from sglsweep.attempt import End, EndKind
from sglsweep.keeper_files import Life
from sglsweep.triage.follow import Terminal
from sglsweep.verdict import Phase
from sglsweep.watch import Continue, ReadyForProof
from watch.timeline import Launch

MIB = 1 << 20
CAUSE = Terminal(line=42, text="torch.OutOfMemoryError: CUDA", signature="x", is_cascade=False)
CASCADE = Terminal(line=40, text="Received sigquit", signature="y", is_cascade=True)


def weights(**settings: Any) -> Launch:  # noqa: ANN401 - fields of Launch
    launch = Launch(**settings)
    launch.says("Load weight begin. avail mem=94.08 GB", phase=Phase.WEIGHTS)
    return launch


# -- fatal lines and exits ---------------------------------------------------------------------


def test_a_fatal_line_ends_the_wait_after_a_short_grace() -> None:
    launch = weights()
    launch.says("boom", terminal=CAUSE)
    end = launch.waits(60)
    assert isinstance(end, End)
    assert end.kind is EndKind.FATAL_LINE
    assert launch.now == 5.0
    assert "fatal line 42: torch.OutOfMemoryError" in end.detail


ONE_RANK = {"tp_size": 1, "pp_size": 1, "dp_size": 1, "nnodes": 1}


def test_one_rank_alone_is_not_waited_for_long_once_it_is_silent() -> None:
    launch = weights()
    launch.says("boom", terminal=CAUSE, server_args=ONE_RANK)
    assert isinstance(launch.waits(1), Continue)
    launch.says("the traceback goes on", terminal=CAUSE)
    assert isinstance(launch.waits(1), Continue)
    assert isinstance(launch.waits(60), End)
    assert 2.5 <= launch.now < 5.0


@pytest.mark.parametrize("more", [{"tp_size": 2}, {"nnodes": 2}, {"dp_size": 8}])
def test_several_ranks_have_time_for_their_tracebacks(more: dict[str, int]) -> None:
    launch = weights()
    launch.says("boom", terminal=CAUSE, server_args={**ONE_RANK, **more})
    assert isinstance(launch.waits(60), End)
    assert launch.now == 5.0


def test_an_exit_within_the_grace_ends_it_at_once() -> None:
    launch = weights()
    launch.says("boom", terminal=CAUSE)
    launch.waits(1)
    end = launch.look(server_alive=False, exit_status=-9)
    assert isinstance(end, End)
    assert end.kind is EndKind.FATAL_LINE
    assert end.exit_status == -9
    assert "SIGKILL" in end.detail


def test_a_mere_consequence_waits_longer_for_its_cause() -> None:
    launch = weights()
    launch.says("sigquit", terminal=CASCADE)
    assert isinstance(launch.waits(6), Continue)
    launch.says("cause", terminal=CAUSE)
    assert isinstance(launch.waits(0), End)
    lonely = weights()
    lonely.says("sigquit", terminal=CASCADE)
    assert isinstance(lonely.waits(60), End)
    assert lonely.now == 10.0


def test_an_exit_without_a_fatal_line_says_how_it_ended() -> None:
    launch = weights()
    end = launch.look(server_alive=False, exit_status=1)
    assert isinstance(end, End)
    assert (end.kind, end.exit_status) == (EndKind.EXITED, 1)
    assert end.detail == "exited with status 1 in phase weights"


@pytest.mark.parametrize(
    ("status", "words"), [(-15, "SIGTERM"), (137, "SIGKILL"), (3, "status 3")]
)
def test_an_exit_status_is_told_in_words(status: int, words: str) -> None:
    end = weights().look(server_alive=False, exit_status=status)
    assert isinstance(end, End)
    assert words in end.detail


# -- ready -------------------------------------------------------------------------------------


def test_the_ready_line_calls_for_the_proof() -> None:
    launch = weights()
    launch.says("The server is fired up and ready to roll!", phase=Phase.READY, is_ready=True)
    assert isinstance(launch.look(), ReadyForProof)


def test_ready_after_a_fatal_line_is_not_ready() -> None:
    launch = weights()
    launch.says("[Errno 98] address already in use", terminal=CAUSE)
    launch.says("The server is fired up and ready to roll!", phase=Phase.READY, is_ready=True)
    end = launch.waits(60)
    assert isinstance(end, End)
    assert end.kind is EndKind.FATAL_LINE


def test_an_idle_ready_server_may_be_silent_for_ever() -> None:
    launch = weights()
    launch.says("ready", phase=Phase.READY, is_ready=True)
    launch.now = 1e6
    assert isinstance(launch.look(), ReadyForProof)


def test_a_server_that_dies_after_ready_ends_the_wait() -> None:
    launch = weights()
    launch.says("ready", phase=Phase.READY, is_ready=True)
    launch.look()
    launch.says("boom", terminal=CAUSE)
    assert isinstance(launch.waits(60), End)


def test_an_open_port_is_ready_where_the_log_level_hides_the_line() -> None:
    launch = Launch(is_listening=True)
    assert isinstance(launch.waits(14), Continue)
    assert isinstance(launch.waits(2), ReadyForProof)


def test_an_open_port_is_not_ready_while_the_log_shows_its_phases() -> None:
    launch = Launch(is_listening=True)
    launch.says("POST /generate", phase=Phase.WARMUP)
    assert isinstance(launch.waits(60), Continue)


# -- silence -----------------------------------------------------------------------------------


def test_silence_without_life_is_a_hang_in_words_people_understand() -> None:
    launch = weights()
    end = launch.waits(1000)
    assert isinstance(end, End)
    assert end.kind is EndKind.SILENCE
    assert end.silence_s == 300.0
    assert end.detail == "no output and no life sign for 5 m in phase weights; limit 5 m"


@pytest.mark.parametrize(
    "growing",
    [
        {"read_bytes": 2 * MIB},
        {"read_chars": 2 * MIB},
        {"page_cache_bytes": 4 * MIB},
        {"net_rx_bytes": 4 * MIB},
        {"cpu_s": 0.9},
    ],
    ids=str,
)
def test_silent_loading_with_a_life_sign_is_never_a_hang(growing: dict[str, float]) -> None:
    # Kimi-K2's weights came without a line for 812 s, and then the server served.
    launch = weights()
    assert isinstance(launch.waits(812, each=growing), Continue)
    launch.says("Load weight end.", phase=Phase.WEIGHTS_DONE)
    assert isinstance(launch.waits(200), Continue)


def test_slow_reading_counts_though_each_look_sees_little_of_it() -> None:
    assert isinstance(weights().waits(1200, each={"read_bytes": 100_000}), Continue)


def test_a_trickle_of_bytes_and_idle_threads_are_no_life() -> None:
    end = weights().waits(1000, each={"read_bytes": 2000, "cpu_s": 0.02})
    assert isinstance(end, End)
    assert end.kind is EndKind.SILENCE


def test_gpu_memory_that_changes_is_life() -> None:
    launch = weights(life=Life(gpu_used_mib=(1000, 1000)))
    for step in range(1, 9):
        launch.lives(gpu_used_mib=(1000 + 500 * step, 1000))
        assert isinstance(launch.waits(150), Continue)


def test_a_compiler_at_work_is_life() -> None:
    launch = weights(life=Life(compilers=("nvcc",)))
    launch.says("Capture cuda graph begin.", phase=Phase.GRAPH_CAPTURE, is_capturing=True)
    assert isinstance(launch.waits(1100), Continue)


def test_a_spinning_cpu_is_no_life_where_ranks_wait_for_gpus() -> None:
    launch = weights(life=Life(gpu_used_mib=(1000,)))
    launch.says("Capture cuda graph begin.", phase=Phase.GRAPH_CAPTURE, is_capturing=True)
    end = launch.waits(1000, each={"cpu_s": 8.0})
    assert isinstance(end, End)
    assert end.kind is EndKind.SILENCE


def test_cpu_time_is_life_where_there_is_no_gpu_to_wait_for() -> None:
    launch = weights()
    launch.says("Memory pool end.", phase=Phase.KV_CACHE)
    assert isinstance(launch.waits(500, each={"cpu_s": 1.0}), Continue)


def test_a_worker_that_ends_and_takes_its_sums_along_hides_no_later_growth() -> None:
    launch = weights(life=Life(read_bytes=10_000 * MIB))
    launch.waits(10)
    launch.lives(read_bytes=0)
    assert isinstance(launch.waits(600, each={"read_bytes": MIB}), Continue)


def test_gpus_that_spin_at_low_power_are_told_earlier_and_by_name() -> None:
    spinning = Life(gpu_used_mib=(9000, 9000), gpu_util=(100, 100), gpu_power_w=(140, 138))
    launch = weights(life=spinning, gpu_limit_w=(600.0, 600.0))
    launch.says("Init torch distributed begin.", phase=Phase.DIST_INIT)
    end = launch.waits(1000)
    assert isinstance(end, End)
    assert end.silence_s == 120.0
    assert "ranks wait for each other" in end.detail


def test_gpus_that_work_hard_are_not_taken_for_spinning() -> None:
    busy = Life(gpu_used_mib=(9000,), gpu_util=(100,), gpu_power_w=(540,))
    launch = weights(life=busy, gpu_limit_w=(600.0,))
    launch.says("Capture cuda graph begin.", phase=Phase.GRAPH_CAPTURE)
    assert isinstance(launch.waits(250), Continue)


def test_a_line_that_repeats_is_no_progress() -> None:
    launch = weights(life=Life(gpu_used_mib=(1000,)))
    launch.says("Init torch distributed begin.", phase=Phase.DIST_INIT)
    end: object = None
    for beat in range(100):
        launch.says(f"[2026-01-01 00:{beat:02d}:00] waiting for rank 3, {10 * beat} s")
        end = launch.waits(10)
        if isinstance(end, End):
            break
    assert isinstance(end, End)
    assert end.kind is EndKind.SILENCE
    assert launch.now < 200


def test_without_life_signs_numbers_that_change_are_progress() -> None:
    launch = weights(life=None)
    for shard in range(20):
        launch.says(f"[2026-01-01 00:{shard:02d}:00] loaded {shard} of 83 shards")
        assert isinstance(launch.waits(80), Continue)


def test_without_life_signs_only_long_silence_is_a_hang() -> None:
    launch = weights(life=None, overrides={"weights": 90_000})
    launch.says("Load weight end.", phase=Phase.WEIGHTS_DONE)
    assert isinstance(launch.waits(1000), Continue)
    end = launch.waits(1000)
    assert isinstance(end, End)


def test_progress_of_a_bar_is_progress() -> None:
    launch = weights()
    for done in range(1, 10):
        launch.log.progress = {"weights": (done, 83)}
        assert isinstance(launch.waits(150), Continue)


def test_a_launch_whose_log_level_hides_its_phases_gets_the_time_of_all_of_them() -> None:
    launch = Launch(is_mute=True)
    assert isinstance(launch.waits(3600, each={"read_bytes": 4 * MIB}), Continue)
    assert isinstance(launch.waits(600), Continue)
    end = launch.waits(100)
    assert isinstance(end, End)
    assert end.kind is EndKind.SILENCE


def test_a_launch_taken_over_late_is_not_called_silent_for_what_nobody_saw() -> None:
    launch = Launch(now=1800.0)
    launch.says("Loading safetensors checkpoint shards:  40%", phase=Phase.WEIGHTS)
    assert isinstance(launch.waits(250), Continue)
    assert isinstance(launch.waits(100), End)


def test_a_starved_machine_is_slow_and_not_hung() -> None:
    launch = Launch()
    launch.says("server_args={}", phase=Phase.ARGS)
    assert isinstance(launch.waits(290, each={"cpu_s": 0.08}), Continue)


# -- caps --------------------------------------------------------------------------------------


def test_a_phase_that_lives_but_never_ends_is_given_up() -> None:
    end = weights().waits(4000, each={"read_bytes": 4 * MIB})
    assert isinstance(end, End)
    assert end.kind is EndKind.CAP
    assert end.detail == "30 m in phase weights without an end; limit 30 m"


def test_big_weights_on_a_slow_disk_get_their_time() -> None:
    launch = weights(weights_bytes=600 * 10**9)
    assert isinstance(launch.waits(2900, each={"read_bytes": 200 * MIB}), Continue)
    assert isinstance(launch.waits(200, each={"read_bytes": 200 * MIB}), End)


def test_compiling_is_not_charged_to_the_phase_it_happens_in() -> None:
    launch = weights()
    launch.says("FlashInfer autotune", phase=Phase.KV_CACHE, is_compiling=True)
    assert isinstance(launch.waits(1000, each={"cpu_s": 1.0}), Continue)
    launch.says("done", is_compiling=False)
    assert isinstance(launch.waits(250), Continue)


def test_every_kind_of_graph_has_its_time() -> None:
    launch = weights()
    for kind in ("decode", "prefill", "draft"):
        launch.says(f"Capture {kind} begin", phase=Phase.GRAPH_CAPTURE, is_capturing=True)
        assert isinstance(launch.waits(1000, each={"page_cache_bytes": 4 * MIB}), Continue)
        launch.says(f"Capture {kind} end", is_capturing=False)
        launch.look()


@pytest.mark.parametrize(
    "bar", ["Fetching 83 files:   0%|", "model-00001-of-00083.safetensors:  12%|#2  | 612M/4.9G"]
)
def test_a_download_has_no_end_while_bytes_come(bar: str) -> None:
    launch = weights()
    launch.says(bar)
    assert isinstance(launch.waits(9000, each={"net_rx_bytes": 10 * MIB}), Continue)


def test_the_user_may_cap_the_way_to_ready() -> None:
    launch = weights(overrides={"ready": 600})
    end = launch.waits(4000, each={"read_bytes": 4 * MIB})
    assert isinstance(end, End)
    assert end.kind is EndKind.CAP
    assert end.detail == "not ready after 10 m, in phase weights; limit 10 m"


def test_warm_up_with_prefill_and_decode_apart_may_take_longer() -> None:
    launch = weights()
    launch.says("warmup", phase=Phase.WARMUP, server_args={"disaggregation_mode": "prefill"})
    assert isinstance(launch.waits(2000), Continue)
    plain = weights()
    plain.says("warmup", phase=Phase.WARMUP, server_args={"disaggregation_mode": "null"})
    assert isinstance(plain.waits(2000), End)
