"""Checkpoints: fetched or made, then described by a manifest."""


rule make_checkpoint:
    input:
        spec="results/{study}/specs/checkpoints/{checkpoint}.json",
        maker=maker_of_checkpoint,
        source=source_of_checkpoint,
        calibration=calibration_of_checkpoint,
        code=code("engine_side/*.py"),
    output:
        "results/{study}/checkpoints/{checkpoint}.json",
    log:
        "logs/{study}/make_checkpoint/{checkpoint}.log",
    resources:
        # Quantizing takes the GPU, or every core: never beside a measurement.
        measurement=1,
    params:
        maker=lambda wildcards, input: ["--maker", *input.maker] if input.maker else [],
        source=lambda wildcards, input: (
            ["--source-manifest", *input.source] if input.source else []
        ),
    message:
        "Fetch or make checkpoint {wildcards.checkpoint}"
    shell:
        """
        python -m scripts.make_checkpoint \
            --name {wildcards.checkpoint:q} \
            --spec {input.spec:q} \
            {params.maker:q} \
            {params.source:q} \
            --resources resources \
            --output {output:q} \
            --log {log:q}
        """
