"""Engine environments: made from their locks, then inspected."""


rule create_engine:
    """Install a locked environment; shared by all studies."""
    input:
        lock="envs/{environment}.txt",
        torch="envs/torch-cpu.txt",
    output:
        "resources/engines/{environment}/environment.json",
    log:
        "logs/engines/create_engine/{environment}.log",
    params:
        folder=lambda wildcards: f"resources/engines/{wildcards.environment}/venv",
    message:
        "Install the environment {wildcards.environment} from its lock"
    shell:
        """
        python -m scripts.create_engine \
            --lock {input.lock:q} \
            --folder {params.folder:q} \
            --output {output:q} \
            --log {log:q}
        """


rule inspect_engine:
    """Find out in seconds that an engine cannot be imported, not after a model has loaded."""
    input:
        spec="results/{study}/specs/engines/{engine}.json",
        environment=environment_of_engine,
    output:
        "results/{study}/engines/{engine}.json",
    log:
        "logs/{study}/inspect_engine/{engine}.log",
    params:
        folder=folder_of_engine,
    message:
        "See that engine {wildcards.engine} can be imported"
    shell:
        """
        python -m scripts.inspect_engine \
            --spec {input.spec:q} \
            --folder {params.folder:q} \
            --output {output:q} \
            --log {log:q}
        """
