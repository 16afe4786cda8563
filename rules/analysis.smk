"""From raw records to one summary.json; needs no GPU and no server."""


rule judge_kernels:
    """Did the engine run what the checkpoint promises?"""
    input:
        study="results/{study}/study.json",
        host="results/{study}/host.json",
        manifest=checkpoint_of_variant,
        baseline_manifest=checkpoint_of_baseline,
        runs=lambda wildcards: runs_of_variant(wildcards.variant, "load.json"),
        baseline=lambda wildcards: runs_of_variant(STUDY.baseline, "load.json"),
        code=code("lib/engine/log_*.py") + PLAN_CODE,
    output:
        "results/{study}/kernels/{variant}.json",
    log:
        "logs/{study}/judge_kernels/{variant}.log",
    params:
        startups=lambda wildcards: runs_of_variant(wildcards.variant, "startup.json"),
        baseline=lambda wildcards: runs_of_variant(STUDY.baseline, "startup.json"),
    message:
        "Judge what the engine ran for {wildcards.variant}"
    shell:
        """
        python -m scripts.judge_kernels \
            --study {input.study:q} \
            --host {input.host:q} \
            --manifest {input.manifest:q} \
            --baseline-manifest {input.baseline_manifest:q} \
            --startup {params.startups:q} \
            --baseline-startup {params.baseline:q} \
            --variant {wildcards.variant:q} \
            --output {output:q} 2> >(tee {log:q} >&2)
        """


rule build_tables:
    input:
        study="results/{study}/study.json",
        runs=all_runs("load.json"),
        quality=all_quality(),
        kernels=of_variants("results/{study}/kernels/{variant}.json"),
        plans=of_variants("results/{study}/plan/{variant}.json"),
        code=TABLES_CODE,
    output:
        "results/{study}/tables/analysis.json",
    log:
        "logs/{study}/build_tables.log",
    params:
        results=lambda wildcards: f"results/{wildcards.study}",
    message:
        "Build the tables from the raw records"
    shell:
        """
        python -m scripts.build_tables \
            --study {input.study:q} \
            --results {params.results:q} 2> >(tee {log:q} >&2)
        """


rule summarise_study:
    """Diagnosis, decision and rollback conditions, in the one summary.json."""
    input:
        study="results/{study}/study.json",
        host="results/{study}/host.json",
        analysis="results/{study}/tables/analysis.json",
        code=TABLES_CODE + code("lib/telemetry/metric_names.py"),
    output:
        summary="results/{study}/summary.json",
        alerts="results/{study}/alerts.yaml",
    log:
        "logs/{study}/summarise_study.log",
    params:
        results=lambda wildcards: f"results/{wildcards.study}",
    message:
        "Diagnose and decide"
    shell:
        """
        python -m scripts.summarise_study \
            --study {input.study:q} \
            --results {params.results:q} \
            --output {output.summary:q} \
            --alerts {output.alerts:q} 2> >(tee {log:q} >&2)
        """
