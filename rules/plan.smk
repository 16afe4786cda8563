"""What would run, whether it fits and what it would cost: before anything is loaded."""


rule plan_variant:
    input:
        study="results/{study}/study.json",
        host="results/{study}/host.json",
        code=PLAN_CODE,
    output:
        "results/{study}/plan/{variant}.json",
    log:
        "logs/{study}/plan_variant/{variant}.log",
    message:
        "Plan {wildcards.variant}"
    shell:
        """
        python -m scripts.plan_variant \
            --study {input.study:q} \
            --host {input.host:q} \
            --variant {wildcards.variant:q} \
            --output {output:q} 2> >(tee {log:q} >&2)
        """


rule plan:
    """Print the plan of the study; needs no GPU and loads no model."""
    input:
        of_variants("results/{study}/plan/{variant}.json"),
    log:
        f"logs/{STUDY.study}/plan.log",
    message:
        "Print the plan"
    shell:
        "python -m scripts.plan_variant --show {input:q} 2> {log:q}"
