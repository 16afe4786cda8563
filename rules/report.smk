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
    message:
        "Render the report"
    shell:
        """
        python -m scripts.render_report \
            --summary {input.summary:q} \
            --output {params.folder:q} 2> >(tee {log:q} >&2)
        """


rule make_archive:
    """One zip of the report and its evidence; latest.txt names the newest."""
    input:
        html="results/{study}/report/report.html",
        summary="results/{study}/summary.json",
        code=code(
            "lib/report/archive.py", "lib/report/scrub.py", "lib/analysis/points/*.py"
        ),
    output:
        "results/{study}/archive/latest.txt",
    log:
        "logs/{study}/make_archive.log",
    params:
        results=lambda wildcards: f"results/{wildcards.study}",
        folder=lambda wildcards: f"results/{wildcards.study}/archive",
    message:
        "Pack the archive"
    shell:
        """
        python -m scripts.make_archive \
            --results {params.results:q} \
            --output {params.folder:q} >{output:q} 2> >(tee {log:q} >&2)
        echo "The archive is $(cat {output:q})"
        """


rule archive:
    input:
        f"results/{STUDY.study}/archive/latest.txt",
    message:
        "The archive's name is in {input}"


rule verify:
    """Recompute every table of the archive from its raw records."""
    input:
        f"results/{STUDY.study}/archive/latest.txt",
    log:
        f"logs/{STUDY.study}/verify.log",
    message:
        "Recompute the archive's tables from its raw records"
    shell:
        """
        python -m scripts.verify_archive "$(cat {input:q})" 2>&1 | tee {log:q}
        """


rule clean_results:
    """Remove this study's results and logs, not what was fetched or built."""
    log:
        # Snakemake makes a log that is not there, so it cannot lie in logs/.
        f".snakemake/log/{STUDY.study}.clean_results.log",
    params:
        folders=[f"results/{STUDY.study}", f"logs/{STUDY.study}"],
    message:
        "Remove {params.folders}"
    shell:
        "rm -rf {params.folders:q} 2> >(tee {log:q} >&2)"
