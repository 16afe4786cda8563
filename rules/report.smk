"""The report, and the archive that is its evidence."""


rule render_report:
    input:
        summary="results/{study}/summary.json",
        code=code("lib/report/*.py"),
        templates=code("templates/*"),
    output:
        html="results/{study}/report/report.html",
        markdown="results/{study}/report/report.md",
    log:
        "logs/{study}/render_report.log",
    params:
        folder=lambda wildcards: f"results/{wildcards.study}/report",
    shell:
        """
        python -m scripts.render_report \
            --summary {input.summary:q} \
            --output {params.folder:q} 2> >(tee {log:q} >&2)
        """
