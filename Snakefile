"""Which quantized variant of this model should we serve, and when must we roll back?"""

from snakemake.utils import min_version

min_version("9.20")


# Only with `--sdm apptainer`; otherwise the environment that `make` set up is used.
container: "docker://python:3.11-bookworm"


include: "rules/common.smk"
include: "rules/host.smk"
include: "rules/engines.smk"
include: "rules/checkpoints.smk"
include: "rules/plan.smk"
include: "rules/measure.smk"
include: "rules/quality.smk"
include: "rules/analysis.smk"
include: "rules/report.smk"


rule report:
    """The Production serving report of the study (the default target)."""
    default_target: True
    input:
        f"results/{STUDY.study}/report/report.html",
    message:
        "The report is {input}"
