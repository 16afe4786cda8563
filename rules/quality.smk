"""Quality probes: what each variant answers, and what its answers are worth."""


rule probe_quality:
    """Serve one variant and ask it the probes."""
    input:
        code=PROBE_CODE,
        variant="results/{study}/specs/variants/{variant}.json",
        probes="results/{study}/specs/probes/quality.json",
        probe_files=files_of_probes,
        engine_spec=engine_spec_of_variant,
        engine=engine_of_variant,
        manifest=checkpoint_of_variant,
        preflight="results/{study}/preflight/{variant}.json",
    output:
        asked="results/{study}/quality/{variant}/asked.json",
        completions="results/{study}/quality/{variant}/completions.jsonl.gz",
    log:
        "logs/{study}/probe_quality/{variant}.log",
    priority: -1
    resources:
        measurement=1,
        gpu=gpus_of_variant,
    message:
        "Serve {wildcards.variant} and ask it the probes"
    shell:
        """
        python -m scripts.probe_quality \
            --variant {input.variant:q} \
            --engine-spec {input.engine_spec:q} \
            --engine {input.engine:q} \
            --checkpoint {input.manifest:q} \
            --probes {input.probes:q} \
            --output {output.asked:q} \
            --log {log:q}
        """


rule grade_quality:
    """Grade recorded answers: a better grader needs no server."""
    input:
        code=GRADE_CODE,
        asked="results/{study}/quality/{variant}/asked.json",
        completions="results/{study}/quality/{variant}/completions.jsonl.gz",
        probes="results/{study}/specs/probes/quality.json",
        probe_files=files_of_probes,
    output:
        "results/{study}/quality/{variant}/quality.json",
    log:
        "logs/{study}/grade_quality/{variant}.log",
    resources:
        measurement=1,
    message:
        "Grade the answers of {wildcards.variant}"
    shell:
        """
        python -m scripts.grade_quality \
            --asked {input.asked:q} \
            --completions {input.completions:q} \
            --probes {input.probes:q} \
            --output {output:q} \
            --log {log:q}
        """
