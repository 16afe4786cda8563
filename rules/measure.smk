"""Load measurements: raw records, written once by the job that measured them."""


rule check_machine:
    """Find out before a server starts whether disk, memory and files suffice."""
    input:
        host="results/{study}/host.json",
        variant="results/{study}/specs/variants/{variant}.json",
        engine_spec=engine_spec_of_variant,
        engine=engine_of_variant,
        manifest=checkpoint_of_variant,
    output:
        "results/{study}/preflight/{variant}.json",
    log:
        "logs/{study}/check_machine/{variant}.log",
    message:
        "See that disk, memory and files suffice for {wildcards.variant}"
    shell:
        """
        python -m scripts.check_machine \
            --host {input.host:q} \
            --variant {input.variant:q} \
            --engine-spec {input.engine_spec:q} \
            --engine {input.engine:q} \
            --checkpoint {input.manifest:q} \
            --output {output:q} \
            --log {log:q}
        """


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
        host="results/{study}/host.json",
        preflight="results/{study}/preflight/{variant}.json",
        # Only its on_degraded is read, and no job makes it. (Never `ancient` on a file that a
        # job makes: when that job runs, Snakemake 9.27 forgets every other reason to run this.)
        study=ancient("results/{study}/study.json"),
    output:
        "results/{study}/runs/{variant}/{workload}/session{session}/load.json",
    log:
        "logs/{study}/measure_load/{variant}/{workload}/session{session}.log",
    priority: -1
    resources:
        measurement=1,
        gpu=gpus_of_variant,
    message:
        "Serve {wildcards.variant} and run workload {wildcards.workload}, session {wildcards.session}"
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
