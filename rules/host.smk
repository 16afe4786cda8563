"""What machine this is: host.json."""


rule inspect_host:
    output:
        "results/{study}/host.json",
    log:
        "logs/{study}/inspect_host.log",
    message:
        "Note what machine this is"
    shell:
        """
        python -m scripts.inspect_host \
            --output {output:q} \
            --log {log:q}
        """
