"""The study, and look-ups over it for the rules; no rules here."""

import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

PROJECT = Path(workflow.basedir)
sys.path.insert(0, str(PROJECT))

from scripts.lib.jobs.study_files import find_file_problems, find_lost_records
from scripts.lib.study.checks import probe_files
from scripts.lib.study.load import StudyError, load_study
from scripts.lib.study.specs import write_specs

DEFAULT_STUDY = Path("config/config.yaml")

# Rules say `python`: let that be the one this Snakemake runs under. (A prefix replaces
# Snakemake's own strict mode, so it is repeated.)
shell.prefix(f'set -euo pipefail; export PATH="{Path(sys.executable).parent}:$PATH"; ')


def study_file():
    """Return the study given with --configfile, or the default one."""
    given = workflow.configfiles
    if len(given) > 1:
        raise WorkflowError("Give one --configfile: a study is one file.")
    if not given:
        return DEFAULT_STUDY
    path = Path(given[0])
    return path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path


def read_the_study():
    """Load the study and write its specs, or stop with all that is wrong with it."""
    if Path.cwd() != PROJECT:
        raise WorkflowError(
            f"Run snakemake in {PROJECT}: paths of a study count from there."
        )
    try:
        loaded = load_study(
            study_file(),
            PROJECT,
            workflow.config_settings.config,
            further=[find_file_problems] if workflow.is_main_process else [],
        )
    except StudyError as error:
        raise WorkflowError("The study cannot be run:", *error.problems)
    if workflow.is_main_process:
        for warning in loaded.warnings:
            logger.warning(f"{study_file()}: {warning}")
        for lost in find_lost_records(
            loaded.study, Path("results", loaded.study.study)
        ):
            logger.warning(lost)
    try:
        write_specs(loaded.study, Path("results") / loaded.study.study)
    except OSError as error:
        raise WorkflowError(
            f"{error.filename} cannot be written ({error.strerror}); make room under results/, "
            "or make it writable"
        )
    return loaded.study


STUDY = read_the_study()


def code(*patterns):
    """Return the modules that change a job's numbers: editing one reruns the job."""
    return sorted(
        str(path) for pattern in patterns for path in Path("scripts").glob(pattern)
    )


SERVING_CODE = code(
    "lib/engine/keeper.py",
    "lib/engine/server.py",
    "lib/engine/flags.py",
    "lib/jobs/serving.py",
    "lib/jobs/attached.py",
)
NOT_MEASURING = (
    "benchmark_file.py",
    "lengths.py",
    "other_formats.py",
    "progress.py",
    "raw_records.py",
    "search.py",
)
LOAD_CODE = SERVING_CODE + [
    path
    for path in code(
        "lib/load/*.py",
        "lib/jobs/load_job.py",
        "lib/telemetry/sampler.py",
        "lib/telemetry/series.py",
        "lib/telemetry/metric_names.py",
        "lib/telemetry/metrics_text.py",
    )
    if not path.endswith(NOT_MEASURING)
]
if STUDY.slo_search:  # then a session judges as it goes
    LOAD_CODE += code("lib/load/search.py", "lib/judging/*.py", "lib/study/slo.py")
PROBE_CODE = SERVING_CODE + code("lib/quality/asking.py", "lib/jobs/quality_job.py")
GRADE_CODE = code(
    "lib/quality/completions.py",
    "lib/quality/results.py",
    "lib/quality/grading.py",
    "lib/quality/degenerate.py",
    "lib/quality/graders/*.py",
    "lib/quality/sandbox/*.py",
)
PLAN_CODE = code(
    "lib/plan/*.py",
    "lib/checkpoints/*.py",
    "lib/engine/flags.py",
    "lib/load/schedule.py",
    "lib/study/gpu_names.py",
) + sorted(map(str, Path("config/reference").glob("*.yaml")))
TABLES_CODE = code(
    "lib/analysis/**/*.py",
    "lib/base/counts.py",
    "lib/judging/*.py",
    "lib/load/lengths.py",
    "lib/load/requests.py",
    "lib/quality/compare.py",
    "lib/quality/results.py",
    "lib/study/slo.py",
    "lib/telemetry/series.py",
)


def names(items):
    """Return a wildcard's pattern that matches just these names."""
    return "|".join(re.escape(name) for name in sorted(items))


