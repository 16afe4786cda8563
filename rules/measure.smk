"""Load measurements: raw records, written once by the job that measured them."""


rule measure_load:
    """Serve one variant and run one workload against it."""
    input:
        code=LOAD_CODE,
        variant="results/{study}/specs/variants/{variant}.json",
        workload="results/{study}/specs/workloads/{workload}.json",
        engine_spec=engine_spec_of_variant,
        engine=engine_of_variant,
        manifest=checkpoint_of_variant,
        dataset=dataset_of_workload,
        host=ancient("results/{study}/host.json"),
        study=ancient("results/{study}/study.json"),
        preflight=ancient("results/{study}/preflight.json"),
    output:
        "results/{study}/runs/{variant}/{workload}/session{session}/load.json",
    log:
        "logs/{study}/measure_load/{variant}/{workload}/session{session}.log",
    resources:
        measurement=1,
        gpu=gpus_of_variant,
    shell:
        """
        python -m scripts.measure_load \
            --study {input.study:q} \
            --host {input.host:q} \
            --variant {input.variant:q} \
            --engine-spec {input.engine_spec:q} \
            --engine {input.engine:q} \
            --checkpoint {input.manifest:q} \
            --workload {input.workload:q} \
            --session {wildcards.session} \
            --output {output:q} \
            --log {log:q}
        """


rule check_machine:
    """Find out before the first server starts whether disk and memory suffice."""
    input:
        study="results/{study}/study.json",
        host="results/{study}/host.json",
        engines=engines_of_study,
        manifests=expand(
            "results/{{study}}/checkpoints/{checkpoint}.json",
            checkpoint=sorted(
                {variant.checkpoint for variant in STUDY.variants.values()}
            ),
        ),
    output:
        "results/{study}/preflight.json",
    log:
        "logs/{study}/check_machine.log",
    shell:
        """
        python -m scripts.check_machine \
            --study {input.study:q} \
            --host {input.host:q} \
            --checkpoints {input.manifests:q} \
            --output {output:q} \
            --log {log:q}
        """