ENGINES = {engine.name: engine for engine in [STUDY.maker]} | {
    STUDY.engine_of(name).name: STUDY.engine_of(name) for name in STUDY.variants
}


wildcard_constraints:
    study=re.escape(STUDY.study),
    checkpoint=names(STUDY.checkpoints),
    variant=names(STUDY.variants),
    workload=names(STUDY.workloads),
    engine=names(ENGINES),
    environment="[A-Za-z0-9._-]+",
    session=r"\d+",


def environment_of_engine(wildcards):
    """Return the marker of the environment that an engine needs, if it is one of ours."""
    lock = ENGINES[wildcards.engine].environment
    return [f"resources/engines/{Path(lock).stem}/environment.json"] if lock else []


def folder_of_engine(wildcards):
    """Return the virtual environment of an engine (unused for an engine that is not ours)."""
    return f"resources/engines/{Path(ENGINES[wildcards.engine].environment or 'none').stem}/venv"


def maker_of_checkpoint(wildcards):
    """Return the maker's description, for checkpoints that are made here."""
    source = STUDY.checkpoints[wildcards.checkpoint]
    if source.package or source.quantize:
        return [f"results/{wildcards.study}/engines/{STUDY.maker.name}.json"]
    return []


def source_of_checkpoint(wildcards):
    """Return the manifest of the checkpoint that this one is quantized from."""
    quantize = STUDY.checkpoints[wildcards.checkpoint].quantize
    return (
        [f"results/{wildcards.study}/checkpoints/{quantize.from_}.json"]
        if quantize
        else []
    )


def calibration_of_checkpoint(wildcards):
    """Return the text that calibrates a quantization."""
    quantize = STUDY.checkpoints[wildcards.checkpoint].quantize
    return [quantize.calibration] if quantize and quantize.calibration else []


def checkpoint_of_variant(wildcards):
    """Return the manifest of a variant's checkpoint."""
    name = STUDY.variants[wildcards.variant].checkpoint
    return f"results/{wildcards.study}/checkpoints/{name}.json"


def checkpoint_of_baseline(wildcards):
    """Return the manifest of the baseline's checkpoint."""
    name = STUDY.variants[STUDY.baseline].checkpoint
    return f"results/{wildcards.study}/checkpoints/{name}.json"


def engine_of_variant(wildcards):
    """Return the description of a variant's engine."""
    return f"results/{wildcards.study}/engines/{STUDY.engine_of(wildcards.variant).name}.json"


def engine_spec_of_variant(wildcards):
    """Return the spec of a variant's engine."""
    name = STUDY.engine_of(wildcards.variant).name
    return f"results/{wildcards.study}/specs/engines/{name}.json"


def dataset_of_workload(wildcards):
    """Return a workload's own data file, if it has one here."""
    dataset = STUDY.workloads[wildcards.workload].dataset
    files = [dataset.sharegpt, dataset.jsonl, dataset.trace]
    return [name for name in files if isinstance(name, str)]


def files_of_probes(wildcards):
    """Return the probe files."""
    return [str(path) for path in probe_files(STUDY.quality.probes, PROJECT)]


def gpus_of_variant(wildcards):
    """Return how many GPUs a variant occupies; 0 on the CPU engine."""
    on_cpu = STUDY.engine_of(wildcards.variant).is_cpu_build
    return 0 if on_cpu else STUDY.variants[wildcards.variant].gpus


def all_runs(name):
    """Return the file ``name`` of every load measurement of the study."""
    return [
        f"results/{STUDY.study}/runs/{variant}/{workload}/session{session}/{name}"
        for variant in STUDY.variants
        for workload, settings in STUDY.workloads.items()
        for session in range(1, settings.sessions + 1)
    ]


def runs_of_variant(variant, name):
    """Return the file ``name`` of one variant's load measurements."""
    return [
        path
        for path in all_runs(name)
        if path.startswith(f"results/{STUDY.study}/runs/{variant}/")
    ]


def of_variants(template):
    """Return ``template`` for every variant of the study."""
    return expand(template, study=STUDY.study, variant=STUDY.variants)


def all_quality():
    """Return the quality results of the study, if it asks for them."""
    return (
        of_variants("results/{study}/quality/{variant}/quality.json")
        if STUDY.quality
        else []
    )
